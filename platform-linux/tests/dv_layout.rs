//! `dv layout`: what it prints, the C header under C and C++ compilers, and wrong input.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn dv(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dv"));
    command.arg("layout").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("dv starts");
    // A command that reads nothing may have ended.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("dv ends")
}

fn printed(arguments: &[&str], input: &str) -> String {
    let output = dv(arguments, input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Fails with `status`, prints nothing but a message that contains `part`.
fn refused(arguments: &[&str], input: &str, status: i32, part: &str) {
    let output = dv(arguments, input);
    let message = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(message.contains(part), "{arguments:?}: no `{part}` in: {message}");
}

#[test]
fn every_listed_structure_can_be_shown_in_text_and_as_a_picture() {
    let list = printed(&["list"], "");
    assert!(list.lines().count() > 30, "{list}");
    for line in list.lines().skip(1) {
        let [family, name] = [0, 1].map(|i| line.split_whitespace().nth(i).expect("a column"));
        let full = format!("{family}:{name}");
        assert!(printed(&["show", &full], "").starts_with(&format!("{name} ({family}")));
        let svg = printed(&["show", &full, "--svg"], "");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{full}");
    }
}

#[test]
fn a_structure_is_shown_with_its_fields_and_a_diagram() {
    let want = "\
SqSge (bnxt_re, kernel struct sq_sge), 16 bytes
Scatter/gather element.

BYTES    BITS     FIELD                      ORDER          WHAT
0-7      63:0     va_or_pa                   little-endian  Address.
8-11     31:0     l_key                      little-endian  Local key.
12-15    31:0     size                       little-endian  Length in bytes.

       +0        +1        +2        +3        +4        +5        +6        +7
      +-------------------------------------------------------------------------------+
0x000 |                                   va_or_pa                                    |
      +---------------------------------------+---------------------------------------+
0x008 |                 l_key                 |                 size                  |
      +---------------------------------------+---------------------------------------+
";
    let text = printed(&["show", "SqSge"], "");
    assert_eq!(text, want, "{text}");
    let svg = printed(&["show", "SqSge", "--svg"], "");
    for (name, x, y) in [("va_or_pa", 460, 72), ("l_key", 260, 106), ("size", 660, 106)] {
        let text = format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>");
        assert!(svg.contains(&text), "no {text} in {svg}");
    }
}

/// Compiles the header as C11 and as C++11, and a program that uses it.
fn the_header_compiles_with(c: &str, cpp: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    let header = printed(&["header"], "");
    std::fs::write(dir.path().join("layout.h"), &header).expect("written");
    let offsets = header.lines().filter(|line| line.starts_with("_Static_assert(offsetof(")).count();
    let all = directverbs::layout::all().chain(directverbs::description::all());
    let fields: usize = all.map(|l| l.fields.len()).sum();
    assert_eq!(offsets, fields, "one assertion a field");
    let source =
        "#include \"layout.h\"\nint main(void) { return sizeof(struct dv_bnxt_re_sq_sge) == 16 ? 0 : 1; }\n";
    for (compiler, standard, file) in [(c, "-std=c11", "main.c"), (cpp, "-std=c++11", "main.cc")] {
        let file = dir.path().join(file);
        std::fs::write(&file, source).expect("written");
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Werror", "-c", "-o"]);
        command.arg(dir.path().join("main.o")).arg(&file);
        let output = command.output().unwrap_or_else(|e| panic!("{compiler}: {e}"));
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // The assertions are not empty words.
    let wrong = header.replacen("== 0, \"offset of", "== 1, \"offset of", 1);
    assert_ne!(wrong, header);
    std::fs::write(dir.path().join("layout.h"), wrong).expect("written");
    let mut command = Command::new(c);
    command.args(["-std=c11", "-fsyntax-only"]).arg(dir.path().join("main.c"));
    assert!(!command.output().expect("it ran before").status.success(), "{c} took a wrong offset");
}

#[test]
fn the_header_compiles_with_gcc() {
    the_header_compiles_with("gcc", "g++");
}

#[test]
#[ignore = "needs clang; `cargo lab test` has it"]
fn the_header_compiles_with_clang() {
    the_header_compiles_with("clang", "clang++");
}

#[test]
fn a_dump_is_decoded_and_what_cannot_be_is_marked() {
    let dump = "[  1.5] cqe: 00000000: 01 02 03 04 05 06 07 08 2a 00 00 00 40 00 00 00  ........*...@...\n";
    let text = printed(&["decode", "SqSge"], dump);
    for part in ["va_or_pa", "0x0807060504030201", "l_key", "0x0000002a (42)", "0x00000040 (64)"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let wrong = printed(&["decode", "SqBase"], "07ff000000000000\n");
    assert!(
        wrong.contains("! impossible: no such value here") && wrong.contains("! reserved, not zero"),
        "{wrong}"
    );
}

#[test]
fn wrong_names_and_dumps_are_named() {
    refused(&["show", "Nothing"], "", 2, "no structure is called `Nothing`");
    refused(&["show", "ionic_v1_cqe"], "", 2, "ionic:RecvCqe");
    refused(&["decode", "Nothing"], "00", 2, "no structure is called `Nothing`");
    refused(&["decode", "SqSge"], "01 02 03\n", 1, "SqSge has 16 bytes, the dump only 3");
    refused(&["decode", "SqSge"], &"00 ".repeat(17), 1, "the dump 17: 1 are left over");
    refused(&["decode", "SqSge"], "01 02 3\n", 1, "line 1: `3` is not an even number of hex digits");
    refused(&["decode", "SqSge"], "nothing\n", 1, "no hex dump found");
    refused(&["decode", "SqSge", "/no/dump"], "", 1, "/no/dump");
}

/// BTF without any type.
fn empty_btf() -> Vec<u8> {
    let mut bytes = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    bytes
}

#[test]
fn a_wrong_module_is_named() {
    refused(&["check", "--module", "/no/module.ko"], "", 1, "/no/module.ko");
    refused(&["check", "--module", env!("CARGO_BIN_EXE_dv")], "", 1, "no section .BTF");
    refused(&["check", "--vmlinux", "/no/vmlinux"], "", 2, "--module");
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().to_str().expect("UTF-8");
    refused(&["check", "--module", folder], "", 1, folder);
    let empty = empty_btf();
    let mut big_endian = empty.clone();
    big_endian.swap(0, 1);
    let mut version = empty.clone();
    version[2] = 2;
    let mut types = empty.clone();
    types[12..16].copy_from_slice(&100u32.to_le_bytes());
    let xz = [b"\xfd7zXZ\0".as_slice(), &[0; 20]].concat();
    for (name, bytes, message) in [
        ("empty.btf", &empty[..], "no structure sq_sge"),
        ("short.btf", &empty[..10], "the BTF ends inside its header"),
        ("cut.btf", &empty[..24], "the BTF ends inside its names"),
        ("types.btf", &types, "the BTF ends inside its types"),
        ("big.btf", &big_endian, "big-endian BTF"),
        ("version.btf", &version, "BTF version 2"),
        ("nothing.ko", &[], "neither an ELF file, nor raw BTF"),
        ("elf.ko", b"\x7fELF and no more", "elf.ko: "),
        ("damaged.ko.xz", &xz, "damaged.ko.xz: xz: "),
        ("damaged.ko.gz", b"\x1f\x8b\x08", "damaged.ko.gz: gzip: "),
        ("damaged.ko.zst", b"\x28\xb5\x2f\xfd", "damaged.ko.zst: zstd: "),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).expect("written");
        let file = file.to_str().expect("UTF-8");
        refused(&["check", "--module", file], "", 1, file);
        refused(&["check", "--module", file], "", 1, message);
    }
    let good = dir.path().join("empty.btf");
    let bad = dir.path().join("short.btf");
    let [good, bad] = [good.to_str().expect("UTF-8"), bad.to_str().expect("UTF-8")];
    refused(&["check", "--module", good, "--vmlinux", bad], "", 1, bad);
    refused(&["check", "--module", good, "--family", "ionic"], "", 1, "no structure ionic_sge");
}
