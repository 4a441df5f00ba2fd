//! Objects of a context, by handle.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;

use directverbs::verbs::{AhId, CqId, PdId, QpId, QpState, QpType, SrqId};

use crate::Errno;
use crate::abi::{QpCap, QueryQpResp};
use crate::pages::Region;
use crate::schema::ObjectKind;
use crate::user::Pin;

/// Asynchronous events of an object.
#[derive(Debug, Default)]
pub struct Events {
    /// What the process knows the object by.
    pub user_handle: u64,
    /// File that they go to.
    pub file: Option<RawFd>,
    /// How many were read.
    pub reported: u32,
}

/// Completion queue.
#[derive(Debug)]
pub struct Cq {
    /// The NIC's numbers, of ionic one a pipeline.
    pub ids: [Option<CqId>; 2],
    /// Entries granted.
    pub cqe: u32,
    /// File that completion events go to.
    pub channel: Option<RawFd>,
    /// Completion events read.
    pub completions: u32,
    /// Asynchronous events.
    pub events: Events,
    /// Ring memory; after a resize the new one is last.
    pub pins: Vec<Pin>,
    /// Toggle page.
    pub toggle: Option<Arc<Region>>,
}

/// Queue pair.
#[derive(Debug)]
pub struct Qp {
    /// The NIC's number.
    pub id: QpId,
    /// Kind.
    pub qp_type: QpType,
    /// State.
    pub state: QpState,
    /// What a query answers.
    pub attributes: QueryQpResp,
    /// Asynchronous events.
    pub events: Events,
    /// Ring memory.
    pub pins: Vec<Pin>,
    /// Controller memory: where it begins, and the cookie of its page.
    pub cmb: Option<(u64, u64)>,
}

/// Shared receive queue.
#[derive(Debug)]
pub struct Srq {
    /// The NIC's number.
    pub id: SrqId,
    /// Requests granted.
    pub max_wr: u32,
    /// SGEs granted.
    pub max_sge: u32,
    /// Limit that is armed.
    pub limit: u32,
    /// Entries of the ring.
    pub entries: u32,
    /// Asynchronous events.
    pub events: Events,
    /// Ring memory.
    pub pin: Pin,
    /// Toggle page.
    pub toggle: Option<Arc<Region>>,
}

/// An object.
#[derive(Debug)]
pub enum Object {
    /// Protection domain.
    Pd(PdId),
    /// Completion queue.
    Cq(Cq),
    /// Queue pair.
    Qp(Box<Qp>),
    /// Shared receive queue.
    Srq(Srq),
    /// Address handle.
    Ah(AhId),
    /// Memory region: its key, and its memory.
    Mr(u32, Pin),
    /// Memory window: its key.
    Mw(u32),
    /// Page that was allocated for the context, with its cookie.
    Page(u64),
    /// Toggle page, with its cookie.
    Toggle(u64),
    /// Doorbell region: cookie, and number of the doorbell page.
    Dbr(u64, u32),
}

impl Object {
    /// What it is.
    pub const fn kind(&self) -> ObjectKind {
        match self {
            Self::Pd(_) => ObjectKind::Pd,
            Self::Cq(_) => ObjectKind::Cq,
            Self::Qp(_) => ObjectKind::Qp,
            Self::Srq(_) => ObjectKind::Srq,
            Self::Ah(_) => ObjectKind::Ah,
            Self::Mr(..) => ObjectKind::Mr,
            Self::Mw(_) => ObjectKind::Mw,
            Self::Page(_) => ObjectKind::Page,
            Self::Toggle(_) => ObjectKind::Toggle,
            Self::Dbr(..) => ObjectKind::Dbr,
        }
    }

