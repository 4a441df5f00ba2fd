//! `dv layout check`: the layout table against BTF.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use directverbs::layout::{self, Field, Layout};

use super::btf::Structure;
use super::source::{self, Source};
use super::{names, print, words};
use crate::Failure;

/// Compares sizes, places and byte orders, and prints a row for each structure, every difference, what was not compared and why, and the closing
/// line of figures.
///
/// # Errors
/// A file cannot be read, a structure is missing, or something differs.
pub fn run(modules: &[PathBuf], vmlinux: Option<&Path>, families: &[String]) -> Result<(), Failure> {
    let sources = if modules.is_empty() { source::running(families) } else { source::load(modules, vmlinux) };
    let sources = sources.map_err(Failure::Fault)?;
    let layouts: Vec<&Layout> =
        layout::all().filter(|l| families.is_empty() || families.iter().any(|f| f == l.family)).collect();
    let outcome = compare(&layouts, &sources, families.is_empty()).map_err(Failure::Fault)?;
    print(&outcome.text())?;
    match outcome.different() {
        0 => Ok(()),
        different => Err(Failure::Fault(format!("{different} differences to the kernel's layouts"))),
    }
}

/// A structure that was compared.
#[derive(Debug)]
struct Row<'l> {
    layout: &'l Layout,
    /// Where the kernel's was found; each was compared.
    files: Vec<&'l str>,
    /// Fields compared, or bit fields where the kernel declares those.
    fields: usize,
    differences: Vec<String>,
}

/// What a comparison of all structures found.
#[derive(Debug, Default)]
struct Outcome<'l> {
    rows: Vec<Row<'l>>,
    /// What was not compared, and why.
    left: Vec<String>,
}

impl Outcome<'_> {
    fn different(&self) -> usize {
        self.rows.iter().map(|row| row.differences.len()).sum()
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{:<8} {:<18} {:<22} {:>5} {:>6} {:>9}  IN\n",
            "FAMILY", "NAME", "KERNEL", "BYTES", "FIELDS", "DIFFERENT"
        );
        // Writing to a `String` does not fail.
        for Row { layout: l, files, fields, differences } in &self.rows {
            let files: Vec<_> = files.iter().map(|file| last_part(file)).collect();
            let (different, files) = (differences.len(), files.join(", "));
            let _ = writeln!(
                out,
                "{:<8} {:<18} {:<22} {:>5} {fields:>6} {different:>9}  {files}",
                l.family, l.name, l.kernel, l.size
            );
            for difference in differences {
                let _ = writeln!(out, "  {difference}");
            }
        }
        for left in &self.left {
            let _ = writeln!(out, "not compared: {left}");
        }
        let fields: usize = self.rows.iter().map(|row| row.fields).sum();
        let _ = writeln!(
            out,
            "layout: {} structures, {fields} fields, {} different",
            self.rows.len(),
            self.different()
        );
        out
    }
}

/// A file's name without its folders.
fn last_part(file: &str) -> Cow<'_, str> {
    Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy())
}

/// Compares each layout with every source that has its structure. A family of which the sources have nothing may be
/// left out if `any_family` says so, but not all of them.
fn compare<'l>(
    layouts: &[&'l Layout],
    sources: &'l [Source],
    any_family: bool,
) -> Result<Outcome<'l>, String> {
    let files = sources.iter().map(|s| &*s.file).collect::<Vec<_>>().join(", ");
    let mut outcome = Outcome::default();
    let mut missing: Vec<&str> = Vec::new();
    let mut absent: Vec<&str> = Vec::new();
    for family in layouts.chunk_by(|a, b| a.family == b.family) {
        let found: Vec<_> =
            family.iter().map(|l| Ok((*l, lookup(l.kernel, sources)?))).collect::<Result<_, String>>()?;
        let needed = |kernel: &str| !names::UNUSED.iter().any(|(unused, _)| *unused == kernel);
        let lacks: Vec<&str> = found
            .iter()
            .filter(|(l, theirs)| theirs.is_empty() && !l.kernel.is_empty() && needed(l.kernel))
            .map(|(l, _)| l.kernel)
            .collect();
        let name = family.first().map_or("", |l| l.family);
        if any_family && found.iter().all(|(_, theirs)| theirs.is_empty()) {
            outcome.left.push(format!("all of {name}: none of its structures is in {files}"));
            absent.extend(lacks);
            continue;
        }
        missing.extend(lacks);
        for (ours, theirs) in found {
            match theirs.as_slice() {
                [] => outcome.left.push(format!("{name} {}: {}", ours.name, why_left(ours))),
                theirs => outcome.rows.push(row(ours, theirs)),
            }
        }
    }
    if outcome.rows.is_empty() {
        missing.extend(absent);
    }
    missing.dedup();
    if missing.is_empty() {
        Ok(outcome)
    } else {
        Err(format!("{files}: no structure {}", missing.join(", ")))
    }
}

