//! A NIC: the engine, a front end, and the bus.

use std::sync::Arc;

use directverbs::verbs::{AhId, CqId, Gid, PdId, QpId, QpState, SrqId};

use crate::bus::Bus;
use crate::clock::Clock;
use crate::device::{
    AhConfig, CqConfig, DeviceError, ModifyQp, MrConfig, NicConfig, Notification, QpConfig, QpStatus,
    RingConfig, SrqConfig,
};
use crate::fabric::Waker;
use crate::fault::FaultPlan;
pub use crate::hardware::Hardware;
use crate::roce::Event;

/// What is particular to a family: decodes doorbells and WQEs into work, and encodes completions into CQEs.
///
/// Every method gets the NIC's common part to read rings, post work and write CQEs.
pub trait FrontEnd: Send + 'static {
    /// A completion queue is being created. The front end may refuse it.
    ///
    /// # Errors
    /// What the family cannot do.
    fn create_cq(&mut self, hardware: &mut Hardware, cq: CqId, config: &CqConfig) -> Result<(), DeviceError>;

    /// The host gives a completion queue a new ring. CQEs go to the old one until the front end switches with
    /// [`Hardware::switch_cq`].
    ///
    /// # Errors
    /// What the family cannot do.
    fn resize_cq(&mut self, hardware: &mut Hardware, cq: CqId, ring: &RingConfig) -> Result<(), DeviceError>;

    /// A completion queue is gone.
    fn destroy_cq(&mut self, hardware: &mut Hardware, cq: CqId);

    /// A shared receive queue is being created.
    ///
    /// # Errors
    /// What the family cannot do.
    fn create_srq(
        &mut self,
        hardware: &mut Hardware,
        srq: SrqId,
        config: &SrqConfig,
    ) -> Result<(), DeviceError>;

    /// A shared receive queue is gone.
    fn destroy_srq(&mut self, hardware: &mut Hardware, srq: SrqId);

    /// A queue pair is being created.
    ///
    /// # Errors
    /// What the family cannot do.
    fn create_qp(&mut self, hardware: &mut Hardware, qp: QpId, config: &QpConfig) -> Result<(), DeviceError>;

    /// A queue pair has changed. On the way to RESET its indices start anew.
    fn modify_qp(
        &mut self,
        hardware: &mut Hardware,
        qp: QpId,
        from: QpState,
        to: QpState,
        attributes: &ModifyQp,
    );

    /// A queue pair is gone.
    fn destroy_qp(&mut self, hardware: &mut Hardware, qp: QpId);

    /// The host has stored `value` to register `register` of doorbell page `page`.
    fn doorbell(&mut self, hardware: &mut Hardware, page: u32, register: usize, value: u64);

    /// The host has stored `bytes` at `offset` of device memory; they are there already.
    fn device_store(&mut self, hardware: &mut Hardware, offset: u64, bytes: &[u8]) {
        let _ = (hardware, offset, bytes);
    }

    /// All queues are gone, as after power-on.
    fn reset(&mut self);

    /// Something happened. Completions become CQEs here, and the host is notified of what else it must know.
    fn event(&mut self, hardware: &mut Hardware, event: &Event);

    /// Does some of the work that doorbells left behind; `true` if there was any.
    fn work(&mut self, hardware: &mut Hardware) -> bool {
        let _ = hardware;
        false
    }
}

/// A NIC with the front end of one family.
#[derive(Debug)]
pub struct Nic<F> {
    front_end: F,
    hardware: Hardware,
    waker: Waker,
}

impl<F: FrontEnd> Nic<F> {
    /// A NIC without objects.
    pub fn new(front_end: F, config: NicConfig, bus: Arc<dyn Bus>, clock: Clock) -> Self {
        Self { front_end, hardware: Hardware::new(config, bus, clock), waker: Waker::default() }
    }

    /// The front end, to look at in tests.
    pub fn front_end(&mut self) -> &mut F {
        &mut self.front_end
    }

    /// The common part, to look at in tests.
    pub fn hardware(&mut self) -> &mut Hardware {
        &mut self.hardware
    }

