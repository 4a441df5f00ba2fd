//! The mailbox: requests out, responses in. It writes no register and waits for nothing: that is the platform's.

use zerocopy::{IntoBytes, little_endian as le};

use super::error::{HwrmStatus, ResponseError, TooLong};
use super::message::{HwrmCmdHdr, HwrmRespHdr, HwrmShortInput, NONE, Request, Response, SHORT_SIGNATURE};
use super::req_type::ReqType;
use super::version::{VerGetOutput, caps};
use crate::queue::RingMemory;
use crate::verbs::shown;

/// Offset of the request window in the register BAR.
pub const WINDOW: usize = 0x0;
/// Offset of the trigger in the register BAR: a 1 is written after the request.
pub const TRIGGER: usize = 0x100;
/// Bytes of the window before the device has told.
pub const DEFAULT_WINDOW: u16 = 128;
/// Bytes of a window there can be: what lies between it and the trigger.
pub const MAX_WINDOW: u16 = (TRIGGER - WINDOW) as u16;
/// Time that a request may take before the device has told, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u32 = 500;
/// Bytes of memory that hold any response: the largest that the device may tell.
pub const RESPONSE_BYTES: usize = 4096;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Into the window.
    Window,
    /// Into host memory, and a [`HwrmShortInput`] into the window.
    Short,
}

/// The channel: sequence numbers, and what the device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mailbox {
    sequence: u16,
    window: u16,
    extended: u16,
    short: bool,
    timeout_ms: u32,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    req_type: ReqType,
    sequence: u16,
}

impl Mailbox {
    /// The channel of a device that has not told its limits.
    pub const fn new() -> Self {
        Self {
            sequence: 0,
            window: DEFAULT_WINDOW,
            extended: 0,
            short: false,
            timeout_ms: DEFAULT_TIMEOUT_MS,
        }
    }

    /// Takes over the limits that the device tells. Those that cannot be are replaced by the defaults.
    pub fn learn(&mut self, version: &VerGetOutput) {
        let both = caps::SHORT_CMD_SUPPORTED | caps::SHORT_CMD_REQUIRED;
        self.short = version.dev_caps_cfg.get() & both == both;
        let window = version.max_req_win_len.get();
        let sane = window >= size_of::<HwrmCmdHdr>() as u16 && window <= MAX_WINDOW;
        self.window = if sane { window & !3 } else { DEFAULT_WINDOW };
        self.extended = version.max_ext_req_len.get();
        self.timeout_ms = match version.def_req_timeout.get() {
            0 => DEFAULT_TIMEOUT_MS,
            told => told.into(),
        };
    }

    /// Bytes of the window. All of it is written with each request.
    pub const fn window(&self) -> usize {
        self.window as usize
    }

    /// Time that a usual request may take, in milliseconds.
    pub const fn timeout_ms(&self) -> u32 {
        self.timeout_ms
    }

    /// Where a request of `len` bytes goes.
    ///
    /// # Errors
    /// The device takes none of that length.
    pub const fn form(&self, req_type: ReqType, len: usize) -> Result<Form, TooLong> {
        if len > self.window as usize && len > self.extended as usize {
            let max = if self.extended > self.window { self.extended } else { self.window };
            return Err(TooLong { req_type, len: shown(len as u64), max: max as u32 });
        }
        Ok(if self.short || len > self.window as usize { Form::Short } else { Form::Window })
    }

    /// Writes the header of a request whose response shall go to `resp_addr`. The number of requests counts those that
    /// are sent again, too.
    pub fn address(&mut self, req_type: ReqType, request: &mut [u8], resp_addr: u64) -> Ticket {
        let ticket = Ticket { req_type, sequence: self.sequence };
        self.sequence = self.sequence.wrapping_add(1);
        let header = HwrmCmdHdr {
            req_type: le::U16::new(req_type.0),
            cmpl_ring: le::U16::new(NONE),
            seq_id: le::U16::new(ticket.sequence),
            target_id: le::U16::new(NONE),
            resp_addr: le::U64::new(resp_addr),
        };
        if let Some(bytes) = request.first_chunk_mut::<16>() {
            bytes.copy_from_slice(header.as_bytes());
        }
        ticket
    }
}

impl Ticket {
    /// Type of the request.
    pub const fn req_type(&self) -> ReqType {
        self.req_type
    }

    /// What goes into the window when the request of `size` bytes is at `req_addr`.
    pub fn short(&self, size: usize, req_addr: u64) -> HwrmShortInput {
        HwrmShortInput {
            req_type: le::U16::new(self.req_type.0),
            signature: le::U16::new(SHORT_SIGNATURE),
            target_id: le::U16::new(0),
            size: le::U16::new(size as u16),
            req_addr: le::U64::new(req_addr),
        }
    }

