//! `dv layout decode`: bytes to named fields, impossible values marked.

use std::fmt::Write as _;

use directverbs::bnxt_re::{cqe as bnxt_cqe, wqe::WqeType};
use directverbs::ionic::{cqe as ionic_cqe, wqe::RdmaVersion, wqe::SpecFormat, wqe::SqOp};
use directverbs::layout::{ByteOrder, Field, Layout};

use super::words;

/// Family, structures (none named: all), field or bit field, and whether it can have a value in a structure of bytes.
type Values = (&'static str, &'static [&'static str], &'static str, fn(u64, &[u8]) -> bool);

/// Fields of which only some values exist, or only some in that structure.
const VALUES: &[Values] = &[
    ("bnxt_re", &["SqSendHdr"], "wqe_type", |v, _| {
        among(v, &[WqeType::SEND.0, WqeType::SEND_IMM.0, WqeType::SEND_INV.0])
    }),
    ("bnxt_re", &["SqRawHdr"], "wqe_type", |v, _| among(v, &[WqeType::SEND.0])),
    ("bnxt_re", &["SqRdmaHdr"], "wqe_type", |v, _| {
        among(v, &[WqeType::WRITE.0, WqeType::WRITE_IMM.0, WqeType::READ.0])
    }),
    ("bnxt_re", &["SqAtomicHdr"], "wqe_type", |v, _| among(v, &[WqeType::ATOMIC_CS.0, WqeType::ATOMIC_FA.0])),
    ("bnxt_re", &["SqLocalInvalidate"], "wqe_type", |v, _| among(v, &[WqeType::LOCAL_INV.0])),
    ("bnxt_re", &["SqFrPmr"], "wqe_type", |v, _| among(v, &[WqeType::FR_PMR.0])),
    ("bnxt_re", &["SqBind"], "wqe_type", |v, _| among(v, &[WqeType::BIND.0])),
    ("bnxt_re", &["RqWqeHdr"], "wqe_type", |v, _| among(v, &[WqeType::RECV.0])),
    ("bnxt_re", &["SqBase"], "wqe_type", |v, _| matches!(v, 0..=2 | 4..=6 | 8 | 0xb..=0xe | 0x80)),
    ("bnxt_re", &["CqReq"], "cqe_type", |v, _| among(v, &[bnxt_cqe::CqeType::REQ.0])),
    ("bnxt_re", &["CqResRc"], "cqe_type", |v, _| among(v, &[bnxt_cqe::CqeType::RES_RC.0])),
    ("bnxt_re", &["CqResUd"], "cqe_type", |v, _| among(v, &[bnxt_cqe::CqeType::RES_UD.0])),
    ("bnxt_re", &["CqResRawEthQp1"], "cqe_type", |v, _| among(v, &[bnxt_cqe::CqeType::RES_RAWETH_QP1.0])),
    ("bnxt_re", &["CqTerminal"], "cqe_type", |v, _| among(v, &[bnxt_cqe::CqeType::TERMINAL.0])),
    ("bnxt_re", &["CqCutoff"], "cqe_type", |v, _| among(v, &[bnxt_cqe::CqeType::CUT_OFF.0])),
    ("bnxt_re", &["CqBase"], "cqe_type", |v, _| matches!(v, 0..=3 | 0xd..=0xf)),
    ("bnxt_re", &["CqReq"], "status", |v, _| v <= bnxt_cqe::ReqStatus::WORK_REQUEST_FLUSHED_ERR.0.into()),
    ("bnxt_re", &["CqResRc", "CqResUd", "CqResRawEthQp1"], "status", |v, _| {
        v <= bnxt_cqe::ResStatus::HW_FLUSH_ERR.0.into()
    }),
    ("bnxt_re", &["NqCn"], "nqe_type", |v, _| v == 0x30),
    ("bnxt_re", &["NqSrqEvent"], "nqe_type", |v, _| v == 0x32),
    ("bnxt_re", &["NqDbqEvent"], "nqe_type", |v, _| v == 0x34),
    ("bnxt_re", &["NqBase"], "nqe_type", |v, _| matches!(v, 0x30 | 0x32 | 0x34 | 0x38 | 0x3a)),
    ("bnxt_re", &["DbcPush"], "db_type", |v, _| matches!(v, 0xc | 0xd)),
    ("bnxt_re", &["DbcDbc"], "db_type", |v, _| matches!(v, 0..=0xb | 0xe | 0xf)),
    ("bnxt_re", &["DbcDbc", "DbcPush"], "path", |v, _| v <= 2),
    ("ionic", &["SendWqe"], "op", |v, _| op(v, &[SqOp::Send, SqOp::SendInv, SqOp::SendImm])),
    ("ionic", &["RdmaWqe"], "op", |v, _| op(v, &[SqOp::Read, SqOp::Write, SqOp::WriteImm])),
    ("ionic", &["AtomicWqeV1", "AtomicWqeV2"], "op", |v, _| op(v, &[SqOp::CompareSwap, SqOp::FetchAdd])),
    ("ionic", &["RegMrWqe"], "op", |v, _| op(v, &[SqOp::RegMr])),
    ("ionic", &["BindMwWqe"], "op", |v, _| op(v, &[SqOp::BindMw])),
    ("ionic", &["RecvWqe"], "op", |v, _| v == 0),
    ("ionic", &["BaseHeader"], "op", |v, _| op(v, &SqOp::ALL)),
    ("ionic", &[], "spec", |v, _| u8::try_from(v).is_ok_and(|v| SpecFormat::from_bits(v).is_some())),
    ("ionic", &["AdminCqe"], "cqe_type", |v, _| among(v, &[ionic_cqe::CqeType::ADMIN.0])),
    ("ionic", &["RecvCqe"], "cqe_type", |v, _| {
        among(v, &[ionic_cqe::CqeType::RECV.0, ionic_cqe::CqeType::RECV_INDIR.0])
    }),
    ("ionic", &["SendCqe"], "cqe_type", |v, _| {
        among(v, &[ionic_cqe::CqeType::SEND_MSN.0, ionic_cqe::CqeType::SEND_NPG.0])
    }),
    ("ionic", &["RecvCqe", "SendCqe"], "status_length", |v, cqe| {
        !with_error(cqe) || (1..=ionic_cqe::Status::LOCAL_SGL_INV.0.into()).contains(&v)
    }),
];

fn among(value: u64, codes: &[u8]) -> bool {
    codes.iter().any(|code| u64::from(*code) == value)
}

/// The opcode is one of `ops`, in either version.
fn op(value: u64, ops: &[SqOp]) -> bool {
    let has = |version| ops.iter().any(|op| u64::from(op.opcode(version)) == value);
    has(RdmaVersion::V1) || has(RdmaVersion::V2)
}

/// An ionic CQE whose last word says that it has a status in place of a length.
fn with_error(cqe: &[u8]) -> bool {
    let word = cqe.get(ionic_cqe::QTF_OFFSET..).and_then(|rest| rest.first_chunk::<4>());
    word.is_some_and(|word| ionic_cqe::QidTypeFlags::from_bits(u32::from_be_bytes(*word)).error())
}

/// One structure after the other.
///
/// # Errors
/// The bytes are no whole number of structures.
pub fn text(layout: &Layout, bytes: &[u8]) -> Result<String, String> {
    let (size, length) = (layout.size, bytes.len());
    if length < size {
        return Err(format!("{} has {size} bytes, the dump only {length}", layout.name));
    }
    if !length.is_multiple_of(size) {
        return Err(format!(
            "{} has {size} bytes, the dump {length}: {} are left over",
            layout.name,
            length % size
        ));
    }
    let mut out = String::new();
    for (i, record) in bytes.chunks(size).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "{} at byte {}", layout.name, i * size);
        for field in layout.fields {
            one(layout, field, record, &mut out);
        }
    }
    Ok(out)
}

