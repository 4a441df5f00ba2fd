//! What a process holds: for tests that nothing stays behind.

use std::collections::BTreeMap;

use crate::machine::State;
use crate::schema::ObjectKind;
use crate::user::PinnedMemory;

/// What is open, mapped and registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Device files that are open.
    pub device_files: usize,
    /// Contexts.
    pub contexts: usize,
    /// Files of events that are open.
    pub event_files: usize,
    /// Objects, by kind.
    pub objects: BTreeMap<ObjectKind, usize>,
    /// Mappings: pages of devices, and fresh memory.
    pub mappings: usize,
    /// Ranges of memory that are pinned.
    pub pinned: usize,
    /// Numbers that drivers have given out: doorbell and push pages, queues of ionic.
    pub numbers: usize,
}

impl Census {
    pub(crate) fn of(state: &State, memory: &PinnedMemory) -> Self {
        let contexts = || state.files.values().filter_map(|file| file.context.as_ref());
        let mut objects = BTreeMap::new();
        for (_, object) in contexts().flat_map(|context| context.objects.iter()) {
            *objects.entry(object.kind()).or_default() += 1;
        }
        let numbers = |device: &crate::device::Device| {
            let queues = device.qps.iter().chain([&device.cqs, &device.dpis, &device.push_pages]);
            queues.map(crate::device::Numbers::len).sum::<usize>() + device.space.len()
        };
        Self {
            device_files: state.files.len(),
            contexts: contexts().count(),
            event_files: state.events.count(),
            objects,
            mappings: state.mappings.len(),
            pinned: memory.count(),
            numbers: state.devices.iter().map(numbers).sum(),
        }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
