//! Modules of a kernel, with what they need.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use super::initramfs::Initramfs;
use crate::error::{Error, Result};

/// Where guests look for modules.
const FOLDER: &str = "modules";

/// The modules of a kernel, by name.
#[derive(Debug, Default)]
pub struct Modules {
    paths: BTreeMap<String, PathBuf>,
}

impl Modules {
    /// All below `folder`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn find(folder: &Path) -> Result<Self> {
        let mut all = Self::default();
        all.add(folder)?;
        Ok(all)
    }

    /// Adds all below `folder`, which take the place of others of their names.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn add(&mut self, folder: &Path) -> Result<()> {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
                let path = entry.map_err(Error::file(&folder))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if let Some((name, "" | ".xz" | ".zst")) = name.split_once(".ko") {
                    self.paths.insert(name.replace('-', "_"), path);
                }
            }
        }
        Ok(())
    }

    /// Adds `names` and all modules that they need to an archive. Beside each of `names` is a list of what must be loaded
    /// before it, in order.
    ///
    /// # Errors
    /// There is no such module, or it is not what it should be.
    pub fn pack(&self, names: &[&str], into: &mut Initramfs) -> Result<()> {
        into.folder(FOLDER);
        let mut packed: Vec<String> = Vec::new();
        for name in names {
            let mut order = Vec::new();
            self.visit(name, &mut order)?;
            for (module, image) in &order {
                if !packed.contains(module) {
                    into.file(&format!("{FOLDER}/{module}.ko"), image);
                    packed.push(module.clone());
                }
            }
            order.pop();
            let needs: Vec<&str> = order.iter().map(|(module, _)| module.as_str()).collect();
            into.file(&format!("{FOLDER}/{name}.needs"), needs.join("\n").as_bytes());
        }
        Ok(())
    }

    /// Puts what `name` needs, and then itself, behind `order`.
    fn visit(&self, name: &str, order: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
        if order.iter().any(|(module, _)| module == name) {
            return Ok(());
        }
        let path = self
            .paths
            .get(name)
            .ok_or_else(|| Error::Unexpected(format!("the kernel has no module {name}")))?;
        let mut file = fs::File::open(path).map_err(Error::file(path))?;
        let mut image = Vec::new();
        let read = match path.extension().and_then(|end| end.to_str()) {
            Some("zst") => ruzstd::decoding::StreamingDecoder::new(file)
                .map_err(|error| Error::Unexpected(format!("{}: zstd: {error}", path.display())))?
                .read_to_end(&mut image),
            Some("xz") => lzma_rust2::XzReader::new(file, false).read_to_end(&mut image),
            _ => file.read_to_end(&mut image),
        };
        read.map_err(Error::file(path))?;
        let needs = needs(&image)
            .ok_or_else(|| Error::Unexpected(format!("{}: no module of a kernel", path.display())))?;
        for need in needs {
            self.visit(&need, order)?;
        }
        order.push((name.to_owned(), image));
        Ok(())
    }
}

/// Names of the modules that a module says it needs.
fn needs(image: &[u8]) -> Option<Vec<String>> {
    let elf: ElfFile64<'_> = ElfFile64::parse(image).ok()?;
    let info = elf.section_by_name(".modinfo")?.data().ok()?;
    let line = info.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(b"depends="))?;
    let names = std::str::from_utf8(line).ok()?;
    Some(names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect())
}
