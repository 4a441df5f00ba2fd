//! What every driver tells of its device.

use directverbs_linux::objects::{Context, CoreSupport};
use directverbs_linux::uverbs::abi::query::QueryDeviceReply;

use super::facts::{Facts, Value};

/// A limit, and where it is in the reply.
type Limit = (&'static str, fn(&QueryDeviceReply) -> Value);

fn count(value: impl Into<u64>) -> Value {
    Value::Count(value.into())
}

const LIMITS: [Limit; 28] = [
    ("memory region", |r| Value::Of(r.max_mr_size.get(), "bytes")),
    ("page sizes", |r| Value::Text(page_sizes(r.page_size_cap.get()))),
    ("queue pairs", |r| count(r.max_qp.get())),
    ("requests of a queue", |r| count(r.max_qp_wr.get())),
    ("SGEs of a request", |r| count(r.max_sge.get())),
    ("SGEs of a READ", |r| count(r.max_sge_rd.get())),
    ("completion queues", |r| count(r.max_cq.get())),
    ("completions of a completion queue", |r| count(r.max_cqe.get())),
    ("memory regions", |r| count(r.max_mr.get())),
    ("memory windows", |r| count(r.max_mw.get())),
    ("protection domains", |r| count(r.max_pd.get())),
    ("address handles", |r| count(r.max_ah.get())),
    ("shared receive queues", |r| count(r.max_srq.get())),
    ("requests of a shared receive queue", |r| count(r.max_srq_wr.get())),
    ("SGEs of its requests", |r| count(r.max_srq_sge.get())),
    ("READs and atomics as requester", |r| count(r.max_qp_init_rd_atom.get())),
    ("READs and atomics as responder", |r| count(r.max_qp_rd_atom.get())),
    ("READs and atomics of all queue pairs", |r| count(r.max_res_rd_atom.get())),
    ("atomics", |r| Value::text(atomics(r.atomic_cap.get()))),
    ("multicast groups", |r| count(r.max_mcast_grp.get())),
    ("queue pairs of a multicast group", |r| count(r.max_mcast_qp_attach.get())),
    ("queue pairs of all multicast groups", |r| count(r.max_total_mcast_qp_attach.get())),
    ("raw packet queue pairs", |r| count(r.max_raw_ethy_qp.get())),
    ("partition keys", |r| count(r.max_pkeys.get())),
    ("acknowledge delay code", |r| count(r.local_ca_ack_delay)),
    ("ports", |r| count(r.phys_port_cnt)),
    ("hardware version", |r| Value::Text(format!("{:#x}", r.hw_ver.get()))),
    ("features", |r| Value::List(features(r.device_cap_flags.get()))),
];

/// Bits of the features that every driver may have. Source: kernel `include/uapi/rdma/ib_user_verbs.h`.
const FEATURES: [(u32, &str); 22] = [
    (0, "resize work queues"),
    (1, "bad P_Key counter"),
    (2, "bad Q_Key counter"),
    (3, "raw multicast"),
    (4, "automatic path migration"),
    (5, "change of physical port"),
    (6, "port check of UD address handles"),
    (7, "current queue pair state"),
    (8, "shutdown of a port"),
    (10, "port active event"),
    (11, "system image GUID"),
    (12, "RNR NAK of RC"),
    (13, "resize of SRQs"),
    (14, "notify after N completions"),
    (17, "memory windows"),
    (18, "UD checksums"),
    (20, "XRC"),
    (21, "memory management extensions"),
    (23, "memory windows type 2A"),
    (24, "memory windows type 2B"),
    (25, "RC checksums"),
    (26, "raw packet checksums"),
];

fn features(flags: u32) -> Vec<String> {
    let known = FEATURES.iter().filter(|(bit, _)| flags >> bit & 1 != 0).map(|(_, name)| (*name).to_owned());
    let rest = FEATURES.iter().fold(flags, |rest, (bit, _)| rest & !(1 << bit));
    known.chain((rest != 0).then(|| format!("others {rest:#x}"))).collect()
}

fn atomics(code: u32) -> &'static str {
    match code {
        0 => "none",
        1 => "among this device's queue pairs",
        2 => "also with the processor",
        _ => "of an unknown kind",
    }
}

/// `4K, 2M`.
fn page_sizes(mask: u64) -> String {
    if mask == u64::MAX << 12 {
        return "all from 4K".into();
    }
    let sizes: Vec<_> = (0..64u32)
        .filter(|bit| mask >> bit & 1 != 0)
        .map(|bit| {
            let (unit, shift) = match bit {
                0..10 => ("", 0),
                10..20 => ("K", 10),
                20..30 => ("M", 20),
                30..40 => ("G", 30),
                _ => ("T", 40),
            };
            format!("{}{unit}", 1u64 << (bit - shift))
        })
        .collect();
    sizes.join(", ")
}

/// Limits of the device.
pub fn limits(context: &Context) -> Facts {
    let limits = context.limits();
    let mut facts: Vec<_> = LIMITS.iter().map(|(name, of)| (*name, of(&limits.base))).collect();
    let clock = limits.extra.hca_core_clock.get();
    if clock != 0 {
        facts.push(("clock", Value::Of(clock, "kHz")));
        facts.push(("timestamp mask", Value::Text(format!("{:#x}", limits.extra.timestamp_mask.get()))));
    }
    Facts(facts)
}

/// What the kernel can do, found by asking.
pub fn kernel(context: &Context) -> Facts {
    let support = context.core_support();
    Facts(vec![
        ("commands through ioctl", Value::Flag(context.file().has_invoke_write())),
        ("extended device query", Value::Flag(context.limits().extra.response_length.get() != 0)),
        ("GID table query", Value::tried(&context.gids())),
        ("optional access flags", Value::Flag(support.contains(CoreSupport::OPTIONAL_MR_ACCESS))),
        ("unknown driver data refused", Value::Flag(support.contains(CoreSupport::ROBUST_UDATA))),
        ("completion vectors", count(context.completion_vectors())),
        ("driver id", count(context.file().driver_id())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_told_as_words() {
        assert_eq!(page_sizes(1 << 12 | 1 << 21 | 1 << 30), "4K, 2M, 1G");
        assert_eq!(page_sizes(u64::MAX << 12), "all from 4K");
        assert_eq!(features(1 << 20 | 1 << 17), ["memory windows", "XRC"]);
        assert_eq!(features(1 << 31 | 1), ["resize work queues", "others 0x80000000"]);
        assert_eq!(features(0), [""; 0]);
    }
}
