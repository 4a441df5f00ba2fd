//! Context memory: what the device keeps about queue pairs and other objects lies in memory of the host. What it needs of
//! each kind is planned here, for both versions of the backing store.

use crate::verbs::Text;
use zerocopy::{IntoBytes, little_endian as le};

use super::backing_store::{FuncBackingStoreCfgInput, FuncBackingStoreQcapsOutput};
use super::backing_store_v2::{
    BS_CFG_ALL_DONE, FuncBackingStoreCfgV2Input, FuncBackingStoreQcapsV2Output, flags,
};
use crate::bnxt_re::pbl::PageAttribute;
use crate::queue::RingMemory;

/// Kind of context. Open: any value is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextType(pub u16);

impl ContextType {
    /// Queue pairs.
    pub const QP: Self = Self(0x0);
    /// Shared receive queues.
    pub const SRQ: Self = Self(0x1);
    /// Completion queues.
    pub const CQ: Self = Self(0x2);
    /// VNICs.
    pub const VNIC: Self = Self(0x3);
    /// Statistics.
    pub const STAT: Self = Self(0x4);
    /// Slow-path ring of the transmit queue manager.
    pub const SP_TQM: Self = Self(0x5);
    /// Fast-path rings of the transmit queue manager, one for each instance.
    pub const FP_TQM: Self = Self(0x6);
    /// Regions and address handles.
    pub const MRAV: Self = Self(0xe);
    /// Timers.
    pub const TIM: Self = Self(0xf);
    /// None is as high as this.
    pub const END: Self = Self(0x2c);

    /// Those that RoCE needs. The device's others are for traces, TLS and shadows of doorbells.
    pub const NEEDED: [Self; 9] = [
        Self::QP,
        Self::SRQ,
        Self::CQ,
        Self::VNIC,
        Self::STAT,
        Self::SP_TQM,
        Self::FP_TQM,
        Self::MRAV,
        Self::TIM,
    ];

    fn place(self) -> Option<usize> {
        Self::NEEDED.iter().position(|kind| *kind == self)
    }
}

/// Most instances of a kind.
pub const MAX_INSTANCES: u32 = 11;
/// Largest entry that is believed.
const MAX_ENTRY: u16 = 8192;

/// Capabilities that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("context memory of kind {:#x}: {what}", kind.0)]
pub struct ContextError {
    /// Kind of context.
    pub kind: ContextType,
    /// What cannot be.
    pub what: Text,
}

/// What the device needs of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeCaps {
    /// Bytes of an entry.
    pub entry_size: u16,
    /// Most entries.
    pub max: u32,
    /// Fewest entries.
    pub min: u32,
    /// Entries come in multiples of this.
    pub multiple: u8,
    /// Byte to set in each entry, and its value.
    pub init: Option<(u16, u8)>,
    /// Instances.
    pub instances: u32,
    /// Depends on the kind: entries of Ethernet, of general services, units.
    pub split: [u32; 4],
    /// How many of them count.
    pub splits: u8,
}

impl TypeCaps {
    fn check(self, kind: ContextType) -> Result<Self, ContextError> {
        let split: u64 = match kind {
            ContextType::QP => u64::from(self.split[0]) + u64::from(self.split[1]),
            ContextType::SRQ | ContextType::CQ | ContextType::VNIC => self.split[0].into(),
            _ => 0,
        };
        let wrong = [
            (
                self.entry_size == 0 || self.entry_size > MAX_ENTRY,
                text!("entries without bytes, or with too many"),
            ),
            (self.max == 0 || self.min > self.max, text!("no entries, or fewer than the least")),
            (split > self.max.into(), text!("more entries set apart than there are")),
            (self.instances == 0 || self.instances > MAX_INSTANCES, text!("no instances, or too many")),
            (self.init.is_some_and(|(at, _)| at >= self.entry_size), text!("initialised behind its end")),
        ];
        match wrong.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, what)) => Err(ContextError { kind, what }),
            None => Ok(self),
        }
    }
}

/// What the device needs in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextCaps {
    types: [Option<TypeCaps>; ContextType::NEEDED.len()],
}

