//! The requests that both sides post.

use directverbs::verbs::{LKey, RKey, RecvRequest, SendFlags, SendRequest, Sge};

use crate::side::SGES;
use crate::work::{INLINE_BYTES, MANY, SGE_BYTES, Sends, Shape};

fn sges() -> &'static [Sge] {
    let sge = |i| Sge::new(0x10_0000 + u64::from(i * SGE_BYTES), SGE_BYTES, LKey::truncated(0x1234));
    Vec::leak((0..SGES).map(sge).collect())
}

/// Send requests, by their index in [`Sends::ALL`]. They are never given back.
pub fn send_requests() -> [&'static [SendRequest<'static>]; Sends::ALL.len()] {
    let sges = sges();
    let message: &'static [u8] = Vec::leak((0..INLINE_BYTES as u8).collect());
    let pieces: &'static [&'static [u8]] = Vec::leak(vec![message]);
    Sends::ALL.map(|sends| {
        let write = SendRequest::write(0x20_0000, RKey::truncated(0x77));
        let request = match sends.shape {
            Shape::Write => write.sges(&sges[..1]),
            Shape::Send => SendRequest::send().sges(&sges[..1]),
            Shape::Inline => write.inline(pieces),
            Shape::TwoSges => write.sges(sges),
        };
        let flags = |i| if sends.signals(i) { SendFlags::SIGNALED } else { SendFlags::empty() };
        &*Vec::leak((0..sends.count).map(|i| request.wr_id(i as u64).flags(flags(i))).collect())
    })
}

/// [`MANY`] receive requests. They are never given back.
pub fn recv_requests() -> &'static [RecvRequest<'static>] {
    let sges = &sges()[..1];
    Vec::leak((0..MANY).map(|i| RecvRequest::new(i as u64, sges)).collect())
}