    /// Looks for the response in the memory that it goes to, which was zero when the request was sent. Gives its length, or
    /// `None` as long as it is not complete.
    ///
    /// # Errors
    /// It is no response to this request, or the device says no.
    pub fn poll(&self, memory: &RingMemory<'_>) -> Result<Option<usize>, ResponseError> {
        let req_type = self.req_type;
        let Some(word) = memory.load_valid(4) else {
            return Err(ResponseError::Length {
                req_type,
                len: size_of::<HwrmRespHdr>() as u32,
                room: shown(memory.len() as u64),
            });
        };
        let (seen, len) = (word as u16, (word >> 16) as usize);
        if len == 0 {
            return Ok(None);
        }
        if len <= size_of::<HwrmRespHdr>() || len > memory.len() {
            return Err(ResponseError::Length {
                req_type,
                len: len as u32,
                room: shown(memory.len() as u64),
            });
        }
        if seen != self.sequence {
            return Err(ResponseError::Sequence { req_type, sent: self.sequence, seen });
        }
        // The valid byte is the last one; a 32-bit word around it is loaded in one piece.
        let at = len - 1;
        let valid = memory.load_valid(at & !3).map_or(0, |word| (word >> (8 * (at & 3))) as u8);
        match valid {
            0 => return Ok(None),
            1 => {}
            seen => return Err(ResponseError::Valid { req_type, seen }),
        }
        let header: HwrmRespHdr = memory.load(0).unwrap_or(HwrmRespHdr::ZERO);
        let seen = ReqType(header.req_type.get());
        if seen != req_type {
            return Err(ResponseError::Type { req_type, seen });
        }
        match HwrmStatus(header.error_code.get()) {
            HwrmStatus::SUCCESS => Ok(Some(len)),
            status => Err(ResponseError::Refused { req_type, status }),
        }
    }

    /// Copies out a response of `len` bytes, as [`Ticket::poll`] gave them. What a shorter one lacks is zero.
    pub fn response<R: Response>(memory: &RingMemory<'_>, len: usize) -> R {
        let mut response = R::ZERO;
        copy_out(memory, len, response.as_mut_bytes());
        response
    }
}

/// Copies what a response of `len` bytes says.
fn copy_out(memory: &RingMemory<'_>, len: usize, bytes: &mut [u8]) {
    // The valid byte of a shorter one is no part of what it says.
    let told = if len < bytes.len() { len.saturating_sub(1) } else { bytes.len() };
    for (at, byte) in bytes.iter_mut().enumerate().take(told) {
        *byte = memory.load(at).unwrap_or(0);
    }
}

/// The 32-bit words to write to a window of `window` bytes: those of `bytes`, then zeros.
pub fn window_words(bytes: &[u8], window: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
    (0..window.max(bytes.len())).step_by(4).map(move |at| {
        let word = core::array::from_fn(|i| bytes.get(at + i).copied().unwrap_or(0));
        (WINDOW + at, u32::from_le_bytes(word))
    })
}

