//! Known faults of rdma-core 65's bnxt_re provider.

use crate::case::Exception;

/// SEND with invalidate.
pub static SEND_INV: Exception = Exception {
    name: "send-inv",
    fault: "SEND_WITH_INV is posted as operation 0xff and completes as operation 0xff: the provider's table lacks it",
    right: "operation 2, as the kernel driver posts it, and a completion of a SEND",
};

/// Fetch and add.
pub static FETCH_ADD: Exception = Exception {
    name: "fetch-add-compare",
    fault: "the compare field of a fetch and add keeps what an earlier WQE left there",
    right: "zero, as the kernel driver has it",
};

/// Operations that the provider lacks.
pub static NO_LOCAL_OPERATIONS: Exception = Exception {
    name: "no-local-operations",
    fault: "LOCAL_INV and BIND_MW are refused, although the device has them",
    right: "they are posted, without a packet and without a retransmit entry, as the kernel driver does",
};

/// What a refused request leaves.
pub static REFUSED_LEAVES_BYTES: Exception = Exception {
    name: "refused-leaves-bytes",
    fault: "a request that is refused late has been written, in part, into the free slots",
    right: "a request that is refused writes nothing; the device reads no free slot, so nothing follows from it",
};

/// Message of 2 GiB.
pub static TWO_GIGABYTES: Exception = Exception {
    name: "two-gigabytes",
    fault: "a message of just 2 GiB is refused: its length becomes a negative int",
    right: "2 GiB is the longest message (InfiniBand specification, 9.4)",
};

/// Lengths that overflow.
pub static LENGTH_WRAPS: Exception = Exception {
    name: "length-wraps",
    fault: "a message of more than 4 GiB is posted with its length modulo 2^32",
    right: "it is refused: it is longer than the longest message",
};

/// Requests that no device can carry out.
pub static UNCHECKED: Exception = Exception {
    name: "unchecked",
    fault: "a READ with inline data, an atomic without just one SGE of 8 bytes, and an operation that the kind of queue \
            pair lacks are posted",
    right: "they are refused: the device would fail the queue pair, or read and write other memory than was asked for",
};

/// Reset.
pub static RESET_KEEPS: Exception = Exception {
    name: "reset-keeps",
    fault: "after a reset the doorbell epoch and the message number go on from where they were",
    right: "a queue pair that was reset begins like a new one: epoch 0, message 0 (kernel driver: the queues are initialized)",
};

/// Immediate event of a limit.
pub static SRQ_ARM_LATE: Exception = Exception {
    name: "srq-arm-late",
    fault: "the limit of a shared receive queue is armed only by a later post, with a doorbell of its own in the middle of \
            the list",
    right: "it is armed at once (kernel: modify_srq rings SRQ_ARM)",
};

/// Key that the peer invalidated.
pub static NO_INVALIDATED: Exception = Exception {
    name: "no-invalidated",
    fault: "the completion of a SEND that invalidated a key says neither so nor which",
    right: "flag WITH_INV and the key, as the kernel driver reports them",
};

/// Mask of the source queue pair.
pub static UD_SOURCE: Exception = Exception {
    name: "ud-source",
    fault: "of bits 16 to 23 of a datagram's source queue pair only two survive: the shift is used as mask",
    right: "all 24 bits",
};

/// Earlier requests of an error CQE.
pub static ERROR_BLAMES_OLDEST: Exception = Exception {
    name: "error-blames-oldest",
    fault: "an error CQE fails the oldest outstanding request, whichever it names",
    right: "requests before the one named have succeeded, and complete first (kernel: bnxt_qplib_cq_process_req)",
};

/// Tag of a receive CQE.
pub static TAG_UNCHECKED: Exception = Exception {
    name: "tag-unchecked",
    fault: "a receive CQE completes the oldest request, whichever it names",
    right: "a CQE that names another request is reported as a fault of the device",
};

/// Acknowledgement of a resize.
pub static RESIZE_ACK: Exception = Exception {
    name: "resize-ack",
    fault: "with deferred doorbells, a wrap that no doorbell has announced is forgotten at a resize, so that the device may \
            take the acknowledgement for a step back, and drop it",
    right: "the consumer index is announced before the acknowledgement",
};

/// Count of deferred doorbells.
pub static RESIZE_KEEPS_COUNT: Exception = Exception {
    name: "resize-keeps-count",
    fault: "completions consumed from the old memory still count for the next doorbell after a resize, which comes early",
    right: "the acknowledgement has announced the consumer index, so the count begins anew; harmless",
};

