//! Device commands: the window, and what each command does. Most of them can come through the admin queue as well.

use directverbs::ionic::devcmd::registers::{
    COMMAND_BYTES, COMPLETION_BYTES, DATA_BYTES, DONE, DevCmdRegs, GO,
};
use directverbs::ionic::devcmd::*;
use directverbs::verbs::Mac;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::adminq::{AdminRing, NotifyRing};
use super::ethernet::{ETH_QUEUES, FEATURES};
use super::function::{IonicFunction, LIF_HW_INDEX};
use super::identity::{ControlConfig, Told};
use super::rdma::Rdma;
use super::refusal::{Refusal, zeros};
use super::{ADMINQ_QTYPE, DOORBELL_PAGES, INTERRUPTS, QueueKind, Wrong};
use crate::pci::CommandFault;

/// Numbers of the Ethernet part's queues in doorbells.
pub(super) const ADMINQ_ID: u32 = 0x21;
const NOTIFYQ_ID: u32 = 0x22;
/// Most entries of a queue, base-two logarithm.
const RING_LOG2_MAX: u8 = 15;

/// What comes back for a command.
pub(super) type Reply = [u8; COMPLETION_BYTES];

/// How a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Through the window, with data beside it.
    Device,
    /// Through the admin queue.
    Admin,
}

/// The registers of device commands.
#[derive(Debug)]
pub(super) struct Window {
    doorbell: u32,
    done: u32,
    command: [u8; COMMAND_BYTES],
    completion: Reply,
    data: [u8; DATA_BYTES],
}

impl Default for Window {
    fn default() -> Self {
        Self {
            doorbell: 0,
            done: 0,
            command: [0; COMMAND_BYTES],
            completion: [0; COMPLETION_BYTES],
            data: [0; DATA_BYTES],
        }
    }
}

impl Window {
    pub fn registers(&self) -> DevCmdRegs {
        DevCmdRegs {
            doorbell: self.doorbell.into(),
            done: self.done.into(),
            cmd: self.command,
            comp: self.completion,
            rsvd: [0; 48],
            data: FromBytes::read_from_bytes(&self.data[..]).expect("as long"),
        }
    }

    /// Puts an identity where the host reads it, with what `config` tells wrong of it.
    fn answer(&mut self, config: &ControlConfig, told: Told, identity: &(impl IntoBytes + Immutable)) {
        self.data.fill(0);
        for (to, from) in self.data.iter_mut().zip(identity.as_bytes()) {
            *to = *from;
        }
        for lie in config.lies.iter().filter(|lie| lie.of == told) {
            if let Some(byte) = self.data.get_mut(lie.offset) {
                *byte = lie.value;
            }
        }
    }
}

pub(super) fn read<T: FromBytes>(bytes: &[u8]) -> T {
    T::read_from_prefix(bytes).expect("long enough").0
}

pub(super) fn reply(completion: &(impl IntoBytes + Immutable)) -> Reply {
    read(completion.as_bytes())
}

const DONE_WELL: Reply = [0; COMPLETION_BYTES];

impl IonicFunction {
    /// The host stores a word of the window; `false` if it takes no stores.
    pub(super) fn window_write(&mut self, offset: usize, value: u32) -> bool {
        let word = value.to_le_bytes();
        let put = |to: &mut [u8], start: usize| to[offset - start..][..4].copy_from_slice(&word);
        match offset {
            0 => self.window_doorbell(value),
            4 => self.window.done = value,
            8..0x48 => put(&mut self.window.command, 8),
            0x88.. => put(&mut self.window.data, 0x88),
            _ => return false,
        }
        true
    }

    fn window_doorbell(&mut self, value: u32) {
        let opcode = self.window.command[0];
        let blame = |this: &Self, what, got, want| {
            this.blame(QueueKind::DeviceCommand, opcode.into(), 0, Wrong { what, got, want });
        };
        if value != GO {
            return blame(self, "device command doorbell", value.into(), GO.into());
        }
        if self.window.done & DONE != 0 {
            blame(self, "done before the command", self.window.done.into(), 0);
        }
        self.device_command();
    }

