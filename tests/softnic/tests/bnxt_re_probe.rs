//! The sequence in which Linux' bnxt_en and bnxt_re probe, open and use a NIC, command by command: each is answered as they
//! need it, and nothing that firmware has is "not supported".

mod bnxt_re_raw;
mod bnxt_re_slots;

use bnxt_re_raw::{Raw, UNSUPPORTED, half};
use bnxt_re_slots::{CHIPS, mac};
use directverbs::bnxt_re::caps::{DeviceCaps, Generation};
use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use directverbs::bnxt_re::hwrm::backing_store::{FuncBackingStoreCfgInput, FuncBackingStoreQcapsOutput};
use directverbs::bnxt_re::hwrm::backing_store_v2::FuncBackingStoreQcapsV2Output;
use directverbs::bnxt_re::hwrm::context::{ContextCaps, ContextPlan, ContextType, Demand};
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs::bnxt_re::nq::EventRing;
use directverbs::bnxt_re::pbl::{PAGE, PblPlan, Use};
use directverbs::bnxt_re::plan::QpPlan;
use directverbs::bnxt_re::rcfw::ah::{CmdqCreateAh, CmdqDestroyAh};
use directverbs::bnxt_re::rcfw::cmdq::{self, Cmdq, Side};
use directverbs::bnxt_re::rcfw::congestion::CmdqQueryRoceCc;
use directverbs::bnxt_re::rcfw::context::CmdqReadContext;
use directverbs::bnxt_re::rcfw::cq::{CmdqCreateCq, CmdqDestroyCq, CmdqResizeCq};
use directverbs::bnxt_re::rcfw::create::{Listed, NewQp, RegionKey};
use directverbs::bnxt_re::rcfw::event::{CompletionError, CreqEvent, Status};
use directverbs::bnxt_re::rcfw::function::{
    CmdqInitializeFw, CmdqQueryFunc, CmdqQueryVersion, CreqQueryFuncRespSb,
};
use directverbs::bnxt_re::rcfw::gid::{CmdqAddGid, CmdqDeleteGid};
use directverbs::bnxt_re::rcfw::message::Command;
use directverbs::bnxt_re::rcfw::mr::{CmdqAllocateMrw, CmdqDeallocateKey, CmdqRegisterMr};
use directverbs::bnxt_re::rcfw::parameter::{Congestion, ModifyCongestion, Parameter};
use directverbs::bnxt_re::rcfw::path::SourceGid;
use directverbs::bnxt_re::rcfw::qp::{
    CmdqCreateQp, CmdqDestroyQp, CmdqModifyQp, CmdqQueryQp, kind as qp_kind,
};
use directverbs::bnxt_re::rcfw::srq::{CmdqCreateSrq, CmdqDestroySrq, CmdqQuerySrq};
use directverbs::bnxt_re::rcfw::stats::{CmdqQueryRoceStats, CmdqQueryRoceStatsExt};
use directverbs::bnxt_re::rcfw::transition::{Outstanding, Transition};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::queue::{Doorbell, RingMemory};
use directverbs::verbs::{
    AccessFlags, AddressVector, CqId, Gid, Mtu, PdId, Psn, QKey, QpAttributes, QpCapabilities, QpId, QpState,
    QpType,
};
use directverbs_bare::{Caching, DmaMemory, DoorbellPage, Host, Registers};
use directverbs_softnic::pci::{ModelRegisters, Slot};
use zerocopy::{FromBytes, IntoBytes, little_endian as le};

/// Page of doorbells that is privileged, by chip.
const PRIVILEGED: usize = 0x1_0000;
type Dma = <Slot as Host>::Dma;

/// The command channel, below any driver.
struct Channel {
    raw: Raw,
    cmdq: Cmdq<'static>,
    creq: EventRing<'static>,
    side: Dma,
    page: DoorbellPage<ModelRegisters>,
    /// Memory that the device knows; the rings' too, which are dropped before it.
    known: Vec<Dma>,
}

/// The ring over a block, which must outlive it.
fn ring(block: &Dma) -> RingMemory<'static> {
    // SAFETY: the block is pushed to the channel's known memory, which outlives the ring, and is copied in and out of
    // otherwise.
    unsafe { RingMemory::from_raw(block.base(), block.len()) }
}

