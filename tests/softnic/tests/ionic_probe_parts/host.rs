//! Registers, device commands and the Ethernet admin queue, by their offsets.

use core::net::Ipv4Addr;

use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Gid, Mac, Mtu, RKey};
use directverbs_bare::pci::Msix;
use directverbs_bare::pci::{Command, command};
use directverbs_bare::{Caching, Clock, DmaMemory, Host, Registers};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, NicHandle};
use directverbs_softnic::ionic::Ionic;
use directverbs_softnic::ionic::control::{ControlConfig, IonicFunction};
use directverbs_softnic::pci::{Slot, Trace};

pub const DOORBELL: usize = 0x800;
pub const DONE: usize = 0x804;
pub const COMMAND: usize = 0x808;
pub const COMPLETION: usize = 0x848;
pub const DATA: usize = 0x888;
pub const INTERRUPTS: usize = 0x2000;
pub const PAGE: usize = 4096;
/// Vectors that are switched on: one for each interrupt used here.
const VECTORS: u16 = 8;

/// A command of 64 bytes, built by offsets.
#[derive(Clone, Copy)]
pub struct Cmd(pub [u8; 64]);

pub fn cmd(opcode: u8) -> Cmd {
    Cmd([0; 64]).put(0, &[opcode])
}

impl Cmd {
    pub fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub fn u8(self, at: usize, value: u8) -> Self {
        self.put(at, &[value])
    }

    pub fn u16(self, at: usize, value: u16) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    pub fn u32(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    pub fn u64(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_le_bytes())
    }
}

/// Little-endian numbers at offsets of an answer.
pub fn le<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(number)
}

/// A block of host memory that the device reaches.
pub struct Shared(pub <Slot as Host>::Dma);

impl Shared {
    pub fn at(&self) -> u64 {
        self.0.device_address()
    }

    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        assert!(self.0.read(offset, &mut bytes));
        bytes
    }

    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(self.0.write(offset, bytes));
    }
}

/// The Ethernet admin queue: 16 commands, and as many completions.
struct AdminQueue {
    commands: Shared,
    completions: Shared,
    head: u16,
    qtype: u8,
    id: u64,
}

pub struct Driver {
    pub slot: Slot,
    pub nic: NicHandle<Ionic>,
    pub mac: Mac,
    pub bar: <Slot as Host>::Bar,
    pub pages: Option<<Slot as Host>::Bar>,
    _table: <Slot as Host>::Bar,
    admin: Option<AdminQueue>,
}

/// A NIC, and a driver that has mapped its registers and switched interrupts on.
pub fn plug(fabric: &Fabric, nth: u8) -> Driver {
    let mac = Mac([2, 0, 0, 0, 0, nth]);
    let nic = NicConfig {
        mac,
        gids: vec![Gid::v4(Ipv4Addr::new(10, 0, 0, nth))],
        mtu: Mtu::B4096,
        device_memory: 1 << 20,
        all_memory_key: Some(RKey::truncated(0)),
    };
    let mut handle = None;
    let slot = Slot::plug(fabric, Trace::default(), |port| {
        let function = IonicFunction::attach(fabric, port, ControlConfig::new(RdmaVersion::V2, nic));
        handle = Some(function.nic().clone());
        Box::new(function)
    });
    command::enable(&slot, Command::MEMORY | Command::BUS_MASTER);
    let bar = slot.map_bar(0, 0, 0x8000, Caching::Uncached).expect("BAR 0");
    let msix = Msix::find(&slot).expect("a list").expect("MSI-X");
    let table = slot.map_bar(msix.bar, msix.offset, msix.table_len(), Caching::Uncached).expect("the table");
    for vector in 0..VECTORS {
        msix.set(&table, vector, 0xfee0_0000, vector.into());
    }
    msix.enable(&slot, true);
    Driver { slot, nic: handle.expect("plugged in"), mac, bar, pages: None, _table: table, admin: None }
}

impl Driver {
    pub fn memory(&self, bytes: usize) -> Shared {
        Shared(self.slot.dma(bytes, PAGE).expect("memory"))
    }