    fn device_command(&mut self) {
        let command = self.window.command;
        let opcode = Opcode(command[0]);
        let fault = self.port.faults.next();
        if fault == Some(CommandFault::HotReset) {
            return self.hot_reset();
        }
        let result = match fault {
            Some(CommandFault::Refused) => Err(Refusal::fate(Status::EPERM)),
            Some(CommandFault::Busy) => Err(Refusal::fate(Status::EAGAIN)),
            Some(CommandFault::Event) => {
                self.unexpected_event();
                self.execute(&command, Way::Device)
            }
            _ => self.execute(&command, Way::Device),
        };
        self.trace("device command", opcode, &result);
        let mut completion = match result {
            Ok(completion) => completion,
            Err(refusal) => {
                self.refused(QueueKind::DeviceCommand, opcode.0, 0, refusal);
                let mut completion = DONE_WELL;
                completion[0] = refusal.status.0;
                completion
            }
        };
        match fault {
            // It has no valid bit but `done`.
            Some(CommandFault::Silent | CommandFault::NotValid) => return,
            Some(CommandFault::Garbage) => {
                completion[1..].fill(0xff);
                self.window.data.fill(0xff);
            }
            // There is no sequence number and no length.
            _ => {}
        }
        self.window.completion = completion;
        self.window.done = DONE;
    }

    pub(super) fn trace(&self, way: &str, opcode: Opcode, result: &Result<Reply, Refusal>) {
        self.port.trace.say(|| match result {
            Ok(_) => format!("{way} {opcode}"),
            Err(Refusal { status, wrong: Some(wrong) }) => format!("{way} {opcode}: {status} ({wrong})"),
            Err(Refusal { status, .. }) => format!("{way} {opcode}: {status}"),
        });
    }

    /// Carries out a command.
    pub(super) fn execute(&mut self, bytes: &[u8; COMMAND_BYTES], way: Way) -> Result<Reply, Refusal> {
        match Opcode(bytes[0]) {
            Opcode::NOP => zeros("reserved bytes", &bytes[1..]).map(|()| DONE_WELL),
            Opcode::LIF_GETATTR => self.lif_getattr(&read(bytes)),
            Opcode::LIF_SETATTR => self.lif_setattr(&read(bytes)),
            Opcode::RX_MODE_SET => self.rx_mode(&read(bytes)),
            Opcode::RX_FILTER_ADD => self.filter_add(&read(bytes)),
            Opcode::RX_FILTER_DEL => self.filter_del(&read(bytes)),
            Opcode::Q_INIT => self.q_init(&read(bytes), way),
            Opcode::Q_CONTROL => self.q_control(&read(bytes)),
            Opcode::RDMA_RESET_LIF => self.rdma_reset(&read(bytes)),
            Opcode::RDMA_CREATE_EQ | Opcode::RDMA_CREATE_CQ | Opcode::RDMA_CREATE_ADMINQ => {
                self.rdma_queue(&read(bytes)).map(|()| DONE_WELL)
            }
            Opcode::LIF_RESET => self.lif_reset(&read(bytes)),
            _ if way == Way::Device => self.execute_device(bytes),
            other => Err(Refusal::blame(Status::EOPCODE, "opcode in the admin queue", other.0.into(), 0)),
        }
    }

    fn execute_device(&mut self, bytes: &[u8; COMMAND_BYTES]) -> Result<Reply, Refusal> {
        match Opcode(bytes[0]) {
            Opcode::IDENTIFY => self.identify(&read(bytes)),
            Opcode::INIT => self.init(&read(bytes)),
            Opcode::RESET => {
                zeros("reserved bytes", &bytes[1..])?;
                self.forget();
                Ok(DONE_WELL)
            }
            Opcode::PORT_IDENTIFY => self.port_identify(&read(bytes)),
            Opcode::PORT_INIT => self.port_init(&read(bytes)),
            Opcode::PORT_RESET => {
                self.state.port_info = None;
                self.port_goes(false)?;
                Ok(DONE_WELL)
            }
            Opcode::PORT_GETATTR => self.port_getattr(&read(bytes)),
            Opcode::PORT_SETATTR => self.port_setattr(&read(bytes)),
            Opcode::LIF_IDENTIFY => self.lif_identify(&read(bytes)),
            Opcode::LIF_INIT => self.lif_init(&read(bytes)),
            Opcode::Q_IDENTIFY => self.q_identify(&read(bytes)),
            Opcode::DISCOVER_CMB if self.config.nic.device_memory > 0 => {
                let identity = self.config.memory();
                self.window.answer(&self.config, Told::Memory, &identity);
                Ok(DONE_WELL)
            }
            // There are such commands, and this device does not have them.
            Opcode(4 | 5 | 25 | 60..=62 | 80 | 240..) => Err(Refusal::fate(Status::EOPCODE)),
            other => Err(Refusal::blame(Status::EOPCODE, "opcode", other.0.into(), 0)),
        }
    }

