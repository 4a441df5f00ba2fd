//! A made-up machine, and what its devices are opened as.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::path::Path;
use std::sync::Arc;

use directverbs::verbs::{
    AccessFlags, AddressVector, Gid, Mac, Mtu, Psn, QpAttributes, QpCapabilities, QpId, QpState, QpType,
};
use directverbs_fake_uverbs::{Machine, Options, Profile, Release};
use directverbs_linux::sysfs::Sysfs;
use directverbs_linux::uverbs::{Fake, Kernel};
use directverbs_linux::{Device, OpenOptions, Result, bnxt_re, ionic};
use directverbs_softnic::open::NicKind;

/// File of the machine's first device.
pub const PATH: &str = "/dev/infiniband/uverbs0";

pub const CAPABILITIES: QpCapabilities = QpCapabilities {
    max_send_wr: 30,
    max_recv_wr: 30,
    max_send_sge: 2,
    max_recv_sge: 1,
    max_inline_data: 32,
};

/// A machine with one device that moves only when it is told to.
pub fn machine(profile: Profile) -> Machine {
    machine_of(&[profile])
}

pub fn machine_of(profiles: &[Profile]) -> Machine {
    let options = Options { threaded: false, ..Options::default() };
    Machine::new(&options, profiles).expect("a machine")
}

pub fn kernel(machine: &Machine) -> Arc<dyn Kernel> {
    Arc::new(Fake(machine.clone()))
}

/// A P7 with all there is, as Linux `release` drives it.
pub fn p7(release: Release) -> Machine {
    machine(Profile::new(NicKind::BnxtReP7, release, 1))
}

/// An ionic of version 2.
pub fn ionic_v2(release: Release) -> Machine {
    machine(Profile::new(NicKind::IonicV2, release, 1))
}

pub fn bnxt_re(machine: &Machine) -> bnxt_re::Context {
    bnxt_re::Context::open_path(kernel(machine), Path::new(PATH)).expect("opens")
}

pub fn ionic(machine: &Machine) -> ionic::Context {
    ionic::Context::open_path(kernel(machine), Path::new(PATH)).expect("opens")
}

pub fn options(machine: &Machine) -> OpenOptions {
    OpenOptions::new().kernel(kernel(machine)).sysfs(Sysfs::at(machine.sysfs()))
}

pub fn open(machine: &Machine) -> Result<Device> {
    options(machine).open(&machine.devices()[0])
}

pub fn bnxt_re_qp(cq: &bnxt_re::CompletionQueue) -> bnxt_re::QueuePairInit<'_> {
    bnxt_re::QueuePairInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        signal_all: false,
        send_buffer: None,
        recv_buffer: None,
        region: None,
    }
}

pub fn ionic_qp(cq: &ionic::CompletionQueue) -> ionic::QueuePairInit<'_> {
    ionic::QueuePairInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: cq,
        recv_cq: cq,
        signal_all: false,
    }
}

/// The way to RTS, connected to `peer` at place 1 of the wire.
pub fn to_rts(peer: QpId, mtu: Mtu) -> [QpAttributes; 3] {
    let path = AddressVector::new(Gid::v4([10, 0, 0, 1].into()), Mac::default());
    [
        QpAttributes { access: Some(AccessFlags::REMOTE_WRITE), ..QpAttributes::to(QpState::Init) },
        QpAttributes {
            path: Some(AddressVector { sgid_index: 1, ..path }),
            mtu: Some(mtu),
            dest_qp: Some(peer),
            rq_psn: Some(Psn::default()),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(Psn::default()),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(1),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}
