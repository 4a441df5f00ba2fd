//! Commands by opcode.

use directverbs::bnxt_re::rcfw::congestion::CmdqQueryRoceCc;
use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::bnxt_re::rcfw::function::CmdqInitializeFw;
use directverbs::bnxt_re::rcfw::message::{Command, UNIT};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::parameter::ModifyCongestion;
use directverbs::verbs::PdId;
use zerocopy::IntoBytes;

use super::channel::{Outcome, Reply};
use super::function::BnxtFunction;
use super::list::ListError;
use crate::device::DeviceError;

/// Protection domains: a number of the driver's.
const MAX_PD: u32 = 1 << 16;

/// Reads a command; what a shorter one lacks is zero.
pub(super) fn read<C: Command>(command: &[u8]) -> C {
    let mut read = C::new_zeroed();
    let into = read.as_mut_bytes();
    let len = command.len().min(into.len());
    into[..len].copy_from_slice(&command[..len]);
    read
}

impl BnxtFunction {
    /// Carries out a command.
    pub(super) fn carry_out(&mut self, opcode: Opcode, command: &[u8]) -> Outcome {
        let before = [Opcode::QUERY_FUNC, Opcode::QUERY_VERSION, Opcode::INITIALIZE_FW];
        if !self.state.rcfw.initialized && !before.contains(&opcode) {
            self.violation(format_args!("RCFW: {opcode} before INITIALIZE_FW"));
            return Err(Status::INVALID_CMD);
        }
        match opcode {
            Opcode::QUERY_FUNC => Ok(self.query_func()),
            Opcode::QUERY_VERSION => Ok(Reply { word: 230, rest: [0, 0, 1, 10, 3, 0], side: None }),
            Opcode::INITIALIZE_FW => self.initialize(&read(command)),
            Opcode::DEINITIALIZE_FW => self.deinitialize(),
            Opcode::CREATE_CQ => self.create_cq(&read(command)),
            Opcode::DESTROY_CQ => self.destroy_cq(&read(command)),
            Opcode::RESIZE_CQ => self.resize_cq(&read(command)),
            Opcode::CREATE_SRQ => self.create_srq(&read(command)),
            Opcode::DESTROY_SRQ => self.destroy_srq(&read(command)),
            Opcode::QUERY_SRQ => self.query_srq(&read(command)),
            Opcode::CREATE_QP => self.create_qp(&read(command)),
            Opcode::DESTROY_QP => self.destroy_qp(&read(command)),
            Opcode::MODIFY_QP => self.modify_qp(&read(command)),
            Opcode::QUERY_QP => self.query_qp(&read(command)),
            Opcode::ALLOCATE_MRW => self.allocate_key(&read(command)),
            Opcode::DEALLOCATE_KEY => self.deallocate_key(&read(command)),
            Opcode::REGISTER_MR => self.register_mr(&read(command)),
            Opcode::DEREGISTER_MR => self.deregister_mr(&read(command)),
            Opcode::ADD_GID => self.add_gid(&read(command)),
            Opcode::MODIFY_GID => self.modify_gid(&read(command)),
            Opcode::DELETE_GID => self.delete_gid(&read(command)),
            Opcode::QUERY_GID => self.query_gid(&read(command)),
            Opcode::CREATE_AH => self.create_ah(&read(command)),
            Opcode::DESTROY_AH => self.destroy_ah(&read(command)),
            Opcode::QUERY_ROCE_STATS => Ok(self.query_stats()),
            Opcode::QUERY_ROCE_STATS_EXT => Ok(self.query_stats_ext()),
            Opcode::QUERY_ROCE_CC => {
                let room = usize::from(read::<CmdqQueryRoceCc>(command).resp_size) * UNIT;
                Ok(self.query_congestion(room))
            }
            Opcode::MODIFY_ROCE_CC => {
                let base = read(command);
                self.modify_congestion(&ModifyCongestion { base, ..ModifyCongestion::NONE })
            }
            Opcode::SET_FUNC_RESOURCES | Opcode::MAP_TC_TO_COS => Ok(Reply::default()),
            _ => Err(Status::NOT_IMPLEMENTED),
        }
    }

    /// Carries out a command in parts.
    pub(super) fn carry_out_parts(&mut self, opcode: Opcode, command: &[u8]) -> Outcome {
        match opcode {
            Opcode::MODIFY_ROCE_CC if self.state.rcfw.initialized => self.modify_congestion(&read(command)),
            _ => Err(Status::NOT_IMPLEMENTED),
        }
    }

    fn initialize(&mut self, command: &CmdqInitializeFw) -> Outcome {
        if self.state.rcfw.initialized {
            self.violation("RCFW: INITIALIZE_FW twice");
            return Err(Status::INVALID_CMD);
        }
        if !self.state.context.complete {
            self.violation("RCFW: INITIALIZE_FW without context memory");
            return Err(Status::INVALID_CMD);
        }
        // Context memory is the mailbox's business on these chips.
        if command.as_bytes()[24..108].iter().any(|byte| *byte != 0) {
            self.violation("RCFW: INITIALIZE_FW with context memory");
            return Err(Status::INVALID_PARAMETER);
        }
        if !self.state.hwrm.stat_contexts.has(command.stat_ctx_id.get()) {
            self.violation(format_args!("RCFW: statistics context {}", command.stat_ctx_id));
            return Err(Status::INVALID_PARAMETER);
        }
        self.state.rcfw.initialized = true;
        Ok(Reply::default())
    }

    fn deinitialize(&mut self) -> Outcome {
        if !self.state.objects.is_empty() {
            self.violation("RCFW: DEINITIALIZE_FW while there are queues");
            return Err(Status::INVALID_CMD);
        }
        self.state.rcfw.initialized = false;
        Ok(Reply::default())
    }

    /// The protection domain with a number of the driver's.
    pub(super) fn pd(&mut self, number: u32) -> Result<PdId, Status> {
        if number >= MAX_PD {
            self.violation(format_args!("protection domain {number:#x}"));
            return Err(Status::INVALID_PARAMETER);
        }
        if let Some(pd) = self.state.keys.pds.get(&number) {
            return Ok(*pd);
        }
        let pd = self.nic.lock().create_pd().map_err(|_| Status::RESOURCES)?;
        self.state.keys.pds.insert(number, pd);
        Ok(pd)
    }

    /// How a refusal of the device API ends a command. What a driver must know better is a violation.
    pub(super) fn refused(&self, opcode: Opcode, error: &DeviceError) -> Status {
        self.violation(format_args!("{opcode}: {error}"));
        match error {
            DeviceError::Exists { .. } => Status::RESOURCES,
            DeviceError::State(_) | DeviceError::InUse { .. } => Status::INVALID_CMD,
            _ => Status::INVALID_PARAMETER,
        }
    }

    /// A page list that makes no sense.
    pub(super) fn bad_list(&self, opcode: Opcode, error: &ListError) -> Status {
        self.violation(format_args!("{opcode}: {error}"));
        Status::INVALID_PARAMETER
    }
}
