//! The exchange of rdma-core's `ibv_rc_pingpong`, and turns with it.
//!
//! Who connects sends its address first: LID, queue pair and first PSN in hexadecimal digits and the GID in 32 of them, with
//! colons between them and a zero byte at the end. Who listens answers in the same way once its queue pair is connected, and
//! hears that the other one's is. Then both close the connection. Nothing is said about messages: both must be given
//! the same size and number.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use directverbs::verbs::{Device, Gid, Mtu, Psn, QpId};
use directverbs_workload::{Contact, Job, Progress, Role, Sample, Side, StreamJob, StreamReport, run_side};

use super::error::ExchangeError;
use crate::Failure;
use crate::runner::{Runner, Stop};

/// Bytes of an address: digits, colons and the zero.
const LENGTH: usize = 4 + 1 + 6 + 1 + 6 + 1 + 32 + 1;
/// What the connecting side says when it has an address. The other looks at its length only.
const DONE: [u8; 5] = *b"done\0";
/// Path MTU of the program, if it is given none.
const MTU: Mtu = Mtu::B1024;
/// READs that it allows.
const RD_ATOMIC: u8 = 1;

/// A connection with the program.
pub struct Wire(TcpStream);

impl Wire {
    /// Takes a connection. Each message may take `limit`.
    pub fn new(stream: TcpStream, limit: Duration) -> Result<Self, ExchangeError> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(limit))?;
        stream.set_read_timeout(Some(limit))?;
        Ok(Self(stream))
    }

    fn send(&mut self, contact: &Contact) -> Result<(), ExchangeError> {
        Ok(self.0.write_all(&to_text(contact))?)
    }

    /// Reads an address; all that it does not tell is as in `own`.
    fn receive(&mut self, own: &Contact) -> Result<Contact, ExchangeError> {
        let mut text = [0; LENGTH];
        self.0.read_exact(&mut text)?;
        from_text(&text, own).ok_or_else(|| ExchangeError::Senseless {
            waiting: "an address of ibv_rc_pingpong",
            why: String::from_utf8_lossy(&text).escape_debug().to_string(),
        })
    }

    fn say_done(&mut self) -> Result<(), ExchangeError> {
        Ok(self.0.write_all(&DONE)?)
    }

    fn hear_done(&mut self) -> Result<(), ExchangeError> {
        Ok(self.0.read_exact(&mut [0; DONE.len()])?)
    }
}

fn to_text(contact: &Contact) -> Vec<u8> {
    let gid: String = contact.gid.0.iter().map(|byte| format!("{byte:02x}")).collect();
    // RoCE has no LIDs.
    format!("0000:{:06x}:{:06x}:{gid}\0", contact.qp.get(), contact.psn.get()).into_bytes()
}

fn from_text(text: &[u8; LENGTH], own: &Contact) -> Option<Contact> {
    let text = str::from_utf8(text).ok()?.strip_suffix('\0')?;
    let mut words = text.split(':');
    let mut number = |digits: usize| {
        let word = words.next().filter(|word| word.len() == digits)?;
        // A sign would be taken for a digit.
        let plain = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| u128::from_str_radix(word, 16).ok()).flatten()
    };
    let _lid = number(4)?;
    let (qp, psn, gid) = (number(6)?, number(6)?, number(32)?);
    Some(Contact {
        qp: QpId::new(u32::try_from(qp).ok()?)?,
        psn: Psn::new(u32::try_from(psn).ok()?)?,
        gid: Gid(gid.to_be_bytes()),
        mtu: own.mtu,
        rd_atomic: RD_ATOMIC,
        ..*own
    })
}

/// An end of a job whose other end is the program.
pub struct RcPingpong<D> {
    device: D,
    wire: Wire,
    role: Role,
}

impl<D: Device> RcPingpong<D> {
    /// A device, and a connection with the program.
    pub const fn new(device: D, wire: Wire, role: Role) -> Self {
        Self { device, wire, role }
    }
}

impl<D: Device> Runner for RcPingpong<D> {
    fn turns(&mut self, job: &Job, observe: &mut dyn FnMut(Sample)) -> Result<u64, Stop> {
        let job = Job { echoed: true, mtu: job.mtu.or(Some(MTU)), ..*job };
        let (device, wire) = (&mut self.device, &mut self.wire);
        let mut side = Side::setup(device, &job, self.role)?;
        let own = side.contact();
        if self.role == Role::First {
            wire.send(&own)?;
            side.connect(device, &wire.receive(&own)?)?;
            wire.say_done()?;
        } else {
            side.connect(device, &wire.receive(&own)?)?;
            wire.send(&own)?;
            wire.hear_done()?;
        }
        let report = run_side(&mut side, device, &mut |sample| observe(sample))?;
        side.teardown(device)?;
        Ok(report.verified_bytes)
    }

    fn stream(&mut self, _: &StreamJob, _: &mut dyn FnMut(Progress)) -> Result<StreamReport, Stop> {
        Err(Stop::Other(Failure::Usage("ibv_rc_pingpong takes turns: it has no streams".into())))
    }

    fn again(&mut self, _: bool) -> Result<bool, Stop> {
        Ok(false)
    }

    fn measures(&self) -> bool {
        self.role == Role::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use directverbs::verbs::{Mac, QKey, RKey};

    fn contact() -> Contact {
        Contact {
            qp: QpId::new(0x12).unwrap(),
            psn: Psn::new(0xff_fffe).unwrap(),
            qkey: QKey::truncated(1),
            gid: Gid::v4([10, 0, 0, 1].into()),
            mac: Mac([2; 6]),
            mtu: MTU,
            rd_atomic: RD_ATOMIC,
            addr: 0x1000,
            stride: 64,
            rkey: RKey::truncated(2),
            windows: [RKey::default(); 32],
        }
    }

    #[test]
    fn an_address_has_the_programs_form() {
        let text = to_text(&contact());
        assert_eq!(text, b"0000:000012:fffffe:00000000000000000000ffff0a000001\0");
        assert_eq!(from_text(text.as_slice().try_into().unwrap(), &contact()), Some(contact()));
    }

    #[test]
    fn an_address_of_another_form_is_none() {
        for wrong in [
            b"0000:000012:fffffe:00000000000000000000ffff0a0000010",
            b"0000:+00012:fffffe:00000000000000000000ffff0a000001\0",
            b"0000:00012:ffffffe:00000000000000000000ffff0a000001\0",
            b"0000 000012 fffffe 00000000000000000000ffff0a000001\0",
            &[0; LENGTH],
            &[0xff; LENGTH],
        ] {
            assert_eq!(from_text(wrong, &contact()), None, "{wrong:?}");
        }
    }
}
