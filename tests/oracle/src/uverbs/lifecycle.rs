//! Creating, changing and destroying objects, however the command came.

use zerocopy::IntoBytes;

use super::abi;
use super::command::Reply;
use super::config::Model;
use super::device::State;
use super::memory::Page;
use super::objects::{Ah, Cq, Mr, Mw, Pd, Qp, Srq, Udata};
use super::{Errno, bnxt_re, ionic};

pub fn alloc_pd(state: &mut State) -> Result<Reply, Errno> {
    let handle = state.next_handle();
    let driver = match state.config.model {
        Model::BnxtRe(_) => bnxt_re::alloc_pd(state, handle)?,
        Model::Ionic(_) => Vec::new(),
    };
    state.objects.pds.insert(handle, Pd { handle });
    Ok(Reply { core: handle.as_bytes().to_vec(), driver })
}

pub fn create_ah(state: &mut State, asked: &abi::CreateAh) -> Result<Reply, Errno> {
    let ah = Ah { handle: state.next_handle(), pd: asked.pd, id: state.next_ah(), dgid: asked.dgid };
    let driver = match state.config.model {
        Model::BnxtRe(_) => {
            bnxt_re::create_ah(state, &ah);
            Vec::new()
        }
        Model::Ionic(_) => ionic::create_ah(&ah),
    };
    let core = ah.handle.as_bytes().to_vec();
    state.objects.ahs.insert(ah.handle, ah);
    Ok(Reply { core, driver })
}

pub fn reg_mr(state: &mut State, asked: &abi::RegMr) -> Result<Reply, Errno> {
    let mr = Mr {
        handle: state.next_handle(),
        pd: asked.pd,
        addr: asked.start,
        length: asked.length,
        iova: asked.hca_va,
        access: asked.access,
        key: state.next_mr(),
    };
    let core = [mr.handle, mr.key, mr.key].as_bytes().to_vec();
    state.objects.mrs.insert(mr.handle, mr);
    Ok(Reply { core, driver: Vec::new() })
}

pub fn alloc_mw(state: &mut State, asked: &abi::AllocMw) -> Result<Reply, Errno> {
    let mw = Mw { handle: state.next_handle(), pd: asked.pd, mw_type: asked.mw_type, key: state.next_mw() };
    let core = [mw.handle, mw.key].as_bytes().to_vec();
    state.objects.mws.insert(mw.handle, mw);
    Ok(Reply { core, driver: Vec::new() })
}

/// Creates a completion queue: its handle, and what the driver answers.
pub fn create_cq(state: &mut State, mut cq: Cq) -> Result<(u32, Vec<u8>), Errno> {
    let driver = match state.config.model.clone() {
        Model::BnxtRe(config) => bnxt_re::create_cq(state, &config, &mut cq)?,
        Model::Ionic(config) => ionic::create_cq(state, &config, &mut cq)?,
    };
    cq.handle = state.next_handle();
    let handle = cq.handle;
    state.objects.cqs.insert(handle, cq);
    Ok((handle, driver))
}

pub fn destroy_cq(state: &mut State, handle: u32) -> Result<Reply, Errno> {
    if state.objects.qps.values().any(|qp| qp.send_cq == handle || qp.recv_cq == handle) {
        return Err(libc::EBUSY);
    }
    let cq = state.objects.cqs.remove(&handle).ok_or(libc::EINVAL)?;
    Ok(Reply::core([0, cq.events].as_bytes()))
}

/// Creates a queue pair.
pub fn make_qp(state: &mut State, mut qp: Qp) -> Result<Qp, Errno> {
    let objects = &state.objects;
    let known = objects.pds.contains_key(&qp.pd)
        && objects.cqs.contains_key(&qp.send_cq)
        && objects.cqs.contains_key(&qp.recv_cq)
        && qp.srq.is_none_or(|srq| objects.srqs.contains_key(&srq));
    if !known {
        return Err(libc::EINVAL);
    }
    qp.id = state.next_qp();
    qp.reply = Udata(match state.config.model.clone() {
        Model::BnxtRe(_) => bnxt_re::create_qp(&qp),
        Model::Ionic(config) => ionic::create_qp(state, &config, &qp)?,
    });
    qp.handle = state.next_handle();
    state.objects.qps.insert(qp.handle, qp.clone());
    Ok(qp)
}

