//! The C program that measures rdma-core's structures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::{Family, Same};
use crate::error::{Error, Result};
use crate::setup;
use crate::suites::Checks;

/// Stands in for the kernel's `linux/types.h`: each byte order is a type of its own, so that the probe can tell it.
const TYPES: &str = "#pragma once
#include <stdint.h>
typedef uint8_t __u8; typedef uint16_t __u16; typedef uint32_t __u32; typedef uint64_t __u64;
typedef int8_t __s8; typedef int16_t __s16; typedef int32_t __s32; typedef int64_t __s64;
typedef struct { __u16 v; } __le16; typedef struct { __u32 v; } __le32; typedef struct { __u64 v; } __le64;
typedef struct { __u16 v; } __be16; typedef struct { __u32 v; } __be32; typedef struct { __u64 v; } __be64;
#define __aligned_u64 __u64 __attribute__((aligned(8)))
";

/// What the probe writes, and how.
const PROLOGUE: &str = "#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>
#define DECLARE_DRV_CMD(...) struct unused
#define ORDER(x) _Generic((x), __le16: 'L', __le32: 'L', __le64: 'L', __be16: 'B', __be32: 'B', __be64: 'B', default: '-')
#define SIZE(s) printf(\"size \" #s \": %zu\\n\", sizeof(s))
#define MEMBER(s, m, bits, mask) printf(\"member \" #s \".\" #m \".\" bits \": %zu %zu %c %llu\\n\", \\
    offsetof(s, m), sizeof(((s *)0)->m), ORDER(((s *)0)->m), (unsigned long long)(mask) & (sizeof(((s *)0)->m) < 8 ? (1ull << 8 * (sizeof(((s *)0)->m) & 7)) - 1 : ~0ull))
#define CONSTANT(c) printf(\"constant \" #c \": %llu\\n\", (unsigned long long)(c))
";

/// What the probe has measured.
#[derive(Debug)]
pub struct Measured(BTreeMap<String, Vec<String>>);

/// A member of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Byte offset.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// `L` little, `B` big, `-` not told.
    pub order: char,
    /// The bits asked for, 0 if none were.
    pub mask: u64,
}

impl Measured {
    /// Reads the probe's output.
    pub fn parse(output: &str) -> Self {
        let entries = output.lines().filter_map(|line| line.rsplit_once(": "));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Self(entries.map(|(key, values)| (key.to_owned(), words(values))).collect())
    }

    fn number(&self, key: &str, nth: usize) -> Result<u64> {
        let value = self.0.get(key).and_then(|values| values.get(nth)?.parse().ok());
        value.ok_or_else(|| Error::Unexpected(format!("the probe did not measure {key}")))
    }

    /// Size of a structure.
    pub fn size(&self, structure: &str) -> Result<usize> {
        Ok(self.number(&format!("size {structure}"), 0)? as usize)
    }

    /// A member of a structure, and bits of it.
    pub fn member(&self, structure: &str, member: &str, bits: &str) -> Result<Member> {
        let key = format!("member {structure}.{member}.{bits}");
        let order = self.0.get(&key).and_then(|values| values.get(2)?.chars().next());
        Ok(Member {
            offset: self.number(&key, 0)? as usize,
            size: self.number(&key, 1)? as usize,
            order: order.unwrap_or('-'),
            mask: self.number(&key, 3)?,
        })
    }

    /// A constant.
    pub fn constant(&self, name: &str) -> Result<u64> {
        self.number(&format!("constant {name}"), 0)
    }
}

/// Compiles and runs the probe of a family.
///
/// # Errors
/// The compiler or the probe failed.
pub fn measure(checks: &mut Checks<'_>, family: &Family) -> Result<Measured> {
    let dir = checks.lab.dir.join("probe");
    let rdma_core = setup::rdma_core(checks.lab);
    let source = dir.join(format!("{}.c", family.name));
    let program = dir.join(family.name);
    for (path, text) in [
        (dir.join("linux/types.h"), TYPES),
        // rdma-core generates these two; what they declare is no part of a device's layouts.
        (dir.join("infiniband/kern-abi.h"), ""),
        (dir.join("kernel-abi/bnxt_re-abi.h"), ""),
        (source.clone(), &program_text(family)),
    ] {
        let parent = path.parent().unwrap_or(&dir);
        fs::create_dir_all(parent).map_err(Error::file(parent))?;
        fs::write(&path, text).map_err(Error::file(&path))?;
    }
    let mut gcc = Command::new("gcc");
    gcc.arg("-std=gnu11").arg("-I").arg(&dir);
    for include in ["providers", "kernel-headers"] {
        gcc.arg("-I").arg(rdma_core.join(include));
    }
    checks.succeed(gcc.arg("-o").arg(&program).arg(&source))?;
    Ok(Measured::parse(&checks.succeed(&mut Command::new(program))?))
}

fn program_text(family: &Family) -> String {
    let mut lines = BTreeSet::new();
    for pair in family.pairs {
        lines.extend(pair.parts.iter().map(|part| format!("SIZE({part});")));
        for Same(_, part, member, bits) in pair.fields {
            let structure = pair.parts.get(*part).copied().unwrap_or("no such part");
            let mask = if bits.is_empty() { "0" } else { bits };
            lines.insert(format!("MEMBER({structure}, {member}, \"{bits}\", {mask});"));
        }
    }
    lines.extend((family.constants)().iter().map(|(name, _)| format!("CONSTANT({name});")));
    let mut text = PROLOGUE.to_owned();
    // Writing to a string cannot fail.
    for header in family.headers {
        let _ = writeln!(text, "#include <{header}>");
    }
    text.push_str("int main(void) {\n");
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
    text + "}\n"
}
