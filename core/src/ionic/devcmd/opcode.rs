//! Opcodes of device commands and of the Ethernet admin queue, which share one list, and what comes back.
//! Source: Linux `ionic_if.h`.

use core::fmt;

/// What a command does. Open: devices may know others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

impl Opcode {
    /// Nothing.
    pub const NOP: Self = Self(0);
    /// Tells what the device is.
    pub const IDENTIFY: Self = Self(1);
    /// Initialises the device.
    pub const INIT: Self = Self(2);
    /// Resets the device: everything that was created is gone.
    pub const RESET: Self = Self(3);
    /// Tells what the port is.
    pub const PORT_IDENTIFY: Self = Self(10);
    /// Configures the port.
    pub const PORT_INIT: Self = Self(11);
    /// Resets the port.
    pub const PORT_RESET: Self = Self(12);
    /// Reads an attribute of the port.
    pub const PORT_GETATTR: Self = Self(13);
    /// Sets an attribute of the port.
    pub const PORT_SETATTR: Self = Self(14);
    /// Tells what a logical interface (LIF) can do.
    pub const LIF_IDENTIFY: Self = Self(20);
    /// Initialises a LIF.
    pub const LIF_INIT: Self = Self(21);
    /// Resets a LIF.
    pub const LIF_RESET: Self = Self(22);
    /// Reads an attribute of a LIF.
    pub const LIF_GETATTR: Self = Self(23);
    /// Sets an attribute of a LIF.
    pub const LIF_SETATTR: Self = Self(24);
    /// Sets which frames a LIF takes.
    pub const RX_MODE_SET: Self = Self(30);
    /// Adds a receive filter.
    pub const RX_FILTER_ADD: Self = Self(31);
    /// Removes a receive filter.
    pub const RX_FILTER_DEL: Self = Self(32);
    /// Tells what a kind of queue can do.
    pub const Q_IDENTIFY: Self = Self(39);
    /// Creates a queue.
    pub const Q_INIT: Self = Self(40);
    /// Starts or stops a queue.
    pub const Q_CONTROL: Self = Self(41);
    /// Resets a LIF's RDMA part.
    pub const RDMA_RESET_LIF: Self = Self(50);
    /// Creates an event queue.
    pub const RDMA_CREATE_EQ: Self = Self(51);
    /// Creates a completion queue for an RDMA admin queue.
    pub const RDMA_CREATE_CQ: Self = Self(52);
    /// Creates an RDMA admin queue.
    pub const RDMA_CREATE_ADMINQ: Self = Self(53);
    /// Tells where controller memory is.
    pub const DISCOVER_CMB: Self = Self(80);

    /// Tells which classes of service there are.
    pub const QOS_CLASS_IDENTIFY: Self = Self(240);
    /// Sets a class of service up.
    pub const QOS_CLASS_INIT: Self = Self(241);
    /// Takes a class of service back.
    pub const QOS_CLASS_RESET: Self = Self(242);
    /// Changes a class of service. What goes with it is not known here.
    pub const QOS_CLASS_UPDATE: Self = Self(243);
    /// Clears what classes of service have counted. What goes with it is not known here.
    pub const QOS_CLEAR_STATS: Self = Self(244);
    /// Takes all classes of service back. What goes with it is not known here.
    pub const QOS_RESET: Self = Self(245);
    /// Brings a part of a firmware image to the device.
    pub const FW_DOWNLOAD: Self = Self(252);
    /// Does something with firmware.
    pub const FW_CONTROL: Self = Self(253);
    /// [`Self::FW_DOWNLOAD`], the older of the two.
    pub const FW_DOWNLOAD_V1: Self = Self(254);
    /// [`Self::FW_CONTROL`], the older of the two.
    pub const FW_CONTROL_V1: Self = Self(255);

    /// Its name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(opcode, _)| *opcode == self).map(|(_, name)| *name)
    }
}

