//! bnxt_re posts one usual request, and polls one usual completion, on paths of their own. Whatever goes there must end as
//! it does on the general path: the same bytes, records, indices and completions.

use directverbs::bnxt_re::doorbell::DbWord;
use directverbs::verbs::{
    BatchError, Data, Imm, LKey, QpCapabilities, QpType, RKey, RemoteAddress, SendFlags, SendOp, SendRequest,
    Sge,
};
use directverbs_suites::bnxt_re::{Flavor, Rig, req};
use proptest::collection::vec;
use proptest::prelude::*;

const ASKED: QpCapabilities =
    QpCapabilities { max_send_wr: 9, max_recv_wr: 4, max_send_sge: 3, max_recv_sge: 1, max_inline_data: 64 };
const DATA: [u8; 65] = [0xd5; 65];

/// What a request carries: SGEs of a length, or inline bytes; one more of each than was granted.
#[derive(Clone, Copy, Debug)]
enum Carried {
    Sges(usize, u32),
    Inline(usize),
}

#[derive(Clone, Copy, Debug)]
struct Wr {
    op: SendOp,
    flags: SendFlags,
    carried: Carried,
}

fn op() -> impl Strategy<Value = SendOp> {
    (any::<u64>(), any::<u32>(), any::<u32>()).prop_flat_map(|(addr, key, imm)| {
        let (rkey, imm) = (RKey::truncated(key), Imm::truncated(imm));
        let remote = RemoteAddress { addr, rkey };
        prop_oneof![
            4 => Just(SendOp::Write(remote)),
            4 => Just(SendOp::Send),
            2 => Just(SendOp::Read(remote)),
            1 => Just(SendOp::WriteImm(remote, imm)),
            1 => Just(SendOp::SendImm(imm)),
            1 => Just(SendOp::SendInv(rkey)),
            1 => Just(SendOp::FetchAdd { remote, add: addr }),
            1 => Just(SendOp::LocalInv(rkey)),
        ]
    })
}

fn wr() -> impl Strategy<Value = Wr> {
    let flags = (0..=SendFlags::all().bits()).prop_map(SendFlags::from_bits_truncate);
    let carried = prop_oneof![
        6 => (0..5000u32).prop_map(|length| Carried::Sges(1, length)),
        1 => any::<u32>().prop_map(|length| Carried::Sges(1, length)),
        1 => Just(Carried::Sges(1, 8)),
        2 => (0..=4usize, 0..5000u32).prop_map(|(sges, length)| Carried::Sges(sges, length)),
        2 => (0..=65usize).prop_map(Carried::Inline),
    ];
    (op(), flags, carried).prop_map(|(op, flags, carried)| Wr { op, flags, carried })
}

/// Posts `wrs`, numbered from `first` on, `at_once` or one after the other, and says which doorbell came last.
fn post(rig: &mut Rig, wrs: &[Wr], first: u64, at_once: bool) -> (Option<DbWord>, Result<(), BatchError>) {
    let sges: Vec<Vec<Sge>> = wrs
        .iter()
        .map(|wr| match wr.carried {
            Carried::Sges(count, length) => {
                vec![Sge::new(0x1_0000 + first, length, LKey::truncated(7)); count]
            }
            Carried::Inline(_) => Vec::new(),
        })
        .collect();
    let pieces: Vec<[&[u8]; 2]> = wrs
        .iter()
        .map(|wr| match wr.carried {
            Carried::Sges(..) => [&DATA[..0]; 2],
            Carried::Inline(bytes) => [&DATA[..bytes / 3], &DATA[bytes / 3..bytes]],
        })
        .collect();
    let requests: Vec<SendRequest<'_>> = wrs
        .iter()
        .zip(sges.iter().zip(&pieces))
        .zip(first..)
        .map(|((wr, (sges, pieces)), wr_id)| {
            let request = SendRequest::new(wr.op).wr_id(wr_id).flags(wr.flags);
            let data = match wr.carried {
                Carried::Sges(..) => Data::Sges(sges),
                Carried::Inline(_) => Data::Inline(pieces),
            };
            SendRequest { data, ..request }
        })
        .collect();
    let posted = if at_once {
        rig.qp.post_send(&rig.spy, &requests)
    } else {
        let one = |(index, request)| {
            rig.qp.post_send(&rig.spy, std::slice::from_ref(request)).map_err(|e| BatchError { index, ..e })
        };
        requests.iter().enumerate().try_for_each(one)
    };
    (rig.spy.take().last().copied(), posted)
}

/// The same bytes, records and indices.
fn agree(a: &Rig, b: &Rig) {
    assert!(a.sq_memory.bytes() == b.sq_memory.bytes(), "bytes of ring and retransmit table");
    assert_eq!(a.qp.save(), b.qp.save());
    assert_eq!(a.qp.send.doorbell(), b.qp.send.doorbell());
    let (state, len) = (a.qp.send.state(), a.plan.send.records);
    let mut at = state.oldest;
    while at != state.next {
        assert_eq!(a.qp.send.records()[at as usize], b.qp.send.records()[at as usize], "record {at}");
        at = (at + 1) % len;
    }
}

/// What is posted to, completed at and polled from a queue pair in one round.
#[derive(Clone, Debug)]
struct Round {
    wrs: Vec<Wr>,
    /// Completions of the device: each of so many requests.
    completed: Vec<u32>,
}

fn round() -> impl Strategy<Value = Round> {
    (vec(wr(), 0..5), vec(prop_oneof![4 => Just(1u32), 1 => 2..4u32], 0..5))
        .prop_map(|(wrs, completed)| Round { wrs, completed })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_at_once_are_as_many_one_by_one(
        flavor in proptest::sample::select(Flavor::all()),
        rounds in vec(round(), 1..60),
    ) {
        let rig = || Rig::new(flavor, QpType::Rc, &ASKED, 16);
        let (mut many, mut single) = (rig(), rig());
        let mut next_id = 0;
        for Round { wrs, completed } in &rounds {
            let (mut rung, at_once) = post(&mut many, wrs, next_id, true);
            let (last, one_by_one) = post(&mut single, wrs, next_id, false);
            prop_assert_eq!(&at_once, &one_by_one);
            if let Err(error) = at_once {
                prop_assert_eq!(rung, None, "a failed batch rings nothing");
                (rung, _) = post(&mut many, &wrs[..error.index], next_id, true);
            }
            prop_assert_eq!(rung, last);
            agree(&many, &single);
            next_id += wrs.len() as u64;

            let mut left = many.qp.send.outstanding();
            let mut index = many.qp.send.state().oldest;
            for count in completed {
                let count = left.min(*count);
                if count == 0 {
                    break;
                }
                left -= count;
                index = (index + count) % many.plan.send.records;
                many.device.push(req(index, 0));
                single.device.push(req(index, 0));
            }
            let all = many.poll(16);
            let mut one_by_one = Vec::new();
            while let Ok([completion]) = single.poll(1).as_deref() {
                one_by_one.push(*completion);
            }
            prop_assert_eq!(all, Ok(one_by_one));
            prop_assert_eq!(many.cq.state(), single.cq.state());
            prop_assert_eq!(many.spy.take(), single.spy.take(), "consumer doorbells");
            agree(&many, &single);
        }
    }
}
