//! What the driver without an operating system is told that cannot be, and what it is not given.

mod bnxt_re_slots;

use std::sync::{Arc, Mutex};

use bnxt_re_slots::{CHIPS, Machine, least, life, mac, with_completion};
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::verbs::{AccessFlags, Device as _, Gid, PlanError};
use directverbs_bare::bnxt_re::{Device, Error, Nic};
use directverbs_bare::pci::Config as _;
use directverbs_bare::{DmaError, MapError, Objects};
use directverbs_softnic::bus::{Bus, BusError};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{AccessFault, CommandFault, Function, Identity, Port, Slot};

/// What a lie is told in place of.
#[derive(Clone, Copy, Debug)]
enum When {
    /// A response of the mailbox.
    Response(ReqType),
    /// The side buffer of a query.
    Query(Opcode),
    /// The completion of a command.
    Completion(Opcode),
    /// A notification of a completion queue.
    Notification,
}

impl When {
    /// Whether these bytes are that, without an error.
    fn is(self, bytes: &[u8]) -> bool {
        let kind = bytes[0] & 0x3f;
        match self {
            Self::Response(of) => {
                bytes.len() > 8 && bytes[..4] == [&[0, 0], &of.0.to_le_bytes()[..]].concat()
            }
            Self::Query(of) => bytes.len() > 16 && bytes[..2] == [of.0, 0],
            Self::Completion(of) => bytes.len() == 16 && (kind, bytes[1], bytes[9]) == (0x38, 0, of.0),
            Self::Notification => bytes.len() == 16 && kind == 0x30,
        }
    }
}

/// Bytes that are put in at a place.
#[derive(Clone, Copy, Debug)]
struct Lie {
    when: When,
    at: usize,
    bytes: &'static [u8],
}

const fn lie(when: When, at: usize, bytes: &'static [u8]) -> Lie {
    Lie { when, at, bytes }
}

/// A way to the host on which a lie is told.
struct Liar {
    bus: Arc<dyn Bus>,
    lie: Arc<Mutex<Option<Lie>>>,
}

impl Liar {
    fn told(&self, bytes: &[u8]) -> Vec<u8> {
        let mut told = bytes.to_vec();
        if let Some(lie) = *self.lie.lock().unwrap()
            && lie.when.is(bytes)
            && let Some(place) = told.get_mut(lie.at..lie.at + lie.bytes.len())
        {
            place.copy_from_slice(lie.bytes);
        }
        told
    }
}

impl Bus for Liar {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        self.bus.read(addr, out)
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.bus.write(addr, &self.told(bytes))
    }

    fn publish(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.bus.publish(addr, &self.told(bytes))
    }

    fn interrupt(&self, vector: u16) {
        self.bus.interrupt(vector);
    }

    fn notified(&self) {
        self.bus.notified();
    }
}

/// A machine that tells lies.
fn liar(chip: usize) -> (Machine, Arc<Mutex<Option<Lie>>>) {
    let lie = Arc::new(Mutex::new(None));
    let of = Arc::clone(&lie);
    let fabric = Fabric::new(FabricOptions::default());
    let way = move |port: Port| Port { bus: Arc::new(Liar { bus: port.bus, lie: of }), ..port };
    (Machine::plug_changed(&fabric, &CHIPS[chip](mac(1)), way, |function| function), lie)
}

/// Nothing is left, and the NIC can be brought up.
fn recovers(machine: &Machine, what: &dyn std::fmt::Debug) {
    assert_eq!(machine.slot.memory().allocated(), 0, "{what:?}");
    let closed = machine.open_with(&least()).and_then(|nic| nic.close());
    assert_eq!(closed, Ok(()), "{what:?}: {:?}", machine.violations());
    assert_eq!((machine.slot.memory().allocated(), machine.slot.violations()), (0, 0), "{what:?}");
}

