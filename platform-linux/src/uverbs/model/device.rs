//! What calls and commands do.

use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::super::abi::attribute::{Method, Spec};
use super::super::abi::command::*;
use super::super::abi::methods::{invoke_write, object, query_context};
use super::super::abi::query::{
    GidRecord, QueryDeviceExtra, QueryDeviceReply, QueryPortReply, QueryPortReplyEx,
};
use super::super::abi::queue_pair::{ModifyQp, QpCap, QueryQpReply};
use super::super::kernel::Fd;
use super::packet::{Outcome, Request, destroys};
use super::{File, Key, Model, State};

/// What the model's device has of everything.
pub(crate) const LIMITS: QueryDeviceReply = {
    use zerocopy::little_endian::{U32, U64};
    QueryDeviceReply {
        max_mr_size: U64::new(1 << 40),
        max_qp_wr: U32::new(1024),
        max_sge: U32::new(6),
        max_cqe: U32::new(4096),
        max_srq: U32::new(16),
        max_srq_wr: U32::new(512),
        max_srq_sge: U32::new(6),
        phys_port_cnt: 1,
        ..QueryDeviceReply::ZERO
    }
};

impl Model {
    pub(super) fn check_method(&self, method: &'static Method) -> Result<(), Errno> {
        let absent = method == &invoke_write::METHOD && !self.settings.invoke_write;
        if absent { Err(Errno::PROTONOSUPPORT) } else { Ok(()) }
    }

    /// Whether this kernel has the attribute.
    pub(super) fn knows(&self, spec: &Spec) -> bool {
        self.settings.umem || !spec.name.ends_with("BUF_UMEM")
    }