    fn identify(&mut self, cmd: &DevIdentifyCmd) -> Result<Reply, Refusal> {
        if cmd.ver == 0 {
            return Err(Refusal::blame(Status::EVERSION, "version of the identity", cmd.ver.into(), 1));
        }
        zeros("reserved bytes", &cmd.rsvd)?;
        self.state.identified = true;
        self.window.answer(&self.config, Told::Device, &self.config.device());
        Ok(reply(&DevIdentifyComp { ver: 1, ..DevIdentifyComp::ZERO }))
    }

    fn init(&mut self, cmd: &DevInitCmd) -> Result<Reply, Refusal> {
        if !self.state.identified {
            return Err(Refusal::blame(Status::EPERM, "INIT before IDENTIFY", 0, 1));
        }
        zeros("reserved bytes", &cmd.rsvd)?;
        self.state.initialised = true;
        Ok(DONE_WELL)
    }

    fn port_index(index: u8) -> Result<(), Refusal> {
        Wrong::unless_equal("port", index.into(), 0).map_err(Refusal::from)
    }

    fn port_identify(&mut self, cmd: &PortIdentifyCmd) -> Result<Reply, Refusal> {
        Self::port_index(cmd.index)?;
        self.window.answer(&self.config, Told::Port, &self.config.port(self.state.up));
        Ok(reply(&PortIdentifyComp { ver: 1, ..PortIdentifyComp::ZERO }))
    }

    fn port_init(&mut self, cmd: &PortInitCmd) -> Result<Reply, Refusal> {
        Self::port_index(cmd.index)?;
        if !self.state.initialised {
            return Err(Refusal::blame(Status::EPERM, "PORT_INIT before INIT", 0, 1));
        }
        // What was counted before is told with the next look.
        (self.state.port_info, self.state.port_told) = (Some(cmd.info_pa.get()), 0);
        self.write_port()?;
        Ok(DONE_WELL)
    }

    fn write_port(&self) -> Result<(), Refusal> {
        let Some(at) = self.state.port_info else { return Ok(()) };
        let config = self.config.port_config(self.state.up);
        self.port.bus.write(at, config.as_bytes())?;
        let status = self.config.port_status(self.state.up);
        Ok(self.port.bus.write(at + size_of::<PortConfig>() as u64, status.as_bytes())?)
    }

    fn write_lif(&self) -> Result<(), Refusal> {
        let Some(at) = self.state.lif_info else { return Ok(()) };
        let (mac, mtu) = (self.mac(), self.state.mtu.unwrap_or(1500));
        let eid = self.state.notifyq.as_ref().map_or(0, |queue| queue.eid);
        let counters = self.nic.lock().hardware().counters();
        let mut info = self.config.lif_info(mac, mtu, self.state.up, eid);
        info.config.state = u8::from(!self.state.disabled);
        info.config.name = self.state.name;
        info.config.features = self.state.features.into();
        info.stats = self.state.ethernet.stats(&counters);
        Ok(self.port.bus.write(at, info.as_bytes())?)
    }

    /// Brings the host's copy of the counters up to date.
    pub(super) fn tell_counters(&mut self) {
        let Some(at) = self.state.lif_info else { return };
        let counters = self.nic.lock().hardware().counters();
        let Some(stats) = self.state.ethernet.news(counters) else { return };
        let to = at + std::mem::offset_of!(LifInfo, stats) as u64;
        if let Err(error) = self.port.bus.write(to, stats.as_bytes()) {
            self.refused(QueueKind::DeviceCommand, Opcode::LIF_INIT.0, 0, error.into());
        }
    }

