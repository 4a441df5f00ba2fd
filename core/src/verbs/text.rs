use core::fmt;

/// A text that is part of an error, in one byte: errors are passed on at every step, so their size is that of much code.
///
/// The texts are those of a table. `text!` makes one of a literal that is in it; with another one it does not compile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text(u8);

impl Text {
    /// The text of the table that reads like this. Only for constants, as [`text!`](crate::text) makes them.
    ///
    /// # Panics
    /// No text of the table reads like this: in a constant, the program does not compile.
    pub const fn of(text: &str) -> Self {
        let mut index = 0;
        while index < TEXTS.len() {
            if is_same(TEXTS[index].as_bytes(), text.as_bytes()) {
                return Self(index as u8);
            }
            index += 1;
        }
        panic!("no such text");
    }

    /// The text.
    pub fn as_str(self) -> &'static str {
        TEXTS.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

/// The [`Text`](crate::verbs::Text) of a literal.
#[macro_export]
macro_rules! text {
    ($text:literal) => {
        const { $crate::verbs::Text::of($text) }
    };
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Sorted.
const TEXTS: &[&str] = &[
    "CQEs",
    "CQEs of this size",
    "Ethernet address",
    "Ethernet type",
    "GID",
    "GID table",
    "IP protocol",
    "IP version",
    "IP version and header length",
    "SGE length",
    "UDP port",
    "WQE bytes",
    "WQE index",
    "WQEs of variable size on P5",
    "a command ring has a power of two of slots, at most 8192",
    "a completion queue has at least one entry",
    "a completion queue has at least one ring",
    "a completion queue has no ring on the queue pair's pipeline",
    "a completion queue needs entries",
    "a device without requests, SGEs, CQEs or GIDs",
    "a page list needs bytes",
    "a queue needs a ring",
    "a queue pair has a receive queue or shares one",
    "a queue pair needs a handle other than 0",
    "a receive queue needs a ring",
    "a ring needs entries",
    "a ring of 4 GiB",
    "a ring of events has a power of two of entries",
    "a ring on a pipeline that the device does not have",
    "a send queue needs slots and a retransmit table",
    "a shared receive queue needs requests",
    "a table's length is a power of two",
    "access",
    "address handle",
    "admin CQ",
    "admin CQ id",
    "admin commands",
    "admin completions",
    "admin queue",
    "admin queue id",
    "admin queue number",
    "admin_opcodes",
    "aq_qtype",
    "arm_any",
    "arm_solicited",
    "block of context memory",
    "bytes of the receive queue",
    "bytes of the send queue",
    "change of the window's key",
    "collapsed CQE",
    "collapsed completion queue",
    "command register",
    "command ring",
    "completion queue",
    "completion queue entries",
    "completion ring",
    "completion ring 0",
    "completion ring 1",
    "cons",
    "context memory that has no place in the request",
    "context memory that is longer than its entries",
    "counters longer than their memory",
    "cq_qtype",
    "cq_qtype base",
    "cqe",
    "dest_qp",
    "device",
    "doorbell register",
    "end of controller memory",
    "entries of a shared receive queue",
    "entries of another length",
    "entries without bytes, or with too many",
    "entry of slots",
    "eq_qtype",
    "event",
    "event queue",
    "express doorbells that the plan has no room for",
    "fixed ring sizes need the MSN table",
    "fixed ring sizes need variable WQE mode",
    "headers of the path",
    "initialised behind its end",
    "ledger of objects",
    "length",
    "limit",
    "max_cqe",
    "max_dest_rd_atomic",
    "max_inline_data",
    "max_rd_atomic",
    "max_recv_sge",
    "max_recv_wr",
    "max_send_sge",
    "max_send_wr",
    "max_srq_sge",
    "max_srq_wr",
    "max_stride",
    "memory region",
    "memory window",
    "messages outstanding",
    "min_rnr_timer",
    "more entries set apart than there are",
    "more messages outstanding than requests",
    "msn_cons",
    "msn_prod",
    "mtu",
    "nahs_per_lif",
    "ndbpgs_per_lif",
    "new completion queue",
    "nintrs",
    "nlifs",
    "nmrs_per_lif",
    "no",
    "no Ethernet address",
    "no READs",
    "no RoCE",
    "no doorbell page",
    "no entries, or fewer than the least",
    "no express doorbells for WQEs of this size",
    "no express doorbells for this kind of queue",
    "no instances, or too many",
    "not told",
    "notify queue",
    "npts_per_lif",
    "number of the admin queue",
    "object",
    "old completion queue",
    "page",
    "page list",
    "page_shift",
    "page_shift, less 12,",
    "page_size_cap",
    "pages",
    "pages have 2^12 to 2^30 bytes",
    "pages of a list",
    "pages of this size",
    "path",
    "place of a page list",
    "places of controller memory",
    "prod",
    "protection domain",
    "push buffer",
    "push page",
    "qkey",
    "qp_opcodes",
    "queue pair",
    "queue pair number",
    "receive queue",
    "receive queue slots",
    "receive records",
    "receive ring",
    "regions of controller memory",
    "requests longer than a page",
    "retransmit tables that are not the host's",
    "retry_count",
    "ring of entries",
    "ring of slots",
    "rings do not have pages of this size",
    "rnr_retry",
    "rq_psn",
    "rq_qtype",
    "saved state does not fit this completion queue",
    "saved state does not fit this receive queue",
    "saved state does not fit this send queue",
    "saved state does not fit this shared receive queue",
    "send queue",
    "send queue slots",
    "send records",
    "send ring",
    "shared receive queue",
    "shared receive queue entries",
    "shared receive records",
    "slot index",
    "sq_npsn",
    "sq_npsn is a power of two",
    "sq_psn",
    "sq_qtype",
    "sq_qtype base",
    "sq_slots",
    "state of a queue pair",
    "statistics",
    "statistics contexts",
    "table",
    "the completion queue has that size already",
    "the completion queue is being resized already",
    "the device did not grant the controller memory required",
    "the device does not have the command",
    "the device granted controller memory that was not asked for",
    "the device has no push",
    "the device has no raw packet queue pairs",
    "the device has no shared receive queues",
    "the device has no such queue pairs",
    "the device has one or two pipelines",
    "the next kind is not a later one",
    "the protection domain allows none of the pipelines in use",
    "the retransmit table begins right behind the slots",
    "the ring memory has a queue on it already",
    "there is not the controller memory required",
    "timeout",
    "too few event rings or statistics contexts",
    "two completion rings with one number",
    "two rings with one number",
    "udma_shift",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_there_once_and_reads_like_itself() {
        assert!(TEXTS.len() <= usize::from(u8::MAX));
        assert!(TEXTS.is_sorted_by(|a, b| a < b));
        assert!(TEXTS.iter().all(|text| Text::of(text) == *text));
    }
}