    /// Sets the faults of doorbells and CQEs.
    pub fn set_faults(&mut self, plan: FaultPlan, seed: u64) {
        self.hardware.set_faults(plan, seed);
    }

    /// What the host was not told yet, oldest first.
    pub fn take_notification(&mut self) -> Option<Notification> {
        self.hardware.take_notification()
    }

    /// All is as after power-on: no objects, no frames, no GIDs but those it was built with.
    pub fn reset(&mut self) {
        self.hardware.reset();
        self.front_end.reset();
    }

    /// Index of `gid` in the GID table, to which it is added if it is not there; `None` if the table is full.
    pub fn learn_gid(&mut self, gid: Gid) -> Option<u8> {
        self.hardware.engine.learn_gid(gid)
    }

    /// Creates a protection domain.
    pub fn create_pd(&mut self) -> Result<PdId, DeviceError> {
        self.hardware.engine.create_pd()
    }

    /// Destroys a protection domain.
    pub fn destroy_pd(&mut self, pd: PdId) -> Result<(), DeviceError> {
        self.hardware.engine.destroy_pd(pd)
    }

    /// Creates a memory region or window, and returns its key.
    pub fn create_mr(&mut self, config: &MrConfig) -> Result<u32, DeviceError> {
        self.hardware.engine.create_mr(config)
    }

    /// Destroys a memory region or window.
    pub fn destroy_mr(&mut self, key: u32) -> Result<(), DeviceError> {
        self.hardware.engine.destroy_mr(key)
    }

    /// Creates an address handle.
    pub fn create_ah(&mut self, config: &AhConfig) -> Result<AhId, DeviceError> {
        self.hardware.engine.create_ah(config)
    }

    /// Destroys an address handle.
    pub fn destroy_ah(&mut self, ah: AhId) -> Result<(), DeviceError> {
        self.hardware.engine.destroy_ah(ah)
    }

    /// Sets entry `index` of the GID table; an unspecified GID clears it.
    pub fn set_gid(&mut self, index: usize, gid: Gid) {
        self.hardware.engine.set_gid(index, gid);
    }

    /// Creates a completion queue.
    pub fn create_cq(&mut self, config: &CqConfig) -> Result<CqId, DeviceError> {
        let cq = self.hardware.engine.create_cq(config.id)?;
        self.hardware.add_cq(cq, config);
        let made = self.front_end.create_cq(&mut self.hardware, cq, config);
        if made.is_err() {
            self.forget_cq(cq);
        }
        made.map(|()| cq)
    }

    /// Gives a completion queue a new ring.
    pub fn resize_cq(&mut self, cq: CqId, ring: &RingConfig) -> Result<(), DeviceError> {
        self.front_end.resize_cq(&mut self.hardware, cq, ring)
    }

