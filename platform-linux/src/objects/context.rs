//! A context: the device as this process has opened it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use directverbs::verbs::Gid;
use zerocopy::FromBytes;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

use super::event::{AsyncEvent, UserHandle};
use super::port::Port;
use crate::error::{Error, Result};
use crate::sysfs::{Device, GidEntry, GidType};
use crate::uverbs::abi::command::{QUERY_DEVICE, QUERY_DEVICE_EX, ReplyOnly};
use crate::uverbs::abi::methods::{
    async_event_alloc, get_context, query_context, query_gid_table, query_port,
};
use crate::uverbs::abi::packet::AsyncEventRecord;
use crate::uverbs::abi::query::{
    GidRecord, QueryDeviceEx, QueryDeviceExtra, QueryDeviceReply, QueryPortReplyEx,
};
use crate::uverbs::{Call, CommandFile, EventFile, Fd, Kernel, Uhw};

/// GIDs read at once; the largest tables have 1024 a port.
const GIDS: usize = 2047;

bitflags::bitflags! {
    /// What the kernel says that it can do.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct CoreSupport: u64 {
        /// Access flags that a driver may ignore.
        const OPTIONAL_MR_ACCESS = 1;
        /// Drivers refuse what they do not know, instead of ignoring it. Memory for queues can be given only then.
        const ROBUST_UDATA = 1 << 1;
    }
}

/// Limits of a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceLimits {
    /// What every kernel tells.
    pub base: QueryDeviceReply,
    /// What came later; zero where a kernel does not tell it.
    pub extra: QueryDeviceExtra,
}

/// What all objects of a context share.
#[derive(Debug)]
pub(crate) struct Shared {
    events: EventFile,
    file: CommandFile,
    limits: DeviceLimits,
    support: CoreSupport,
    vectors: u32,
    next: AtomicU64,
}

impl Shared {
    pub fn file(&self) -> &CommandFile {
        &self.file
    }

    pub fn limits(&self) -> &QueryDeviceReply {
        &self.limits.base
    }

    pub fn support(&self) -> CoreSupport {
        self.support
    }

    pub fn vectors(&self) -> u32 {
        self.vectors
    }

    pub fn events(&self) -> Fd {
        self.events.fd()
    }

    /// A number for the next object, which events will carry. None is used twice.
    pub fn user_handle(&self) -> UserHandle {
        UserHandle(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub fn query_port(&self, port: u8) -> Result<Port> {
        let mut reply = QueryPortReplyEx::ZERO;
        let mut call = Call::new(&query_port::METHOD);
        call.constant(query_port::PORT_NUM, port.into()).output(query_port::RESP, &mut reply);
        self.file.call(call)?;
        Ok(Port::new(port, &reply))
    }
}

/// An opened device. Clones share it; it is closed when the last clone and the last object of it are gone.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) shared: Arc<Shared>,
}

impl Context {
    /// Opens a device that was found in sysfs. `uhw` is the driver's part.
    ///
    /// # Errors
    /// An ABI that is not supported, no permission, or the driver refuses.
    pub fn open(kernel: Arc<dyn Kernel>, device: &Device, uhw: Uhw<'_>) -> Result<Self> {
        device.check_abi()?;
        Self::open_path(kernel, &device.path(), device.driver.id(), uhw)
    }

    /// Opens a device's file, without looking at sysfs. The driver's id is found by asking if it is not given.
    ///
    /// # Errors
    /// No permission, or the driver refuses.
    pub fn open_path(
        kernel: Arc<dyn Kernel>,
        path: &Path,
        driver_id: Option<u32>,
        uhw: Uhw<'_>,
    ) -> Result<Self> {
        let file = CommandFile::open(kernel, path, driver_id)?;
        let (mut vectors, mut support) = (U32::ZERO, U64::ZERO);
        let mut call = Call::new(&get_context::METHOD);
        call.output(get_context::NUM_COMP_VECTORS, &mut vectors)
            .output(get_context::CORE_SUPPORT, &mut support);
        uhw.add(&mut call);
        file.call(call)?;
        Self::new(file, vectors.get(), support.get())
    }

    /// Takes a context that another library has opened, by its file. The file stays open when the last object is gone.
    ///
    /// # Errors
    /// It is not an opened device, or the kernel cannot be asked about it.
    pub fn import(kernel: Arc<dyn Kernel>, file: Fd, driver_id: Option<u32>) -> Result<Self> {
        let file = CommandFile::import(kernel, file, driver_id)?;
        let (mut vectors, mut support) = (U32::ZERO, U64::ZERO);
        let mut call = Call::new(&query_context::METHOD);
        call.output(query_context::NUM_COMP_VECTORS, &mut vectors)
            .output(query_context::CORE_SUPPORT, &mut support);
        match file.call(call) {
            // Not every driver can be asked. Then the least is assumed: one vector, and no feature.
            Err(error) if error.is_absent() => Self::new(file, 1, 0),
            Err(error) => Err(error),
            Ok(_) => Self::new(file, vectors.get(), support.get()),
        }
    }

