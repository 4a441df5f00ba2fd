//! Address handles.

use directverbs::verbs::AddressVector;

use super::handle::{Handle, within};
use super::protection_domain::ProtectionDomain;
use crate::error::Result;
use crate::uverbs::Uhw;
use crate::uverbs::abi::command::{AhAttributes, CREATE_AH, CreateAh, HandleReply};
use crate::uverbs::abi::methods::destroy;
use crate::uverbs::abi::queue_pair::QpDestination;

/// An address handle: where datagrams go. The kernel looks up the Ethernet address by itself.
#[derive(Debug)]
pub struct AddressHandle {
    handle: Handle,
    _pd: ProtectionDomain,
}

impl AddressHandle {
    /// Creates one for packets that leave by `port`. `uhw` is the driver's part.
    ///
    /// # Errors
    /// There is no such port, a field does not fit, or the kernel refuses: our GID's index is empty, or the peer cannot
    /// be reached.
    pub fn create(pd: &ProtectionDomain, to: &AddressVector, port: u8, uhw: Uhw<'_>) -> Result<Self> {
        let shared = pd.handle.context();
        let path = destination("address handle", to, port, shared.limits().phys_port_cnt)?;
        let attr = AhAttributes {
            dgid: path.dgid,
            flow_label: path.flow_label,
            sgid_index: path.sgid_index,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            sl: path.sl,
            is_global: path.is_global,
            port_num: path.port_num,
            ..AhAttributes::ZERO
        };
        let core = CreateAh { pd_handle: pd.handle().into(), attr, ..CreateAh::ZERO };
        let mut reply = HandleReply::ZERO;
        shared.file().ask(&CREATE_AH, &core, &mut reply, uhw)?;
        Ok(Self { handle: Handle::new(shared, reply.handle.get(), &destroy::AH), _pd: pd.clone() })
    }

    /// The kernel's handle.
    pub fn handle(&self) -> u32 {
        self.handle.number()
    }

    /// Destroys it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn destroy(mut self) -> Result<()> {
        self.handle.destroy()
    }
}

/// A path as the kernel is told it.
pub(super) fn destination(
    object: &'static str,
    to: &AddressVector,
    port: u8,
    ports: u8,
) -> Result<QpDestination> {
    within(object, "port", port.into(), 1, ports.into())?;
    within(object, "flow label", to.flow_label.into(), 0, 0xf_ffff)?;
    Ok(QpDestination {
        dgid: to.dgid.0,
        flow_label: to.flow_label.into(),
        sgid_index: to.sgid_index,
        hop_limit: to.hop_limit,
        traffic_class: to.traffic_class,
        // The VLAN itself comes with the GID's interface.
        sl: to.vlan.map_or(0, |tci| (tci >> 13) as u8),
        is_global: 1,
        port_num: port,
        ..QpDestination::ZERO
    })
}
