//! `dv` over vfio-pci: NICs behind the machine's IOMMU, which the program takes by itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::says;
use crate::check::{Check, Stage};
use crate::machine::{load, wait_for};

/// The program.
const DV: &str = "/dv";
/// A user that is nobody.
const NOBODY: u32 = 65534;
/// Where functions are in sysfs.
const FUNCTIONS: &str = "/sys/bus/pci/devices";
const CONTAINER: &str = "/dev/vfio/vfio";
const IOMMUFD: &str = "/dev/iommu";
const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";
/// What the kinds of NICs are called, in the order of the machine's functions; there are two of each. Those of the last are
/// functions of one slot, and so of one group.
const KINDS: [&str; 4] = ["bnxt_re-p5", "bnxt_re", "ionic-v1", "ionic"];

/// The stages.
pub fn stages() -> Vec<Stage> {
    let stage = |prepare, checks| Stage { prepare, checks, others: 0 };
    vec![
        stage(
            || {},
            vec![
                Check::of(functions_that_no_driver_has_say_what_helps),
                Check::of(an_address_without_a_function_is_named),
            ],
        ),
        stage(
            bind,
            vec![
                Check::of(functions_that_vfio_has_can_be_opened),
                Check::of(the_kernel_has_both_interfaces),
                Check::of(a_user_without_rights_is_told_which_file),
                Check::of(a_user_who_may_lock_too_little_is_told_the_limit),
                Check::of(huge_pages_that_are_not_there_are_said_and_done_without),
                Check::of(info_tells_what_the_nic_can),
                Check::of(bnxt_re_p5_with_itself),
                Check::of(bnxt_re_with_itself),
                Check::of(ionic_v1_with_itself),
                Check::of(ionic_with_itself),
                Check::of(vendors_mixed),
                Check::of(every_operation_over_huge_pages),
                Check::of(a_function_has_one_process),
                Check::of(a_group_has_one_process),
                Check::of(a_group_that_another_driver_has_a_function_of_is_not_viable),
                Check::of(two_processes_over_their_network),
                Check::of(a_process_that_is_killed_leaves_nothing_mapped),
                Check::of(measures_latency),
            ],
        ),
    ]
}

/// Addresses of the machine's NICs, two for each of `KINDS`.
fn functions() -> Vec<String> {
    let id = |folder: &Path| {
        let read = |file| fs::read_to_string(folder.join(file)).unwrap_or_default();
        (read("vendor").trim().to_owned(), read("device").trim().to_owned())
    };
    let entries = fs::read_dir(FUNCTIONS).expect("PCI functions").flatten();
    let known = entries.filter(|entry| {
        let (vendor, device) = id(&entry.path());
        vendor == "0x14e4" || (vendor.as_str(), device.as_str()) == ("0x1dd8", "0x1002")
    });
    let mut names: Vec<String> = known.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    assert_eq!(names.len(), 2 * KINDS.len(), "{names:?}");
    names
}

/// `nth` of the two NICs of a kind, as `dv` calls it.
fn nic(kind: &str, nth: usize) -> String {
    let at = KINDS.iter().position(|known| *known == kind).expect("a kind");
    format!("pci:{}", functions()[2 * at + nth])
}

/// Gives all NICs to vfio-pci.
fn bind() {
    load("vfio_iommu_type1");
    load("vfio_pci");
    for name in functions() {
        give(&name, "vfio-pci");
        wait_for("the group's file", || file_of(&name).exists().then_some(()));
    }
}

/// Gives a function to a driver.
fn give(name: &str, driver: &str) {
    let folder = Path::new(FUNCTIONS).join(name);
    if folder.join("driver").exists() {
        fs::write(folder.join("driver/unbind"), name).expect("its driver lets it go");
    }
    fs::write(folder.join("driver_override"), driver).expect("a driver to want");
    fs::write("/sys/bus/pci/drivers_probe", name).expect("a driver");
    let has = fs::read_link(folder.join("driver")).expect("a driver");
    assert!(has.ends_with(driver), "{name} has {}", has.display());
}

/// File of the group of a function.
fn file_of(name: &str) -> PathBuf {
    let group = fs::read_link(Path::new(FUNCTIONS).join(name).join("iommu_group")).expect("a group");
    Path::new("/dev/vfio").join(group.file_name().expect("a number"))
}

