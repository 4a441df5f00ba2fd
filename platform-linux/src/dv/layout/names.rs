//! Where the kernel's names differ from the layout table's, and what the kernel does not have.
//!
//! Most structures are flat and their fields are called alike. ionic's are unions with named arms, of which each of
//! our layouts is one.

/// Layout, and the members of the kernel's structure in which its fields are looked for, in this order.
const ARMS: &[(&str, &[&str])] = &[
    ("AdminCqe", &["admin", ""]),
    ("RecvCqe", &["recv", ""]),
    ("SendCqe", &["send", ""]),
    ("SendWqe", &["base", "common.send", "common"]),
    ("RdmaWqe", &["base", "common.rdma", "common"]),
    ("AtomicWqeV1", &["base", "atomic", "atomic.sge"]),
    ("RegMrWqe", &["base", "reg_mr"]),
    ("BindMwWqe", &["base", "bind_mw"]),
    ("RecvWqe", &["base", "recv"]),
    ("LifIdentity", &["", "eth", "rdma"]),
];

/// Fields that the kernel does not name, so that there is nothing to compare: what makes a layout as long as the kernel's
/// union, whose other members are raw words, and a hole before an aligned member.
pub const UNNAMED: [&str; 2] = ["rest", "hole"];

/// Layout, fields that lie side by side, and the path of the one member that they are in the kernel's structure.
const RENAMED: &[(&str, &[&str], &str)] = &[
    ("CmdqModifyRoceCcGen1Tlv", &["link64b_per_rtt"], "link64B_per_rtt"),
    ("CreqQueryRoceCcGen1RespSbTlv", &["link64b_per_rtt"], "link64B_per_rtt"),
    ("DbcPush", &["index_page", "type_path_page_xid"], "db"),
    ("SendWqe", &["num_sge"], "base.num_sge_key"),
    ("SendWqe", &["payload"], "common.pld"),
    ("RdmaWqe", &["num_sge"], "base.num_sge_key"),
    ("RdmaWqe", &["imm_data"], "base.imm_data_key"),
    ("RdmaWqe", &["payload"], "common.pld"),
    ("AtomicWqeV1", &["num_sge"], "base.num_sge_key"),
    ("RegMrWqe", &["mr_flags"], "reg_mr.flags"),
    ("BindMwWqe", &["mr_flags"], "bind_mw.flags"),
    ("RecvWqe", &["num_sge"], "base.num_sge_key"),
    ("RecvWqe", &["length"], "base.imm_data_key"),
    ("RecvWqe", &["payload"], "recv.pld"),
    ("LifIdentity", &["eth_version"], "eth.version"),
    ("LifIdentity", &["eth_rsvd"], "eth.rsvd"),
    ("LifIdentity", &["rdma_version"], "rdma.version"),
    ("LifIdentity", &["rdma_rsvd"], "rdma.rsvd"),
    ("LifSetAttrCmd", &["value"], "rsvd"),
    ("LifSetAttrComp", &["value"], "rsvd2"),
    ("LifGetAttrComp", &["value"], "rsvd2"),
    ("PortSetAttrCmd", &["value"], "rsvd2"),
    ("PortGetAttrComp", &["value"], "rsvd2"),
    ("RxFilterAddCmd", &["value"], "rsvd"),
];

/// Layouts that no kernel driver defines as they are here, and why.
pub const NOT_IN_KERNEL: &[(&str, &str)] = &[
    ("AtomicWqeV2", "the kernel driver posts no atomics; only the user-space driver defines it"),
    ("FwDownloadCmd", "the kernel's structure ends before the command does"),
];

/// Structures that a driver's headers define and its code does not use, and what the code does instead. Compilers leave
/// them out of a module's BTF.
pub const UNUSED: &[(&str, &str)] = &[
    ("dbc_dbc", "doorbells are made as numbers"),
    ("db_push_start", "the kernel pushes nothing"),
    ("sq_base", "each WQE has a type of its own"),
    ("sq_fr_pmr", "the WQE is written as sq_fr_pmr_hdr"),
    ("sq_bind", "the WQE is written as sq_bind_hdr"),
    ("nq_dbq_event", "this event is ignored"),
    ("hwrm_cmd_hdr", "requests are filled in through struct input"),
    ("hwrm_resp_hdr", "responses are read through struct output"),
    ("hwrm_func_reset_output", "responses without contents are not looked at"),
    ("hwrm_port_qstats_output", "counters are read from the memory that they are written to"),
    ("cmdq_destroy_qp1", "this chip generation has no such command"),
    ("cmdq_modify_gid", "GIDs are deleted and added"),
    ("cmdq_query_gid", "GIDs are known"),
    ("creq_query_gid_resp_sb", "GIDs are known"),
    ("cmdq_map_tc_to_cos", "classes are not mapped"),
];

/// The fields that are one member of the kernel's structure together with `field`, and the paths at which it may be.
pub fn kernel<'f>(layout: &str, field: &'f str) -> (Vec<&'f str>, Vec<String>) {
    if let Some((_, fields, path)) = RENAMED.iter().find(|(l, f, _)| *l == layout && f.contains(&field)) {
        return (fields.to_vec(), vec![(*path).into()]);
    }
    let arms = ARMS.iter().find(|(l, _)| *l == layout).map_or(&[""][..], |(_, arms)| *arms);
    let join = |arm: &&str| if arm.is_empty() { field.into() } else { format!("{arm}.{field}") };
    (vec![field], arms.iter().map(join).collect())
}

#[cfg(test)]
mod tests {
    use directverbs::layout;

    use super::*;

    fn has(name: &str, field: Option<&str>) -> bool {
        layout::all()
            .filter(|l| l.name == name)
            .any(|l| field.is_none_or(|field| l.fields.iter().any(|f| f.name == field)))
    }

    #[test]
    fn every_entry_is_about_a_layout_that_exists() {
        for (layout, _) in ARMS {
            assert!(has(layout, None), "{layout}");
        }
        for (layout, fields, _) in RENAMED {
            assert!(fields.iter().all(|field| has(layout, Some(field))), "{layout} {fields:?}");
        }
        for (structure, _) in UNUSED {
            assert!(layout::all().any(|l| l.kernel == *structure), "{structure}");
        }
    }

    #[test]
    fn a_layout_without_a_kernel_structure_has_a_reason() {
        for l in layout::all() {
            let reason = NOT_IN_KERNEL.iter().any(|(name, _)| *name == l.name);
            assert_eq!(l.kernel.is_empty(), reason, "{}", l.name);
        }
    }
}
