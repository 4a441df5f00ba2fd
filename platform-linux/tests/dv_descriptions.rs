//! A C program that has nothing but the generated header and a description posts the same bytes and doorbells as we do, and
//! finds the same completions.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use directverbs::ionic::cmb::{CmbGrant, Mapping};
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{LKey, QpId, QpType, RKey, SendRequest, Sge};
use directverbs::{bnxt_re, ionic};
use directverbs_suites::bnxt_re::{CQ, Flavor, HANDLE, Rig, SMALL, req};
use directverbs_suites::ionic::{Arena, Setup, cq_id};
use zerocopy::IntoBytes;

/// Requests posted and completed before the queues are handed over, and posted there: they go round each ring.
const COUNTS: [(u32, u32); 4] = [(0, 1), (0, 12), (37, 9), (1000, 14)];

/// Runs the C program.
fn run(work: &str, input: &[u8]) -> Output {
    static BUILT: OnceLock<tempfile::TempDir> = OnceLock::new();
    let dir = BUILT.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a folder");
        let header = Command::new(env!("CARGO_BIN_EXE_dv")).args(["layout", "header"]).output().expect("dv");
        std::fs::write(dir.path().join("layout.h"), header.stdout).expect("written");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-address-of-packed-member", "-I"]);
        gcc.arg(dir.path()).arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dv_descriptions.c"));
        let output = gcc.arg("-o").arg(dir.path().join("program")).output().expect("gcc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        dir
    });
    let mut command = Command::new(dir.path().join("program"));
    let mut child =
        command.arg(work).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    // A program that refuses its input does not read all of it.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

/// What it prints.
fn program(work: &str, input: &[u8]) -> Vec<u8> {
    let output = run(work, input);
    assert!(output.status.success(), "{work}: {}", output.status);
    output.stdout
}

/// What both sides post.
struct Wr {
    local: u64,
    remote: u64,
    length: u32,
    signaled: bool,
}

impl Wr {
    fn nth(n: u32) -> Self {
        let n64 = u64::from(n);
        Self {
            local: 0x7f00_1234_0000 + n64,
            remote: 0xffff_8000_0000 - n64,
            length: n * 517 % 9000,
            signaled: n % 3 != 1,
        }
    }

    fn lkey(&self) -> u32 {
        0x1100 + self.length
    }

    fn bytes(&self) -> Vec<u8> {
        let words = [self.lkey(), 0x2233_4455, self.length, self.signaled.into()];
        [self.local.to_ne_bytes(), self.remote.to_ne_bytes()]
            .concat()
            .into_iter()
            .chain(words.into_iter().flat_map(u32::to_ne_bytes))
            .collect()
    }

