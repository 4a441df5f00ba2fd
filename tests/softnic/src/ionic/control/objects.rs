//! The commands of the RDMA admin queue, in terms of the device API.

use std::collections::HashMap;
use std::ops::Range;

use directverbs::ionic::admin::*;
use directverbs::ionic::devcmd::{CmbKind, Status};
use directverbs::ionic::wqe::MrFlags;
use directverbs::verbs::{
    AddressVector, AhId, CqId, PdId, Psn, QpAttributes, QpCapabilities, QpId, QpState, QpType,
};
use zerocopy::IntoBytes;

use super::function::IonicFunction;
use super::rdma::Rdma;
use super::refusal::Refusal;
use super::{DOORBELL_PAGES, Wrong};
use crate::device::{AhConfig, CqConfig, Memory, MrConfig, MrKind, QpConfig, RingConfig};
use crate::ionic::{PIPELINE_SHIFT, options};
use crate::nic::Nic;

/// No interrupt: event queues have them, completion queues do not.
const NO_VECTOR: u16 = u16::MAX;
/// Most entries of a ring, base-two logarithm.
const RING_LOG2_MAX: u8 = 16;

/// A ring of a completion queue.
#[derive(Debug)]
pub(super) struct Cq {
    pub eq: u32,
    pub page: u32,
}

/// A queue pair, and what reading it tells.
#[derive(Debug)]
pub(super) struct Qp {
    pub page: u32,
    qp_type: QpType,
    known: QpAttributes,
    /// Depths as the host gave them.
    depths: [u8; 2],
    headers: Vec<u8>,
    /// Where in controller memory its queues are.
    places: Vec<Range<u64>>,
}

/// Protection domains: the host gives numbers, and never tells that one is gone.
#[derive(Debug, Default)]
pub(super) struct Pds(HashMap<u32, PdId>);

impl Pds {
    fn get<F: crate::nic::FrontEnd>(&mut self, nic: &mut Nic<F>, id: u32) -> Result<PdId, Refusal> {
        if let Some(pd) = self.0.get(&id) {
            return Ok(*pd);
        }
        let pd = nic.create_pd()?;
        self.0.insert(id, pd);
        Ok(pd)
    }
}

/// The command in a payload, which has its length.
fn read<C: AdminCommand>(payload: &[u8]) -> Result<C, Refusal> {
    Wrong::unless_equal("payload", payload.len() as u64, size_of::<C>() as u64)?;
    C::read_from_bytes(payload).map_err(|_| Refusal::fate(Status::ERROR))
}

impl IonicFunction {
    /// Carries out a command. With `garbage`, what it writes to memory is all ones.
    pub(super) fn object(&mut self, op: AdminOp, payload: &[u8], garbage: bool) -> Result<(), Refusal> {
        match op {
            AdminOp::NOOP => Ok(Wrong::unless_equal("payload", payload.len() as u64, 0)?),
            AdminOp::CREATE_CQ => self.create_cq(&read(payload)?),
            AdminOp::CREATE_QP => self.create_qp(&read(payload)?),
            AdminOp::CREATE_MR => self.create_mr(&read(payload)?),
            AdminOp::DESTROY_MR => {
                let cmd: DestroyMrCmd = read(payload)?;
                Ok(self.nic.lock().destroy_mr(cmd.mr_id.get())?)
            }
            AdminOp::DESTROY_CQ => {
                let cmd: DestroyCqCmd = read(payload)?;
                self.nic.lock().destroy_cq(CqId::truncated(cmd.cq_id.get()))?;
                self.rdma()?.cqs.remove(&cmd.cq_id.get());
                Ok(())
            }
            AdminOp::MODIFY_QP => self.modify_qp(&read(payload)?),
            AdminOp::QUERY_QP => self.query_qp(&read(payload)?, garbage),
            AdminOp::DESTROY_QP => {
                let cmd: DestroyQpCmd = read(payload)?;
                self.nic.lock().destroy_qp(QpId::truncated(cmd.qp_id.get()))?;
                self.rdma()?.qps.remove(&cmd.qp_id.get());
                Ok(())
            }
            AdminOp::CREATE_AH => self.create_ah(&read(payload)?),
            AdminOp::DESTROY_AH => {
                let cmd: DestroyAhCmd = read(payload)?;
                Ok(self.nic.lock().destroy_ah(AhId::truncated(cmd.ah_id.get()))?)
            }
            // There are such commands: no statistics are promised, and what the others answer is not known.
            AdminOp::STATS_HDRS
            | AdminOp::STATS_VALS
            | AdminOp::QP_STATS_HDRS
            | AdminOp::QP_STATS_VALS
            | AdminOp::QUERY_AH
            | AdminOp::MODIFY_DCQCN => Err(Refusal::fate(Status::ENOSUPP)),
            other => Err(Refusal::blame(Status::EOPCODE, "admin opcode", other.0.into(), 0)),
        }
    }