/// Reads a request at the start of `bytes`; what a shorter one lacks is zero.
pub fn decode<R: Request>(bytes: &[u8]) -> R {
    match R::read_from_prefix(bytes) {
        Ok((request, _)) => request,
        Err(_) => {
            let mut request = R::new_zeroed();
            let into = request.as_mut_bytes();
            let len = bytes.len().min(into.len());
            into[..len].copy_from_slice(&bytes[..len]);
            request
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::super::function::FuncQcapsInput;
    use super::super::message::HwrmDone;
    use super::*;

    #[repr(align(8))]
    struct Page([u8; 64]);

    fn ticket(sequence: u16) -> Ticket {
        Ticket { req_type: ReqType::FUNC_RESET, sequence }
    }

    fn response(change: impl FnOnce(&mut [u8; 64])) -> Page {
        let mut page = Page([0; 64]);
        page.0[..8].copy_from_slice(&[0, 0, 0x11, 0, 7, 0, 16, 0]);
        page.0[15] = 1;
        change(&mut page.0);
        page
    }

    #[test]
    fn a_request_carries_its_header() {
        let mut mailbox = Mailbox::new();
        let mut sent = FuncQcapsInput::ZERO;
        sent.fid = le::U16::new(0xffff);
        let _ = mailbox.address(ReqType::FUNC_QCAPS, sent.as_mut_bytes(), 1);
        let ticket = mailbox.address(ReqType::FUNC_QCAPS, sent.as_mut_bytes(), 0x1122_3344_5566_7788);
        let golden = [0x15, 0, 0xff, 0xff, 1, 0, 0xff, 0xff, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
        assert_eq!(sent.as_bytes()[..16], golden);
        assert_eq!(sent.as_bytes()[16..18], [0xff, 0xff]);
        let short = ticket.short(24, 0x99);
        assert_eq!(short.as_bytes(), [0x15, 0, 0x21, 0x43, 0, 0, 24, 0, 0x99, 0, 0, 0, 0, 0, 0, 0]);
        let words: Vec<_> = window_words(short.as_bytes(), 128).collect();
        assert_eq!((words.len(), words[1], words[31]), (32, (4, 0x0018_0000), (124, 0)));
    }

    #[test]
    fn the_form_follows_what_the_device_takes() {
        let mut mailbox = Mailbox::new();
        assert_eq!(mailbox.form(ReqType::VER_GET, 24), Ok(Form::Window));
        assert!(mailbox.form(ReqType::FUNC_CFG, 160).is_err());
        let mut version = VerGetOutput::ZERO;
        version.max_ext_req_len = le::U16::new(512);
        version.max_req_win_len = le::U16::new(128);
        mailbox.learn(&version);
        assert_eq!(mailbox.form(ReqType::FUNC_QCAPS, 24), Ok(Form::Window));
        assert_eq!(mailbox.form(ReqType::FUNC_BACKING_STORE_CFG, 336), Ok(Form::Short));
        assert_eq!(mailbox.form(ReqType::FUNC_BACKING_STORE_CFG, 513).unwrap_err().max, 512);
        version.dev_caps_cfg = le::U32::new(0xc);
        mailbox.learn(&version);
        assert_eq!(mailbox.form(ReqType::FUNC_QCAPS, 24), Ok(Form::Short));
    }

    #[test]
    fn limits_that_cannot_be_are_not_taken_over() {
        let mut mailbox = Mailbox::new();
        for window in [0, 1, 0xffff] {
            let mut version = VerGetOutput::ZERO;
            version.max_req_win_len = le::U16::new(window);
            mailbox.learn(&version);
            assert_eq!((mailbox.window(), mailbox.timeout_ms()), (128, 500));
        }
    }

    #[test]
    fn a_response_is_there_when_its_last_byte_is() {
        let mut page = response(|bytes| bytes[15] = 0);
        assert_eq!(ticket(7).poll(&RingMemory::new(&mut page.0)), Ok(None));
        let mut page = response(|bytes| bytes[6] = 0);
        assert_eq!(ticket(7).poll(&RingMemory::new(&mut page.0)), Ok(None));
        let mut page = response(|bytes| bytes[8] = 5);
        let memory = RingMemory::new(&mut page.0);
        assert_eq!(ticket(7).poll(&memory), Ok(Some(16)));
        assert_eq!(Ticket::response::<HwrmDone>(&memory, 16).unused_0[0], 5);
        let longer: super::super::function::FuncQcapsOutput = Ticket::response(&memory, 16);
        assert_eq!((longer.fid.get(), longer.mac_address), (5, [0; 6]));
    }

    #[test]
    fn hostile_responses_are_told_apart() {
        type Case = (usize, u8, ResponseError);
        let req_type = ReqType::FUNC_RESET;
        let cases: [Case; 6] = [
            (4, 8, ResponseError::Sequence { req_type, sent: 7, seen: 8 }),
            (2, 0x12, ResponseError::Type { req_type, seen: ReqType(0x12) }),
            (6, 8, ResponseError::Length { req_type, len: 8, room: 64 }),
            (7, 0xff, ResponseError::Length { req_type, len: 0xff10, room: 64 }),
            (15, 3, ResponseError::Valid { req_type, seen: 3 }),
            (0, 4, ResponseError::Refused { req_type, status: HwrmStatus::RESOURCE_ALLOC_ERROR }),
        ];
        for (at, byte, error) in cases {
            let mut page = response(|bytes| bytes[at] = byte);
            assert_eq!(ticket(7).poll(&RingMemory::new(&mut page.0)), Err(error), "byte {at}");
        }
        let mut busy = response(|bytes| bytes[0] = 0x10);
        assert!(ticket(7).poll(&RingMemory::new(&mut busy.0)).unwrap_err().is_busy());
        let ones = ticket(7).poll(&RingMemory::new(&mut [0xff; 64]));
        assert!(matches!(ones, Err(ResponseError::Length { .. })));
    }

    #[test]
    fn a_request_that_is_cut_short_is_filled_with_zeros() {
        let short: FuncQcapsInput = decode(&[0x15, 0]);
        assert_eq!((short.req_type.get(), short.fid.get()), (0x15, 0));
    }
}
