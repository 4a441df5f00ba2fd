//! Memory windows, fast registration, invalidation; scattered and zero-based regions.

mod engine_common;

use directverbs::verbs::{
    AccessFlags, BindMw, FastRegister, LKey, MwType, PageTable, RKey, RemoteAddress, SendFlags, SendOp, Sge,
    WcStatus,
};
use directverbs_softnic::device::{Memory, MrConfig, MrKind};
use directverbs_softnic::roce::Side;
use engine_common::{ALL, Node, Pair, Setup, pattern, work};

const OK: WcStatus = WcStatus::Success;

fn create(node: &Node, kind: MrKind, addr: u64, length: u64, access: AccessFlags) -> u32 {
    let config = MrConfig { key: None, pd: node.pd, kind, addr, length, access };
    node.nic.lock().create_mr(&config).unwrap()
}

fn window(node: &Node, mw_type: MwType) -> u32 {
    let kind = if mw_type == MwType::Type1 { MrKind::WindowType1 } else { MrKind::WindowType2 };
    create(node, kind, 0, 0, AccessFlags::empty())
}

/// Binds `window` to 1000 bytes at `offset`, so that peers may write.
fn bind(node: &Node, mw_type: MwType, window: u32, new_key: u32, offset: usize, length: u64) -> SendOp {
    SendOp::BindMw(BindMw {
        mw_type,
        mw: RKey::truncated(window),
        new_key: RKey::truncated(new_key),
        region: LKey::truncated(node.key),
        addr: node.block.addr() + offset as u64,
        length,
        access: AccessFlags::REMOTE_WRITE,
    })
}

fn run(node: &Node, pair: &Pair, op: SendOp) -> WcStatus {
    node.send(1, op, &[]);
    pair.settle();
    let outcomes = node.take_outcomes(Side::Send);
    assert_eq!(outcomes.len(), 1);
    outcomes[0].1
}

fn write(pair: &Pair, addr: u64, key: u32, len: usize) -> WcStatus {
    let remote = RemoteAddress { addr, rkey: RKey::truncated(key) };
    pair.a.send(1, SendOp::Write(remote), &[pair.a.sge(0, len)]);
    pair.settle();
    let outcomes = pair.a.take_outcomes(Side::Send);
    outcomes[0].1
}

#[test]
fn a_window_opens_what_it_is_bound_to_and_no_more() {
    for mw_type in [MwType::Type1, MwType::Type2] {
        for (offset, len, expected) in
            [(0, 1000, OK), (0, 1001, WcStatus::RemAccess), (-1, 10, WcStatus::RemAccess)]
        {
            let pair = Pair::new(Setup::default());
            let mw = window(&pair.b, mw_type);
            let key = mw | 0x42;
            assert_eq!(run(&pair.b, &pair, bind(&pair.b, mw_type, mw, key, 5000, 1000)), OK);
            let addr = (pair.b.block.addr() + 5000).wrapping_add_signed(offset);
            assert_eq!(write(&pair, addr, key, len), expected);
        }
    }
}

#[test]
fn a_window_that_is_not_bound_or_has_another_key_opens_nothing() {
    let pair = Pair::new(Setup::default());
    let mw = window(&pair.b, MwType::Type2);
    assert_eq!(write(&pair, pair.b.block.addr(), mw, 10), WcStatus::RemAccess);
    let pair = Pair::new(Setup::default());
    let mw = window(&pair.b, MwType::Type2);
    assert_eq!(run(&pair.b, &pair, bind(&pair.b, MwType::Type2, mw, mw | 1, 0, 1000)), OK);
    assert_eq!(write(&pair, pair.b.block.addr(), mw, 10), WcStatus::RemAccess);
}

#[test]
fn a_send_with_invalidate_closes_a_window_of_type_2() {
    let pair = Pair::new(Setup::default());
    let mw = window(&pair.b, MwType::Type2);
    assert_eq!(run(&pair.b, &pair, bind(&pair.b, MwType::Type2, mw, mw, 0, 1000)), OK);
    pair.b.recv(4, &[pair.b.sge(0, 100)]);
    assert_eq!(run(&pair.a, &pair, SendOp::SendInv(RKey::truncated(mw))), OK);
    let received = pair.b.take_completions();
    assert_eq!(received[0].invalidated, Some(RKey::truncated(mw)));
    assert_eq!(write(&pair, pair.b.block.addr(), mw, 10), WcStatus::RemAccess);
}