#[test]
fn capabilities_that_cannot_be_are_named() {
    use When::{Query, Response};
    const FUNC: When = Query(Opcode::QUERY_FUNC);
    let capabilities: fn(&Error) -> bool = |e| matches!(e, Error::Capabilities(_));
    let context: fn(&Error) -> bool = |e| matches!(e, Error::Context(_));
    let plan: fn(&Error) -> bool = |e| matches!(e, Error::Plan(_));
    type Case = (&'static [usize], Lie, fn(&Error) -> bool);
    let cases: [Case; 19] = [
        (&[0, 1], lie(Response(ReqType::VER_GET), 112, &[0x34, 0x12]), |e| *e == Error::UnknownChip(0x1234)),
        // No request in host memory fits.
        (&[0], lie(Response(ReqType::VER_GET), 168, &[4, 0]), |e| matches!(e, Error::TooLong(_))),
        // No RoCE.
        (&[0, 1], lie(Response(ReqType::FUNC_QCAPS), 12, &[0]), capabilities),
        // No Ethernet address, and one of a group.
        (&[0, 1], lie(Response(ReqType::FUNC_QCAPS), 16, &[0; 6]), capabilities),
        (&[0, 1], lie(Response(ReqType::FUNC_QCAPS), 16, &[1, 0, 0, 0, 0, 1]), capabilities),
        // Too few event rings, and no statistics contexts.
        (&[0, 1], lie(Response(ReqType::FUNC_RESOURCE_QCAPS), 10, &[1, 0]), capabilities),
        (&[0, 1], lie(Response(ReqType::FUNC_RESOURCE_QCAPS), 40, &[0, 0]), capabilities),
        // Doorbells nowhere, and behind the end of the BAR.
        (&[1], lie(Response(ReqType::FUNC_QCFG), 84, &[0, 0]), capabilities),
        (&[1], lie(Response(ReqType::FUNC_QCFG), 84, &[0xff, 0xff]), |e| {
            matches!(e, Error::Map(MapError::Outside { bar: 2, .. }))
        }),
        // Contexts of queue pairs: no entries, and more set apart than there are.
        (&[0], lie(Response(ReqType::FUNC_BACKING_STORE_QCAPS), 8, &[0; 4]), context),
        (&[0], lie(Response(ReqType::FUNC_BACKING_STORE_QCAPS), 8, &[1, 0, 0, 0]), context),
        // Entries without bytes, and the next kind not a later one.
        (&[1], lie(Response(ReqType::FUNC_BACKING_STORE_QCAPS_V2), 10, &[0, 0]), context),
        (&[1], lie(Response(ReqType::FUNC_BACKING_STORE_QCAPS_V2), 32, &[0, 0]), context),
        // A statistics context whose number has 17 bits.
        (&[0, 1], lie(Response(ReqType::STAT_CTX_ALLOC), 10, &[1]), capabilities),
        // Two rings with one number.
        (&[0, 1], lie(Response(ReqType::RING_ALLOC), 8, &[7, 0]), |e| {
            matches!(e, Error::Capabilities(_) | Error::NoCompletion { .. })
        }),
        // No READs as requester, no CQEs, no GIDs, and a retransmit table that is not the host's.
        (&[0, 1], lie(FUNC, 39, &[0]), capabilities),
        (&[0, 1], lie(FUNC, 28, &[0; 4]), plan),
        (&[0, 1], lie(FUNC, 76, &[0; 4]), plan),
        (&[0, 1], lie(FUNC, 142, &[0x30]), plan),
    ];
    for (chips, told, is_right) in cases {
        for chip in chips {
            let (machine, told_now) = liar(*chip);
            *told_now.lock().unwrap() = Some(told);
            let error = machine.open_with(&least()).err();
            assert!(error.as_ref().is_some_and(is_right), "{chip} {told:?}: {error:?}");
            *told_now.lock().unwrap() = None;
            recovers(&machine, &(chip, told.at));
        }
    }
}

#[test]
fn wqes_of_variable_size_are_refused_on_p5() {
    use directverbs::bnxt_re::wqe::WqeMode;
    use directverbs_bare::bnxt_re::Config;
    let machine = Machine::plug(&Fabric::new(FabricOptions::default()), CHIPS[0], 1);
    let config = Config { wqe_mode: Some(WqeMode::Variable), ..least() };
    let error = machine.open_with(&config).err();
    assert!(matches!(error, Some(Error::Plan(PlanError::Unsupported(_)))), "{error:?}");
    recovers(&machine, &"P5");
}

#[test]
fn numbers_that_an_object_cannot_have_end_the_device() {
    for chip in 0..CHIPS.len() {
        let (machine, told_now) = liar(chip);
        let put = |told| *told_now.lock().unwrap() = told;
        let fail = |opcode, bytes, use_it: &dyn Fn(&mut Device<'_, Slot>) -> Error| {
            let mut nic = machine.open_with(&least()).unwrap();
            put(Some(lie(When::Completion(opcode), 4, bytes)));
            let error = use_it(&mut nic.device());
            put(None);
            assert!(nic.has_failed(), "{error}");
            assert_eq!(nic.device().create_cq(4).err(), Some(Error::Failed));
            assert_eq!(nic.close(), Err(Error::Failed));
            recovers(&machine, &error);
            error
        };
        let number = |opcode, xid| Error::Number { opcode, xid };
        let wide = fail(Opcode::CREATE_CQ, &[0, 0, 0x10, 0], &|device| device.create_cq(4).err().unwrap());
        assert_eq!(wide, number(Opcode::CREATE_CQ, 1 << 20));
        let twice = fail(Opcode::CREATE_CQ, &[5, 0, 0, 0], &|device| {
            let cq = device.create_cq(4).unwrap();
            let error = device.create_cq(4).err().unwrap();
            assert_eq!(device.destroy_cq(cq), Err(Error::Failed));
            error
        });
        assert_eq!(twice, number(Opcode::CREATE_CQ, 5));
        for xid in [0x10_0000u32, 64, 0] {
            let bytes = Box::leak(Box::new(xid.to_le_bytes()));
            let gid = fail(Opcode::ADD_GID, bytes, &|device| device.add_gid(Gid([1; 16]), None).unwrap_err());
            assert_eq!(gid, number(Opcode::ADD_GID, xid));
        }
        let ah = fail(Opcode::CREATE_AH, &[0xff; 4], &|device| {
            let pd = device.alloc_pd().unwrap();
            let path = directverbs::verbs::AddressVector::new(device.port().gid, device.mac());
            device.create_ah(&pd, &path).unwrap_err()
        });
        assert_eq!(ah, number(Opcode::CREATE_AH, u32::MAX));
    }
}

#[test]
fn an_event_that_makes_no_sense_is_told() {
    for chip in 0..CHIPS.len() {
        let (machine, told_now) = liar(chip);
        *told_now.lock().unwrap() = Some(lie(When::Notification, 0, &[0x3f]));
        let mut nic = machine.open_with(&least()).unwrap();
        let event = with_completion(&mut nic.device(), |device, _| {
            (0..1000).find_map(|_| {
                device.progress();
                device.take_event().map(|event| event.map(Ok)).unwrap_or_else(|error| Some(Err(error)))
            })
        });
        let Some(Err(Error::Event(entry))) = event else { panic!("{event:?}") };
        assert_eq!(entry[0] & 0x3f, 0x3f);
        *told_now.lock().unwrap() = None;
        nic.close().unwrap();
        recovers(&machine, &"event");
    }
}

/// A function with other BARs.
struct OtherBars {
    function: Box<dyn Function>,
    change: fn(&mut Identity),
}

impl Function for OtherBars {
    fn identity(&self) -> Identity {
        let mut identity = self.function.identity();
        (self.change)(&mut identity);
        identity
    }

    fn bar_read(&mut self, bar: u8, offset: u64, bytes: &mut [u8]) {
        self.function.bar_read(bar, offset, bytes);
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) {
        self.function.bar_write(bar, offset, bytes);
    }

    fn reset(&mut self) {
        self.function.reset();
    }

    fn service(&mut self) -> bool {
        self.function.service()
    }
}

#[test]
fn bars_that_are_missing_or_short_are_named() {
    type Case = (fn(&mut Identity), fn(&Error) -> bool);
    let cases: [Case; 4] = [
        (|i| i.bars.retain(|bar| bar.index != 0), |e| *e == Error::Map(MapError::Missing { bar: 0 })),
        (|i| i.bars.retain(|bar| bar.index != 2), |e| *e == Error::Map(MapError::Missing { bar: 2 })),
        (|i| i.bars[0].len = 2048, |e| matches!(e, Error::Map(MapError::Outside { bar: 0, has: 2048, .. }))),
        (
            |i| i.bars[1].len = 0x1_0000,
            |e| matches!(e, Error::Map(MapError::Outside { bar: 2, has: 0x1_0000, .. })),
        ),
    ];
    for chip in CHIPS {
        for (change, is_right) in cases {
            let fabric = Fabric::new(FabricOptions::default());
            let machine = Machine::plug_changed(
                &fabric,
                &chip(mac(1)),
                |port| port,
                |function| Box::new(OtherBars { function, change }),
            );
            let error = machine.open_with(&least()).err();
            assert!(error.as_ref().is_some_and(is_right), "{error:?}");
            assert_eq!((machine.slot.memory().allocated(), machine.slot.violations()), (0, 0));
        }
    }
}

#[test]
fn memory_that_runs_out_at_each_allocation_is_given_back() {
    for chip in CHIPS {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), chip, 1);
        let mut limit = 0;
        let mut tries = 0;
        loop {
            machine.slot.limit_memory(limit);
            let bytes = match life(&machine) {
                Ok(()) => break,
                Err(Error::Dma(DmaError::Exhausted { bytes, .. })) => bytes,
                Err(error) => panic!("{limit}: {error}"),
            };
            assert_eq!(machine.slot.memory().allocated(), 0, "{limit}");
            // What was in use when this failed, and what was asked for.
            limit = machine.slot.counts().memory + bytes;
            tries += 1;
        }
        assert!(tries > 15, "{tries} allocations");
        machine.slot.limit_memory(usize::MAX);
        recovers(&machine, &"memory");
        assert_eq!(machine.violations(), [""; 0]);
    }
}