/// Deferral of doorbells during a resize.
pub static RESIZE_EARLY: Exception = Exception {
    name: "resize-early",
    fault: "whether consumer doorbells are deferred changes before the old memory is read to its end",
    right: "the old memory keeps its rule: only a ring of twice the size may be left unannounced",
};

/// Deferral of doorbells after a resize that failed.
pub static RESIZE_FAILED: Exception = Exception {
    name: "resize-failed",
    fault: "a resize that fails changes whether consumer doorbells are deferred",
    right: "a resize that fails changes nothing",
};

/// Abort of the builder functions.
pub static ABORT_KEEPS: Exception = Exception {
    name: "abort-keeps",
    fault: "ibv_wr_abort takes back neither packet numbers nor the message number",
    right: "an aborted batch leaves no trace",
};

/// Datagrams of the builder functions.
pub static BUILDER_UD: Exception = Exception {
    name: "builder-ud",
    fault: "the builder functions add length and queue key of a datagram to what an earlier WQE left there",
    right: "they replace it, as ibv_post_send does",
};

/// Retransmit entries of the builder functions.
pub static BUILDER_START: Exception = Exception {
    name: "builder-start",
    fault: "every request of a builder batch has the batch's first slot in its retransmit entry",
    right: "its own slot, as with ibv_post_send; a retransmission would begin with the wrong request",
};

/// Room that the builder functions ask for.
pub static BUILDER_ROOM: Exception = Exception {
    name: "builder-room",
    fault: "when the builder functions ask whether there is room they leave something out (the header, single inline data, \
            the 8 slots of static mode), and post into the reserve",
    right: "a WQE is posted only if all its slots are free",
};

/// Errors of the builder functions.
pub static BUILDER_STICKY: Exception = Exception {
    name: "builder-sticky",
    fault: "once a batch of the builder functions has failed, all later ones do: the error is never cleared",
    right: "a batch that does not fit leaves no trace",
};

/// Sizes: six SGEs.
pub static STATIC_SGES: Exception = Exception {
    name: "static-sges",
    fault: "static mode takes more SGEs and inline bytes than a WQE of 128 bytes holds, and writes into the next one",
    right: "6 SGEs, 96 inline bytes",
};

/// Sizes: receive queue of no requests.
pub static EMPTY_RECV_QUEUE: Exception = Exception {
    name: "empty-recv-queue",
    fault: "a queue pair that asks for no receive requests gets a receive queue that holds none",
    right: "it has none",
};

/// Sizes: receive queue of no SGEs.
pub static RECV_WITHOUT_SGE: Exception = Exception {
    name: "recv-without-sge",
    fault: "in variable mode, receive WQEs without SGEs have no room for the one of length zero that is written",
    right: "there is room for one",
};

/// Sizes: slots of the send queue.
pub static TOO_MANY_SLOTS: Exception = Exception {
    name: "too-many-slots",
    fault: "send queues of more than 65536 slots are asked for, whose slot numbers do not fit the retransmit entry",
    right: "they are refused (kernel: sq_slots up to 65536)",
};

/// Sizes: SGEs of a shared receive queue.
pub static SRQ_SGES: Exception = Exception {
    name: "srq-sges",
    fault: "a shared receive queue takes more SGEs than an entry of 128 bytes holds, and writes into the next one",
    right: "6 SGEs",
};

/// All of them.
pub static ALL: &[&Exception] = &[
    &SEND_INV,
    &FETCH_ADD,
    &NO_LOCAL_OPERATIONS,
    &REFUSED_LEAVES_BYTES,
    &TWO_GIGABYTES,
    &LENGTH_WRAPS,
    &UNCHECKED,
    &RESET_KEEPS,
    &SRQ_ARM_LATE,
    &NO_INVALIDATED,
    &UD_SOURCE,
    &ERROR_BLAMES_OLDEST,
    &TAG_UNCHECKED,
    &RESIZE_ACK,
    &RESIZE_KEEPS_COUNT,
    &RESIZE_EARLY,
    &RESIZE_FAILED,
    &ABORT_KEEPS,
    &BUILDER_UD,
    &BUILDER_START,
    &BUILDER_ROOM,
    &BUILDER_STICKY,
    &STATIC_SGES,
    &EMPTY_RECV_QUEUE,
    &RECV_WITHOUT_SGE,
    &TOO_MANY_SLOTS,
    &SRQ_SGES,
];
