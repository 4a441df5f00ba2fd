//! What Ethernet needs: accepted and remembered, as no frame ever passes.

use std::collections::BTreeSet;

use directverbs::bnxt_re::hwrm::error::HwrmStatus;
use directverbs::bnxt_re::hwrm::req_type::ReqType;

use super::function::BnxtFunction;
use super::hwrm::{Answer, done, with};

/// Numbers of Ethernet's objects.
#[derive(Debug, Default)]
pub(super) struct Ethernet {
    vnics: BTreeSet<u32>,
    filters: BTreeSet<u32>,
    spreads: BTreeSet<u32>,
}

fn take(numbers: &mut BTreeSet<u32>, reserved: u16) -> Result<u32, HwrmStatus> {
    let free = (0..u32::from(reserved)).find(|number| !numbers.contains(number));
    let number = free.ok_or(HwrmStatus::RESOURCE_ALLOC_ERROR)?;
    numbers.insert(number);
    Ok(number)
}

fn give(numbers: &mut BTreeSet<u32>, number: u32) -> Answer {
    if numbers.remove(&number) { done() } else { Err(HwrmStatus::INVALID_PARAMS) }
}

/// Filters of a function.
const FILTERS: u16 = 128;

impl BnxtFunction {
    /// Requests of Ethernet, and what is not supported.
    pub(super) fn ethernet(&mut self, req_type: ReqType, request: &[u8]) -> Answer {
        let word = |at: usize| {
            let bytes = request.get(at..).and_then(|rest| rest.first_chunk::<4>());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let reserved = self.state.hwrm.reserved;
        let ethernet = &mut self.state.ethernet;
        match req_type {
            ReqType::VNIC_ALLOC => {
                let id = take(&mut ethernet.vnics, reserved.num_vnics)?;
                Ok(with(8, &[(0, &id.to_le_bytes())]))
            }
            ReqType::VNIC_FREE => give(&mut ethernet.vnics, word(16)),
            ReqType::VNIC_RSS_COS_LB_CTX_ALLOC => {
                let id = take(&mut ethernet.spreads, reserved.num_rsscos_ctxs)?;
                Ok(with(8, &[(0, &(id as u16).to_le_bytes())]))
            }
            ReqType::VNIC_RSS_COS_LB_CTX_FREE => give(&mut ethernet.spreads, word(16) & 0xffff),
            ReqType::CFA_L2_FILTER_ALLOC => {
                let id = take(&mut ethernet.filters, FILTERS)?;
                Ok(with(16, &[(0, &u64::from(id).to_le_bytes())]))
            }
            ReqType::CFA_L2_FILTER_FREE => give(&mut ethernet.filters, word(16)),
            ReqType::VNIC_QCAPS | ReqType::VNIC_RSS_QCFG => Ok(vec![0; 16]),
            ReqType::VNIC_CFG
            | ReqType::VNIC_RSS_CFG
            | ReqType::VNIC_PLCMODES_CFG
            | ReqType::CFA_L2_SET_RX_MASK
            | ReqType::RING_CMPL_RING_CFG_AGGINT_PARAMS => done(),
            _ => Err(HwrmStatus::CMD_NOT_SUPPORTED),
        }
    }
}
