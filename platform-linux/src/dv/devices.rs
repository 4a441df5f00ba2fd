//! `dv devices`.

use directverbs_softnic::open::WqeMode;
use serde::Serialize;

use crate::Failure;
use crate::cli::{DeviceName, DevicesArgs};

/// A device that can be opened.
#[derive(Serialize)]
struct Entry {
    device: String,
    description: &'static str,
    wqe_modes: Vec<&'static str>,
}

/// Lists them.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let entries: Vec<_> = DeviceName::all()
        .map(|device| Entry {
            device: device.to_string(),
            description: device.0.description(),
            wqe_modes: WqeMode::ALL
                .into_iter()
                .filter(|m| device.0.has_wqe_mode(*m))
                .map(WqeMode::name)
                .collect(),
        })
        .collect();
    if args.json {
        let text = serde_json::to_string_pretty(&entries).map_err(|e| Failure::Fault(e.to_string()))?;
        println!("{text}");
        return Ok(());
    }
    println!("{:<17} {:<17} DESCRIPTION", "DEVICE", "WQE MODES");
    for entry in entries {
        println!(
            "{:<17} {:<17} {}, software NIC",
            entry.device,
            entry.wqe_modes.join(", "),
            entry.description
        );
    }
    Ok(())
}