impl ContextCaps {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { types: [None; ContextType::NEEDED.len()] }
    }

    /// What the device needs of a kind.
    pub fn of(&self, kind: ContextType) -> Option<&TypeCaps> {
        kind.place().and_then(|place| self.types[place].as_ref())
    }

    fn set(&mut self, kind: ContextType, caps: TypeCaps) -> Result<(), ContextError> {
        if let Some(place) = kind.place() {
            self.types[place] = Some(caps.check(kind)?);
        }
        Ok(())
    }

    /// Reads the reply of version 1. The port has `queues` queues: as many fast-path rings there are if the reply tells
    /// none.
    ///
    /// # Errors
    /// Capabilities that cannot be.
    pub fn from_v1(reply: &FuncBackingStoreQcapsOutput, queues: u8) -> Result<Self, ContextError> {
        let mask = reply.ctx_init_mask.get();
        let init = |bit: u16, offset: u8| {
            (mask & bit != 0).then_some((u16::from(offset) * 4, reply.ctx_kind_initializer))
        };
        let one = TypeCaps { multiple: 1, instances: 1, ..TypeCaps::default() };
        let rings = match (reply.tqm_fp_rings_count, reply.tqm_fp_rings_count_ext) {
            (0, _) => queues,
            (count, more) => count.saturating_add(more),
        };
        let tqm = TypeCaps {
            entry_size: reply.tqm_entry_size.get(),
            max: reply.tqm_max_entries_per_ring.get(),
            min: reply.tqm_min_entries_per_ring.get(),
            multiple: reply.tqm_entries_multiple,
            ..one
        };
        let (vnics, tables) = (
            u32::from(reply.vnic_max_vnic_entries.get()),
            u32::from(reply.vnic_max_ring_table_entries.get()),
        );
        let (l2, qp1) = (reply.qp_max_l2_entries.get().into(), reply.qp_min_qp1_entries.get().into());
        let types = [
            (
                ContextType::QP,
                TypeCaps {
                    entry_size: reply.qp_entry_size.get(),
                    max: reply.qp_max_entries.get(),
                    init: init(1, reply.qp_init_offset),
                    split: [l2, qp1, reply.fast_qpmd_qp_num_entries.get().into(), 0],
                    splits: 3,
                    ..one
                },
            ),
            (
                ContextType::SRQ,
                TypeCaps {
                    entry_size: reply.srq_entry_size.get(),
                    max: reply.srq_max_entries.get(),
                    init: init(2, reply.srq_init_offset),
                    split: [reply.srq_max_l2_entries.get().into(), 0, 0, 0],
                    splits: 1,
                    ..one
                },
            ),
            (
                ContextType::CQ,
                TypeCaps {
                    entry_size: reply.cq_entry_size.get(),
                    max: reply.cq_max_entries.get(),
                    init: init(4, reply.cq_init_offset),
                    split: [reply.cq_max_l2_entries.get().into(), 0, 0, 0],
                    splits: 1,
                    ..one
                },
            ),
            (
                ContextType::VNIC,
                TypeCaps {
                    entry_size: reply.vnic_entry_size.get(),
                    max: vnics + tables,
                    init: init(8, reply.vnic_init_offset),
                    split: [vnics, 0, 0, 0],
                    splits: 1,
                    ..one
                },
            ),
            (
                ContextType::STAT,
                TypeCaps {
                    entry_size: reply.stat_entry_size.get(),
                    max: reply.stat_max_entries.get(),
                    init: init(0x10, reply.stat_init_offset),
                    ..one
                },
            ),
            (ContextType::SP_TQM, tqm),
            (ContextType::FP_TQM, TypeCaps { instances: rings.into(), ..tqm }),
            (
                ContextType::MRAV,
                TypeCaps {
                    entry_size: reply.mrav_entry_size.get(),
                    max: reply.mrav_max_entries.get(),
                    init: init(0x20, reply.mrav_init_offset),
                    split: [0, reply.mrav_num_entries_units.get().into(), 0, 0],
                    splits: 2,
                    ..one
                },
            ),
            (
                ContextType::TIM,
                TypeCaps { entry_size: reply.tim_entry_size.get(), max: reply.tim_max_entries.get(), ..one },
            ),
        ];
        let mut caps = Self::new();
        for (kind, of) in types {
            caps.set(kind, of)?;
        }
        Ok(caps)
    }

    /// Takes over a reply of version 2 to the question for `asked`, and gives the kind to ask for next, if there is one.
    ///
    /// # Errors
    /// Capabilities that cannot be.
    pub fn learn(
        &mut self,
        asked: ContextType,
        reply: &FuncBackingStoreQcapsV2Output,
    ) -> Result<Option<ContextType>, ContextError> {
        let next = ContextType(reply.next_valid_type.get());
        if next <= asked {
            return Err(ContextError { kind: asked, what: text!("the next kind is not a later one") });
        }
        let has = reply.flags.get();
        if has & flags::TYPE_VALID != 0 && has & flags::DRIVER_MANAGED_MEMORY == 0 {
            let init = (has & flags::ENABLE_CTX_KIND_INIT != 0)
                .then_some((u16::from(reply.ctx_init_offset) * 4, reply.ctx_init_value));
            let split = [reply.split_entry_0, reply.split_entry_1, reply.split_entry_2, reply.split_entry_3];
            let caps = TypeCaps {
                entry_size: reply.entry_size.get(),
                max: reply.max_num_entries.get(),
                min: reply.min_num_entries.get(),
                multiple: reply.entry_multiple,
                init,
                instances: reply.instance_bit_map.get().count_ones().max(1),
                split: split.map(le::U32::get),
                splits: reply.subtype_valid_cnt.min(4),
            };
            self.set(asked, caps)?;
        }
        Ok((next < ContextType::END).then_some(next))
    }
}