    fn rdma(&mut self) -> Result<&mut Rdma, Refusal> {
        self.state.rdma.as_mut().ok_or(Refusal::fate(Status::ERDMA))
    }

    /// Memory of `count` pages, as commands name it.
    fn memory(&self, count: u32, addr: u64, shift: u8, first: u64) -> Result<Memory, Refusal> {
        Wrong::if_over("page size", shift.into(), 63)?;
        if count == 1 {
            return Ok(Memory::Host(addr));
        }
        Wrong::if_over("pages", count.into(), self.config.page_table_entries.into())?;
        let sizes: u64 = self.config.lif().page_size_cap.get();
        Wrong::unless_equal("page size", (sizes >> shift & 1) ^ 1, 0)?;
        let mut list = vec![0; count as usize * LIST_ENTRY];
        self.port.bus.read(addr, &mut list)?;
        let pages: Box<[u64]> =
            list.as_chunks::<8>().0.iter().map(|page| u64::from_le_bytes(*page)).collect();
        let mask = (1u64 << shift) - 1;
        match pages.iter().find(|page| **page & mask != 0) {
            Some(page) => Err(Refusal::blame(Status::EINVAL, "alignment of a page", *page, 0)),
            None => Ok(Memory::Pages { shift, first: first & mask, pages }),
        }
    }

    /// The memory of a ring, in which no entry may lie half in a page that follows.
    fn ring(&self, what: [u32; 3], stride_log2: u8, page_log2: u8, addr: u64) -> Result<RingConfig, Refusal> {
        let [depth_log2, count, table] = what;
        Wrong::unless_equal("table index", table.into(), ANY_TABLE.into())?;
        if !(1..=u32::from(RING_LOG2_MAX)).contains(&depth_log2) || stride_log2 > RING_LOG2_MAX {
            return Err(Refusal::blame(
                Status::ERANGE,
                "ring depth",
                depth_log2.into(),
                RING_LOG2_MAX.into(),
            ));
        }
        let bytes = 1u64 << (depth_log2 + u32::from(stride_log2));
        let covered = u64::from(count).checked_shl(page_log2.into()).unwrap_or(u64::MAX);
        if covered < bytes {
            return Err(Refusal::blame(Status::EINVAL, "bytes of a ring's pages", covered, bytes));
        }
        Wrong::unless_equal("alignment of a ring", addr & 0xfff, 0)?;
        let memory = self.memory(count, addr, page_log2, 0)?;
        Ok(RingConfig { memory, entries: 1 << depth_log2, stride: 1 << stride_log2 })
    }

    /// A ring in controller memory: its address is an offset in the BAR. Says whether it has express doorbells, as all queues of
    /// its area have.
    fn place(&mut self, ring: &mut RingConfig, places: &mut Vec<Range<u64>>) -> Result<bool, Refusal> {
        let Memory::Host(offset) = ring.memory else {
            return Err(Refusal::blame(Status::EINVAL, "pages of a ring in controller memory", 2, 1));
        };
        let place = offset..offset.saturating_add(ring.bytes());
        let areas = self.config.areas();
        let area = areas.iter().find(|(_, start, len)| *start <= place.start && place.end <= start + len);
        let (kind, ..) =
            area.ok_or(Refusal::blame(Status::EINVAL, "place in controller memory", offset, 0))?;
        let express = *kind != CmbKind::MEMORY;
        if express && CmbKind::express(ring.stride.ilog2() as u8) != Some(*kind) {
            return Err(Refusal::blame(Status::EINVAL, "stride in controller memory", ring.stride.into(), 0));
        }
        let taken = |other: &Range<u64>| other.start < place.end && place.start < other.end;
        if self.rdma()?.qps.values().flat_map(|qp| &qp.places).chain(&*places).any(taken) {
            return Err(Refusal::blame(Status::EEXIST, "place in controller memory in use", offset, 0));
        }
        ring.memory = Memory::Device(offset);
        places.push(place);
        Ok(express)
    }

