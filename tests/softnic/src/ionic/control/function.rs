use directverbs::ionic::devcmd::QueueKind as EthQueueKind;
use directverbs::ionic::devcmd::registers::{
    BAR0_BYTES, DEV_CMD, DEV_INFO, FwStatus, INTR_CONTROL, INTR_STATUS, PCI_DEVICE_PF, PCI_VENDOR,
};
use directverbs::ionic::doorbell::DoorbellWord;
use directverbs::verbs::Mac;
use zerocopy::IntoBytes;

use super::adminq::{AdminRing, NotifyRing};
use super::devcmd::Window;
use super::ethernet::{Ethernet, RXQ_QTYPE, TXQ_QTYPE};
use super::identity::ControlConfig;
use super::interrupts::Interrupts;
use super::rdma::Rdma;
use super::refusal::Refusal;
use super::{ADMINQ_QTYPE, AQ_QTYPE, DOORBELL_PAGE, DOORBELL_PAGES, INTERRUPTS, QueueKind, Violation, Wrong};
use crate::fabric::{Fabric, NicHandle};
use crate::ionic::{CQ_QTYPE, Ionic, RQ_QTYPE, SQ_QTYPE};
use crate::pci::{Bar, Function, Identity, MsixPlace, Port};

/// Registers.
const BAR_REGISTERS: u8 = 0;
/// Doorbell pages.
const BAR_DOORBELLS: u8 = 2;
/// Controller memory.
const BAR_MEMORY: u8 = 4;
/// Where MSI-X is in BAR 0: behind what a driver looks at.
const MSIX_TABLE: u32 = 0x6000;
const MSIX_PENDING: u32 = 0x7000;
/// Number of the LIF among all of the device. There is but one, and it is not the first.
pub(super) const LIF_HW_INDEX: u16 = 1;

/// How often the heart of the firmware beats.
const HEARTBEAT_NS: u64 = 1_000_000_000;

/// What is lost with a reset.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The device was identified.
    pub identified: bool,
    /// The device was initialised.
    pub initialised: bool,
    /// Where the host wants to read about the port.
    pub port_info: Option<u64>,
    /// Frames whose counts the host was told.
    pub port_told: u64,
    /// The port is up.
    pub up: bool,
    /// Where the host wants to read about the LIF; it is initialised.
    pub lif_info: Option<u64>,
    /// The LIF's address, if the host has set one.
    pub mac: Option<Mac>,
    /// The LIF's MTU, if the host has set one.
    pub mtu: Option<u32>,
    /// Features that the host has switched on.
    pub features: u64,
    /// The LIF's name, if the host has given one.
    pub name: [u8; 16],
    /// The LIF is enabled, unless the host has said otherwise.
    pub disabled: bool,
    /// The Ethernet part.
    pub ethernet: Ethernet,
    pub adminq: Option<AdminRing>,
    pub notifyq: Option<NotifyRing>,
    pub rdma: Option<Rdma>,
}

/// The PCI function of an ionic NIC.
pub struct IonicFunction {
    pub(super) port: Port,
    pub(super) config: ControlConfig,
    pub(super) nic: NicHandle<Ionic>,
    pub(super) window: Window,
    pub(super) interrupts: Interrupts,
    pub(super) generation: u8,
    pub(super) state: State,
}

impl IonicFunction {
    /// A function at `port` whose NIC is on `fabric`.
    pub fn attach(fabric: &Fabric, port: Port, config: ControlConfig) -> Self {
        let nic = fabric.attach(Ionic::new(config.ionic), config.nic.clone(), port.bus.clone());
        Self {
            interrupts: Interrupts::new(port.bus.clone()),
            port,
            config,
            nic,
            window: Window::default(),
            generation: 0,
            state: State::default(),
        }
    }

    /// The NIC, whose front end has the [`Violation`]s of both front ends.
    pub const fn nic(&self) -> &NicHandle<Ionic> {
        &self.nic
    }

