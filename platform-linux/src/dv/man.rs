//! `dv man`: manual pages, made from the definition of the arguments.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::{Failure, print};

/// Arguments of `dv man`.
#[derive(Args)]
pub struct ManArgs {
    /// Folder for the pages, one for each command: `man -l DIR/dv-perf.1` shows one
    directory: PathBuf,
}

/// Writes them.
pub fn run(args: &ManArgs) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| Failure::Fault(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&args.directory).map_err(|error| failed(&args.directory, error))?;
    let mut names = String::new();
    for (name, text) in pages()? {
        let path = args.directory.join(&name);
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
        names += &format!("{}\n", path.display());
    }
    print(&names)
}

/// All pages: file name and text.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages).map_err(|error| Failure::Fault(error.to_string()))?;
    Ok(pages)
}

fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut text = Vec::new();
    Man::new(command.clone()).title(&name).render(&mut text)?;
    pages.push((format!("{name}.1"), text));
    command.get_subcommands().try_for_each(|below| collect(below, pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As roff writes a hyphen that is one.
    fn roff(option: &str) -> String {
        option.replace('-', "\\-")
    }

    fn check(command: &Command, pages: &[(String, Vec<u8>)]) -> usize {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let (_, text) = pages.iter().find(|(file, _)| *file == format!("{name}.1")).expect(name);
        let text = String::from_utf8_lossy(text);
        for section in ["SH NAME", "SH SYNOPSIS", "SH DESCRIPTION"] {
            assert!(text.contains(section), "{name}: no {section}");
        }
        let mut checked = 0;
        for argument in command.get_arguments() {
            let shown = match argument.get_long() {
                Some(long) => roff(&format!("--{long}")),
                None => argument.get_value_names().unwrap_or_default().join(" "),
            };
            assert!(text.contains(&shown), "{name}: no {shown} in\n{text}");
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let first = help.split([' ', ',', ':']).next().unwrap_or_default();
            assert!(!first.is_empty() && text.contains(first), "{name}: no help of {shown}");
            checked += 1;
        }
        for below in command.get_subcommands() {
            let page = below.get_display_name().unwrap_or(below.get_name());
            assert!(text.contains(&roff(page)), "{name}: no {page}");
            checked += check(below, pages);
        }
        checked
    }

    #[test]
    fn every_command_and_every_argument_is_in_a_page() {
        let pages = pages().expect("pages");
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        assert!(check(&command, &pages) > 60);
        fn count(command: &Command) -> usize {
            1 + command.get_subcommands().map(count).sum::<usize>()
        }
        assert_eq!(pages.len(), count(&command));
        for name in [
            "dv.1",
            "dv-devices.1",
            "dv-info.1",
            "dv-pingpong.1",
            "dv-perf.1",
            "dv-layout-show.1",
            "dv-man.1",
        ] {
            assert!(pages.iter().any(|(file, _)| file == name), "{name}");
        }
    }
}
