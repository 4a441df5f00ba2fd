//! Protection domains: where the queues of their queue pairs shall be.

use directverbs::ionic::caps::ExpressQueues;
use directverbs::ionic::cmb::CmbPreference;
use directverbs::ionic::plan::Placement;
use directverbs::verbs::{AddressVector, AhId};

use super::abi::AhReply;
use super::context::Context;
use crate::error::{Error, Result};
use crate::objects;
use crate::uverbs::Uhw;

const OBJECT: &str = "protection domain";

/// A protection domain. Clones share the kernel's object; each has settings of its own.
#[derive(Clone, Debug)]
pub struct ProtectionDomain {
    generic: objects::ProtectionDomain,
    context: Context,
    placement: Placement,
    udma_mask: u8,
}

impl ProtectionDomain {
    /// Creates one. Queues are in host memory and on any pipeline until something else is set.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn alloc(context: &Context) -> Result<Self> {
        Ok(Self::new(context, objects::ProtectionDomain::alloc(context.generic(), Uhw::none())?))
    }

    /// Takes one that another library has created in an imported context, by its handle. It is never destroyed here. What
    /// was set there is not known here.
    pub fn import(context: &Context, handle: u32) -> Self {
        Self::new(context, objects::ProtectionDomain::import(context.generic(), handle))
    }

    fn new(context: &Context, generic: objects::ProtectionDomain) -> Self {
        let udma_mask = context.udma_mask();
        Self { generic, context: context.clone(), placement: Placement::default(), udma_mask }
    }

    /// What every driver has.
    pub fn generic(&self) -> &objects::ProtectionDomain {
        &self.generic
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Destroys it.
    ///
    /// # Errors
    /// Something refers to it: then it is destroyed with the last of these. Or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        self.generic.destroy()
    }

    /// Where queues shall be.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Where send queues created from now on shall be. Express doorbells that the device does not have are left out
    /// unless they are required.
    ///
    /// # Errors
    /// Express doorbells are required, and the device has none for send queues.
    pub fn set_send_placement(&mut self, wish: CmbPreference) -> Result<()> {
        self.placement.sq = self.supported(wish, ExpressQueues::SEND)?;
        Ok(())
    }

    /// The same for receive queues.
    ///
    /// # Errors
    /// Express doorbells are required, and the device has none for receive queues.
    pub fn set_recv_placement(&mut self, wish: CmbPreference) -> Result<()> {
        self.placement.rq = self.supported(wish, ExpressQueues::RECV)?;
        Ok(())
    }

    fn supported(&self, wish: CmbPreference, queues: ExpressQueues) -> Result<CmbPreference> {
        let express = self.context.caps().express_queues.contains(queues);
        wish.supported(express).map_err(|error| Error::Plan { object: OBJECT, error })
    }

    /// Pipelines that queue pairs may be put on.
    pub fn udma_mask(&self) -> u8 {
        self.udma_mask
    }

    /// Pipelines that queue pairs created from now on may be put on.
    ///
    /// # Errors
    /// A pipeline that there is not, or none at all.
    pub fn set_udma_mask(&mut self, mask: u8) -> Result<()> {
        check_mask(&self.context, OBJECT, mask)?;
        self.udma_mask = mask;
        Ok(())
    }

    /// Creates an address handle, and tells its number on the device.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn create_ah(&self, to: &AddressVector, port: u8) -> Result<(objects::AddressHandle, AhId)> {
        let mut reply = AhReply::ZERO;
        let handle = objects::AddressHandle::create(&self.generic, to, port, Uhw::reply(&mut reply))?;
        let id = AhId::new(reply.ahid.get()).ok_or(Error::Reply {
            object: "address handle",
            method: "CREATE_AH",
            what: "a number of more than 24 bits",
        })?;
        Ok((handle, id))
    }
}

/// Refuses a mask of pipelines that there are not.
pub(super) fn check_mask(context: &Context, object: &'static str, mask: u8) -> Result<()> {
    let what = match mask {
        0 => "names none",
        _ if mask & !context.udma_mask() != 0 => "names one that the device does not have",
        _ => return Ok(()),
    };
    Err(Error::Value { object, attribute: "pipeline mask", what })
}
