//! What the made-up kernel refuses, and with which errno: one row for each violation.

mod uverbs_common;

use std::os::fd::AsRawFd;
use std::path::Path;

use directverbs_fake_uverbs::abi::{BufferDesc, EXTENDED, ModifyQp, QpDest, bnxt_re, command, ionic};
use directverbs_fake_uverbs::{Census, Errno, Profile, Release};
use directverbs_softnic::open::{NicKind, WqeMode};
use rustix::mm::ProtFlags;
use uverbs_common::{Memory, Packet, Process};
use zerocopy::IntoBytes;

type Change = Box<dyn Fn(&mut Packet)>;
type Row = (&'static str, Change, Result<(), Errno>);

const ALL_NICS: [NicKind; 4] = NicKind::ALL;
const UHW: u16 = 0x1000;

fn row(name: &'static str, change: impl Fn(&mut Packet) + 'static, answer: Result<(), Errno>) -> Row {
    (name, Box::new(change), answer)
}

/// Sends the good packet with each change, and the good one last: nothing that was refused has left anything behind.
fn judge(process: &Process, good: &Packet, rows: &[Row]) {
    for (name, change, answer) in rows {
        let before = process.machine.census();
        let mut packet = good.clone();
        change(&mut packet);
        assert_eq!(packet.send(process), *answer, "{name}, Linux {}", process.release);
        if answer.is_err() {
            assert_eq!(process.machine.census(), before, "{name}");
        }
    }
    assert_eq!(good.clone().send(process), Ok(()));
}

fn releases(nic: NicKind) -> impl Iterator<Item = Release> {
    Release::ALL.into_iter().filter(move |release| release.drives(nic))
}

fn add(packet: &mut Packet, more: impl FnOnce(Packet) -> Packet) {
    *packet = more(packet.clone());
}

#[test]
fn packets_are_taken_apart_as_the_kernel_does() {
    for nic in ALL_NICS {
        for release in releases(nic) {
            let process = Process::new(nic, release);
            let memory = process.memory(0x4000);
            let good = process.create_cq(&memory);
            let rows = [
                row(
                    "length of the packet",
                    |p| (p.header.length, p.header.attributes) = (40, 2),
                    Err(Errno::INVAL),
                ),
                row("reserved word", |p| p.header.reserved1 = 1, Err(Errno::PROTONOSUPPORT)),
                row("second reserved word", |p| p.header.reserved2 = 1, Err(Errno::PROTONOSUPPORT)),
                row("driver", |p| p.header.driver += 1, Err(Errno::INVAL)),
                row("object", |p| p.header.object = 999, Err(Errno::PROTONOSUPPORT)),
                row("method", |p| p.header.method = 99, Err(Errno::PROTONOSUPPORT)),
                row("unknown attribute", |p| add(p, |p| p.value(99, 0u32)), Err(Errno::PROTONOSUPPORT)),
                row(
                    "unknown attribute that may be ignored",
                    |p| {
                        add(p, |p| p.value(99, 0u32));
                        p.at(99).0.flags = 0;
                    },
                    Ok(()),
                ),
                row("attribute twice", |p| add(p, |p| p.value(1, 5u32)), Err(Errno::INVAL)),
                row("reserved bits of a value", |p| p.at(1).0.extra = 1, Err(Errno::INVAL)),
                row("reserved bits of a handle", |p| p.at(0).0.extra = 1, Err(Errno::INVAL)),
                row("reserved bits of an output", |p| p.at(6).0.extra = 1, Err(Errno::INVAL)),
                row("length of a handle", |p| p.at(0).0.len = 4, Err(Errno::INVAL)),
                row("value too short", |p| p.at(1).0.len = 2, Err(Errno::INVAL)),
                row("value too long", |p| p.at(1).0.len = 8, Err(Errno::INVAL)),
                row("output too short", |p| p.at(6).0.len = 2, Err(Errno::INVAL)),
                row("output too long", |p| p.at(6).0.len = 8, Err(Errno::INVAL)),
                row("attribute missing", |p| p.remove(4), Err(Errno::INVAL)),
                row("output missing", |p| p.remove(6), Err(Errno::INVAL)),
            ];
            judge(&process, &good, &rows);
        }
    }
}

#[test]
fn a_context_is_opened_once_and_before_anything_else() {
    for nic in ALL_NICS {
        for release in releases(nic) {
            let process = Process::open(Profile::new(nic, release, 1));
            let memory = process.memory(0x4000);
            assert_eq!(process.create_cq(&memory).send(&process), Err(Errno::INVAL));
            let alloc_pd = process.command(command::ALLOC_PD, &[], 4, 16);
            assert_eq!(alloc_pd.clone().send(&process), Err(Errno::INVAL));
            let robust = release >= Release::V7_2;
            let unknown = |p: &mut Packet| match nic {
                NicKind::BnxtReP5 | NicKind::BnxtReP7 => {
                    p.change(UHW, |r: &mut bnxt_re::UctxReq| r.comp_mask = 4);
                }
                _ => p.change(UHW, |r: &mut ionic::CtxReq| r.rsvd[1] = 1),
            };
            let ionic = matches!(nic, NicKind::IonicV1 | NicKind::IonicV2);
            let answer = match (robust, ionic) {
                (_, true) => Err(Errno::INVAL),
                (true, false) => Err(Errno::OPNOTSUPP),
                (false, false) => Ok(()),
            };
            let mut packet = process.get_context();
            unknown(&mut packet);
            assert_eq!(packet.send(&process), answer, "{nic} {release}");
            if answer.is_err() {
                assert_eq!(process.machine.census().contexts, 0);
                let mut packet = process.get_context();
                assert_eq!(packet.send(&process), Ok(()));
                assert_eq!(packet.read::<u64>(1), if robust { 3 } else { 1 });
            }
            assert_eq!(process.get_context().send(&process), Err(Errno::INVAL));
        }
    }
}

#[test]
fn completion_queues_of_bnxt_re() {
    for nic in [NicKind::BnxtReP5, NicKind::BnxtReP7] {
        for release in releases(nic) {
            let process = Process::new(nic, release);
            let memory = process.memory(0x4000);
            let (at, good) = (memory.at, process.create_cq(&memory));
            let newer = release >= Release::V7_2;
            let (unknown, short) =
                if newer { (Err(Errno::OPNOTSUPP), Errno::INVAL) } else { (Ok(()), Errno::FAULT) };
            let request = |p: &mut Packet, change: &dyn Fn(&mut bnxt_re::CqReq)| {
                p.at(UHW).1.resize(24, 0);
                p.at(UHW).0.len = 24;
                p.change(UHW, change);
            };
            let mut rows = vec![
                row("no entries", |p| p.change(1, |cqe: &mut u32| *cqe = 0), Err(Errno::INVAL)),
                row("too many entries", |p| p.change(1, |cqe: &mut u32| *cqe = 1 << 20), Err(Errno::INVAL)),
                row("vector", |p| p.change(4, |vector: &mut u32| *vector = 4), Err(Errno::INVAL)),
                row("unknown flag", |p| add(p, |p| p.value(5, 4u32)), Err(Errno::INVAL)),
                row("timestamps", |p| add(p, |p| p.value(5, 1u32)), Err(Errno::OPNOTSUPP)),
                row("no channel", |p| add(p, |p| p.handle(3, 0)), Err(Errno::BADF)),
                row("no event file", |p| add(p, |p| p.handle(7, 1)), Err(Errno::BADF)),
                row("request missing", |p| p.remove(UHW), Err(short)),
                row("unknown bit", move |p| request(p, &|r| r.comp_mask = 2), unknown),
                row("no such memory", move |p| request(p, &|r| r.cq_va = 0x1000), Err(Errno::FAULT)),
                row("ring beside its page", move |p| request(p, &|r| r.cq_va += 64), Err(Errno::INVAL)),
                row(
                    "bytes behind the request",
                    |p| {
                        p.at(UHW).1.resize(40, 1);
                        p.at(UHW).0.len = 40;
                    },
                    unknown,
                ),
                row(
                    "zeroes behind the request",
                    |p| {
                        p.at(UHW).1.resize(40, 0);
                        p.at(UHW).0.len = 40;
                    },
                    Ok(()),
                ),
            ];
            let desc = BufferDesc { kind: 1, addr: at, length: 0x4000, ..BufferDesc::default() };
            let umem = |desc: BufferDesc| move |p: &mut Packet| add(p, |p| p.value(12, desc));
            if newer {
                rows.extend([
                    row("ring memory by attribute", umem(desc), Ok(())),
                    row("its flags", umem(BufferDesc { flags: 1, ..desc }), Err(Errno::INVAL)),
                    row("its optional flags", umem(BufferDesc { optional_flags: 1, ..desc }), Ok(())),
                    row("its kind", umem(BufferDesc { kind: 2, ..desc }), Err(Errno::INVAL)),
                    row("its length", umem(BufferDesc { length: 100, ..desc }), Err(Errno::INVAL)),
                    row("its place in a page", umem(BufferDesc { addr: at + 8, ..desc }), Err(Errno::INVAL)),
                    row(
                        "a descriptor that is no dma-buf",
                        umem(BufferDesc { kind: 0, fd: 0, ..desc }),
                        Err(Errno::INVAL),
                    ),
                    row(
                        "memory in two ways",
                        move |p| add(p, |p| p.value(12, desc).value(8, at).value(9, 0x4000u64)),
                        Err(Errno::INVAL),
                    ),
                    row("address without length", move |p| add(p, |p| p.value(8, at)), Err(Errno::INVAL)),
                    row("length without memory", |p| add(p, |p| p.value(9, 0x4000u64)), Err(Errno::INVAL)),
                    row("memory by address", move |p| add(p, |p| p.value(8, at).value(9, 0x4000u64)), Ok(())),
                ]);
            } else {
                rows.push(row("ring memory by attribute", umem(desc), Err(Errno::PROTONOSUPPORT)));
            }
            judge(&process, &good, &rows);
        }
    }
}

/// A process with a protection domain and a completion queue.
fn prepared(process: &Process) -> (Memory, u32, u32) {
    let memory = process.memory(0x4_0000);
    let pd = process.pd();
    let cq = process.made(process.create_cq(&memory));
    (memory, pd, cq)
}

#[test]
fn queue_pairs_of_bnxt_re() {
    const FIXED: u64 = 1;
    for release in releases(NicKind::BnxtReP7) {
        let process = Process::new(NicKind::BnxtReP7, release);
        let (memory, pd, cq) = prepared(&process);
        let (at, newer) = (memory.at, release >= Release::V7_2);
        let good = process.create_qp(&memory, pd, cq);
        type Req = bnxt_re::QpReq;
        let request = |change: fn(&mut Req)| move |p: &mut Packet| p.change(UHW, change);
        let cap = |place: usize, value: u32| {
            move |p: &mut Packet| p.change(8, |cap: &mut [u32; 5]| cap[place] = value)
        };
        let mut rows = vec![
            row("protection domain missing", |p| p.remove(2), Err(Errno::NOENT)),
            row("completion queue missing", |p| p.remove(4), Err(Errno::NOENT)),
            row("handle of nothing", |p| p.at(2).0.data = 77, Err(Errno::NOENT)),
            row("handle of something else", move |p| p.at(2).0.data = cq.into(), Err(Errno::INVAL)),
            row("negative handle", |p| p.at(2).0.data = u64::MAX, Err(Errno::INVAL)),
            row("unreliable connection", |p| p.at(9).0.data = 3, Err(Errno::OPNOTSUPP)),
            row("no such kind", |p| p.at(9).0.data = 77, Err(Errno::INVAL)),
            row("unknown flag", |p| add(p, |p| p.value(10, 1u32 << 20)), Err(Errno::INVAL)),
            row("too many sends", cap(0, 0x1_0000), Err(Errno::INVAL)),
            row("too many receives", cap(1, 0x1_0000), Err(Errno::INVAL)),
            row("too many SGEs", cap(2, 14), Err(Errno::INVAL)),
            row("too many inline bytes", cap(4, 1000), Err(Errno::INVAL)),
            row("no slots", request(|r| r.sq_slots = 0), Err(Errno::INVAL)),
            row("too many slots", request(|r| r.sq_slots = 65537), Err(Errno::INVAL)),
            row("no such send ring", request(|r| r.qpsva = 0x1000), Err(Errno::FAULT)),
            row("no such receive ring", request(|r| r.qprva = 0x1000), Err(Errno::FAULT)),
            row("ring beside its page", request(|r| r.qpsva += 16), Err(Errno::INVAL)),
            row("capabilities too short", |p| p.at(8).0.len = 16, Err(Errno::INVAL)),
            row(
                "zeroes behind the capabilities",
                |p| {
                    p.at(8).1.resize(32, 0);
                    p.at(8).0.len = 32;
                },
                Ok(()),
            ),
            row(
                "bytes behind the capabilities",
                |p| {
                    p.at(8).1.resize(32, 1);
                    p.at(8).0.len = 32;
                },
                Err(Errno::OPNOTSUPP),
            ),
        ];
        if newer {
            let desc = BufferDesc { kind: 1, addr: at, length: 0x1_0000, ..BufferDesc::default() };
            rows.extend([
                row("unknown bit", request(|r| r.comp_mask = 2), Err(Errno::OPNOTSUPP)),
                row("fixed, no table", request(|r| r.comp_mask = FIXED), Err(Errno::INVAL)),
                row(
                    "fixed, table too long",
                    request(|r| (r.comp_mask, r.sq_npsn) = (FIXED, 1024)),
                    Err(Errno::INVAL),
                ),
                row("fixed", request(|r| (r.comp_mask, r.sq_npsn) = (FIXED, 512)), Ok(())),
                row("send ring by attribute", move |p| add(p, |p| p.value(17, desc)), Ok(())),
                row(
                    "send ring too short",
                    move |p| add(p, |p| p.value(17, BufferDesc { length: 0x1000, ..desc })),
                    Err(Errno::INVAL),
                ),
                row(
                    "flags of a ring",
                    move |p| add(p, |p| p.value(16, BufferDesc { flags: 4, ..desc })),
                    Err(Errno::INVAL),
                ),
                row("doorbell region of nothing", |p| add(p, |p| p.handle(0x1002, 99)), Err(Errno::NOENT)),
                row(
                    "doorbell region that is something else",
                    move |p| add(p, |p| p.handle(0x1002, pd)),
                    Err(Errno::INVAL),
                ),
            ]);
        } else {
            rows.extend([
                row("slots are valid", request(|r| r.comp_mask = 1), Ok(())),
                row("doorbell region", move |p| add(p, |p| p.handle(0x1002, pd)), Err(Errno::PROTONOSUPPORT)),
                row(
                    "send ring by attribute",
                    |p| add(p, |p| p.value(17, BufferDesc::default())),
                    Err(Errno::PROTONOSUPPORT),
                ),
            ]);
        }
        judge(&process, &good, &rows);
    }
}

#[test]
fn fixed_sizes_need_variable_mode() {
    let profile = Profile { wqe_mode: WqeMode::Static, ..Profile::new(NicKind::BnxtReP7, Release::V7_3, 1) };
    let process = Process::open(profile);
    process.get_context().send(&process).unwrap();
    let (memory, pd, cq) = prepared(&process);
    let fixed = |p: &mut Packet| p.change(UHW, |r: &mut bnxt_re::QpReq| (r.comp_mask, r.sq_npsn) = (1, 8));
    let rows = [row("fixed", fixed, Err(Errno::OPNOTSUPP))];
    judge(&process, &process.create_qp(&memory, pd, cq), &rows);
}

#[test]
fn queues_of_ionic() {
    for nic in [NicKind::IonicV1, NicKind::IonicV2] {
        for release in releases(nic) {
            let process = Process::new(nic, release);
            let (memory, pd, cq) = prepared(&process);
            let ring = |change: fn(&mut ionic::Qdesc)| {
                (
                    move |p: &mut Packet| p.change(UHW, |r: &mut ionic::CqReq| change(&mut r.cq[1])),
                    move |p: &mut Packet| p.change(UHW, |r: &mut ionic::QpReq| change(&mut r.sq)),
                    move |p: &mut Packet| p.change(UHW, |r: &mut ionic::QpReq| change(&mut r.rq)),
                )
            };
            let wrong: [(&'static str, fn(&mut ionic::Qdesc), Errno); 8] = [
                ("no ring", |r| r.addr = 0, Errno::INVAL),
                ("ring beside its page", |r| r.addr += 64, Errno::INVAL),
                ("no such memory", |r| r.addr = 0x1000, Errno::FAULT),
                ("no bytes", |r| r.size = 0, Errno::INVAL),
                ("too few bytes", |r| r.size -= 1, Errno::INVAL),
                ("mask", |r| r.mask -= 1, Errno::INVAL),
                ("no depth", |r| (r.depth_log2, r.mask) = (0, 0), Errno::INVAL),
                ("no stride", |r| r.stride_log2 = 0, Errno::INVAL),
            ];
            let (mut cqs, mut qps) = (Vec::new(), Vec::new());
            for (name, change, errno) in wrong {
                let (of_cq, of_sq, of_rq) = ring(change);
                cqs.push(row(name, of_cq, Err(errno)));
                qps.extend([row(name, of_sq, Err(errno)), row(name, of_rq, Err(errno))]);
            }
            let cq_request = |change: fn(&mut ionic::CqReq)| move |p: &mut Packet| p.change(UHW, change);
            let qp_request = |change: fn(&mut ionic::QpReq)| move |p: &mut Packet| p.change(UHW, change);
            cqs.extend([
                row("reserved bytes", cq_request(|r| r.rsvd[6] = 1), Err(Errno::INVAL)),
                row("pipeline that there is not", cq_request(|r| r.udma_mask = 4), Err(Errno::INVAL)),
                row("one pipeline", cq_request(|r| r.udma_mask = 1), Ok(())),
                row("no entries", |p| p.change(1, |cqe: &mut u32| *cqe = 0), Err(Errno::INVAL)),
                row("too many entries", |p| p.change(1, |cqe: &mut u32| *cqe = 0xffff), Err(Errno::INVAL)),
            ]);
            judge(&process, &process.create_cq(&memory), &cqs);
            qps.extend([
                row("reserved bytes are not looked at", qp_request(|r| r.rsvd[2] = 1), Ok(())),
                row("pipeline that there is not", qp_request(|r| r.udma_mask = 4), Err(Errno::INVAL)),
                row("list of lengths too long", qp_request(|r| r.sq_spec = 9), Err(Errno::INVAL)),
                row("receive queue must be in the NIC", qp_request(|r| r.rq_cmb = 3), Err(Errno::INVAL)),
                row("receive queue may be in the NIC", qp_request(|r| r.rq_cmb = 1), Ok(())),
                row("raw packets", |p| p.at(9).0.data = 8, Err(Errno::OPNOTSUPP)),
                row("too many SGEs", |p| p.change(8, |cap: &mut [u32; 5]| cap[3] = 99), Err(Errno::INVAL)),
            ]);
            judge(&process, &process.create_qp(&memory, pd, cq), &qps);
        }
    }
}

#[test]
fn memory_of_the_nic_is_granted_while_there_is_room() {
    let process =
        Process::open(Profile { device_memory: 8192, ..Profile::new(NicKind::IonicV2, Release::V7_3, 1) });
    process.get_context().send(&process).unwrap();
    let (memory, pd, cq) = prepared(&process);
    let create = |flags: u8| {
        let mut packet = process.create_qp(&memory, pd, cq);
        packet.change(UHW, |r: &mut ionic::QpReq| r.sq_cmb = flags);
        packet.send(&process)?;
        let reply: ionic::QpResp = packet.read(0x1001);
        Ok((packet.attributes[0].0.data as u32, reply.sq_cmb, reply.sq_cmb_offset))
    };
    let (first, granted, offset) = create(1 | 4).unwrap();
    assert_eq!(granted, 1 | 4 | 8, "with express doorbells, write-combining");
    let at = process.machine.mmap(process.fd, offset, 8192, ProtFlags::WRITE).unwrap();
    // SAFETY: nobody uses it.
    unsafe { process.machine.munmap(at, 8192) }.unwrap();
    let (second, granted, offset) = create(1).unwrap();
    assert_eq!((granted, offset), (0, 0), "no room: host memory");
    assert_eq!(create(1 | 2), Err(Errno::NOMEM), "no room, but required");
    assert_eq!(create(1 | 2 | 8 | 16), Err(Errno::INVAL), "mapped in two ways");
    process.destroy(4, 1, first, 4).unwrap();
    assert_eq!(create(1 | 2).map(|(_, granted, _)| granted), Ok(1 | 8), "room again");
    process.destroy(4, 1, second, 4).unwrap();
}

#[test]
fn what_is_used_cannot_be_destroyed() {
    for nic in ALL_NICS {
        for release in releases(nic) {
            let process = Process::new(nic, release);
            let (memory, pd, cq) = prepared(&process);
            let qp = process.made(process.create_qp(&memory, pd, cq));
            assert_eq!(process.destroy(1, 0, pd, 0), Err(Errno::BUSY));
            assert_eq!(process.destroy(3, 1, cq, 8), Err(Errno::BUSY));
            assert_eq!(process.destroy(4, 1, cq, 4), Err(Errno::INVAL), "not a queue pair");
            assert_eq!(process.destroy(4, 1, qp, 4), Ok(()));
            assert_eq!(process.destroy(4, 1, qp, 4), Err(Errno::NOENT));
            assert_eq!(process.destroy(3, 1, cq, 8), Ok(()));
            assert_eq!(process.destroy(1, 0, pd, 0), Ok(()));
            let machine = process.machine.clone();
            drop((memory, process));
            assert_eq!(machine.census(), Census::default());
        }
    }
}

#[test]
fn pages_of_bnxt_re() {
    let process = Process::new(NicKind::BnxtReP7, Release::V7_3);
    let (memory, pd, cq) = prepared(&process);
    let alloc = |kind: u64| {
        let packet = process.packet(0x1000, 0x1000).handle(0x1000, 0).value(0x1001, kind);
        let mut packet = packet.out(0x1002, 4).out(0x1003, 8).out(0x1004, 4);
        packet.send(&process).map(|()| (packet.attributes[0].0.data as u32, packet.read::<u64>(0x1003)))
    };
    let map = |cookie, access| {
        let at = process.machine.mmap(process.fd, cookie, 4096, access)?;
        // SAFETY: nobody uses it.
        unsafe { process.machine.munmap(at, 4096) }
    };
    let (push, cookie) = alloc(0).unwrap();
    assert_eq!(alloc(0), Err(Errno::EXIST), "one push page");
    assert_eq!(map(cookie, ProtFlags::WRITE), Ok(()));
    assert_eq!(process.machine.mmap(process.fd, cookie, 8192, ProtFlags::WRITE), Err(Errno::INVAL));
    process.packet(0x1000, 0x1001).handle(0x1000, push).send(&process).unwrap();
    assert_eq!(map(cookie, ProtFlags::WRITE), Err(Errno::INVAL), "freed");
    assert!(alloc(0).is_ok() && alloc(1).is_ok());
    let (_, parameters) = alloc(2).unwrap();
    assert_eq!(map(parameters, ProtFlags::READ), Ok(()));
    assert_eq!(map(parameters, ProtFlags::READ | ProtFlags::WRITE), Err(Errno::FAULT));
    assert_eq!(alloc(3), Err(Errno::INVAL));

    let toggle =
        || process.packet(0x1002, 0x1000).handle(0x1000, 0).out(0x1003, 8).out(0x1004, 4).out(0x1005, 4);
    let mut packet = toggle().handle(0x1006, cq);
    packet.send(&process).unwrap();
    let (handle, page) = (packet.attributes[0].0.data as u32, packet.read::<u64>(0x1003));
    assert_eq!(map(page, ProtFlags::READ), Ok(()));
    assert_eq!(map(page, ProtFlags::WRITE), Err(Errno::FAULT));
    assert_eq!(toggle().send(&process), Err(Errno::INVAL), "of which queue");
    assert_eq!(toggle().handle(0x1006, pd).send(&process), Err(Errno::INVAL));
    let by_number = toggle().handle(0x1006, cq).value(0x1001, 0u64).value(0x1002, 0u32);
    assert_eq!(by_number.clone().send(&process), Err(Errno::INVAL), "in two ways");
    // The page outlives its queue.
    process.destroy(3, 1, cq, 8).unwrap();
    assert_eq!(map(page, ProtFlags::READ), Ok(()));
    process.packet(0x1002, 0x1001).handle(0x1000, handle).send(&process).unwrap();
    assert_eq!(map(page, ProtFlags::READ), Err(Errno::INVAL));

    let cq = process.made(process.create_cq(&memory));
    let mut packet = process.packet(0x1003, 0x1000).handle(0x1000, 0).out(0x1001, 16).out(0x1002, 8);
    packet.send(&process).unwrap();
    let (region, cookie) = (packet.attributes[0].0.data as u32, packet.read::<u64>(0x1002));
    assert_eq!(map(cookie, ProtFlags::WRITE), Ok(()));
    let qp = process.made(process.create_qp(&memory, pd, cq).handle(0x1002, region));
    let free = || process.packet(0x1003, 0x1001).handle(0x1000, region).send(&process);
    assert_eq!(free(), Err(Errno::BUSY));
    process.destroy(4, 1, qp, 4).unwrap();
    assert_eq!(free(), Ok(()));
}

#[test]
fn what_a_kernel_or_chip_does_not_have_is_refused() {
    let toggle = |process: &Process| {
        let packet = process.packet(0x1002, 0x1000).handle(0x1000, 0).value(0x1001, 0u64).value(0x1002, 0u32);
        packet.out(0x1003, 8).out(0x1004, 4).out(0x1005, 4)
    };
    let p5 = Process::new(NicKind::BnxtReP5, Release::V7_3);
    let _prepared = prepared(&p5);
    assert_eq!(toggle(&p5).send(&p5), Err(Errno::OPNOTSUPP), "P5 has no toggle pages");
    let page = |kind: u64| {
        let packet = p5.packet(0x1000, 0x1000).handle(0x1000, 0).value(0x1001, kind);
        packet.out(0x1002, 4).out(0x1003, 8).out(0x1004, 4).send(&p5)
    };
    assert_eq!((page(0), page(1)), (Err(Errno::INVAL), Err(Errno::OPNOTSUPP)));

    let older = Process::new(NicKind::BnxtReP7, Release::V6_12);
    let region = older.packet(0x1003, 0x1000).handle(0x1000, 0).out(0x1001, 16).out(0x1002, 8);
    assert_eq!(region.clone().send(&older), Err(Errno::PROTONOSUPPORT));
    assert_eq!(older.packet(0x1004, 0x1002).out(0x1000, 16).send(&older), Err(Errno::PROTONOSUPPORT));
    let (_memory, _, cq) = prepared(&older);
    let mut by_handle = toggle(&older).handle(0x1006, cq);
    assert_eq!(by_handle.send(&older), Err(Errno::PROTONOSUPPORT));
    let mut missing = toggle(&older);
    missing.remove(0x1001);
    assert_eq!(missing.send(&older), Err(Errno::INVAL), "mandatory before 7.3");

    let ionic = Process::new(NicKind::IonicV2, Release::V7_2);
    let mut context = ionic.get_context();
    assert_eq!(context.send(&ionic), Err(Errno::INVAL));
    let srq = [ionic.pd(), 16, 1, 0];
    let create = ionic.command(command::CREATE_SRQ, &[&[0; 8], srq.as_bytes()].concat(), 16, 16);
    assert_eq!(create.clone().send(&ionic), Err(Errno::OPNOTSUPP), "ionic has no shared receive queues");
    assert_eq!(ionic.packet(0x1000, 0x1000).send(&ionic), Err(Errno::PROTONOSUPPORT));
}

#[test]
fn memory_regions() {
    for nic in ALL_NICS {
        for release in releases(nic) {
            let process = Process::new(nic, release);
            let (memory, pd) = (process.memory(0x4000), process.pd());
            let at = memory.at;
            let register = |[start, length, iova]: [u64; 3], pd: u32, access: u32| {
                let request = [[start, length, iova].as_bytes(), [pd, access].as_bytes()].concat();
                process.command(command::REG_MR, &request, 12, 0).send(&process)
            };
            let rows = [
                ("as it should be", [at, 0x4000, at], pd, 1, Ok(())),
                ("at another place of the page", [at, 0x1000, at + 8], pd, 1, Err(Errno::INVAL)),
                ("nothing", [at, 0, at], pd, 1, Err(Errno::INVAL)),
                ("behind its end", [at, 0x1000_0000, at], pd, 1, Err(Errno::FAULT)),
                (
                    "around the end of addresses",
                    [u64::MAX - 99, 200, u64::MAX - 99],
                    pd,
                    1,
                    Err(Errno::INVAL),
                ),
                ("peers write, but not we", [at, 0x1000, at], pd, 2, Err(Errno::INVAL)),
                ("an unknown flag", [at, 0x1000, at], pd, 1 | 1 << 12, Err(Errno::INVAL)),
                ("an optional flag", [at, 0x1000, at], pd, 1 | 1 << 20, Ok(())),
                ("on demand", [at, 0x1000, at], pd, 1 | 1 << 6, Err(Errno::OPNOTSUPP)),
                ("another protection domain", [at, 0x1000, at], 99, 1, Err(Errno::NOENT)),
            ];
            for (name, range, pd, access, answer) in rows {
                assert_eq!(register(range, pd, access), answer, "{name}, {nic} {release}");
            }
            assert_eq!(process.destroy(1, 0, pd, 0), Err(Errno::BUSY));
        }
    }
}

#[test]
fn regions_of_a_dmabuf() {
    for nic in ALL_NICS {
        for release in releases(nic) {
            let process = Process::new(nic, release);
            let pd = process.pd();
            let dmabuf = process.machine.new_dmabuf(0x4000).unwrap();
            let fd = dmabuf.as_raw_fd();
            let register = |fd: i32, [offset, length, iova]: [u64; 3], access: u32| {
                let packet =
                    process.packet(7, 4).handle(0, 0).handle(1, pd).value(2, offset).value(3, length);
                packet.value(4, iova).value(5, fd).value(6, access).out(7, 4).out(8, 4).send(&process)
            };
            let rows = [
                ("as it should be", fd, [0, 0x4000, 0], 1, Ok(())),
                ("a part", fd, [0x1008, 100, 0x7_0008], 1, Ok(())),
                ("at another place of the page", fd, [0, 0x1000, 8], 1, Err(Errno::INVAL)),
                ("nothing", fd, [0, 0, 0], 1, Err(Errno::INVAL)),
                ("behind its end", fd, [0x1000, 0x3001, 0], 1, Err(Errno::INVAL)),
                ("around the end of numbers", fd, [u64::MAX - 0xfff, 0x2000, 0], 1, Err(Errno::INVAL)),
                ("bound to memory windows", fd, [0, 0x1000, 0], 1 | 1 << 4, Err(Errno::INVAL)),
                ("peers write, but not we", fd, [0, 0x1000, 0], 2, Err(Errno::INVAL)),
                ("no dma-buf", process.fd, [0, 0x1000, 0], 1, Err(Errno::INVAL)),
                ("no descriptor", 0x7fff_ffff, [0, 0x1000, 0], 1, Err(Errno::BADF)),
            ];
            for (name, fd, range, access, answer) in rows {
                assert_eq!(register(fd, range, access), answer, "{name}, {nic} {release}");
            }
        }
    }
}

#[test]
fn transitions_bring_what_they_must_and_nothing_else() {
    let process = Process::new(NicKind::BnxtReP7, Release::V7_3);
    let (memory, pd, cq) = prepared(&process);
    let qp = process.made(process.create_qp(&memory, pd, cq));
    let modify = |change: fn(&mut ModifyQp)| {
        let dest = QpDest {
            dgid: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1],
            sgid_index: 1,
            is_global: 1,
            port_num: 1,
            ..QpDest::default()
        };
        let mut asked = ModifyQp { qp, dest, port_num: 1, path_mtu: 3, ..ModifyQp::default() };
        change(&mut asked);
        let mut packet = process.packet(0, 0).value(0, asked).value(2, u64::from(command::MODIFY_QP));
        packet.send(&process)
    };
    let init = |q: &mut ModifyQp| (q.qp_state, q.attr_mask) = (1, 0x39);
    assert_eq!(modify(|q| (q.qp_state, q.attr_mask) = (1, 0x31)), Err(Errno::INVAL), "no access flags");
    assert_eq!(modify(|q| (q.qp_state, q.attr_mask) = (1, 0x79)), Err(Errno::INVAL), "a queue key");
    assert_eq!(modify(|q| (q.qp_state, q.attr_mask) = (2, 0x12_9181)), Err(Errno::INVAL), "from RESET");
    assert_eq!(modify(|q| (q.qp_state, q.attr_mask) = (9, 1)), Err(Errno::INVAL), "no such state");
    assert_eq!(
        modify(|q| (q.qp_state, q.attr_mask) = (1, 1 << 25 | 0x39)),
        Err(Errno::OPNOTSUPP),
        "extended only"
    );
    assert_eq!(modify(|q| (q.port_num, q.qp_state, q.attr_mask) = (2, 1, 0x39)), Err(Errno::INVAL), "port");
    assert_eq!(modify(|q| q.qp = 99), Err(Errno::NOENT));
    assert_eq!(modify(init), Ok(()));
    let rtr = 0x12_9181;
    let wrong: [(&str, fn(&mut ModifyQp), Errno); 6] = [
        ("no such GID", |q| q.dest.sgid_index = 2, Errno::INVAL),
        ("no GID", |q| q.dest.is_global = 0, Errno::INVAL),
        ("nobody there", |q| q.dest.dgid[13] = 9, Errno::NETUNREACH),
        ("families of addresses", |q| q.dest.sgid_index = 0, Errno::INVAL),
        ("no MTU", |q| q.path_mtu = 0, Errno::INVAL),
        ("too many READs", |q| q.max_dest_rd_atomic = 200, Errno::INVAL),
    ];
    for (name, change, errno) in wrong {
        let asked = ModifyQp { qp, port_num: 1, ..ModifyQp::default() };
        let mut whole = ModifyQp {
            dest: QpDest {
                dgid: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1],
                sgid_index: 1,
                is_global: 1,
                port_num: 1,
                ..QpDest::default()
            },
            qp_state: 2,
            attr_mask: rtr,
            path_mtu: 3,
            ..asked
        };
        change(&mut whole);
        let mut packet = process.packet(0, 0).value(0, whole).value(2, u64::from(command::MODIFY_QP));
        assert_eq!(packet.send(&process), Err(errno), "{name}");
    }
    assert_eq!(modify(|q| (q.qp_state, q.attr_mask) = (2, 0x12_9181)), Ok(()));
    assert_eq!(modify(|q| (q.qp_state, q.attr_mask) = (3, 0x1_2e01)), Ok(()));
    assert_eq!(modify(|q| (q.qp_state, q.attr_mask) = (0, 1)), Ok(()), "back to RESET");
}