    fn page(flags: u16) -> Result<u32, Refusal> {
        Wrong::if_over("doorbell page", flags.into(), (DOORBELL_PAGES - 1).into())?;
        Ok(flags.into())
    }

    fn create_cq(&mut self, cmd: &CreateCqCmd) -> Result<(), Refusal> {
        let id = cmd.id_ver.get();
        Wrong::if_over("completion queue number", id.into(), (self.config.queues() - 1).into())?;
        let what = [cmd.depth_log2.into(), cmd.map_count.get(), cmd.tbl_index.get()];
        let ring = self.ring(what, cmd.stride_log2, cmd.page_size_log2, cmd.dma_addr.get())?;
        let (eq, page) = (cmd.eq_id.get(), Self::page(cmd.dbid_flags.get())?);
        self.rdma()?.event_queue(eq)?;
        if self.is_admin_cq(id) {
            return Err(Refusal::blame(Status::EEXIST, "queue number in use", id.into(), 0));
        }
        let config = CqConfig { id: Some(CqId::truncated(id)), ring, handle: id.into(), vector: NO_VECTOR };
        self.nic.lock().create_cq(&config)?;
        self.rdma()?.cqs.insert(id, Cq { eq, page });
        Ok(())
    }

    fn create_qp(&mut self, cmd: &CreateQpCmd) -> Result<(), Refusal> {
        let id = cmd.id_ver.get();
        Wrong::if_over("queue pair number", id.into(), (self.config.queues() - 1).into())?;
        let kind = QpTypeState::from_bits(cmd.type_state).to();
        let qp_type = QpKind(kind).qp_type();
        let qp_type = qp_type.ok_or(Refusal::blame(Status::EINVAL, "kind of queue pair", kind.into(), 0))?;
        let flags = QpFlags::from_bits(cmd.priv_flags.get());
        let sq = [cmd.sq_depth_log2.into(), cmd.sq_map_count.get(), cmd.sq_tbl_index_xrcd_id.get()];
        let rq = [cmd.rq_depth_log2.into(), cmd.rq_map_count.get(), cmd.rq_tbl_index_srq_id.get()];
        let mut sq = self.ring(sq, cmd.sq_stride_log2, cmd.sq_page_size_log2, cmd.sq_dma_addr.get())?;
        let mut rq = self.ring(rq, cmd.rq_stride_log2, cmd.rq_page_size_log2, cmd.rq_dma_addr.get())?;
        let mut places = Vec::new();
        let sq_express = flags.sq_cmb() && self.place(&mut sq, &mut places)?;
        let rq_express = flags.rq_cmb() && self.place(&mut rq, &mut places)?;
        let page = Self::page(cmd.dbid_flags.get())?;
        let option = |set: bool, option: u32| if set { option } else { 0 };
        let nic = self.nic.clone();
        let mut nic = nic.lock();
        let config = QpConfig {
            id: Some(QpId::truncated(id)),
            qp_type,
            pd: self.rdma()?.pds.get(&mut nic, cmd.pd_id.get())?,
            send_cq: CqId::truncated(cmd.sq_cq_id.get()),
            recv_cq: CqId::truncated(cmd.rq_cq_id.get()),
            srq: None,
            capabilities: QpCapabilities {
                max_send_wr: sq.entries - 1,
                max_recv_wr: rq.entries - 1,
                ..QpCapabilities::default()
            },
            sq,
            rq: Some(rq),
            retransmit: None,
            variable_entries: false,
            // Each WQE says it.
            signal_all: false,
            handle: 0,
            pipeline: (id >> PIPELINE_SHIFT) as u8 & self.config.ionic.pipelines.saturating_sub(1),
            options: option(flags.sq_spec(), options::SQ_SPEC)
                | option(flags.rq_spec(), options::RQ_SPEC)
                | option(sq_express, options::SQ_EXPRESS)
                | option(rq_express, options::RQ_EXPRESS),
        };
        nic.create_qp(&config)?;
        let access = flags.access();
        let known = QpAttributes { access: Some(access), ..QpAttributes::to(QpState::Reset) };
        let qp = Qp { page, qp_type, known, depths: [0; 2], headers: Vec::new(), places };
        self.rdma()?.qps.insert(id, qp);
        Ok(())
    }