fn one(layout: &Layout, field: &Field, record: &[u8], out: &mut String) {
    let bytes = record.get(field.offset..field.offset + field.size).unwrap_or_default();
    let element = words::element(field);
    let single = element == field.size && field.size <= 8;
    let word = words::value(bytes.get(..8).unwrap_or(bytes), field.order);
    let shown = match field.order {
        ByteOrder::Bytes if !single => {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        }
        _ => {
            let values = bytes.chunks(element).map(|part| words::value(part, field.order));
            let values: Vec<_> = values.map(|v| format!("{v:#0width$x}", width = 2 + 2 * element)).collect();
            values.join(" ")
        }
    };
    let whole = if field.bits.is_empty() { mark(layout, field.name, (word, bytes), record) } else { "" };
    let _ = writeln!(out, "  {:<4} {:<28} {shown}{}{whole}", field.offset, field.name, decimal(single, word));
    for bits in field.bits {
        let value = words::part(word, bits);
        if bits.name == "__" && value == 0 {
            continue;
        }
        let name = if bits.name == "__" { "(reserved)" } else { bits.name };
        let wrong = mark(layout, bits.name, (value, &value.to_le_bytes()), record);
        let _ = writeln!(out, "         {name:<26} {value:#x}{}{wrong}", decimal(true, value));
    }
}

