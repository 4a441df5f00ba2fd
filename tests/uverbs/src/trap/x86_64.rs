//! The fault and single-step handlers.
//!
//! Both run on the thread that stores, inside of that store, and touch nothing but this module's statics, the page,
//! `mprotect`, and the sink. Nobody stores into a watched page while holding the lock of the tables, so a handler that
//! waits for it never waits for its own thread.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use rustix::mm::{MprotectFlags, mprotect};
use spin::Mutex;

use super::{Raw, Sink, WIDEST};
use crate::Errno;

const PAGE: usize = 4096;
/// Trap flag in the flags register.
const TRAP_FLAG: i64 = 0x100;

/// Watched memory.
#[derive(Clone)]
struct Slot {
    start: usize,
    len: usize,
    area: u32,
    sink: Option<Arc<dyn Sink>>,
}

const SLOTS: usize = 256;
const LOG: usize = 1 << 16;

struct Tables {
    slots: [Option<Slot>; SLOTS],
    log: [Raw; LOG],
    logged: usize,
    /// Handlers that were there before ours.
    old: Option<[libc::sigaction; 2]>,
}

static TABLES: Mutex<Tables> = Mutex::new(Tables {
    slots: [const { None }; SLOTS],
    log: [Raw { area: 0, offset: 0, width: 0, bytes: [0; WIDEST] }; LOG],
    logged: 0,
    old: None,
});

/// The store that is being carried out on this thread.
struct Step {
    slot: Slot,
    /// First byte stored.
    at: usize,
    /// Bytes from there that may be stored.
    window: usize,
    before: [u8; WIDEST],
}

thread_local! {
    static STEP: Cell<Option<Step>> = const { Cell::new(None) };
}

pub fn watch(start: usize, len: usize, area: u32, sink: Option<Arc<dyn Sink>>) -> Result<(), Errno> {
    let mut tables = TABLES.lock();
    if tables.old.is_none() {
        tables.old = Some(install()?);
    }
    let free = tables.slots.iter_mut().find(|slot| slot.is_none()).ok_or(Errno::NOSPC)?;
    if !protect(start, len, MprotectFlags::READ) {
        return Err(Errno::INVAL);
    }
    *free = Some(Slot { start, len: len.next_multiple_of(PAGE), area, sink });
    Ok(())
}

pub fn forget(start: usize, len: usize) {
    let mut gone = Vec::new();
    for slot in &mut TABLES.lock().slots {
        if let Some(slot) = slot.take_if(|slot| start <= slot.start && slot.start < start + len) {
            protect(slot.start, slot.len, MprotectFlags::READ | MprotectFlags::WRITE);
            gone.push(slot);
        }
    }
    // Sinks are dropped here, where no lock is held.
}

pub fn drain(into: &mut Vec<Raw>) {
    let mut tables = TABLES.lock();
    let logged = std::mem::take(&mut tables.logged);
    assert!(logged <= LOG, "{logged} stores since the log was read, it holds {LOG}");
    into.extend_from_slice(&tables.log[..logged]);
}

fn protect(start: usize, len: usize, flags: MprotectFlags) -> bool {
    // SAFETY: only memory that is watched is given here; it stays mapped.
    unsafe { mprotect(start as *mut c_void, len, flags).is_ok() }
}

fn install() -> Result<[libc::sigaction; 2], Errno> {
    let set = |signal: c_int, handler: usize, flags: c_int| {
        // SAFETY: all zero bytes are a valid action.
        let (mut new, mut old): (libc::sigaction, libc::sigaction) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        new.sa_sigaction = handler;
        new.sa_flags = libc::SA_SIGINFO | flags;
        // SAFETY: both are actions.
        let set = unsafe { libc::sigaction(signal, &new, &mut old) };
        if set == 0 { Ok(old) } else { Err(Errno::INVAL) }
    };
    let (fault, stepped) = (fault as *const () as usize, stepped as *const () as usize);
    // A sink needs more stack than an alternate one has.
    Ok([set(libc::SIGSEGV, fault, libc::SA_ONSTACK)?, set(libc::SIGTRAP, stepped, 0)?])
}

/// Not ours: what was there before shall see it. The instruction faults again after the return.
fn give_back(signal: c_int, index: usize) {
    if let Some(old) = TABLES.lock().old {
        // SAFETY: it was the action before.
        unsafe { libc::sigaction(signal, &old[index], std::ptr::null_mut()) };
    }
}

/// The pages that a store of up to `window` bytes at `at` touches.
const fn pages(at: usize, window: usize) -> (usize, usize) {
    let first = at & !(PAGE - 1);
    (first, (at + window).next_multiple_of(PAGE) - first)
}

/// A byte pattern for a place: never what is there.
const fn pattern(before: u8, at: usize) -> u8 {
    before ^ (at as u8).wrapping_mul(0x35) & 0x7e ^ 0x81
}

extern "C" fn fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives both.
    let (at, context) = unsafe { ((*info).si_addr() as usize, &mut *context.cast::<libc::ucontext_t>()) };
    let within = |slot: &&Slot| slot.start <= at && at < slot.start + slot.len;
    let slot = TABLES.lock().slots.iter().flatten().find(within).cloned();
    let busy = STEP.take();
    let (Some(slot), None) = (slot, &busy) else {
        STEP.set(busy);
        give_back(signal, 0);
        return;
    };
    let window = WIDEST.min(slot.start + slot.len - at);
    let (first, len) = pages(at, window);
    protect(first, len, MprotectFlags::READ | MprotectFlags::WRITE);
    let mut before = [0; WIDEST];
    for (i, before) in before.iter_mut().enumerate().take(window) {
        // SAFETY: within the area, which is mapped and was just made writable.
        unsafe {
            let byte = (at + i) as *mut u8;
            *before = byte.read_volatile();
            byte.write_volatile(pattern(*before, at + i));
        }
    }
    STEP.set(Some(Step { slot, at, window, before }));
    context.uc_mcontext.gregs[libc::REG_EFL as usize] |= TRAP_FLAG;
}

extern "C" fn stepped(signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(step) = STEP.take() else {
        give_back(signal, 1);
        return;
    };
    // SAFETY: the kernel gives it.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG;
    let mut bytes = [0; WIDEST];
    let mut stored = 0;
    for (i, byte) in bytes.iter_mut().enumerate().take(step.window) {
        // SAFETY: as in `fault`.
        *byte = unsafe { ((step.at + i) as *const u8).read_volatile() };
        if *byte != pattern(step.before[i], step.at + i) {
            stored = i + 1;
        }
    }
    // Stores are powers of two wide; a byte that happens to be the pattern is inside.
    let width = stored.next_power_of_two().min(step.window);
    for (i, &before) in step.before.iter().enumerate().take(step.window).skip(width) {
        // SAFETY: as in `fault`.
        unsafe { ((step.at + i) as *mut u8).write_volatile(before) };
    }
    let (first, len) = pages(step.at, step.window);
    protect(first, len, MprotectFlags::READ);
    let offset = step.at - step.slot.start;
    if let Some(sink) = &step.slot.sink {
        sink.store(offset, &bytes[..width]);
        return;
    }
    let mut tables = TABLES.lock();
    let index = tables.logged;
    if let Some(entry) = tables.log.get_mut(index) {
        *entry = Raw { area: step.slot.area, offset, width, bytes };
    }
    tables.logged += 1;
}