const NAMES: &[(Opcode, &str)] = &[
    (Opcode::NOP, "NOP"),
    (Opcode::IDENTIFY, "IDENTIFY"),
    (Opcode::INIT, "INIT"),
    (Opcode::RESET, "RESET"),
    (Opcode::PORT_IDENTIFY, "PORT_IDENTIFY"),
    (Opcode::PORT_INIT, "PORT_INIT"),
    (Opcode::PORT_RESET, "PORT_RESET"),
    (Opcode::PORT_GETATTR, "PORT_GETATTR"),
    (Opcode::PORT_SETATTR, "PORT_SETATTR"),
    (Opcode::LIF_IDENTIFY, "LIF_IDENTIFY"),
    (Opcode::LIF_INIT, "LIF_INIT"),
    (Opcode::LIF_RESET, "LIF_RESET"),
    (Opcode::LIF_GETATTR, "LIF_GETATTR"),
    (Opcode::LIF_SETATTR, "LIF_SETATTR"),
    (Opcode::RX_MODE_SET, "RX_MODE_SET"),
    (Opcode::RX_FILTER_ADD, "RX_FILTER_ADD"),
    (Opcode::RX_FILTER_DEL, "RX_FILTER_DEL"),
    (Opcode::Q_IDENTIFY, "Q_IDENTIFY"),
    (Opcode::Q_INIT, "Q_INIT"),
    (Opcode::Q_CONTROL, "Q_CONTROL"),
    (Opcode::RDMA_RESET_LIF, "RDMA_RESET_LIF"),
    (Opcode::RDMA_CREATE_EQ, "RDMA_CREATE_EQ"),
    (Opcode::RDMA_CREATE_CQ, "RDMA_CREATE_CQ"),
    (Opcode::RDMA_CREATE_ADMINQ, "RDMA_CREATE_ADMINQ"),
    (Opcode::DISCOVER_CMB, "DISCOVER_CMB"),
    (Opcode::QOS_CLASS_IDENTIFY, "QOS_CLASS_IDENTIFY"),
    (Opcode::QOS_CLASS_INIT, "QOS_CLASS_INIT"),
    (Opcode::QOS_CLASS_RESET, "QOS_CLASS_RESET"),
    (Opcode::QOS_CLASS_UPDATE, "QOS_CLASS_UPDATE"),
    (Opcode::QOS_CLEAR_STATS, "QOS_CLEAR_STATS"),
    (Opcode::QOS_RESET, "QOS_RESET"),
    (Opcode::FW_DOWNLOAD, "FW_DOWNLOAD"),
    (Opcode::FW_CONTROL, "FW_CONTROL"),
    (Opcode::FW_DOWNLOAD_V1, "FW_DOWNLOAD_V1"),
    (Opcode::FW_CONTROL_V1, "FW_CONTROL_V1"),
];

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "opcode {}", self.0),
        }
    }
}

/// How a command ended. Open: devices may report others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// Done.
    pub const SUCCESS: Self = Self(0);
    /// The version asked for is none of the device's.
    pub const EVERSION: Self = Self(1);
    /// Unknown opcode.
    pub const EOPCODE: Self = Self(2);
    /// Input or output failed.
    pub const EIO: Self = Self(3);
    /// Not allowed.
    pub const EPERM: Self = Self(4);
    /// Bad queue number.
    pub const EQID: Self = Self(5);
    /// Bad queue type.
    pub const EQTYPE: Self = Self(6);
    /// No such object.
    pub const ENOENT: Self = Self(7);
    /// Interrupted.
    pub const EINTR: Self = Self(8);
    /// Not now; ask again.
    pub const EAGAIN: Self = Self(9);
    /// Out of memory.
    pub const ENOMEM: Self = Self(10);
    /// Bad address.
    pub const EFAULT: Self = Self(11);
    /// Busy.
    pub const EBUSY: Self = Self(12);
    /// It exists already.
    pub const EEXIST: Self = Self(13);
    /// A field makes no sense.
    pub const EINVAL: Self = Self(14);
    /// Out of space.
    pub const ENOSPC: Self = Self(15);
    /// A field is out of range.
    pub const ERANGE: Self = Self(16);
    /// A descriptor has a bad address.
    pub const BAD_ADDR: Self = Self(17);
    /// Not as a device command.
    pub const DEV_CMD: Self = Self(18);
    /// Not supported.
    pub const ENOSUPP: Self = Self(19);
    /// Failed.
    pub const ERROR: Self = Self(29);
    /// RDMA failed.
    pub const ERDMA: Self = Self(30);
    /// Bad virtual function.
    pub const EVFID: Self = Self(31);
    /// Bad firmware.
    pub const EBAD_FW: Self = Self(32);

    /// The command was carried out.
    pub const fn is_success(self) -> bool {
        self.0 == Self::SUCCESS.0
    }

    /// The command was not carried out, and the same command may succeed later.
    pub const fn is_retry(self) -> bool {
        self.0 == Self::EAGAIN.0
    }

    /// Its name and what it says, if the code is known.
    pub fn meaning(self) -> Option<(&'static str, &'static str)> {
        MEANINGS.iter().find(|(status, ..)| *status == self).map(|(_, name, meaning)| (*name, *meaning))
    }
}

