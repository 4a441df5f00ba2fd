//! The Ethernet part of the LIF: transmit and receive queues, filters, and what is counted. It offers what a driver must have
//! to open an interface, and no more: frames are sent as they are, and received frames are neither spread nor checked.

use std::collections::BTreeMap;

use directverbs::ionic::devcmd::{
    ETH_COMP_BYTES, ETH_DESC_BYTES, EthFeatures, LifStats, QInitCmd, QInitFlags, QOperation,
    QueueKind as Kind, RxMatch, RxMode, RxqComp, RxqDesc, SG_ELEMENTS, SG_LIST_BYTES, SgElem, Status, TxqCmd,
    TxqComp, TxqDesc, TxqOpcode,
};
use directverbs::ionic::doorbell::DoorbellWord;
use directverbs::verbs::Mac;
use zerocopy::{FromZeros, IntoBytes};

use super::function::IonicFunction;
use super::identity::MAX_FRAME;
use super::refusal::Refusal;
use super::{QueueKind, Wrong};
use crate::roce::Counters;

/// Transmit queues, and receive queues.
pub(super) const ETH_QUEUES: u32 = 16;
/// Doorbell registers of transmit and receive queues.
pub(super) const TXQ_QTYPE: u8 = 0;
pub(super) const RXQ_QTYPE: u8 = 7;
/// Number in doorbells of the first queue of each kind.
const FIRST_ID: u32 = 0x40;
/// What is granted of the Ethernet part's features.
pub(super) const FEATURES: EthFeatures = EthFeatures::TX_SG.union(EthFeatures::RX_SG);
/// Shortest frame on the wire, without its checksum.
const SHORTEST: usize = 60;
const HEADER: usize = 14;

/// A queue.
#[derive(Debug)]
struct Queue {
    base: u64,
    cq_base: u64,
    sg_base: Option<u64>,
    mask: u16,
    page: u32,
    intr: Option<u16>,
    enabled: bool,
    /// Descriptors before it are told of.
    told: u16,
    /// Next descriptor.
    next: u16,
    /// Completions written.
    written: u64,
}

/// What a receive filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filter {
    id: u32,
    mac: Option<Mac>,
    vlan: Option<u16>,
}

/// Frames and bytes of one kind of address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    bytes: u64,
    packets: u64,
}

impl Count {
    fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// What is counted: unicast, multicast and broadcast each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    rx: [Count; 3],
    rx_drop: [Count; 3],
    tx: [Count; 3],
    tx_drop: [Count; 3],
    rx_dma_error: u64,
    rx_queue_disabled: u64,
    rx_queue_empty: u64,
    rx_desc_data_error: u64,
    tx_dma_error: u64,
    tx_queue_disabled: u64,
    tx_desc_data_error: u64,
}

/// The Ethernet part.
#[derive(Debug, Default)]
pub(super) struct Ethernet {
    /// Transmit and receive queues, by kind and index.
    queues: BTreeMap<(u8, u32), Queue>,
    /// Which frames are taken.
    pub mode: RxMode,
    filters: Vec<Filter>,
    last_filter: u32,
    counts: Counts,
    /// What had been counted when the host had the counters reset.
    since: (Counts, Counters),
    /// What the host was told last.
    told: (Counts, Counters),
}

fn class(frame: &[u8]) -> usize {
    match frame.first_chunk::<6>() {
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => 2,
        Some([first, ..]) if first & 1 != 0 => 1,
        _ => 0,
    }
}

/// Kind of a frame, as a completion tells it.
fn packet_type(frame: &[u8]) -> u8 {
    let byte = |at: usize| frame.get(at).copied();
    match (byte(12), byte(13)) {
        (Some(8), Some(0)) => match byte(23) {
            Some(6) => 0x03,
            Some(17) => 0x05,
            _ => 0x01,
        },
        (Some(0x86), Some(0xdd)) => match byte(20) {
            Some(6) => 0x18,
            Some(17) => 0x28,
            _ => 0x08,
        },
        _ => 0,
    }
}

