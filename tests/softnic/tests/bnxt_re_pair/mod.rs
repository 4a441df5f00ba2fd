//! Two bnxt_re NICs on a wire.
#![allow(dead_code, reason = "each test file uses a part of it")]

use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::plan::QpPlan;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{
    AccessFlags, AddressVector, CompletionQueue as _, Device, Gid, Mac, MemoryRegion, Mtu, Psn, QKey,
    QpAttributes, QpCapabilities, QpId, QpInit, QpState, QpType, QueuePair as _, RKey, RecvRequest,
    SendRequest, Sge, SharedReceiveQueue as _, Slices, SrqInit, WcStatus, WorkCompletion,
};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::host::bnxt_re::{BnxtReDevice, BnxtReOptions, Cq, Qp, Srq};
use directverbs_softnic::host::{ProtectionDomain, Region};

/// A wire without faults, stepped.
pub const LOSSLESS: FabricOptions = FabricOptions { seed: 1, faults: FaultPlan::NONE, threaded: false };

/// Both chips in both modes.
pub const CHIPS: [BnxtReOptions; 4] = [
    BnxtReOptions::new(Generation::P5, WqeMode::Static),
    BnxtReOptions::new(Generation::P5, WqeMode::Variable),
    BnxtReOptions::new(Generation::P7, WqeMode::Static),
    BnxtReOptions::new(Generation::P7, WqeMode::Variable),
];

/// What a NIC at position `n` of the wire is built with.
pub fn nic_config(n: u8) -> NicConfig {
    NicConfig {
        mac: Mac([2, 0, 0, 0, 0, n]),
        gids: vec![Gid::v4([10, 0, 0, n].into())],
        mtu: Mtu::B4096,
        device_memory: 4096,
        all_memory_key: None,
    }
}

/// Two devices on a wire of their own.
pub fn devices(options: BnxtReOptions, fabric: FabricOptions) -> (Fabric, [BnxtReDevice; 2]) {
    let fabric = Fabric::new(fabric);
    let devices = [1, 2].map(|n| {
        let options = BnxtReOptions { seed: n.into(), ..options };
        BnxtReDevice::attach(&fabric, nic_config(n), options)
    });
    (fabric, devices)
}

/// What the driver of a device did wrong.
pub fn violations(device: &BnxtReDevice) -> Vec<String> {
    device.nic().lock().front_end().violations().last().map(ToString::to_string).collect()
}

/// Bytes of each end's memory region.
pub const REGION: usize = 65536;
/// Steps after which a test has waited long enough.
pub const PATIENCE: usize = 200_000;
/// Queue key of datagrams.
pub const QKEY: QKey = QKey::truncated(0x1111);
/// What queue pairs are asked to be capable of.
pub const CAPABILITIES: QpCapabilities = QpCapabilities {
    max_send_wr: 32,
    max_recv_wr: 32,
    max_send_sge: 4,
    max_recv_sge: 4,
    max_inline_data: 64,
};
/// All that a peer may do.
pub const ACCESS: AccessFlags = AccessFlags::all().difference(AccessFlags::ZERO_BASED);

/// Which side of an end completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Send,
    Recv,
}

/// One end of a connection. Its send and receive requests complete to two queues.
pub struct End {
    pub device: BnxtReDevice,
    pub pd: ProtectionDomain,
    pub send_cq: Cq,
    pub recv_cq: Cq,
    pub qp: Qp,
    pub srq: Option<Srq>,
    pub mr: Region,
}

impl End {
    pub fn new(mut device: BnxtReDevice, qp_type: QpType, cqe: u32, srq: bool) -> Self {
        let pd = device.alloc_pd().unwrap();
        let [send_cq, recv_cq] = [(); 2].map(|()| device.create_cq(cqe).unwrap());
        let srq = srq.then(|| device.create_srq(&pd, SrqInit { max_wr: 32, max_sge: 4 }).unwrap());
        let init = QpInit {
            qp_type,
            capabilities: CAPABILITIES,
            send_cq: &send_cq,
            recv_cq: &recv_cq,
            srq: srq.as_ref(),
            signal_all: false,
        };
        let qp = device.create_qp(&pd, &init).unwrap();
        let mr = device.alloc_mr(&pd, REGION, ACCESS).unwrap();
        Self { device, pd, send_cq, recv_cq, qp, srq, mr }
    }

