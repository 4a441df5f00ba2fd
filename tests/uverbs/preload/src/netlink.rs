//! RDMA netlink: which devices there are and what drives them. Source: kernel `rdma/rdma_netlink.h`.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use crate::hooks::{Errno, Listed};

/// Protocol number of the socket.
pub const NETLINK_RDMA: c_int = 20;

const HEADER: usize = 16;
/// `RDMA_NL_NLDEV`, in the upper part of a message's type.
const CLIENT: u16 = 5 << 10;
const GET: u16 = 1;
const SYS_GET: u16 = 6;
const GET_CHARDEV: u16 = 15;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_MULTI: u16 = 2;

/// `enum rdma_nldev_attr`, those that libibverbs looks at.
mod attribute {
    pub const DEV_INDEX: u16 = 1;
    pub const DEV_NAME: u16 = 2;
    pub const PORT_INDEX: u16 = 3;
    pub const NODE_GUID: u16 = 6;
    pub const DEV_NODE_TYPE: u16 = 14;
    pub const CHARDEV_NAME: u16 = 70;
    pub const CHARDEV_ABI: u16 = 71;
    pub const CHARDEV: u16 = 72;
    pub const UVERBS_DRIVER_ID: u16 = 73;
    pub const SYS_COPY_ON_FORK: u16 = 93;
}

/// Number of the stand-in character device: major 1, minor 3.
const CHARDEV: u64 = 1 << 8 | 3;
/// `RDMA_NODE_IB_CA`.
const NODE_CA: u8 = 1;

/// An RDMA netlink socket: the answers not yet read.
#[derive(Debug)]
pub struct Netlink {
    devices: Vec<Listed>,
    answers: Mutex<VecDeque<Vec<u8>>>,
}

impl Netlink {
    /// A socket that tells of `devices`.
    pub fn new(devices: Vec<Listed>) -> Self {
        Self { devices, answers: Mutex::default() }
    }

    /// Answers the question in `message`.
    ///
    /// # Safety
    /// The message's pieces are memory.
    pub(crate) unsafe fn send(&self, message: &libc::msghdr) -> Result<usize, Errno> {
        let mut bytes = Vec::new();
        for i in 0..message.msg_iovlen {
            // SAFETY: the caller's.
            let piece = unsafe { &*message.msg_iov.add(i) };
            // SAFETY: the caller's.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len)
            });
        }
        let answers = answer(&self.devices, &bytes).ok_or(libc::EINVAL)?;
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
        Ok(bytes.len())
    }

    /// Fills `message` with the next answer.
    ///
    /// # Safety
    /// The message's pieces and name are memory.
    pub(crate) unsafe fn receive(&self, message: &mut libc::msghdr, flags: c_int) -> Result<usize, Errno> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.front().ok_or(libc::EAGAIN)?.clone();
        if flags & libc::MSG_PEEK == 0 {
            answers.pop_front();
        }
        let mut rest = answer.as_slice();
        for i in 0..message.msg_iovlen {
            // SAFETY: the caller's.
            let piece = unsafe { &*message.msg_iov.add(i) };
            let (now, later) = rest.split_at(rest.len().min(piece.iov_len));
            // SAFETY: the caller's; `now` is no longer than the piece.
            unsafe { piece.iov_base.cast::<u8>().copy_from_nonoverlapping(now.as_ptr(), now.len()) };
            rest = later;
        }
        message.msg_flags = if rest.is_empty() { 0 } else { libc::MSG_TRUNC };
        message.msg_controllen = 0;
        let name_bytes = size_of::<libc::sockaddr_nl>();
        if !message.msg_name.is_null() && message.msg_namelen as usize >= name_bytes {
            // SAFETY: all zero bytes are a valid address: the kernel's.
            let mut name: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
            name.nl_family = libc::AF_NETLINK as u16;
            // SAFETY: the caller's; it is long enough.
            unsafe { message.msg_name.cast::<libc::sockaddr_nl>().write_unaligned(name) };
            message.msg_namelen = name_bytes as u32;
        }
        let whole = flags & libc::MSG_TRUNC != 0;
        Ok(if whole { answer.len() } else { answer.len() - rest.len() })
    }
}

/// A question's header: type, sequence number, sender.
struct Question<'q> {
    kind: u16,
    sequence: u32,
    port: u32,
    attributes: &'q [u8],
}

impl<'q> Question<'q> {
    fn parse(bytes: &'q [u8]) -> Option<Self> {
        let word = |at| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        Some(Self { kind, sequence: word(8)?, port: word(12)?, attributes: bytes.get(HEADER..)? })
    }

    /// Value of a 32-bit attribute.
    fn number(&self, id: u16) -> Option<u32> {
        let mut rest = self.attributes;
        while let [a, b, c, d, ..] = *rest {
            let len = usize::from(u16::from_ne_bytes([a, b]));
            if u16::from_ne_bytes([c, d]) == id {
                return rest.get(4..8)?.try_into().ok().map(u32::from_ne_bytes);
            }
            rest = rest.get(len.max(4).next_multiple_of(4)..)?;
        }
        None
    }

