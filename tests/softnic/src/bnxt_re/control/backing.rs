//! Context memory: what the device needs, and whether it gets it. The device keeps its objects elsewhere; it only looks whether
//! the memory is there, as it was told, and initialised.

use std::collections::{BTreeMap, BTreeSet};

use directverbs::bnxt_re::hwrm::backing_store::{FuncBackingStoreCfgInput, FuncBackingStoreQcapsOutput};
use directverbs::bnxt_re::hwrm::backing_store_v2::{
    BS_CFG_ALL_DONE, FuncBackingStoreCfgV2Input, FuncBackingStoreQcapsV2Input, FuncBackingStoreQcapsV2Output,
    flags,
};
use directverbs::bnxt_re::hwrm::context::{ContextType, Given, MRAV_RESERVATION_SPLIT};
use directverbs::bnxt_re::hwrm::error::HwrmStatus;
use directverbs::bnxt_re::pbl::{PageAttribute, page_shift};
use zerocopy::little_endian as le;

use super::function::BnxtFunction;
use super::hwrm::{Answer, payload};
use super::list::List;

/// Context memory that the host has given.
#[derive(Debug, Default)]
pub(super) struct ContextMemory {
    given: BTreeSet<(u16, u16)>,
    entries: BTreeMap<u16, u32>,
    /// The host has said that it was all.
    pub complete: bool,
}

/// What the device needs of a kind.
struct Kind {
    kind: ContextType,
    entry_size: u16,
    max: u32,
    min: u32,
    multiple: u8,
    instances: u16,
    /// Byte to initialise, in words of 4 bytes.
    init: Option<u8>,
    split: &'static [u32],
}

/// Byte that entries are initialised with.
const INIT: u8 = 0x5a;
/// Fast-path rings of the transmit queue manager: one for each queue of the port.
const FP_RINGS: u16 = 2;
/// Unit of regions and of address handles.
const MRAV_UNITS: u32 = 64;

const fn kind(kind: ContextType, entry_size: u16, max: u32) -> Kind {
    Kind { kind, entry_size, max, min: 0, multiple: 1, instances: 1, init: None, split: &[] }
}

const KINDS: &[Kind] = &[
    Kind { split: &[128, 2, 0], init: Some(3), ..kind(ContextType::QP, 1024, 65536) },
    Kind { split: &[16], init: Some(1), ..kind(ContextType::SRQ, 256, 8192) },
    Kind { split: &[128], ..kind(ContextType::CQ, 256, 65536) },
    Kind { split: &[16], ..kind(ContextType::VNIC, 64, 32) },
    kind(ContextType::STAT, 64, 256),
    Kind { min: 128, multiple: 32, ..kind(ContextType::SP_TQM, 16, 1 << 20) },
    Kind { min: 128, multiple: 32, instances: FP_RINGS, ..kind(ContextType::FP_TQM, 16, 1 << 20) },
    Kind { split: &[0, MRAV_UNITS], multiple: MRAV_UNITS as u8, ..kind(ContextType::MRAV, 128, 1 << 18) },
    kind(ContextType::TIM, 64, 65536),
];

fn needed(kind: ContextType) -> Option<&'static Kind> {
    KINDS.iter().find(|known| known.kind == kind)
}

impl BnxtFunction {
    /// What is needed, in version 1.
    pub(super) fn backing_v1(&self) -> Vec<u8> {
        let of = |kind| needed(kind).expect("every kind is in the table");
        let size = |kind| le::U16::new(of(kind).entry_size);
        let max = |kind| le::U32::new(of(kind).max);
        let split = |kind, i: usize| le::U16::new(of(kind).split[i] as u16);
        let tqm = of(ContextType::SP_TQM);
        payload(&FuncBackingStoreQcapsOutput {
            qp_max_entries: max(ContextType::QP),
            qp_min_qp1_entries: split(ContextType::QP, 1),
            qp_max_l2_entries: split(ContextType::QP, 0),
            qp_entry_size: size(ContextType::QP),
            srq_max_l2_entries: split(ContextType::SRQ, 0),
            srq_max_entries: max(ContextType::SRQ),
            srq_entry_size: size(ContextType::SRQ),
            cq_max_l2_entries: split(ContextType::CQ, 0),
            cq_max_entries: max(ContextType::CQ),
            cq_entry_size: size(ContextType::CQ),
            vnic_max_vnic_entries: split(ContextType::VNIC, 0),
            vnic_max_ring_table_entries: le::U16::new(
                (of(ContextType::VNIC).max - of(ContextType::VNIC).split[0]) as u16,
            ),
            vnic_entry_size: size(ContextType::VNIC),
            stat_max_entries: max(ContextType::STAT),
            stat_entry_size: size(ContextType::STAT),
            tqm_entry_size: le::U16::new(tqm.entry_size),
            tqm_min_entries_per_ring: le::U32::new(tqm.min),
            tqm_max_entries_per_ring: le::U32::new(tqm.max),
            tqm_entries_multiple: tqm.multiple,
            tqm_fp_rings_count: FP_RINGS as u8,
            mrav_max_entries: max(ContextType::MRAV),
            mrav_entry_size: size(ContextType::MRAV),
            mrav_num_entries_units: le::U16::new(MRAV_UNITS as u16),
            tim_entry_size: size(ContextType::TIM),
            tim_max_entries: max(ContextType::TIM),
            ctx_kind_initializer: INIT,
            ctx_init_mask: le::U16::new(0x3),
            qp_init_offset: of(ContextType::QP).init.unwrap_or(0),
            srq_init_offset: of(ContextType::SRQ).init.unwrap_or(0),
            ..FuncBackingStoreQcapsOutput::ZERO
        })
    }