    pub fn modify(&mut self, attributes: &QpAttributes) {
        let cqs = &mut [&mut self.send_cq, &mut self.recv_cq];
        self.device.modify_qp(&mut self.qp, cqs, attributes).unwrap();
    }

    /// Takes the queue pair from RESET to RTS, connected to `dest` behind `path`.
    pub fn connect(&mut self, dest: QpId, path: AddressVector) {
        self.modify(&QpAttributes {
            access: Some(ACCESS),
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

    pub fn post_send(&mut self, requests: &[SendRequest<'_>]) {
        self.qp.post_send(&mut self.send_cq, requests).unwrap();
    }

    /// Posts one receive request of `length` bytes at `offset`.
    pub fn post_recv(&mut self, wr_id: u64, offset: usize, length: u32) {
        let sges = [self.sge(offset, length)];
        let request = [RecvRequest::new(wr_id, &sges)];
        match &mut self.srq {
            Some(srq) => srq.post_recv(&request).unwrap(),
            None => self.qp.post_recv(&mut self.recv_cq, &request).unwrap(),
        }
    }

    /// Polls once, for up to `budget` completions.
    pub fn poll(&mut self, on: On, budget: usize) -> Vec<WorkCompletion> {
        let mut out = vec![WorkCompletion::default(); budget];
        let cq = match on {
            On::Send => &mut self.send_cq,
            On::Recv => &mut self.recv_cq,
        };
        let srqs = self.srq.as_mut().map_or(&mut [][..], core::slice::from_mut);
        let mut endpoints = Slices { qps: core::slice::from_mut(&mut self.qp), srqs };
        let count = cq.poll(&mut endpoints, &mut out).unwrap();
        out.truncate(count);
        out
    }

    /// Steps the wire until `count` completions have come.
    pub fn wait(&mut self, on: On, count: usize) -> Vec<WorkCompletion> {
        let mut done = Vec::new();
        for _ in 0..PATIENCE {
            done.extend(self.poll(on, 16));
            if done.len() >= count {
                return done;
            }
            self.device.progress();
        }
        panic!("{} of {count} completions: {done:?}; {:?}", done.len(), violations(&self.device));
    }

    pub fn sge(&self, offset: usize, length: u32) -> Sge {
        Sge::new(self.mr.addr() + offset as u64, length, self.mr.lkey())
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

    /// The driver has done nothing that the hardware could not carry out.
    pub fn check(&self) {
        assert_eq!(violations(&self.device), Vec::<String>::new());
    }
}

/// Two connected ends.
pub fn pair(options: BnxtReOptions, qp_type: QpType, srq: bool) -> (Fabric, [End; 2]) {
    let (fabric, devices) = devices(options, LOSSLESS);
    let mut ends = devices.map(|device| End::new(device, qp_type, 64, srq));
    connect(&mut ends);
    (fabric, ends)
}

/// Connects two ends in state RESET.
pub fn connect(ends: &mut [End; 2]) {
    let (ids, paths) = (ends.each_ref().map(|e| e.qp.id()), ends.each_ref().map(End::path));
    for (i, end) in ends.iter_mut().enumerate() {
        end.connect(ids[1 - i], paths[1 - i]);
    }
}

/// Bytes from the start of an end's send queue to its retransmit table.
pub fn table_offset(device: &BnxtReDevice) -> u32 {
    QpPlan::new(device.caps(), &CAPABILITIES, false).unwrap().send.table_offset
}

/// Number and status of each.
pub fn outcomes(completions: &[WorkCompletion]) -> Vec<(u64, WcStatus)> {
    completions.iter().map(|wc| (wc.wr_id, wc.status)).collect()
}