    /// Counts a breach of the contract.
    pub(super) fn blame(&self, queue: QueueKind, id: u32, entry: u16, wrong: Wrong) {
        self.nic.lock().front_end().violations.push(Violation { queue, id, entry, wrong });
    }

    /// Counts a refused command, if the driver is to blame.
    pub(super) fn refused(&self, queue: QueueKind, opcode: u8, entry: u16, refusal: Refusal) {
        if let Some(wrong) = refusal.wrong {
            self.blame(queue, opcode.into(), entry, wrong);
        }
    }

    /// Everything that was created is gone; the window still has the command that said so.
    pub(super) fn forget(&mut self) {
        self.state = State::default();
        self.interrupts.reset();
        self.nic.lock().reset();
    }

    /// The device resets itself: the host can see it by the generation.
    pub(super) fn hot_reset(&mut self) {
        self.port.trace.say(|| "hot reset".into());
        self.reset_event();
        self.generation = self.generation.wrapping_add(1);
        self.forget();
        self.window = Window::default();
    }

    pub(super) const fn mac(&self) -> Mac {
        match self.state.mac {
            Some(mac) => mac,
            None => self.config.nic.mac,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.nic.lock().hardware().now_ns()
    }

    /// An event of interrupt `index`.
    pub(super) fn raise(&mut self, index: u16) {
        let now = self.now();
        self.interrupts.event(index, now);
    }

    fn registers_read(&self, offset: usize, bytes: &mut [u8]) {
        let now = self.now();
        let heartbeat = 1 + now.min(self.config.heart_stops_ns.unwrap_or(now)) / HEARTBEAT_NS;
        let mut info = self.config.dev_info(self.generation, heartbeat as u32);
        if self.config.firmware_stops_ns.is_some_and(|at| now >= at) {
            info.fw_status = FwStatus::from_bits(info.fw_status).with_running(false).into_bits();
        }
        let window = self.window.registers();
        for (i, byte) in bytes.iter_mut().enumerate() {
            let at = offset + i;
            let of = |from: &[u8], start: usize| from.get(at - start).copied().unwrap_or_default();
            *byte = match at {
                DEV_INFO..DEV_CMD => of(info.as_bytes(), DEV_INFO),
                DEV_CMD..INTR_STATUS => of(window.as_bytes(), DEV_CMD),
                INTR_CONTROL.. => {
                    let word = self.interrupts.read((at - INTR_CONTROL) & !3, now);
                    word.to_le_bytes()[at % 4]
                }
                _ => 0,
            };
        }
    }

    fn registers_write(&mut self, offset: usize, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        if !offset.is_multiple_of(4) || !rest.is_empty() {
            let wrong = Wrong { what: "register store of a part of a word", got: offset as u64, want: 0 };
            return self.blame(QueueKind::Registers, 0, 0, wrong);
        }
        for (i, word) in words.iter().enumerate() {
            let (at, value) = (offset + i * 4, u32::from_le_bytes(*word));
            let known = match at {
                DEV_CMD..INTR_STATUS => self.window_write(at - DEV_CMD, value),
                INTR_CONTROL.. if at < INTR_CONTROL + usize::from(INTERRUPTS) * 32 => {
                    let now = self.now();
                    self.interrupts.write(at - INTR_CONTROL, value, now);
                    true
                }
                _ => false,
            };
            if !known {
                let wrong = Wrong { what: "store to a register that takes none", got: at as u64, want: 0 };
                self.blame(QueueKind::Registers, 0, 0, wrong);
            }
        }
    }

    fn doorbell(&mut self, offset: u64, bytes: &[u8]) {
        let Ok(value) = <[u8; 8]>::try_from(bytes).map(u64::from_le_bytes) else {
            let wrong = Wrong { what: "bytes of a doorbell", got: bytes.len() as u64, want: 8 };
            return self.blame(QueueKind::Registers, 0, 0, wrong);
        };
        let first = u64::from(LIF_HW_INDEX) * u64::from(DOORBELL_PAGES);
        let page = (offset / DOORBELL_PAGE).checked_sub(first).filter(|p| *p < u64::from(DOORBELL_PAGES));
        let (Some(page), true) = (page, self.state.lif_info.is_some()) else {
            let wrong = Wrong { what: "doorbell page", got: offset / DOORBELL_PAGE, want: first };
            return self.blame(QueueKind::Registers, 0, 0, wrong);
        };
        let register = offset % DOORBELL_PAGE / 8;
        let word = DoorbellWord::from_bits(value);
        match u8::try_from(register).unwrap_or(u8::MAX) {
            ADMINQ_QTYPE => self.admin_doorbell(page as u32, word),
            TXQ_QTYPE => self.eth_doorbell(EthQueueKind::TXQ, page as u32, word),
            RXQ_QTYPE => self.eth_doorbell(EthQueueKind::RXQ, page as u32, word),
            AQ_QTYPE => self.rdma_doorbell(page as u32, word),
            CQ_QTYPE if self.is_admin_cq(word.qid()) => self.admin_cq_doorbell(word),
            SQ_QTYPE | RQ_QTYPE | CQ_QTYPE => {
                self.check_page(register as u8, page as u32, word.qid());
                self.nic.lock().doorbell(page as u32, register as usize, value);
            }
            _ => {
                let wrong = Wrong { what: "doorbell register", got: register, want: SQ_QTYPE.into() };
                self.blame(QueueKind::Registers, word.qid(), word.index(), wrong);
            }
        }
    }
}

impl Function for IonicFunction {
    fn identity(&self) -> Identity {
        let pages = (u64::from(LIF_HW_INDEX) + 1) * u64::from(DOORBELL_PAGES);
        let mut bars = vec![
            Bar::wide(BAR_REGISTERS, BAR0_BYTES as u64),
            Bar::wide(BAR_DOORBELLS, pages * DOORBELL_PAGE),
        ];
        if self.config.nic.device_memory > 0 {
            let len = (self.config.nic.device_memory as u64).next_power_of_two().max(1 << 16);
            bars.push(Bar::wide(BAR_MEMORY, len));
        }
        for (index, len) in &self.config.short_bars {
            bars.retain_mut(|bar| {
                bar.len = if bar.index == *index { *len } else { bar.len };
                bar.len > 0
            });
        }
        Identity {
            vendor: PCI_VENDOR,
            device: PCI_DEVICE_PF,
            subsystem_vendor: PCI_VENDOR,
            subsystem: 0x4000,
            class: 0x02_0000,
            revision: 0,
            bars,
            msix: Some(MsixPlace {
                bar: BAR_REGISTERS,
                vectors: INTERRUPTS,
                table: MSIX_TABLE,
                pending: MSIX_PENDING,
            }),
        }
    }

    fn bar_read(&mut self, bar: u8, offset: u64, bytes: &mut [u8]) {
        match bar {
            BAR_REGISTERS => self.registers_read(offset as usize, bytes),
            BAR_MEMORY => {
                let mut nic = self.nic.lock();
                let memory = nic.hardware().device_memory();
                for (i, byte) in bytes.iter_mut().enumerate() {
                    *byte = memory.get(offset as usize + i).copied().unwrap_or_default();
                }
            }
            _ => bytes.fill(0),
        }
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) {
        match bar {
            BAR_REGISTERS => self.registers_write(offset as usize, bytes),
            BAR_DOORBELLS => self.doorbell(offset, bytes),
            BAR_MEMORY => self.nic.lock().device_store(offset, bytes),
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.forget();
        self.window = Window::default();
    }

    fn service(&mut self) -> bool {
        let now = self.now();
        self.tell_counters();
        self.tell_port();
        self.interrupts.service(now) | self.hand_out_events() | self.hand_out_frames()
    }
}