    fn create_mr(&mut self, cmd: &CreateMrCmd) -> Result<(), Refusal> {
        let key = cmd.id_ver.get();
        Wrong::if_over("region number", (key >> 8).into(), (self.config.regions - 1).into())?;
        Wrong::unless_equal("table index", cmd.tbl_index.get().into(), ANY_TABLE.into())?;
        let flags = MrFlags::from_bits(cmd.dbid_flags.get());
        let (va, length, count) = (cmd.va.get(), cmd.length.get(), cmd.map_count.get());
        let kind = match (flags.is_mw(), flags.inv_en()) {
            (true, false) => MrKind::WindowType1,
            (true, true) => MrKind::WindowType2,
            (false, true) if length == 0 => {
                Wrong::if_over("pages", count.into(), self.config.page_table_entries.into())?;
                if count == 0 {
                    return Err(Refusal::blame(Status::EINVAL, "pages", 0, 1));
                }
                MrKind::FastRegister { max_pages: count }
            }
            _ => {
                let covered = u64::from(count).checked_shl(cmd.page_size_log2.into()).unwrap_or(u64::MAX);
                let offset = va & (1u64.checked_shl(cmd.page_size_log2.into()).unwrap_or(0).wrapping_sub(1));
                if count == 0 || offset.saturating_add(length) > covered {
                    return Err(Refusal::blame(Status::EINVAL, "bytes of a region's pages", covered, length));
                }
                MrKind::Region(self.memory(count, cmd.dma_addr.get(), cmd.page_size_log2, va)?)
            }
        };
        let nic = self.nic.clone();
        let mut nic = nic.lock();
        let pd = self.rdma()?.pds.get(&mut nic, cmd.pd_id.get())?;
        let addr = if flags.zero_based() { 0 } else { va };
        nic.create_mr(&MrConfig { key: Some(key), pd, kind, addr, length, access: flags.access() })?;
        Ok(())
    }

    /// Headers of `length` bytes at `at`, as a path.
    fn path(&mut self, at: u64, length: usize, profile: u8) -> Result<(AddressVector, Vec<u8>), Refusal> {
        Wrong::if_over("bytes of headers", length as u64, TEMPLATE_MAX as u64)?;
        let mut headers = vec![0; length];
        self.port.bus.read(at, &mut headers)?;
        let parsed = HeaderTemplate::parse(&headers)
            .map_err(|_| Refusal::blame(Status::EINVAL, "headers", length as u64, 0))?;
        Wrong::unless_equal("checksum profile", profile.into(), parsed.profile as u64)?;
        if parsed.smac != self.mac() {
            return Err(Refusal::blame(
                Status::EINVAL,
                "Ethernet address in headers",
                parsed.smac.0[5].into(),
                0,
            ));
        }
        let index = self.nic.lock().learn_gid(parsed.sgid).ok_or(Refusal::fate(Status::ENOSPC))?;
        Ok((AddressVector { sgid_index: index, ..parsed.path }, headers))
    }

    fn create_ah(&mut self, cmd: &CreateAhCmd) -> Result<(), Refusal> {
        let id = cmd.id_ver.get();
        Wrong::if_over("address handle number", id.into(), (self.config.address_handles - 1).into())?;
        let (path, _) = self.path(cmd.dma_addr.get(), cmd.length.get() as usize, cmd.csum_profile)?;
        let nic = self.nic.clone();
        let mut nic = nic.lock();
        let pd = self.rdma()?.pds.get(&mut nic, cmd.pd_id.get())?;
        nic.create_ah(&AhConfig { id: Some(AhId::truncated(id)), pd, path })?;
        Ok(())
    }

