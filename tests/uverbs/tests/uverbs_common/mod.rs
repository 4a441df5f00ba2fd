//! A process that talks to the made-up kernel without any library: packets, commands and memory by hand.

use std::path::Path;

use directverbs_fake_uverbs::abi::{IoctlAttribute, IoctlHeader, RDMA_VERBS_IOCTL, bnxt_re, command, ionic};
use directverbs_fake_uverbs::{Errno, Family, Machine, Options, Profile, Release};
use directverbs_softnic::open::NicKind;
use rustix::mm::ProtFlags;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Memory of the process: mapped pages.
pub struct Memory {
    machine: Machine,
    pub at: u64,
    len: usize,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: its user is gone.
        unsafe { self.machine.munmap(self.at as usize, self.len) }.unwrap();
    }
}

/// A call, whose attributes keep what they point to.
#[derive(Clone)]
pub struct Packet {
    pub header: IoctlHeader,
    pub attributes: Vec<(IoctlAttribute, Vec<u8>)>,
}

impl Packet {
    pub fn new(family: Family, object: u16, method: u16) -> Self {
        let header = IoctlHeader { object, method, driver: family.driver_id(), ..IoctlHeader::default() };
        Self { header, attributes: Vec::new() }
    }

    fn add(mut self, id: u16, len: usize, data: u64, bytes: Vec<u8>) -> Self {
        self.attributes.push((IoctlAttribute { id, len: len as u16, flags: 1, extra: 0, data }, bytes));
        self
    }

    pub fn handle(self, id: u16, handle: u32) -> Self {
        self.add(id, 0, handle.into(), Vec::new())
    }

    pub fn value<T: IntoBytes + Immutable>(self, id: u16, value: T) -> Self {
        self.bytes(id, value.as_bytes())
    }

    pub fn bytes(self, id: u16, bytes: &[u8]) -> Self {
        let mut inline = [0; 8];
        if bytes.len() <= 8 {
            inline[..bytes.len()].copy_from_slice(bytes);
            return self.add(id, bytes.len(), u64::from_ne_bytes(inline), Vec::new());
        }
        self.add(id, bytes.len(), 0, bytes.to_vec())
    }

    pub fn out(self, id: u16, len: usize) -> Self {
        self.add(id, len, 0, vec![0xee; len])
    }

    /// The attribute with this number.
    pub fn at(&mut self, id: u16) -> &mut (IoctlAttribute, Vec<u8>) {
        self.attributes.iter_mut().find(|(raw, _)| raw.id == id).expect("the attribute")
    }

    /// What came out.
    pub fn read<T: FromBytes>(&mut self, id: u16) -> T {
        T::read_from_prefix(&self.at(id).1).unwrap().0
    }

    /// Changes the structure in an attribute.
    pub fn change<T: FromBytes + IntoBytes + Immutable>(&mut self, id: u16, change: impl FnOnce(&mut T)) {
        let (raw, bytes) = self.at(id);
        if bytes.is_empty() {
            let mut value = T::read_from_prefix(raw.data.as_bytes()).unwrap().0;
            change(&mut value);
            let len = size_of::<T>();
            raw.data.as_mut_bytes()[..len].copy_from_slice(value.as_bytes());
        } else {
            let mut value = T::read_from_prefix(bytes).unwrap().0;
            change(&mut value);
            bytes[..size_of::<T>()].copy_from_slice(value.as_bytes());
        }
    }

    pub fn remove(&mut self, id: u16) {
        self.attributes.retain(|(raw, _)| raw.id != id);
    }

    /// Sends it. Lengths in the header are right unless they were set before.
    pub fn send(&mut self, process: &Process) -> Result<(), Errno> {
        let count = self.attributes.len();
        let mut header = self.header;
        if header.length == 0 {
            header.length = (24 + 16 * count) as u16;
            header.attributes = count as u16;
        }
        let mut words = vec![0u64; (24 + 16 * count) / 8];
        words.as_mut_bytes()[..24].copy_from_slice(header.as_bytes());
        for (i, (raw, bytes)) in self.attributes.iter_mut().enumerate() {
            if !bytes.is_empty() {
                raw.data = bytes.as_mut_ptr() as u64;
            }
            words.as_mut_bytes()[24 + 16 * i..][..16].copy_from_slice(raw.as_bytes());
        }
        // SAFETY: all that the packet names is in it, and nothing refers to it.
        let done = unsafe { process.machine.ioctl(process.fd, RDMA_VERBS_IOCTL, words.as_mut_ptr() as u64) };
        for (i, (raw, _)) in self.attributes.iter_mut().enumerate() {
            *raw = IoctlAttribute::read_from_bytes(&words.as_bytes()[24 + 16 * i..][..16]).unwrap();
        }
        done
    }
}

/// A process with an open device file.
pub struct Process {
    pub machine: Machine,
    pub fd: i32,
    pub family: Family,
    pub release: Release,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.machine.close(self.fd);
    }
}

