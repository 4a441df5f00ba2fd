//! Context memory: asked for, allocated, initialised and handed over.

use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::hwrm::backing_store::{FuncBackingStoreCfgInput, FuncBackingStoreQcapsInput};
use directverbs::bnxt_re::hwrm::backing_store_v2::FuncBackingStoreQcapsV2Input;
use directverbs::bnxt_re::hwrm::context::{ContextCaps, ContextPlan, ContextType, Demand, MAX_INSTANCES};
use directverbs::bnxt_re::pbl::{PageAttribute, Use};
use directverbs::text;
use zerocopy::little_endian as le;

use super::area::{Areas, Shared, address, shared};
use super::bring_up::Brought;
use super::error::Error;
use crate::host::Host;

/// Blocks of context memory: one of each kind, and one for each further instance.
const BLOCKS: usize = ContextType::NEEDED.len() + MAX_INSTANCES as usize;

/// Context memory that the device has.
pub(super) type Contexts<H> = heapless::Vec<Shared<H>, BLOCKS>;

/// Gives the device context memory for `demand`.
///
/// # Errors
/// The device wants what cannot be, there is not enough memory, or it refuses.
pub(super) fn give<H: Host>(
    brought: &mut Brought<H>,
    host: &H,
    v2: bool,
    queues: u8,
    demand: &Demand,
) -> Result<(), Error> {
    let caps = if v2 { ask_v2(brought, host)? } else { ask_v1(brought, host, queues)? };
    let plans = ContextPlan::all(&caps, demand)?;
    let mut all = FuncBackingStoreCfgInput::ZERO;
    let last = plans.len() - 1;
    for (i, plan) in plans.iter().enumerate() {
        for instance in 0..plan.caps.instances {
            let (attribute, page_dir) = allocate(brought, host, plan)?;
            let instance = instance as u16;
            let ends = i == last && u32::from(instance) + 1 == plan.caps.instances;
            if v2 {
                let message = plan.message(instance, attribute, page_dir, ends);
                brought.request(host, &message)?;
            } else if !all.add(plan, instance, attribute, page_dir) {
                return Err(Error::Capabilities(text!("context memory that has no place in the request")));
            }
        }
    }
    if !v2 {
        brought.request(host, &all)?;
    }
    Ok(())
}

fn ask_v1<H: Host>(brought: &mut Brought<H>, host: &H, queues: u8) -> Result<ContextCaps, Error> {
    let reply = brought.request(host, &FuncBackingStoreQcapsInput::ZERO)?;
    Ok(ContextCaps::from_v1(&reply, queues)?)
}

fn ask_v2<H: Host>(brought: &mut Brought<H>, host: &H) -> Result<ContextCaps, Error> {
    let mut caps = ContextCaps::new();
    let mut next = Some(ContextType(0));
    while let Some(kind) = next {
        let r#type = le::U16::new(kind.0);
        let asked = FuncBackingStoreQcapsV2Input { r#type, ..FuncBackingStoreQcapsV2Input::ZERO };
        next = caps.learn(kind, &brought.request(host, &asked)?)?;
    }
    Ok(caps)
}

/// Memory of an instance: initialised, and listed.
fn allocate<H: Host>(
    brought: &mut Brought<H>,
    host: &H,
    plan: &ContextPlan,
) -> Result<(PageAttribute, u64), Error> {
    let mut areas = Areas::default();
    let at = areas.pages(plan.bytes());
    let area = areas.list(at, plan.bytes(), Use::Memory)?;
    let mut memory = shared(host, areas.bytes())?;
    if !plan.initialise(&mut memory) {
        return Err(Error::Capabilities(text!("context memory that is longer than its entries")));
    }
    let address = address(&memory);
    let listed = area.write(&mut memory, address)?;
    let attribute = listed.plan.attribute().ok_or(Error::Capabilities(text!("pages of this size")))?;
    if brought.contexts.push(memory).is_err() {
        return Err(Error::Full(text!("block of context memory")));
    }
    Ok((attribute, listed.root))
}

/// Whether a device of `generation` with these capabilities has the second version.
pub(super) const fn has_v2(generation: Generation, supported: bool, required: bool) -> bool {
    required || supported && matches!(generation, Generation::P7)
}
