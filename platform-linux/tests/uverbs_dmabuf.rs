//! Memory that is a dma-buf: regions in it, and queues in it that another party posts to.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use directverbs::bnxt_re::plan::CqPlan;
use directverbs::bnxt_re::plan::{DirectParameters, QpPlan};
use directverbs::bnxt_re::send::{SendInit, SendQueue, SendRecord};
use directverbs::queue::{Borrowed, RingMemory};
use directverbs::verbs::{
    AccessFlags, AddressVector, Gid, Mac, Mtu, Psn, QpAttributes, QpCapabilities, QpState, QpType,
    SendRequest, Sge,
};
use directverbs_fake_uverbs::{Census, Machine, Options, Profile, Release};
use directverbs_linux::objects::{Buffer, MemoryRegion};
use directverbs_linux::uverbs::{Fake, Kernel};
use directverbs_linux::{bnxt_re, ionic};
use directverbs_softnic::open::NicKind;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const PAGE: u64 = 4096;
const CAPABILITIES: QpCapabilities =
    QpCapabilities { max_send_wr: 32, max_recv_wr: 0, max_send_sge: 2, max_recv_sge: 0, max_inline_data: 32 };

/// A mapping of a dma-buf, as a party that posts has it.
struct Mapped(NonNull<u8>, usize);

impl Mapped {
    fn new(dmabuf: &OwnedFd, len: usize) -> Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, dmabuf, 0) };
        Self(NonNull::new(at.expect("mapped").cast()).expect("an address"), len)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped until this is dropped; the NIC reaches the same pages by another mapping, in the test's own steps.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), self.1) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { munmap(self.0.as_ptr().cast(), self.1) }.expect("mapped");
    }
}

fn machine(nic: NicKind, release: Release) -> (Machine, Arc<dyn Kernel>) {
    let options = Options { threaded: false, ..Options::default() };
    let machine = Machine::new(&options, &[Profile::new(nic, release, 1)]).expect("a machine");
    let kernel: Arc<dyn Kernel> = Arc::new(Fake(machine.clone()));
    (machine, kernel)
}

fn device() -> &'static Path {
    Path::new("/dev/infiniband/uverbs0")
}

#[test]
fn a_region_of_a_dmabuf_is_registered_and_outlives_its_descriptor() {
    for nic in NicKind::ALL {
        for release in Release::ALL.into_iter().filter(|release| release.drives(nic)) {
            let (machine, kernel) = machine(nic, release);
            let dmabuf = machine.new_dmabuf(4 * PAGE as usize).expect("a dma-buf");
            let register = |pd, offset, length, iova| {
                MemoryRegion::register_dmabuf(
                    pd,
                    dmabuf.as_fd(),
                    offset,
                    length,
                    iova,
                    AccessFlags::LOCAL_WRITE,
                )
            };
            let check = |pd| {
                let part = register(pd, PAGE + 8, 100, 0x7_0008).expect("a part");
                assert_eq!((part.iova(), part.len()), (0x7_0008, 100));
                assert_ne!(part.lkey().get(), register(pd, 0, 4 * PAGE, 0).expect("all").lkey().get());
                let behind = register(pd, PAGE, 4 * PAGE, 0).expect_err("behind its end").to_string();
                assert!(
                    behind.contains("memory region")
                        && behind.contains("REG_DMABUF_MR failed: Invalid argument"),
                    "{behind}"
                );
            };
            if matches!(nic, NicKind::BnxtReP5 | NicKind::BnxtReP7) {
                let context = bnxt_re::Context::open_path(kernel, device()).expect("opened");
                check(bnxt_re::ProtectionDomain::alloc(&context).expect("allocated").generic());
            } else {
                let context = ionic::Context::open_path(kernel, device()).expect("opened");
                check(ionic::ProtectionDomain::alloc(&context).expect("allocated").generic());
            }
            assert_eq!(machine.census(), Census::default(), "{nic} {release}");
        }
    }
}

