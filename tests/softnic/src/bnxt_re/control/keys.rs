//! Commands about memory keys, GIDs and address handles.

use std::collections::BTreeMap;

use directverbs::bnxt_re::rcfw::ah::{CmdqCreateAh, CmdqDestroyAh};
use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::bnxt_re::rcfw::gid::{
    CmdqAddGid, CmdqDeleteGid, CmdqModifyGid, CmdqQueryGid, CreqQueryGidRespSb, STATS_CTX_VALID,
};
use directverbs::bnxt_re::rcfw::mr::{
    ALLOC_MR, CmdqAllocateMrw, CmdqDeallocateKey, CmdqDeregisterMr, CmdqRegisterMr, kind,
};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::verbs::{AccessFlags, AddressVector, AhId, Gid, Mac, PdId};
use zerocopy::{IntoBytes, little_endian as le};

use super::channel::{Outcome, Reply};
use super::chip::{MAX_AH, MAX_GID, MAX_MR};
use super::function::BnxtFunction;
use super::list::List;
use crate::device::{AhConfig, MrConfig, MrKind};

/// VLAN id of an untagged path.
const NO_VLAN: u16 = 0xfff;

/// Keys, GIDs, and what else has no queue.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub pds: BTreeMap<u32, PdId>,
    gids: BTreeMap<u32, CreqQueryGidRespSb>,
    /// Kind and protection domain of each key, by index.
    keys: BTreeMap<u32, (u8, PdId)>,
    ahs: usize,
}

const fn fast_register(key: Option<u32>, pd: PdId) -> MrConfig {
    let kind = MrKind::FastRegister { max_pages: 512 };
    MrConfig { key, pd, kind, addr: 0, length: 0, access: AccessFlags::empty() }
}

/// Access flags of a region.
fn access(bits: u8) -> AccessFlags {
    let map = [
        (0x1, AccessFlags::LOCAL_WRITE),
        (0x2, AccessFlags::REMOTE_READ),
        (0x4, AccessFlags::REMOTE_WRITE),
        (0x8, AccessFlags::REMOTE_ATOMIC),
        (0x10, AccessFlags::MW_BIND),
        (0x20, AccessFlags::ZERO_BASED),
    ];
    map.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, flag)| *flag).collect()
}

impl BnxtFunction {
    pub(super) fn allocate_key(&mut self, command: &CmdqAllocateMrw) -> Outcome {
        let opcode = Opcode::ALLOCATE_MRW;
        if self.state.keys.keys.len() >= MAX_MR as usize {
            return Err(Status::RESOURCES);
        }
        let pd = self.pd(command.pd_id.get())?;
        let of = command.mrw_flags & 0xf;
        let config = match of {
            // Until it is registered it opens nothing.
            kind::MR | kind::PMR => fast_register(None, pd),
            kind::MW_TYPE1 => MrConfig { kind: MrKind::WindowType1, ..fast_register(None, pd) },
            kind::MW_TYPE2A | kind::MW_TYPE2B => {
                MrConfig { kind: MrKind::WindowType2, ..fast_register(None, pd) }
            }
            other => {
                self.violation(format_args!("{opcode}: kind {other}"));
                return Err(Status::INVALID_PARAMETER);
            }
        };
        let made = self.nic.lock().create_mr(&config);
        let key = made.map_err(|error| self.refused(opcode, &error))?;
        self.state.keys.keys.insert(key >> 8, (of, pd));
        Ok(Reply::xid(key))
    }

    pub(super) fn deallocate_key(&mut self, command: &CmdqDeallocateKey) -> Outcome {
        let opcode = Opcode::DEALLOCATE_KEY;
        let (key, of) = (command.key.get(), command.mrw_flags & 0xf);
        let known = self.state.keys.keys.get(&(key >> 8)).map(|(kind, _)| *kind);
        if known.is_some_and(|known| known != of) {
            self.violation(format_args!("{opcode}: {key:#x} is not of kind {of}"));
            return Err(Status::INVALID_PARAMETER);
        }
        let gone = self.nic.lock().destroy_mr(key);
        gone.map_err(|error| self.refused(opcode, &error))?;
        self.state.keys.keys.remove(&(key >> 8));
        Ok(Reply::xid(key))
    }