#[test]
fn a_nic_that_is_pulled_out_while_it_is_up_is_gone_and_comes_back() {
    for chip in CHIPS {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), chip, 1);
        let mut nic = machine.open_with(&least()).unwrap();
        {
            let mut device = nic.device();
            let pd = device.alloc_pd().unwrap();
            let mr = device.alloc_mr(&pd, 64, AccessFlags::LOCAL_WRITE).unwrap();
            machine.slot.access_faults().strike(0, AccessFault::Removed);
            assert_eq!(machine.slot.id(), None, "that was the access");
            assert_eq!(device.create_cq(4).err(), Some(Error::Gone));
            assert_eq!(device.take_event(), Err(Error::Failed));
            assert_eq!(device.dealloc_mr(mr), Err(Error::Failed));
        }
        let left = Objects { pds: 1, regions: 1, ..Objects::default() };
        assert_eq!(nic.objects(), left);
        assert!(nic.reset(&least()).is_err(), "there is nothing to reset");
        machine.slot.access_faults().clear();
        machine.slot.replug();
        assert_eq!(nic.reset(&least()), Ok(Objects::default()));
        assert_eq!(nic.close(), Ok(()));
        recovers(&machine, &"removal");
    }
}

#[test]
fn a_firmware_that_resets_itself_while_it_is_up_is_told_and_comes_back() {
    for chip in CHIPS {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), chip, 1);
        let mut nic = machine.open_with(&least()).unwrap();
        machine.slot.command_faults().strike(0, CommandFault::HotReset);
        assert_eq!(nic.device().create_cq(4).err(), Some(Error::HotReset));
        assert!(nic.has_failed());
        machine.slot.command_faults().clear();
        assert_eq!(nic.reset(&least()), Ok(Objects::default()));
        let cq = nic.device().create_cq(4).unwrap();
        drop(cq);
        machine.slot.command_faults().strike(0, CommandFault::Event);
        assert_eq!(nic.device().create_cq(4).err(), Some(Error::Function(0x81)));
        machine.slot.command_faults().clear();
        assert_eq!(nic.reset(&least()), Ok(Objects { cqs: 1, ..Objects::default() }));
        nic.close().unwrap();
        recovers(&machine, &"hot reset");
    }
}