    /// Its asynchronous events, if it can have any.
    pub fn events(&mut self) -> Option<&mut Events> {
        match self {
            Self::Cq(cq) => Some(&mut cq.events),
            Self::Qp(qp) => Some(&mut qp.events),
            Self::Srq(srq) => Some(&mut srq.events),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Entry {
    object: Object,
    uses: Vec<u32>,
    users: u32,
}

/// Objects of a context. Handles are the lowest free ones, from 0.
#[derive(Debug, Default)]
pub struct Objects {
    entries: BTreeMap<u32, Entry>,
}

impl Objects {
    /// Checks that there is such an object.
    ///
    /// # Errors
    /// ENOENT: the handle names nothing. EINVAL: it names something else, or is no handle.
    pub fn check(&self, kind: ObjectKind, handle: u64) -> Result<u32, Errno> {
        let handle = i64::try_from(handle).map_err(|_| Errno::INVAL)?;
        let handle = u32::try_from(handle).map_err(|_| Errno::NOENT)?;
        let found = self.entries.get(&handle).ok_or(Errno::NOENT)?.object.kind();
        if found == kind { Ok(handle) } else { Err(Errno::INVAL) }
    }

    /// Adds an object that uses others, and gives its handle.
    pub fn add(&mut self, object: Object, uses: &[u32]) -> u32 {
        let mut handle = 0;
        for taken in self.entries.keys() {
            if *taken == handle {
                handle += 1;
            }
        }
        for used in uses {
            if let Some(used) = self.entries.get_mut(used) {
                used.users += 1;
            }
        }
        self.entries.insert(handle, Entry { object, uses: uses.to_vec(), users: 0 });
        handle
    }

    /// Takes an object out.
    ///
    /// # Errors
    /// ENOENT: there is none. EBUSY: others use it.
    pub fn remove(&mut self, handle: u32) -> Result<Object, Errno> {
        match self.entries.get(&handle) {
            None => return Err(Errno::NOENT),
            Some(entry) if entry.users != 0 => return Err(Errno::BUSY),
            Some(_) => {}
        }
        let entry = self.entries.remove(&handle).ok_or(Errno::NOENT)?;
        for used in entry.uses {
            if let Some(used) = self.entries.get_mut(&used) {
                used.users = used.users.saturating_sub(1);
            }
        }
        Ok(entry.object)
    }

    /// An object that nobody uses, if there is any.
    pub fn unused(&self) -> Option<u32> {
        self.entries.iter().find(|(_, entry)| entry.users == 0).map(|(handle, _)| *handle)
    }

    /// Whether others use an object.
    pub fn is_used(&self, handle: u32) -> bool {
        self.entries.get(&handle).is_some_and(|entry| entry.users != 0)
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Object)> {
        self.entries.iter().map(|(handle, entry)| (*handle, &entry.object))
    }

    /// Asynchronous events of an object, if it can have any.
    pub fn events(&mut self, handle: u32) -> Option<&mut Events> {
        self.get_mut(handle).ok()?.events()
    }

    fn get(&self, handle: u32) -> Result<&Object, Errno> {
        self.entries.get(&handle).map(|entry| &entry.object).ok_or(Errno::NOENT)
    }

    fn get_mut(&mut self, handle: u32) -> Result<&mut Object, Errno> {
        self.entries.get_mut(&handle).map(|entry| &mut entry.object).ok_or(Errno::NOENT)
    }

    /// A protection domain.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn pd(&self, handle: u32) -> Result<PdId, Errno> {
        match self.get(handle)? {
            Object::Pd(id) => Ok(*id),
            _ => Err(Errno::INVAL),
        }
    }

    /// A completion queue.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn cq(&self, handle: u32) -> Result<&Cq, Errno> {
        match self.get(handle)? {
            Object::Cq(cq) => Ok(cq),
            _ => Err(Errno::INVAL),
        }
    }

    /// A completion queue, to change it.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn cq_mut(&mut self, handle: u32) -> Result<&mut Cq, Errno> {
        match self.get_mut(handle)? {
            Object::Cq(cq) => Ok(cq),
            _ => Err(Errno::INVAL),
        }
    }

    /// A shared receive queue.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn srq(&self, handle: u32) -> Result<&Srq, Errno> {
        match self.get(handle)? {
            Object::Srq(srq) => Ok(srq),
            _ => Err(Errno::INVAL),
        }
    }

    /// A shared receive queue, to change it.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn srq_mut(&mut self, handle: u32) -> Result<&mut Srq, Errno> {
        match self.get_mut(handle)? {
            Object::Srq(srq) => Ok(srq),
            _ => Err(Errno::INVAL),
        }
    }

    /// A queue pair.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn qp(&self, handle: u32) -> Result<&Qp, Errno> {
        match self.get(handle)? {
            Object::Qp(qp) => Ok(qp),
            _ => Err(Errno::INVAL),
        }
    }

    /// A queue pair, to change it.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn qp_mut(&mut self, handle: u32) -> Result<&mut Qp, Errno> {
        match self.get_mut(handle)? {
            Object::Qp(qp) => Ok(qp),
            _ => Err(Errno::INVAL),
        }
    }

    /// Number of the doorbell page of a doorbell region.
    ///
    /// # Errors
    /// As for [`Objects::check`].
    pub fn dbr(&self, handle: u32) -> Result<u32, Errno> {
        match self.get(handle)? {
            Object::Dbr(_, dpi) => Ok(*dpi),
            _ => Err(Errno::INVAL),
        }
    }
}

/// Capabilities in a query's answer.
pub fn set_capabilities(attributes: &mut QueryQpResp, cap: &QpCap) {
    attributes.max_send_wr = cap.max_send_wr;
    attributes.max_recv_wr = cap.max_recv_wr;
    attributes.max_send_sge = cap.max_send_sge;
    attributes.max_recv_sge = cap.max_recv_sge;
    attributes.max_inline_data = cap.max_inline_data;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_lowest_handle_is_given_again() {
        let mut objects = Objects::default();
        let pd = objects.add(Object::Pd(PdId::truncated(1)), &[]);
        let mw = objects.add(Object::Mw(2), &[pd]);
        assert_eq!((pd, mw), (0, 1));
        assert_eq!(objects.check(ObjectKind::Pd, 1), Err(Errno::INVAL));
        assert_eq!(objects.check(ObjectKind::Pd, 7), Err(Errno::NOENT));
        assert_eq!(objects.check(ObjectKind::Pd, u64::MAX), Err(Errno::INVAL));
        assert_eq!(objects.remove(pd).err(), Some(Errno::BUSY));
        assert_eq!(objects.unused(), Some(mw));
        assert!(objects.remove(mw).is_ok() && objects.remove(pd).is_ok());
        assert_eq!(objects.add(Object::Mw(3), &[]), 0);
    }
}