fn dv(arguments: &str) -> Command {
    let mut command = Command::new(DV);
    command.args(arguments.split_whitespace());
    // The NICs are as busy as the machine that the guest and they run on.
    if arguments.split_whitespace().any(|argument| argument == "--device") {
        command.args(["--command-limit", "60s"]);
    }
    command
}

/// Output of a command that ends with success, and what it has said beside.
fn told(command: &mut Command) -> (String, String) {
    let output = command.output().expect("dv");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{:?}: {}: {err}{out}", command.get_args(), output.status);
    (out, err)
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The only line of a command that fails with this status.
fn fails(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("dv");
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "{:?}: {err}", command.get_args());
    err.trim_end().to_owned()
}

/// Pages that the kernel holds in place for devices.
fn pinned() -> i64 {
    // Has each processor's counts added up.
    let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
    let text = fs::read_to_string("/proc/vmstat").expect("statistics");
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a counter");
        line.trim().parse::<i64>().expect("a number")
    };
    count("nr_foll_pin_acquired ") - count("nr_foll_pin_released ")
}

/// Runs `job` between two NICs; what they could reach is theirs no more when it ends.
fn pingpong(a: &str, b: &str, job: &str) -> String {
    let arguments = format!("pingpong --device {a} --peer-device {b} --json {job}");
    let (out, err) = told(&mut dv(&arguments));
    assert_eq!(err, "", "dv {arguments}");
    assert_eq!(pinned(), 0, "pages are still held after dv {arguments}");
    out
}

/// A pair of a kind, by each interface: messages, and memory of the peer's.
fn with_itself(kind: &str) {
    let (a, b) = (nic(kind, 0), nic(kind, 1));
    for (interface, _) in interfaces(&functions()[0]) {
        for op in ["send", "read"] {
            let out = pingpong(&a, &b, &format!("--op {op} --size 1000 --iters 32 --vfio {interface}"));
            says(out.trim_end(), &["\"verified_bytes\":64000"]);
        }
    }
}

fn bnxt_re_p5_with_itself() {
    with_itself("bnxt_re-p5");
}

fn bnxt_re_with_itself() {
    with_itself("bnxt_re");
}

fn ionic_v1_with_itself() {
    with_itself("ionic-v1");
}

fn ionic_with_itself() {
    with_itself("ionic");
}

fn vendors_mixed() {
    for (a, b) in [("bnxt_re-p5", "ionic-v1"), ("ionic", "bnxt_re")] {
        pingpong(&nic(a, 0), &nic(b, 1), "--iters 32 --size 3000");
    }
}

fn functions_that_no_driver_has_say_what_helps() {
    let (out, _) = told(&mut dv("devices"));
    for name in functions() {
        let line = out.lines().find(|line| line.starts_with(&format!("pci:{name}"))).expect("a line");
        says(line, &["no: ", "no driver has the function, and not vfio-pci", "driver_override"]);
    }
    let text = fails(
        &mut dv(&format!("pingpong --device {} --peer-device {}", nic("ionic", 0), nic("ionic", 1))),
        1,
    );
    says(&text, &["error: pci:", "/driver: no driver has the function", "load vfio-pci"]);
}

fn an_address_without_a_function_is_named() {
    let text = fails(&mut dv("info --device pci:0000:ff:1f.7"), 1);
    says(&text, &["/sys/bus/pci/devices/0000:ff:1f.7: no PCI function has this address"]);
}

fn functions_that_vfio_has_can_be_opened() {
    let (out, _) = told(&mut dv("devices"));
    for name in functions() {
        let line = out.lines().find(|line| line.starts_with(&format!("pci:{name}"))).expect("a line");
        assert!(line.contains("vfio-pci") && line.trim_end().ends_with("yes"), "{line}");
    }
}

/// Without this, the other checks would be of one interface alone.
fn the_kernel_has_both_interfaces() {
    let names: Vec<_> = interfaces(&functions()[0]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["group", "cdev"]);
    for name in functions() {
        for (_, files) in interfaces(&name) {
            for file in files {
                assert!(file.exists(), "{}", file.display());
            }
        }
    }
    let groups: Vec<PathBuf> = functions().iter().map(|name| file_of(name)).collect();
    let mut others = groups.clone();
    others.dedup();
    assert_eq!(others.len(), groups.len() - 1, "the last two functions are of one group: {groups:?}");
}

