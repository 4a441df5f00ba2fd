//! The device's registers: is it there, and device commands.

use directverbs::ionic::devcmd::registers::{
    COMMAND_BYTES, COMPLETION_BYTES, DEV_CMD_COMMAND, DEV_CMD_COMPLETION, DEV_CMD_DATA, DEV_CMD_DONE,
    DEV_CMD_DOORBELL, DEV_INFO, DONE, FwStatus, GO, SIGNATURE,
};
use directverbs::ionic::devcmd::{Command, CommandError, Opcode};

use super::config::Config;
use super::error::Cause;
use crate::clock::Deadline;
use crate::host::Host;
use crate::registers::Registers;

/// What a function reads as that is not there.
const ONES: u32 = u32::MAX;
/// The word of the device's information whose highest byte is the state of the firmware.
const STATUS_WORD: usize = DEV_INFO + 4;
/// Where the firmware counts its heartbeats.
const HEARTBEAT: usize = 8;

/// The host, and the registers of the device.
#[derive(Debug)]
pub(super) struct Link<H: Host> {
    pub host: H,
    pub bar: H::Bar,
    pub config: Config,
    /// Generation of the firmware that the device was opened with.
    generation: u8,
    /// The firmware's heartbeat as it was last seen, and since when.
    heart: (u32, u64),
}

impl<H: Host> Link<H> {
    /// Looks at the device behind `bar`.
    pub fn new(host: H, bar: H::Bar, config: Config) -> Result<Self, (H, Cause)> {
        let mut link = Self { host, bar, config, generation: 0, heart: (0, 0) };
        match link.begin() {
            Ok(()) => Ok(link),
            Err(cause) => Err((link.host, cause)),
        }
    }

    /// Looks at the device that is there now.
    pub fn begin(&mut self) -> Result<(), Cause> {
        self.signature()?;
        self.generation = self.status()?.generation();
        self.heart = (self.bar.read32(DEV_INFO + HEARTBEAT), self.host.now_ns());
        Ok(())
    }

    fn signature(&self) -> Result<(), Cause> {
        match self.bar.read32(DEV_INFO) {
            SIGNATURE => Ok(()),
            ONES => Err(Cause::Gone),
            other => Err(Cause::Signature(other)),
        }
    }

    fn status(&self) -> Result<FwStatus, Cause> {
        let [.., status] = self.bar.read32(STATUS_WORD).to_le_bytes();
        match FwStatus::from_bits(status) {
            FwStatus::GONE => Err(Cause::Gone),
            status if status.running() => Ok(status),
            status => Err(Cause::FirmwareDown(status.into_bits())),
        }
    }

    /// The device is there, and is the one that was opened.
    pub fn alive(&self) -> Result<(), Cause> {
        let now = self.status()?.generation();
        if now == self.generation { Ok(()) } else { Err(Cause::HotReset { was: self.generation, now }) }
    }

    /// The firmware's heart beats, if it has one: a count that stays 0 says that it does not count.
    pub fn heartbeat(&mut self) -> Result<(), Cause> {
        let (beat, now) = (self.bar.read32(DEV_INFO + HEARTBEAT), self.host.now_ns());
        if beat != self.heart.0 {
            self.heart = (beat, now);
        }
        let limit = self.config.heartbeat_limit;
        let stood = now.saturating_sub(self.heart.1);
        if beat == 0 || u128::from(stood) <= limit.as_nanos() {
            return Ok(());
        }
        Err(Cause::Heartbeat { beat, limit })
    }

    /// The end of a wait that begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(&self.host, self.config.command_limit)
    }

    /// Waits until `look` has found something, as long as the device is there.
    pub fn wait<T>(
        &self,
        deadline: Deadline,
        mut look: impl FnMut() -> Result<Option<T>, Cause>,
    ) -> Result<T, Cause> {
        deadline.wait(&self.host, || match look()? {
            Some(found) => Ok(Some(found)),
            None => self.alive().map(|()| None),
        })
    }

    /// Waits before a command is sent again; `false` if it is too late for that.
    pub fn pause(&self, deadline: Deadline, error: &CommandError) -> bool {
        let again = error.status.is_retry() && !deadline.is_over(&self.host);
        if again {
            self.host.delay(self.config.retry_pause);
        }
        again
    }

    /// Has the device carry out `cmd` with `data` beside it, and reads as much data as `out` has room for.
    pub fn command<C: Command>(&self, cmd: &C, data: &[u8], out: &mut [u8]) -> Result<C::Completion, Cause> {
        Ok(C::completion(&self.carry_out(C::OPCODE, &cmd.to_bytes(), data, out)?)?)
    }

    /// [`Link::command`] of bytes: one copy of the code for all commands.
    fn carry_out(
        &self,
        opcode: Opcode,
        cmd: &[u8; COMMAND_BYTES],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<[u8; COMPLETION_BYTES], Cause> {
        let deadline = self.deadline();
        loop {
            let bytes = self.once(cmd, data, deadline)?;
            match CommandError::check(opcode, &bytes) {
                Ok(()) => {
                    self.bar.read_words(DEV_CMD_DATA, out);
                    return Ok(bytes);
                }
                Err(error) if self.pause(deadline, &error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn once(
        &self,
        cmd: &[u8; COMMAND_BYTES],
        data: &[u8],
        deadline: Deadline,
    ) -> Result<[u8; COMPLETION_BYTES], Cause> {
        self.bar.write_words(DEV_CMD_DATA, data);
        self.bar.write_words(DEV_CMD_COMMAND, cmd);
        self.bar.write32(DEV_CMD_DONE, 0);
        // An old answer must not be taken for the new one.
        match self.bar.read32(DEV_CMD_DONE) {
            ONES => return Err(Cause::Gone),
            done if done & DONE != 0 => return Err(Cause::NotCleared),
            _ => {}
        }
        self.bar.write32(DEV_CMD_DOORBELL, GO);
        self.wait(deadline, || match self.bar.read32(DEV_CMD_DONE) {
            ONES => Err(Cause::Gone),
            done => Ok((done & DONE != 0).then_some(())),
        })?;
        let mut bytes = [0; COMPLETION_BYTES];
        self.bar.read_words(DEV_CMD_COMPLETION, &mut bytes);
        if bytes == [0xff; COMPLETION_BYTES] {
            return Err(Cause::Gone);
        }
        Ok(bytes)
    }
}