    fn modify_qp(&mut self, cmd: &ModifyQpCmd) -> Result<(), Refusal> {
        let id = cmd.id_ver.get();
        let no_such = Refusal::blame(Status::ENOENT, "queue pair", id.into(), 0);
        let qp_type = self.rdma()?.qps.get(&id).ok_or(no_such)?.qp_type;
        let mut attributes = cmd.attributes(qp_type);
        let ah = AhIdLen::from_bits(cmd.ah_id_len.get());
        Wrong::if_over("address handle number", ah.ah_id().into(), (self.config.address_handles - 1).into())?;
        let mask = AttrMask::from_bits_retain(cmd.attr_mask.get());
        let mut headers = Vec::new();
        if mask.contains(AttrMask::AV) {
            let path = self.path(cmd.dma_addr.get(), ah.length().into(), cmd.tfp_csum_profile)?;
            (attributes.path, headers) = (Some(path.0), path.1);
        }
        self.nic.lock().modify_qp(QpId::truncated(id), &attributes)?;
        let Some(qp) = self.rdma()?.qps.get_mut(&id) else { return Ok(()) };
        if mask.contains(AttrMask::AV) {
            qp.headers = headers;
        }
        if mask.contains(AttrMask::MAX_QP_RD_ATOMIC) {
            qp.depths[0] = cmd.rrq_depth;
        }
        if mask.contains(AttrMask::MAX_DEST_RD_ATOMIC) {
            qp.depths[1] = cmd.rsq_depth;
        }
        let (new, old) = (attributes, qp.known);
        qp.known = QpAttributes {
            state: new.state.or(old.state),
            access: new.access.or(old.access),
            qkey: new.qkey.or(old.qkey),
            path: new.path.or(old.path),
            mtu: new.mtu.or(old.mtu),
            dest_qp: new.dest_qp.or(old.dest_qp),
            min_rnr_timer: new.min_rnr_timer.or(old.min_rnr_timer),
            timeout: new.timeout.or(old.timeout),
            retry_count: new.retry_count.or(old.retry_count),
            rnr_retry: new.rnr_retry.or(old.rnr_retry),
            ..QpAttributes::default()
        };
        Ok(())
    }

    fn query_qp(&mut self, cmd: &QueryQpCmd, garbage: bool) -> Result<(), Refusal> {
        let id = cmd.id_ver.get();
        let status = self.nic.lock().query_qp(QpId::truncated(id))?;
        let no_such = Refusal::blame(Status::ENOENT, "queue pair", id.into(), 0);
        let qp = self.rdma()?.qps.get(&id).ok_or(no_such)?;
        let known = &qp.known;
        let peer = match qp.qp_type {
            QpType::Ud => known.qkey.map_or(0, |key| key.get()),
            _ => known.dest_qp.map_or(0, QpId::get),
        };
        let access = QpFlags::from_access(known.access.unwrap_or_default()).into_bits() as u16;
        let sq = QuerySq {
            rnr_timer: known.min_rnr_timer.unwrap_or(0),
            retry_timeout: known.timeout.unwrap_or(0),
            access_perms_flags: access.into(),
            qkey_dest_qpn: peer.into(),
            rq_psn: Psn::truncated(status.rq_psn).get().into(),
            ..QuerySq::ZERO
        };
        let word = StatePmtu::new()
            .with_state(status.state as u8)
            .with_pmtu(known.mtu.map_or(0, |mtu| mtu.log2() as u8));
        let retry =
            Retries::new().with_count(known.retry_count.unwrap_or(0)).with_rnr(known.rnr_retry.unwrap_or(0));
        let rq = QueryRq {
            state_pmtu: word.into_bits(),
            retry_rnrtry: retry.into_bits(),
            rrq_depth: qp.depths[0],
            rsq_depth: qp.depths[1],
            sq_psn: Psn::truncated(status.sq_psn).get().into(),
            access_perms_flags: access.into(),
            ..QueryRq::ZERO
        };
        let headers = qp.headers.clone();
        let write = |at: u64, bytes: &[u8]| {
            let bytes = if garbage { vec![0xff; bytes.len()] } else { bytes.to_vec() };
            self.port.bus.write(at, &bytes)
        };
        write(cmd.sq_dma_addr.get(), sq.as_bytes())?;
        write(cmd.rq_dma_addr.get(), rq.as_bytes())?;
        if cmd.hdr_dma_addr.get() != 0 {
            write(cmd.hdr_dma_addr.get(), &headers)?;
        }
        Ok(())
    }
}