    /// What is needed of a kind, in version 2.
    pub(super) fn backing_v2(&self, input: &FuncBackingStoreQcapsV2Input) -> Answer {
        let asked = ContextType(input.r#type.get());
        if asked >= ContextType::END {
            return Err(HwrmStatus::INVALID_PARAMS);
        }
        let next = KINDS.iter().map(|kind| kind.kind).find(|kind| *kind > asked).unwrap_or(ContextType::END);
        let mut reply = FuncBackingStoreQcapsV2Output {
            r#type: input.r#type,
            next_valid_type: le::U16::new(next.0),
            ..FuncBackingStoreQcapsV2Output::ZERO
        };
        if let Some(kind) = needed(asked) {
            let split = |i: usize| le::U32::new(kind.split.get(i).copied().unwrap_or(0));
            let init = if kind.init.is_some() { flags::ENABLE_CTX_KIND_INIT } else { 0 };
            reply = FuncBackingStoreQcapsV2Output {
                entry_size: le::U16::new(kind.entry_size),
                flags: le::U32::new(flags::TYPE_VALID | init),
                instance_bit_map: le::U32::new((1 << kind.instances) - 1),
                ctx_init_value: INIT,
                ctx_init_offset: kind.init.unwrap_or(0),
                entry_multiple: kind.multiple,
                max_num_entries: le::U32::new(kind.max),
                min_num_entries: le::U32::new(kind.min),
                subtype_valid_cnt: kind.split.len() as u8,
                split_entry_0: split(0),
                split_entry_1: split(1),
                split_entry_2: split(2),
                split_entry_3: split(3),
                ..reply
            };
        }
        Ok(payload(&reply))
    }

    /// The host gives all context memory at once.
    pub(super) fn backing_cfg_v1(&mut self, input: &FuncBackingStoreCfgInput) -> Result<(), HwrmStatus> {
        if self.state.context.complete {
            self.violation("context memory is given twice");
            return Err(HwrmStatus::INVALID_PARAMS);
        }
        for mut given in input.given() {
            if given.kind == ContextType::MRAV && input.flags.get() & MRAV_RESERVATION_SPLIT != 0 {
                given.entries = given.entries.saturating_mul(MRAV_UNITS);
            }
            self.take(&given)?;
        }
        self.complete()
    }

    /// The host gives context memory of one kind.
    pub(super) fn backing_cfg_v2(&mut self, input: &FuncBackingStoreCfgV2Input) -> Result<(), HwrmStatus> {
        self.take(&Given {
            kind: ContextType(input.r#type.get()),
            instance: input.instance.get(),
            attribute: PageAttribute::from_bits(input.page_size_pbl_level),
            page_dir: input.page_dir.get(),
            entries: input.num_entries.get(),
            entry_size: input.entry_size.get(),
        })?;
        if input.flags.get() & BS_CFG_ALL_DONE != 0 {
            self.complete()?;
        }
        Ok(())
    }

    /// Whether there are contexts for so many objects of a kind, with those of Ethernet.
    pub(super) fn has_contexts(&self, kind: ContextType, objects: u32) -> bool {
        self.state.context.entries.get(&kind.0).is_some_and(|entries| objects <= *entries)
    }

    fn complete(&mut self) -> Result<(), HwrmStatus> {
        for kind in KINDS {
            for instance in 0..kind.instances {
                if !self.state.context.given.contains(&(kind.kind.0, instance)) {
                    self.violation(format_args!("no context memory of kind {:#x}.{instance}", kind.kind.0));
                    return Err(HwrmStatus::INVALID_PARAMS);
                }
            }
        }
        self.state.context.complete = true;
        Ok(())
    }

    fn take(&mut self, given: &Given) -> Result<(), HwrmStatus> {
        if let Err(reason) = self.look(given) {
            self.violation(format_args!(
                "context memory of kind {:#x}.{}: {reason}",
                given.kind.0, given.instance
            ));
            return Err(HwrmStatus::INVALID_PARAMS);
        }
        self.state.context.given.insert((given.kind.0, given.instance));
        self.state.context.entries.insert(given.kind.0, given.entries);
        Ok(())
    }

    fn look(&self, given: &Given) -> Result<(), String> {
        let kind = needed(given.kind).ok_or("not needed")?;
        if given.instance >= kind.instances {
            return Err("no such instance".into());
        }
        let split: u32 = if given.kind == ContextType::MRAV { 0 } else { kind.split.iter().sum() };
        let enough = given.entries >= kind.min.max(split).max(1) && given.entries <= kind.max;
        if given.entry_size != kind.entry_size || !enough {
            return Err(format!("{} entries of {} bytes", given.entries, given.entry_size));
        }
        if !given.entries.is_multiple_of(kind.multiple.into()) {
            return Err(format!("{} entries are no multiple of {}", given.entries, kind.multiple));
        }
        let code = given.attribute.page_size();
        let shift = page_shift(code).ok_or_else(|| format!("page size code {code}"))?;
        let list = List { root: given.page_dir, level: given.attribute.level(), shift, ring: false };
        let size = u64::from(given.entry_size);
        let memory =
            list.memory(self.bus(), 0, u64::from(given.entries) * size).map_err(|e| e.to_string())?;
        let Some(offset) = kind.init else { return Ok(()) };
        for entry in 0..u64::from(given.entries) {
            let mut byte = [0];
            let at = entry * size + u64::from(offset) * 4;
            let (addr, _) = memory.locate(at, 1).map_err(|e| e.to_string())?;
            self.bus().read(addr, &mut byte).map_err(|e| e.to_string())?;
            if byte != [INIT] {
                return Err(format!("entry {entry} is not initialised"));
            }
        }
        Ok(())
    }
}
