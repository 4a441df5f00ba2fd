//! `dv layout`: the layouts as tables, pictures and a C header; dumps decoded; all of it compared with the kernel.

mod btf;
mod check;
mod decode;
mod diagram;
mod header;
mod hex;
mod names;
mod source;
mod svg;
mod unpack;
mod words;

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use directverbs::description;
use directverbs::layout::{self, Layout};

use crate::{Failure, print};

/// Arguments of `dv layout`.
#[derive(Args)]
pub struct LayoutArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the structures
    List,
    /// Show a structure: its fields, their bits, and a diagram
    Show {
        /// Name, FAMILY:NAME, or the kernel's name
        name: String,
        /// Draw it as SVG
        #[arg(long)]
        svg: bool,
    },
    /// Print a C11 header of all structures, for C, C++, HIP and CUDA
    Header,
    /// Decode a hex dump: xxd, hexdump, od, plain hex or a kernel log
    Decode {
        /// Name, FAMILY:NAME, or the kernel's name
        name: String,
        /// File with the dump [default: standard input]
        file: Option<PathBuf>,
        /// How groups of more than two digits are meant
        #[arg(long, value_enum, default_value = "auto")]
        groups: hex::Groups,
    },
    /// Compare every structure's size, and its fields' offsets, widths and byte orders, with a kernel's BTF
    Check {
        /// Kernel module (.ko, or .ko.xz, .ko.gz or .ko.zst), other ELF file or raw BTF; may repeat [default: the
        /// running kernel's modules]
        #[arg(long, value_name = "FILE")]
        module: Vec<PathBuf>,
        /// The kernel that the modules belong to: vmlinux, vmlinuz or raw BTF
        #[arg(long, value_name = "FILE", requires = "module")]
        vmlinux: Option<PathBuf>,
        /// Only the structures of this family, and all of them; may repeat [default: those that the modules have]
        #[arg(long, value_parser = ["bnxt_re", "ionic"])]
        family: Vec<String>,
    },
}

/// Runs one of them.
pub fn run(args: &LayoutArgs) -> Result<(), Failure> {
    match &args.command {
        Command::List => print(&list()),
        Command::Show { name, svg: false } => print(&diagram::text(find(name)?)),
        Command::Show { name, svg: true } => print(&svg::picture(find(name)?)),
        Command::Header => print(&header::header()),
        Command::Decode { name, file, groups } => {
            let layout = find(name)?;
            let from = file.as_ref().map_or("standard input".into(), |f| f.display().to_string());
            let fault = |e: String| Failure::Fault(format!("{from}: {e}"));
            let mut text = Vec::new();
            match file {
                Some(file) => std::fs::File::open(file).and_then(|mut f| f.read_to_end(&mut text)),
                None => std::io::stdin().lock().read_to_end(&mut text),
            }
            .map_err(|e| fault(e.to_string()))?;
            let bytes = hex::parse(&String::from_utf8_lossy(&text), *groups).map_err(fault)?;
            print(&decode::text(layout, &bytes).map_err(fault)?)
        }
        Command::Check { module, vmlinux, family } => check::run(module, vmlinux.as_deref(), family),
    }
}

/// Layouts and descriptions.
fn structures() -> impl Iterator<Item = &'static Layout> {
    layout::all().chain(description::all())
}

fn find(name: &str) -> Result<&'static Layout, Failure> {
    let wanted = |l: &&Layout| l.name == name || format!("{}:{}", l.family, l.name) == name;
    let of_kernel = |l: &&Layout| !l.kernel.is_empty() && l.kernel == name;
    let mut found = structures().filter(wanted);
    let mut by_kernel = structures().filter(of_kernel);
    match (found.next(), found.next(), by_kernel.next(), by_kernel.next()) {
        (Some(one), None, ..) | (None, _, Some(one), None) => Ok(one),
        (None, _, None, _) => {
            Err(Failure::Usage(format!("no structure is called `{name}`; `dv layout list` lists them")))
        }
        _ => {
            let all: Vec<_> = structures()
                .filter(|l| wanted(l) || of_kernel(l))
                .map(|l| format!("{}:{}", l.family, l.name))
                .collect();
            Err(Failure::Usage(format!("`{name}` may be any of: {}", all.join(", "))))
        }
    }
}

fn list() -> String {
    let mut out = format!("{:<8} {:<20} {:<22} {:>5}  WHAT\n", "FAMILY", "NAME", "KERNEL", "BYTES");
    for l in structures() {
        let kernel = if l.kernel.is_empty() { "-" } else { l.kernel };
        let what = diagram::first_sentence(l.doc);
        out += &format!("{:<8} {:<20} {kernel:<22} {:>5}  {what}\n", l.family, l.name, l.size);
    }
    out
}
