//! Statistics contexts: counters that the device writes to host memory from time to time.

use std::collections::BTreeMap;

use directverbs::bnxt_re::hwrm::error::HwrmStatus;
use directverbs::bnxt_re::hwrm::stat::{CtxHwStats, STAT_CTX_ROCE, StatCtxAllocInput, StatCtxFreeInput};
use zerocopy::{IntoBytes, little_endian as le};

use super::chip::MAX_STAT_CTX;
use super::function::BnxtFunction;

/// Flag of a context: the host's buffer is written twice.
const DUPLICATE: u8 = 2;

/// Statistics contexts by number.
#[derive(Debug, Default)]
pub(super) struct Statistics(BTreeMap<u32, StatContext>);

#[derive(Clone, Copy, Debug)]
struct StatContext {
    addr: u64,
    len: u16,
    /// 0: it is never written.
    period_ns: u64,
    due_ns: u64,
    roce: bool,
}

impl Statistics {
    /// Whether there is such a context.
    pub fn has(&self, id: u32) -> bool {
        self.0.contains_key(&id)
    }
}

impl BnxtFunction {
    /// Creates a statistics context.
    pub(super) fn stat_ctx_alloc(&mut self, input: &StatCtxAllocInput) -> Result<u32, HwrmStatus> {
        let reserved = usize::from(self.state.hwrm.reserved.num_stat_ctxs);
        let contexts = &self.state.hwrm.stat_contexts;
        if contexts.0.len() >= reserved {
            return Err(HwrmStatus::RESOURCE_ALLOC_ERROR);
        }
        if input.stat_ctx_flags & !(STAT_CTX_ROCE | DUPLICATE) != 0 {
            return Err(HwrmStatus::INVALID_FLAGS);
        }
        let id = (0..u32::from(MAX_STAT_CTX)).find(|id| !contexts.has(*id));
        let id = id.ok_or(HwrmStatus::RESOURCE_ALLOC_ERROR)?;
        let (addr, len) = (input.stats_dma_addr.get(), input.stats_dma_length.get());
        let period_ns = u64::from(input.update_period_ms.get()) * 1_000_000;
        if period_ns != 0 && self.bus().read(addr, &mut vec![0; len.into()]).is_err() {
            self.violation(format_args!("statistics at {addr:#x}, {len} bytes"));
            return Err(HwrmStatus::INVALID_PARAMS);
        }
        let due_ns = self.nic.lock().hardware().now_ns() + period_ns;
        let roce = input.stat_ctx_flags & STAT_CTX_ROCE != 0;
        self.state.hwrm.stat_contexts.0.insert(id, StatContext { addr, len, period_ns, due_ns, roce });
        Ok(id)
    }

    /// Destroys a statistics context.
    pub(super) fn stat_ctx_free(&mut self, input: &StatCtxFreeInput) -> Result<u32, HwrmStatus> {
        let id = input.stat_ctx_id.get();
        if self.state.hwrm.stat_contexts.0.remove(&id).is_some() {
            return Ok(id);
        }
        self.violation(format_args!("statistics context {id} is freed: there is none"));
        Err(HwrmStatus::INVALID_PARAMS)
    }

    /// Writes the counters of contexts whose time has come; `true` if there were any.
    pub(super) fn write_statistics(&mut self) -> bool {
        let (now, counters) = {
            let mut nic = self.nic.lock();
            (nic.hardware().now_ns(), nic.hardware().counters())
        };
        let n = le::U64::new;
        let roce = CtxHwStats {
            rx_ucast_pkts: n(counters.received),
            rx_ucast_bytes: n(counters.received_bytes),
            tx_ucast_pkts: n(counters.sent),
            tx_ucast_bytes: n(counters.sent_bytes),
            ..CtxHwStats::ZERO
        };
        let mut any = false;
        for context in self.state.hwrm.stat_contexts.0.values_mut() {
            if context.period_ns == 0 || now < context.due_ns {
                continue;
            }
            context.due_ns = now + context.period_ns;
            // No frame of Ethernet ever passes.
            let stats = if context.roce { roce } else { CtxHwStats::ZERO };
            let len = stats.as_bytes().len().min(context.len.into());
            any |= self.bus.0.write(context.addr, &stats.as_bytes()[..len]).is_ok();
        }
        any
    }
}
