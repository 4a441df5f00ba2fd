//! Packs the files that a guest begins with: a cpio archive of the kind `newc`.
//!
//! Source: Linux `Documentation/driver-api/early-userspace/buffer-format.rst`.

/// Kinds and permissions of entries.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive being packed.
#[derive(Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    entries: u32,
}

impl Initramfs {
    /// Adds a folder. The ones above it must have been added.
    pub fn folder(&mut self, path: &str) {
        self.add(path, FOLDER, &[]);
    }

    /// Adds a file that may be executed.
    pub fn file(&mut self, path: &str, contents: &[u8]) {
        self.add(path, PROGRAM, contents);
    }

    /// The archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn add(&mut self, path: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        let (size, name_size) = (contents.len() as u32, path.len() as u32 + 1);
        // inode, mode, user, group, links, time, size, device 2, device of the file 2, name's bytes, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_bytes_that_the_format_says() {
        let mut archive = Initramfs::default();
        archive.folder("bin");
        archive.file("bin/a", b"12345");
        let bytes = archive.finish();
        let entry = |inode: &str, mode: &str, size: &str, name_size: &str| {
            let zero = "00000000";
            format!(
                "070701{inode}{mode}{zero}{zero}00000001{zero}{size}{zero}{zero}{zero}{zero}{name_size}{zero}"
            )
        };
        let expected = [
            entry("00000001", "000041ed", "00000000", "00000004").as_str(),
            "bin\0\0\0",
            entry("00000002", "000081ed", "00000005", "00000006").as_str(),
            "bin/a\0",
            "12345\0\0\0",
            entry("00000003", "00000000", "00000000", "0000000b").as_str(),
            "TRAILER!!!\0\0\0\0",
        ]
        .concat();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
