//! The mailbox: requests in, responses out.

use directverbs::bnxt_re::hwrm::error::HwrmStatus;
use directverbs::bnxt_re::hwrm::mailbox::{MAX_WINDOW, decode};
use directverbs::bnxt_re::hwrm::message::{
    HwrmCmdHdr, HwrmRespHdr, HwrmShortInput, NONE, Response, SHORT_SIGNATURE,
};
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use zerocopy::{FromBytes, IntoBytes, little_endian as le};

use super::function::BnxtFunction;
use super::statistics::Statistics;
use crate::pci::CommandFault;

/// Bytes of the request window.
pub(super) const WINDOW: u16 = 128;
/// Most bytes of a request in host memory.
pub(super) const MAX_REQUEST: u16 = 512;

/// State of the channel, and of what it configures.
#[derive(Debug)]
pub(super) struct Hwrm {
    window: [u8; MAX_WINDOW as usize],
    /// VER_GET was answered.
    pub greeted: bool,
    /// The function was reset since.
    pub was_reset: bool,
    /// A driver is there.
    pub registered: bool,
    /// What the driver has reserved.
    pub reserved: Reserved,
    /// Statistics contexts.
    pub stat_contexts: Statistics,
}

/// Resources that a driver has reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserved {
    pub num_msix: u16,
    pub num_cmpl_rings: u16,
    pub num_tx_rings: u16,
    pub num_rx_rings: u16,
    pub num_vnics: u16,
    pub num_stat_ctxs: u16,
    pub num_rsscos_ctxs: u16,
    pub num_hw_ring_grps: u16,
}

impl Default for Hwrm {
    fn default() -> Self {
        Self {
            window: [0; MAX_WINDOW as usize],
            greeted: false,
            was_reset: false,
            registered: false,
            reserved: Reserved::default(),
            stat_contexts: Statistics::default(),
        }
    }
}

impl Hwrm {
    /// The host stores to the window.
    pub fn store(&mut self, offset: usize, value: u32) {
        if let Some(word) = self.window.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
            *word = value.to_le_bytes();
        }
    }
}

/// What a request is answered with: a payload behind the header, or a reason to refuse it.
pub(super) type Answer = Result<Vec<u8>, HwrmStatus>;

impl BnxtFunction {
    /// The host has stored to the trigger.
    pub(super) fn hwrm_request(&mut self) {
        let window = self.state.hwrm.window;
        let short =
            HwrmShortInput::read_from_prefix(&window).map_or(HwrmShortInput::ZERO, |(short, _)| short);
        let request = if short.signature.get() == SHORT_SIGNATURE {
            let mut bytes = vec![0; short.size.get().into()];
            if bytes.len() > MAX_REQUEST.into() || self.bus().read(short.req_addr.get(), &mut bytes).is_err()
            {
                return self.violation(format_args!(
                    "HWRM: {} bytes of a request at {:#x}",
                    bytes.len(),
                    short.req_addr
                ));
            }
            bytes
        } else {
            window[..WINDOW.into()].to_vec()
        };
        let Ok((header, _)) = HwrmCmdHdr::read_from_prefix(&request) else {
            return self.violation("HWRM: a request without a header");
        };
        if short.signature.get() == SHORT_SIGNATURE && short.req_type != header.req_type {
            self.violation("HWRM: the short form names another type than the request");
        }
        if header.cmpl_ring.get() != NONE && !self.state.rings.is_nq(header.cmpl_ring.get()) {
            self.violation(format_args!("HWRM: completion ring {}", header.cmpl_ring));
        }
        if !header.resp_addr.get().is_multiple_of(16) {
            self.violation(format_args!("HWRM: response at {:#x}", header.resp_addr));
        }
        let fault = self.faults.next();
        let req_type = ReqType(header.req_type.get());
        let answer = match fault {
            Some(CommandFault::Refused) => Err(HwrmStatus::FAIL),
            Some(CommandFault::Busy) => Err(HwrmStatus::BUSY),
            Some(CommandFault::HotReset) => {
                self.hot_reset();
                Err(HwrmStatus::HOT_RESET_PROGRESS)
            }
            _ => self.hwrm_answer(req_type, &request),
        };
        self.trace.say(|| {
            let seq = header.seq_id.get();
            match &answer {
                Ok(payload) => format!("HWRM {seq} {req_type}: {} bytes", payload.len() + 8),
                Err(status) => format!("HWRM {seq} {req_type}: {status}"),
            }
        });
        self.hwrm_respond(&header, answer, fault);
    }