    fn post(&self, mut post: impl FnMut(&SendRequest<'_>)) {
        let sges = [Sge::new(self.local, self.length, LKey::truncated(self.lkey()))];
        let wr = SendRequest::write(self.remote, RKey::truncated(0x2233_4455)).sges(&sges);
        post(&if self.signaled { wr.signaled() } else { wr });
    }
}

/// The program's input for posting.
fn posts(description: &[u8], ring: &[u8], wrs: &[Wr]) -> Vec<u8> {
    let mut input = [description, &(ring.len() as u32).to_ne_bytes(), ring].concat();
    input.extend((wrs.len() as u32).to_ne_bytes());
    input.extend(wrs.iter().flat_map(Wr::bytes));
    input
}

/// The program's output as words, and the bytes behind `words` of them.
fn split(output: &[u8], words: usize) -> (Vec<u64>, &[u8]) {
    let (head, rest) = output.split_at(8 * words);
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    (head.chunks(8).map(word).collect(), rest)
}

/// Two rings hold the same, 16 bytes at a time.
fn same(theirs: &[u8], ours: &[u8], when: &str) {
    assert_eq!(theirs.len(), ours.len(), "{when}");
    for (i, (theirs, ours)) in theirs.chunks(16).zip(ours.chunks(16)).enumerate() {
        assert_eq!(theirs, ours, "{when}: offset {:#x}", 16 * i);
    }
}

fn described(rig: &Rig) -> bnxt_re::description::QpDescription {
    let init = bnxt_re::qp::QueuePairInit {
        id: rig.qp.id(),
        handle: HANDLE,
        qp_type: QpType::Rc,
        send_cq: rig.cq.id(),
        recv_cq: rig.cq.id(),
        srq: None,
        capabilities: rig.qp.capabilities(),
    };
    bnxt_re::description::QpDescription::new(&init, &rig.plan, &rig.qp.save(), &Default::default())
        .expect("numbers that fit")
}

#[test]
fn bnxt_re_c_posts_the_same_bytes_and_doorbells() {
    for flavor in Flavor::all() {
        for (before, count) in COUNTS {
            let mut rig = Rig::new(flavor, QpType::Rc, &SMALL, 64);
            for n in 0..before {
                Wr::nth(n).post(|wr| rig.qp.post_send(&rig.spy, &[*wr]).expect("room"));
                let next = rig.qp.save().send.next;
                rig.device.push(req(next, 0));
                rig.poll(2).expect("good CQEs");
            }
            rig.spy.take();
            let description = described(&rig);
            let wrs: Vec<_> = (0..count).map(Wr::nth).collect();
            let output =
                program("bnxt_re-post", &posts(description.as_bytes(), &rig.sq_memory.bytes(), &wrs));
            for wr in &wrs {
                wr.post(|wr| rig.qp.post_send(&rig.spy, &[*wr]).expect("room"));
            }
            let (doorbells, ring) = split(&output, wrs.len());
            let ours: Vec<_> = rig.spy.take().into_iter().map(|word| word.to_u64()).collect();
            assert_eq!(doorbells, ours, "{flavor:?} after {before}");
            same(ring, &rig.sq_memory.bytes(), &format!("{flavor:?} after {before}"));
        }
    }
}

#[test]
fn bnxt_re_c_finds_the_same_completions() {
    for (before, count) in COUNTS {
        let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
        let post = |rig: &mut Rig, n: u32| {
            Wr { signaled: true, ..Wr::nth(n) }.post(|wr| rig.qp.post_send(&rig.spy, &[*wr]).expect("room"));
            let next = rig.qp.save().send.next;
            rig.device.push(req(next, 0));
            next
        };
        for n in 0..before {
            post(&mut rig, n);
            assert_eq!(rig.poll(2).expect("good CQEs").len(), 1);
        }
        let plan = bnxt_re::plan::CqPlan::new(&rig.caps, 64).expect("a plan");
        let state = rig.cq.state();
        let id = rig.cq.id();
        let description = bnxt_re::description::CqDescription::new(id, &plan, &state, &Default::default())
            .expect("numbers that fit");
        let indices: Vec<_> = (0..count).map(|n| post(&mut rig, n)).collect();
        let input =
            [description.as_bytes(), &rig.device.memory.bytes()[..plan.entries as usize * 32]].concat();
        let output = program("bnxt_re-poll", &input);
        let (words, rest) = split(&output, 2 * indices.len() + 1);
        let want = indices.iter().flat_map(|index| [u64::from(HANDLE), u64::from(*index)]);
        assert!(rest.is_empty() && want.eq(words[..2 * indices.len()].iter().copied()), "{words:x?}");
        assert_eq!(rig.poll(64).expect("good CQEs").len(), indices.len());
        let end = rig.cq.state();
        let index = u64::from(end.head) | u64::from(end.epoch) << 24;
        assert_eq!(words.last(), Some(&(0x4400_0000_0000_0000 | u64::from(CQ) << 32 | index)));
    }
}

#[test]
fn ionic_c_posts_the_same_bytes_and_doorbells() {
    let express = CmbGrant::Cmb { express: true, mapping: Mapping::WriteCombined };
    for version in [RdmaVersion::V1, RdmaVersion::V2] {
        for (before, count, sq) in
            COUNTS.into_iter().flat_map(|(b, c)| [(b, c, CmbGrant::Host), (b, c, express)])
        {
            let arena = Arena::default();
            let mut setup = Setup { sq, ..Setup::new(version) };
            setup.caps.max_spec = 0;
            let mut rig = directverbs_suites::ionic::Rig::new(&arena, setup);
            for n in 0..before {
                Wr::nth(n).post(|wr| rig.qp.post_send(&mut rig.cq, &[*wr], &rig.bell).expect("room"));
                rig.device().msn(setup.qp, (n + 1) & 0xff_ffff);
                rig.poll(2).expect("good CQEs");
            }
            let (plan, saved) = (setup.plan(), rig.qp.save());
            let placed = |grant| ionic::description::Placed { ring: 0, cmb: 0, grant };
            let identity = ionic::description::QpIdentity {
                id: QpId::truncated(setup.qp),
                qp_type: QpType::Rc,
                udma: 0,
                send_cq: cq_id(0),
                recv_cq: cq_id(0),
            };
            let description = ionic::description::QpDescription::new(
                &setup.caps,
                &identity,
                &plan,
                &saved,
                (&placed(sq), &placed(CmbGrant::Host)),
                0,
            );
            let wrs: Vec<_> = (0..count).map(Wr::nth).collect();
            let output = program("ionic-post", &posts(description.as_bytes(), &rig.sq.all(), &wrs));
            rig.bell.take();
            for wr in &wrs {
                wr.post(|wr| rig.qp.post_send(&mut rig.cq, &[*wr], &rig.bell).expect("room"));
            }
            let (doorbells, ring) = split(&output, wrs.len());
            let ours: Vec<_> = rig.bell.stores().into_iter().map(|(_, value)| value).collect();
            if sq == CmbGrant::Host {
                assert_eq!(doorbells, ours, "{version:?} after {before}");
            } else {
                assert!(ours.is_empty(), "express doorbells are in the WQEs");
            }
            same(ring, &rig.sq.all(), &format!("{version:?} {sq:?} after {before}"));
        }
    }
}

#[test]
fn ionic_c_finds_the_same_completions() {
    for (before, count) in COUNTS {
        let arena = Arena::default();
        let setup = Setup::new(RdmaVersion::V2);
        let mut rig = directverbs_suites::ionic::Rig::new(&arena, setup);
        let mut sent = 0;
        let mut post = |rig: &mut directverbs_suites::ionic::Rig<'_>, n: u32| {
            Wr { signaled: true, ..Wr::nth(n) }
                .post(|wr| rig.qp.post_send(&mut rig.cq, &[*wr], &rig.bell).expect("room"));
            sent += 1;
            rig.device().msn(setup.qp, sent & 0xff_ffff);
            sent
        };
        for n in 0..before {
            post(&mut rig, n);
            assert_eq!(rig.poll(2).expect("good CQEs").len(), 1);
        }
        let plan = ionic::plan::CqPlan::new(&setup.caps, setup.cqe).expect("a plan");
        let state = rig.cq.ring(0).expect("a ring").state();
        let description =
            ionic::description::CqDescription::new(&setup.caps, (cq_id(0), 0), &plan, &state, (0, 0));
        let messages: Vec<_> = (0..count).map(|n| post(&mut rig, n)).collect();
        let input = [description.as_bytes(), &rig.device().view.all()].concat();
        let output = program("ionic-poll", &input);
        let (words, rest) = split(&output, 2 * messages.len() + 1);
        let want = messages.iter().flat_map(|message| [u64::from(setup.qp), u64::from(*message)]);
        assert!(rest.is_empty() && want.eq(words[..2 * messages.len()].iter().copied()), "{words:x?}");
        assert_eq!(rig.poll(64).expect("good CQEs").len(), messages.len());
        let index = u64::from(rig.cq.ring(0).expect("a ring").state().prod);
        assert_eq!(words.last(), Some(&(u64::from(cq_id(0).get()) << 24 | index)));
    }
}

#[test]
fn a_description_of_another_version_is_refused_by_its_reader() {
    let rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    let mut description = described(&rig);
    description.version += 1;
    let output = run("bnxt_re-post", &posts(description.as_bytes(), &rig.sq_memory.bytes(), &[]));
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
}