impl Process {
    /// Opens the first device of a machine, without a context.
    pub fn open(profile: Profile) -> Self {
        let (family, release) = (profile.family(), profile.release);
        let options = Options { threaded: false, ..Options::default() };
        let machine = Machine::new(&options, &[profile]).unwrap();
        let fd = machine.open(Path::new("/dev/infiniband/uverbs0")).unwrap();
        Self { machine, fd, family, release }
    }

    /// Opens a context, too.
    pub fn new(nic: NicKind, release: Release) -> Self {
        let process = Self::open(Profile::new(nic, release, 1));
        process.get_context().send(&process).unwrap();
        process
    }

    pub fn packet(&self, object: u16, method: u16) -> Packet {
        Packet::new(self.family, object, method)
    }

    pub fn get_context(&self) -> Packet {
        let packet = self.packet(0, 3).out(0, 4).out(1, 8);
        match self.family {
            Family::BnxtRe => packet.value(0x1000, bnxt_re::UctxReq { comp_mask: 3 }).out(0x1001, 48),
            Family::Ionic => packet.value(0x1000, ionic::CtxReq::default()).out(0x1001, 40),
        }
    }

    pub fn memory(&self, len: usize) -> Memory {
        let at = self.machine.mmap_anonymous(len, ProtFlags::READ | ProtFlags::WRITE).unwrap();
        Memory { machine: self.machine.clone(), at: at as u64, len }
    }

    /// A command inside INVOKE_WRITE; its request begins with the place for the reply's address.
    pub fn command(&self, number: u32, request: &[u8], reply: usize, driver: usize) -> Packet {
        let request = [&[0; 8], request].concat();
        let packet = self.packet(0, 0).bytes(0, &request).value(2, u64::from(number));
        let packet = if reply == 0 { packet } else { packet.out(1, reply) };
        if driver == 0 { packet } else { packet.out(0x1001, driver) }
    }

    pub fn pd(&self) -> u32 {
        let mut packet = self.command(command::ALLOC_PD, &[], 4, 16);
        packet.send(self).unwrap();
        packet.read(1)
    }

    /// A good CQ_CREATE with 100 entries in `memory`.
    pub fn create_cq(&self, memory: &Memory) -> Packet {
        let packet =
            self.packet(3, 0).handle(0, 0).value(1, 100u32).value(2, 0x1234u64).value(4, 0u32).out(6, 4);
        match self.family {
            Family::BnxtRe => {
                let request = bnxt_re::CqReq { cq_va: memory.at, ..Default::default() };
                let known = if self.release >= Release::V7_2 { 24 } else { 16 };
                packet.bytes(0x1000, &request.as_bytes()[..known]).out(0x1001, 24)
            }
            Family::Ionic => {
                let ring =
                    ionic::Qdesc { addr: memory.at, size: 8192, mask: 255, depth_log2: 8, stride_log2: 5 };
                let other = ionic::Qdesc { addr: memory.at + 8192, ..ring };
                packet
                    .value(0x1000, ionic::CqReq { cq: [ring, other], udma_mask: 3, rsvd: [0; 7] })
                    .out(0x1001, 16)
            }
        }
    }

    /// A good QP_CREATE of kind RC.
    pub fn create_qp(&self, memory: &Memory, pd: u32, cq: u32) -> Packet {
        let cap = [32u32, 32, 2, 1, 32];
        let packet = self
            .packet(4, 0)
            .handle(0, 0)
            .handle(2, pd)
            .handle(4, cq)
            .handle(5, cq)
            .value(7, 0x5678u64)
            .value(8, cap)
            .value(9, 2u64)
            .out(13, 20)
            .out(14, 4);
        match self.family {
            Family::BnxtRe => {
                let request = bnxt_re::QpReq {
                    qpsva: memory.at,
                    qprva: memory.at + 0x1_0000,
                    qp_handle: 1,
                    sq_slots: 1024,
                    ..Default::default()
                };
                packet.value(0x1000, request).out(0x1001, 8)
            }
            Family::Ionic => {
                let ring =
                    ionic::Qdesc { addr: memory.at, size: 8192, mask: 63, depth_log2: 6, stride_log2: 7 };
                let rq = ionic::Qdesc { addr: memory.at + 0x1_0000, ..ring };
                let request = ionic::QpReq { sq: ring, rq, udma_mask: 3, ..Default::default() };
                packet.value(0x1000, request).out(0x1001, 24)
            }
        }
    }

    pub fn destroy(&self, object: u16, method: u16, handle: u32, reply: usize) -> Result<(), Errno> {
        let packet = self.packet(object, method).handle(0, handle);
        let mut packet = if reply == 0 { packet } else { packet.out(1, reply) };
        packet.send(self)
    }

    /// Sends a packet that shall succeed, and returns the handle in its first attribute.
    pub fn made(&self, mut packet: Packet) -> u32 {
        packet.send(self).unwrap();
        packet.attributes[0].0.data as u32
    }
}