/// Objects of RoCE that there shall be room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Queue pairs.
    pub qps: u32,
    /// Shared receive queues.
    pub srqs: u32,
    /// Completion queues.
    pub cqs: u32,
    /// Regions and windows.
    pub regions: u32,
    /// Address handles.
    pub ahs: u32,
}

/// Context memory of a kind: so much for each instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextPlan {
    /// Kind.
    pub kind: ContextType,
    /// What the device needs of it.
    pub caps: TypeCaps,
    /// Entries.
    pub entries: u32,
}

impl ContextPlan {
    /// Plans the memory of each kind.
    ///
    /// # Errors
    /// A kind that RoCE needs is missing.
    pub fn all(
        caps: &ContextCaps,
        demand: &Demand,
    ) -> Result<[Self; ContextType::NEEDED.len()], ContextError> {
        let of = |kind| caps.of(kind).ok_or(ContextError { kind, what: text!("not told") });
        let qp = of(ContextType::QP)?;
        let [l2, qp1, ..] = qp.split;
        let extra = demand.qps.min(qp.max - l2 - qp1);
        let mut plans = [Self { kind: ContextType::QP, caps: *qp, entries: 0 }; ContextType::NEEDED.len()];
        for (plan, kind) in plans.iter_mut().zip(ContextType::NEEDED) {
            let mut caps = *of(kind)?;
            let pairs = 2 * (u64::from(extra) + u64::from(qp1));
            let wanted: u64 = match kind {
                ContextType::QP | ContextType::TIM => u64::from(l2) + u64::from(qp1) + u64::from(extra),
                ContextType::SRQ => u64::from(caps.split[0]) + u64::from(demand.srqs),
                ContextType::CQ => u64::from(caps.split[0]) + u64::from(demand.cqs),
                ContextType::SP_TQM => {
                    u64::from(of(ContextType::VNIC)?.max) + u64::from(l2) + pairs + u64::from(caps.min)
                }
                ContextType::FP_TQM => u64::from(l2) + pairs,
                ContextType::MRAV => {
                    // Both come in units, if they come apart.
                    let units = u64::from(caps.split[1].max(1));
                    let in_units = |count: u32| u64::from(count).next_multiple_of(units);
                    let half = u64::from(caps.max / 2) / units * units;
                    let ahs = in_units(demand.ahs).min(half);
                    caps.split[0] = ahs as u32;
                    ahs + in_units(demand.regions)
                }
                _ => caps.max.into(),
            };
            let multiple = u64::from(caps.multiple.max(1));
            let entries = wanted.next_multiple_of(multiple).clamp(caps.min.max(1).into(), caps.max.into());
            *plan = Self { kind, caps, entries: entries as u32 };
        }
        Ok(plans)
    }

    /// Bytes of an instance.
    pub const fn bytes(&self) -> u64 {
        self.entries as u64 * self.caps.entry_size as u64
    }

    /// Initialises the memory of an instance, which is zero; `false` if it is too short.
    pub fn initialise(&self, memory: &mut RingMemory<'_>) -> bool {
        let Some((at, value)) = self.caps.init else { return true };
        let size = usize::from(self.caps.entry_size);
        (0..self.entries as usize).all(|i| memory.store_bytes(i * size + usize::from(at), &[value]))
    }

