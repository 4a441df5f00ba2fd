//! The driver without an operating system pushes short requests: what reaches the push page, and what happens without one.

mod bnxt_re_slots;
mod rts;

use std::sync::{Arc, Mutex};

use bnxt_re_slots::{CHIPS, Machine, mac};
use directverbs::bnxt_re::doorbell::{DbType, DbWord};
use directverbs::bnxt_re::push::PushPreference;
use directverbs::text;
use directverbs::verbs::{
    AddressVector, Device as _, PlanError, QpCapabilities, QpInit, QpType, QueuePair as _, SendRequest,
};
use directverbs_bare::bnxt_re::{CompletionQueue, Config, Device, Error, QueuePair};
use directverbs_softnic::bnxt_re::control::Chip;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{Function, Identity, Slot};
use directverbs_workload::{Job, Op, run_pair};
use rts::transitions;

const WISHED: PushPreference = PushPreference { enable: true, require: false };
const REQUIRED: PushPreference = PushPreference { enable: true, require: true };

/// A BAR, an offset and the bytes that were stored there.
type Store = (u8, u64, Vec<u8>);

/// A function that keeps what is stored to its BARs.
struct Kept {
    function: Box<dyn Function>,
    stores: Arc<Mutex<Vec<Store>>>,
}

impl Function for Kept {
    fn identity(&self) -> Identity {
        self.function.identity()
    }

    fn bar_read(&mut self, bar: u8, offset: u64, bytes: &mut [u8]) {
        self.function.bar_read(bar, offset, bytes);
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) {
        self.stores.lock().unwrap().push((bar, offset, bytes.to_vec()));
        self.function.bar_write(bar, offset, bytes);
    }

    fn reset(&mut self) {
        self.function.reset();
    }

    fn service(&mut self) -> bool {
        self.function.service()
    }
}

fn pushing(chip: usize, nth: u8) -> Chip {
    Chip { push: true, ..CHIPS[chip](mac(nth)) }
}

fn plug(chip: &Chip) -> Machine {
    Machine::plug_changed(&Fabric::new(FabricOptions::default()), chip, |port| port, |function| function)
}

/// A queue pair that takes 96 bytes of inline data.
fn queue_pair<'n>(
    device: &mut Device<'n, Slot>,
    cq: &CompletionQueue<'n, Slot>,
) -> Result<QueuePair<'n, Slot>, Error> {
    let pd = device.alloc_pd()?;
    let capabilities =
        QpCapabilities { max_send_wr: 8, max_send_sge: 1, max_inline_data: 96, ..QpCapabilities::default() };
    let init =
        QpInit { qp_type: QpType::Rc, capabilities, send_cq: cq, recv_cq: cq, srq: None, signal_all: true };
    device.create_qp(&pd, &init)
}

#[test]
fn every_operation_with_push() {
    for chip in 0..CHIPS.len() {
        let fabric = Fabric::new(FabricOptions::default());
        let machines = [1, 2]
            .map(|nth| Machine::plug_changed(&fabric, &pushing(chip, nth), |port| port, |function| function));
        let mut nics = machines.each_ref().map(|machine| machine.open().unwrap());
        for nic in &mut nics {
            assert_eq!(nic.device().set_push(REQUIRED), Ok(true));
        }
        let [a, b] = &mut nics;
        for op in Op::ALL {
            for (size, batch) in [(1, 1), (96, 1), (40, 3)] {
                let inline = !op.is_atomic() && op != Op::Read;
                let size = if op.is_atomic() { 8 } else { size };
                let job = Job { op, size, batch, inline, iterations: 20, ..Job::default() };
                let before = machines[0].nic.lock().front_end().pushed();
                let report = run_pair(&mut a.device(), &mut b.device(), &job, &mut |_| {});
                let report =
                    report.unwrap_or_else(|error| panic!("{job:?}: {error} {:?}", machines[0].violations()));
                assert!(report.verified_bytes() > 0, "{job:?}");
                let pushed = machines[0].nic.lock().front_end().pushed() - before;
                // Some operations are posted with what tells the peer of them, so not alone.
                assert!(inline || pushed == 0, "{job:?}: {pushed}");
                assert!(op != Op::Send || batch != 1 || pushed >= 20, "{job:?}: {pushed}");
            }
        }
        for (nic, machine) in nics.into_iter().zip(&machines) {
            assert_eq!((nic.close(), machine.violations()), (Ok(()), vec![]));
            assert_eq!((machine.slot.memory().allocated(), machine.slot.violations()), (0, 0));
        }
    }
}

