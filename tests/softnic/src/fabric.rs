//! Several NICs joined by a wire: stepped one event at a time, or each on a thread of its own.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bus::Bus;
use crate::clock::Clock;
use crate::device::NicConfig;
use crate::fault::FaultPlan;
use crate::nic::{FrontEnd, Nic};
use crate::pcap::Capture;
use crate::uplink::{Carriers, Inlet, Uplink};
use crate::wire::{Wire, WireCounters};

/// Longest sleep of a NIC's thread that nothing wakes.
const NAP: Duration = Duration::from_millis(50);
/// Frames under way on a threaded wire, over which NICs hold back.
const BACKLOG: usize = 1024;
/// How long a NIC's thread sleeps when the wire is full.
const HOLD: Duration = Duration::from_micros(50);
/// How long a step of a threaded fabric waits for the NICs.
const YIELD: Duration = Duration::from_micros(20);

/// How a fabric behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricOptions {
    /// Seed of everything random.
    pub seed: u64,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// The NICs run on threads of their own and in real time. Otherwise they move only in [`Fabric::step`], on a
    /// virtual clock, and the same seed gives the same run.
    pub threaded: bool,
}

/// Wakes the thread of a NIC.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waker(Arc<(Mutex<Sleep>, Condvar)>);

#[derive(Debug, Default)]
struct Sleep {
    woken: bool,
    asleep: bool,
}

impl Waker {
    pub(crate) fn wake(&self) {
        lock(&self.0.0).woken = true;
        self.0.1.notify_one();
    }

    fn wait(&self, timeout: Duration) {
        let mut sleep = lock(&self.0.0);
        if !sleep.woken {
            sleep.asleep = true;
            sleep = self.0.1.wait_timeout(sleep, timeout).unwrap_or_else(PoisonError::into_inner).0;
        }
        *sleep = Sleep::default();
    }

    /// Whether the thread sleeps and nothing has woken it yet.
    fn is_asleep(&self) -> bool {
        let sleep = lock(&self.0.0);
        sleep.asleep && !sleep.woken
    }
}

/// What a fabric needs of a NIC, whatever its family.
trait Station: Send {
    fn receive(&mut self, frame: &[u8]);
    fn step(&mut self) -> bool;
    fn has_frame(&self) -> bool;
    fn take_frame(&mut self) -> Option<Vec<u8>>;
    fn next_timer(&self) -> Option<u64>;
}

impl<F: FrontEnd> Station for Nic<F> {
    fn receive(&mut self, frame: &[u8]) {
        Nic::receive(self, frame);
    }

    fn step(&mut self) -> bool {
        Nic::step(self)
    }

    fn has_frame(&self) -> bool {
        Nic::has_frame(self)
    }

    fn take_frame(&mut self) -> Option<Vec<u8>> {
        Nic::take_frame(self)
    }

    fn next_timer(&self) -> Option<u64> {
        Nic::next_timer(self)
    }
}

/// A NIC in a fabric. Clones share it.
#[derive(Debug)]
pub struct NicHandle<F> {
    nic: Arc<Mutex<Nic<F>>>,
}

impl<F> Clone for NicHandle<F> {
    fn clone(&self) -> Self {
        Self { nic: self.nic.clone() }
    }
}

impl<F> NicHandle<F> {
    /// The NIC, for one command or doorbell. Release it before [`Fabric::step`].
    pub fn lock(&self) -> MutexGuard<'_, Nic<F>> {
        lock(&self.nic)
    }
}

/// NICs and the wire between them. Clones share them; threads end with the last one.
#[derive(Clone)]
pub struct Fabric {
    shared: Arc<Shared>,
    /// Ends the threads when the last clone goes. Threads themselves hold `shared` only.
    _threads: Arc<Threads>,
}

struct Shared {
    options: FabricOptions,
    clock: Clock,
    wire: Mutex<Wire>,
    stations: Mutex<Vec<Attached>>,
    /// Which NIC's turn it is.
    turn: AtomicU64,
    /// Counts what NIC threads do, so that a step can tell whether anything happened.
    activity: (Mutex<Activity>, Condvar),
    stop: AtomicBool,
}

/// Work of NIC threads.
#[derive(Debug, Default)]
struct Activity {
    /// Counts it.
    done: u64,
    /// What a step has seen of it.
    seen: u64,
}

struct Attached {
    station: Arc<Mutex<dyn Station>>,
    waker: Waker,
}