/// Bits of `attr_mask`.
mod mask {
    pub const STATE: u32 = 1;
    pub const PATH_MTU: u32 = 1 << 8;
    pub const SQ_PSN: u32 = 1 << 16;
}

pub fn modify_qp(state: &mut State, asked: &abi::ModifyQp) -> Result<Reply, Errno> {
    let qp = state.objects.qps.get_mut(&asked.qp).ok_or(libc::EINVAL)?;
    qp.modified.push(asked.attr_mask);
    if asked.attr_mask & mask::STATE != 0 {
        qp.state = asked.qp_state.into();
    }
    if asked.attr_mask & mask::PATH_MTU != 0 {
        qp.path_mtu = asked.path_mtu.into();
    }
    if asked.attr_mask & mask::SQ_PSN != 0 {
        qp.sq_psn = asked.sq_psn;
    }
    Ok(Reply::default())
}

pub fn destroy_qp(state: &mut State, handle: u32) -> Result<Reply, Errno> {
    let qp = state.objects.qps.remove(&handle).ok_or(libc::EINVAL)?;
    state.remove_page(Page::SendCmb(qp.id));
    state.remove_page(Page::RecvCmb(qp.id));
    Ok(Reply::core(qp.events.as_bytes()))
}

/// Creates a shared receive queue: it, and what the driver answers.
pub fn create_srq(state: &mut State, mut srq: Srq) -> Result<(Srq, Vec<u8>), Errno> {
    // The kernel driver of ionic has none.
    let Model::BnxtRe(config) = state.config.model.clone() else { return Err(libc::EOPNOTSUPP) };
    srq.id = state.next_srq();
    srq.handle = state.next_handle();
    let driver = bnxt_re::create_srq(&config, &srq);
    state.objects.srqs.insert(srq.handle, srq.clone());
    Ok((srq, driver))
}

pub fn destroy_srq(state: &mut State, handle: u32) -> Result<Reply, Errno> {
    if state.objects.qps.values().any(|qp| qp.srq == Some(handle)) {
        return Err(libc::EBUSY);
    }
    let srq = state.objects.srqs.remove(&handle).ok_or(libc::EINVAL)?;
    Ok(Reply::core(srq.events.as_bytes()))
}

pub fn dealloc_pd(state: &mut State, handle: u32) -> Result<Reply, Errno> {
    let busy = state.objects.qps.values().any(|qp| qp.pd == handle)
        || state.objects.mrs.values().any(|mr| mr.pd == handle)
        || state.objects.ahs.values().any(|ah| ah.pd == handle)
        || state.objects.srqs.values().any(|srq| srq.pd == handle)
        || state.objects.mws.values().any(|mw| mw.pd == handle);
    if busy {
        return Err(libc::EBUSY);
    }
    state.objects.pds.remove(&handle).map(|_| Reply::default()).ok_or(libc::EINVAL)
}

pub fn destroy_ah(state: &mut State, handle: u32) -> Result<Reply, Errno> {
    state.objects.ahs.remove(&handle).map(|_| Reply::default()).ok_or(libc::EINVAL)
}

pub fn dereg_mr(state: &mut State, handle: u32) -> Result<Reply, Errno> {
    state.objects.mrs.remove(&handle).map(|_| Reply::default()).ok_or(libc::EINVAL)
}

pub fn dealloc_mw(state: &mut State, handle: u32) -> Result<Reply, Errno> {
    state.objects.mws.remove(&handle).map(|_| Reply::default()).ok_or(libc::EINVAL)
}
