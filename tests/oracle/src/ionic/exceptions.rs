//! Known faults of libionic 65.

use crate::case::Exception;

/// A refused request has been written in part.
pub(super) static REFUSED_REQUEST_IS_WRITTEN: Exception = Exception {
    name: "ionic-refused-request-is-written",
    fault: "clears and partly fills the free entry before it refuses a request",
    right: "a refused request writes nothing; the entry is free, so the device does not look",
};

/// The builder functions do not look whether the queue is full.
pub(super) static BUILDER_OVERRUNS: Exception = Exception {
    name: "ionic-builder-overruns-full-queue",
    fault: "ibv_wr_* calls on a full queue overwrite requests that the device has not carried out",
    right: "an error, and nothing overwritten, as ibv_post_send does",
};

/// Giving up leaves entries.
pub(super) static ABORT_LEAVES_ENTRIES: Exception = Exception {
    name: "ionic-abort-leaves-entries",
    fault: "ibv_wr_abort leaves whole WQEs of the current color behind the producer, where the device may look ahead",
    right: "the color of what was given up is taken back",
};

/// Giving up does not take back the message numbers.
pub(super) static ABORT_KEEPS_MESSAGE_NUMBERS: Exception = Exception {
    name: "ionic-abort-keeps-message-numbers",
    fault: "ibv_wr_abort takes back the producer, not the message numbers: later requests complete too early",
    right: "message numbers are those of the requests that the device was told of",
};

/// Neither giving up nor a reset takes back the color.
pub(super) static COLOR_IS_KEPT: Exception = Exception {
    name: "ionic-color-is-kept",
    fault: "after ibv_wr_abort over the end of the ring, and after a reset, the color is that of another pass",
    right: "1 in the first pass, and what goes with the producer",
};

/// A reset does not clear the rings.
pub(super) static RESET_LEAVES_ENTRIES: Exception = Exception {
    name: "ionic-reset-leaves-entries",
    fault: "a reset leaves the WQEs of before in the rings, with colors that the next pass has again",
    right: "the rings are as if new",
};

/// Version 1: an atomic covers the express doorbell.
pub(super) static ATOMIC_OVER_EXPRESS_DOORBELL: Exception = Exception {
    name: "ionic-v1-atomic-over-express-doorbell",
    fault: "an atomic of version 1 in a 64-byte WQE overwrites the express doorbell with its SGE",
    right: "refused: the doorbell word would be garbage, now and in every later pass",
};

/// Lengths of atomics.
pub(super) static ATOMIC_LENGTH_IS_STALE: Exception = Exception {
    name: "ionic-atomic-length-is-stale",
    fault: "the completion of an atomic tells the length of an earlier request in the same entry, or 0",
    right: "8 bytes",
};

/// A bad CQE is never passed.
pub(super) static BAD_CQE_STAYS: Exception = Exception {
    name: "ionic-bad-cqe-stays",
    fault: "a CQE of an unknown type, or of a request that is not outstanding, fails every later poll too",
    right: "it is told once, and skipped",
};

/// A CQE of an unknown queue pair is not told.
pub(super) static UNKNOWN_QP_IS_NOT_TOLD: Exception = Exception {
    name: "ionic-unknown-qp-is-not-told",
    fault: "a CQE of a queue pair that does not exist is skipped without a word",
    right: "the poller is told of the fault",
};

/// A CQE without a request is not told.
pub(super) static SENSELESS_CQE_IS_NOT_TOLD: Exception = Exception {
    name: "ionic-senseless-cqe-is-not-told",
    fault: "an indirect receive, or a position that is not outstanding, is skipped without a word",
    right: "the poller is told of the fault",
};

/// Message numbers are compared modulo the depth.
pub(super) static MESSAGE_MODULO_DEPTH: Exception = Exception {
    name: "ionic-message-number-modulo-depth",
    fault: "compares message numbers modulo the depth: a stale or wild number completes requests",
    right: "they have 24 bits; a number outside what is outstanding is a fault",
};