    pub(super) fn register_mr(&mut self, command: &CmdqRegisterMr) -> Outcome {
        let opcode = Opcode::REGISTER_MR;
        let shift = command.log2_pg_size_lvl >> 2 & 0x1f;
        if !(12..=30).contains(&shift) || command.log2_pbl_pg_size.get() & 0x1f != 12 {
            self.violation(format_args!("{opcode}: pages of 2^{shift} bytes"));
            return Err(Status::INVALID_PARAMETER);
        }
        let list = List { root: command.pbl.get(), level: command.log2_pg_size_lvl & 3, shift, ring: false };
        let (va, length) = (command.va.get(), command.mr_size.get());
        let first = va & ((1 << shift) - 1);
        if length == 0 || length > 1 << 40 {
            self.violation(format_args!("{opcode}: {length:#x} bytes"));
            return Err(Status::INVALID_PARAMETER);
        }
        let memory = list.memory(self.bus(), first, length).map_err(|error| self.bad_list(opcode, &error))?;
        let allocates = command.flags.get() & ALLOC_MR != 0;
        let (key, pd) = if allocates {
            if !self.chip.is_p7() || self.state.keys.keys.len() >= MAX_MR as usize {
                self.violation(format_args!("{opcode}: the device allocates no keys"));
                return Err(Status::INVALID_PARAMETER);
            }
            (None, self.pd(command.key.get())?)
        } else {
            let key = command.key.get();
            let Some((kind::MR, pd)) = self.state.keys.keys.get(&(key >> 8)).copied() else {
                self.violation(format_args!("{opcode}: {key:#x} is no key of a region"));
                return Err(Status::INVALID_PARAMETER);
            };
            (Some(key), pd)
        };
        let access = access(command.access);
        let config = MrConfig { key, pd, kind: MrKind::Region(memory), addr: va, length, access };
        let key = self.replace(opcode, key, &config)?;
        self.state.keys.keys.insert(key >> 8, (kind::MR, pd));
        Ok(Reply::xid(key))
    }

    pub(super) fn deregister_mr(&mut self, command: &CmdqDeregisterMr) -> Outcome {
        let opcode = Opcode::DEREGISTER_MR;
        let key = command.lkey.get();
        let Some((_, pd)) = self.state.keys.keys.get(&(key >> 8)).copied() else {
            self.violation(format_args!("{opcode}: no key {key:#x}"));
            return Err(Status::INVALID_PARAMETER);
        };
        self.replace(opcode, Some(key), &fast_register(Some(key), pd)).map(Reply::xid)
    }

    /// Puts something else behind a key.
    fn replace(&self, opcode: Opcode, key: Option<u32>, config: &MrConfig) -> Result<u32, Status> {
        let mut nic = self.nic.lock();
        let made = match key {
            Some(key) => nic.destroy_mr(key).and_then(|()| nic.create_mr(config)),
            None => nic.create_mr(config),
        };
        drop(nic);
        made.map_err(|error| self.refused(opcode, &error))
    }

    pub(super) fn add_gid(&mut self, command: &CmdqAddGid) -> Outcome {
        let free = (0..MAX_GID).find(|index| !self.state.keys.gids.contains_key(index));
        let index = free.ok_or(Status::RESOURCES)?;
        let told = CreqQueryGidRespSb {
            vlan: command.vlan,
            ipid: command.ipid,
            ..self.told_gid(command.gid.as_bytes(), command.src_mac.as_bytes(), command.stats_ctx)?
        };
        self.set_gid(index, told);
        Ok(Reply::xid(index))
    }

    pub(super) fn modify_gid(&mut self, command: &CmdqModifyGid) -> Outcome {
        let index = command.gid_index.get().into();
        self.known_gid(Opcode::MODIFY_GID, index)?;
        let told = CreqQueryGidRespSb {
            vlan: command.vlan,
            ipid: command.ipid,
            ..self.told_gid(command.gid.as_bytes(), command.src_mac.as_bytes(), command.stats_ctx)?
        };
        self.set_gid(index, told);
        Ok(Reply::xid(index))
    }

    pub(super) fn delete_gid(&mut self, command: &CmdqDeleteGid) -> Outcome {
        let index = command.gid_index.get().into();
        self.known_gid(Opcode::DELETE_GID, index)?;
        self.state.keys.gids.remove(&index);
        self.nic.lock().set_gid(index as usize, Gid::default());
        Ok(Reply::xid(index))
    }