    pub(super) fn execute(
        &self,
        fd: Fd,
        method: &'static Method,
        request: &Request,
    ) -> Result<Outcome, Errno> {
        let mut state = self.state();
        let opened = state.files.get(&fd.get()).and_then(|f| f.device).ok_or(Errno::BADF)?;
        let handle = |name: &str| request.number(name).map(|h| h as u32);
        let u32s = |values: &[u32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let mut outcome = Outcome::default();
        if method.name == "GET_CONTEXT" {
            if opened {
                return Err(Errno::INVAL);
            }
            state.files.insert(fd.get(), File { device: Some(true), ..File::default() });
        } else if !opened {
            return Err(Errno::INVAL);
        }
        match method.name {
            "GET_CONTEXT" | "QUERY_CONTEXT" => {
                if method == &query_context::METHOD && !self.settings.query_context {
                    return Err(Errno::OPNOTSUPP);
                }
                let support = self.settings.core_support.to_le_bytes().to_vec();
                outcome.outputs = vec![("NUM_COMP_VECTORS", u32s(&[4])), ("CORE_SUPPORT", support)];
            }
            "QUERY_PORT" => {
                let base = QueryPortReply {
                    state: 4,
                    link_layer: 2,
                    max_mtu: 5,
                    active_mtu: 3,
                    active_width: 2,
                    active_speed: 32,
                    gid_tbl_len: 16.into(),
                    ..QueryPortReply::ZERO
                };
                let reply = QueryPortReplyEx { legacy_resp: base, ..QueryPortReplyEx::ZERO };
                outcome.outputs = vec![("RESP", reply.as_bytes().to_vec())];
            }
            "QUERY_GID_TABLE" => {
                let record = GidRecord {
                    gid: [0xfe; 16],
                    gid_index: 3.into(),
                    port_num: 1.into(),
                    gid_type: 2.into(),
                    netdev_ifindex: 7.into(),
                };
                outcome.outputs =
                    vec![("RESP_ENTRIES", record.as_bytes().to_vec()), ("RESP_NUM_ENTRIES", u32s(&[1, 0]))];
            }
            "ASYNC_EVENT_ALLOC" => outcome.new = Some(state.open(File::default()).cast_unsigned()),
            "CQ_CREATE" => {
                for name in ["COMP_CHANNEL", "EVENT_FD"] {
                    let file = handle(name).map(|fd| state.files.contains_key(&fd.cast_signed()));
                    if file == Some(false) {
                        return Err(Errno::BADF);
                    }
                }
                let cqe = handle("CQE").ok_or(Errno::INVAL)?;
                outcome.new = Some(state.create(object::CQ, &[])?);
                outcome.outputs = vec![("RESP_CQE", u32s(&[cqe.next_power_of_two()]))];
            }
            "SRQ_CREATE" => {
                let pd = (object::PD, handle("PD_HANDLE").ok_or(Errno::INVAL)?);
                outcome.new = Some(state.create(object::SRQ, &[pd])?);
                let (wr, sge) = (handle("MAX_WR").unwrap_or(0), handle("MAX_SGE").unwrap_or(0));
                outcome.outputs = vec![("RESP_MAX_WR", u32s(&[wr])), ("RESP_MAX_SGE", u32s(&[sge]))];
            }
            "QP_CREATE" => {
                let uses = [
                    (object::PD, "PD_HANDLE"),
                    (object::CQ, "SEND_CQ_HANDLE"),
                    (object::CQ, "RECV_CQ_HANDLE"),
                    (object::SRQ, "SRQ_HANDLE"),
                    // The doorbell region of a bnxt_re queue pair.
                    (object::DRIVER + 3, "DBR_HANDLE"),
                ];
                let uses: Vec<Key> =
                    uses.iter().filter_map(|(kind, name)| handle(name).map(|h| (*kind, h))).collect();
                let number = state.create(object::QP, &uses)?;
                outcome.new = Some(number);
                let cap = request.get("CAP").ok_or(Errno::INVAL)?.to_vec();
                outcome.outputs = vec![("RESP_CAP", cap), ("RESP_QP_NUM", u32s(&[number + 0x100]))];
            }
            "REG_DMABUF_MR" => {
                let pd = (object::PD, handle("PD_HANDLE").ok_or(Errno::INVAL)?);
                let number = state.create(object::MR, &[pd])?;
                outcome.new = Some(number);
                outcome.outputs =
                    vec![("RESP_LKEY", u32s(&[number << 8])), ("RESP_RKEY", u32s(&[number << 8 | 1]))];
            }
            _ if destroys(method) => {
                state.destroy((method.object_id, handle("HANDLE").unwrap_or(0)))?;
            }
            _ => {
                if request.get("HANDLE").is_some() {
                    outcome.new = Some(state.create(method.object_id, &[])?);
                }
                let told = self.settings.outputs.iter().filter(|(name, ..)| *name == method.name);
                outcome.outputs = told.map(|(_, attribute, bytes)| (*attribute, bytes.clone())).collect();
            }
        }
        Ok(outcome)
    }

    pub(super) fn execute_command(
        &self,
        fd: Fd,
        command: &'static Command,
        core: &[u8],
        room: usize,
    ) -> Result<Vec<u8>, Errno> {
        let mut state = self.state();
        if state.files.get(&fd.get()).and_then(|f| f.device) != Some(true) {
            return Err(Errno::INVAL);
        }
        let u32s = |values: &[u32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let reply = match *command {
            QUERY_DEVICE => LIMITS.as_bytes().to_vec(),
            QUERY_DEVICE_EX if !self.settings.extended_query => return Err(Errno::OPNOTSUPP),
            QUERY_DEVICE_EX => {
                // A kernel of the middle: it knows the clock's bits, but not its rate.
                let written = size_of::<QueryDeviceReply>() + 40;
                let extra = QueryDeviceExtra {
                    response_length: (written as u32).into(),
                    timestamp_mask: u64::MAX.into(),
                    ..QueryDeviceExtra::ZERO
                };
                let mut reply = [LIMITS.as_bytes(), extra.as_bytes()].concat();
                reply.truncate(written);
                reply
            }
            ALLOC_PD => u32s(&[state.create(object::PD, &[])?]),
            CREATE_COMP_CHANNEL => u32s(&[state.open(File::default()).cast_unsigned()]),
            CREATE_AH => {
                let core = CreateAh::read_from_bytes(core).map_err(|_| Errno::INVAL)?;
                u32s(&[state.create(object::AH, &[(object::PD, core.pd_handle.get())])?])
            }
            REG_MR => {
                let core = RegMr::read_from_bytes(core).map_err(|_| Errno::INVAL)?;
                let number = state.create(object::MR, &[(object::PD, core.pd_handle.get())])?;
                u32s(&[number, number << 8, number << 8 | 1])
            }
            ALLOC_MW => {
                let core = AllocMw::read_from_bytes(core).map_err(|_| Errno::INVAL)?;
                let number = state.create(object::MW, &[(object::PD, core.pd_handle.get())])?;
                u32s(&[number, number << 8])
            }
            RESIZE_CQ => {
                let core = ResizeCq::read_from_bytes(core).map_err(|_| Errno::INVAL)?;
                state.check((object::CQ, core.cq_handle.get()))?;
                u32s(&[core.cqe.get().next_power_of_two(), 0])
            }
            QUERY_SRQ => u32s(&[100, 3, 5, 0]),
            QUERY_QP => {
                let cap = QpCap { max_send_wr: 17.into(), ..QpCap::ZERO };
                let reply =
                    QueryQpReply { cap, qp_state: 6, path_mtu: 3, sq_sig_all: 1, ..QueryQpReply::ZERO };
                reply.as_bytes().to_vec()
            }
            MODIFY_QP | MODIFY_QP_EX => {
                let (core, _) = ModifyQp::read_from_prefix(core).map_err(|_| Errno::INVAL)?;
                state.check((object::QP, core.qp_handle.get()))?;
                vec![0; room]
            }
            _ => vec![0; room],
        };
        Ok(reply)
    }
}

impl State {
    fn check(&self, key: Key) -> Result<(), Errno> {
        if self.objects.contains_key(&key) { Ok(()) } else { Err(Errno::NOENT) }
    }

    fn create(&mut self, kind: u16, uses: &[Key]) -> Result<u32, Errno> {
        for key in uses {
            self.check(*key)?;
        }
        let number = self.number();
        self.objects.insert((kind, number), uses.to_vec());
        Ok(number)
    }

    fn destroy(&mut self, key: Key) -> Result<(), Errno> {
        self.check(key)?;
        if self.objects.values().any(|uses| uses.contains(&key)) {
            return Err(Errno::BUSY);
        }
        self.objects.remove(&key);
        Ok(())
    }
}
