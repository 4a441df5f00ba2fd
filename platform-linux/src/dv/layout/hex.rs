//! Reads hex dumps as people paste them: xxd, `hexdump -C`, `hexdump`, od, plain hex, C arrays, `print_hex_dump`
//! with a kernel log's time stamps and the driver's words before it.

/// How groups of more than two digits are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Groups {
    /// As the format suggests: little-endian words after an offset without a colon (hexdump, od), in a kernel log, and
    /// after 0x; as in memory elsewhere (xxd, plain hex)
    Auto,
    /// Bytes in the order of memory, which is also that of big-endian words
    #[value(alias = "big")]
    Memory,
    /// Little-endian words
    Little,
}

/// A line's data.
struct Line<'t> {
    number: usize,
    /// What stands before a colon, if that is an offset.
    offset: Option<&'t str>,
    /// The line begins with other words.
    of_log: bool,
    /// Hex digits, perhaps after `0x`.
    groups: Vec<&'t str>,
}

/// The bytes of a dump.
///
/// # Errors
/// A message that names the line.
pub fn parse(text: &str, order: Groups) -> Result<Vec<u8>, String> {
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim() == "*" {
            return Err(format!("line {}: `*` stands for rows that are left out; dump all of them", i + 1));
        }
        lines.extend(line_of(i + 1, line));
    }
    let bare = bare_offsets(&lines);
    let mut bytes = Vec::new();
    let mut expected = None;
    for line in &lines {
        let bare = bare && line.offset.is_none();
        let before = bytes.len();
        for group in line.groups.iter().skip(usize::from(bare)) {
            let mut word = bytes_of(group).ok_or_else(|| {
                format!("line {}: `{group}` is not an even number of hex digits", line.number)
            })?;
            let little = match order {
                Groups::Auto => bare || line.of_log || group.starts_with("0x"),
                Groups::Memory => false,
                Groups::Little => true,
            };
            if little {
                word.reverse();
            }
            bytes.extend(word);
        }
        if let Some(offset) = line.offset.and_then(|offset| u64::from_str_radix(digits(offset), 16).ok()) {
            follows(line, offset, expected)?;
            expected = Some(offset.wrapping_add((bytes.len() - before) as u64));
        }
    }
    if bytes.is_empty() { Err("no hex dump found".into()) } else { Ok(bytes) }
}

/// No line is missing before this one: logs lose some. A dump may begin anew at 0.
fn follows(line: &Line<'_>, offset: u64, expected: Option<u64>) -> Result<(), String> {
    // More digits are an address, and the next dump is elsewhere.
    let address = line.offset.is_some_and(|offset| digits(offset).len() > 8);
    match expected {
        Some(expected) if offset != expected && offset != 0 && !address => Err(format!(
            "line {}: offset {offset:#x} after data up to {expected:#x}; are lines missing?",
            line.number
        )),
        _ => Ok(()),
    }
}

/// Finds the groups of a line; a line of words has none.
fn line_of(number: usize, line: &str) -> Option<Line<'_>> {
    // hexdump -C and od -z: what the bytes are as text.
    let mut line = line.trim();
    for (open, close) in [(" |", '|'), (" >", '<')] {
        if line.ends_with(close) {
            line = line.split_once(open).map_or(line, |(data, _)| data);
        }
    }
    for (colon, _) in line.match_indices(':') {
        let (before, after) = (&line[..colon], &line[colon + 1..]);
        let offset = before.rsplit(|c: char| c.is_whitespace() || c == ']').next().unwrap_or_default();
        let data = after.trim_start();
        let first = data.split_whitespace().next().unwrap_or_default();
        if after.starts_with([' ', '\t']) && is_offset(offset) && is_group(first) {
            // xxd and print_hex_dump: text after two spaces.
            let data = data.split_once("  ").map_or(data, |(data, _)| data);
            let of_log = !before.trim_end_matches(offset).trim().is_empty();
            return Some(Line { number, offset: Some(offset), of_log, groups: groups(data) });
        }
    }
    // The words of a log without offsets, or none.
    let log = line.rsplit_once(": ").or_else(|| line.rsplit_once("] "));
    let groups = groups(log.map_or(line, |(_, data)| data));
    let prose = groups.iter().any(|group| !is_hex(digits(group)));
    let data = groups.first().is_some_and(|first| is_group(first) || is_offset(first) && !prose);
    data.then_some(Line { number, offset: None, of_log: log.is_some(), groups })
}

fn groups(data: &str) -> Vec<&str> {
    let separators = |c: char| c.is_whitespace() || ",;{}".contains(c);
    data.split(separators).filter(|group| !group.is_empty()).collect()
}