    /// The message of version 2 that hands an instance to the device. The `last` one of all says so.
    pub fn message(
        &self,
        instance: u16,
        attribute: PageAttribute,
        page_dir: u64,
        last: bool,
    ) -> FuncBackingStoreCfgV2Input {
        let [a, b, c, d] = self.caps.split.map(le::U32::new);
        FuncBackingStoreCfgV2Input {
            r#type: le::U16::new(self.kind.0),
            instance: le::U16::new(instance),
            flags: le::U32::new(if last { BS_CFG_ALL_DONE } else { 0 }),
            page_dir: le::U64::new(page_dir),
            num_entries: le::U32::new(self.entries),
            entry_size: le::U16::new(self.caps.entry_size),
            page_size_pbl_level: attribute.into_bits(),
            subtype_valid_cnt: self.caps.splits,
            split_entry_0: a,
            split_entry_1: b,
            split_entry_2: c,
            split_entry_3: d,
            ..FuncBackingStoreCfgV2Input::ZERO
        }
    }
}

/// Where the message of version 1 has what belongs to a kind: bit of `enables`, and offsets of attribute, page directory,
/// number of entries, and size of an entry.
struct Row(ContextType, u16, u32, [usize; 4]);

const ROWS: &[Row] = &[
    Row(ContextType::QP, 0, 0x1, [24, 40, 168, 232]),
    Row(ContextType::SRQ, 0, 0x2, [25, 48, 172, 236]),
    Row(ContextType::CQ, 0, 0x4, [26, 56, 176, 240]),
    Row(ContextType::VNIC, 0, 0x8, [27, 64, 0, 246]),
    Row(ContextType::STAT, 0, 0x10, [28, 72, 180, 248]),
    Row(ContextType::SP_TQM, 0, 0x20, [29, 80, 184, 250]),
    Row(ContextType::FP_TQM, 0, 0x40, [30, 88, 188, 250]),
    Row(ContextType::FP_TQM, 1, 0x80, [31, 96, 192, 250]),
    Row(ContextType::FP_TQM, 2, 0x100, [32, 104, 196, 250]),
    Row(ContextType::FP_TQM, 3, 0x200, [33, 112, 200, 250]),
    Row(ContextType::FP_TQM, 4, 0x400, [34, 120, 204, 250]),
    Row(ContextType::FP_TQM, 5, 0x800, [35, 128, 208, 250]),
    Row(ContextType::FP_TQM, 6, 0x1000, [36, 136, 212, 250]),
    Row(ContextType::FP_TQM, 7, 0x2000, [37, 144, 216, 250]),
    Row(ContextType::MRAV, 0, 0x4000, [38, 152, 220, 252]),
    Row(ContextType::TIM, 0, 0x8000, [39, 160, 224, 254]),
    Row(ContextType::FP_TQM, 8, 0x1_0000, [256, 264, 260, 250]),
    Row(ContextType::FP_TQM, 9, 0x2_0000, [272, 280, 276, 250]),
    Row(ContextType::FP_TQM, 10, 0x4_0000, [288, 296, 292, 250]),
];

/// A kind as the message of version 1 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Kind.
    pub kind: ContextType,
    /// Instance.
    pub instance: u16,
    /// Page size and level.
    pub attribute: PageAttribute,
    /// Address of the page, or of the page directory.
    pub page_dir: u64,
    /// Number of entries; of regions and address handles that come apart, number of units.
    pub entries: u32,
    /// Bytes of an entry.
    pub entry_size: u16,
}

/// Flag of the message of version 1: regions and address handles come apart.
pub const MRAV_RESERVATION_SPLIT: u32 = 2;