    fn message(&self, kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&self.sequence.to_ne_bytes());
        message.extend_from_slice(&self.port.to_ne_bytes());
        message.extend_from_slice(body);
        message
    }
}

fn attribute(body: &mut Vec<u8>, id: u16, value: &[u8]) {
    body.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&id.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

fn name(body: &mut Vec<u8>, id: u16, name: &str) {
    attribute(body, id, &[name.as_bytes(), &[0]].concat());
}

/// Answers to one question; `None` if it is too short to be one.
fn answer(devices: &[Listed], bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let question = Question::parse(bytes)?;
    let mut body = Vec::new();
    match question.kind.checked_sub(CLIENT) {
        Some(GET) => {
            let mut answers = Vec::new();
            for (index, device) in devices.iter().enumerate() {
                let mut body = Vec::new();
                attribute(&mut body, attribute::DEV_INDEX, &(index as u32).to_ne_bytes());
                name(&mut body, attribute::DEV_NAME, &device.name);
                attribute(&mut body, attribute::PORT_INDEX, &1u32.to_ne_bytes());
                attribute(&mut body, attribute::NODE_GUID, &device.guid);
                attribute(&mut body, attribute::DEV_NODE_TYPE, &[NODE_CA]);
                answers.push(question.message(question.kind, NLM_F_MULTI, &body));
            }
            answers.push(question.message(NLMSG_DONE, NLM_F_MULTI, &0i32.to_ne_bytes()));
            return Some(answers);
        }
        Some(GET_CHARDEV) => {
            let index = question.number(attribute::DEV_INDEX)? as usize;
            if let Some(device) = devices.get(index) {
                name(&mut body, attribute::CHARDEV_NAME, &device.uverbs);
                attribute(&mut body, attribute::CHARDEV_ABI, &1u64.to_ne_bytes());
                attribute(&mut body, attribute::CHARDEV, &CHARDEV.to_ne_bytes());
                attribute(&mut body, attribute::UVERBS_DRIVER_ID, &device.driver_id.to_ne_bytes());
                return Some(vec![question.message(question.kind, 0, &body)]);
            }
            body.extend_from_slice(&(-libc::ENODEV).to_ne_bytes());
        }
        Some(SYS_GET) => {
            attribute(&mut body, attribute::SYS_COPY_ON_FORK, &[1]);
            return Some(vec![question.message(question.kind, 0, &body)]);
        }
        _ => body.extend_from_slice(&(-libc::EOPNOTSUPP).to_ne_bytes()),
    }
    body.extend_from_slice(bytes.get(..HEADER)?);
    Some(vec![question.message(NLMSG_ERROR, 0, &body)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(command: u16, attributes: &[u8]) -> Vec<u8> {
        let asker = Question { kind: 0, sequence: 77, port: 5, attributes: &[] };
        asker.message(CLIENT + command, 0, attributes)
    }

    fn devices() -> Vec<Listed> {
        let device = |name: &str, driver_id| Listed {
            name: name.into(),
            uverbs: format!("uverbs_{name}"),
            driver_id,
            guid: [1; 8],
        };
        vec![device("one", 6), device("other", 21)]
    }

    #[test]
    fn a_dump_names_both_devices_and_ends() {
        let answers = answer(&devices(), &question(GET, &[])).unwrap();
        assert_eq!(answers.len(), 3);
        for (index, answer) in answers.iter().enumerate() {
            let parsed = Question::parse(answer).unwrap();
            assert_eq!((parsed.sequence, parsed.port), (77, 5));
            match devices().get(index) {
                Some(device) => {
                    assert_eq!(parsed.number(attribute::DEV_INDEX), Some(index as u32));
                    let name = device.name.as_bytes();
                    assert!(answer.windows(name.len()).any(|window| window == name));
                }
                None => assert_eq!(parsed.kind, NLMSG_DONE),
            }
        }
    }

    #[test]
    fn a_character_device_tells_its_driver() {
        for (index, device) in devices().iter().enumerate() {
            let mut asked = Vec::new();
            attribute(&mut asked, attribute::DEV_INDEX, &(index as u32).to_ne_bytes());
            let answers = answer(&devices(), &question(GET_CHARDEV, &asked)).unwrap();
            let parsed = Question::parse(&answers[0]).unwrap();
            assert_eq!(parsed.number(attribute::UVERBS_DRIVER_ID), Some(device.driver_id));
        }
    }

    #[test]
    fn a_question_that_nobody_knows_is_an_error() {
        let answers = answer(&devices(), &question(1000, &[])).unwrap();
        assert_eq!(Question::parse(&answers[0]).unwrap().kind, NLMSG_ERROR);
        assert_eq!(answer(&[], &[1, 2, 3]), None);
    }
}