/// File of a function itself, where the kernel has such.
fn character_device(name: &str) -> Option<PathBuf> {
    let folder = Path::new(FUNCTIONS).join(name).join("vfio-dev");
    let device = fs::read_dir(&folder).expect("a folder").flatten().next().expect("a device");
    device.path().join("dev").exists().then(|| Path::new("/dev/vfio/devices").join(device.file_name()))
}

/// The interfaces that the kernel has, and the files that a process opens for a function: what all share, and its own.
fn interfaces(name: &str) -> Vec<(&'static str, [PathBuf; 2])> {
    let group = ("group", [CONTAINER.into(), file_of(name)]);
    let device = character_device(name).map(|file| ("cdev", [IOMMUFD.into(), file]));
    [group].into_iter().chain(device).collect()
}

fn a_user_without_rights_is_told_which_file() {
    let name = &functions()[6];
    let command = |arguments: &str| {
        let mut command = dv(&format!("info --device pci:{name} {arguments}"));
        command.uid(NOBODY).gid(NOBODY);
        command
    };
    for (interface, [shared, own]) in interfaces(name) {
        let arguments = format!("--vfio {interface}");
        fs::set_permissions(&shared, Permissions::from_mode(0o666)).expect("our file");
        let text = fails(&mut command(&arguments), 1);
        says(&text, &[&own.display().to_string(), "Permission denied", "run as root", "udev"]);
        fs::set_permissions(&shared, Permissions::from_mode(0o600)).expect("our file");
        says(&fails(&mut command(&arguments), 1), &[&shared.display().to_string(), "Permission denied"]);
    }
    fs::set_permissions(CONTAINER, Permissions::from_mode(0o666)).expect("our file");
    // What the user has no right to is not taken where there is a choice.
    let own = file_of(name);
    chown(&own, Some(NOBODY), Some(NOBODY)).expect("our file");
    told(&mut command("--dma-memory 6M"));
    chown(&own, Some(0), Some(0)).expect("our file");
}

fn a_user_who_may_lock_too_little_is_told_the_limit() {
    let name = &functions()[6];
    for (interface, files) in interfaces(name) {
        for file in &files {
            chown(file, Some(NOBODY), Some(NOBODY)).expect("our file");
        }
        let command = |limit: u64| {
            let arguments = format!("info --device pci:{name} --vfio {interface} --dma-memory 6M");
            let mut command = dv(&arguments);
            command.uid(NOBODY).gid(NOBODY);
            // SAFETY: a system call, and nothing else.
            unsafe {
                command.pre_exec(move || {
                    let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
                    Ok(setrlimit(Resource::Memlock, limit)?)
                });
            }
            command
        };
        says(
            &fails(&mut command(4 << 20), 1),
            &["6291456 bytes cannot be locked", "ulimit -l", "is 4194304 bytes"],
        );
        told(&mut command(7 << 20));
        assert_eq!(pinned(), 0, "pages are still held");
        for file in &files {
            chown(file, Some(0), Some(0)).expect("our file");
        }
    }
}

fn huge_pages_that_are_not_there_are_said_and_done_without() {
    let arguments = format!("info --device {} --huge-pages", nic("ionic", 0));
    let (_, err) = told(&mut dv(&arguments));
    says(
        err.trim_end(),
        &["no huge pages: Cannot allocate memory", "vm.nr_hugepages", "goes on with small ones"],
    );
    fs::write(HUGE_PAGES, "48").expect("huge pages");
    let (_, err) = told(&mut dv(&arguments));
    assert_eq!(err, "", "there are huge pages now");
}

fn info_tells_what_the_nic_can() {
    for kind in KINDS {
        let (out, _) = told(&mut dv(&format!("info --device {} --json", nic(kind, 0))));
        let line = out.split_whitespace().collect::<String>();
        says(&line, &[&format!("\"family\":\"{kind}\""), "\"driver\":\"vfio-pci\"", "\"state\":\"active\""]);
    }
}