impl Ethernet {
    fn takes(&self, frame: &[u8]) -> bool {
        let Some(to) = frame.first_chunk::<6>().map(|mac| Mac(*mac)) else { return false };
        let known = self.filters.iter().any(|filter| filter.mac == Some(to));
        self.mode.contains(RxMode::PROMISCUOUS)
            || match class(frame) {
                0 => self.mode.contains(RxMode::UNICAST) && known,
                1 => {
                    self.mode.contains(RxMode::ALL_MULTICAST)
                        || self.mode.contains(RxMode::MULTICAST) && known
                }
                _ => self.mode.contains(RxMode::BROADCAST),
            }
    }

    /// Adds a filter.
    pub fn add_filter(&mut self, matches: RxMatch, value: &[u8]) -> Result<u32, Refusal> {
        let vlan = value.first_chunk().map(|vlan| u16::from_le_bytes(*vlan));
        let mac = |at: usize| value.get(at..).and_then(<[u8]>::first_chunk).map(|mac| Mac(*mac));
        let (mac, vlan) = match matches {
            RxMatch::VLAN => (None, vlan),
            RxMatch::MAC => (mac(0), None),
            RxMatch::MAC_VLAN => (mac(2), vlan),
            other => return Err(Refusal::blame(Status::EINVAL, "filter", other.0.into(), 2)),
        };
        if self.filters.iter().any(|known| (known.mac, known.vlan) == (mac, vlan)) {
            return Err(Refusal::fate(Status::EEXIST));
        }
        self.last_filter += 1;
        self.filters.push(Filter { id: self.last_filter, mac, vlan });
        Ok(self.last_filter)
    }

    /// Removes a filter.
    pub fn delete_filter(&mut self, id: u32) -> Result<(), Refusal> {
        let at = self.filters.iter().position(|filter| filter.id == id);
        let at = at.ok_or(Refusal::blame(Status::ENOENT, "filter", id.into(), 0))?;
        self.filters.remove(at);
        Ok(())
    }

