//! Debian's kernel as guests boot it: the image without its own decompressor, and all modules.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::apt::Private;
use super::kernel::{VERSION, newest};
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::progress::Step;

/// A kernel and its modules.
#[derive(Debug)]
pub struct Image {
    /// The kernel as an ELF file. A guest that emulates every instruction boots it in half the time.
    pub vmlinux: PathBuf,
    /// Folder of the modules.
    pub modules: PathBuf,
    /// As `uname -r` says it, such as `7.3.4+deb13-amd64`.
    pub release: String,
}

/// Names of [`Image`]'s parts: of folders for modules in packages, old and new, and of the boot image.
const MODULES: [&str; 2] = ["usr/lib/modules", "lib/modules"];
const BOOT: &str = "boot/vmlinuz-";

impl Image {
    /// What is there.
    ///
    /// # Errors
    /// It is not complete.
    pub fn find(lab: &Lab) -> Result<Self> {
        let dir = lab.dir.join(format!("linux-image-{VERSION}"));
        let mark = dir.join(".complete");
        let release = fs::read_to_string(&mark).map_err(Error::file(&mark))?;
        let modules = dir.join(MODULES[0]).join(&release);
        Ok(Self { vmlinux: dir.join("vmlinux"), modules, release })
    }

    /// Another one: a folder with a kernel's packages, unpacked. It is decompressed into the lab's folder.
    ///
    /// # Errors
    /// There is not one kernel with its modules in it, or it is not what it should be.
    pub fn unpacked(lab: &Lab, packages: &Path) -> Result<Self> {
        let missing = |what: &str| Error::Unexpected(format!("{}: no {what}", packages.display()));
        let boot = packages.join("boot");
        let mut names = fs::read_dir(&boot).map_err(Error::file(&boot))?.flatten().map(|e| e.file_name());
        let release =
            names.find_map(|name| Some(format!("boot/{}", name.to_str()?).strip_prefix(BOOT)?.to_owned()));
        let release = release.ok_or_else(|| missing(BOOT))?;
        let folders = MODULES.map(|folder| packages.join(folder).join(&release));
        let modules =
            folders.into_iter().find(|folder| folder.is_dir()).ok_or_else(|| missing(MODULES[1]))?;
        let vmlinux = lab.dir.join("vmlinux-unpacked");
        decompress(&packages.join(format!("{BOOT}{release}")), &vmlinux)?;
        Ok(Self { vmlinux, modules, release })
    }

    pub(super) fn get(lab: &Lab, apt: &Private, step: &mut Step) -> Result<()> {
        let (binary, modules) = ("linux-binary-", "linux-modules-");
        let release = newest(&apt.names(&format!("{binary}{VERSION}."), step)?, binary)
            .ok_or_else(|| Error::Unexpected(format!("the mirror has no package {binary}{VERSION}.*")))?;
        let dir = lab.dir.join(format!("linux-image-{VERSION}"));
        // What is left of an earlier kernel, or of a set-up that was stopped.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
        let own = format!("{binary}{release}");
        let version = apt.version(&own, VERSION, step)?;
        apt.unpack(&own, &version, &dir, step)?;
        apt.unpack(&format!("{modules}{release}"), &version, &dir, step)?;
        step.at("decompressing the kernel");
        decompress(&dir.join(MODULES[0]).join(&release).join("vmlinuz"), &dir.join("vmlinux"))?;
        let mark = dir.join(".complete");
        fs::write(&mark, &release).map_err(Error::file(&mark))
    }
}

/// Writes the kernel in a boot image to a file.
fn decompress(image: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(image).map_err(Error::file(image))?;
    fs::write(to, decompressed(image, &bytes)?).map_err(Error::file(to))
}

/// Number of sectors of the boot image's first part, less one.
const SETUP_SECTORS: usize = 0x1f1;
/// `HdrS`.
const MAGIC: usize = 0x202;
/// Where the compressed kernel begins behind that part, 4 bytes, and its bytes, 4 more. Source: Linux
/// `Documentation/arch/x86/boot.rst`.
const PAYLOAD: usize = 0x248;

/// The kernel in a boot image.
fn decompressed(path: &Path, image: &[u8]) -> Result<Vec<u8>> {
    let fault = |what: &str| Error::Unexpected(format!("{}: {what}", path.display()));
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    if image.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return Err(fault("no boot image of a kernel"));
    }
    let payload = || {
        let setup = (usize::from(*image.get(SETUP_SECTORS)?) + 1) * 512;
        let (begin, length) = (setup + word(PAYLOAD)?, word(PAYLOAD + 4)?);
        image.get(begin..begin + length)
    };
    let payload = payload().ok_or_else(|| fault("cut short"))?;
    let mut kernel = Vec::new();
    let read = match payload {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match ruzstd::decoding::StreamingDecoder::new(payload) {
            Ok(mut decoder) => decoder.read_to_end(&mut kernel),
            Err(error) => return Err(fault(&format!("zstd: {error}"))),
        },
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            lzma_rust2::XzReader::new(payload, false).read_to_end(&mut kernel)
        }
        _ => return Err(fault("compressed neither with zstd nor with xz")),
    };
    read.map_err(|error| fault(&error.to_string()))?;
    if !kernel.starts_with(b"\x7fELF") {
        return Err(fault("does not hold an ELF file"));
    }
    Ok(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A boot image of one more sector of setup, with `payload` 16 bytes behind it.
    fn boot_image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * 512 + 16];
        image[SETUP_SECTORS] = 1;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[PAYLOAD..PAYLOAD + 4].copy_from_slice(&16u32.to_le_bytes());
        image[PAYLOAD + 4..PAYLOAD + 8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(payload);
        // The image's size by the kernel's build, and a signature.
        image.extend([0xaa; 40]);
        image
    }

    #[test]
    fn a_kernel_is_taken_out_of_its_boot_image() {
        // "\x7fELF rest" as one raw block of a zstd frame.
        let text = b"\x7fELF rest";
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8];
        frame.extend([(text.len() as u8) << 3 | 1, 0, 0]);
        frame.extend(text);
        let path = Path::new("vmlinuz");
        assert_eq!(decompressed(path, &boot_image(&frame)).unwrap(), text);
        let error = |image: &[u8]| decompressed(path, image).unwrap_err().to_string();
        assert_eq!(error(&boot_image(&[0x1f, 0x8b])), "vmlinuz: compressed neither with zstd nor with xz");
        assert_eq!(error(&boot_image(&frame)[..1050]), "vmlinuz: cut short");
        assert_eq!(error(&[0; 600]), "vmlinuz: no boot image of a kernel");
        frame[9] = b'M';
        assert_eq!(error(&boot_image(&frame)), "vmlinuz: does not hold an ELF file");
    }
}
