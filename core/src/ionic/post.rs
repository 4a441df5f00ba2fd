//! Send requests become WQEs.

use super::batch::WorkQueue;
use super::payload::{SHORT_BYTES, short_data, store_payload, store_sges};
use super::record::{SqFlags, long};
use super::request::{self, Body};
use super::send::SendQueue;
use super::work::{MAX_LENGTH, WORDS, head, header};
use super::wqe::{SqOp, WQE_MIN, WqeFlags};
use crate::queue::{DeviceMemory, Doorbell, Slot, Store};
use crate::verbs::{CqId, Data, PostError, QpType, SendFlags, SendOp, SendRequest, WcOpcode};

const SIGNALED: u32 = head(0, 0, WqeFlags::new().with_signaled(true));
const COLOR: u32 = head(0, 0, WqeFlags::new().with_color(true));
const INLINE: u32 = head(0, 0, WqeFlags::new().with_inline(true));

/// By the bits of [`SendFlags`] that a WQE has.
const FLAGS: [u32; 8] = {
    let mut table = [0; 8];
    let mut bits = 0;
    while bits < table.len() {
        let flags = SendFlags::from_bits_retain(bits as u8);
        let wqe = WqeFlags::new()
            .with_fence(flags.contains(SendFlags::FENCE))
            .with_signaled(flags.contains(SendFlags::SIGNALED))
            .with_solicited(flags.contains(SendFlags::SOLICITED));
        table[bits] = head(0, 0, wqe);
        bits += 1;
    }
    table
};

/// Flags of the record of a WQE whose first half of word 1 is `head`.
const fn record_flags(head: u32, remote: bool) -> SqFlags {
    let signaled = if head & SIGNALED != 0 { SqFlags::SIGNALED } else { SqFlags::empty() };
    if remote { signaled.union(SqFlags::REMOTE) } else { signaled }
}

#[inline(always)]
const fn flag_bits(flags: SendFlags) -> u32 {
    FLAGS[flags.bits() as usize & 7]
}

/// A WQE, but for its index and its payload.
struct Wqe {
    /// First half of word 1.
    head: u32,
    /// Second half of word 1.
    imm_data_key: u32,
    /// Word 2.
    address: u64,
    /// The halves of word 3.
    key_length: [u32; 2],
    /// Bytes of the message.
    length: u32,
    /// Operation that completes.
    opcode: WcOpcode,
    /// Flags of its record.
    flags: SqFlags,
}