fn every_operation_over_huge_pages() {
    let (a, b) = (nic("bnxt_re", 0), nic("bnxt_re", 1));
    for op in ["send", "send-imm", "send-inv", "write", "write-imm", "read", "cas", "fetch-add", "ud-send"] {
        pingpong(&a, &b, &format!("--op {op} --iters 8 --huge-pages"));
    }
    pingpong(&a, &b, "--srq --batch 4 --iters 16 --huge-pages");
}

/// Starts a process that waits for a peer, and gives it once it has its NIC.
fn listener(device: &str, port: u16) -> Child {
    let arguments = format!("pingpong --device {device} --listen 127.0.0.1:{port} --iters 32 --json");
    let mut child = dv(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dv");
    // It says where it listens before it waits.
    let mut line = String::new();
    let said = child.stderr.as_mut().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).expect("a line");
    assert!(line.starts_with("listening"), "{line}");
    child
}

fn two_processes_over_their_network() {
    crate::machine::network::set_up("lo", true);
    let mut child = listener(&nic("bnxt_re-p5", 0), 18515);
    told(&mut dv(&format!("pingpong --device {} --connect 127.0.0.1:18515 --iters 32", nic("ionic", 1))));
    assert!(child.wait().expect("the other").success());
    assert_eq!(pinned(), 0, "pages are still held");
}

/// A process that has a NIC until it is killed.
fn holder(device: &str, interface: &str) -> Child {
    let peer = nic("ionic-v1", 1);
    let job = format!("--iters 100000000 --vfio {interface}");
    let command = &mut dv(&format!("pingpong --device {device} --peer-device {peer} {job} --json"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("dv");
    wait_for("its memory", || (pinned() > 0).then_some(()));
    child
}

fn a_function_has_one_process() {
    let device = nic("ionic-v1", 0);
    let interfaces = interfaces(&functions()[4]);
    for (first, _) in &interfaces {
        let child = holder(&device, first);
        for (second, _) in &interfaces {
            let text = fails(&mut dv(&format!("info --device {device} --vfio {second}")), 1);
            says(&text, &["/dev/vfio/", "another process has it"]);
        }
        kill(child);
    }
}

/// The two last functions are one group: one process has both, by one interface.
fn a_group_has_one_process() {
    let [first, second] = [nic("ionic", 0), nic("ionic", 1)];
    for (held, _) in interfaces(&functions()[6]) {
        let child = holder(&first, held);
        for (wanted, _) in interfaces(&functions()[7]) {
            let text = fails(&mut dv(&format!("info --device {second} --vfio {wanted}")), 1);
            says(&text, &["/dev/vfio/", "another process has it", "of the same IOMMU group"]);
        }
        kill(child);
    }
}

/// A driver that is neither for processes nor harmless, and that takes whatever it is told to.
const OTHER: &str = "uio_pci_generic";

fn a_group_that_another_driver_has_a_function_of_is_not_viable() {
    load(OTHER);
    let [first, second] = [&functions()[6], &functions()[7]];
    give(second, OTHER);
    for (interface, _) in interfaces(first) {
        let text = fails(&mut dv(&format!("info --device pci:{first} --vfio {interface}")), 1);
        let other = format!("{second} ({OTHER})");
        says(&text, &["/dev/vfio/", "the group is not viable", "bind these functions to vfio-pci", &other]);
    }
    give(second, "vfio-pci");
    pingpong(&nic("ionic", 0), &nic("ionic", 1), "--iters 8");
}

/// Ends a process as nothing that it could prepare for. What it had goes.
fn kill(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    wait_for("its memory to come back", || (pinned() == 0).then_some(()));
}

fn a_process_that_is_killed_leaves_nothing_mapped() {
    let device = nic("ionic-v1", 0);
    for (interface, _) in interfaces(&functions()[4]) {
        kill(holder(&device, interface));
        pingpong(&device, &nic("ionic-v1", 1), &format!("--iters 8 --vfio {interface}"));
    }
}

fn measures_latency() {
    let (a, b) = (nic("ionic", 0), nic("bnxt_re", 0));
    let (out, _) = told(&mut dv(&format!("perf write lat --device {a} --peer-device {b} --iters 32 --json")));
    assert!(out.contains("\"p50") || out.contains("median"), "{out}");
}
