//! The wire: an in-process switch that joins NICs by Ethernet address, and loses, repeats, delays and corrupts frames
//! as planned.

use std::collections::BTreeMap;

use directverbs::verbs::Mac;

use crate::fault::{FaultPlan, Random};
use crate::pcap::Capture;
use crate::uplink::Outlet;

/// Time from the last byte sent to the first received.
const LATENCY_NS: u64 = 600;
/// Additional time of a frame that is overtaken.
const DETOUR_NS: u64 = 4_000;
/// Bits that the line carries in a nanosecond.
const BITS_PER_NS: u64 = 100;

/// What the wire did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Frames lost by plan.
    pub lost: u64,
    /// Frames doubled by plan.
    pub duplicated: u64,
    /// Frames sent on a detour by plan.
    pub reordered: u64,
    /// Frames changed by plan.
    pub corrupted: u64,
    /// Frames to an address that nobody has.
    pub unknown: u64,
}

#[derive(Debug)]
struct Port {
    mac: Mac,
    /// When the last frame sent has left.
    free_at: u64,
    /// Frames under way to it, by arrival time and number.
    arriving: BTreeMap<(u64, u64), Vec<u8>>,
}

/// A switch without limits, with one cable for each NIC.
#[derive(Debug)]
pub struct Wire {
    ports: Vec<Port>,
    plan: FaultPlan,
    random: Random,
    number: u64,
    capture: Option<Capture>,
    counters: WireCounters,
    /// Where frames go whose address nobody here has, and those for all.
    outlet: Option<Box<dyn Outlet>>,
}

impl Wire {
    /// A switch without cables.
    pub fn new(plan: FaultPlan, seed: u64) -> Self {
        Self {
            ports: Vec::new(),
            plan,
            random: Random::new(seed),
            number: 0,
            capture: None,
            counters: WireCounters::default(),
            outlet: None,
        }
    }

    /// Plugs in a cable and returns the port's number.
    pub fn add_port(&mut self, mac: Mac) -> usize {
        self.ports.push(Port { mac, free_at: 0, arriving: BTreeMap::new() });
        self.ports.len() - 1
    }

    /// Changes what goes wrong from now on.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.plan = plan;
    }

    /// Writes every frame to `capture` before anything goes wrong with it; `None` ends the capture.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.capture = capture;
    }

    /// Sends frames for other processes to `outlet`; `None` ends that.
    pub(crate) fn set_outlet(&mut self, outlet: Option<Box<dyn Outlet>>) {
        self.outlet = outlet;
    }

    /// Takes a frame from another process. It does not go back there.
    pub(crate) fn arrive(&mut self, now_ns: u64, frame: Vec<u8>) {
        self.record(now_ns, &frame);
        let outlet = self.outlet.take();
        self.route(usize::MAX, now_ns, frame);
        self.outlet = outlet;
    }

    /// Addresses of the NICs.
    pub(crate) fn macs(&self) -> Vec<Mac> {
        self.ports.iter().map(|port| port.mac).collect()
    }

    /// What the wire did so far.
    pub fn counters(&self) -> WireCounters {
        self.counters
    }

    /// Takes a frame from `port`. A capture that cannot be written ends.
    pub fn send(&mut self, now_ns: u64, port: usize, mut frame: Vec<u8>) {
        self.record(now_ns, &frame);
        self.counters.sent += 1;
        self.counters.bytes += frame.len() as u64;
        let Some(from) = self.ports.get_mut(port) else { return };
        let left = now_ns.max(from.free_at) + frame.len() as u64 * 8 / BITS_PER_NS;
        from.free_at = left;
        if self.random.happens(self.plan.lose_frame) {
            self.counters.lost += 1;
            return;
        }
        if self.random.happens(self.plan.corrupt_frame) {
            self.counters.corrupted += 1;
            let bit = self.random.below(frame.len() as u64 * 8);
            if let Some(byte) = frame.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
        let mut arrival = left + LATENCY_NS;
        if self.random.happens(self.plan.reorder_frame) {
            self.counters.reordered += 1;
            arrival += DETOUR_NS;
        }
        let twice = self.random.happens(self.plan.duplicate_frame);
        if twice {
            self.counters.duplicated += 1;
            self.route(port, arrival, frame.clone());
        }
        self.route(port, arrival, frame);
    }

    fn record(&mut self, now_ns: u64, frame: &[u8]) {
        if let Some(capture) = &mut self.capture
            && capture.frame(now_ns, frame).is_err()
        {
            self.capture = None;
        }
    }

    fn route(&mut self, port: usize, arrival: u64, frame: Vec<u8>) {
        let Some(to) = frame.first_chunk::<6>().map(|mac| Mac(*mac)) else { return };
        let number = self.number;
        self.number += 1;
        if to.0[0] & 1 != 0 {
            if let Some(outlet) = &mut self.outlet {
                outlet.send(&frame);
            }
            for (_, other) in self.ports.iter_mut().enumerate().filter(|(i, _)| *i != port) {
                other.arriving.insert((arrival, number), frame.clone());
            }
            return;
        }
        if let Some(port) = self.ports.iter_mut().find(|p| p.mac == to) {
            port.arriving.insert((arrival, number), frame);
        } else if !self.outlet.as_mut().is_some_and(|outlet| outlet.send(&frame)) {
            self.counters.unknown += 1;
        }
    }

    /// The next frame that has arrived at `port` by `now_ns`.
    pub fn receive(&mut self, now_ns: u64, port: usize) -> Option<Vec<u8>> {
        let first = self.ports.get_mut(port)?.arriving.first_entry()?;
        (first.key().0 <= now_ns).then(|| first.remove())
    }

    /// When the line from `port` is free for the next frame.
    pub fn free_at(&self, port: usize) -> u64 {
        self.ports.get(port).map_or(0, |p| p.free_at)
    }

    /// Frames that have not arrived yet.
    pub fn under_way(&self) -> usize {
        let outside = self.outlet.as_ref().map_or(0, |outlet| outlet.waiting());
        self.ports.iter().map(|p| p.arriving.len()).sum::<usize>() + outside
    }

    /// When, and at which port, the next frame arrives.
    pub fn next_arrival(&self) -> Option<(u64, usize)> {
        let firsts = self.ports.iter().enumerate();
        let firsts = firsts.filter_map(|(i, p)| p.arriving.first_key_value().map(|(key, _)| (*key, i)));
        firsts.min().map(|((at, _), port)| (at, port))
    }

    /// When the next frame arrives at `port`.
    pub fn next_arrival_at(&self, port: usize) -> Option<u64> {
        self.ports.get(port)?.arriving.first_key_value().map(|(key, _)| key.0)
    }
}
