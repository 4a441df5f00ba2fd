//! Modules that Debian does not build: iommufd, and VFIO with its character devices, for the kernel that guests boot.
//!
//! Debian's kernel is built without iommufd, but has all that modules of it need but an iterator over intervals. They are
//! compiled from Debian's source with the headers and options of Debian's kernel, and the options that are missing; nothing
//! that the kernel shares with its modules changes with these. VFIO's own modules differ with them, so they are replaced.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};

use super::{Image, Kernel};
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::succeed;
use crate::progress::Step;

const LIMIT: Duration = Duration::from_secs(600);

/// Options beside those of the kernel.
const OPTIONS: &str = "\
#include <linux/kconfig.h>
#define CONFIG_IOMMUFD_MODULE 1
#define CONFIG_IOMMUFD_DRIVER 1
#define CONFIG_IOMMUFD_DRIVER_CORE 1
#define CONFIG_INTERVAL_TREE_SPAN_ITER 1
#define CONFIG_VFIO_DEVICE_CDEV 1
/* Only for some graphics processors. */
#undef CONFIG_VFIO_PCI_IGD
/* Branches that are switched at run time begin as what they are, and not as what a tool of the build makes of them. */
#undef CONFIG_HAVE_JUMP_LABEL_HACK
";

/// As the kernel's build has it, without what only makes a kernel harder or its faults easier to find.
const FLAGS: &[&str] = &[
    "-nostdinc",
    "-D__KERNEL__",
    "-DMODULE",
    "-DCC_USING_FENTRY",
    "-std=gnu11",
    "-fms-extensions",
    "-fshort-wchar",
    "-funsigned-char",
    "-fno-common",
    "-fno-PIE",
    "-fno-strict-aliasing",
    "-fno-strict-overflow",
    "-fno-delete-null-pointer-checks",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fno-jump-tables",
    "-fcf-protection=none",
    "-mcmodel=kernel",
    "-mno-red-zone",
    "-mgeneral-regs-only",
    "-mpreferred-stack-boundary=3",
    "-O2",
    "-w",
];

/// A module: its name, the modules that it needs, and the files of the source tree that it is made of.
struct Module {
    name: &'static str,
    needs: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
}

/// The modules. Those that export something come before those that need it.
const MODULES: [Module; 5] = [
    Module {
        name: "iommufd",
        needs: "",
        folder: "drivers/iommu/iommufd",
        files: &[
            "device",
            "driver",
            "eventq",
            "hw_pagetable",
            "io_pagetable",
            "ioas",
            "iova_bitmap",
            "main",
            "pages",
            "vfio_compat",
            "viommu",
            "../../../lib/interval_tree",
        ],
    },
    Module {
        name: "vfio",
        needs: "iommufd",
        folder: "drivers/vfio",
        files: &["vfio_main", "container", "device_cdev", "group", "iommufd", "virqfd"],
    },
    Module { name: "vfio_iommu_type1", needs: "vfio", folder: "drivers/vfio", files: &["vfio_iommu_type1"] },
    Module {
        name: "vfio_pci_core",
        needs: "irqbypass,iommufd,vfio",
        folder: "drivers/vfio/pci",
        files: &["vfio_pci_config", "vfio_pci_core", "vfio_pci_dmabuf", "vfio_pci_intrs", "vfio_pci_rdwr"],
    },
    Module {
        name: "vfio_pci",
        needs: "iommufd,vfio,vfio_pci_core",
        folder: "drivers/vfio/pci",
        files: &["vfio_pci"],
    },
];

/// Puts the tables of what a module exports, which are searched by name, in order.
const LINK: &str = "\
SECTIONS {
    __ksymtab 0 : { *(SORT(___ksymtab+*)) }
    __kflagstab 0 : { *(SORT(___kflagstab+*)) }
}
";

/// Begins the names of marks that stand for what a file exports.
const EXPORT: &str = "__export_symbol_";

fn folder(lab: &Lab) -> PathBuf {
    lab.dir.join("iommufd")
}

/// The folder of the modules.
///
/// # Errors
/// They are not there, or for another kernel.
pub fn find(lab: &Lab) -> Result<PathBuf> {
    let (folder, image) = (folder(lab), Image::find(lab)?);
    let mark = folder.join(".complete");
    let release = fs::read_to_string(&mark).map_err(Error::file(&mark))?;
    if release == image.release {
        return Ok(folder);
    }
    let why = "`cargo lab setup` builds them anew";
    Err(Error::Unexpected(format!("modules of iommufd for {release}, and not {}: {why}", image.release)))
}