/// A receive is looked up through a list that has moved on.
pub(super) static RECEIVE_TWICE: Exception = Exception {
    name: "ionic-receive-twice",
    fault: "a second CQE for a receive that is done completes another one, which took over its record",
    right: "the poller is told of the fault",
};

/// CQEs on the ring of the other pipeline.
pub(super) static WRONG_RING: Exception = Exception {
    name: "ionic-cqe-in-the-wrong-ring",
    fault: "a CQE is carried out also if the queue pair does not complete to the ring it is in",
    right: "the poller is told of the fault",
};

/// Flushes are lost when the array is full.
pub(super) static FLUSH_IS_LOST: Exception = Exception {
    name: "ionic-flush-is-lost-when-array-is-full",
    fault: "when a poll fills its array and no CQE is left, it forgets that there is something to flush",
    right: "it is flushed with the next poll",
};

/// Flushed receives are looked up by the wrong index.
pub(super) static RECV_FLUSH_BY_RING_INDEX: Exception = Exception {
    name: "ionic-receive-flush-by-ring-index",
    fault: "takes the ring index for the index of a record: once receives have completed, flushed ones have wrong \
            numbers, or are lost",
    right: "each outstanding receive is flushed once, in order, with its own number",
};

/// Flushed requests do not give credit back.
pub(super) static FLUSH_KEEPS_CREDIT: Exception = Exception {
    name: "ionic-flush-keeps-credit",
    fault: "requests that are flushed or reset never give back their credit, so that in the end the consumer doorbell \
            is rung with every poll",
    right: "the device completes them no more: their credit comes back",
};

/// Timestamps go to wrong requests.
pub(super) static TIMESTAMP_BY_MESSAGE_NUMBER: Exception = Exception {
    name: "ionic-timestamp-by-message-number",
    fault: "takes message numbers for ring indices when it notes timestamps: wrong once there was a local operation",
    right: "a message's timestamp goes to the request that sent it",
};

/// Depths that the device does not have.
pub(super) static TOO_DEEP: Exception = Exception {
    name: "ionic-queue-too-deep",
    fault: "asks for rings of 65536 entries when more than 32767 requests are asked for; with express doorbells it writes \
            them behind the ring without end",
    right: "one entry stays free and the device's rings have at most 32768: refused",
};

/// WQEs that the device does not have.
pub(super) static TOO_WIDE: Exception = Exception {
    name: "ionic-wqe-too-wide",
    fault: "asks for WQEs wider than the device's limit when a list of lengths or an express doorbell is added",
    right: "refused",
};

/// Required express doorbells are dropped.
pub(super) static EXPRESS_REQUIREMENT_IS_DROPPED: Exception = Exception {
    name: "ionic-express-requirement-is-dropped",
    fault: "goes without express doorbells that are required, when there are none for WQEs of this size",
    right: "refused: required is required",
};

/// All of them.
pub(super) static ALL: &[&Exception] = &[
    &REFUSED_REQUEST_IS_WRITTEN,
    &BUILDER_OVERRUNS,
    &ABORT_LEAVES_ENTRIES,
    &ABORT_KEEPS_MESSAGE_NUMBERS,
    &COLOR_IS_KEPT,
    &RESET_LEAVES_ENTRIES,
    &ATOMIC_OVER_EXPRESS_DOORBELL,
    &ATOMIC_LENGTH_IS_STALE,
    &BAD_CQE_STAYS,
    &UNKNOWN_QP_IS_NOT_TOLD,
    &SENSELESS_CQE_IS_NOT_TOLD,
    &MESSAGE_MODULO_DEPTH,
    &RECEIVE_TWICE,
    &WRONG_RING,
    &FLUSH_IS_LOST,
    &RECV_FLUSH_BY_RING_INDEX,
    &FLUSH_KEEPS_CREDIT,
    &TIMESTAMP_BY_MESSAGE_NUMBER,
    &TOO_DEEP,
    &TOO_WIDE,
    &EXPRESS_REQUIREMENT_IS_DROPPED,
];