#[test]
fn a_key_that_cannot_be_invalidated_fails_the_send() {
    let pair = Pair::new(Setup::default());
    pair.b.recv(4, &[pair.b.sge(0, 100)]);
    let key = RKey::truncated(pair.b.key);
    assert_eq!(run(&pair.a, &pair, SendOp::SendInv(key)), WcStatus::RemAccess);
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(4, WcStatus::RemInvReq)]);
}

#[test]
fn a_window_is_rebound_as_its_type_allows() {
    let pair = Pair::new(Setup::default());
    let (one, two) = (window(&pair.b, MwType::Type1), window(&pair.b, MwType::Type2));
    let b = &pair.b;
    for (i, at) in [(1, 0), (2, 4000)] {
        assert_eq!(run(b, &pair, bind(b, MwType::Type1, one | (i - 1), one | i, at, 100)), OK);
    }
    assert_eq!(run(b, &pair, bind(b, MwType::Type1, one | 2, one | 3, 0, 0)), OK, "length 0 unbinds");
    assert_eq!(run(b, &pair, bind(b, MwType::Type2, two, two | 1, 0, 100)), OK);
    assert!(b.nic.lock().destroy_mr(b.key).is_err(), "a window is bound to the region");
    let again = bind(b, MwType::Type2, two | 1, two | 2, 0, 100);
    assert_eq!(run(b, &pair, again), WcStatus::MwBind, "type 2 must be invalidated first");
    b.nic.lock().destroy_mr(two).unwrap();
    b.nic.lock().destroy_mr(b.key).unwrap();
}

#[test]
fn a_bind_that_makes_no_sense_fails() {
    type Change = fn(&mut BindMw);
    let changes: [Change; 6] = [
        |bind| bind.mw_type = MwType::Type1,
        |bind| bind.new_key = RKey::truncated(bind.new_key.get() ^ 0x100),
        |bind| bind.mw = RKey::truncated(bind.mw.get() ^ 2),
        |bind| bind.region = LKey::truncated(bind.region.get() ^ 1),
        |bind| bind.length = 1 << 40,
        |bind| bind.region = LKey::truncated(bind.mw.get()),
    ];
    for change in changes {
        let pair = Pair::new(Setup::default());
        let mw = window(&pair.b, MwType::Type2);
        let SendOp::BindMw(mut wrong) = bind(&pair.b, MwType::Type2, mw, mw | 1, 0, 100) else { return };
        change(&mut wrong);
        assert_eq!(run(&pair.b, &pair, SendOp::BindMw(wrong)), WcStatus::MwBind, "{wrong:?}");
    }
    let region = ALL.difference(AccessFlags::MW_BIND);
    let pair = Pair::new(Setup { region, ..Setup::default() });
    let mw = window(&pair.b, MwType::Type2);
    let op = bind(&pair.b, MwType::Type2, mw, mw | 1, 0, 100);
    assert_eq!(run(&pair.b, &pair, op), WcStatus::MwBind, "the region allows no windows");
}

#[test]
fn a_fast_registered_region_is_what_its_page_list_says() {
    let pages: [u64; 3] = [7, 2, 5];
    for level in 0..3 {
        let pair = Pair::new(Setup::default());
        let b = &pair.b;
        let key = create(b, MrKind::FastRegister { max_pages: 3 }, 0, 0, ALL);
        let base = b.block.addr();
        let lists = b.memory.alloc(8192);
        for (i, page) in pages.iter().enumerate() {
            assert!(lists.write(8 * i, &(base + 4096 * page).to_le_bytes()));
        }
        assert!(lists.write(4096, &lists.addr().to_le_bytes()));
        let table = match level {
            0 => PageTable::Contiguous(base + 4096 * 7),
            1 => PageTable::Level1(lists.addr()),
            _ => PageTable::Level2(lists.addr() + 4096),
        };
        let register = FastRegister {
            key: LKey::truncated(key | 9),
            addr: 0x7000_0100,
            length: 3 * 4096 - 0x100,
            page_shift: 12,
            pages: 3,
            table,
            access: ALL,
        };
        assert_eq!(run(b, &pair, SendOp::FastRegister(register)), OK);
        let data = pattern(4, 3 * 4096 - 0x100);
        pair.a.fill(0, &data);
        assert_eq!(write(&pair, 0x7000_0100, key | 9, data.len()), OK);
        let expected = if level == 0 { [7, 8, 9] } else { pages };
        let mut seen = Vec::new();
        for page in expected {
            seen.extend(b.bytes(4096 * page as usize, 4096));
        }
        assert!(seen[0x100..] == data, "level {level}");
        assert_eq!(run(b, &pair, SendOp::LocalInv(RKey::truncated(key | 9))), OK);
        assert_eq!(write(&pair, 0x7000_0100, key | 9, 1), WcStatus::RemAccess);
    }
}

