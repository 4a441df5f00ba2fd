//! Opening a device.

use std::fmt;
use std::sync::Arc;

use super::Device;
use crate::error::{Error, Result};
use crate::host::Origin;
use crate::sysfs::{self, Driver, GidWish, Sysfs, check_link, choose_gid};
use crate::uverbs::{Fd, Kernel, Linux};
use crate::{bnxt_re, ionic};

/// Which end of a device is used, and how.
///
/// ```no_run
/// # fn main() -> directverbs_linux::Result<()> {
/// use directverbs_linux::OpenOptions;
/// use directverbs_linux::sysfs::GidWish;
///
/// let wish = GidWish { index: Some(3), ..GidWish::default() };
/// let device = OpenOptions::new().port(1).gid(wish).open("bnxt_re0")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenOptions {
    kernel: Arc<dyn Kernel>,
    sysfs: Sysfs,
    port: u8,
    gid: GidWish,
    bnxt_re: bnxt_re::datapath::Settings,
    ionic: ionic::datapath::Settings,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            kernel: Arc::new(Linux),
            sysfs: Sysfs::default(),
            port: 1,
            gid: GidWish::default(),
            bnxt_re: bnxt_re::datapath::Settings::default(),
            ionic: ionic::datapath::Settings::default(),
        }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sysfs, port, gid, bnxt_re, ionic, .. } = self;
        let mut debug = f.debug_struct("OpenOptions");
        debug.field("sysfs", sysfs).field("port", port).field("gid", gid);
        debug.field("bnxt_re", bnxt_re).field("ionic", ionic).finish_non_exhaustive()
    }
}

impl OpenOptions {
    /// Port 1, the GID that reaches most peers, and all that the device is good for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks `kernel` instead of the one that this process runs on.
    #[must_use]
    pub fn kernel(self, kernel: Arc<dyn Kernel>) -> Self {
        Self { kernel, ..self }
    }

    /// Looks for devices in `sysfs`.
    #[must_use]
    pub fn sysfs(self, sysfs: Sysfs) -> Self {
        Self { sysfs, ..self }
    }

    /// Uses this port; they count from 1.
    #[must_use]
    pub fn port(self, port: u8) -> Self {
        Self { port, ..self }
    }

    /// Sends from a GID that fits.
    #[must_use]
    pub fn gid(self, gid: GidWish) -> Self {
        Self { gid, ..self }
    }

    /// What a bnxt_re device makes use of.
    #[must_use]
    pub fn bnxt_re(self, settings: bnxt_re::datapath::Settings) -> Self {
        Self { bnxt_re: settings, ..self }
    }

    /// What an ionic device makes use of.
    #[must_use]
    pub fn ionic(self, settings: ionic::datapath::Settings) -> Self {
        Self { ionic: settings, ..self }
    }

    /// Opens the device called `name`.
    ///
    /// # Errors
    /// There is no such device or port, its driver is neither bnxt_re nor ionic, the port is down or has no GID that fits, or
    /// what [`bnxt_re::Context::open`] and [`ionic::Context::open`] refuse.
    pub fn open(&self, name: &str) -> Result<Device> {
        let found = sysfs::Device::find(&self.sysfs, name)?;
        match found.driver {
            Driver::BnxtRe => self.open_bnxt_re(&found).map(Device::BnxtRe),
            Driver::Ionic => self.open_ionic(&found).map(Device::Ionic),
            Driver::Rxe | Driver::Other => Err(Error::Unsupported {
                object: "device",
                feature: "a datapath for its driver",
                needs: "a device of bnxt_re or ionic",
            }),
        }
    }

    /// Opens a bnxt_re device that was found in sysfs.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open_bnxt_re(&self, found: &sysfs::Device) -> Result<bnxt_re::Device> {
        let origin = self.origin(found)?;
        let context = bnxt_re::Context::open(Arc::clone(&self.kernel), found)?;
        bnxt_re::Device::new(context, origin, self.bnxt_re)
    }

    /// Opens an ionic device that was found in sysfs.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open_ionic(&self, found: &sysfs::Device) -> Result<ionic::Device> {
        let origin = self.origin(found)?;
        let context = ionic::Context::open(Arc::clone(&self.kernel), found)?;
        ionic::Device::new(context, origin, self.ionic)
    }

    /// Takes a context of the device called `name` that another library has opened, by its file: `cmd_fd` of an `ibv_context`.
    /// Objects of either library go together. Those of the other one are never destroyed here, and its file stays open.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`], or it is not an opened device.
    pub fn import(&self, name: &str, cmd_fd: Fd) -> Result<Device> {
        let found = sysfs::Device::find(&self.sysfs, name)?;
        let (origin, kernel) = (self.origin(&found)?, Arc::clone(&self.kernel));
        Ok(match found.driver {
            Driver::Ionic => {
                let context = ionic::Context::import(kernel, &found, cmd_fd)?;
                Device::Ionic(ionic::Device::new(context, origin, self.ionic)?)
            }
            _ => {
                let context = bnxt_re::Context::import(kernel, &found, cmd_fd)?;
                Device::BnxtRe(bnxt_re::Device::new(context, origin, self.bnxt_re)?)
            }
        })
    }

    /// Our end of the wire at a device.
    ///
    /// # Errors
    /// There is no such port, it is down, or it has no GID that fits.
    pub fn origin(&self, found: &sysfs::Device) -> Result<Origin> {
        let number = self.port;
        let ports = found.ports()?;
        let port = ports.iter().find(|p| p.number == number).ok_or_else(|| Error::Limit {
            object: "device",
            attribute: "port",
            given: number.into(),
            min: 1,
            max: ports.len() as u64,
        })?;
        check_link(port, None)?;
        let entry = choose_gid(&port.gids, &self.gid).map_err(|error| Error::Gid { port: number, error })?;
        let gid_index = u8::try_from(entry.index).map_err(|_| Error::Limit {
            object: "port",
            attribute: "GID index",
            given: entry.index.into(),
            min: 0,
            max: u8::MAX.into(),
        })?;
        Ok(Origin { port: number, gid: entry.gid, gid_index, mac: port.mac.unwrap_or_default() })
    }
}