impl<S: Store, M: DeviceMemory> SendQueue<'_, S, M> {
    /// Sets the color of the WQE at the producer.
    pub(super) fn set_color(&mut self, color: bool) {
        self.always = head(0, 0, WqeFlags::new().with_signaled(self.signal_all));
        if color != self.color() {
            self.always ^= COLOR;
        }
        self.ring.go_to(self.ring.prod);
    }

    /// Color of the WQE at the producer.
    pub(super) fn color(&self) -> bool {
        self.always_at(self.ring.prod) & COLOR != 0
    }

    /// Flags of the WQE at `position`, whatever the request.
    #[inline(always)]
    fn always_at(&self, position: u32) -> u32 {
        let odd = position & self.ring.wqes.mask().wrapping_add(1) != 0;
        if odd { self.always ^ COLOR } else { self.always }
    }

    /// See [`super::work::WorkRing::look_ahead`].
    #[cold]
    #[inline(never)]
    fn look_ahead(&mut self) {
        self.ring.look_ahead();
        if self.ring.is_plain() {
            let write = head(self.opcodes[SqOp::Write as usize], 1, WqeFlags::new());
            let [a, b, c, d, ..] = FLAGS;
            let write = write | self.always_at(self.ring.prod);
            self.write = [a, b, c, d].map(|flags| {
                let head = flags | write;
                (head, WcOpcode::RdmaWrite, record_flags(head, true))
            });
        }
    }

    /// Writes the WQE of an RDMA WRITE of one SGE. `false`, and nothing was done, if it is something else, or wrong.
    #[inline(always)]
    fn put_write(&mut self, request: &SendRequest<'_>) -> bool {
        let (SendOp::Write(to), Data::Sges([sge])) = (&request.op, &request.data) else { return false };
        let length = sge.length;
        if request.flags.intersects(request::WRITE_REFUSES) || length >= MAX_LENGTH || !self.is_plain() {
            return false;
        }
        let (head, opcode, flags) = self.write[usize::from(request.flags.bits() & 3)];
        let wqe = Wqe {
            head,
            imm_data_key: 0,
            address: to.addr.swap_bytes(),
            key_length: [to.rkey.get().swap_bytes(), length.swap_bytes()],
            length,
            opcode,
            flags,
        };
        self.store(request.wr_id, &wqe, |slot| store_sges(slot, (sge, length), None));
        self.ring.prod = self.ring.prod.wrapping_add(1);
        true
    }

    /// Writes the WQE of a request of a connected queue pair whose payload ends with the shortest WQE. `false`, and nothing
    /// was done, if it is something else, or wrong.
    #[inline(always)]
    fn put_short(&mut self, request: &SendRequest<'_>) -> bool {
        match request.data {
            Data::Sges([sge]) if sge.length < MAX_LENGTH => {
                let length = sge.length;
                self.put_data(request, 1, length, |slot| store_sges(slot, (sge, length), None))
            }
            Data::Sges([a, b]) if self.ring.max_sge >= 2 => match a.length.checked_add(b.length) {
                Some(length @ ..MAX_LENGTH) => {
                    self.put_data(request, 2, length, |slot| store_sges(slot, (a, a.length), Some(b)))
                }
                _ => false,
            },
            Data::Inline([data]) if data.len() <= SHORT_BYTES.min(self.ring.max_inline as usize) => {
                let words = short_data(data);
                self.put_data(request, 0, data.len() as u32, |slot| store_payload(slot, words))
            }
            _ => false,
        }
    }

    /// Writes the WQE of a request of a connected queue pair with a payload of so many SGEs, or of inline data if there are
    /// none.
    #[inline(always)]
    fn put_data(
        &mut self,
        request: &SendRequest<'_>,
        sges: u8,
        length: u32,
        payload: impl FnOnce(&mut Slot<'_, WORDS>),
    ) -> bool {
        let parts = request::parts(&request.op);
        let Body::Data { address, key, inline } = parts.body else { return false };
        let refused = request.flags.intersects(parts.refused) || request::is_datagram(&request.op);
        if refused || sges == 0 && !inline || !self.is_plain() {
            return false;
        }
        let form = if sges == 0 { INLINE } else { head(0, sges, WqeFlags::new()) };
        let flags = flag_bits(request.flags) | self.always_at(self.ring.prod);
        let head = head(self.opcodes[parts.op as usize], 0, WqeFlags::new()) | form | flags;
        let wqe = Wqe {
            head,
            imm_data_key: parts.imm_data_key,
            address,
            key_length: [key.swap_bytes(), length.swap_bytes()],
            length,
            opcode: parts.wc,
            flags: record_flags(head, true),
        };
        self.store(request.wr_id, &wqe, payload);
        self.ring.prod = self.ring.prod.wrapping_add(1);
        true
    }

    /// Whether the next request may be of the plainest form, and its place has nothing behind the shortest WQE.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.ring.is_plain() && self.record(self.ring.prod).extent == 0
    }

    /// Writes the WQE of a request of any form, or says why it cannot be posted.
    #[inline(never)]
    fn put_any(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        if !self.ring.is_plain() {
            self.look_ahead();
        }
        let position = self.ring.prod;
        self.ring.room(position)?;
        let parts = request::parts(&request.op);
        let (qp_type, wc) = (self.qp_type, parts.wc);
        if request::is_datagram(&request.op) != (qp_type == QpType::Ud) {
            return Err(PostError::NotSupported { op: wc, qp_type });
        }
        if request.flags.intersects(parts.refused) {
            return Err(PostError::FlagNotAllowed(wc));
        }
        let remote = !parts.op.is_local() && qp_type == QpType::Rc;
        let flags = flag_bits(request.flags) | self.always_at(position);
        let mut extent = WQE_MIN as u32;
        let mut wqe = Wqe {
            head: flags,
            imm_data_key: parts.imm_data_key,
            address: 0,
            key_length: [0; 2],
            length: 0,
            opcode: wc,
            flags: record_flags(flags, remote),
        };
        let opcode = self.opcodes[parts.op as usize];
        let words = match parts.body {
            Body::Data { address, key, inline } => {
                let payload = match request.data {
                    Data::Sges(sges) => self.ring.sges(position, sges)?,
                    Data::Inline(_) if !inline => return Err(PostError::InlineNotAllowed(wc)),
                    Data::Inline(pieces) => {
                        wqe.head |= INLINE;
                        self.ring.inline(position, pieces)?
                    }
                };
                wqe.head |= head(opcode, payload.sges, WqeFlags::new().with_format(payload.spec));
                wqe.address = address;
                wqe.key_length = [key.swap_bytes(), payload.length.swap_bytes()];
                (wqe.length, extent) = (payload.length, payload.extent);
                payload.words
            }
            Body::Special => {
                let special = request::special(self.version, qp_type, request)?;
                let [_, _, b2, b3, payload @ ..] = special.words;
                if self.ring.express_word && special.words[7] != 0 {
                    // An atomic of version 1 ends where the doorbell is.
                    return Err(PostError::NotSupported { op: wc, qp_type });
                }
                wqe.head |= head(opcode, special.num_sge_key, WqeFlags::new());
                wqe.address = b2;
                wqe.key_length = [b3 as u32, (b3 >> 32) as u32];
                wqe.length = special.length;
                Some(self.ring.with_express(position, payload))
            }
        };
        self.store(request.wr_id, &wqe, |slot| {
            if let Some(words) = words {
                store_payload(slot, words);
            }
        });
        self.unnumbered = self.unnumbered.wrapping_add((!remote).into());
        let left = core::mem::replace(&mut self.record_mut(position).extent, long(extent));
        self.ring.zero_tail(position, extent, left);
        self.ring.go_on();
        Ok(())
    }

    /// Stores the WQE at the producer and its record, but for what lies behind 64 bytes.
    #[inline(always)]
    fn store(&mut self, wr_id: u64, wqe: &Wqe, payload: impl FnOnce(&mut Slot<'_, WORDS>)) {
        let position = self.ring.prod;
        let index = self.ring.wqes.index(position);
        let record = self.ring.wqes.record_mut(position);
        (record.wr_id, record.length) = (wr_id, wqe.length);
        (record.opcode, record.flags) = (wqe.opcode, wqe.flags);
        let mut slot = self.ring.wqes.slot(position);
        slot.store::<0>(index.into());
        slot.store::<2>(wqe.address);
        slot.store_low::<3>(wqe.key_length[0]);
        slot.store_high::<3>(wqe.key_length[1]);
        payload(&mut slot);
        // The device may look ahead for WQEs of the right color: the color comes last.
        slot.store_release::<1>(header(wqe.head, wqe.imm_data_key));
    }
}