const MEANINGS: &[(Status, &str, &str)] = &[
    (Status::SUCCESS, "SUCCESS", "done"),
    (Status::EVERSION, "EVERSION", "no such version"),
    (Status::EOPCODE, "EOPCODE", "unknown opcode"),
    (Status::EIO, "EIO", "input or output failed"),
    (Status::EPERM, "EPERM", "not allowed"),
    (Status::EQID, "EQID", "bad queue number"),
    (Status::EQTYPE, "EQTYPE", "bad queue type"),
    (Status::ENOENT, "ENOENT", "no such object"),
    (Status::EINTR, "EINTR", "interrupted"),
    (Status::EAGAIN, "EAGAIN", "not now"),
    (Status::ENOMEM, "ENOMEM", "out of memory"),
    (Status::EFAULT, "EFAULT", "bad address"),
    (Status::EBUSY, "EBUSY", "busy"),
    (Status::EEXIST, "EEXIST", "it exists already"),
    (Status::EINVAL, "EINVAL", "a field makes no sense"),
    (Status::ENOSPC, "ENOSPC", "out of space"),
    (Status::ERANGE, "ERANGE", "a field is out of range"),
    (Status::BAD_ADDR, "BAD_ADDR", "a descriptor has a bad address"),
    (Status::DEV_CMD, "DEV_CMD", "not as a device command"),
    (Status::ENOSUPP, "ENOSUPP", "not supported"),
    (Status::ERROR, "ERROR", "failed"),
    (Status::ERDMA, "ERDMA", "RDMA failed"),
    (Status::EVFID, "EVFID", "bad virtual function"),
    (Status::EBAD_FW, "EBAD_FW", "bad firmware"),
];

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Some((name, meaning)) => write!(f, "{name}: {meaning}"),
            None => write!(f, "status {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn unknown_codes_show_as_numbers() {
        assert_eq!(Opcode(20).to_string(), "LIF_IDENTIFY");
        assert_eq!(Opcode(200).to_string(), "opcode 200");
        assert_eq!(Status(14).to_string(), "EINVAL: a field makes no sense");
        assert_eq!(Status(77).to_string(), "status 77");
    }

    #[test]
    fn only_again_is_worth_a_retry() {
        let retries: std::vec::Vec<u8> = (0..=255).filter(|code| Status(*code).is_retry()).collect();
        assert_eq!(retries, [9]);
        assert!(Status::SUCCESS.is_success() && !Status::EAGAIN.is_success());
    }

    #[test]
    fn names_are_told_once() {
        for (i, (opcode, name)) in NAMES.iter().enumerate() {
            assert!(NAMES[..i].iter().all(|(o, n)| o != opcode && n != name), "{name}");
        }
        for (i, (status, name, _)) in MEANINGS.iter().enumerate() {
            assert!(MEANINGS[..i].iter().all(|(s, n, _)| s != status && n != name), "{name}");
        }
    }
}