    fn hwrm_respond(&self, header: &HwrmCmdHdr, answer: Answer, fault: Option<CommandFault>) {
        if fault == Some(CommandFault::Silent) {
            return;
        }
        let (status, mut payload) = match answer {
            Ok(payload) => (HwrmStatus::SUCCESS, payload),
            Err(status) => (status, vec![0; 8]),
        };
        if fault == Some(CommandFault::Garbage) {
            payload.fill(0xff);
        }
        let seq_id = match fault {
            Some(CommandFault::WrongSequence) => header.seq_id.get().wrapping_add(1),
            _ => header.seq_id.get(),
        };
        let len = match fault {
            Some(CommandFault::WrongLength) => 0xfff0,
            _ => (size_of::<HwrmRespHdr>() + payload.len()) as u16,
        };
        let response = HwrmRespHdr {
            error_code: le::U16::new(status.0),
            req_type: header.req_type,
            seq_id: le::U16::new(seq_id),
            resp_len: le::U16::new(len),
        };
        if let Some(valid) = payload.last_mut() {
            *valid = 0;
        }
        let mut bytes = response.as_bytes().to_vec();
        bytes.extend(&payload);
        let at = header.resp_addr.get();
        let last = at.wrapping_add(bytes.len() as u64 - 1);
        let written = self.bus().write(at, &bytes).is_ok();
        let valid = fault != Some(CommandFault::NotValid);
        if !written || (valid && self.bus().write(last, &[1]).is_err()) {
            self.violation(format_args!("HWRM: response of {} bytes at {at:#x}", bytes.len()));
        }
    }

    /// What is answered to a request.
    fn hwrm_answer(&mut self, req_type: ReqType, request: &[u8]) -> Answer {
        if req_type == ReqType::VER_GET {
            self.state.resetting = false;
            self.state.hwrm.greeted = true;
            return Ok(self.version());
        }
        if self.state.resetting {
            return Err(HwrmStatus::HOT_RESET_PROGRESS);
        }
        if !self.state.hwrm.greeted {
            self.violation(format_args!("HWRM: {req_type} before VER_GET"));
        }
        let needs_driver = [
            ReqType::FUNC_CFG,
            ReqType::FUNC_DRV_IF_CHANGE,
            ReqType::RING_ALLOC,
            ReqType::STAT_CTX_ALLOC,
            ReqType::VNIC_ALLOC,
        ];
        if needs_driver.contains(&req_type) && !self.state.hwrm.registered {
            self.violation(format_args!("HWRM: {req_type} without a driver"));
            return Err(HwrmStatus::RESOURCE_ACCESS_DENIED);
        }
        match req_type {
            ReqType::FUNC_RESET => {
                self.forget();
                (self.state.hwrm.greeted, self.state.hwrm.was_reset) = (true, true);
                done()
            }
            ReqType::FUNC_DRV_RGTR => {
                if !self.state.hwrm.was_reset {
                    self.violation("HWRM: a driver registers and has not reset the function");
                }
                self.state.hwrm.registered = true;
                done()
            }
            ReqType::FUNC_DRV_UNRGTR => {
                self.state.hwrm.registered = false;
                done()
            }
            ReqType::FUNC_BACKING_STORE_QCAPS if !self.chip.is_p7() => Ok(self.backing_v1()),
            ReqType::FUNC_BACKING_STORE_CFG if !self.chip.is_p7() => {
                self.backing_cfg_v1(&decode(request)).map(|()| vec![0; 8])
            }
            ReqType::FUNC_BACKING_STORE_QCAPS_V2 if self.chip.is_p7() => self.backing_v2(&decode(request)),
            ReqType::FUNC_BACKING_STORE_CFG_V2 if self.chip.is_p7() => {
                self.backing_cfg_v2(&decode(request)).map(|()| vec![0; 8])
            }
            ReqType::FUNC_CFG => self.func_cfg(&decode(request)).map(|()| vec![0; 8]),
            ReqType::RING_ALLOC => {
                let id = self.ring_alloc(&decode(request))?;
                Ok(with(8, &[(0, &id.to_le_bytes()), (2, &id.to_le_bytes())]))
            }
            ReqType::RING_FREE => self.ring_free(&decode(request)).map(|()| vec![0; 8]),
            ReqType::STAT_CTX_ALLOC => {
                let id = self.stat_ctx_alloc(&decode(request))?;
                Ok(with(8, &[(0, &id.to_le_bytes())]))
            }
            ReqType::STAT_CTX_FREE => {
                let id = self.stat_ctx_free(&decode(request))?;
                Ok(with(8, &[(0, &id.to_le_bytes())]))
            }
            ReqType::PORT_QSTATS => self.port_qstats(&decode(request)),
            ReqType::PORT_QSTATS_EXT => self.port_qstats_ext(&decode(request)),
            _ => self.answer(req_type, request),
        }
    }
}

/// Plain success.
pub(super) fn done() -> Answer {
    Ok(vec![0; 8])
}

/// A payload of `len` bytes with some values at offsets behind the header.
pub(super) fn with(len: usize, values: &[(usize, &[u8])]) -> Vec<u8> {
    let mut payload = vec![0; len];
    for (at, value) in values {
        payload[*at..*at + value.len()].copy_from_slice(value);
    }
    payload
}

/// The payload of a whole response.
pub(super) fn payload(response: &impl Response) -> Vec<u8> {
    response.as_bytes()[size_of::<HwrmRespHdr>()..].to_vec()
}