/// Without `0x`.
fn digits(text: &str) -> &str {
    text.strip_prefix("0x").unwrap_or(text)
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_offset(text: &str) -> bool {
    matches!(digits(text).len(), 2..=16) && is_hex(digits(text))
}

fn is_group(text: &str) -> bool {
    let digits = digits(text.trim_end_matches(','));
    is_hex(digits) && digits.len().is_multiple_of(2)
}

/// Lines without a colon begin with an offset: it is unlike the groups after it, or counts the bytes so far.
fn bare_offsets(lines: &[Line<'_>]) -> bool {
    let lines: Vec<&Line<'_>> = lines.iter().filter(|line| line.offset.is_none()).collect();
    let unlike = |line: &Line<'_>| match line.groups.as_slice() {
        [first, second, ..] => first.len() >= 6 && digits(second).len() < first.len() && is_hex(first),
        _ => false,
    };
    if lines.first().is_some_and(|line| unlike(line)) {
        return true;
    }
    let (mut hex, mut octal) = (lines.len() > 1, lines.len() > 1);
    let mut count = 0;
    for line in lines {
        let Some((first, data)) = line.groups.split_first() else { continue };
        hex &= u64::from_str_radix(first, 16) == Ok(count);
        octal &= u64::from_str_radix(first, 8) == Ok(count);
        count += data.iter().map(|group| digits(group).len() as u64 / 2).sum::<u64>();
    }
    hex || octal
}

fn bytes_of(group: &str) -> Option<Vec<u8>> {
    let digits = digits(group);
    if !is_hex(digits) || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::*;

    const BYTES: [u8; 20] = *b"\x01\x02\x03\x04abcdefgh|: >\xfe\xff01";

    #[test]
    fn every_usual_format_gives_the_same_bytes() {
        let dumps = [
            // xxd
            "00000000: 0102 0304 6162 6364 6566 6768 7c3a 203e  ....abcdefgh|: >\n00000010: feff 3031  ..01\n",
            // hexdump -C
            "00000000  01 02 03 04 61 62 63 64  65 66 67 68 7c 3a 20 3e  |....abcdefgh|: >|\n\
             00000010  fe ff 30 31                                       |..01|\n00000014\n",
            // hexdump
            "0000000 0201 0403 6261 6463 6665 6867 3a7c 3e20\n0000010 fffe 3130\n0000014\n",
            // od -x
            "0000000 0201 0403 6261 6463 6665 6867 3a7c 3e20\n0000020 fffe 3130\n0000024\n",
            // od -t x1z
            "0000000 01 02 03 04 61 62 63 64 65 66 67 68 7c 3a 20 3e  >....abcdefgh|: ><\n\
             0000020 fe ff 30 31                                      >..01<\n0000024\n",
            // od -A x -t x4
            "000000 04030201 64636261 68676665 3e203a7c\n000010 3130fffe\n000014\n",
            // xxd -p
            "010203046162636465666768\n7c3a203efeff3031\n",
            // xxd -i
            "0x01, 0x02, 0x03, 0x04, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,\n0x7c, 0x3a, 0x20, 0x3e, 0xfe, 0xff, 0x30, 0x31",
            // print_hex_dump of bytes, with dmesg's time stamps and journald's
            "[  12.345678] bnxt_en 0000:01:00.0: bad CQE:\n\
             [  12.345679] cqe: 00000000: 01 02 03 04 61 62 63 64 65 66 67 68 7c 3a 20 3e  ....abcdefgh|: >\n\
             [  12.345680] cqe: 00000010: fe ff 30 31                                      ..01\n",
            "Nov 30 05:10:22 host kernel: cqe: 01 02 03 04 61 62 63 64 65 66 67 68 7c 3a 20 3e\n\
             Nov 30 05:10:22 host kernel: cqe: fe ff 30 31\n",
            // print_hex_dump of words, with an address and with an offset
            "kern  :err   : [  12.345679] cqe: ffff888104a3c000: 04030201 64636261 68676665 3e203a7c  ....abcdefgh|: >\n\
             kern  :err   : [  12.345680] cqe: ffff888104a3c010: 3130fffe                             ..01\n",
            "<3>cqe: 00000000: 6463626104030201 3e203a7c68676665\n<3>cqe: 00000010: 3130fffe\n",
            // printk with %08x and %#010x
            "[  12.345678] wqe: 04030201 64636261 68676665 3e203a7c 3130fffe\n",
            "0x04030201 0x64636261 0x68676665 0x3e203a7c 0x3130fffe\n",
        ];
        for dump in dumps {
            assert_eq!(parse(dump, Groups::Auto).as_deref(), Ok(&BYTES[..]), "{dump}");
        }
    }

    #[test]
    fn words_of_either_byte_order_are_read_when_asked() {
        let bytes = Ok(vec![1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(parse("00000000: 04030201 08070605", Groups::Little), bytes);
        assert_eq!(parse("[ 1.5] wqe: 01020304 05060708", Groups::Memory), bytes);
        assert_eq!(parse("0x01020304 0x05060708", Groups::Memory), bytes);
    }

    #[test]
    fn a_dump_may_begin_anew_but_no_line_may_be_missing() {
        let row = "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f";
        let dump = |offsets: [&str; 3]| offsets.map(|at| format!("[ 1.5] cqe: {at}: {row}\n")).concat();
        let length = |offsets| parse(&dump(offsets), Groups::Auto).map(|bytes| bytes.len());
        assert_eq!(length(["00000000", "00000010", "00000000"]), Ok(48));
        assert_eq!(length(["ffff888104a3c000", "ffff888104a3c010", "ffff888104a40000"]), Ok(48));
        let error = length(["00000000", "00000010", "00000030"]).unwrap_err();
        assert_eq!(error, "line 3: offset 0x30 after data up to 0x20; are lines missing?");
    }

    #[test]
    fn what_is_not_a_dump_is_named() {
        assert_eq!(parse("", Groups::Auto), Err("no hex dump found".into()));
        assert!(parse("no bytes at all\n", Groups::Auto).is_err());
        assert_eq!(
            parse("01 02\n03 4\n", Groups::Auto),
            Err("line 2: `4` is not an even number of hex digits".into())
        );
        assert!(
            parse("0000000 0000 0000\n*\n0000020\n", Groups::Auto).unwrap_err().starts_with("line 2: `*`")
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_bytes_or_an_error(text in "([0-9a-fx:,;|>\\[\\]* \n]|[^a]){0,80}") {
            for order in [Groups::Auto, Groups::Memory, Groups::Little] {
                let _ = parse(&text, order);
            }
        }
    }
}