/// The same in decimal where that differs.
fn decimal(single: bool, value: u64) -> String {
    if single && value > 9 { format!(" ({value})") } else { String::new() }
}

/// What is wrong with a value and its bytes in a structure.
fn mark(layout: &Layout, name: &str, (value, bytes): (u64, &[u8]), record: &[u8]) -> &'static str {
    if words::reserved(name) {
        return if bytes.iter().any(|byte| *byte != 0) { "  ! reserved, not zero" } else { "" };
    }
    let rule = VALUES.iter().find(|(family, structures, field, _)| {
        *family == layout.family
            && *field == name
            && (structures.is_empty() || structures.contains(&layout.name))
    });
    match rule {
        Some((.., possible)) if !possible(value, record) => "  ! impossible: no such value here",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use directverbs::layout;
    use directverbs::{bnxt_re, ionic};
    use zerocopy::IntoBytes;

    use super::*;

    #[test]
    fn every_rule_is_about_a_field_that_exists() {
        for (family, structures, name, _) in VALUES {
            let has = |l: &&Layout| {
                l.family == *family
                    && l.fields
                        .iter()
                        .any(|f| f.name == *name || f.bits.iter().any(|bits| bits.name == *name))
            };
            let found: Vec<_> = layout::all().filter(has).map(|l| l.name).collect();
            assert!(
                !found.is_empty() && structures.iter().all(|s| found.contains(s)),
                "{structures:?} {name}"
            );
        }
    }

    fn marks(layout: &Layout, bytes: &[u8]) -> Vec<String> {
        let text = text(layout, bytes).unwrap();
        let marked = text.lines().filter(|line| line.contains('!'));
        marked
            .map(|line| line.split_whitespace().find(|w| w.parse::<u32>().is_err()).unwrap().to_owned())
            .collect()
    }

    #[test]
    fn what_the_driver_writes_has_no_mark_and_a_status_only_counts_with_the_error_bit() {
        let ionic = |status: u32, error| {
            let word = ionic_cqe::QidTypeFlags::new().with_error(error).with_cqe_type(1).with_qid(7);
            ionic_cqe::RecvCqe {
                status_length: status.into(),
                qid_type_flags: word.into_bits().into(),
                ..ionic_cqe::RecvCqe::ZERO
            }
        };
        let recv = &ionic_cqe::RecvCqe::LAYOUT;
        assert_eq!(marks(recv, ionic(4096, false).as_bytes()), [""; 0]);
        assert_eq!(marks(recv, ionic(4, true).as_bytes()), [""; 0]);
        assert_eq!(marks(recv, ionic(4096, true).as_bytes()), ["status_length"]);
        assert_eq!(marks(&ionic_cqe::SendCqe::LAYOUT, ionic(0, false).as_bytes()), ["cqe_type"]);
        assert_eq!(marks(&ionic::wqe::RdmaWqe::LAYOUT, ionic::wqe::RdmaWqe::ZERO.as_bytes()), ["op"]);
        let read = bnxt_re::wqe::SqRdmaHdr { wqe_type: WqeType::READ.0, ..bnxt_re::wqe::SqRdmaHdr::ZERO };
        assert_eq!(marks(&bnxt_re::wqe::SqRdmaHdr::LAYOUT, read.as_bytes()), [""; 0]);
        assert_eq!(marks(&bnxt_re::wqe::SqSendHdr::LAYOUT, read.as_bytes()), ["wqe_type"]);
    }

    #[test]
    fn several_structures_are_decoded_one_after_the_other_but_no_part_of_one() {
        let sge = &bnxt_re::wqe::SqSge::LAYOUT;
        assert!(text(sge, &[0; 32]).unwrap().contains("SqSge at byte 16\n"));
        assert_eq!(text(sge, &[0; 15]).unwrap_err(), "SqSge has 16 bytes, the dump only 15");
        assert!(text(sge, &[0; 33]).unwrap_err().ends_with("1 are left over"));
    }
}
