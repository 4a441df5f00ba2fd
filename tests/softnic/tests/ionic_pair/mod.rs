//! Two ionic NICs on a wire, with a connected queue pair each.
#![allow(dead_code, reason = "each test file uses a part of it")]

use directverbs::verbs::{
    AccessFlags, AddressVector, CompletionQueue as _, Device, Gid, LKey, Mac, MemoryRegion, Mtu, Psn, QKey,
    QpAttributes, QpCapabilities, QpInit, QpState, QpType, QueuePair as _, RKey, Sge, Slices, WorkCompletion,
};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::host::ionic::{CompletionQueue, IonicDevice, IonicOptions, QueuePair};
use directverbs_softnic::host::{ProtectionDomain, Region};

/// Bytes of each end's memory region.
pub const REGION: usize = 8192;
/// Steps after which a test has waited long enough.
pub const PATIENCE: usize = 200_000;

/// What a NIC at position `n` of the wire is built with.
pub fn nic_config(n: u8) -> NicConfig {
    NicConfig {
        mac: Mac([2, 0, 0, 0, 0, n]),
        gids: vec![Gid::v4([10, 0, 0, n].into())],
        mtu: Mtu::B4096,
        device_memory: 1 << 20,
        all_memory_key: None,
    }
}

/// Two devices on a wire of their own.
pub fn devices(options: IonicOptions, fabric: FabricOptions) -> (Fabric, [IonicDevice; 2]) {
    let fabric = Fabric::new(fabric);
    let devices = [1, 2].map(|n| IonicDevice::attach(&fabric, nic_config(n), options));
    (fabric, devices)
}

/// One end of a connection.
pub struct End {
    pub device: IonicDevice,
    pub pd: ProtectionDomain,
    pub cq: CompletionQueue,
    pub qp: QueuePair,
    pub mr: Region,
}

pub const CAPABILITIES: QpCapabilities = QpCapabilities {
    max_send_wr: 16,
    max_recv_wr: 16,
    max_send_sge: 4,
    max_recv_sge: 4,
    max_inline_data: 64,
};
pub const QKEY: QKey = QKey::truncated(0x1111);

impl End {
    pub fn new(device: IonicDevice, qp_type: QpType, cqe: u32) -> Self {
        Self::with(device, qp_type, cqe, CAPABILITIES)
    }

    pub fn with(mut device: IonicDevice, qp_type: QpType, cqe: u32, capabilities: QpCapabilities) -> Self {
        let pd = device.alloc_pd().unwrap();
        let cq = device.create_cq(cqe).unwrap();
        let init = QpInit { qp_type, capabilities, send_cq: &cq, recv_cq: &cq, srq: None, signal_all: false };
        let qp = device.create_qp(&pd, &init).unwrap();
        let access = AccessFlags::LOCAL_WRITE
            | AccessFlags::REMOTE_WRITE
            | AccessFlags::REMOTE_READ
            | AccessFlags::REMOTE_ATOMIC
            | AccessFlags::MW_BIND;
        let mr = device.alloc_mr(&pd, REGION, access).unwrap();
        Self { device, pd, cq, qp, mr }
    }

    pub fn modify(&mut self, attributes: &QpAttributes) {
        self.device.modify_qp(&mut self.qp, &mut [&mut self.cq], attributes).unwrap();
    }

    /// Takes the queue pair from RESET to RTS, connected to `dest` behind `path`.
    pub fn connect(&mut self, dest: directverbs::verbs::QpId, path: AddressVector) {
        self.modify(&QpAttributes {
            access: Some(AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_ATOMIC),
            qkey: Some(QKEY),
            ..QpAttributes::to(QpState::Init)
        });
        self.modify(&QpAttributes {
            path: Some(path),
            mtu: Some(Mtu::B1024),
            dest_qp: Some(dest),
            rq_psn: Some(Psn::truncated(0xff_fffe)),
            max_dest_rd_atomic: Some(4),
            min_rnr_timer: Some(1),
            ..QpAttributes::to(QpState::Rtr)
        });
        self.modify(&QpAttributes {
            sq_psn: Some(Psn::truncated(0xff_fffe)),
            timeout: Some(8),
            retry_count: Some(3),
            rnr_retry: Some(3),
            max_rd_atomic: Some(4),
            ..QpAttributes::to(QpState::Rts)
        });
    }

    pub fn path(&self) -> AddressVector {
        let port = self.device.port();
        AddressVector::new(port.gid, port.mac)
    }

    /// Polls once, for up to 16 completions.
    pub fn poll(&mut self) -> Vec<WorkCompletion> {
        let mut out = [WorkCompletion::default(); 16];
        let mut endpoints = Slices { qps: core::slice::from_mut(&mut self.qp), srqs: &mut [] };
        let count = self.cq.poll(&mut endpoints, &mut out).unwrap();
        out[..count].to_vec()
    }

    /// Steps the wire until `count` completions have come.
    pub fn wait(&mut self, count: usize) -> Vec<WorkCompletion> {
        let mut done = Vec::new();
        for _ in 0..PATIENCE {
            done.extend(self.poll());
            if done.len() >= count {
                return done;
            }
            self.device.progress();
        }
        panic!("{} of {count} completions: {done:?}", done.len());
    }

    pub fn sge(&self, offset: usize, length: u32) -> Sge {
        Sge::new(self.mr.addr() + offset as u64, length, self.lkey())
    }

    pub fn lkey(&self) -> LKey {
        self.mr.lkey()
    }

    /// Address and key of `offset` for the peer.
    pub fn remote(&self, offset: usize) -> (u64, RKey) {
        (self.mr.addr() + offset as u64, self.mr.rkey())
    }

    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(self.mr.write(offset, bytes));
    }

    pub fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        assert!(self.mr.read(offset, &mut bytes));
        bytes
    }

    /// The driver has kept the contract.
    pub fn check(&self) {
        assert_eq!(self.device.nic().lock().front_end().violations(), []);
    }
}

/// Two connected ends.
pub fn pair(options: IonicOptions, fabric: FabricOptions, qp_type: QpType) -> (Fabric, [End; 2]) {
    let (fabric, devices) = devices(options, fabric);
    let mut ends = devices.map(|device| End::new(device, qp_type, 64));
    let (ids, paths) = (ends.each_ref().map(|e| e.qp.id()), ends.each_ref().map(End::path));
    for (i, end) in ends.iter_mut().enumerate() {
        end.connect(ids[1 - i], paths[1 - i]);
    }
    (fabric, ends)
}
