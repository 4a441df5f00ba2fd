//! HWRM: requests through the mailbox.

use core::time::Duration;

use directverbs::bnxt_re::hwrm::error::ResponseError;
use directverbs::bnxt_re::hwrm::mailbox::{Form, Mailbox, RESPONSE_BYTES, TRIGGER, Ticket, window_words};
use directverbs::bnxt_re::hwrm::message::Request;
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs::bnxt_re::hwrm::version::VerGetOutput;
use directverbs::queue::barrier;
use directverbs::text;
use zerocopy::IntoBytes;

use super::area::{Shared, address, shared};
use super::error::Error;
use crate::clock::{Deadline, Timeout};
use crate::host::Host;
use crate::pci::Config as _;
use crate::registers::Registers;

/// Register that tells how the firmware is.
const STATUS: usize = 0x520;
/// Lower half of the status of a firmware that is well; one that tells nothing has 0.
const HEALTHY: u32 = 0x8000;
/// How long a busy device is left alone.
const BUSY: Duration = Duration::from_millis(1);

/// The channel.
#[derive(Debug)]
pub(super) struct Firmware<H: Host> {
    registers: H::Bar,
    mailbox: Mailbox,
    request: Shared<H>,
    response: Shared<H>,
    /// What a request may take at least.
    least: Duration,
    failed: bool,
}

impl<H: Host> Firmware<H> {
    /// The channel of a function whose registers are mapped. Each request may take `least`, whatever the device says.
    pub fn new(host: &H, registers: H::Bar, least: Duration) -> Result<Self, Error> {
        Ok(Self {
            registers,
            mailbox: Mailbox::new(),
            request: shared(host, RESPONSE_BYTES as u64)?,
            response: shared(host, RESPONSE_BYTES as u64)?,
            least,
            failed: false,
        })
    }

    /// Takes over the limits that the device tells.
    pub fn learn(&mut self, version: &VerGetOutput) {
        self.mailbox.learn(version);
    }

    /// How the firmware is.
    ///
    /// # Errors
    /// The function is gone, or the firmware is not well.
    pub fn health(&self, host: &H) -> Result<(), Error> {
        match self.registers.read32(STATUS) {
            u32::MAX => Err(Error::Gone),
            status if status == 0 || status & 0xffff == HEALTHY => Ok(()),
            _ if host.config().id().is_none() => Err(Error::Gone),
            status => Err(Error::NotReady(status)),
        }
    }

    /// Sends a request and waits for its response, at most for `limit`, or for the usual time if that is longer. A device
    /// that is busy is asked again until then.
    ///
    /// # Errors
    /// No response, one that is none, or one that says no.
    pub fn send<R: Request>(&mut self, host: &H, request: &R, limit: Duration) -> Result<R::Response, Error> {
        let mut request = *request;
        let len = self.carry_out(host, R::TYPE, request.as_mut_bytes(), limit)?;
        Ok(Ticket::response(&self.response, len))
    }

    /// [`Firmware::send`] of bytes, whose header is written here: one copy of the code for all requests. Gives the length of
    /// the response.
    fn carry_out(
        &mut self,
        host: &H,
        req_type: ReqType,
        request: &mut [u8],
        limit: Duration,
    ) -> Result<usize, Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        let usual = Duration::from_millis(self.mailbox.timeout_ms().into());
        let deadline = Deadline::after(host, limit.max(usual).max(self.least));
        let answer = loop {
            match self.once(host, req_type, request, deadline) {
                Err(Error::Response(error)) if error.is_busy() && !deadline.is_over(host) => host.delay(BUSY),
                other => break other,
            }
        };
        if answer.as_ref().is_err_and(|error| !error.is_refusal()) {
            self.failed = true;
        }
        answer
    }

    fn once(
        &mut self,
        host: &H,
        req_type: ReqType,
        request: &mut [u8],
        deadline: Deadline,
    ) -> Result<usize, Error> {
        let form = self.mailbox.form(req_type, request.len())?;
        let ticket = self.mailbox.address(req_type, request, address(&self.response));
        self.response.zero();
        match form {
            Form::Window => self.write(request),
            Form::Short => {
                // It fits: no device takes more than a page.
                if !self.request.store_bytes(0, request) {
                    return Err(Error::Capabilities(text!("requests longer than a page")));
                }
                let short = ticket.short(request.len(), address(&self.request));
                self.write(short.as_bytes());
            }
        }
        let wait = deadline.wait(host, || ticket.poll(&self.response).map_err(Wait::Response));
        match wait {
            Ok(len) => {
                barrier::from_device();
                Ok(len)
            }
            Err(Wait::Response(error)) => Err(Error::of_response(error)),
            Err(Wait::Timeout(timeout)) => {
                self.health(host).map_err(of_health)?;
                Err(Error::NoResponse { req_type, timeout })
            }
        }
    }

    fn write(&self, bytes: &[u8]) {
        for (offset, word) in window_words(bytes, self.mailbox.window()) {
            self.registers.write32(offset, word);
        }
        barrier::to_device();
        self.registers.write32(TRIGGER, 1);
    }

    /// Frees the memory: the device has forgotten it.
    pub fn release(self) {
        self.request.release();
        self.response.release();
    }
}

/// A firmware that has stopped answering and is not well resets itself.
pub(super) const fn of_health(error: Error) -> Error {
    match error {
        Error::NotReady(_) => Error::HotReset,
        other => other,
    }
}

/// How a wait ends.
enum Wait {
    Response(ResponseError),
    Timeout(Timeout),
}

impl From<Timeout> for Wait {
    fn from(timeout: Timeout) -> Self {
        Self::Timeout(timeout)
    }
}