    pub fn wait(&self, what: &str, mut done: impl FnMut() -> bool) {
        for _ in 0..10_000 {
            if done() {
                return;
            }
            self.slot.relax();
        }
        panic!("{what}: nothing came");
    }

    /// A device command as the document has it: data, command, done, doorbell, done.
    pub fn try_dev(&self, cmd: Cmd, data: &[u8]) -> Result<[u8; 16], u8> {
        self.bar.write_words(DATA, data);
        self.bar.write_words(COMMAND, &cmd.0);
        self.bar.write32(DONE, 0);
        self.bar.write32(DOORBELL, 1);
        self.wait("device command", || self.bar.read32(DONE) & 1 == 1);
        let mut completion = [0; 16];
        self.bar.read_words(COMPLETION, &mut completion);
        if completion[0] == 0 { Ok(completion) } else { Err(completion[0]) }
    }

    pub fn dev(&self, cmd: Cmd) -> [u8; 16] {
        self.try_dev(cmd, &[]).unwrap_or_else(|status| panic!("opcode {}: status {status}", cmd.0[0]))
    }

    /// The data window.
    pub fn window(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.bar.read_words(DATA, &mut bytes);
        bytes
    }

    pub fn ring(&self, qtype: u8, qid: u64, index: u16) {
        let pages = self.pages.as_ref().expect("LIF_INIT was before");
        pages.write64(usize::from(qtype) * 8, u64::from(index) | qid << 24);
    }

    /// Creates the admin queue with interrupt 0, and maps the doorbell page of the LIF that `hw_index` names.
    pub fn admin_up(&mut self, hw_index: u64, pages_of_lif: u64) {
        let at = hw_index * pages_of_lif * PAGE as u64;
        self.pages = Some(self.slot.map_bar(2, at, PAGE, Caching::Uncached).expect("a doorbell page"));
        let (commands, completions) = (self.memory(16 * 64), self.memory(16 * 16));
        let init = cmd(40).u8(4, 0).u16(14, 0).u16(16, 3).u8(19, 4);
        let made = self.dev(init.u64(20, commands.at()).u64(28, completions.at()));
        let (id, qtype) = (le::<4>(&made, 4), made[8]);
        assert!(qtype < 8);
        self.admin = Some(AdminQueue { commands, completions, head: 0, qtype, id });
    }

    /// A command through the admin queue: its completion names it and has the color of its lap.
    pub fn try_admin(&mut self, cmd: Cmd) -> Result<[u8; 16], u8> {
        let queue = self.admin.as_mut().expect("admin_up was before");
        let (entry, lap) = (queue.head % 16, queue.head / 16);
        queue.commands.write(usize::from(entry) * 64, &cmd.0);
        queue.head += 1;
        let (qtype, id, next) = (queue.qtype, queue.id, queue.head % 16);
        self.ring(qtype, id, next);
        let queue = self.admin.as_ref().expect("as before");
        let comp: [u8; 16] =
            queue.completions.read(usize::from(entry) * 16, 16).try_into().expect("16 bytes");
        assert_eq!(comp[15] >> 7, u8::from(lap.is_multiple_of(2)), "color of opcode {}", cmd.0[0]);
        assert_eq!(le::<2>(&comp, 2), u64::from(entry), "comp_index of opcode {}", cmd.0[0]);
        if comp[0] == 0 { Ok(comp) } else { Err(comp[0]) }
    }

    pub fn admin(&mut self, cmd: Cmd) -> [u8; 16] {
        self.try_admin(cmd).unwrap_or_else(|status| panic!("opcode {}: status {status}", cmd.0[0]))
    }

    pub fn interrupts(&self) -> Vec<u16> {
        self.slot.memory().take_interrupts()
    }

    /// Takes `count` events of an interrupt back, and unmasks it.
    pub fn credits(&self, interrupt: usize, count: u32) {
        self.bar.write32(INTERRUPTS + interrupt * 32 + 8, count | 0x1_0000);
    }

    /// The driver has broken no rule, and the device has touched nothing that it should not.
    pub fn assert_clean(&self) {
        assert_eq!(self.nic.lock().front_end().violations(), []);
        assert_eq!(self.slot.violations(), 0);
    }
}
