//! The crate's objects over the made-up kernel: opened, created, used and gone without a trace.

use std::path::Path;
use std::sync::Arc;

use directverbs::verbs::{
    AccessFlags, AddressVector, Gid, Mac, Mtu, Psn, QpAttributes, QpCapabilities, QpId, QpState, QpType,
};
use directverbs_fake_uverbs::{Census, Errno, Machine, Options, Profile, Release};
use directverbs_linux::objects::MemoryRegion;
use directverbs_linux::sysfs::{Device, Sysfs};
use directverbs_linux::uverbs::{Fake, Kernel, Pages};
use directverbs_linux::{Result, bnxt_re, ionic};
use directverbs_softnic::open::NicKind;

const CAPABILITIES: QpCapabilities = QpCapabilities {
    max_send_wr: 32,
    max_recv_wr: 32,
    max_send_sge: 2,
    max_recv_sge: 1,
    max_inline_data: 32,
};

fn machine(nic: NicKind, release: Release) -> Machine {
    let options = Options { threaded: false, ..Options::default() };
    Machine::new(&options, &[Profile::new(nic, release, 1), Profile::new(nic, release, 2)]).unwrap()
}

/// All devices there can be.
fn all() -> impl Iterator<Item = (NicKind, Release)> {
    let nics = NicKind::ALL.into_iter();
    nics.flat_map(|nic| Release::ALL.into_iter().filter(move |r| r.drives(nic)).map(move |r| (nic, r)))
}

fn is_bnxt_re(nic: NicKind) -> bool {
    matches!(nic, NicKind::BnxtReP5 | NicKind::BnxtReP7)
}

/// The way of a connected queue pair to RTS, to itself.
fn transitions(qp: QpId) -> [QpAttributes; 3] {
    let path = AddressVector::new(Gid::v4([10, 0, 0, 2].into()), Mac::default());
    [
        QpAttributes { access: Some(AccessFlags::REMOTE_WRITE), ..QpAttributes::to(QpState::Init) },
        QpAttributes {
            path: Some(AddressVector { sgid_index: 1, ..path }),
            mtu: Some(Mtu::B1024),
            dest_qp: Some(qp),
            rq_psn: Some(Psn::truncated(7)),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(Psn::truncated(9)),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(1),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}

fn region(
    kernel: &Arc<dyn Kernel>,
    pd: &directverbs_linux::objects::ProtectionDomain,
) -> Result<MemoryRegion> {
    let pages = Arc::new(Pages::new(kernel, 8192)?);
    MemoryRegion::register(pd, &pages, 100..5000, AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ)
}

fn use_bnxt_re(kernel: Arc<dyn Kernel>) -> Result<()> {
    let context = bnxt_re::Context::open_path(kernel.clone(), Path::new("/dev/infiniband/uverbs0"))?;
    let pd = bnxt_re::ProtectionDomain::alloc(&context)?;
    let _region = region(&kernel, pd.generic())?;
    let cq = bnxt_re::CompletionQueue::create(&context, 100, &Default::default())?;
    let to = AddressVector::new(
        Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0xff, 0xfe, 0, 0, 2]),
        Mac::default(),
    );
    let (_ah, _) = context.create_ah(&pd, &to, 1)?;
    let init = bnxt_re::QueuePairInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
        send_buffer: None,
        recv_buffer: None,
        region: None,
    };
    let mut qp = bnxt_re::QueuePair::create(&pd, &init)?;
    for attributes in transitions(qp.id()) {
        qp.modify(&attributes, 1)?;
    }
    Ok(())
}

fn use_ionic(kernel: Arc<dyn Kernel>) -> Result<()> {
    let context = ionic::Context::open_path(kernel.clone(), Path::new("/dev/infiniband/uverbs0"))?;
    let pd = ionic::ProtectionDomain::alloc(&context)?;
    let _region = region(&kernel, pd.generic())?;
    let cq = ionic::CompletionQueue::create(&context, 100, context.udma_mask(), None, 0)?;
    let init = ionic::QueuePairInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: &cq,
        recv_cq: &cq,
        signal_all: false,
    };
    let mut qp = ionic::QueuePair::create(&pd, &init)?;
    for attributes in transitions(qp.id()) {
        qp.modify(&attributes, 1)?;
    }
    Ok(())
}

fn use_all(nic: NicKind, machine: &Machine) -> Result<()> {
    let kernel: Arc<dyn Kernel> = Arc::new(Fake(machine.clone()));
    if is_bnxt_re(nic) { use_bnxt_re(kernel) } else { use_ionic(kernel) }
}

#[test]
fn every_device_of_every_kernel_is_used_and_left_without_a_trace() {
    for (nic, release) in all() {
        let machine = machine(nic, release);
        use_all(nic, &machine).unwrap_or_else(|error| panic!("{nic} on {release}: {error}"));
        assert_eq!(machine.census(), Census::default(), "{nic} on {release}");
        assert_eq!(machine.violations(), Vec::<String>::new(), "{nic} on {release}");
    }
}

#[test]
fn each_call_fails_in_turn_and_nothing_stays() {
    for (nic, release) in all() {
        let machine = machine(nic, release);
        machine.fail(None);
        use_all(nic, &machine).unwrap();
        let calls = machine.calls();
        assert!(calls > 10, "{nic} on {release}: {calls} calls");
        for call in 0..calls {
            for errno in [Errno::NOMEM, Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSPC, Errno::PERM, Errno::IO]
            {
                machine.fail(Some((call, errno)));
                // Some calls are probes, whose failure is an answer.
                let _ = use_all(nic, &machine);
                assert_eq!(machine.census(), Census::default(), "{nic} on {release}: call {call}, {errno}");
            }
        }
    }
}

#[test]
fn sysfs_tells_of_the_devices() {
    for (nic, release) in all() {
        let machine = machine(nic, release);
        let sysfs = Sysfs::at(machine.sysfs());
        let devices = Device::all(&sysfs).unwrap();
        let names: Vec<_> = devices.iter().map(|device| device.name.clone()).collect();
        assert_eq!(names, machine.devices());
        for device in &devices {
            device.check_abi().unwrap();
            let ports = device.ports().unwrap();
            assert_eq!(ports[0].gids.len(), 2);
        }
    }
}

#[test]
fn memory_that_may_not_be_pinned_is_named_with_the_limit() {
    let machine = machine(NicKind::BnxtReP7, Release::V7_3);
    machine.set_memlock_limit(Some(4096));
    let error = use_all(NicKind::BnxtReP7, &machine).unwrap_err().to_string();
    assert!(error.starts_with("memory region: REG_MR failed") && error.contains("4 KiB"), "{error}");
    assert!(machine.census().is_empty());
}