#[test]
fn commands_are_counted_in_words() {
    let process = Process::new(NicKind::BnxtReP7, Release::V7_3);
    let send = |bytes: &[u8]| {
        // SAFETY: the commands name no reply, or are refused before.
        unsafe { process.machine.write(process.fd, bytes) }.map(drop)
    };
    let head = |number: u32, words: [u16; 2]| [number.as_bytes(), words.as_bytes()].concat();
    assert_eq!(send(&[3, 0, 0]), Err(Errno::INVAL));
    assert_eq!(send(&head(200, [2, 0])), Err(Errno::OPNOTSUPP));
    assert_eq!(send(&head(0x100, [2, 0])), Err(Errno::INVAL), "unknown bits of a number");
    assert_eq!(send(&head(command::ALLOC_PD, [3, 1])), Err(Errno::INVAL), "more words than bytes");
    assert_eq!(send(&head(command::ALLOC_PD, [2, 1])), Err(Errno::NOSPC), "too short");
    let whole = [head(command::ALLOC_PD, [4, 0]), vec![0; 8]].concat();
    assert_eq!(send(&whole), Err(Errno::NOSPC), "no room for the reply");
    let extended = |words: [u16; 2], provider: [u16; 4], body: usize| {
        let head = head(command::QUERY_DEVICE | EXTENDED, words);
        [head, vec![0; 8], provider.as_bytes().to_vec(), vec![0; body]].concat()
    };
    assert_eq!(send(&extended([2, 0], [0; 4], 8)), Err(Errno::INVAL), "more words than bytes");
    assert_eq!(send(&extended([0, 0], [0; 4], 0)), Err(Errno::NOSPC), "too short");
    assert_eq!(send(&extended([1, 0], [0, 0, 1, 0], 8)), Err(Errno::INVAL), "reserved words");
    assert_eq!(send(&extended([1, 23], [0; 4], 8)), Err(Errno::INVAL), "a reply without an address");

    assert_eq!(process.machine.open(Path::new("/dev/infiniband/uverbs9")), Err(Errno::NOENT));
    // SAFETY: it is refused.
    assert_eq!(unsafe { process.machine.ioctl(process.fd, 1, 0) }, Err(Errno::NOTTY));
    // SAFETY: it is refused.
    assert_eq!(unsafe { process.machine.ioctl(99, 1, 0) }, Err(Errno::BADF));
}