/// Why no source has the structure.
fn why_left(ours: &Layout) -> String {
    let reason =
        |table: &[(&str, &'static str)], name| table.iter().find(|(n, _)| *n == name).map(|(_, why)| *why);
    if ours.kernel.is_empty() {
        return reason(names::NOT_IN_KERNEL, ours.name).unwrap_or("no kernel driver defines it").into();
    }
    let instead = reason(names::UNUSED, ours.kernel).unwrap_or_default();
    format!("{} is not in the BTF, because the driver defines but does not use it: {instead}", ours.kernel)
}

/// The structure called `name` in each source that has it.
fn lookup<'s>(name: &str, sources: &'s [Source]) -> Result<Vec<(&'s str, Structure)>, String> {
    let mut found = Vec::new();
    for Source { file, btf } in sources.iter().filter(|_| !name.is_empty()) {
        let structure = btf.structure(name).map_err(|e| format!("{file}: struct {name}: {e}"))?;
        found.extend(structure.map(|structure| (&**file, structure)));
    }
    Ok(found)
}

fn row<'l>(ours: &'l Layout, theirs: &[(&'l str, Structure)]) -> Row<'l> {
    let mut row = Row { layout: ours, files: Vec::new(), fields: 0, differences: Vec::new() };
    for (file, theirs) in theirs {
        row.files.push(file);
        if ours.size as u64 != theirs.size {
            row.differences.push(format!("{} bytes here, {} in {file}", ours.size, theirs.size));
        }
        let same: Vec<Result<(), String>> =
            ours.fields.iter().flat_map(|field| same_field(ours, field, theirs)).collect();
        row.fields = row.fields.max(same.len());
        row.differences
            .extend(same.into_iter().filter_map(Result::err).map(|what| format!("{what} in {file}")));
    }
    row
}

/// Compares a field, or each of its bit fields where the kernel declares those.
fn same_field(ours: &Layout, field: &Field, theirs: &Structure) -> Vec<Result<(), String>> {
    if names::UNNAMED.contains(&field.name) {
        return Vec::new();
    }
    let start = 8 * field.offset as u64;
    let (together, paths) = names::kernel(ours.name, field.name);
    if let Some(path) = paths.iter().find(|path| theirs.members.iter().any(|m| m.path == **path)) {
        let parts = || ours.fields.iter().filter(|f| together.contains(&f.name));
        let first = parts().map(|f| f.offset).min().unwrap_or(field.offset);
        let place = (8 * first as u64, 8 * parts().map(|f| f.size as u64).sum::<u64>());
        return vec![
            same_place(&together.join(" and "), path, place, theirs)
                .and_then(|()| same_order(field, path, theirs)),
        ];
    }
    let named = field.bits.iter().filter(|bits| bits.name != "__");
    if named.clone().any(|bits| theirs.members.iter().any(|m| m.path == bits.name && m.bit_field)) {
        let place = |shift: u32, width: u32| (start + u64::from(shift), u64::from(width));
        return named.map(|b| same_place(b.name, b.name, place(b.shift, b.width), theirs)).collect();
    }
    vec![Err(format!("{}: no {}", field.name, paths.join(" or ")))]
}

fn same_place(name: &str, path: &str, ours: (u64, u64), theirs: &Structure) -> Result<(), String> {
    // Anonymous unions may have a name more than once.
    let there: Vec<_> =
        theirs.members.iter().filter(|m| m.path == path).map(|m| (m.offset, m.width)).collect();
    if there.contains(&ours) {
        return Ok(());
    }
    let there = there.into_iter().map(spelled).collect::<Vec<_>>().join(" or ");
    Err(format!("{name}: {} here, {path} at {there}", spelled(ours)))
}

/// Where the kernel's type tells a byte order, it is ours.
fn same_order(field: &Field, path: &str, theirs: &Structure) -> Result<(), String> {
    let member = theirs.members.iter().find(|m| m.path == path && m.order.is_some_and(|o| o != field.order));
    match member.and_then(|m| m.order) {
        None => Ok(()),
        Some(there) => {
            let here = words::order(field.order);
            Err(format!("{}: {here} here, {path} is {}", field.name, words::order(there)))
        }
    }
}

/// First bit and width in words.
fn spelled((offset, width): (u64, u64)) -> String {
    match (offset % 8, width % 8) {
        (0, 0) => format!("byte {}, {} bytes", offset / 8, width / 8),
        _ => format!("bit {offset}, {width} bits"),
    }
}

#[cfg(test)]
mod tests {
    use directverbs::layout::ByteOrder;

    use super::super::btf::{Btf, tests::blob};
    use super::*;

    /// BTF of structures as ours are, under the kernel's names, after `change` has seen each field's first bit and size.
    fn btf_of(layouts: &[&Layout], mut change: impl FnMut(&str, &str, &mut u32, &mut u32)) -> Vec<Source> {
        // 1: INT of one byte. Then for each field an ARRAY of it, and for each layout a STRUCT.
        let (mut types, mut names) = (vec![0, 1 << 24, 1, 8], b"\0".to_vec());
        let mut last = 1;
        for l in layouts {
            let mut name = |text: &str| {
                let at = names.len() as u32;
                names.extend(text.bytes().chain([0]));
                at
            };
            let mut composite = vec![name(l.kernel), 4 << 24 | l.fields.len() as u32, l.size as u32];
            for f in l.fields {
                let (mut first, mut size) = (8 * f.offset as u32, f.size as u32);
                change(l.kernel, f.name, &mut first, &mut size);
                types.extend([0, 3 << 24, 0, 1, 1, size]);
                last += 1;
                composite.extend([name(f.name), last, first]);
            }
            types.extend(composite);
            last += 1;
        }
        let btf = Btf::parse(&blob(&types, &names), None).unwrap();
        vec![Source { file: "module".into(), btf }]
    }

    fn has_the_kernels_names(layout: &Layout) -> bool {
        layout.fields.iter().all(|field| names::kernel(layout.name, field.name).1 == [field.name])
    }

    fn of_bnxt_re() -> Vec<&'static Layout> {
        layout::all().filter(|l| l.family == "bnxt_re" && has_the_kernels_names(l)).collect()
    }

    #[test]
    fn layouts_that_are_the_same_do_not_differ() {
        let ours = of_bnxt_re();
        let sources = btf_of(&ours, |_, _, _, _| {});
        let outcome = compare(&ours, &sources, false).unwrap();
        let fields: usize = ours.iter().map(|l| l.fields.len()).sum();
        let last = format!("layout: {} structures, {fields} fields, 0 different\n", ours.len());
        assert!(outcome.text().ends_with(&last), "{}", outcome.text());
        assert_eq!(outcome.left, [""; 0]);
    }

    #[test]
    fn a_field_elsewhere_or_of_another_width_is_a_difference() {
        let ours = of_bnxt_re();
        let sources = btf_of(&ours, |structure, field, first, size| match (structure, field) {
            ("sq_sge", "l_key") => *first += 32,
            ("cq_req", "sq_cons_idx") => *size += 1,
            _ => {}
        });
        let outcome = compare(&ours, &sources, false).unwrap();
        let differences: Vec<&str> =
            outcome.rows.iter().flat_map(|row| &row.differences).map(String::as_str).collect();
        assert_eq!(
            differences,
            [
                "l_key: byte 8, 4 bytes here, l_key at byte 12, 4 bytes in module",
                "sq_cons_idx: byte 8, 2 bytes here, sq_cons_idx at byte 8, 3 bytes in module",
            ]
        );
        assert!(outcome.text().ends_with(" 2 different\n"));
    }

    #[test]
    fn another_byte_order_is_a_difference() {
        let ours = of_bnxt_re();
        let sge = ours.iter().find(|l| l.name == "SqSge").unwrap();
        let mut theirs = btf_of(&[sge], |_, _, _, _| {})[0].btf.structure("sq_sge").unwrap().unwrap();
        let of_key = |order, theirs: &mut Structure| {
            theirs.members.iter_mut().find(|m| m.path == "l_key").unwrap().order = Some(order);
            row(sge, &[("module", theirs.clone())]).differences
        };
        assert_eq!(of_key(ByteOrder::Little, &mut theirs), [""; 0]);
        let different = of_key(ByteOrder::Big, &mut theirs);
        assert_eq!(different, ["l_key: little-endian here, l_key is big-endian in module"]);
    }

    #[test]
    fn a_missing_structure_is_an_error_and_one_that_the_driver_does_not_use_is_named() {
        let ours = of_bnxt_re();
        let without = |names: &[&str]| -> Vec<&Layout> {
            ours.iter().copied().filter(|l| !names.contains(&l.kernel)).collect()
        };
        let sources = btf_of(&without(&["cq_req", "sq_sge"]), |_, _, _, _| {});
        let error = compare(&ours, &sources, false).unwrap_err();
        assert_eq!(error, "module: no structure sq_sge, cq_req");
        let sources = btf_of(&without(&["sq_base"]), |_, _, _, _| {});
        let outcome = compare(&ours, &sources, false).unwrap();
        let [left] = outcome.left.as_slice() else { panic!("{:?}", outcome.left) };
        assert!(left.starts_with("bnxt_re SqBase: sq_base is not in the BTF"), "{left}");
    }

    #[test]
    fn a_family_without_a_module_is_named_but_not_both() {
        let all: Vec<&Layout> =
            layout::all().filter(|l| l.family == "ionic" || has_the_kernels_names(l)).collect();
        let sources = btf_of(&of_bnxt_re(), |_, _, _, _| {});
        let outcome = compare(&all, &sources, true).unwrap();
        assert_eq!(outcome.left, ["all of ionic: none of its structures is in module"]);
        assert!(compare(&all, &sources, false).unwrap_err().contains("ionic_v1_wqe"));
        let nothing = btf_of(&[], |_, _, _, _| {});
        assert!(compare(&all, &nothing, true).unwrap_err().contains("sq_sge"));
    }
}
