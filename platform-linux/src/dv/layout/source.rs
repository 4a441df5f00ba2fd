//! Where BTF comes from: a module or vmlinux (ELF, plain or compressed), a file of raw BTF, the running kernel.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use super::btf::Btf;
use super::unpack::unpacked;

/// Folder of the running kernel's BTF.
const RUNNING: &str = "/sys/kernel/btf";

/// Each family's kernel modules.
const MODULES: [(&str, &str); 3] = [("bnxt_re", "bnxt_re"), ("bnxt_re", "bnxt_en"), ("ionic", "ionic_rdma")];

/// BTF, and the file that it is from.
pub struct Source {
    /// The file as the user knows it.
    pub file: String,
    /// Its types, and those of its base.
    pub btf: Btf,
}

/// The BTF of `modules`, over that of `vmlinux` where they have no base of their own.
///
/// # Errors
/// A message that names the file.
pub fn load(modules: &[PathBuf], vmlinux: Option<&Path>) -> Result<Vec<Source>, String> {
    let base = vmlinux.map(|file| source(file, None)).transpose()?;
    modules.iter().map(|file| source(file, base.as_ref())).collect()
}

/// The BTF of the running kernel's modules of `families`; of those that are loaded if `families` is empty.
///
/// # Errors
/// A message that names the file, or the folder if nothing of use is in it.
pub fn running(families: &[String]) -> Result<Vec<Source>, String> {
    of_folder(Path::new(RUNNING), families)
}

fn of_folder(folder: &Path, families: &[String]) -> Result<Vec<Source>, String> {
    let asked = |family: &str| families.iter().any(|f| f == family);
    let modules: Vec<PathBuf> = MODULES
        .iter()
        .map(|(family, module)| (*family, folder.join(module)))
        .filter(|(family, file)| if families.is_empty() { file.exists() } else { asked(family) })
        .map(|(_, file)| file)
        .collect();
    if modules.is_empty() {
        let names = MODULES.map(|(_, module)| module).join(" nor ");
        return Err(format!(
            "{}: neither {names} is loaded; give the file of a module with --module",
            folder.display()
        ));
    }
    load(&modules, Some(&folder.join("vmlinux")))
}

fn source(file: &Path, base: Option<&Source>) -> Result<Source, String> {
    let error = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let bytes = fs::read(file).map_err(|e| error(&e))?;
    let bytes = unpacked(bytes).map_err(|e| error(&e))?;
    let sections = sections(&bytes).map_err(|e| error(&e))?;
    let base = match sections.base {
        Some(own) => Some(Btf::parse(own, None).map_err(|e| error(&e))?),
        None => base.map(|base| base.btf.clone()),
    };
    let btf = Btf::parse(sections.btf, base).map_err(|e| error(&e))?;
    Ok(Source { file: file.display().to_string(), btf })
}

/// The BTF of a file: its own, and what it carries as base.
struct Sections<'b> {
    btf: &'b [u8],
    base: Option<&'b [u8]>,
}

fn sections(bytes: &[u8]) -> Result<Sections<'_>, String> {
    if bytes.starts_with(&[0x9f, 0xeb]) || bytes.starts_with(&[0xeb, 0x9f]) {
        return Ok(Sections { btf: bytes, base: None });
    }
    if !bytes.starts_with(b"\x7fELF") {
        return Err("neither an ELF file, nor raw BTF, nor a kernel's boot image".into());
    }
    let elf = object::File::parse(bytes).map_err(|e| e.to_string())?;
    let section = |name: &str| {
        elf.section_by_name(name)
            .map(|section| section.data().map_err(|e| format!("{name}: {e}")))
            .transpose()
    };
    let btf = section(".BTF")?.ok_or("no section .BTF; was it stripped, or built without BTF?")?;
    Ok(Sections { btf, base: section(".BTF.base")? })
}

#[cfg(test)]
mod tests {
    use super::super::btf::tests::{NAMES, PAIR, blob};
    use super::*;

    #[test]
    fn of_the_running_kernel_the_loaded_modules_are_taken_and_those_asked_for_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let of = |families: &[&str]| {
            let families: Vec<String> = families.iter().map(|f| (*f).to_owned()).collect();
            let loaded = of_folder(folder.path(), &families)?;
            Ok::<_, String>(loaded.into_iter().map(|s| s.file).collect::<Vec<_>>())
        };
        assert!(of(&[]).unwrap_err().contains("neither bnxt_re nor bnxt_en nor ionic_rdma is loaded"));
        let path = |name: &str| folder.path().join(name);
        fs::write(path("bnxt_re"), blob(&[0, 7 << 24, 0], b"\0")).unwrap();
        assert!(of(&[]).unwrap_err().starts_with(&path("vmlinux").display().to_string()));
        fs::write(path("vmlinux"), blob(PAIR, NAMES)).unwrap();
        assert_eq!(of(&[]), Ok(vec![path("bnxt_re").display().to_string()]));
        assert!(of(&["ionic"]).unwrap_err().starts_with(&path("ionic_rdma").display().to_string()));
    }

    #[test]
    fn a_module_without_its_base_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (module, vmlinux) = (folder.path().join("module"), folder.path().join("vmlinux"));
        fs::write(&module, blob(&[NAMES.len() as u32, 4 << 24, 16], b"outer\0")).unwrap();
        fs::write(&vmlinux, blob(PAIR, NAMES)).unwrap();
        let modules = [module];
        let error = load(&modules, None).err().unwrap();
        assert!(error.contains("base vmlinux given"), "{error}");
        let loaded = load(&modules, Some(&vmlinux)).unwrap();
        assert!(loaded[0].btf.structure("outer").unwrap().is_some());
    }
}
