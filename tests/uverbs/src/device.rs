//! A device: its NIC, and the numbers that its driver gives out.

use std::collections::BTreeSet;
use std::sync::Arc;

use directverbs_softnic::device::{DeviceError, NicConfig};
use directverbs_softnic::fabric::{Fabric, NicHandle};
use directverbs_softnic::ionic::PIPELINE_SHIFT;
use directverbs_softnic::open::NicKind;

use crate::Errno;
use crate::chip::Chip;
use crate::pages::PAGE;
use crate::profile::{Family, Profile};
use crate::user::PinnedMemory;

/// Doorbell pages that a bnxt_re NIC has for processes.
const DPIS: u32 = 512;
/// Push pages of a bnxt_re NIC.
const PUSH_PAGES: u32 = 16;
/// Numbers of queues on each pipeline of an ionic NIC.
const PER_PIPELINE: u32 = 1 << PIPELINE_SHIFT;
/// Queue pair numbers 0 and 1 are those of management.
const FIRST_QP: u32 = 2;

/// Limits of a device, as queries tell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs.
    pub max_qp: u32,
    /// Requests of a queue.
    pub max_qp_wr: u32,
    /// SGEs of a request.
    pub max_sge: u32,
    /// Inline bytes of a request.
    pub max_inline: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Shared receive queues; 0 if there are none.
    pub max_srq: u32,
    /// Requests of a shared receive queue.
    pub max_srq_wr: u32,
    /// SGEs of a request of a shared receive queue.
    pub max_srq_sge: u32,
    /// READs and atomics outstanding.
    pub max_rd_atomic: u32,
    /// Memory windows; 0 if processes get none.
    pub max_mw: u32,
    /// Largest memory region.
    pub max_mr_size: u64,
}

impl Limits {
    /// Those of a NIC. bnxt_re in variable mode takes more SGEs.
    pub const fn of(profile: &Profile) -> Self {
        use directverbs_softnic::open::WqeMode;
        match profile.family() {
            Family::BnxtRe => {
                let max_sge = match profile.wqe_mode {
                    WqeMode::Static => 6,
                    WqeMode::Variable => 13,
                };
                Self {
                    max_qp: 65536,
                    max_qp_wr: 0xff7f,
                    max_sge,
                    max_inline: max_sge * 16,
                    max_cq: 65536,
                    max_cqe: 0x3_ffff,
                    max_srq: 1024,
                    max_srq_wr: 0xffff,
                    max_srq_sge: 6,
                    max_rd_atomic: 126,
                    max_mw: 0,
                    max_mr_size: 1 << 39,
                }
            }
            Family::Ionic => Self {
                max_qp: PER_PIPELINE,
                max_qp_wr: 0xffff,
                max_sge: 60,
                max_inline: 960,
                max_cq: PER_PIPELINE,
                max_cqe: 0xffff,
                max_srq: 0,
                max_srq_wr: 0,
                max_srq_sge: 0,
                max_rd_atomic: 16,
                max_mw: 1 << 16,
                max_mr_size: 1 << 47,
            },
        }
    }
}

/// Numbers that are given out, lowest first, and taken back.
#[derive(Debug, Default)]
pub struct Numbers(BTreeSet<u32>);

impl Numbers {
    /// The lowest free one from `first` to before `end`.
    pub fn take(&mut self, first: u32, end: u32) -> Option<u32> {
        let free = (first..end).find(|number| !self.0.contains(number))?;
        self.0.insert(free);
        Some(free)
    }

    /// How many are given out.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes one back.
    pub fn give(&mut self, number: u32) {
        self.0.remove(&number);
    }
}

/// Controller memory, given out in pages, first fit.
#[derive(Debug, Default)]
pub struct Space(Vec<(u64, u64)>);

impl Space {
    /// Takes `bytes` of a memory of `len`.
    pub fn take(&mut self, len: u64, bytes: u64) -> Option<u64> {
        let bytes = bytes.next_multiple_of(PAGE as u64);
        let ends = [0].into_iter().chain(self.0.iter().map(|(_, end)| *end));
        let starts = self.0.iter().map(|(start, _)| *start).chain([len]);
        let mut gaps = ends.zip(starts).enumerate();
        let (at, (start, _)) = gaps.find(|(_, (from, to))| to.saturating_sub(*from) >= bytes)?;
        self.0.insert(at, (start, start + bytes));
        Some(start)
    }

    /// Parts that are in use.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives back what was taken at `start`.
    pub fn give(&mut self, start: u64) {
        self.0.retain(|(at, _)| *at != start);
    }
}