#[test]
fn the_request_is_in_the_push_page_between_its_two_doorbells() {
    for chip in 0..CHIPS.len() {
        let stores = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&stores);
        let machine = Machine::plug_changed(
            &Fabric::new(FabricOptions::default()),
            &pushing(chip, 1),
            |port| port,
            |function| Box::new(Kept { function, stores: kept }),
        );
        let mut nic = machine.open().unwrap();
        let mut device = nic.device();
        device.set_push(REQUIRED).unwrap();
        let mut cq = device.create_cq(16).unwrap();
        let mut qp = queue_pair(&mut device, &cq).unwrap();
        assert!(qp.pushes());
        for attributes in transitions(AddressVector::new(device.port().gid, device.mac())) {
            device.modify_qp(&mut qp, &mut [&mut cq], &attributes).unwrap();
        }
        stores.lock().unwrap().clear();
        let data: [u8; 40] = core::array::from_fn(|i| i as u8 + 1);
        let pieces = [&data[..]];
        qp.post_send(&mut cq, &[SendRequest::send().inline(&pieces)]).unwrap();
        let mut stores = stores.lock().unwrap().clone();
        let (bar, start_at, start) = stores.remove(0);
        let (_, end_at, end) = stores.pop().unwrap();
        let word = |bytes: &[u8]| DbWord::from_u64(u64::from_le_bytes(bytes.try_into().unwrap()));
        let (start, end) = (word(&start), word(&end));
        assert_eq!((bar, start_at), (2, end_at), "one register");
        assert_eq!((start.db_type(), end.db_type()), (DbType::PUSH_START, DbType::PUSH_END));
        assert_eq!([start, end].map(|word| word.xid().get()), [qp.id().get(); 2]);
        // The first buffer is left alone, so it is the second one, of register 2.
        let (page, register) = (start_at & !0xfff, start_at & 0xfff);
        assert_eq!((page, register), (0x2_0000, 16));
        let buffer = page + 4096 + 256;
        let mut pushed = vec![None; 256];
        for (_, offset, bytes) in stores {
            let at = (offset - buffer) as usize;
            pushed[at..at + bytes.len()].iter_mut().zip(bytes).for_each(|(to, byte)| *to = Some(byte));
        }
        let used = pushed.iter().take_while(|byte| byte.is_some()).count();
        assert!(pushed[used..].iter().all(Option::is_none), "without gaps");
        assert_eq!(used, 32 + 48, "header and data");
        let inline: Vec<u8> = pushed[32..72].iter().map(|byte| byte.unwrap()).collect();
        assert_eq!(inline, data);
        // What is longer, or posted with others, is not pushed.
        let before = machine.nic.lock().front_end().pushed();
        let request = SendRequest::send().inline(&pieces);
        qp.post_send(&mut cq, &[request, request]).unwrap();
        assert_eq!(machine.nic.lock().front_end().pushed(), before);
        drop((qp, cq));
    }
}

#[test]
fn a_device_without_push_rings_as_ever_unless_push_is_required() {
    for chip in CHIPS {
        let machine = plug(&chip(mac(1)));
        let mut nic = machine.open().unwrap();
        let mut device = nic.device();
        assert_eq!(device.set_push(WISHED), Ok(false));
        let none = PlanError::Unsupported(text!("the device has no push"));
        assert_eq!(device.set_push(REQUIRED), Err(Error::Plan(none)));
        let mut cq = device.create_cq(16).unwrap();
        let qp = queue_pair(&mut device, &cq).unwrap();
        assert!(!qp.pushes() && !device.has_failed());
        device.destroy_qp(qp, &mut [&mut cq]).unwrap();
        device.destroy_cq(cq).unwrap();
    }
}

#[test]
fn each_queue_pair_has_a_buffer_of_its_own_as_long_as_there_are_some() {
    for chip in 0..CHIPS.len() {
        let machine = plug(&pushing(chip, 1));
        let mut nic = machine.open().unwrap();
        let mut device = nic.device();
        let mut cq = device.create_cq(16).unwrap();
        assert!(!queue_pair(&mut device, &cq).unwrap().pushes(), "nobody has asked for it");
        assert_eq!(device.set_push(WISHED), Ok(true));
        let mut pushing: Vec<_> = (0..16).map(|_| queue_pair(&mut device, &cq).unwrap()).collect();
        assert_eq!(
            pushing.iter().map(QueuePair::pushes).collect::<Vec<_>>(),
            [vec![true; 15], vec![false]].concat()
        );
        assert_eq!(device.set_push(REQUIRED), Ok(true));
        assert!(matches!(queue_pair(&mut device, &cq), Err(Error::Full(what)) if what == "push buffer"));
        let third = pushing.remove(2);
        device.destroy_qp(third, &mut [&mut cq]).unwrap();
        assert!(queue_pair(&mut device, &cq).unwrap().pushes());
        assert_eq!(device.set_push(PushPreference::OFF), Ok(false));
        assert!(!queue_pair(&mut device, &cq).unwrap().pushes());
        drop((pushing, cq));
        assert_eq!(machine.violations(), [""; 0]);
        // What was dropped is taken back, and nothing is pushed any more.
        nic.reset(&Config::default()).unwrap();
        let mut device = nic.device();
        let cq = device.create_cq(16).unwrap();
        assert!(!queue_pair(&mut device, &cq).unwrap().pushes());
        assert_eq!(device.set_push(REQUIRED), Ok(true));
        assert!(queue_pair(&mut device, &cq).unwrap().pushes());
    }
}