struct Threads {
    shared: Arc<Shared>,
    joins: Mutex<Vec<JoinHandle<()>>>,
    carriers: Mutex<Option<Carriers>>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for attached in &*lock(&self.shared.stations) {
            attached.waker.wake();
        }
        for join in std::mem::take(&mut *lock(&self.joins)) {
            // A NIC's thread that panicked has reported it; the host notices by the silence.
            drop(join.join());
        }
        self.end_uplink();
    }
}

impl Threads {
    fn end_uplink(&self) {
        // The carriers wait until there is no outlet, and hold the wire while they bring a frame to it.
        lock(&self.shared.wire).set_outlet(None);
        drop(lock(&self.carriers).take());
    }
}

impl std::fmt::Debug for Fabric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fabric").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Fabric {
    /// A wire without NICs.
    pub fn new(options: FabricOptions) -> Self {
        let shared = Arc::new(Shared {
            options,
            clock: if options.threaded { Clock::real() } else { Clock::simulated() },
            wire: Mutex::new(Wire::new(options.faults, options.seed)),
            stations: Mutex::new(Vec::new()),
            turn: AtomicU64::new(0),
            activity: Default::default(),
            stop: AtomicBool::new(false),
        });
        Self {
            shared: shared.clone(),
            _threads: Arc::new(Threads { shared, joins: Mutex::default(), carriers: Mutex::default() }),
        }
    }

    /// Builds a NIC and plugs it in.
    pub fn attach<F: FrontEnd>(&self, front_end: F, config: NicConfig, bus: Arc<dyn Bus>) -> NicHandle<F> {
        let waker = Waker::default();
        let port = lock(&self.shared.wire).add_port(config.mac);
        let mut nic = Nic::new(front_end, config, bus, self.shared.clock.clone());
        let options = self.shared.options;
        nic.set_faults(options.faults, options.seed.wrapping_add(1 + port as u64));
        nic.set_waker(waker.clone());
        let nic = Arc::new(Mutex::new(nic));
        let station: Arc<Mutex<dyn Station>> = nic.clone();
        lock(&self.shared.stations).push(Attached { station: station.clone(), waker: waker.clone() });
        if options.threaded {
            let shared = self.shared.clone();
            let join = std::thread::spawn(move || shared.serve(port, &station, &waker));
            lock(&self._threads.joins).push(join);
        }
        NicHandle { nic }
    }

    /// Lets `join` lead this wire to other processes, in place of any before: see [`uplink`](crate::uplink). The fabric
    /// must be threaded.
    ///
    /// # Errors
    /// That of `join`; then the wire ends here.
    pub fn lead_out(&self, join: impl FnOnce(Inlet) -> io::Result<Uplink>) -> io::Result<()> {
        self._threads.end_uplink();
        let shared = self.shared.clone();
        let macs = lock(&shared.wire).macs();
        let uplink = join(Inlet::new(macs, move |frame| {
            let now_ns = shared.clock.now_ns();
            lock(&shared.wire).arrive(now_ns, frame);
            lock(&shared.stations).iter().for_each(|attached| attached.waker.wake());
        }))?;
        lock(&self.shared.wire).set_outlet(Some(uplink.outlet));
        *lock(&self._threads.carriers) = Some(uplink.carriers);
        Ok(())
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    /// Lets `ns` nanoseconds of virtual time pass in which nothing happens. Real time passes by itself.
    pub fn pass(&self, ns: u64) {
        self.shared.clock.advance_to(self.now_ns().saturating_add(ns));
    }

    /// What the wire did so far.
    pub fn counters(&self) -> WireCounters {
        lock(&self.shared.wire).counters()
    }

    /// Changes what goes wrong on the wire from now on.
    pub fn set_wire_faults(&self, plan: FaultPlan) {
        lock(&self.shared.wire).set_faults(plan);
    }

    /// Captures all frames from now on as a pcap file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn capture(&self, out: Box<dyn Write + Send>) -> io::Result<()> {
        lock(&self.shared.wire).set_capture(Some(Capture::new(out)?));
        Ok(())
    }

    /// Ends the capture and flushes the file.
    pub fn end_capture(&self) {
        lock(&self.shared.wire).set_capture(None);
    }

    /// Advances by one event: a frame arrives, or a NIC does some work, or the virtual clock jumps to the next timer.
    /// `false` says that nothing will ever come without new work. A threaded fabric waits a moment instead.
    pub fn step(&self) -> bool {
        if self.shared.options.threaded { self.shared.wait() } else { self.shared.step() }
    }

    /// Steps until nothing will come any more, or `limit` steps are done; `true` if it came to rest.
    pub fn settle(&self, limit: usize) -> bool {
        (0..limit).any(|_| !self.step())
    }
}