    fn port_goes(&mut self, up: bool) -> Result<(), Refusal> {
        let changed = self.state.up != up;
        self.state.up = up;
        self.write_port()?;
        if changed && self.state.notifyq.is_some() {
            self.link_event();
        }
        self.write_lif()
    }

    fn port_getattr(&self, cmd: &PortGetAttrCmd) -> Result<Reply, Refusal> {
        Self::port_index(cmd.index)?;
        let config = self.config.port_config(self.state.up);
        let mut value = [0; 11];
        let bytes = match PortAttr(cmd.attr) {
            PortAttr::STATE => &[config.state][..],
            PortAttr::SPEED => config.speed.as_bytes(),
            PortAttr::MTU => config.mtu.as_bytes(),
            PortAttr::AUTONEG => &[config.an_enable][..],
            other => return Err(Refusal::blame(Status::EINVAL, "port attribute", other.0.into(), 0)),
        };
        value.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(reply(&PortGetAttrComp { value, ..PortGetAttrComp::ZERO }))
    }

    fn port_setattr(&mut self, cmd: &PortSetAttrCmd) -> Result<Reply, Refusal> {
        Self::port_index(cmd.index)?;
        if self.state.port_info.is_none() {
            return Err(Refusal::blame(Status::EPERM, "PORT_SETATTR before PORT_INIT", 0, 1));
        }
        match (PortAttr(cmd.attr), PortState(cmd.value[0])) {
            (PortAttr::STATE, PortState::UP) => self.port_goes(true)?,
            (PortAttr::STATE, PortState::DOWN) => self.port_goes(false)?,
            (PortAttr::SPEED | PortAttr::MTU | PortAttr::AUTONEG, _) => {}
            // Error correction, pause frames, loopback: there are such attributes, and it does not have them.
            (PortAttr(4..=7), _) => return Err(Refusal::fate(Status::ENOSUPP)),
            (attr, _) => return Err(Refusal::blame(Status::EINVAL, "port attribute", attr.0.into(), 0)),
        }
        Ok(DONE_WELL)
    }

    fn lif_identify(&mut self, cmd: &LifIdentifyCmd) -> Result<Reply, Refusal> {
        Wrong::unless_equal("LIF type", cmd.r#type.into(), LIF_TYPE_CLASSIC.into())?;
        zeros("reserved bytes", &cmd.rsvd)?;
        self.window.answer(&self.config, Told::Lif, &self.config.lif());
        Ok(reply(&LifIdentifyComp { ver: 1, ..LifIdentifyComp::ZERO }))
    }

    fn lif_init(&mut self, cmd: &LifInitCmd) -> Result<Reply, Refusal> {
        Wrong::unless_equal("LIF type", cmd.r#type.into(), LIF_TYPE_CLASSIC.into())?;
        Wrong::unless_equal("LIF", cmd.index.get().into(), 0)?;
        if !self.state.initialised {
            return Err(Refusal::blame(Status::EPERM, "LIF_INIT before INIT", 0, 1));
        }
        if self.state.lif_info.is_some() {
            return Err(Refusal::blame(Status::EEXIST, "LIF_INIT again", 0, 0));
        }
        zeros("reserved bytes", &cmd.rsvd2)?;
        self.state.lif_info = Some(cmd.info_pa.get());
        self.write_lif().inspect_err(|_| self.state.lif_info = None)?;
        Ok(reply(&LifInitComp { hw_index: LIF_HW_INDEX.into(), ..LifInitComp::ZERO }))
    }

    fn lif_reset(&mut self, cmd: &LifResetCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.index.get())?;
        let (identified, initialised) = (self.state.identified, self.state.initialised);
        let (port_info, up) = (self.state.port_info, self.state.up);
        self.forget();
        (self.state.identified, self.state.initialised) = (identified, initialised);
        (self.state.port_info, self.state.up) = (port_info, up);
        Ok(DONE_WELL)
    }

    /// The LIF is there.
    fn lif(&self, index: u16) -> Result<(), Refusal> {
        Wrong::unless_equal("LIF", index.into(), 0)?;
        if self.state.lif_info.is_none() {
            return Err(Refusal::blame(Status::EPERM, "before LIF_INIT", 0, 1));
        }
        Ok(())
    }

    fn lif_getattr(&self, cmd: &LifGetAttrCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.index.get())?;
        zeros("reserved bytes", &cmd.rsvd)?;
        let mut value = [0; 11];
        let bytes = match LifAttr(cmd.attr) {
            LifAttr::STATE => vec![u8::from(!self.state.disabled)],
            LifAttr::NAME => self.state.name.to_vec(),
            LifAttr::MTU => self.state.mtu.unwrap_or(1500).to_le_bytes().to_vec(),
            LifAttr::MAC => self.mac().0.to_vec(),
            LifAttr::FEATURES => self.state.features.to_le_bytes().to_vec(),
            other => return Err(Refusal::blame(Status::EINVAL, "LIF attribute", other.0.into(), 0)),
        };
        value.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Ok(reply(&LifGetAttrComp { value, ..LifGetAttrComp::ZERO }))
    }

