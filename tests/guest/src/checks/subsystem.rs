//! Before there is a device.

use std::path::Path;

use directverbs_linux::objects::Context;
use directverbs_linux::sysfs::{Device, Problem, Sysfs};
use directverbs_linux::uverbs::Uhw;
use rustix::io::Errno;

use super::{kernel, refused, says};
use crate::check::Check;
use crate::machine::network::DEVICE;

pub fn without_modules() -> Vec<Check> {
    vec![Check::of(no_subsystem_says_what_to_load), Check::of(a_file_that_is_not_there_says_what_to_load)]
}

pub fn without_uverbs() -> Vec<Check> {
    vec![Check::of(a_device_without_ib_uverbs_says_what_to_load)]
}

fn no_subsystem_says_what_to_load() {
    let all = Device::all(&Sysfs::default()).expect_err("no module is loaded");
    let one = Device::find(&Sysfs::default(), DEVICE).expect_err("no module is loaded");
    for error in [all, one] {
        assert!(matches!(error.problem, Problem::NoSubsystem), "{error}");
        says(&error.to_string(), &["/sys/class/infiniband", "no RDMA subsystem", "load ib_uverbs"]);
    }
}

fn a_file_that_is_not_there_says_what_to_load() {
    let path = Path::new("/dev/infiniband/uverbs0");
    let text = refused(Context::open_path(kernel(), path, None, Uhw::none()), Errno::NOENT);
    says(&text, &["/dev/infiniband/uverbs0", "load ib_uverbs"]);
}

fn a_device_without_ib_uverbs_says_what_to_load() {
    let error = Device::find(&Sysfs::default(), DEVICE).expect_err("ib_uverbs is not loaded");
    assert!(matches!(error.problem, Problem::NoUverbs), "{error}");
    says(&error.to_string(), &["/sys/class/infiniband/rxe0", "load ib_uverbs"]);
}