    /// Destroys a completion queue.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<(), DeviceError> {
        self.hardware.engine.destroy_cq(cq)?;
        self.front_end.destroy_cq(&mut self.hardware, cq);
        self.hardware.remove_cq(cq);
        Ok(())
    }

    fn forget_cq(&mut self, cq: CqId) {
        let gone = self.hardware.engine.destroy_cq(cq);
        debug_assert!(gone.is_ok(), "nothing can refer to it yet");
        self.hardware.remove_cq(cq);
    }

    /// Creates a shared receive queue.
    pub fn create_srq(&mut self, config: &SrqConfig) -> Result<SrqId, DeviceError> {
        let srq = self.hardware.engine.create_srq(config)?;
        let made = self.front_end.create_srq(&mut self.hardware, srq, config);
        if made.is_err() {
            self.hardware.engine.destroy_srq(srq)?;
        }
        made.map(|()| srq)
    }

    /// Destroys a shared receive queue.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<(), DeviceError> {
        self.hardware.engine.destroy_srq(srq)?;
        self.front_end.destroy_srq(&mut self.hardware, srq);
        Ok(())
    }

    /// Creates a queue pair.
    pub fn create_qp(&mut self, config: &QpConfig) -> Result<QpId, DeviceError> {
        let qp = self.hardware.engine.create_qp(config)?;
        let made = self.front_end.create_qp(&mut self.hardware, qp, config);
        if made.is_err() {
            self.hardware.engine.destroy_qp(qp)?;
        }
        made.map(|()| qp)
    }

    /// Changes attributes of a queue pair. When it returns from a change to RESET, no CQE of it will be written any
    /// more.
    pub fn modify_qp(&mut self, qp: QpId, attributes: &ModifyQp) -> Result<(), DeviceError> {
        let (from, to) = self.hardware.engine.modify_qp(qp, attributes)?;
        self.front_end.modify_qp(&mut self.hardware, qp, from, to, attributes);
        self.host_done();
        self.settle();
        Ok(())
    }

    /// What a queue pair is like now.
    pub fn query_qp(&self, qp: QpId) -> Result<QpStatus, DeviceError> {
        self.hardware.engine.query_qp(qp)
    }

    /// Destroys a queue pair. When it returns, no CQE of it will be written any more.
    pub fn destroy_qp(&mut self, qp: QpId) -> Result<(), DeviceError> {
        self.hardware.engine.destroy_qp(qp)?;
        self.front_end.destroy_qp(&mut self.hardware, qp);
        self.host_done();
        self.settle();
        Ok(())
    }

    /// A store of the host to a doorbell page; `false` if a fault lost it.
    pub fn doorbell(&mut self, page: u32, register: usize, value: u64) -> bool {
        if self.hardware.drops_doorbell() {
            return false;
        }
        self.front_end.doorbell(&mut self.hardware, page, register, value);
        self.host_done();
        true
    }

    /// A store of the host to device memory; what is outside is lost.
    pub fn device_store(&mut self, offset: u64, bytes: &[u8]) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(bytes.len());
        let Some(to) = self.hardware.device_memory().get_mut(start..end) else { return };
        to.copy_from_slice(bytes);
        self.front_end.device_store(&mut self.hardware, offset, bytes);
        self.host_done();
    }

    /// Takes a frame from the wire.
    pub fn receive(&mut self, frame: &[u8]) {
        self.hardware.receive(frame);
        self.events();
    }

    /// Does some work: timers, what doorbells left behind, packets to send, CQEs that are due. `false` if there was
    /// none.
    pub fn step(&mut self) -> bool {
        let mut any = self.hardware.step();
        any |= self.front_end.work(&mut self.hardware);
        self.events();
        any
    }

    /// There is a frame for the wire.
    pub fn has_frame(&self) -> bool {
        self.hardware.has_frame()
    }

    /// Says whether the host wants the frames that are no RoCEv2 packets: they wait for [`Nic::take_host_frame`].
    pub fn want_host_frames(&mut self, wanted: bool) {
        self.hardware.engine.want_host_frames(wanted);
    }

    /// The oldest frame that waits for the host.
    pub fn take_host_frame(&mut self) -> Option<Vec<u8>> {
        self.hardware.engine.take_host_frame()
    }

    /// Puts a frame of the host's own on the wire.
    pub fn send_host_frame(&mut self, frame: Vec<u8>) {
        self.hardware.engine.send_host_frame(frame);
        self.waker.wake();
    }

    /// The next frame for the wire.
    pub fn take_frame(&mut self) -> Option<Vec<u8>> {
        self.hardware.take_frame()
    }

    /// When time alone gives the NIC something to do: the present, if there is work now.
    pub fn next_timer(&self) -> Option<u64> {
        self.hardware.next_timer()
    }

    pub(crate) fn set_waker(&mut self, waker: Waker) {
        self.waker = waker;
    }

    /// Ends what the host did: hands out events, and wakes the NIC's thread for the work that is left.
    fn host_done(&mut self) {
        self.events();
        self.waker.wake();
    }

    /// Hands the engine's events to the front end.
    fn events(&mut self) {
        while let Some(event) = self.hardware.engine.take_event() {
            self.front_end.event(&mut self.hardware, &event);
        }
    }

    /// Writes all delayed CQEs.
    fn settle(&mut self) {
        self.hardware.write_late(u64::MAX);
    }
}
