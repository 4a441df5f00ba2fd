//! The modes of the device, and what is done in each.

use directverbs::verbs::QpType;

use crate::uverbs::bnxt_re::{Config, PacingParameters};

/// What cases of a mode do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Post, complete and poll.
    Traffic,
    /// Create queues of all sizes.
    Sizes,
}

/// A mode.
#[derive(Clone, Debug)]
pub struct Mode {
    /// Name: what the command line takes.
    pub name: String,
    /// The device.
    pub config: Config,
    /// The device has atomics.
    pub atomics: bool,
    /// What is done.
    pub subject: Subject,
    /// Kind of the queue pairs.
    pub qp_type: QpType,
    /// Queue pairs.
    pub qps: usize,
    /// Receives come from a shared queue.
    pub shared: bool,
    /// Sends and receives complete at queues of their own.
    pub two_cqs: bool,
    /// Requests are also posted with the builder functions.
    pub builder: bool,
}

/// Chip before P5.
const LEGACY: u16 = 0x16d7;

/// Pacing of half of all doorbells.
const PACING: PacingParameters = PacingParameters {
    do_pacing: 0x8000,
    pacing_th: 0x100,
    alarm_th: 0x200,
    fifo_max_depth: 0x2c00,
    fifo_room_mask: 0x1fff_8000,
    fifo_room_shift: 15,
    grc_reg_offset: 0x41a8,
};

/// Kinds of cases that every device gets: name, kind of queue pair, shared receives, builder functions.
const EVERYWHERE: [(&str, QpType, bool, bool); 5] = [
    ("rc", QpType::Rc, false, false),
    ("rc-srq", QpType::Rc, true, false),
    ("rc-builder", QpType::Rc, false, true),
    ("ud", QpType::Ud, false, false),
    ("ud-builder", QpType::Ud, false, true),
];

/// All modes.
pub fn all() -> Vec<Mode> {
    let devices = [
        ("legacy-static", Config { chip: LEGACY, ..Config::p5() }),
        ("p5-static", Config::p5()),
        ("p5-variable", Config { variable_wqe: true, ..Config::p5() }),
        ("p7-static", Config { variable_wqe: false, ..Config::p7() }),
        ("p7-variable", Config::p7()),
        ("p7-psn-variable", Config { msn_table: false, ..Config::p7() }),
    ];
    let mut modes = Vec::new();
    for (device, config) in devices {
        for (depths, exact_depths) in [("pow2", false), ("exact", true)] {
            // Small enough that some completion queues get deferred doorbells and some do not.
            let config = Config { exact_depths, max_cq_depth: 1000, ..config.clone() };
            let mode = |name: &str| Mode {
                name: format!("{device}-{depths}-{name}"),
                config: config.clone(),
                atomics: true,
                subject: Subject::Traffic,
                qp_type: QpType::Rc,
                qps: 1,
                shared: false,
                two_cqs: false,
                builder: false,
            };
            for (name, qp_type, shared, builder) in EVERYWHERE {
                modes.push(Mode { qp_type, shared, builder, ..mode(name) });
            }
            modes.push(Mode { subject: Subject::Sizes, ..mode("sizes") });
            if exact_depths == (device == "p7-variable") && ["p5-static", "p7-variable"].contains(&device) {
                let push = Config { push: true, ..config.clone() };
                let pacing = Config { pacing: Some(PACING), ..config.clone() };
                modes.extend([
                    Mode { two_cqs: true, ..mode("two-cqs") },
                    Mode { qps: 2, ..mode("pair") },
                    Mode { qp_type: QpType::RawPacket, ..mode("raw") },
                    Mode { atomics: false, ..mode("no-atomics") },
                    Mode { qp_type: QpType::Ud, shared: true, ..mode("ud-srq") },
                    Mode { config: push.clone(), ..mode("push-rc") },
                    Mode { config: push.clone(), qp_type: QpType::Ud, ..mode("push-ud") },
                    Mode { config: push, builder: true, ..mode("push-builder") },
                    Mode { config: pacing.clone(), ..mode("pacing-rc") },
                    Mode { config: pacing, shared: true, ..mode("pacing-srq") },
                ]);
            }
        }
    }
    modes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_a_name_of_its_own() {
        let modes = all();
        let names: std::collections::BTreeSet<&str> = modes.iter().map(|mode| mode.name.as_str()).collect();
        assert_eq!(names.len(), modes.len());
        let any = |wanted: fn(&Mode) -> bool| modes.iter().any(wanted);
        assert!(any(|m| m.config.push) && any(|m| m.config.pacing.is_some()) && any(|m| m.config.toggle));
        assert!(any(|m| m.config.exact_depths && m.config.variable_wqe && m.config.msn_table));
        assert!(any(|m| !m.config.exact_depths && !m.config.variable_wqe && !m.config.msn_table));
    }
}