    fn lif_setattr(&mut self, cmd: &LifSetAttrCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.index.get())?;
        let mut done = LifSetAttrComp::ZERO;
        match LifAttr(cmd.attr) {
            LifAttr::MTU => {
                let mtu = u32::from_le_bytes(read(&cmd.value));
                let max = self.config.lif().config.mtu.get();
                Wrong::if_over("MTU", mtu.into(), max.into())?;
                self.state.mtu = Some(mtu);
            }
            LifAttr::MAC => {
                let mac = Mac(read(&cmd.value));
                // The NIC's own address is what its frames have: another one would be a second NIC.
                if mac != self.config.nic.mac {
                    return Err(Refusal::fate(Status::ENOSUPP));
                }
                self.state.mac = Some(mac);
            }
            LifAttr::FEATURES => {
                self.state.features = u64::from_le_bytes(read(&cmd.value)) & FEATURES.bits();
                done.value[..8].copy_from_slice(&self.state.features.to_le_bytes());
            }
            LifAttr::STATE => {
                Wrong::if_over("state of the LIF", cmd.value[0].into(), 2)?;
                self.state.disabled = cmd.value[0] != 1;
            }
            LifAttr::NAME => self.state.name = read(&cmd.value),
            LifAttr::STATS_CTRL => {
                Wrong::unless_equal("operation on counters", cmd.value[0].into(), 0)?;
                let counters = self.nic.lock().hardware().counters();
                self.state.ethernet.reset_counters(counters);
            }
            // Frames are not spread, as RX_HASH is not granted: that is told by the features.
            LifAttr::RSS => {}
            other => return Err(Refusal::blame(Status::EINVAL, "LIF attribute", other.0.into(), 0)),
        }
        self.write_lif()?;
        Ok(reply(&done))
    }

    fn filter_add(&mut self, cmd: &RxFilterAddCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.lif_index.get())?;
        let id = self.state.ethernet.add_filter(RxMatch(cmd.r#match.get()), &cmd.value)?;
        Ok(reply(&RxFilterAddComp { filter_id: id.into(), ..RxFilterAddComp::ZERO }))
    }

    fn filter_del(&mut self, cmd: &RxFilterDelCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.lif_index.get())?;
        self.state.ethernet.delete_filter(cmd.filter_id.get()).map(|()| DONE_WELL)
    }

    fn rx_mode(&mut self, cmd: &RxModeSetCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.lif_index.get())?;
        let bits = cmd.rx_mode.get();
        let mode = RxMode::from_bits(bits);
        let unknown =
            Refusal::blame(Status::EINVAL, "receive mode", bits.into(), RxMode::all().bits().into());
        self.state.ethernet.mode = mode.ok_or(unknown)?;
        Ok(DONE_WELL)
    }

    fn q_identify(&mut self, cmd: &QIdentifyCmd) -> Result<Reply, Refusal> {
        let identity = ControlConfig::queue(QueueKindOf(cmd.r#type));
        // The driver asks about kinds that it would like to have.
        let identity = identity.ok_or(Refusal::fate(Status::EQTYPE))?;
        self.window.answer(&self.config, Told::Queue, &identity);
        Ok(reply(&QIdentifyComp { ver: identity.version, ..QIdentifyComp::ZERO }))
    }

    fn q_init(&mut self, cmd: &QInitCmd, way: Way) -> Result<Reply, Refusal> {
        self.lif(cmd.lif_index.get())?;
        zeros("reserved bytes", &cmd.rsvd2)?;
        Wrong::unless_equal("version of the queue", cmd.ver.into(), 0)?;
        Wrong::if_over("doorbell page", cmd.pid.get().into(), (DOORBELL_PAGES - 1).into())?;
        if !(1..=RING_LOG2_MAX).contains(&cmd.ring_size) {
            return Err(Refusal::blame(
                Status::ERANGE,
                "ring size",
                cmd.ring_size.into(),
                RING_LOG2_MAX.into(),
            ));
        }
        let flags = QInitFlags::from_bits(cmd.flags.get());
        let intr = flags.irq().then_some(cmd.intr_index.get());
        if let Some(intr) = intr {
            Wrong::if_over("interrupt", intr.into(), (INTERRUPTS - 1).into())?;
        }
        let kind = QueueKindOf(cmd.r#type);
        let last = if [QueueKindOf::TXQ, QueueKindOf::RXQ].contains(&kind) { ETH_QUEUES - 1 } else { 0 };
        Wrong::if_over("queue", cmd.index.get().into(), last.into())?;
        let (base, cq_base, depth) = (cmd.ring_base.get(), cmd.cq_ring_base.get(), cmd.ring_size);
        let (id, qtype) = match (kind, way) {
            (QueueKindOf::ADMINQ, Way::Device) if self.state.adminq.is_none() => {
                self.state.adminq = Some(AdminRing::new(base, cq_base, depth, cmd.pid.get().into(), intr));
                (ADMINQ_ID, ADMINQ_QTYPE)
            }
            (QueueKindOf::NOTIFYQ, Way::Admin) if self.state.notifyq.is_none() => {
                self.state.notifyq = Some(NotifyRing::new(base, depth, intr));
                (NOTIFYQ_ID, ADMINQ_QTYPE)
            }
            (QueueKindOf::TXQ | QueueKindOf::RXQ, Way::Admin) => {
                let made = self.state.ethernet.create(cmd)?;
                self.want_frames();
                made
            }
            (kind, _) => return Err(Refusal::blame(Status::EQTYPE, "kind of queue", kind.0.into(), 0)),
        };
        Ok(reply(&QInitComp { hw_index: id.into(), hw_type: qtype, ..QInitComp::ZERO }))
    }

    fn q_control(&mut self, cmd: &QControlCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.lif_index.get())?;
        let (kind, index) = (QueueKindOf(cmd.r#type), cmd.index.get());
        if [QueueKindOf::TXQ, QueueKindOf::RXQ].contains(&kind) {
            self.state.ethernet.control(kind, index, QOperation(cmd.oper))?;
            if kind == QueueKindOf::TXQ {
                self.transmit(index);
            }
            return Ok(DONE_WELL);
        }
        let known = match kind {
            QueueKindOf::ADMINQ => self.state.adminq.is_some(),
            QueueKindOf::NOTIFYQ => self.state.notifyq.is_some(),
            _ => false,
        };
        if !known {
            return Err(Refusal::blame(Status::EQTYPE, "kind of queue", cmd.r#type.into(), 0));
        }
        Ok(DONE_WELL)
    }

    /// Frames that are no RoCEv2 packets are for the host once it has a queue for them.
    fn want_frames(&self) {
        self.nic.lock().want_host_frames(self.state.ethernet.receives());
    }

    fn rdma_reset(&mut self, cmd: &RdmaResetCmd) -> Result<Reply, Refusal> {
        self.lif(cmd.lif_index.get())?;
        zeros("reserved bytes", &cmd.rsvd2)?;
        self.nic.lock().reset();
        self.want_frames();
        self.state.rdma = Some(Rdma::default());
        Ok(DONE_WELL)
    }

    fn rdma_queue(&mut self, cmd: &RdmaQueueCmd) -> Result<(), Refusal> {
        self.lif(cmd.lif_index.get())?;
        zeros("reserved bytes", &cmd.rsvd2)?;
        let Some(rdma) = &mut self.state.rdma else {
            return Err(Refusal::blame(Status::EPERM, "before RDMA_RESET_LIF", 0, 1));
        };
        rdma.create(&self.config, cmd)
    }
}

use directverbs::ionic::devcmd::QueueKind as QueueKindOf;
