//! Opened files: the device's, to which calls and commands go, and those that yield events.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::abi::attribute::Method;
use super::abi::command::{Command, QUERY_DEVICE};
use super::abi::methods::{destroy, invoke_write};
use super::call::{Answer, Call};
use super::command::{Uhw, invoke, written};
use super::kernel::{Fd, Kernel, Protection};
use super::mapping::Mapping;
use crate::error::{Error, Remedy, Result, means_absent};

/// Highest driver id that is looked for.
const DRIVER_IDS: u32 = 64;

/// A device's file. It is closed when dropped, and with it everything that was created through it.
pub struct CommandFile {
    kernel: Arc<dyn Kernel>,
    fd: Fd,
    /// Whether to close it.
    owned: bool,
    driver_id: u32,
    /// Process that has opened it.
    owner: u32,
    /// There is a method for commands.
    invoke_write: bool,
}

impl CommandFile {
    /// Opens a device's file.
    ///
    /// The kernel takes calls only under the driver's id; without one given, it is found by asking.
    ///
    /// # Errors
    /// The file cannot be opened, or `driver_id` is not that of its driver.
    pub fn open(kernel: Arc<dyn Kernel>, path: &Path, driver_id: Option<u32>) -> Result<Self> {
        let fd = kernel.open(path).map_err(|errno| Error::Open {
            path: path.to_owned(),
            errno,
            remedy: Remedy::for_open(errno),
        })?;
        Self::probe(kernel, fd, true, driver_id)
    }

    /// Takes a file that somebody else has opened, and leaves it open.
    ///
    /// # Errors
    /// `driver_id` is not that of its driver.
    pub fn import(kernel: Arc<dyn Kernel>, fd: Fd, driver_id: Option<u32>) -> Result<Self> {
        Self::probe(kernel, fd, false, driver_id)
    }

    fn probe(kernel: Arc<dyn Kernel>, fd: Fd, owned: bool, driver_id: Option<u32>) -> Result<Self> {
        let owner = kernel.process();
        let mut file = Self { kernel, fd, owned, driver_id: 0, owner, invoke_write: true };
        let candidates = driver_id.map_or(0..DRIVER_IDS, |id| id..id.saturating_add(1));
        for id in candidates {
            file.driver_id = id;
            // A command without its body: refused for its length if commands are taken, and with EINVAL if the
            // driver's id is wrong.
            let mut call = Call::new(&invoke_write::METHOD);
            call.constant(invoke_write::WRITE_CMD, QUERY_DEVICE.number.into());
            let packet = call.packet(id)?;
            match file.send(&call, packet) {
                Err(Errno::INVAL) => {}
                Err(errno) if means_absent(errno) => {
                    file.invoke_write = false;
                    return Ok(file);
                }
                Ok(_) | Err(Errno::NOSPC) => return Ok(file),
                Err(errno) => return Err(file.refused("device", invoke_write::METHOD.name, errno)),
            }
        }
        Err(Error::Value {
            object: "device",
            attribute: "driver id",
            what: "is not that of the device's driver",
        })
    }

