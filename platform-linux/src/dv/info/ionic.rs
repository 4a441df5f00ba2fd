//! Direct verbs of ionic.

use directverbs::ionic::caps::{ExpressQueues, ExpressStrides};
use directverbs::ionic::wqe::RdmaVersion;
use directverbs_linux::ionic::Context;

use super::facts::{Facts, Value};

/// What the device and its driver offer.
pub fn direct(context: &Context) -> Facts {
    let caps = context.caps();
    let version = match caps.version {
        RdmaVersion::V1 => 1,
        RdmaVersion::V2 => 2,
    };
    let types = [caps.sq_qtype, caps.rq_qtype, caps.cq_qtype].map(|queue| queue.get().to_string());
    let strides = ExpressStrides::all().iter().filter(|stride| caps.express_strides.contains(*stride));
    let strides = strides.map(|stride| format!("{} bytes", u32::from(stride.bits()) * 64));
    let queues = [(ExpressQueues::SEND, "send"), (ExpressQueues::RECV, "receive")];
    let queues = queues.into_iter().filter(|(queue, _)| caps.express_queues.contains(*queue));
    let spec = match caps.max_spec {
        0 => Value::text("none"),
        most => Value::Of(most.into(), "SGEs"),
    };
    let clock = match context.clock().map(|page| page.read()) {
        None => Value::Flag(false),
        Some(Err(error)) => Value::Tried(Err(error.to_string())),
        Some(Ok(clock)) => match clock.khz() {
            Some(khz) => Value::Of(khz, "kHz"),
            None => Value::Flag(true),
        },
    };
    Facts(vec![
        ("RDMA version", Value::Count(version)),
        ("pipelines", Value::Count(context.udma_count().into())),
        ("pipeline mask", Value::Text(format!("{:#x}", context.udma_mask()))),
        ("queue types SQ RQ CQ", Value::List(types.into())),
        ("largest WQE", Value::Of(1 << caps.max_stride, "bytes")),
        ("WQE with a list of lengths up to", spec),
        ("express doorbells for", Value::List(queues.map(|(_, name)| name.to_owned()).collect())),
        ("express WQE sizes", Value::List(strides.collect())),
        (
            "controller memory",
            Value::text("asked for per queue: what is granted is told when a queue pair is created"),
        ),
        ("page", Value::Of(1 << caps.page_shift, "bytes")),
        ("clock page", clock),
    ])
}
