use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{LKey, QpType, RKey, RemoteAddress, SendFlags, SendOp, Sge};
use directverbs_softnic::ionic::{Ionic, IonicConfig};
use directverbs_softnic::roce::{Packet, Payload, RecvWork, SendWork, icrc};

use super::Input;
use super::bench::{Bench, IPS, MACS, QP, REGION, Setup};

const IP_LEN: usize = 20;
const BTH_LEN: usize = 12;

/// A peer that sends anything to a NIC, among requests that the NIC has under way.
///
/// # Panics
/// The NIC did something that it must not do, whatever comes over the wire.
pub fn roce_frame(data: &[u8]) {
    // The parser alone, which must take any bytes.
    let _ = Packet::parse(data);
    let mut input = Input::new(data);
    let setup = Setup {
        qp_type: if input.byte() & 1 == 0 { QpType::Rc } else { QpType::Ud },
        sq: (16, 64),
        rq: (16, 64),
        retransmit: None,
        variable: false,
        options: 0,
        max_sge: 2,
    };
    let mut bench = Bench::new(Ionic::new(IonicConfig::new(RdmaVersion::V2)), &setup);
    let mut psn = 0u32;
    while !input.is_empty() {
        let what = input.byte();
        match what % 16 {
            0 => {
                let length = usize::from(input.byte());
                bench.nic.receive(input.slice(length));
            }
            1 => bench.pass(),
            2 => post(&mut bench, setup.qp_type, &mut input),
            3 => {
                let sge =
                    Sge::new(bench.region.addr() + u64::from(input.u16()), 64, LKey::truncated(bench.key));
                let work = RecvWork { token: 0, sges: Ok(vec![sge]) };
                // A queue pair in error refuses it.
                let _ = bench.nic.hardware().post_recv(QP, work);
            }
            _ => {
                let frame = transport(&mut input, &bench, &mut psn);
                let packet = Packet::parse(&frame).map(|p| p.payload.len());
                assert!(packet.is_err() || packet.is_ok_and(|len| len <= frame.len()));
                bench.nic.receive(&frame);
            }
        }
        bench.run();
        if bench.revive() {
            psn = 0;
        }
    }
    bench.check();
}

fn post(bench: &mut Bench<Ionic>, qp_type: QpType, input: &mut Input<'_>) {
    let remote = RemoteAddress { addr: input.u64(), rkey: RKey::truncated(input.u32()) };
    let op = match (qp_type, input.byte() % 4) {
        (QpType::Ud, _) => return,
        (_, 0) => SendOp::Send,
        (_, 1) => SendOp::Write(remote),
        (_, 2) => SendOp::Read(remote),
        _ => SendOp::FetchAdd { remote, add: 1 },
    };
    let length = if matches!(op, SendOp::FetchAdd { .. }) { 8 } else { u32::from(input.u16()) % 3000 };
    let sge = Sge::new(bench.region.addr(), length, LKey::truncated(bench.key));
    let payload = Payload::Sges(vec![sge]);
    let work = SendWork { token: 0, op: Ok(op), flags: SendFlags::SIGNALED, payload };
    let _ = bench.nic.hardware().post_send(QP, work);
}

/// A frame that gets past the parser: right addresses and checksums, and an arbitrary transport part that often has
/// the sequence number that is expected, and a key and address that are right.
fn transport(input: &mut Input<'_>, bench: &Bench<Ionic>, psn: &mut u32) -> Vec<u8> {
    // Each pair of bits is zero in a quarter of the cases: then that part is left as it came.
    let shape = input.u16();
    let right = |part: u32| shape >> (2 * part) & 3 != 0;
    let mut bth = input.array::<BTH_LEN>();
    if right(0) {
        // Opcodes up to that of a fetch and add are those of reliable connections; 0x64 and 0x65 are datagrams.
        bth[0] = if bth[0] & 0xc0 == 0 { 0x64 | bth[0] & 1 } else { bth[0] % 0x18 };
    }
    if right(1) {
        bth[1] &= 0x80;
        bth[2..4].copy_from_slice(&[0xff, 0xff]);
        bth[5..8].copy_from_slice(&QP.get().to_be_bytes()[1..]);
    }
    if right(2) {
        bth[9..12].copy_from_slice(&psn.to_be_bytes()[1..]);
        *psn += u32::from(right(3));
    }
    let mut body = Vec::new();
    match bth[0] {
        0x64 | 0x65 if right(4) => body.extend([0, 0, 0, 1, 0, 0, 0, 9]),
        0x06 | 0x0a | 0x0c | 0x13 | 0x14 if right(4) => {
            let at = bench.region.addr() + u64::from(input.u16()) % (REGION as u64 + 16);
            body.extend(at.to_be_bytes());
            body.extend(bench.key.to_be_bytes());
            body.extend(u32::from(input.byte()).to_be_bytes());
        }
        _ => {}
    }
    let length = usize::from(input.byte());
    let length = if shape >> 14 == 3 { 4 * length } else { length / 8 };
    body.extend(input.slice(length));
    if right(5) {
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let udp_len = (8 + BTH_LEN + body.len() + 4) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((IP_LEN as u16 + udp_len).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(IPS[1]);
    packet.extend(IPS[0]);
    let sum: u32 = packet.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet.extend([0xc0, 0, 0x12, 0xb7]);
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(bth);
    packet.extend(body);
    let crc = icrc(&packet, IP_LEN);
    packet.extend(crc.to_le_bytes());
    let mut frame = Vec::from(MACS[0].0);
    frame.extend(MACS[1].0);
    frame.extend([8, 0]);
    frame.extend(packet);
    frame
}
