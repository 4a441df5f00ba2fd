//! Direct verbs of bnxt_re. What can only be found by trying is tried, and undone.

use std::sync::Arc;

use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::plan::CqPlan;
use directverbs::bnxt_re::psn::Retransmit;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs_linux::bnxt_re::{
    CompletionQueue, Context, CqOptions, DoorbellRegion, PacingPages, ProtectionDomain,
};
use directverbs_linux::objects::Buffer;
use directverbs_linux::uverbs::Pages;
use directverbs_linux::{Error, Result};

use super::facts::{Facts, Value};

/// Completions of the queue that is made to see whether one can be.
const CQE: u32 = 16;

/// What the device and its driver offer.
pub fn direct(context: &Context) -> Facts {
    let (caps, reply) = (context.caps(), context.reply());
    let chip = reply.chip_id0.get();
    let generation = match caps.generation {
        Generation::Legacy => "before P5",
        Generation::P5 => "P5",
        Generation::P7 => "P7",
    };
    let mode = match caps.wqe_mode {
        WqeMode::Static => "static: 128 bytes each",
        WqeMode::Variable => "variable: 16-byte slots",
    };
    let retransmit = match caps.retransmit() {
        Retransmit::Msn => "MSN table",
        Retransmit::PsnExt => "extended PSN table",
        Retransmit::Psn => "PSN table",
    };
    // The default region comes with the first protection domain.
    let pd = ProtectionDomain::alloc(context);
    let queue = CompletionQueue::create(context, CQE, &CqOptions::default());
    let toggle = queue.as_ref().map_or_else(
        |error| Value::Tried(Err(error.to_string())),
        |queue| Value::Flag(queue.has_toggle_page()),
    );
    let page = context.doorbell().map(|page| format!("{} at {:#x}", page.dpi(), page.address()));
    Facts(vec![
        ("generation", Value::text(generation)),
        (
            "chip",
            Value::Text(format!(
                "{:#06x}, revision {}, metal {}",
                chip as u16,
                chip >> 16 & 0xff,
                chip >> 24
            )),
        ),
        ("WQE mode", Value::text(mode)),
        ("retransmission", Value::text(retransmit)),
        ("MSN table", Value::Flag(caps.msn_table)),
        ("depths rounded to powers of two", Value::Flag(!caps.pow2_disabled)),
        ("CQE", Value::Of(caps.cqe_bytes.into(), "bytes")),
        ("completions of a completion queue", Value::Count(caps.max_cqe.into())),
        ("queue pairs", Value::Count(reply.max_qp.get().into())),
        ("page", Value::Of(caps.page_size.into(), "bytes")),
        ("rate limit of queue pairs", Value::Flag(caps.rate_limit)),
        ("protection domain", Value::tried(&pd)),
        ("doorbell page", Value::optional(page)),
        ("default doorbell region", Value::tried(&DoorbellRegion::default_of(context))),
        ("doorbell regions", Value::tried(&DoorbellRegion::alloc(context))),
        ("push page", Value::tried(&context.push_page())),
        ("doorbell pacing", pacing(context)),
        ("toggle pages", toggle),
        ("queues on application memory", Value::tried(&on_memory(context))),
    ])
}

fn pacing(context: &Context) -> Value {
    match PacingPages::map(context) {
        Ok(Some(pages)) => {
            let parameters = pages.parameters();
            let filling = parameters.occupancy(pages.register(&parameters));
            Value::Text(format!("yes, {filling} doorbells under way"))
        }
        Ok(None) => Value::Flag(false),
        Err(error) => Value::Tried(Err(error.to_string())),
    }
}

/// A completion queue on memory of this process.
fn on_memory(context: &Context) -> Result<()> {
    let plan = CqPlan::new(context.caps(), CQE)
        .map_err(|error| Error::Plan { object: "completion queue", error })?;
    let kernel = context.generic().file().kernel();
    let pages = Arc::new(Pages::new(kernel, plan.bytes as usize)?);
    let length = pages.len() as u64;
    let buffer = Some(Buffer::Memory { pages, offset: 0, length });
    CompletionQueue::create(context, CQE, &CqOptions { buffer, ..CqOptions::default() })?.destroy()
}
