//! Rings that the device writes events to: notification queues, and that of completions of commands.

use std::collections::BTreeMap;

use directverbs::bnxt_re::doorbell::{DbType, DbWord};
use directverbs::bnxt_re::hwrm::error::HwrmStatus;
use directverbs::bnxt_re::hwrm::ring::{RingAllocInput, RingFreeInput, ring_type};
use directverbs::bnxt_re::nq::ENTRY_BYTES;

use super::chip::VECTORS;
use super::function::BnxtFunction;
use super::list::List;
use crate::bnxt_re::Position;
use crate::device::{Memory, RingConfig};

/// Rings of all kinds by number.
#[derive(Debug, Default)]
pub(super) struct Rings {
    rings: BTreeMap<u16, Ring>,
    next: u16,
}

#[derive(Debug)]
struct Ring {
    kind: u8,
    /// Ring memory; none of Ethernet, whose rings are never filled.
    config: Option<RingConfig>,
    vector: u16,
    armed: bool,
    /// Entries written and not told to be consumed.
    waiting: u32,
    produced: Position,
    consumed: Position,
}

impl Rings {
    /// Notification queues there are.
    pub fn notification_queues(&self) -> usize {
        self.rings.values().filter(|ring| ring.kind == ring_type::NQ).count()
    }

    /// Whether `id` is a notification queue.
    pub fn is_nq(&self, id: u16) -> bool {
        self.rings.get(&id).is_some_and(|ring| ring.kind == ring_type::NQ)
    }

    fn free_id(&mut self) -> Option<u16> {
        (0..1024).find_map(|_| {
            let id = self.next;
            self.next = (self.next + 1) % 1024;
            (!self.rings.contains_key(&id)).then_some(id)
        })
    }
}

impl BnxtFunction {
    /// RING_ALLOC: the ring's number.
    pub(super) fn ring_alloc(&mut self, input: &RingAllocInput) -> Result<u16, HwrmStatus> {
        let (entries, vector) = (input.length.get(), input.logical_id.get());
        let mut config = None;
        if input.ring_type == ring_type::NQ {
            if self.state.rings.notification_queues() >= self.state.hwrm.reserved.num_msix.into() {
                return Err(HwrmStatus::RESOURCE_ALLOC_ERROR);
            }
            if !entries.is_power_of_two() || vector >= VECTORS {
                self.violation(format_args!("notification queue of {entries} entries, vector {vector}"));
                return Err(HwrmStatus::INVALID_PARAMS);
            }
            let (depth, shift) =
                (input.page_tbl_depth, if input.page_size == 0 { 12 } else { input.page_size });
            let list = List { root: input.page_tbl_addr.get(), level: depth, shift, ring: true };
            if shift != 12 {
                self.violation(format_args!("notification queue with pages of 2^{shift} bytes"));
                return Err(HwrmStatus::INVALID_PARAMS);
            }
            let ring = list.ring(self.bus(), entries, ENTRY_BYTES as u32, 0).map_err(|error| {
                self.violation(format_args!("notification queue: {error}"));
                HwrmStatus::INVALID_PARAMS
            })?;
            config = Some(ring);
        }
        let id = self.state.rings.free_id().ok_or(HwrmStatus::RESOURCE_ALLOC_ERROR)?;
        let ring = Ring {
            kind: input.ring_type,
            config,
            vector,
            armed: false,
            waiting: 0,
            produced: Position::default(),
            consumed: Position::default(),
        };
        self.state.rings.rings.insert(id, ring);
        Ok(id)
    }

    /// RING_FREE.
    pub(super) fn ring_free(&mut self, input: &RingFreeInput) -> Result<(), HwrmStatus> {
        let id = input.ring_id.get();
        if self.state.objects.uses_nq(id) || self.state.rcfw.uses(id) {
            self.violation(format_args!("ring {id} is freed while it is in use"));
            return Err(HwrmStatus::INVALID_PARAMS);
        }
        match self.state.rings.rings.get(&id) {
            Some(ring) if ring.kind == input.ring_type => {
                self.state.rings.rings.remove(&id);
                Ok(())
            }
            _ => {
                self.violation(format_args!("ring {id} of type {} is freed: no such ring", input.ring_type));
                Err(HwrmStatus::INVALID_PARAMS)
            }
        }
    }

    /// Writes an entry to ring `id`, whose phase `set` puts in; one with a `stale` phase is none.
    pub(super) fn ring_write(&mut self, id: u16, stale: bool, set: impl FnOnce(bool) -> [u8; ENTRY_BYTES]) {
        let Some(ring) = self.state.rings.rings.get_mut(&id) else { return };
        let Some(config) = &ring.config else { return };
        if ring.waiting == config.entries {
            return self.violation(format_args!("ring {id} overruns: its consumer is not told"));
        }
        let entry = set(ring.produced.epoch == stale);
        let at = u64::from(ring.produced.index) * ENTRY_BYTES as u64;
        let written = locate(&config.memory, at).is_some_and(|at| self.bus.0.publish(at, &entry).is_ok());
        if stale || !written {
            return;
        }
        ring.waiting += 1;
        ring.produced.step(1, config.entries);
        if std::mem::take(&mut ring.armed) {
            self.bus.0.interrupt(ring.vector);
        }
    }

    /// A doorbell of a ring: how far it was read, and whether the next entry shall interrupt.
    pub(super) fn ring_doorbell(&mut self, word: DbWord) {
        let id = word.xid().get();
        let ring = u16::try_from(id).ok().and_then(|id| self.state.rings.rings.get_mut(&id));
        let Some(ring) = ring else {
            return self.violation(format_args!("NQ doorbell, no ring {id}"));
        };
        let Some(entries) = ring.config.as_ref().map(|config| config.entries) else { return };
        let to = Position { index: word.index().get(), epoch: word.epoch().0 };
        match ring.consumed.advance(to, entries, ring.waiting) {
            Ok(read) => ring.waiting -= read,
            Err(error) => return self.violation(format_args!("NQ doorbell of ring {id}: {error}")),
        }
        ring.armed = word.db_type() == DbType::NQ_ARM;
        if ring.armed && ring.waiting != 0 {
            ring.armed = false;
            self.bus.0.interrupt(ring.vector);
        }
    }
}

fn locate(memory: &Memory, at: u64) -> Option<u64> {
    memory.locate(at, ENTRY_BYTES).ok().map(|(addr, _)| addr)
}