    /// Creates a queue, and gives its number and register in doorbells.
    pub fn create(&mut self, cmd: &QInitCmd) -> Result<(u32, u8), Refusal> {
        let (kind, index) = (Kind(cmd.r#type), cmd.index.get());
        Wrong::if_over("queue", index.into(), (ETH_QUEUES - 1).into())?;
        let flags = QInitFlags::from_bits(cmd.flags.get());
        let queue = Queue {
            base: cmd.ring_base.get(),
            cq_base: cmd.cq_ring_base.get(),
            sg_base: flags.sg().then_some(cmd.sg_ring_base.get()),
            mask: ((1u32 << cmd.ring_size) - 1) as u16,
            page: cmd.pid.get().into(),
            intr: flags.irq().then_some(cmd.intr_index.get()),
            enabled: flags.ena(),
            told: 0,
            next: 0,
            written: 0,
        };
        if self.queues.contains_key(&(kind.0, index)) {
            return Err(Refusal::blame(Status::EEXIST, "queue", index.into(), 0));
        }
        self.queues.insert((kind.0, index), queue);
        Ok((FIRST_ID + index, if kind == Kind::TXQ { TXQ_QTYPE } else { RXQ_QTYPE }))
    }

    /// Whether there is a receive queue.
    pub fn receives(&self) -> bool {
        self.queues.keys().any(|(kind, _)| *kind == Kind::RXQ.0)
    }

    /// Starts or stops a queue.
    pub fn control(&mut self, kind: Kind, index: u32, oper: QOperation) -> Result<(), Refusal> {
        let no_such = Refusal::blame(Status::EQID, "queue", index.into(), 0);
        let queue = self.queues.get_mut(&(kind.0, index)).ok_or(no_such)?;
        queue.enabled = match oper {
            QOperation::ENABLE => true,
            QOperation::DISABLE => false,
            other => return Err(Refusal::blame(Status::EINVAL, "operation on a queue", other.0.into(), 1)),
        };
        Ok(())
    }

    /// Starts counting from zero.
    pub fn reset_counters(&mut self, roce: Counters) {
        self.since = (self.counts, roce);
    }

    /// What is counted, if that has changed since the last call.
    pub fn news(&mut self, roce: Counters) -> Option<LifStats> {
        let now = (self.counts, roce);
        (std::mem::replace(&mut self.told, now) != now).then(|| self.stats(&roce))
    }

    /// What is counted.
    pub fn stats(&self, roce: &Counters) -> LifStats {
        let (c, s) = (&self.counts, &self.since.0);
        let (r, z) = (roce, &self.since.1);
        // A reset of the RDMA part starts its counters anew.
        let roce = |now: u64, then: u64| now.saturating_sub(then).into();
        let bytes = |now: &[Count; 3], then: &[Count; 3], i: usize| (now[i].bytes - then[i].bytes).into();
        let packets =
            |now: &[Count; 3], then: &[Count; 3], i: usize| (now[i].packets - then[i].packets).into();
        LifStats {
            rx_ucast_bytes: bytes(&c.rx, &s.rx, 0),
            rx_ucast_packets: packets(&c.rx, &s.rx, 0),
            rx_mcast_bytes: bytes(&c.rx, &s.rx, 1),
            rx_mcast_packets: packets(&c.rx, &s.rx, 1),
            rx_bcast_bytes: bytes(&c.rx, &s.rx, 2),
            rx_bcast_packets: packets(&c.rx, &s.rx, 2),
            rx_ucast_drop_bytes: bytes(&c.rx_drop, &s.rx_drop, 0),
            rx_ucast_drop_packets: packets(&c.rx_drop, &s.rx_drop, 0),
            rx_mcast_drop_bytes: bytes(&c.rx_drop, &s.rx_drop, 1),
            rx_mcast_drop_packets: packets(&c.rx_drop, &s.rx_drop, 1),
            rx_bcast_drop_bytes: bytes(&c.rx_drop, &s.rx_drop, 2),
            rx_bcast_drop_packets: packets(&c.rx_drop, &s.rx_drop, 2),
            rx_dma_error: (c.rx_dma_error - s.rx_dma_error).into(),
            tx_ucast_bytes: bytes(&c.tx, &s.tx, 0),
            tx_ucast_packets: packets(&c.tx, &s.tx, 0),
            tx_mcast_bytes: bytes(&c.tx, &s.tx, 1),
            tx_mcast_packets: packets(&c.tx, &s.tx, 1),
            tx_bcast_bytes: bytes(&c.tx, &s.tx, 2),
            tx_bcast_packets: packets(&c.tx, &s.tx, 2),
            tx_ucast_drop_bytes: bytes(&c.tx_drop, &s.tx_drop, 0),
            tx_ucast_drop_packets: packets(&c.tx_drop, &s.tx_drop, 0),
            tx_mcast_drop_bytes: bytes(&c.tx_drop, &s.tx_drop, 1),
            tx_mcast_drop_packets: packets(&c.tx_drop, &s.tx_drop, 1),
            tx_bcast_drop_bytes: bytes(&c.tx_drop, &s.tx_drop, 2),
            tx_bcast_drop_packets: packets(&c.tx_drop, &s.tx_drop, 2),
            tx_dma_error: (c.tx_dma_error - s.tx_dma_error).into(),
            rx_queue_disabled: (c.rx_queue_disabled - s.rx_queue_disabled).into(),
            rx_queue_empty: (c.rx_queue_empty - s.rx_queue_empty).into(),
            rx_desc_data_error: (c.rx_desc_data_error - s.rx_desc_data_error).into(),
            tx_queue_disabled: (c.tx_queue_disabled - s.tx_queue_disabled).into(),
            tx_desc_data_error: (c.tx_desc_data_error - s.tx_desc_data_error).into(),
            tx_rdma_ucast_bytes: roce(r.sent_bytes, z.sent_bytes),
            tx_rdma_ucast_packets: roce(r.sent, z.sent),
            rx_rdma_ucast_bytes: roce(r.received_bytes, z.received_bytes),
            rx_rdma_ucast_packets: roce(r.received, z.received),
            rdma_req_rx_invalid_packets: roce(r.malformed + r.bad_icrc, z.malformed + z.bad_icrc),
            rdma_req_rx_implied_nak_seq_err: roce(r.rewinds, z.rewinds),
            rdma_resp_rx_dup_requests: roce(r.duplicates, z.duplicates),
            rdma_resp_rx_out_of_buffer: roce(r.no_recv, z.no_recv),
            rdma_resp_rx_out_of_seq_pkts: roce(r.sequence_naks, z.sequence_naks),
            rdma_resp_tx_rnr_retry_err: roce(r.rnr_naks, z.rnr_naks),
            ..LifStats::ZERO
        }
    }
}

impl IonicFunction {
    /// The host rings a transmit or receive queue.
    pub(super) fn eth_doorbell(&mut self, kind: Kind, page: u32, word: DoorbellWord) {
        let plain = DoorbellWord::new().with_index(word.index()).with_qid(word.qid());
        let index = word.qid().wrapping_sub(FIRST_ID);
        let checked = match self.state.ethernet.queues.get(&(kind.0, index)) {
            None => {
                Err(Wrong { what: "Ethernet queue number", got: word.qid().into(), want: FIRST_ID.into() })
            }
            Some(queue) => Wrong::unless_equal("doorbell", word.into_bits(), plain.into_bits())
                .and(Wrong::unless_equal("doorbell page", page.into(), queue.page.into()))
                .and(Wrong::if_over("doorbell index", word.index().into(), queue.mask.into())),
        };
        if let Err(wrong) = checked {
            return self.blame(QueueKind::Ethernet, word.qid(), word.index(), wrong);
        }
        if let Some(queue) = self.state.ethernet.queues.get_mut(&(kind.0, index)) {
            queue.told = word.index();
        }
        if kind == Kind::TXQ {
            self.transmit(index);
        }
    }

    /// Takes the descriptor that is next, if the queue works.
    fn take(&mut self, kind: Kind, index: u32) -> Option<(u16, [u8; ETH_DESC_BYTES])> {
        let queue = self.state.ethernet.queues.get_mut(&(kind.0, index))?;
        if queue.next == queue.told || !queue.enabled {
            return None;
        }
        let at = queue.next;
        let addr = queue.base + u64::from(at) * ETH_DESC_BYTES as u64;
        queue.next = at.wrapping_add(1) & queue.mask;
        let mut desc = [0; ETH_DESC_BYTES];
        if let Err(error) = self.port.bus.read(addr, &mut desc) {
            self.refused(QueueKind::Ethernet, kind.0, at, error.into());
        }
        Some((at, desc))
    }

    /// The scatter/gather list beside descriptor `at`, and whether the queue has lists.
    fn list(&self, kind: Kind, index: u32, at: u16) -> Result<[SgElem; SG_ELEMENTS], Refusal> {
        let queue = self.state.ethernet.queues.get(&(kind.0, index));
        let base = queue.and_then(|queue| queue.sg_base);
        let base =
            base.ok_or(Refusal::blame(Status::EINVAL, "scatter/gather list of a queue without", 1, 0))?;
        let mut list = [SgElem::new_zeroed(); SG_ELEMENTS];
        self.port.bus.read(base + u64::from(at) * SG_LIST_BYTES as u64, list.as_mut_bytes())?;
        Ok(list)
    }

    /// Writes a completion, whose last byte gets the color, and raises the queue's interrupt.
    fn eth_complete(&mut self, kind: Kind, index: u32, mut bytes: [u8; ETH_COMP_BYTES]) {
        let Some(queue) = self.state.ethernet.queues.get_mut(&(kind.0, index)) else { return };
        let entry = queue.written & u64::from(queue.mask);
        let color = queue.written / (u64::from(queue.mask) + 1) & 1 == 0;
        queue.written += 1;
        let (to, intr) = (queue.cq_base + entry * ETH_COMP_BYTES as u64, queue.intr);
        bytes[15] = bytes[15] & 0x7f | u8::from(color) << 7;
        if let Err(error) = self.port.bus.publish(to, &bytes) {
            return self.refused(QueueKind::Ethernet, kind.0, entry as u16, error.into());
        }
        if let Some(intr) = intr {
            self.raise(intr);
        }
    }

    /// Sends what a transmit queue holds.
    pub(super) fn transmit(&mut self, index: u32) {
        if self.state.ethernet.queues.get(&(Kind::TXQ.0, index)).is_some_and(|queue| !queue.enabled) {
            self.state.ethernet.counts.tx_queue_disabled += 1;
        }
        while let Some((at, desc)) = self.take(Kind::TXQ, index) {
            let mut comp = TxqComp { comp_index: at.into(), ..TxqComp::ZERO };
            match self.gather(index, at, &zerocopy::transmute!(desc)) {
                Ok(mut frame) => {
                    self.state.ethernet.counts.tx[class(&frame)].add(frame.len());
                    frame.resize(frame.len().max(SHORTEST), 0);
                    self.nic.lock().send_host_frame(frame);
                }
                Err(refusal) => {
                    let counts = &mut self.state.ethernet.counts;
                    counts.tx_drop[0].add(0);
                    *(if refusal.status == Status::EFAULT {
                        &mut counts.tx_dma_error
                    } else {
                        &mut counts.tx_desc_data_error
                    }) += 1;
                    comp.status = refusal.status.0;
                    self.refused(QueueKind::Ethernet, Kind::TXQ.0, at, refusal);
                }
            }
            self.eth_complete(Kind::TXQ, index, zerocopy::transmute!(comp));
        }
    }

    /// The frame that a descriptor tells of.
    fn gather(&self, index: u32, at: u16, desc: &TxqDesc) -> Result<Vec<u8>, Refusal> {
        let cmd = TxqCmd::from_bits(desc.cmd.get());
        Wrong::unless_equal("transmit operation", cmd.opcode().into(), TxqOpcode::PLAIN.0.into())?;
        Wrong::unless_equal("transmit flags", cmd.flags().into(), 0)?;
        Wrong::if_over("scatter/gather elements", cmd.num_sg().into(), SG_ELEMENTS as u64)?;
        let mut parts = vec![(cmd.addr(), desc.len.get())];
        if cmd.num_sg() > 0 {
            let list = self.list(Kind::TXQ, index, at)?;
            parts.extend(list.iter().take(cmd.num_sg().into()).map(|part| (part.addr.get(), part.len.get())));
        }
        let mut frame = Vec::new();
        for (addr, len) in parts {
            let start = frame.len();
            frame.resize(start + usize::from(len), 0);
            self.port.bus.read(addr, &mut frame[start..])?;
        }
        if !(HEADER..=MAX_FRAME as usize).contains(&frame.len()) {
            return Err(Refusal::blame(
                Status::ERANGE,
                "bytes of a frame",
                frame.len() as u64,
                MAX_FRAME.into(),
            ));
        }
        Ok(frame)
    }

    /// Hands the host its frames; `true` if there were any.
    pub(super) fn hand_out_frames(&mut self) -> bool {
        let mut any = false;
        loop {
            let Some(frame) = ({ self.nic.lock().take_host_frame() }) else { return any };
            any = true;
            if self.state.ethernet.takes(&frame) {
                self.deliver(&frame);
            }
        }
    }

    fn deliver(&mut self, frame: &[u8]) {
        let ethernet = &mut self.state.ethernet;
        let enabled = ethernet.queues.iter().find(|((kind, _), queue)| *kind == Kind::RXQ.0 && queue.enabled);
        let Some(index) = enabled.map(|((_, index), _)| *index) else {
            ethernet.counts.rx_queue_disabled += 1;
            return ethernet.counts.rx_drop[class(frame)].add(frame.len());
        };
        let Some((at, desc)) = self.take(Kind::RXQ, index) else {
            let counts = &mut self.state.ethernet.counts;
            counts.rx_queue_empty += 1;
            return counts.rx_drop[class(frame)].add(frame.len());
        };
        let mut comp = RxqComp { comp_index: at.into(), ..RxqComp::ZERO };
        match self.scatter(index, at, &zerocopy::transmute!(desc), frame) {
            Ok(used) => {
                self.state.ethernet.counts.rx[class(frame)].add(frame.len());
                (comp.num_sg_elems, comp.len) = (used, (frame.len() as u16).into());
                comp.pkt_type_color = packet_type(frame);
            }
            Err(refusal) => {
                let counts = &mut self.state.ethernet.counts;
                counts.rx_drop[class(frame)].add(frame.len());
                *(if refusal.status == Status::EFAULT {
                    &mut counts.rx_dma_error
                } else {
                    &mut counts.rx_desc_data_error
                }) += 1;
                comp.status = refusal.status.0;
                self.refused(QueueKind::Ethernet, Kind::RXQ.0, at, refusal);
            }
        }
        self.eth_complete(Kind::RXQ, index, zerocopy::transmute!(comp));
    }

    /// Puts a frame where a descriptor has room; the elements of its list that this took.
    fn scatter(&self, index: u32, at: u16, desc: &RxqDesc, frame: &[u8]) -> Result<u8, Refusal> {
        Wrong::if_over("receive operation", desc.opcode.into(), 1)?;
        let mut parts = vec![(desc.addr.get(), desc.len.get())];
        if desc.opcode == 1 {
            parts.extend(self.list(Kind::RXQ, index, at)?.map(|part| (part.addr.get(), part.len.get())));
        }
        let (mut left, mut used) = (frame, 0);
        for (nth, (addr, len)) in parts.into_iter().enumerate() {
            let (now, later) = left.split_at(left.len().min(len.into()));
            if now.is_empty() {
                break;
            }
            self.port.bus.write(addr, now)?;
            (left, used) = (later, nth as u8);
        }
        // A frame that is longer than the room for it is nobody's fault: the sender has not asked.
        if left.is_empty() { Ok(used) } else { Err(Refusal::fate(Status::ERANGE)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_if_the_mode_says_so_and_a_filter_matches() {
        let mut ethernet = Ethernet::default();
        let frame = |mac: [u8; 6]| [&mac[..], &[0; 54]].concat();
        let (ours, group) = ([2, 0, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 1]);
        assert!(!ethernet.takes(&frame([0xff; 6])));
        ethernet.mode = RxMode::UNICAST | RxMode::BROADCAST | RxMode::MULTICAST;
        assert!(ethernet.takes(&frame([0xff; 6])) && !ethernet.takes(&frame(ours)));
        let id = ethernet.add_filter(RxMatch::MAC, &ours).expect("new");
        assert_eq!(ethernet.add_filter(RxMatch::MAC, &ours), Err(Refusal::fate(Status::EEXIST)));
        assert!(ethernet.takes(&frame(ours)) && !ethernet.takes(&frame(group)));
        ethernet.mode |= RxMode::ALL_MULTICAST;
        assert!(ethernet.takes(&frame(group)) && !ethernet.takes(&[]));
        ethernet.delete_filter(id).expect("there");
        assert!(!ethernet.takes(&frame(ours)) && ethernet.delete_filter(id).is_err());
    }

    #[test]
    fn counters_count_from_their_reset_and_are_told_once() {
        let mut ethernet = Ethernet::default();
        let roce = Counters { sent: 5, sent_bytes: 500, ..Counters::default() };
        ethernet.counts.tx[2].add(60);
        let told = ethernet.news(roce).expect("news");
        assert_eq!((told.tx_rdma_ucast_packets.get(), told.tx_bcast_bytes.get()), (5, 60));
        assert_eq!(ethernet.news(roce), None);
        ethernet.reset_counters(roce);
        assert_eq!(ethernet.stats(&roce), LifStats::ZERO);
    }

    #[test]
    fn kinds_of_frames_are_told_by_their_headers() {
        let mut frame = [0; 60];
        assert_eq!(packet_type(&frame), 0);
        (frame[12], frame[23]) = (8, 6);
        assert_eq!(packet_type(&frame), 3);
        (frame[12], frame[13], frame[20]) = (0x86, 0xdd, 17);
        assert_eq!(packet_type(&frame), 0x28);
    }
}
