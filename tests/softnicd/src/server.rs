//! A software NIC behind a vfio-user socket.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use directverbs_softnic::pci::{CommandFaults, Endpoint, Function, MsixOwner, Port, Trace};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_INFO_NORESIZE, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX,
    VFIO_PCI_NUM_IRQS, VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE,
    vfio_region_info,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion};

use crate::memory::Guest;
use crate::plan::Plan;

/// Bytes of configuration space.
const CONFIG: u64 = 4096;
/// How long a device that says nothing is left alone.
const NAP: Duration = Duration::from_millis(10);

/// Why a device cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// What is left at the socket's path cannot be removed.
    #[error(transparent)]
    Path(#[from] io::Error),
    /// The socket, or the connection on it.
    #[error(transparent)]
    Socket(#[from] vfio_user::Error),
}

/// A device that can be connected to.
pub struct Device {
    server: Server,
    shared: Arc<Shared>,
}

struct Shared {
    endpoint: Mutex<Endpoint>,
    guest: Arc<Guest>,
}

impl Shared {
    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device {
    /// Builds a device and listens on the socket at `path`. A socket that is left there from before is removed.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn listen(
        path: &Path,
        plan: &Plan,
        trace: Trace,
        build: impl FnOnce(Port) -> Box<dyn Function>,
    ) -> Result<Self, ServeError> {
        let guest = Arc::new(Guest::default());
        let faults = CommandFaults::default();
        if let Some((at, fault)) = plan.command {
            faults.strike(at, fault);
        }
        let endpoint = Endpoint::new(guest.clone(), faults, trace, build);
        if let Some((at, fault)) = plan.access {
            endpoint.faults().strike(at, fault);
        }
        endpoint.gate().set_msix_owner(MsixOwner::Host);
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
            fs::remove_file(path)?;
        }
        let server = Server::new(path, true, interrupts(&endpoint), regions(&endpoint))?;
        Ok(Self { server, shared: Arc::new(Shared { endpoint: Mutex::new(endpoint), guest }) })
    }

    /// Serves one client after another, each with the device as after power-on. Returns when the socket fails.
    pub fn serve(self) -> ServeError {
        let shared = self.shared.clone();
        std::thread::spawn(move || {
            loop {
                shared.guest.wait(NAP);
                shared.endpoint().service();
            }
        });
        loop {
            let ended = self.server.run(&mut Client(&self.shared));
            self.shared.guest.clear();
            self.shared.endpoint().reset();
            // A client may go whenever it likes, also in the middle of a message.
            if let Err(error @ vfio_user::Error::SocketAccept(_)) = ended {
                return error.into();
            }
        }
    }
}

fn regions(endpoint: &Endpoint) -> Vec<ServerRegion> {
    let identity = endpoint.identity();
    let len = |index: u32| match index {
        VFIO_PCI_CONFIG_REGION_INDEX => CONFIG,
        _ => identity.bars.iter().find(|bar| u32::from(bar.index) == index).map_or(0, |bar| bar.len),
    };
    let region = |index| {
        let size = len(index);
        let flags = if size > 0 { VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE } else { 0 };
        let argsz = size_of::<vfio_region_info>() as u32;
        let region_info = vfio_region_info { argsz, flags, index, size, ..Default::default() };
        ServerRegion { region_info, sparse_areas: Vec::new(), mmap_fd: None }
    };
    (0..VFIO_PCI_NUM_REGIONS).map(region).collect()
}

fn interrupts(endpoint: &Endpoint) -> Vec<IrqInfo> {
    let vectors = endpoint.identity().msix.map_or(0, |msix| msix.vectors.into());
    let interrupt = |index| match index {
        VFIO_PCI_MSIX_IRQ_INDEX => {
            IrqInfo { index, flags: VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE, count: vectors }
        }
        _ => IrqInfo { index, flags: 0, count: 0 },
    };
    (0..VFIO_PCI_NUM_IRQS).map(interrupt).collect()
}

/// What a client's messages do.
struct Client<'d>(&'d Shared);

impl ServerBackend for Client<'_> {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let mut endpoint = self.0.endpoint();
        match (region, u8::try_from(region)) {
            (VFIO_PCI_CONFIG_REGION_INDEX, _) => {
                endpoint.config_read(u16::try_from(offset).map_err(io::Error::other)?, data);
            }
            (0..VFIO_PCI_CONFIG_REGION_INDEX, Ok(bar)) => endpoint.bar_read(bar, offset, data),
            _ => data.fill(0xff),
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut endpoint = self.0.endpoint();
        match (region, u8::try_from(region)) {
            (VFIO_PCI_CONFIG_REGION_INDEX, _) => {
                endpoint.config_write(u16::try_from(offset).map_err(io::Error::other)?, data);
            }
            (0..VFIO_PCI_CONFIG_REGION_INDEX, Ok(bar)) => endpoint.bar_write(bar, offset, data),
            _ => {}
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        _: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        file: Option<File>,
    ) -> io::Result<()> {
        // What comes without a file is no memory (firmware and devices of QEMU): it is not reached.
        file.map_or(Ok(()), |file| self.0.guest.map(&file, offset, address, size))
    }

    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        // QEMU's flag for all is another one than the crate knows; then there is no range.
        if flags.contains(DmaUnmapFlags::UNMAP_ALL) || (address, size) == (0, 0) {
            self.0.guest.unmap_all();
        } else {
            self.0.guest.unmap(address, size);
        }
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.0.endpoint().reset();
        Ok(())
    }

    fn set_irqs(&mut self, index: u32, _: u32, start: u32, count: u32, events: Vec<File>) -> io::Result<()> {
        if index == VFIO_PCI_MSIX_IRQ_INDEX {
            self.0.guest.set_vectors(start, count, events);
        }
        Ok(())
    }
}
