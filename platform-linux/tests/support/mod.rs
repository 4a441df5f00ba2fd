//! What the tests of the command line share. Each file uses a part of it.

#![allow(dead_code)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `dv` with arguments that are separated by blanks.
pub fn dv(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dv")).args(arguments.split_whitespace()).output().expect("dv starts")
}

/// What was written.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("dv writes UTF-8")
}

/// Standard output of a run that must end well.
pub fn told(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Names of all software NICs.
pub const SOFT: [&str; 4] = ["soft:bnxt_re-p5", "soft:bnxt_re", "soft:ionic-v1", "soft:ionic"];

/// Runs `dv`, expects exit status 2, silence on standard output, and `parts` in the message.
pub fn refused(arguments: &str, parts: &[&str]) {
    let output = dv(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "dv {arguments}: {message}");
    assert!(output.stdout.is_empty(), "dv {arguments}");
    // Long messages are wrapped.
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(message.contains(part), "dv {arguments}: no `{part}` in: {message}");
    }
}

/// Runs `dv`, expects exit status 1, and `parts` in the one line that it says.
pub fn failed(arguments: &str, parts: &[&str]) {
    let output = dv(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "dv {arguments}: {message}");
    assert_eq!(message.lines().count(), 1, "dv {arguments}: {message}");
    for part in parts {
        assert!(message.contains(part), "dv {arguments}: no `{part}` in: {message}");
    }
}

/// A machine made of files: its sysfs and its devices' files.
pub struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    /// One bnxt_re, one ionic and one soft device, with files that can be opened.
    pub fn usual() -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a folder") };
        machine.write("sys/class/infiniband_verbs/abi_version", "6\n");
        machine.device("bnxt_re0", "uverbs0", Some(("bnxt_en", "0x14e4", "0x1760")), 1);
        machine.device("ionic_0", "uverbs1", Some(("ionic", "0x1dd8", "0x1002")), 1);
        machine.device("rxe0", "uverbs10", None, 2);
        machine.write("sys/class/net/eth0/mtu", "1500\n");
        machine
    }

    /// Without any RDMA subsystem.
    pub fn bare() -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a folder") };
        machine.write("sys/class/net/eth0/mtu", "1500\n");
        machine
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The arguments that make `dv` look here.
    pub fn places(&self) -> String {
        let root = self.root().display();
        format!("--sysfs {root}/sys --nodes {root}/dev")
    }

    /// Writes a file below it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn device(&self, name: &str, uverbs: &str, pci: Option<(&str, &str, &str)>, abi: u32) {
        let folder = format!("sys/class/infiniband/{name}");
        let real = format!("sys/devices/pci0000:00/0000:0{}:00.0", uverbs.trim_start_matches("uverbs"));
        let mut files: Vec<(String, String)> = [
            ("node_guid", "0211:22ff:fe33:4455"),
            ("sys_image_guid", "0211:22ff:fe33:4456"),
            ("fw_ver", "232.0.1"),
            ("node_desc", if pci.is_some() { "host" } else { "rxe" }),
            ("ports/1/state", "4: ACTIVE"),
            ("ports/1/phys_state", "5: LinkUp"),
            ("ports/1/link_layer", "Ethernet"),
            ("ports/1/rate", "100 Gb/sec (4X EDR)"),
            ("ports/1/gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
            ("ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001"),
            ("ports/1/gid_attrs/types/0", "RoCE v2"),
            ("ports/1/gid_attrs/types/1", "RoCE v2"),
            ("ports/1/gid_attrs/ndevs/0", "eth0"),
            ("ports/1/gid_attrs/ndevs/1", "eth0"),
        ]
        .map(|(file, text)| (format!("{folder}/{file}"), format!("{text}\n")))
        .into();
        let verbs = format!("sys/class/infiniband_verbs/{uverbs}");
        files.push((format!("{verbs}/ibdev"), format!("{name}\n")));
        files.push((format!("{verbs}/abi_version"), format!("{abi}\n")));
        files.push((format!("dev/{uverbs}"), String::new()));
        if let Some((_, vendor, device)) = pci {
            files.push((format!("{real}/vendor"), format!("{vendor}\n")));
            files.push((format!("{real}/device"), format!("{device}\n")));
        }
        for (path, text) in files {
            self.write(&path, &text);
        }
        if let Some((driver, ..)) = pci {
            let drivers = self.root().join("sys/bus/pci/drivers").join(driver);
            fs::create_dir_all(&drivers).expect("a folder");
            symlink(&drivers, self.root().join(&real).join("driver")).expect("a link");
            symlink(self.root().join(&real), self.root().join(&folder).join("device")).expect("a link");
        }
    }
}