    /// The kernel behind it.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.kernel
    }

    /// Number of the driver, `rdma_driver_id`.
    pub fn driver_id(&self) -> u32 {
        self.driver_id
    }

    /// Its descriptor.
    pub fn fd(&self) -> Fd {
        self.fd
    }

    /// Whether commands go through ioctl.
    pub fn has_invoke_write(&self) -> bool {
        self.invoke_write
    }

    /// Sends a call.
    ///
    /// Only this crate does: values may carry addresses of memory that a device writes to later, and it is the object made
    /// of the call that keeps such memory.
    ///
    /// # Errors
    /// It is not whole, the kernel refuses it, or this process has not opened the file.
    pub(crate) fn call(&self, call: Call<'_>) -> Result<Answer> {
        let Method { object, name, .. } = call.method();
        self.check_owner(object)?;
        let packet = call.packet(self.driver_id)?;
        self.send(&call, packet).map_err(|errno| self.refused(object, name, errno))
    }

    /// Sends a command, with the driver's parts if it has any: for what this crate has no object for.
    ///
    /// # Errors
    /// It is not whole, the kernel refuses it, or this process has not opened the file.
    ///
    /// # Safety
    /// As for [`Uhw::request`], of the addresses in `core` too.
    pub unsafe fn command<C, R>(&self, command: &Command, core: &C, reply: &mut R, uhw: Uhw<'_>) -> Result<()>
    where
        C: IntoBytes + Immutable,
        R: IntoBytes + FromBytes,
    {
        self.ask(command, core, reply, uhw)
    }

    /// The same, from within this crate, where the object made by the command keeps the memory that it names.
    pub(crate) fn ask<C, R>(&self, command: &Command, core: &C, reply: &mut R, uhw: Uhw<'_>) -> Result<()>
    where
        C: IntoBytes + Immutable,
        R: IntoBytes + FromBytes,
    {
        self.check_owner(command.object)?;
        let refused = |errno| self.refused(command.object, command.name, errno);
        if self.invoke_write {
            let call = invoke(command, core.as_bytes(), reply.as_mut_bytes(), uhw);
            let packet = call.packet(self.driver_id)?;
            return self.send(&call, packet).map(|_| ()).map_err(refused);
        }
        let core_reply = size_of::<R>();
        let mut replies = vec![0; core_reply + uhw.output.len()];
        let bytes = written(command, core.as_bytes(), core_reply, uhw.input, &mut replies)?;
        // SAFETY: the command names `replies`, which is as long as its header says and not used until the call is over.
        let count = unsafe { self.kernel.write(self.fd, &bytes) }.map_err(refused)?;
        if count != bytes.len() {
            return Err(refused(Errno::IO));
        }
        let (core, driver) = replies.split_at(core_reply);
        reply.as_mut_bytes().copy_from_slice(core);
        uhw.output.copy_from_slice(driver);
        Ok(())
    }

    /// Destroys an object by a method that takes nothing but its handle. An object of a device that is gone is gone, too.
    ///
    /// # Errors
    /// The kernel refuses: something else refers to it.
    pub fn destroy(&self, method: &'static Method, handle: u32) -> Result<()> {
        let mut call = Call::new(method);
        call.handle(destroy::HANDLE, handle);
        self.finish(call)
    }

    /// Sends a call that destroys an object.
    ///
    /// # Errors
    /// As for [`CommandFile::destroy`].
    pub(crate) fn finish(&self, call: Call<'_>) -> Result<()> {
        match self.call(call) {
            Err(error) if !matches!(error.errno(), Some(Errno::IO | Errno::NODEV)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Maps what the kernel offers under the cookie `offset`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn map(
        &self,
        offset: u64,
        length: usize,
        protection: Protection,
        object: &'static str,
    ) -> Result<Mapping> {
        self.check_owner(object)?;
        Mapping::of_file(&self.kernel, self.fd, offset, length, protection, object)
    }

    /// A child after fork shares the file, but the objects are its parent's: it must neither use nor destroy them.
    fn check_owner(&self, object: &'static str) -> Result<()> {
        if self.kernel.process() == self.owner {
            return Ok(());
        }
        Err(Error::Forked { object, owner: self.owner })
    }

    /// Sends `words`, the packet of `call`.
    fn send(&self, call: &Call<'_>, mut words: Vec<u64>) -> std::result::Result<Answer, Errno> {
        // SAFETY: every address in the packet comes from a slice that the call has borrowed, shared for inputs and
        // exclusively for outputs, with that slice's length beside it, and the call is still alive.
        unsafe { self.kernel.ioctl(self.fd, &mut words) }?;
        Ok(Answer::new(call.method(), words))
    }

    fn refused(&self, object: &'static str, method: &'static str, errno: Errno) -> Error {
        let remedy = Remedy::for_call(errno, self.kernel.memlock_limit());
        Error::Call { object, method, errno, remedy }
    }
}

impl fmt::Debug for CommandFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandFile({:?}, driver {})", self.fd, self.driver_id)
    }
}

impl Drop for CommandFile {
    fn drop(&mut self) {
        if self.owned {
            self.kernel.close(self.fd);
        }
    }
}

/// A file that yields records of events. It is closed when dropped.
pub struct EventFile {
    kernel: Arc<dyn Kernel>,
    fd: Fd,
}

impl EventFile {
    /// Owns `fd`. Reading it will not wait: that is [`EventFile::read`]'s, and another thread may be faster.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new(kernel: Arc<dyn Kernel>, fd: Fd, object: &'static str) -> Result<Self> {
        let file = Self { kernel, fd };
        match file.kernel.set_nonblocking(fd, true) {
            Ok(()) => Ok(file),
            Err(errno) => Err(file.failed(object, "fcntl", errno)),
        }
    }

    /// Its descriptor, for epoll: readable when there is an event.
    pub fn fd(&self) -> Fd {
        self.fd
    }

    /// The next record, waiting at most for `timeout`; none if the time is over. Signals neither end the wait nor lengthen it.
    ///
    /// # Errors
    /// The device is gone, or the record is not whole.
    pub fn read<T: FromBytes + IntoBytes>(
        &self,
        object: &'static str,
        timeout: Option<Duration>,
    ) -> Result<Option<T>> {
        // A time that does not fit is as good as none.
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            match self.kernel.wait_readable(self.fd, left) {
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(self.failed(object, "poll", errno)),
                Ok(false) => return Ok(None),
                Ok(true) => {}
            }
            let mut record = T::new_zeroed();
            match self.kernel.read(self.fd, record.as_mut_bytes()) {
                // Another thread was faster, or a signal came in between.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(self.failed(object, "read", errno)),
                Ok(count) if count == size_of::<T>() => return Ok(Some(record)),
                Ok(_) => {
                    return Err(Error::Reply { object, method: "read", what: "a record that is not whole" });
                }
            }
        }
    }

    fn failed(&self, object: &'static str, method: &'static str, errno: Errno) -> Error {
        Error::Call { object, method, errno, remedy: Remedy::for_call(errno, self.kernel.memlock_limit()) }
    }
}

impl fmt::Debug for EventFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventFile({:?})", self.fd)
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        self.kernel.close(self.fd);
    }
}