impl<S: Store, M: DeviceMemory> WorkQueue for SendQueue<'_, S, M> {
    type Request<'r> = SendRequest<'r>;

    #[inline(always)]
    fn cq(&self) -> CqId {
        self.cq
    }

    #[inline(always)]
    fn position(&self) -> u32 {
        self.ring.prod
    }

    #[inline(always)]
    fn put_plain(&mut self, request: &SendRequest<'_>) -> bool {
        self.put_write(request)
    }

    #[inline(always)]
    fn put(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        if self.put_write(request) || self.put_short(request) { Ok(()) } else { self.put_any(request) }
    }

    /// The color goes too: the device may look ahead for it.
    fn take_back(&mut self) {
        self.ring.go_to(self.ring.prod.wrapping_sub(1));
        let position = self.ring.prod;
        let remote = self.record(position).flags.contains(SqFlags::REMOTE);
        self.unnumbered = self.unnumbered.wrapping_sub((!remote).into());
        let other = !self.always_at(position) & COLOR;
        self.ring.wqes.slot(position).store_release::<1>(header(other, 0));
    }

    #[inline(always)]
    fn publish<D: Doorbell>(&self, count: u32, doorbell: &D) {
        self.ring.publish(count, doorbell);
    }

    fn doorbell(&self) -> u64 {
        self.ring.index_doorbell()
    }
}