/// Builds them.
///
/// # Errors
/// The kernel's headers and sources are not there or of another release, or the modules do not compile.
pub(super) fn build(lab: &Lab, step: &mut Step) -> Result<()> {
    let (kernel, image) = (Kernel::find(lab)?, Image::find(lab)?);
    if kernel.release() != image.release {
        return Err(Error::Unexpected(format!(
            "headers of Linux {}, but a kernel of {}: remove linux-* in {} and run `cargo lab setup`",
            kernel.release(),
            image.release,
            lab.dir.display()
        )));
    }
    let folder = folder(lab);
    // What is left of an earlier kernel, or of a set-up that was stopped.
    let _ = fs::remove_dir_all(&folder);
    let builder = Builder { kernel, objects: folder.join("objects"), log: lab.logs().join("setup.log") };
    fs::create_dir_all(&builder.objects).map_err(Error::file(&builder.objects))?;
    write(&builder.objects.join("options.h"), OPTIONS)?;
    write(&builder.objects.join("link.ld"), LINK)?;
    for module in &MODULES {
        builder.module(module, &folder, step)?;
    }
    let objects = &builder.objects;
    fs::remove_dir_all(objects).map_err(Error::file(objects))?;
    write(&folder.join(".complete"), &image.release)
}

struct Builder {
    kernel: Kernel,
    objects: PathBuf,
    log: PathBuf,
}

impl Builder {
    fn module(&self, module: &Module, to: &Path, step: &mut Step) -> Result<()> {
        step.at(&format!("compiling {}", module.name));
        let folder = self.kernel.source(module.folder);
        let mut objects = Vec::new();
        let mut exports = BTreeSet::new();
        for file in module.files {
            let object = self.compile(module.name, &folder.join(file).with_extension("c"), step)?;
            // What belongs to the kernel, and is only linked in, is the kernel's to export.
            if !file.starts_with("..") {
                exports.extend(exported(&object)?);
            }
            objects.push(object);
        }
        let about = self.objects.join(format!("{}-about.c", module.name));
        write(&about, &about_module(module, &exports))?;
        objects.push(self.compile(module.name, &about, step)?);
        let mut ld = Command::new("ld");
        ld.arg("-r").arg("-T").arg(self.objects.join("link.ld")).arg("-o");
        ld.arg(to.join(format!("{}.ko", module.name))).args(objects);
        succeed(&mut ld, &self.log, step, LIMIT).map(drop)
    }

    /// Compiles a file and gives the object.
    fn compile(&self, module: &str, source: &Path, step: &mut Step) -> Result<PathBuf> {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let object = self.objects.join(format!("{module}-{stem}.o"));
        let mut gcc = Command::new("gcc");
        gcc.args(FLAGS);
        for include in self.kernel.includes() {
            gcc.arg("-I").arg(include);
        }
        gcc.arg("-include").arg(self.objects.join("options.h")).args(["-include", "linux/compiler_types.h"]);
        for name in ["KBUILD_MODFILE", "KBUILD_BASENAME", "KBUILD_MODNAME"] {
            gcc.arg(format!("-D{name}=\"{module}\""));
        }
        gcc.arg(format!("-D__KBUILD_MODNAME=kmod_{module}"));
        gcc.arg("-c").arg("-o").arg(&object).arg(source);
        succeed(&mut gcc, &self.log, step, LIMIT)?;
        Ok(object)
    }
}

/// Names of what an object exports.
fn exported(object: &Path) -> Result<Vec<String>> {
    let bytes = fs::read(object).map_err(Error::file(object))?;
    let elf: ElfFile64<'_> = ElfFile64::parse(&*bytes)
        .map_err(|error| Error::Unexpected(format!("{}: {error}", object.display())))?;
    let names = elf.symbols().filter_map(|symbol| Some(symbol.name().ok()?.strip_prefix(EXPORT)?.to_owned()));
    Ok(names.collect())
}

/// What a module says of itself, as C: which kernel it is for, what it needs, how it begins and ends, and what it exports.
fn about_module(module: &Module, exports: &BTreeSet<String>) -> String {
    let Module { name, needs, .. } = module;
    let mut text = format!(
        "#define INCLUDE_VERMAGIC
#include <linux/module.h>
#include <linux/export-internal.h>
#include <linux/vermagic.h>
MODULE_INFO(vermagic, VERMAGIC_STRING);
MODULE_INFO(name, \"{name}\");
MODULE_INFO(depends, \"{needs}\");
struct module __this_module __section(\".gnu.linkonce.this_module\") = {{
    .name = \"{name}\", .init = init_module, .exit = cleanup_module, .arch = MODULE_ARCH_INIT,
}};
"
    );
    for export in exports {
        // 1: for modules under the GPL alone, which all of these are.
        text += &format!("KSYMTAB_FUNC({export}, \"\");\nSYMBOL_FLAGS({export}, 1);\n");
    }
    text
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_built_after_those_of_ours_that_it_needs() {
        let mut before = vec!["irqbypass"];
        for module in &MODULES {
            for need in module.needs.split(',').filter(|need| !need.is_empty()) {
                assert!(before.contains(&need), "{} needs {need}", module.name);
            }
            before.push(module.name);
        }
    }

    #[test]
    fn a_module_says_what_it_needs_and_exports() {
        let exports = BTreeSet::from(["b".to_owned(), "a".to_owned()]);
        let text = about_module(&MODULES[1], &exports);
        assert!(text.contains("MODULE_INFO(depends, \"iommufd\");"), "{text}");
        let order: Vec<&str> = text.lines().filter(|line| line.starts_with("KSYMTAB")).collect();
        assert_eq!(order, ["KSYMTAB_FUNC(a, \"\");", "KSYMTAB_FUNC(b, \"\");"]);
    }
}