#[test]
fn what_a_caller_cannot_mean_is_refused_before_there_is_a_command() {
    for chip in CHIPS {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), chip, 1);
        let mut nic = machine.open_with(&least()).unwrap();
        let mut device = nic.device();
        let pd = device.alloc_pd().unwrap();
        let before = machine.slot.command_faults().commands();
        assert_eq!(device.add_gid(Gid([1; 16]), Some(0x1fff)), Err(Error::Vlan(0x1fff)));
        assert_eq!(device.modify_gid(3, Gid([1; 16]), None), Err(Error::NoGid(3)));
        assert_eq!(device.delete_gid(3), Err(Error::NoGid(3)));
        // SAFETY: nothing is registered.
        let register = |device: &mut Device<'_, Slot>, len, log2, pages: &[u64]| unsafe {
            device.register(&pd, 0x800, len, log2, pages, AccessFlags::LOCAL_WRITE).unwrap_err()
        };
        let pages = |given, needed| Error::Pages { given, needed };
        assert_eq!(register(&mut device, 0x801, 12, &[0x1000]), pages(1, 2));
        assert_eq!(register(&mut device, 0, 12, &[0x1000]), pages(1, 1));
        assert!(matches!(register(&mut device, 0x800, 12, &[0x1008]), Error::Memory(_)));
        assert!(matches!(register(&mut device, 0x800, 11, &[0x1000]), Error::Plan(_)));
        assert!(matches!(register(&mut device, 0x800, 77, &[0x1000]), Error::Plan(_)));
        let memory = machine.slot.memory().allocated();
        let full: Vec<_> = (0..10).map(|_| device.alloc_pd()).collect();
        assert!(full.iter().any(|pd| matches!(pd, Err(Error::Full(_)))));
        let ours = full.into_iter().flatten().try_for_each(|pd| device.dealloc_pd(pd));
        assert_eq!(ours, Ok(()));
        assert_eq!(machine.slot.command_faults().commands(), before);
        assert_eq!(machine.slot.memory().allocated(), memory);
        device.dealloc_pd(pd).unwrap();
        nic.close().unwrap();
        recovers(&machine, &"caller");
    }
}

#[test]
fn a_host_that_is_lent_is_there_to_try_again() {
    for chip in CHIPS {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), chip, 1);
        let host = &machine.slot;
        host.command_faults().strike(5, CommandFault::Refused);
        assert!(matches!(Nic::open(host, &least()), Err(Error::Response(_))));
        host.command_faults().clear();
        let mut nic = Nic::open(host, &least()).unwrap();
        let cq = nic.device().create_cq(4).unwrap();
        drop(cq);
        assert_eq!(nic.close(), Err(Error::Left(Objects { cqs: 1, ..Objects::default() })));
        recovers(&machine, &"lent");
    }
}
