//! Public cases, group D: ionic queues, doorbells, completions. Each test is named after its case.

use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{LKey, RKey, SendRequest, Sge};
use directverbs_suites::ionic::{Arena, Rig, SQ, Setup};

#[test]
fn d04_wqe_header_flags_and_sge() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(RdmaVersion::V2));
    let sges = [Sge::new(0x1122_3344_5566_7788, 0x99, LKey::new(0xaabb_ccdd).unwrap())];
    let request =
        SendRequest::write(0x0102_0304_0506_0708, RKey::new(0xdead_beef).unwrap()).sges(&sges).signaled();
    rig.qp.post_send(&mut rig.cq, &[request], &rig.bell).unwrap();
    let mut want = vec![
        0, 0, 0, 0, 0, 0, 0, 0, 0x21, 1, 0, 0x18, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xde, 0xad, 0xbe, 0xef,
        0, 0, 0, 0x99, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
    ];
    want.resize(64, 0);
    assert_eq!(rig.send_wqe(0), want);
    assert_eq!(rig.bell.stores(), [(SQ, 5 << 24 | 1)]);
    rig.device().msn(5, 1);
    let wcs = rig.poll(4).unwrap();
    assert_eq!((wcs.len(), wcs[0].byte_len), (1, 0x99));
}