    pub(super) fn query_gid(&mut self, command: &CmdqQueryGid) -> Outcome {
        let index = command.gid_index.get().into();
        self.known_gid(Opcode::QUERY_GID, index)?;
        Ok(Reply::side(self.state.keys.gids[&index].as_bytes()))
    }

    fn known_gid(&self, opcode: Opcode, index: u32) -> Result<(), Status> {
        if self.state.keys.gids.contains_key(&index) {
            return Ok(());
        }
        self.violation(format_args!("{opcode}: no GID {index}"));
        Err(Status::INVALID_PARAMETER)
    }

    fn told_gid(&self, gid: &[u8], mac: &[u8], stats: le::U16) -> Result<CreqQueryGidRespSb, Status> {
        let (stats, told) = (stats.get(), CreqQueryGidRespSb::ZERO);
        let context = u32::from(stats & !STATS_CTX_VALID);
        if stats & STATS_CTX_VALID != 0 && !self.state.hwrm.stat_contexts.has(context) {
            self.violation(format_args!("ADD_GID: statistics context {context}"));
            return Err(Status::INVALID_PARAMETER);
        }
        if mac != self.chip.mac.0 {
            self.violation(format_args!("ADD_GID: source address {mac:02x?}"));
            return Err(Status::INVALID_PARAMETER);
        }
        let mut told = told;
        told.gid.as_mut_bytes().copy_from_slice(gid);
        told.src_mac.as_mut_bytes().copy_from_slice(mac);
        Ok(told)
    }

    fn set_gid(&mut self, index: u32, told: CreqQueryGidRespSb) {
        // It is told from its last byte.
        let mut gid: [u8; 16] = told.gid.as_bytes().try_into().unwrap_or_default();
        gid.reverse();
        self.nic.lock().set_gid(index as usize, Gid(gid));
        let told = CreqQueryGidRespSb { gid_index: le::U16::new(index as u16), ..told };
        self.state.keys.gids.insert(index, told);
    }

    pub(super) fn create_ah(&mut self, command: &CmdqCreateAh) -> Outcome {
        let opcode = Opcode::CREATE_AH;
        if self.state.keys.ahs >= MAX_AH as usize {
            return Err(Status::RESOURCES);
        }
        let pd = self.pd(command.pd_id.get())?;
        let word = command.dest_vlan_id_flow_label.get();
        let path = AddressVector {
            dgid: Gid(command.dgid.as_bytes().try_into().unwrap_or_default()),
            dmac: Mac(command.dest_mac.as_bytes().try_into().unwrap_or_default()),
            sgid_index: command.sgid_index.get() as u8,
            flow_label: word & 0xf_ffff,
            traffic_class: command.traffic_class,
            hop_limit: command.hop_limit,
            vlan: vlan((word >> 20) as u16),
        };
        self.check_network(opcode, command.r#type, &path)?;
        let made = self.nic.lock().create_ah(&AhConfig { id: None, pd, path });
        let ah = made.map_err(|error| self.refused(opcode, &error))?;
        self.state.keys.ahs += 1;
        Ok(Reply::xid(ah.get()))
    }

    pub(super) fn destroy_ah(&mut self, command: &CmdqDestroyAh) -> Outcome {
        let ah = AhId::truncated(command.ah_cid.get());
        let gone = self.nic.lock().destroy_ah(ah);
        gone.map_err(|error| self.refused(Opcode::DESTROY_AH, &error))?;
        self.state.keys.ahs -= 1;
        Ok(Reply::xid(ah.get()))
    }

    /// The network must be that of the destination.
    pub(super) fn check_network(
        &self,
        opcode: Opcode,
        network: u8,
        path: &AddressVector,
    ) -> Result<(), Status> {
        let right = if path.dgid.as_v4().is_some() { 2 } else { 3 };
        if network == right {
            return Ok(());
        }
        self.violation(format_args!("{opcode}: network {network} to {}", path.dgid));
        Err(Status::INVALID_PARAMETER)
    }
}

/// The tag of a path, which has none if all bits of the VLAN id are set.
pub(super) fn vlan(tag: u16) -> Option<u16> {
    (tag & 0xfff != NO_VLAN).then_some(tag)
}