/// The way of a connected queue pair to RTS, to itself.
fn transitions(qp: &bnxt_re::QueuePair) -> [QpAttributes; 3] {
    let path = AddressVector::new(Gid::v4([10, 0, 0, 1].into()), Mac::default());
    let access = AccessFlags::REMOTE_WRITE;
    [
        QpAttributes { access: Some(access), ..QpAttributes::to(QpState::Init) },
        QpAttributes {
            path: Some(AddressVector { sgid_index: 1, ..path }),
            mtu: Some(Mtu::B1024),
            dest_qp: Some(qp.id()),
            rq_psn: Some(Psn::truncated(9)),
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

/// All memory of a queue pair in one dma-buf: completion queue, send queue, data. What posts knows its mapping, the plan and
/// the doorbell register.
#[test]
fn queues_in_a_dmabuf_carry_out_what_another_party_posts() {
    const MESSAGE: [u8; 24] = *b"written by another party";
    let (machine, kernel) = machine(NicKind::BnxtReP7, Release::V7_3);
    let context = bnxt_re::Context::open_path(kernel, device()).expect("opened");
    let pd = bnxt_re::ProtectionDomain::alloc(&context).expect("allocated");
    let cq_plan = CqPlan::new(context.caps(), 63).expect("planned");
    let plan = QpPlan::new(context.caps(), &CAPABILITIES, false).expect("planned");
    let direct = DirectParameters::new(context.caps(), &plan).expect("numbers for the kernel");

    let cq_at = PAGE;
    let sq_at = cq_at + u64::from(cq_plan.bytes).next_multiple_of(PAGE);
    let data_at = sq_at + u64::from(direct.sq_len).next_multiple_of(PAGE);
    let size = data_at + PAGE;
    let dmabuf = Arc::new(machine.new_dmabuf(size as usize).expect("a dma-buf"));
    let mut mapped = Mapped::new(&dmabuf, size as usize);
    let part = |offset, length| Some(Buffer::DmaBuf { file: Arc::clone(&dmabuf), size, offset, length });

    let options = bnxt_re::CqOptions { buffer: part(cq_at, cq_plan.bytes.into()), ..Default::default() };
    let cq = bnxt_re::CompletionQueue::create(&context, 63, &options).expect("a completion queue");
    let region = bnxt_re::DoorbellRegion::alloc(&context).expect("a doorbell region");
    let init = bnxt_re::QueuePairInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
        send_buffer: part(sq_at, direct.sq_len.into()),
        recv_buffer: None,
        region: Some(&region),
    };
    let mut qp = bnxt_re::QueuePair::create(&pd, &init).expect("a queue pair");
    let data = MemoryRegion::register_dmabuf(
        pd.generic(),
        dmabuf.as_fd(),
        data_at,
        PAGE,
        0x10_0000,
        AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE,
    );
    let data = data.expect("a memory region");
    for attributes in transitions(&qp) {
        qp.modify(&attributes, 1).expect("connected");
    }

    let (sq_at, data_at, cq_at) = (sq_at as usize, data_at as usize, cq_at as usize);
    let (head, data_bytes) = mapped.bytes().split_at_mut(data_at);
    data_bytes[..MESSAGE.len()].copy_from_slice(&MESSAGE);
    let send = direct.send_plan(context.caps(), &plan.granted()).expect("it fits");
    let mut records = vec![SendRecord::default(); send.records.next_power_of_two() as usize];
    let init = SendInit { plan: send, qp: qp.id(), qp_type: QpType::Rc, signal_all: false, atomics: false };
    let ring = RingMemory::new(&mut head[sq_at..sq_at + direct.sq_len as usize]);
    let mut sq = SendQueue::<Borrowed>::new(ring, &mut records[..], &init).expect("a send queue");
    sq.set_psn(Psn::truncated(9));
    sq.set_mtu(Mtu::B1024);
    let sges = [Sge::new(data.iova(), MESSAGE.len() as u32, data.lkey())];
    let mut batch = sq.batch();
    let write = SendRequest::write(data.iova() + 2048, data.rkey()).sges(&sges).signaled();
    batch.post(&write).expect("room");
    batch.commit(region.page());

    let until = Instant::now() + Duration::from_secs(10);
    while machine.step() && Instant::now() < until {}
    assert_eq!(mapped.bytes()[data_at + 2048..][..MESSAGE.len()], MESSAGE);
    // The first CQE has its toggle bit set once it is written.
    let entry = &mapped.bytes()[cq_at..cq_at + 32];
    assert!(entry[24] & 1 != 0, "{entry:x?}");
    assert_eq!(machine.violations(), Vec::<String>::new());

    drop((data, qp, region, cq, pd, context));
    assert_eq!(machine.census(), Census::default());
}