/// A device.
#[derive(Debug)]
pub struct Device {
    /// What it is.
    pub profile: Profile,
    /// Its limits.
    pub limits: Limits,
    /// Number of its character device.
    pub number: usize,
    /// Its NIC.
    pub nic: NicHandle<Chip>,
    /// Memory of the process that it reaches.
    pub memory: Arc<PinnedMemory>,
    /// bnxt_re: doorbell pages in use.
    pub dpis: Numbers,
    /// bnxt_re: push pages in use.
    pub push_pages: Numbers,
    /// ionic: controller memory in use.
    pub space: Space,
    /// ionic: numbers of queue pairs in use, by pipeline.
    pub qps: [Numbers; 2],
    /// ionic: numbers of completion queues in use, the same on all pipelines.
    pub cqs: Numbers,
    /// ionic: pipeline of the next queue pair that may be on any.
    pub turn: u8,
}

impl Device {
    /// Plugs a NIC into `fabric`.
    pub fn attach(fabric: &Fabric, profile: Profile, number: usize, memory: Arc<PinnedMemory>) -> Self {
        let device_memory = match profile.family() {
            Family::BnxtRe => PUSH_PAGES as usize * PAGE,
            Family::Ionic => profile.device_memory as usize,
        };
        let config = NicConfig {
            mac: profile.mac(),
            gids: profile.gids().to_vec(),
            mtu: profile.mtu,
            device_memory,
            all_memory_key: None,
        };
        let nic = fabric.attach(Chip::new(&profile), config, memory.clone());
        Self {
            limits: Limits::of(&profile),
            profile,
            number,
            nic,
            memory,
            dpis: Numbers::default(),
            push_pages: Numbers::default(),
            space: Space::default(),
            qps: Default::default(),
            cqs: Numbers::default(),
            turn: 0,
        }
    }

    /// Name of the RDMA device.
    pub fn name(&self) -> String {
        match self.profile.family() {
            Family::BnxtRe => format!("bnxt_re{}", self.number),
            Family::Ionic => format!("ionic_{}", self.number),
        }
    }

    /// Name of the character device.
    pub fn uverbs(&self) -> String {
        format!("uverbs{}", self.number)
    }

    /// Name of the network device.
    pub fn netdev(&self) -> String {
        format!("fake{}", self.number)
    }

    /// Index of the network device. No real one has it.
    pub const fn ifindex(&self) -> u32 {
        0x4000_0000 + self.number as u32
    }

    /// Node GUID: the EUI-64 of the Ethernet address.
    pub fn guid(&self) -> [u8; 8] {
        let [a, b, c, d, e, f] = self.profile.mac().0;
        [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
    }

    /// bnxt_re: a doorbell page for a process.
    pub fn take_dpi(&mut self) -> Result<u32, Errno> {
        self.dpis.take(1, DPIS).ok_or(Errno::NOMEM)
    }

    /// bnxt_re: a push page. The first one begins the NIC's memory.
    pub fn take_push_page(&mut self) -> Result<u32, Errno> {
        self.push_pages.take(0, PUSH_PAGES).ok_or(Errno::NOMEM)
    }

    /// ionic: a number for a queue pair on pipeline `udma`.
    pub fn take_qp(&mut self, udma: u8) -> Result<u32, Errno> {
        let numbers = self.qps.get_mut(usize::from(udma)).ok_or(Errno::INVAL)?;
        let nth = numbers.take(FIRST_QP, PER_PIPELINE).ok_or(Errno::NOMEM)?;
        Ok(u32::from(udma) << PIPELINE_SHIFT | nth)
    }

    /// ionic: takes the number of a queue pair back.
    pub fn give_qp(&mut self, id: u32) {
        let (udma, nth) = (id >> PIPELINE_SHIFT, id & (PER_PIPELINE - 1));
        if let Some(numbers) = self.qps.get_mut(udma as usize) {
            numbers.give(nth);
        }
    }

    /// ionic: a number for the rings of a completion queue.
    pub fn take_cq(&mut self) -> Result<u32, Errno> {
        self.cqs.take(0, PER_PIPELINE).ok_or(Errno::NOMEM)
    }

    /// Whether its WQEs are of version 1.
    pub const fn is_ionic_v1(&self) -> bool {
        matches!(self.profile.nic, NicKind::IonicV1)
    }
}

/// What the driver answers when the NIC refuses.
pub fn refused(error: DeviceError) -> Errno {
    match error {
        DeviceError::InUse { .. } => Errno::BUSY,
        DeviceError::Exists { .. } => Errno::NOMEM,
        DeviceError::NoSuch { .. } | DeviceError::Invalid(_) | DeviceError::State(_) => Errno::INVAL,
        DeviceError::Bus(_) => Errno::FAULT,
        _ => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_space_are_given_again() {
        let mut numbers = Numbers::default();
        assert_eq!([numbers.take(1, 3), numbers.take(1, 3), numbers.take(1, 3)], [Some(1), Some(2), None]);
        numbers.give(1);
        assert_eq!(numbers.take(1, 3), Some(1));
        let mut space = Space::default();
        assert_eq!(
            (space.take(8192, 1), space.take(8192, 4096), space.take(8192, 1)),
            (Some(0), Some(4096), None)
        );
        space.give(0);
        assert_eq!((space.take(8192, 4097), space.take(8192, 4096)), (None, Some(0)));
    }
}
