//! Undoes what distributions do to modules and kernels: compression, and the boot image around a compressed kernel.

use std::io::{self, Read};

/// A module or kernel is not larger than this when unpacked; what is, is refused.
const LIMIT: u64 = 1 << 30;

/// Name, first bytes, and a reader of the plain bytes.
type Format = (&'static str, &'static [u8], for<'b> fn(&'b [u8]) -> io::Result<Box<dyn Read + 'b>>);

const FORMATS: &[Format] = &[
    ("xz", b"\xfd7zXZ\0", |bytes| Ok(Box::new(lzma_rust2::XzReader::new(bytes, false)))),
    ("gzip", b"\x1f\x8b\x08", |bytes| Ok(Box::new(flate2::bufread::GzDecoder::new(bytes)))),
    ("zstd", b"\x28\xb5\x2f\xfd", |bytes| {
        ruzstd::decoding::StreamingDecoder::new(bytes)
            .map(|reader| Box::new(reader) as Box<dyn Read>)
            .map_err(io::Error::other)
    }),
];

/// The plain bytes; what is neither compressed nor a boot image stays as it is.
///
/// # Errors
/// The compressed bytes are damaged, too large, or of a format that is not known.
pub fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    match boot_payload(&bytes)? {
        Some(payload) => decompressed(payload)?
            .ok_or_else(|| "the kernel in this boot image is not compressed with xz, gzip or zstd".into()),
        None => Ok(decompressed(&bytes)?.unwrap_or(bytes)),
    }
}

/// The compressed kernel in an x86 boot image (bzImage), or `None` if this is none.
/// Source: kernel `Documentation/arch/x86/boot.rst`.
fn boot_payload(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    const SETUP_SECTORS: usize = 0x1f1;
    const MAGIC: usize = 0x202;
    const PAYLOAD: usize = 0x248;
    let word = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    if !bytes.get(MAGIC..).is_some_and(|rest| rest.starts_with(b"HdrS")) {
        return Ok(None);
    }
    let payload = || {
        // 0 stands for 4.
        let sectors = match bytes.get(SETUP_SECTORS)? {
            0 => 4,
            sectors => usize::from(*sectors),
        };
        let start = ((sectors + 1) * 512).checked_add(word(PAYLOAD)?)?;
        bytes.get(start..start.checked_add(word(PAYLOAD + 4)?)?)
    };
    payload().map(Some).ok_or_else(|| "the boot image ends before its kernel does".into())
}

/// Plain bytes, or `None` if they are not compressed.
fn decompressed(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let Some((name, _, reader)) = FORMATS.iter().find(|(_, magic, _)| bytes.starts_with(magic)) else {
        return Ok(None);
    };
    let mut plain = Vec::new();
    let read = reader(bytes).and_then(|reader| reader.take(LIMIT + 1).read_to_end(&mut plain));
    match read {
        Err(e) => Err(format!("{name}: {e}")),
        Ok(read) if read as u64 > LIMIT => Err(format!("{name}: more than {LIMIT} bytes when unpacked")),
        Ok(_) => Ok(Some(plain)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = b"plain bytes, plain bytes\n";

    /// `PLAIN` as the command-line tools compress it.
    const PACKED: [(&str, &[u8]); 3] = [
        ("xz", b"\xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x1c\x00\x00\x00\x10\xcf\x58\xcc\xe0\x00\x18\x00\x15\x5d\x00\x38\x1b\x08\x47\x82\xb2\x9c\xb4\x78\x0c\x34\xa7\xe2\xdb\x55\x71\x13\x99\x2c\x00\x00\x00\x00\x00\x00\x3b\x5e\xda\x7f\x00\x01\x2d\x19\x04\x47\xc7\x64\x90\x42\x99\x0d\x01\x00\x00\x00\x00\x01\x59\x5a"),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2b\xc8\x49\xcc\xcc\x53\x48\xaa\x2c\x49\x2d\xd6\x51\x28\x40\x70\xb8\x00\x3b\x5e\xda\x7f\x19\x00\x00\x00"),
        ("zstd", b"\x28\xb5\x2f\xfd\x04\x68\xa5\x00\x00\x70\x70\x6c\x61\x69\x6e\x20\x62\x79\x74\x65\x73\x2c\x20\x0a\x01\x00\x60\xcc\x2f\x7a\x00\x10\x2c"),
    ];

    fn boot_image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x250];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.resize(2 * 512 + 16, 0);
        image.extend(payload);
        image
    }

    #[test]
    fn each_compression_is_undone_alone_and_in_a_boot_image() {
        for (name, packed) in PACKED {
            assert_eq!(unpacked(packed.to_vec()).as_deref(), Ok(PLAIN), "{name}");
            // The kernel's build appends the plain size to what it compresses.
            let appended = [packed, &(PLAIN.len() as u32).to_le_bytes()].concat();
            assert_eq!(unpacked(boot_image(&appended)).as_deref(), Ok(PLAIN), "{name}");
        }
    }

    #[test]
    fn other_bytes_stay_as_they_are() {
        assert_eq!(unpacked(PLAIN.to_vec()).as_deref(), Ok(PLAIN));
        assert_eq!(unpacked(Vec::new()).as_deref(), Ok(&[][..]));
    }

    #[test]
    fn damaged_input_is_named() {
        for (name, packed) in PACKED {
            for length in 6..packed.len() - 8 {
                let error = unpacked(packed[..length].to_vec()).unwrap_err();
                assert!(error.starts_with(name), "{length}: {error}");
            }
        }
        let mut image = boot_image(PLAIN);
        assert!(unpacked(image.clone()).unwrap_err().contains("not compressed with"));
        image.pop();
        assert!(unpacked(image).unwrap_err().contains("ends before"));
    }
}
