//! Methods of the core's objects.

use super::{ANY_OUT, Access, Attr, FileKind, Kind, Method, ObjectKind, UHW};
use crate::profile::Release;
use crate::{methods, session};

const DEVICE: u16 = 0;
const PD: u16 = 1;
const CQ: u16 = 3;
const QP: u16 = 4;
const SRQ: u16 = 5;
const AH: u16 = 6;
const MR: u16 = 7;
const MW: u16 = 8;
const ASYNC_EVENT: u16 = 16;

/// `ib_uverbs_buffer_desc`.
const fn buffer(id: u16, since: Release) -> Attr {
    Attr::value(id, 32).optional().since(since)
}

pub const METHODS: &[Method] = &[
    Method {
        without_context: true,
        ..Method::new(
            DEVICE,
            0,
            "INVOKE_WRITE",
            &[
                Attr::new(0, Kind::In { min: 4, len: u16::MAX, tail: false }).optional(),
                Attr::new(1, ANY_OUT).optional(),
                Attr::constant(2),
                UHW[0],
                UHW[1],
            ],
            methods::invoke_write,
        )
    },
    Method::new(
        DEVICE,
        2,
        "QUERY_PORT",
        // A byte that is given as a number.
        &[Attr::constant(0), Attr::growing_out(1, 44, 48)],
        methods::query_port,
    ),
    Method {
        without_context: true,
        ..Method::new(
            DEVICE,
            3,
            "GET_CONTEXT",
            &[
                Attr::out(0, 4).optional(),
                Attr::out(1, 8).optional(),
                Attr::value(2, 4).optional().since(Release::V7_2),
                UHW[0],
                UHW[1],
            ],
            methods::get_context,
        )
    },
    Method::new(
        DEVICE,
        4,
        "QUERY_CONTEXT",
        &[Attr::out(0, 4).optional(), Attr::out(1, 8).optional()],
        methods::query_context,
    ),
    Method::new(
        DEVICE,
        5,
        "QUERY_GID_TABLE",
        &[Attr::constant(0), Attr::flags(1), Attr::new(2, ANY_OUT), Attr::out(3, 8)],
        methods::query_gid_table,
    ),
    Method::new(
        DEVICE,
        6,
        "QUERY_GID_ENTRY",
        &[Attr::constant(0), Attr::constant(1), Attr::flags(2), Attr::growing_out(3, 32, 32)],
        methods::query_gid_entry,
    ),
    Method::new(PD, 0, "PD_DESTROY", &[Attr::destroyed(ObjectKind::Pd, 0)], session::nothing_more),
    Method::new(
        CQ,
        0,
        "CQ_CREATE",
        &[
            Attr::made(ObjectKind::Cq, 0),
            Attr::value(1, 4),
            Attr::value(2, 8),
            Attr::file(3, FileKind::Channel).optional(),
            Attr::value(4, 4),
            Attr::flags(5),
            Attr::out(6, 4),
            Attr::file(7, FileKind::AsyncEvents).optional(),
            Attr::value(8, 8).optional().since(Release::V7_2),
            Attr::value(9, 8).optional().since(Release::V7_2),
            Attr::new(10, Kind::RawFile).optional().since(Release::V7_2),
            Attr::value(11, 8).optional().since(Release::V7_2),
            buffer(12, Release::V7_2),
            UHW[0],
            UHW[1],
        ],
        methods::create_cq,
    ),
    Method::new(
        CQ,
        1,
        "CQ_DESTROY",
        &[Attr::destroyed(ObjectKind::Cq, 0), Attr::out(1, 8)],
        methods::destroy_cq,
    ),
    Method::new(
        QP,
        0,
        "QP_CREATE",
        &[
            Attr::made(ObjectKind::Qp, 0),
            Attr::handle(1, ObjectKind::Xrcd).optional(),
            Attr::handle(2, ObjectKind::Pd).optional(),
            Attr::handle(3, ObjectKind::Srq).optional(),
            Attr::handle(4, ObjectKind::Cq).optional(),
            Attr::handle(5, ObjectKind::Cq).optional(),
            Attr::handle(6, ObjectKind::RwqIndTable).optional(),
            Attr::value(7, 8),
            Attr::growing(8, 20),
            Attr::constant(9),
            Attr::flags(10),
            Attr::value(11, 4).optional(),
            Attr::file(12, FileKind::AsyncEvents).optional(),
            Attr::growing_out(13, 20, 20),
            Attr::out(14, 4),
            buffer(15, Release::V7_2),
            buffer(16, Release::V7_2),
            buffer(17, Release::V7_2),
            UHW[0],
            UHW[1],
        ],
        methods::create_qp,
    ),
    Method::new(
        QP,
        1,
        "QP_DESTROY",
        &[Attr::destroyed(ObjectKind::Qp, 0), Attr::out(1, 4)],
        methods::destroy_counted,
    ),
    Method::new(
        SRQ,
        0,
        "SRQ_CREATE",
        &[
            Attr::made(ObjectKind::Srq, 0),
            Attr::handle(1, ObjectKind::Pd),
            Attr::handle(2, ObjectKind::Xrcd).optional(),
            Attr::handle(3, ObjectKind::Cq).optional(),
            Attr::value(4, 8),
            Attr::value(5, 4),
            Attr::value(6, 4),
            Attr::value(7, 4),
            Attr::value(8, 4).optional(),
            Attr::constant(9),
            Attr::file(10, FileKind::AsyncEvents).optional(),
            Attr::out(11, 4),
            Attr::out(12, 4),
            Attr::out(13, 4).optional(),
            buffer(14, Release::V7_3),
            UHW[0],
            UHW[1],
        ],
        methods::create_srq,
    ),
    Method::new(
        SRQ,
        1,
        "SRQ_DESTROY",
        &[Attr::destroyed(ObjectKind::Srq, 0), Attr::out(1, 4)],
        methods::destroy_counted,
    ),
    Method::new(AH, 0, "AH_DESTROY", &[Attr::destroyed(ObjectKind::Ah, 0)], session::nothing_more),
    Method::new(MR, 1, "MR_DESTROY", &[Attr::destroyed(ObjectKind::Mr, 0)], session::nothing_more),
    Method::new(
        MR,
        4,
        "REG_DMABUF_MR",
        &[
            Attr::made(ObjectKind::Mr, 0),
            Attr::handle(1, ObjectKind::Pd),
            Attr::value(2, 8),
            Attr::value(3, 8),
            Attr::value(4, 8),
            // A value, unlike descriptors elsewhere.
            Attr::value(5, 4),
            Attr::flags(6).required(),
            Attr::out(7, 4),
            Attr::out(8, 4),
        ],
        methods::reg_dmabuf_mr,
    ),
    Method::new(
        MR,
        5,
        "REG_MR",
        &[
            Attr::made(ObjectKind::Mr, 0),
            Attr::handle(1, ObjectKind::Pd),
            Attr::handle(2, ObjectKind::Dmah).optional(),
            Attr::value(3, 8),
            Attr::value(4, 8).optional(),
            Attr::value(5, 8),
            Attr::flags(6).required(),
            Attr::new(7, Kind::RawFile).optional(),
            Attr::value(8, 8).optional(),
            Attr::out(9, 4),
            Attr::out(10, 4),
        ],
        methods::reg_mr,
    )
    .since(Release::V7_2),
    Method::new(MW, 0, "MW_DESTROY", &[Attr::destroyed(ObjectKind::Mw, 0)], session::nothing_more),
    Method::new(
        ASYNC_EVENT,
        0,
        "ASYNC_EVENT_ALLOC",
        &[Attr::new(0, Kind::File(FileKind::AsyncEvents, Access::New))],
        session::nothing_more,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique() {
        for (i, one) in METHODS.iter().enumerate() {
            let same = |other: &Method| (other.object, other.method) == (one.object, one.method);
            assert_eq!(METHODS.iter().position(same), Some(i), "{}", one.name);
            for (i, attr) in one.attrs.iter().enumerate() {
                assert_eq!(one.attrs.iter().position(|a| a.id == attr.id), Some(i), "{}", one.name);
            }
        }
    }

    #[test]
    fn any_length_is_any() {
        assert_eq!(super::super::ANY_IN, UHW[0].kind);
    }
}
