//! Methods of bnxt_re's own objects.

use super::{Attr, Method, ObjectKind};
use crate::profile::Release;
use crate::{bnxt_re, session};

const ALLOC_PAGE: u16 = 0x1000;
const NOTIFY: u16 = 0x1001;
const TOGGLE: u16 = 0x1002;
const DBR: u16 = 0x1003;
const DEFAULT_DBR: u16 = 0x1004;

/// Attributes that the driver adds to QP_CREATE.
const QP_CREATE: &[Attr] = &[Attr::handle(0x1002, ObjectKind::Dbr).optional().since(Release::V7_2)];

/// What the driver adds to a method of the core.
pub const fn added(object: u16, method: u16) -> &'static [Attr] {
    match (object, method) {
        (4, 0) => QP_CREATE,
        _ => &[],
    }
}

pub const METHODS: &[Method] = &[
    Method::new(
        ALLOC_PAGE,
        0x1000,
        "ALLOC_PAGE",
        &[
            Attr::made(ObjectKind::Page, 0x1000),
            Attr::constant(0x1001),
            Attr::out(0x1002, 4),
            Attr::out(0x1003, 8),
            Attr::out(0x1004, 4),
        ],
        bnxt_re::alloc_page,
    ),
    Method::new(
        ALLOC_PAGE,
        0x1001,
        "DESTROY_PAGE",
        &[Attr::destroyed(ObjectKind::Page, 0x1000)],
        session::nothing_more,
    ),
    Method::new(NOTIFY, 0x1000, "NOTIFY_DRV", &[], bnxt_re::notify),
    Method::new(
        TOGGLE,
        0x1000,
        "GET_TOGGLE_MEM",
        &[
            Attr::made(ObjectKind::Toggle, 0x1000),
            Attr::constant(0x1001).optional_since(Release::V7_3),
            Attr::value(0x1002, 4).optional_since(Release::V7_3),
            Attr::out(0x1003, 8),
            Attr::out(0x1004, 4),
            Attr::out(0x1005, 4),
            Attr::handle(0x1006, ObjectKind::Cq).optional().since(Release::V7_3),
            Attr::handle(0x1007, ObjectKind::Srq).optional().since(Release::V7_3),
        ],
        bnxt_re::get_toggle,
    ),
    Method::new(
        TOGGLE,
        0x1001,
        "RELEASE_TOGGLE_MEM",
        &[Attr::destroyed(ObjectKind::Toggle, 0x1000)],
        session::nothing_more,
    ),
    Method::new(
        DBR,
        0x1000,
        "DBR_ALLOC",
        &[Attr::made(ObjectKind::Dbr, 0x1000), Attr::out(0x1001, 16), Attr::out(0x1002, 8)],
        bnxt_re::alloc_dbr,
    )
    .since(Release::V7_2),
    Method::new(DBR, 0x1001, "DBR_FREE", &[Attr::destroyed(ObjectKind::Dbr, 0x1000)], session::nothing_more)
        .since(Release::V7_2),
    Method::new(DEFAULT_DBR, 0x1002, "GET_DEFAULT_DBR", &[Attr::out(0x1000, 16)], bnxt_re::default_dbr)
        .since(Release::V7_2),
];