    fn new(file: CommandFile, vectors: u32, support: u64) -> Result<Self> {
        let mut call = Call::new(&async_event_alloc::METHOD);
        call.new_file(async_event_alloc::FD_HANDLE);
        let events = file.call(call)?.file(async_event_alloc::FD_HANDLE)?;
        let events = EventFile::new(Arc::clone(file.kernel()), events, "async events")?;
        let limits = query_device(&file)?;
        let support = CoreSupport::from_bits_truncate(support);
        let shared = Shared { events, file, limits, support, vectors, next: AtomicU64::new(1) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Limits of the device.
    pub fn limits(&self) -> &DeviceLimits {
        &self.shared.limits
    }

    /// Features of the kernel.
    pub fn core_support(&self) -> CoreSupport {
        self.shared.support
    }

    /// Interrupts that completion queues can be given.
    pub fn completion_vectors(&self) -> u32 {
        self.shared.vectors
    }

    /// The device's file, for a driver's own calls.
    pub fn file(&self) -> &CommandFile {
        &self.shared.file
    }

    /// State of a port; they count from 1.
    ///
    /// # Errors
    /// There is no such port.
    pub fn query_port(&self, port: u8) -> Result<Port> {
        let ports = self.shared.limits.base.phys_port_cnt;
        super::handle::within("port", "number", port.into(), 1, ports.into())?;
        self.shared.query_port(port)
    }

    /// The GIDs of all ports.
    ///
    /// # Errors
    /// The kernel does not tell them: then they are in sysfs.
    pub fn gids(&self) -> Result<Vec<GidEntry>> {
        let mut records = vec![GidRecord::ZERO; GIDS];
        let mut count = U64::ZERO;
        let mut call = Call::new(&query_gid_table::METHOD);
        call.constant(query_gid_table::ENTRY_SIZE, size_of::<GidRecord>() as u64)
            .value(query_gid_table::FLAGS, U32::ZERO)
            .output_bytes(query_gid_table::RESP_ENTRIES, records.as_mut_bytes())
            .output(query_gid_table::RESP_NUM_ENTRIES, &mut count);
        self.shared.file.call(call)?;
        let count = usize::try_from(count.get()).unwrap_or(usize::MAX);
        let records = records.get(..count).ok_or(Error::Reply {
            object: "GID table",
            method: query_gid_table::METHOD.name,
            what: "more entries than there was room for",
        })?;
        Ok(records.iter().map(gid_entry).collect())
    }

    /// Descriptor that can be read when there is an asynchronous event: for epoll.
    pub fn event_fd(&self) -> Fd {
        self.shared.events()
    }

    /// The next asynchronous event, waiting at most for `timeout`; none if the time is over. The last one of a device that
    /// is removed is [`EventKind::DEVICE_FATAL`](super::EventKind::DEVICE_FATAL): do not wait for another.
    ///
    /// # Errors
    /// The kernel refuses, or the record is not whole.
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<AsyncEvent>> {
        let record = self.shared.events.read::<AsyncEventRecord>("async events", timeout)?;
        Ok(record.map(|r| AsyncEvent::new(&r)))
    }
}

/// Asks for limits the way newer kernels know, and the old way if this one does not.
fn query_device(file: &CommandFile) -> Result<DeviceLimits> {
    const BASE: usize = size_of::<QueryDeviceReply>();
    let mut reply = [0u8; BASE + size_of::<QueryDeviceExtra>()];
    match file.ask(&QUERY_DEVICE_EX, &QueryDeviceEx::ZERO, &mut reply, Uhw::none()) {
        Err(error) if error.is_absent() => {
            let mut base = QueryDeviceReply::ZERO;
            file.ask(&QUERY_DEVICE, &ReplyOnly::ZERO, &mut base, Uhw::none())?;
            return Ok(DeviceLimits { base, extra: QueryDeviceExtra::ZERO });
        }
        result => result?,
    }
    let (base, rest) = QueryDeviceReply::read_from_prefix(&reply).map_err(|_| Error::Reply {
        object: "device",
        method: QUERY_DEVICE_EX.name,
        what: "it is too short",
    })?;
    let extra = QueryDeviceExtra::read_from_bytes(rest).unwrap_or(QueryDeviceExtra::ZERO);
    Ok(DeviceLimits { base, extra })
}

fn gid_entry(record: &GidRecord) -> GidEntry {
    GidEntry {
        port: record.port_num.get() as u8,
        index: record.gid_index.get(),
        gid: Gid(record.gid),
        gid_type: match record.gid_type.get() {
            0 => GidType::InfiniBand,
            1 => GidType::RoceV1,
            2 => GidType::RoceV2,
            _ => GidType::Other,
        },
        netdev: crate::sysfs::Netdev::from_index(record.netdev_ifindex.get()),
    }
}
