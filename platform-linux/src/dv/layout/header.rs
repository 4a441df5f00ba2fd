//! `dv layout header`: layouts and descriptions as a C11 header, for C, C++ and HIP or CUDA projects.

use std::fmt::Write as _;

use directverbs::description;
use directverbs::layout::{self, ByteOrder, Field, Layout};

use super::words;

const PROLOGUE: &str = "\
/* Layouts of the queues of bnxt_re and ionic RoCE devices. SPDX-License-Identifier: MIT OR Apache-2.0 */
/* dv_le* and dv_be* are little- and big-endian in memory, whatever the host is. */
#ifndef DIRECTVERBS_LAYOUT_H
#define DIRECTVERBS_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define _Static_assert static_assert
#endif

typedef uint16_t dv_le16;
typedef uint32_t dv_le32;
typedef uint64_t dv_le64;
typedef uint16_t dv_be16;
typedef uint32_t dv_be32;
typedef uint64_t dv_be64;
";

const EPILOGUE: &str = "
#ifdef __cplusplus
#undef _Static_assert
#endif

#endif /* DIRECTVERBS_LAYOUT_H */
";

/// The whole header.
pub fn header() -> String {
    let mut out = PROLOGUE.to_owned();
    for layout in layout::all() {
        structure(layout, " __attribute__((packed))", &mut out);
    }
    // Writing to a `String` does not fail.
    let _ = writeln!(out, "\n/* Descriptions of devices and queues, in the host's byte order. */");
    let _ = writeln!(out, "#define DV_DESCRIPTION_VERSION {}", description::VERSION);
    let _ = writeln!(out, "#define DV_DESCRIPTION_NONE {:#x}u", description::NONE);
    for description in description::all() {
        structure(description, "", &mut out);
    }
    out + EPILOGUE
}

fn structure(layout: &Layout, attribute: &str, out: &mut String) {
    let name = format!("dv_{}_{}", layout.family, snake(layout.name));
    let _ = writeln!(out, "\n/* {} */", comment(layout.doc));
    let _ = writeln!(out, "struct {name} {{");
    for field in layout.fields {
        let (kind, count) = c_type(field);
        let count = if count == 1 { String::new() } else { format!("[{count}]") };
        let _ = writeln!(out, "\t{kind} {}{count}; /* {} */", field.name, comment(field.doc));
    }
    let _ = writeln!(out, "}}{attribute};");
    let _ = writeln!(out, "_Static_assert(sizeof(struct {name}) == {}, \"size of {name}\");", layout.size);
    for field in layout.fields {
        let (place, size) = (field.offset, field.size);
        let member = field.name;
        let _ = writeln!(
            out,
            "_Static_assert(offsetof(struct {name}, {member}) == {place}, \"offset of {name}.{member}\");\n\
             _Static_assert(sizeof(((struct {name} *)0)->{member}) == {size}, \"size of {name}.{member}\");"
        );
    }
    for field in layout.fields {
        for bits in field.bits.iter().filter(|bits| bits.name != "__") {
            let constant = format!("{name}_{}_{}", field.name, bits.name).to_uppercase();
            let mask = words::mask(bits);
            let _ = writeln!(out, "#define {constant}_SHIFT {}", bits.shift);
            let _ = writeln!(out, "#define {constant}_MASK {mask:#x}ULL /* {} */", comment(bits.doc));
        }
    }
}

/// C type, and number of elements.
fn c_type(field: &Field) -> (String, usize) {
    match (field.order, words::element(field)) {
        (ByteOrder::Bytes, _) | (_, 1) => ("uint8_t".into(), field.size),
        (ByteOrder::Little, bytes) => (format!("dv_le{}", 8 * bytes), field.size / bytes),
        (ByteOrder::Native, bytes) => (format!("uint{}_t", 8 * bytes), field.size / bytes),
        (ByteOrder::Big, bytes) => (format!("dv_be{}", 8 * bytes), field.size / bytes),
    }
}

/// Text that cannot end a comment or spill over a line.
fn comment(doc: &str) -> String {
    words::plain(doc).replace("*/", "* /")
}

/// `SqSendHdr` becomes `sq_send_hdr`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