#[test]
fn a_fast_registration_over_its_bounds_fails() {
    let pair = Pair::new(Setup::default());
    let key = create(&pair.b, MrKind::FastRegister { max_pages: 3 }, 0, 0, ALL);
    let good = FastRegister {
        key: LKey::truncated(key),
        addr: 0x100,
        length: 4096,
        page_shift: 12,
        pages: 2,
        table: PageTable::Contiguous(pair.b.block.addr()),
        access: ALL,
    };
    let wrong = [
        FastRegister { pages: 4, ..good },
        FastRegister { pages: 1, ..good },
        FastRegister { page_shift: 64, ..good },
        FastRegister { addr: u64::MAX - 5, ..good },
        FastRegister { table: PageTable::Level1(8), ..good },
        FastRegister { key: LKey::truncated(pair.b.key), ..good },
    ];
    for register in wrong {
        let mut setup = pair.setup;
        setup.options.seed += 1;
        let fresh = Pair::new(setup);
        let same = create(&fresh.b, MrKind::FastRegister { max_pages: 3 }, 0, 0, ALL);
        assert_eq!(same, key);
        assert_eq!(run(&fresh.b, &fresh, SendOp::FastRegister(register)), WcStatus::MwBind, "{register:?}");
    }
}

#[test]
fn a_key_may_be_invalidated_behind_a_write_that_is_lost() {
    // The invalidation waits until the WRITE cannot have to be sent again.
    let mut setup = Setup::default();
    setup.options.faults.lose_frame = 300_000;
    let pair = Pair::new(setup);
    let a = &pair.a;
    let key = create(a, MrKind::FastRegister { max_pages: 1 }, 0, 0, ALL);
    let register = FastRegister {
        key: LKey::truncated(key),
        addr: 0,
        length: 4096,
        page_shift: 12,
        pages: 1,
        table: PageTable::Contiguous(a.block.addr()),
        access: ALL,
    };
    a.send(1, SendOp::FastRegister(register), &[]);
    let sge = Sge::new(0, 4096, LKey::truncated(key));
    a.send(2, SendOp::Write(pair.b.remote(0)), &[sge]);
    a.send(3, SendOp::LocalInv(RKey::truncated(key)), &[]);
    pair.settle();
    assert_eq!(a.take_outcomes(Side::Send), [(1, OK), (2, OK), (3, OK)]);
}

#[test]
fn local_operations_may_be_reported_early() {
    let pair = Pair::new(Setup::default());
    let a = &pair.a;
    a.nic.lock().hardware().set_early_local(a.qp, true).unwrap();
    let mw = window(a, MwType::Type1);
    a.send(1, SendOp::Write(pair.b.remote(0)), &[a.sge(0, 10_000)]);
    a.send(2, bind(a, MwType::Type1, mw, mw | 1, 0, 10), &[]);
    let fenced = work(3, bind(a, MwType::Type1, mw | 1, mw | 2, 0, 10), &[]);
    a.post(directverbs_softnic::roce::SendWork { flags: SendFlags::LOCAL_FENCE, ..fenced });
    pair.settle();
    assert_eq!(a.take_outcomes(Side::Send), [(2, OK), (1, OK), (3, OK)]);
}

#[test]
fn a_region_of_scattered_pages_counts_from_zero() {
    let pair = Pair::new(Setup::default());
    let base = pair.b.block.addr();
    let pages: Vec<u64> = [9, 3, 6].iter().map(|page| base + 4096 * page).collect();
    let memory = Memory::Pages { shift: 12, first: 100, pages: pages.into() };
    let access = ALL.union(AccessFlags::ZERO_BASED);
    let key = create(&pair.b, MrKind::Region(memory), base, 8000, access);
    let data = pattern(1, 8000);
    pair.a.fill(0, &data);
    assert_eq!(write(&pair, 0, key, 8000), OK);
    assert!(pair.b.bytes(9 * 4096 + 100, 3996) == data[..3996]);
    assert!(pair.b.bytes(3 * 4096, 4004) == data[3996..]);
    assert_eq!(write(&pair, 7999, key, 2), WcStatus::RemAccess);
}