impl Shared {
    fn station(&self, port: usize) -> Option<Arc<Mutex<dyn Station>>> {
        lock(&self.stations).get(port).map(|a| a.station.clone())
    }

    fn step(&self) -> bool {
        let now = self.clock.now_ns();
        let arrival = lock(&self.wire).next_arrival();
        if let Some((_, port)) = arrival.filter(|(at, _)| *at <= now) {
            let frame = lock(&self.wire).receive(now, port);
            if let (Some(frame), Some(station)) = (frame, self.station(port)) {
                lock(&station).receive(&frame);
            }
            return true;
        }
        let count = lock(&self.stations).len();
        let mut next = arrival.map(|(at, _)| at);
        for _ in 0..count {
            let port = (self.turn.fetch_add(1, Ordering::Relaxed) % count as u64) as usize;
            let Some(station) = self.station(port) else { continue };
            let mut station = lock(&station);
            if self.transmit(now, port, &mut *station) || station.step() {
                return true;
            }
            let line_free = station.has_frame().then(|| lock(&self.wire).free_at(port));
            next = [next, station.next_timer(), line_free].into_iter().flatten().min();
        }
        let Some(next) = next else { return false };
        self.clock.advance_to(next);
        true
    }

    /// Puts the next frame of the NIC at `port` on the wire, if there is one and its line is free.
    fn transmit(&self, now: u64, port: usize, station: &mut dyn Station) -> bool {
        let mut wire = lock(&self.wire);
        let frame = if wire.free_at(port) <= now { station.take_frame() } else { None };
        let any = frame.is_some();
        if let Some(frame) = frame {
            wire.send(now, port, frame);
        }
        any
    }

    /// What the thread of the NIC at `port` does.
    fn serve(&self, port: usize, station: &Mutex<dyn Station>, waker: &Waker) {
        while !self.stop.load(Ordering::Acquire) {
            let now = self.clock.now_ns();
            let mut worked = false;
            let (frame, full) = {
                let mut wire = lock(&self.wire);
                (wire.receive(now, port), wire.under_way() > BACKLOG)
            };
            let (outgoing, held, timer) = {
                let mut nic = lock(station);
                if let Some(frame) = &frame {
                    // Doorbells that were rung before the frame came are older: a datagram may need their receives.
                    nic.step();
                    nic.receive(frame);
                    worked = true;
                }
                worked |= nic.step();
                let outgoing: Vec<_> =
                    if full { Vec::new() } else { std::iter::from_fn(|| nic.take_frame()).collect() };
                (outgoing, nic.has_frame(), nic.next_timer())
            };
            if !outgoing.is_empty() {
                let mut wire = lock(&self.wire);
                for frame in outgoing {
                    wire.send(now, port, frame);
                }
                drop(wire);
                for attached in &*lock(&self.stations) {
                    attached.waker.wake();
                }
            }
            if worked {
                lock(&self.activity.0).done += 1;
                self.activity.1.notify_all();
                continue;
            }
            let next = [lock(&self.wire).next_arrival_at(port), timer].into_iter().flatten().min();
            let nap = next.map_or(NAP, |at| Duration::from_nanos(at.saturating_sub(self.clock.now_ns())));
            waker.wait(nap.min(if held { HOLD } else { NAP }));
        }
    }

    /// Waits a moment for the NICs' threads; `false` if they were and are idle, without a frame or timer to wait for.
    fn wait(&self) -> bool {
        let mut activity = lock(&self.activity.0);
        if activity.done == activity.seen {
            activity =
                self.activity.1.wait_timeout(activity, YIELD).unwrap_or_else(PoisonError::into_inner).0;
        }
        let done = activity.done;
        if std::mem::replace(&mut activity.seen, done) != done {
            return true;
        }
        drop(activity);
        // A doorbell may have woken a thread that has not come to run yet.
        if !lock(&self.stations).iter().all(|attached| attached.waker.is_asleep()) {
            return true;
        }
        let count = lock(&self.stations).len();
        lock(&self.wire).next_arrival().is_some()
            || lock(&self.activity.0).done != done
            || (0..count).any(|port| {
                self.station(port).is_some_and(|s| {
                    let nic = lock(&s);
                    nic.next_timer().is_some() || nic.has_frame()
                })
            })
    }
}

/// Locks `mutex`; what a panicking thread left behind is looked at all the same, so that its report is the one seen.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
