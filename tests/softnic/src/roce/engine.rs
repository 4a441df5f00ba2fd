use std::collections::VecDeque;

use directverbs::verbs::{AhId, CqId, PdId, QpId, QpState, SrqId, WcStatus};

use super::{Event, PsnRange, RecvWork, SendWork, Side};
use crate::bus::Bus;
use crate::device::{AhConfig, DeviceError, ModifyQp, MrConfig, NicConfig, QpConfig, QpStatus, SrqConfig};

/// The engine of one NIC.
#[derive(Debug)]
pub struct Engine {
    config: NicConfig,
    events: VecDeque<Event>,
}

impl Engine {
    pub(crate) fn new(config: &NicConfig) -> Self {
        Self { config: config.clone(), events: VecDeque::new() }
    }

    pub(crate) fn create_pd(&mut self) -> Result<PdId, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn destroy_pd(&mut self, pd: PdId) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn create_mr(&mut self, config: &MrConfig) -> Result<u32, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn destroy_mr(&mut self, key: u32) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn create_ah(&mut self, config: &AhConfig) -> Result<AhId, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn destroy_ah(&mut self, ah: AhId) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn create_cq(&mut self, id: Option<CqId>) -> Result<CqId, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn destroy_cq(&mut self, cq: CqId) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn create_srq(&mut self, config: &SrqConfig) -> Result<SrqId, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn destroy_srq(&mut self, srq: SrqId) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn create_qp(&mut self, config: &QpConfig) -> Result<QpId, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn modify_qp(
        &mut self,
        qp: QpId,
        attributes: &ModifyQp,
    ) -> Result<(QpState, QpState), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn query_qp(&self, qp: QpId) -> Result<QpStatus, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn destroy_qp(&mut self, qp: QpId) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn post_send(&mut self, qp: QpId, work: SendWork) -> Result<PsnRange, DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn post_recv(&mut self, qp: QpId, work: RecvWork) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn post_srq(&mut self, srq: SrqId, work: RecvWork) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn arm_srq(&mut self, srq: SrqId, limit: u32) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn fail_qp(&mut self, qp: QpId, side: Side, status: WcStatus) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("not there yet"))
    }

    pub(crate) fn take_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(crate) fn receive(&mut self, bus: &dyn Bus, now_ns: u64, frame: &[u8]) {}

    pub(crate) fn step(&mut self, bus: &dyn Bus, now_ns: u64) -> bool {
        false
    }

    pub(crate) fn take_frame(&mut self) -> Option<Vec<u8>> {
        None
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        None
    }
}