impl FuncBackingStoreCfgInput {
    /// Adds an instance to the message; `false` if the message has no place for it.
    pub fn add(
        &mut self,
        plan: &ContextPlan,
        instance: u16,
        attribute: PageAttribute,
        page_dir: u64,
    ) -> bool {
        let Some(Row(_, _, enable, [attr, dir, entries, size])) =
            ROWS.iter().find(|Row(kind, of, ..)| (*kind, *of) == (plan.kind, instance))
        else {
            return false;
        };
        self.enables.set(self.enables.get() | enable);
        let [first, second, third, _] = plan.caps.split;
        let mut number = plan.entries;
        let half = |value: u32| le::U16::new(value as u16);
        match plan.kind {
            ContextType::QP => {
                self.qp_num_l2_entries = half(first);
                self.qp_num_qp1_entries = half(second);
                self.qp_num_fast_qpmd_entries = half(third);
            }
            ContextType::SRQ => self.srq_num_l2_entries = half(first),
            ContextType::CQ => self.cq_num_l2_entries = half(first),
            ContextType::VNIC => {
                self.vnic_num_vnic_entries = half(first);
                self.vnic_num_ring_table_entries = half(plan.entries.saturating_sub(first));
            }
            ContextType::MRAV if second != 0 => {
                self.flags.set(self.flags.get() | MRAV_RESERVATION_SPLIT);
                number = ((plan.entries - first) / second) << 16 | (first / second);
            }
            _ => {}
        }
        let bytes = self.as_mut_bytes();
        bytes[*attr] = attribute.into_bits();
        bytes[*dir..*dir + 8].copy_from_slice(&page_dir.to_le_bytes());
        if *entries != 0 {
            bytes[*entries..*entries + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[*size..*size + 2].copy_from_slice(&plan.caps.entry_size.to_le_bytes());
        true
    }

    /// What the message hands to the device.
    pub fn given(&self) -> impl Iterator<Item = Given> + '_ {
        let bytes = self.as_bytes();
        let word = move |at: usize, len: usize| {
            bytes[at..at + len].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let enables = self.enables.get();
        ROWS.iter().filter(move |Row(_, _, enable, _)| enables & enable != 0).map(
            move |Row(kind, instance, _, [attr, dir, entries, size])| Given {
                kind: *kind,
                instance: *instance,
                attribute: PageAttribute::from_bits(bytes[*attr]),
                page_dir: word(*dir, 8),
                entries: match *kind {
                    ContextType::VNIC => {
                        u32::from(self.vnic_num_vnic_entries.get())
                            + u32::from(self.vnic_num_ring_table_entries.get())
                    }
                    // In units that the device knows.
                    ContextType::MRAV if self.flags.get() & MRAV_RESERVATION_SPLIT != 0 => {
                        word(*entries, 2) as u32 + word(*entries + 2, 2) as u32
                    }
                    _ => word(*entries, 4) as u32,
                },
                entry_size: word(*size, 2) as u16,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand { qps: 64, srqs: 8, cqs: 128, regions: 100, ahs: 28 };

    fn v1() -> FuncBackingStoreQcapsOutput {
        let mut reply = FuncBackingStoreQcapsOutput::ZERO;
        (reply.qp_max_entries, reply.qp_entry_size) = (le::U32::new(1024), le::U16::new(256));
        (reply.qp_max_l2_entries, reply.qp_min_qp1_entries) = (le::U16::new(32), le::U16::new(2));
        (reply.srq_max_entries, reply.srq_entry_size) = (le::U32::new(64), le::U16::new(128));
        (reply.cq_max_entries, reply.cq_entry_size) = (le::U32::new(512), le::U16::new(128));
        reply.cq_max_l2_entries = le::U16::new(16);
        (reply.vnic_max_vnic_entries, reply.vnic_entry_size) = (le::U16::new(8), le::U16::new(64));
        (reply.stat_max_entries, reply.stat_entry_size) = (le::U32::new(16), le::U16::new(64));
        (reply.tqm_max_entries_per_ring, reply.tqm_entry_size) = (le::U32::new(4096), le::U16::new(32));
        (reply.tqm_min_entries_per_ring, reply.tqm_entries_multiple) = (le::U32::new(64), 32);
        (reply.mrav_max_entries, reply.mrav_entry_size) = (le::U32::new(1024), le::U16::new(64));
        (reply.tim_max_entries, reply.tim_entry_size) = (le::U32::new(4096), le::U16::new(16));
        (reply.ctx_init_mask, reply.ctx_kind_initializer, reply.cq_init_offset) = (le::U16::new(4), 0xa5, 3);
        reply.mrav_num_entries_units = le::U16::new(4);
        reply
    }

    #[test]
    fn the_plan_of_version_1_has_room_for_the_demand() {
        let caps = ContextCaps::from_v1(&v1(), 2).unwrap();
        let plans = ContextPlan::all(&caps, &DEMAND).unwrap();
        let entries: [u32; 9] = plans.map(|plan| plan.entries);
        // QP 32+2+64; SRQ 8; CQ 16+128; SP_TQM 8+32+2*66+64 in multiples of 32; FP_TQM 32+2*66 likewise.
        assert_eq!(entries, [98, 8, 144, 8, 16, 256, 192, 128, 98]);
        assert_eq!((plans[6].caps.instances, plans[0].bytes()), (2, 98 * 256));
        let mut cfg = FuncBackingStoreCfgInput::ZERO;
        let attribute = PageAttribute::new().with_level(1);
        for plan in &plans {
            for instance in 0..plan.caps.instances as u16 {
                assert!(cfg.add(plan, instance, attribute, 0x1122_3344_5566_7000));
            }
        }
        assert!(!cfg.add(&plans[0], 1, attribute, 0));
        assert_eq!((cfg.enables.get(), cfg.flags.get()), (0xc0ff, 2));
        assert_eq!(cfg.mrav_num_entries.get(), 25 << 16 | 7);
        assert_eq!(cfg.qpc_page_dir.get(), 0x1122_3344_5566_7000);
        assert_eq!((cfg.tqm_ring1_num_entries.get(), cfg.tim_num_entries.get()), (192, 98));
        assert_eq!(
            (cfg.cq_pg_size_cq_lvl, cfg.cq_num_l2_entries.get(), cfg.tim_entry_size.get()),
            (1, 16, 16)
        );
        let given: std::vec::Vec<_> = cfg.given().collect();
        assert_eq!((given.len(), given[2].entries, given[3].entries), (10, 144, 8));
    }

    #[test]
    fn entries_are_initialised_where_the_device_says() {
        let caps = ContextCaps::from_v1(&v1(), 2).unwrap();
        let plan = ContextPlan::all(&caps, &DEMAND).unwrap()[2];
        let mut memory = std::vec![0u8; plan.bytes() as usize];
        assert!(plan.initialise(&mut RingMemory::new(&mut memory)));
        assert_eq!(
            (memory[12], memory[128 + 12], memory.iter().filter(|b| **b != 0).count()),
            (0xa5, 0xa5, 144)
        );
        assert!(!plan.initialise(&mut RingMemory::new(&mut memory[..128])));
    }

    #[test]
    fn capabilities_that_cannot_be_are_refused() {
        let refused = |change: fn(&mut FuncBackingStoreQcapsOutput)| {
            let mut reply = v1();
            change(&mut reply);
            ContextCaps::from_v1(&reply, 2).unwrap_err().kind
        };
        assert_eq!(refused(|r| r.qp_entry_size = le::U16::ZERO), ContextType::QP);
        assert_eq!(refused(|r| r.qp_max_l2_entries = le::U16::new(0xffff)), ContextType::QP);
        assert_eq!(refused(|r| r.cq_init_offset = 0xff), ContextType::CQ);
        assert_eq!(refused(|r| r.tqm_fp_rings_count = 200), ContextType::FP_TQM);
        assert_eq!(refused(|r| r.tqm_min_entries_per_ring = le::U32::new(u32::MAX)), ContextType::SP_TQM);
        assert_eq!(refused(|r| r.tim_max_entries = le::U32::ZERO), ContextType::TIM);
    }

    fn v2(next: u16, has: u32) -> FuncBackingStoreQcapsV2Output {
        FuncBackingStoreQcapsV2Output {
            entry_size: le::U16::new(64),
            flags: le::U32::new(has),
            instance_bit_map: le::U32::new(0),
            max_num_entries: le::U32::new(4096),
            next_valid_type: le::U16::new(next),
            subtype_valid_cnt: 1,
            split_entry_0: le::U32::new(10),
            ..FuncBackingStoreQcapsV2Output::ZERO
        }
    }

    #[test]
    fn version_2_is_asked_kind_by_kind_and_its_end_is_certain() {
        let mut caps = ContextCaps::new();
        assert_eq!(caps.learn(ContextType(0), &v2(1, 2)), Ok(Some(ContextType(1))));
        assert_eq!(caps.learn(ContextType(1), &v2(0x1e, 0)), Ok(Some(ContextType(0x1e))));
        assert_eq!(caps.learn(ContextType(0x1e), &v2(0xffff, 2)), Ok(None));
        assert!(caps.learn(ContextType(1), &v2(1, 2)).is_err());
        assert_eq!(ContextPlan::all(&caps, &DEMAND).unwrap_err().kind, ContextType::SRQ);
        let plan =
            ContextPlan { kind: ContextType::QP, caps: *caps.of(ContextType::QP).unwrap(), entries: 70 };
        let message = plan.message(3, PageAttribute::new().with_level(2), 0x1000, true);
        let golden =
            [0, 0, 3, 0, 2, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 70, 0, 0, 0, 64, 0, 2, 1, 10, 0, 0, 0];
        assert_eq!(message.as_bytes()[16..44], golden);
    }
}