fn words(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

impl Channel {
    /// As far as the first doorbell of the ring of completions and the start of the channel: steps 1 to 6 of bnxt_re.
    fn start(mut raw: Raw) -> Self {
        let slot = raw.machine.slot.clone();
        let known = vec![slot.dma(4096, 4096).unwrap(), slot.dma(4096, 4096).unwrap()];
        let mut creq = EventRing::new(ring(&known[0]), 256).unwrap();
        let [low, high] = words(known[0].device_address());
        let made = raw.done(ReqType::RING_ALLOC, &[(20, 5), (24, low), (28, high), (40, 256), (44, 0)]);
        let creq_id = half(&made, 8);
        let cmdq = Cmdq::new(ring(&known[1]), 256).unwrap();
        creq.set_id(creq_id);
        raw.doorbells.write64(PRIVILEGED, arm(creq_id));
        let at = known[1].device_address();
        raw.registers.write_words(cmdq::MAILBOX, cmdq.init(at, creq_id).as_bytes());
        let side = slot.dma(4096, 4096).unwrap();
        let page = slot.map_bar(2, PRIVILEGED as u64, 4096, Caching::Uncached).unwrap();
        Self { raw, cmdq, creq, side, page: DoorbellPage(page), known }
    }

    /// Sends a command; gives its completion.
    fn try_send<C: Command>(&mut self, command: &C) -> Result<C::Completion, CompletionError> {
        let side = Side { address: self.side.device_address(), bytes: 512 };
        let (ticket, producer) = self.cmdq.send(command, Some(side)).unwrap();
        self.raw.registers.write32(cmdq::PRODUCER, producer);
        self.raw.registers.write32(cmdq::TRIGGER, 1);
        let entry = self.creq.take(&self.page).expect("it is answered at once");
        self.page.store(0, self.creq.doorbell(DbType::NQ_ARM).to_u64());
        let CreqEvent::Completion(done) = CreqEvent::decode(entry) else { panic!("{entry:02x?}") };
        self.cmdq.complete(&ticket);
        ticket.check::<C>(&done)
    }

    fn send<C: Command>(&mut self, command: &C) -> C::Completion {
        let violations = self.raw.machine.violations();
        self.try_send(command).unwrap_or_else(|error| panic!("{error}: {violations:?}"))
    }

    /// Pages for an object, and their list.
    fn pages(&mut self, bytes: u64, kind: Use) -> Listed {
        let (memory, listed) = listed(&self.raw.machine.slot, bytes, kind);
        self.known.push(memory);
        listed
    }

    /// Memory in one piece.
    fn piece(&mut self, bytes: usize) -> u64 {
        let memory = self.raw.machine.slot.dma(bytes, 4096).unwrap();
        let address = memory.device_address();
        self.known.push(memory);
        address
    }

    /// Steps of a queue pair from RESET on.
    fn modify(&mut self, qp: QpId, qp_type: QpType, from: QpState, attributes: &QpAttributes) {
        let (command, _) = CmdqModifyQp::new(&Transition {
            qp,
            qp_type,
            from,
            access: AccessFlags::REMOTE_READ,
            capabilities: CAPABILITIES,
            attributes,
            source: attributes.path.map(|_| SourceGid { index: 0, vlan: None }),
            outstanding: Outstanding { initiator: 16, responder: 16 },
            optimized: true,
        })
        .unwrap();
        assert_eq!(self.send(&command).xid.get(), qp.get());
    }
}

/// Memory of `bytes` bytes and its list of pages.
fn listed(slot: &Slot, bytes: u64, kind: Use) -> (Dma, Listed) {
    let plan = PblPlan::new(bytes, 12).unwrap();
    let at = bytes.next_multiple_of(PAGE);
    let block = slot.dma((at + plan.bytes()) as usize, 4096).unwrap();
    let address = block.device_address();
    let page = |page| address + u64::from(page) * PAGE;
    let root = plan.write(&mut ring(&block), at as usize, address + at, kind, page).unwrap();
    (block, Listed { plan, root })
}

/// The doorbell that arms a ring which nothing was taken from.
fn arm(ring: u16) -> u64 {
    DbWord::ring(DbType::NQ_ARM, Xid::ring(ring), DbIndex::ZERO, Epoch(false), Toggle::ZERO).to_u64()
}

/// Gives context memory: of version 1 on P5, of version 2 on P7. Gives the memory.
fn give_context(raw: &mut Raw, chip: usize) -> Vec<Dma> {
    let mut caps = ContextCaps::new();
    if chip == 0 {
        let told = raw.done(ReqType::FUNC_BACKING_STORE_QCAPS, &[]);
        let told = FuncBackingStoreQcapsOutput::read_from_bytes(&told).unwrap();
        caps = ContextCaps::from_v1(&told, 2).unwrap();
    } else {
        let mut next = Some(ContextType(0));
        while let Some(kind) = next {
            let told = raw.done(ReqType::FUNC_BACKING_STORE_QCAPS_V2, &[(16, kind.0.into())]);
            let told = FuncBackingStoreQcapsV2Output::read_from_bytes(&told).unwrap();
            next = caps.learn(kind, &told).unwrap();
        }
    }
    let demand = Demand { qps: 8, srqs: 2, cqs: 8, regions: 8, ahs: 8 };
    let plans = ContextPlan::all(&caps, &demand).unwrap();
    let mut all = FuncBackingStoreCfgInput::ZERO;
    let mut known = Vec::new();
    for (i, plan) in plans.iter().enumerate() {
        for instance in 0..plan.caps.instances as u16 {
            let (memory, Listed { plan: list, root }) = listed(&raw.machine.slot, plan.bytes(), Use::Memory);
            assert!(plan.initialise(&mut ring(&memory)));
            let attribute = list.attribute().unwrap();
            known.push(memory);
            if chip == 0 {
                assert!(all.add(plan, instance, attribute, root));
                continue;
            }
            let last = i + 1 == plans.len() && u32::from(instance) + 1 == plan.caps.instances;
            let mut message = plan.message(instance, attribute, root, last);
            let (error, _) = raw.send(ReqType::FUNC_BACKING_STORE_CFG_V2, message.as_mut_bytes());
            assert_eq!(error, 0, "{:?}", raw.machine.violations());
        }
    }
    if chip == 0 {
        let (error, _) = raw.send(ReqType::FUNC_BACKING_STORE_CFG, all.as_mut_bytes());
        assert_eq!(error, 0, "{:?}", raw.machine.violations());
    }
    known
}

/// A request, as the sequence has it: whether the driver needs an answer, or takes any.
#[derive(Clone, Copy)]
enum Need {
    Answer,
    Any,
}

/// Sends requests in order, each with what else it must say.
fn replay(raw: &mut Raw, sequence: &[(ReqType, Need, &[(usize, u32)])]) {
    for (req_type, need, values) in sequence {
        let (error, bytes) = raw.ask(*req_type, values);
        match need {
            Need::Answer => assert_eq!(error, 0, "{req_type}: {:?}", raw.machine.violations()),
            Need::Any => {
                assert!(error == 0 || (error, bytes.len()) == (UNSUPPORTED, 16), "{req_type}: {error}")
            }
        }
    }
}

/// What bnxt_en does at probe, before and after it gives context memory.
fn probe(chip: usize) -> (Raw, Vec<Dma>) {
    use Need::{Answer, Any};
    let mut raw = Raw::new(chip);
    replay(
        &mut raw,
        &[
            (ReqType::VER_GET, Answer, &[]),
            (ReqType::NVM_GET_DEV_INFO, Any, &[]),
            (ReqType::FUNC_RESET, Answer, &[]),
            (ReqType::FW_SET_TIME, Answer, &[]),
            (ReqType::FUNC_QCAPS, Answer, &[(16, 0xffff)]),
            (ReqType::QUEUE_QPORTCFG, Answer, &[]),
        ],
    );
    let known = give_context(&mut raw, chip);
    // 16 MSI-X vectors, 32 completion rings, 4 of each kind of ring, 2 VNICs, 8 statistics contexts, 2 spreads.
    let enables = 0x20_0000 | 0x8 | 0x10 | 0x20 | 0x80 | 0x100 | 0x4;
    let rings: &[(usize, u32)] = &[
        (16, 16 << 16 | 0xffff),
        (24, enables),
        (32, 32 << 16 | 2),
        (36, 4 << 16 | 4),
        (40, 2 << 16),
        (44, 8),
    ];
    replay(
        &mut raw,
        &[
            (ReqType::FUNC_RESOURCE_QCAPS, Answer, &[(16, 0xffff)]),
            (ReqType::FUNC_DRV_RGTR, Answer, &[]),
            (ReqType::QUEUE_PFCWD_TIMEOUT_QCAPS, Any, &[]),
            (ReqType::FUNC_QCFG, Answer, &[(16, 0xffff)]),
            (ReqType::VNIC_QCAPS, Answer, &[]),
            (ReqType::PORT_LED_QCAPS, Any, &[]),
            (ReqType::SELFTEST_QLIST, Any, &[]),
            (ReqType::QUEUE_DSCP_QCAPS, Any, &[]),
            (ReqType::TEMP_MONITOR_QUERY, Any, &[]),
            (ReqType::PORT_PHY_QCAPS, Answer, &[]),
            (ReqType::PORT_MAC_QCAPS, Any, &[]),
            (ReqType::PORT_PHY_QCFG, Answer, &[]),
            (ReqType::FUNC_CFG, Answer, rings),
            (ReqType::FUNC_QCFG, Answer, &[(16, 0xffff)]),
            // The length of a cache line.
            (ReqType::FUNC_CFG, Answer, &[(16, 0xffff)]),
            (ReqType::RING_AGGINT_QCAPS, Any, &[]),
        ],
    );
    (raw, known)
}

/// What bnxt_en does when its interface is opened.
fn open_interface(raw: &mut Raw) {
    use Need::Answer;
    let nq = raw.machine.slot.dma(4096, 4096).unwrap();
    let [low, high] = words(nq.device_address());
    // Behind the vectors of RoCE.
    let made = raw.done(ReqType::RING_ALLOC, &[(20, 5), (24, low), (28, high), (40, 256), (44, 9)]);
    raw.doorbells.write64(PRIVILEGED, arm(half(&made, 8)));
    let mut rings = vec![half(&made, 8)];
    for ring_type in [0, 1, 2] {
        rings.push(half(&raw.done(ReqType::RING_ALLOC, &[(20, ring_type), (40, 256)]), 8));
    }
    rings.sort_unstable();
    rings.dedup();
    assert_eq!(rings.len(), 4, "each ring has its own number");
    replay(
        raw,
        &[
            (ReqType::STAT_CTX_ALLOC, Answer, &[]),
            (ReqType::VNIC_ALLOC, Answer, &[]),
            (ReqType::VNIC_RSS_COS_LB_CTX_ALLOC, Answer, &[]),
            (ReqType::VNIC_RSS_CFG, Answer, &[]),
            (ReqType::VNIC_CFG, Answer, &[]),
            (ReqType::VNIC_PLCMODES_CFG, Answer, &[]),
            (ReqType::CFA_L2_FILTER_ALLOC, Answer, &[]),
            (ReqType::CFA_L2_SET_RX_MASK, Answer, &[]),
            (ReqType::RING_CMPL_RING_CFG_AGGINT_PARAMS, Answer, &[]),
            (ReqType::VNIC_RSS_QCFG, Answer, &[]),
            (ReqType::PORT_PHY_QCFG, Answer, &[]),
            (ReqType::PORT_PHY_CFG, Answer, &[]),
            (ReqType::PORT_QSTATS, Answer, &[]),
            (ReqType::PORT_QSTATS_EXT, Answer, &[]),
        ],
    );
    // The device knows it.
    nq.abandon();
}

/// What bnxt_re does after that, up to a registered device; gives the channel and the notification queue's number.
fn init_roce(raw: Raw, context: Vec<Dma>) -> (Channel, u16) {
    let mut channel = Channel::start(raw);
    channel.known.extend(context);
    channel.send(&CmdqQueryFunc::ZERO);
    let told: CreqQueryFuncRespSb = channel.side.load(0).unwrap();
    let counts =
        [told.max_qp, told.max_cq, told.max_cqe, told.max_mr, told.max_ah, told.max_srq_wr, told.max_dpi];
    assert!(counts.iter().all(|count| count.get() != 0), "{told:?}");
    assert!(told.max_gid.get() >= 16 && told.max_srq.get() != 0 && told.max_qp_wr.get() != 0, "{told:?}");
    assert!(
        told.max_qp_rd_atom != 0 && told.max_qp_init_rd_atom != 0 && told.max_sge_var_wqe != 0,
        "{told:?}"
    );
    assert_eq!((told.dev_cap_flags.get() & 0x600, told.l2_db_space_size), (0, 0));
    let version = channel.send(&CmdqQueryVersion::ZERO);
    assert_eq!((version.fw_maj, version.intf_maj), (230, 1));
    let stat_ctx = half(&channel.raw.done(ReqType::STAT_CTX_ALLOC, &[(28, 1)]), 8);
    let initialize =
        CmdqInitializeFw { stat_ctx_id: le::U32::new(stat_ctx.into()), ..CmdqInitializeFw::ZERO };
    channel.send(&initialize);
    channel.send(&CmdqQueryFunc::ZERO);
    let listed = channel.pages(4096, Use::Ring);
    let [low, high] = words(listed.root);
    let made = channel.raw.done(ReqType::RING_ALLOC, &[(20, 5), (24, low), (28, high), (40, 256), (44, 1)]);
    let nq = half(&made, 8);
    channel.raw.doorbells.write64(PRIVILEGED, arm(nq));
    channel.send(&CmdqQueryRoceCc::ZERO);
    channel.raw.done(ReqType::FUNC_DRV_RGTR, &[]);
    let gid = Gid::v4([10, 0, 0, 1].into());
    let added = channel.send(&CmdqAddGid::new(gid, mac(1), None, Some(stat_ctx)));
    assert_eq!(added.xid.get(), 0);
    (channel, nq)
}

const CAPABILITIES: QpCapabilities =
    QpCapabilities { max_send_wr: 8, max_recv_wr: 8, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };

/// Creates a queue pair of a kind of the device's.
fn create_qp(channel: &mut Channel, chip: usize, kind: u8, cq: CqId) -> QpId {
    channel.send(&CmdqQueryFunc::ZERO);
    let told: CreqQueryFuncRespSb = channel.side.load(0).unwrap();
    let (generation, mode) = [(Generation::P5, WqeMode::Static), (Generation::P7, WqeMode::Variable)][chip];
    let caps = DeviceCaps::from_query(generation, &told, mode).unwrap();
    let plan = QpPlan::new(&caps, &CAPABILITIES, false).unwrap();
    let recv = plan.recv.as_ref().map(|recv| u64::from(recv.bytes)).unwrap();
    let is_connected = kind == qp_kind::RC;
    let mut command = CmdqCreateQp::new(&NewQp {
        handle: 0x1234,
        qp_type: if is_connected { QpType::Rc } else { QpType::Ud },
        plan: &plan,
        signal_all: false,
        sq: channel.pages(plan.send.bytes.into(), Use::Ring),
        rq: Some(channel.pages(recv, Use::Ring)),
        read_tables: is_connected.then(|| (channel.piece(8192), channel.piece(8192))),
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        pd: PD,
        dpi: 0,
    })
    .unwrap();
    command.r#type = kind;
    QpId::truncated(channel.send(&command).xid.get())
}

/// A protection domain is a number of the driver's.
const PD: PdId = PdId::truncated(1);

/// What happens while the RDMA device is registered, and what `ibv_rc_pingpong` adds.
fn use_roce(channel: &mut Channel, chip: usize, nq: u16) {
    let ring = channel.pages(4096, Use::Ring);
    let cq = channel.send(&CmdqCreateCq::new(0x99, 128, ring, nq, 0).unwrap()).xid.get();
    let cq = CqId::truncated(cq);
    let gsi = create_qp(channel, chip, qp_kind::GSI, cq);
    assert_eq!(gsi.get(), 1, "the queue pair of general services");
    let init = QpAttributes { qkey: Some(QKey::truncated(0x8001_0000)), ..QpAttributes::to(QpState::Init) };
    channel.modify(gsi, QpType::Ud, QpState::Reset, &init);
    channel.modify(gsi, QpType::Ud, QpState::Init, &QpAttributes::to(QpState::Rtr));
    let rts = QpAttributes { sq_psn: Some(Psn::truncated(0)), ..QpAttributes::to(QpState::Rts) };
    channel.modify(gsi, QpType::Ud, QpState::Rtr, &rts);
    // A region: on P5 its key is allocated first.
    let memory = channel.pages(8192, Use::Memory);
    let key = match chip {
        0 => RegionKey::Allocated(channel.send(&CmdqAllocateMrw::region(PD)).xid.get()),
        _ => RegionKey::New(PD),
    };
    let registered = channel.send(&CmdqRegisterMr::new(key, AccessFlags::LOCAL_WRITE, 0x1000, 8192, memory));
    let key = if let RegionKey::Allocated(key) = key { key } else { registered.xid.get() };
    let qp = create_qp(channel, chip, qp_kind::RC, cq);
    let query = CmdqQueryQp { qp_cid: le::U32::new(qp.get()), ..CmdqQueryQp::ZERO };
    assert_eq!(channel.send(&query).size.get(), 7, "104 bytes");
    let path = AddressVector::new(Gid::v4([10, 0, 0, 2].into()), mac(2));
    let init = QpAttributes { access: Some(AccessFlags::REMOTE_READ), ..QpAttributes::to(QpState::Init) };
    channel.modify(qp, QpType::Rc, QpState::Reset, &init);
    let rtr = QpAttributes {
        path: Some(path),
        mtu: Some(Mtu::B1024),
        dest_qp: Some(QpId::truncated(7)),
        rq_psn: Some(Psn::truncated(0)),
        max_dest_rd_atomic: Some(1),
        min_rnr_timer: Some(12),
        ..QpAttributes::to(QpState::Rtr)
    };
    channel.modify(qp, QpType::Rc, QpState::Init, &rtr);
    let rts = QpAttributes {
        sq_psn: Some(Psn::truncated(0)),
        timeout: Some(14),
        retry_count: Some(7),
        rnr_retry: Some(7),
        max_rd_atomic: Some(1),
        ..QpAttributes::to(QpState::Rts)
    };
    channel.modify(qp, QpType::Rc, QpState::Rtr, &rts);
    // What is optional.
    assert_eq!(channel.send(&CmdqQueryRoceStats::ZERO).size.get(), 23, "368 bytes");
    channel.send(&CmdqQueryRoceStatsExt::ZERO);
    let ring = channel.pages(8192, Use::Ring);
    channel.send(&CmdqResizeCq::new(cq, 256, ring).unwrap());
    let ring = channel.pages(4096, Use::Ring);
    let srq_cid = channel.send(&CmdqCreateSrq::new(0x77, 32, ring, nq, 0, PD).unwrap()).xid;
    channel.send(&CmdqQuerySrq { srq_cid, ..CmdqQuerySrq::ZERO });
    channel.send(&CmdqDestroySrq { srq_cid, ..CmdqDestroySrq::ZERO });
    let ah = CmdqCreateAh::new(PD, &path, SourceGid { index: 0, vlan: None });
    let ah_cid = channel.send(&ah).xid;
    channel.send(&CmdqDestroyAh { ah_cid, ..CmdqDestroyAh::ZERO });
    // Only debuggers read contexts, and this device has none to show.
    let context = CmdqReadContext { xid: le::U32::new(qp.get()), ..CmdqReadContext::ZERO };
    let refused = channel.try_send(&context).err();
    assert!(
        matches!(refused, Some(CompletionError::Refused { status: Status::NOT_IMPLEMENTED, .. })),
        "{refused:?}"
    );
    for qp_cid in [qp, gsi].map(|qp| le::U32::new(qp.get())) {
        channel.send(&CmdqDestroyQp { qp_cid, ..CmdqDestroyQp::ZERO });
    }
    let cq_cid = le::U32::new(cq.get());
    let gone = channel.send(&CmdqDestroyCq { cq_cid, ..CmdqDestroyCq::ZERO });
    assert_eq!(gone.total_cnq_events.get(), 0, "as many as were written");
    channel.send(&CmdqDeallocateKey::region(key));
    channel.send(&CmdqDeleteGid::ZERO);
}

#[test]
fn linux_probes_opens_and_uses_the_nic() {
    for chip in 0..CHIPS.len() {
        let (mut raw, context) = probe(chip);
        open_interface(&mut raw);
        let (mut channel, nq) = init_roce(raw, context);
        use_roce(&mut channel, chip, nq);
        // In parts, as the last step of the registration.
        channel.send(&ModifyCongestion::NONE.set(Parameter::ENABLE_CC, 1).unwrap());
        channel.send(&CmdqQueryRoceCc::ZERO);
        let told: Congestion = channel.side.load(0).unwrap();
        assert_eq!(told.get(Parameter::ENABLE_CC), 1);
        assert_eq!(channel.raw.machine.violations(), [""; 0]);
        assert_eq!(channel.raw.machine.slot.violations(), 0);
        channel.raw.done(ReqType::FUNC_DRV_UNRGTR, &[]);
        channel.raw.done(ReqType::FUNC_RESET, &[]);
    }
}
