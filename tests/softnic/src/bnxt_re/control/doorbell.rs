use std::collections::BTreeMap;

use directverbs::bnxt_re::doorbell::{DbType, DbWord};
use directverbs::bnxt_re::hwrm::mailbox;
use directverbs::bnxt_re::pacing::window;
use directverbs::bnxt_re::rcfw::cmdq;

use super::chip::PAGE;
use super::function::BnxtFunction;

/// First halves of doorbells that a host stores in two.
#[derive(Debug, Default)]
pub(super) struct Halves(BTreeMap<u64, u32>);

impl BnxtFunction {
    pub(super) fn register_store(&mut self, offset: u64, value: u32) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        match offset {
            mailbox::TRIGGER if value == 1 => self.hwrm_request(),
            mailbox::TRIGGER => self.violation(format_args!("HWRM trigger {value:#x}")),
            cmdq::TRIGGER if value == 1 => self.rcfw_commands(),
            cmdq::TRIGGER => self.violation(format_args!("RCFW trigger {value:#x}")),
            _ if offset < mailbox::TRIGGER => self.state.hwrm.store(offset, value),
            _ if (cmdq::MAILBOX..cmdq::TRIGGER).contains(&offset) => {
                self.state.rcfw.store(offset - cmdq::MAILBOX, value);
            }
            window::SELECT => self.state.window = value & !(window::BYTES - 1),
            // Windows to other registers, and what is behind them: nothing is there.
            _ => {}
        }
    }

    pub(super) fn doorbell_store(&mut self, offset: u64, bytes: &[u8]) {
        if let Some(at) = self.chip.push_buffer(offset) {
            return self.nic.lock().device_store(at, bytes);
        }
        let value = match *bytes {
            [a, b, c, d] if offset.is_multiple_of(8) => {
                self.state.halves.0.insert(offset, u32::from_le_bytes([a, b, c, d]));
                return;
            }
            [a, b, c, d] => {
                let low = self.state.halves.0.remove(&(offset & !7)).unwrap_or(0);
                u64::from(low) | u64::from(u32::from_le_bytes([a, b, c, d])) << 32
            }
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return self.violation(format_args!("doorbell of {} bytes", bytes.len())),
        };
        self.doorbell(offset & !7, value);
    }

    fn doorbell(&mut self, offset: u64, value: u64) {
        let word = DbWord::from_u64(value);
        if word.type_word().path() == 1 {
            // Of Ethernet, whose rings are never filled.
            return;
        }
        let Some(behind) = offset.checked_sub(self.chip.privileged()) else {
            return self
                .violation(format_args!("doorbell {value:#018x} at {offset:#x}, before the first page"));
        };
        let (page, register) = ((behind / PAGE) as u32, (behind % PAGE / 8) as usize);
        match word.db_type() {
            DbType::NQ | DbType::NQ_ARM | DbType::NQ_MASK => {
                if page != 0 || register != 0 {
                    return self.violation(format_args!("NQ doorbell in page {page}"));
                }
                self.ring_doorbell(word);
            }
            kind => {
                let of_qp = [DbType::SQ, DbType::RQ, DbType::PUSH_START, DbType::PUSH_END].contains(&kind);
                let qp = self.state.objects.qps.get(&word.xid().get()).filter(|_| of_qp);
                if let Some(qp) = qp.filter(|qp| qp.dpi != page) {
                    return self.violation(format_args!(
                        "doorbell {value:#018x} in page {page}, the queue pair has page {}",
                        qp.dpi
                    ));
                }
                self.nic.lock().doorbell(page, register, value);
            }
        }
    }
}
