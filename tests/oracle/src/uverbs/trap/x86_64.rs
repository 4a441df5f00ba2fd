//! The fault and single-step handlers.
//!
//! Both run on the thread that stores, inside of that store, and touch nothing but this module's statics, the page, and
//! `mprotect`: all of it safe in a signal handler.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::{Raw, WIDEST};
use crate::preload;
use crate::uverbs::Errno;

const PAGE: usize = 4096;
/// Trap flag in the flags register.
const TRAP_FLAG: i64 = 0x100;

/// Watched memory; `len` is zero in a free slot.
struct Slot {
    start: AtomicUsize,
    len: AtomicUsize,
    area: AtomicUsize,
}

const SLOTS: usize = 256;
static SLOT: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), len: AtomicUsize::new(0), area: AtomicUsize::new(0) } };
        SLOTS];

/// Guards changes of the slots. The handlers only read them.
static CHANGE: Mutex<()> = Mutex::new(());

const LOG: usize = 1 << 16;
/// The log: written by handlers at an index that each takes for itself, read when no handler runs.
struct Log(UnsafeCell<[MaybeUninit<Raw>; LOG]>);
// SAFETY: each entry has one writer, see `Log`.
unsafe impl Sync for Log {}
static ENTRIES: Log = Log(UnsafeCell::new([const { MaybeUninit::uninit() }; LOG]));
static LOGGED: AtomicUsize = AtomicUsize::new(0);

/// The store that is being carried out on this thread.
#[derive(Clone, Copy)]
struct Step {
    area: u32,
    /// Area's beginning.
    start: usize,
    /// First byte stored.
    at: usize,
    /// Bytes from there that may be stored.
    window: usize,
    before: [u8; WIDEST],
}

thread_local! {
    static STEP: Cell<Option<Step>> = const { Cell::new(None) };
}

/// Handlers that were there before.
static OLD: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

pub fn watch(start: usize, len: usize, area: u32) -> Result<(), Errno> {
    let _guard = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    install()?;
    let free = SLOT.iter().find(|slot| slot.len.load(Ordering::Relaxed) == 0).ok_or(libc::ENOSPC)?;
    free.start.store(start, Ordering::Relaxed);
    free.area.store(area as usize, Ordering::Relaxed);
    free.len.store(len.next_multiple_of(PAGE), Ordering::Release);
    if protect(start, len, libc::PROT_READ) {
        return Ok(());
    }
    free.len.store(0, Ordering::Release);
    Err(libc::EINVAL)
}

pub fn forget(start: usize, len: usize) {
    if OLD.get().is_none() {
        return;
    }
    let _guard = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    for slot in &SLOT {
        let (at, bytes) = (slot.start.load(Ordering::Relaxed), slot.len.load(Ordering::Relaxed));
        if bytes != 0 && start <= at && at < start + len {
            slot.len.store(0, Ordering::Release);
            protect(at, bytes, libc::PROT_READ | libc::PROT_WRITE);
        }
    }
}

pub fn drain(into: &mut Vec<Raw>) {
    let logged = LOGGED.load(Ordering::Acquire);
    assert!(logged <= LOG, "{logged} stores since the log was read, it holds {LOG}");
    // SAFETY: entries below `logged` are written, and no store is going on.
    let entries = unsafe { &(&*ENTRIES.0.get())[..logged] };
    // SAFETY: see above.
    into.extend(entries.iter().map(|entry| unsafe { entry.assume_init() }));
    LOGGED.store(0, Ordering::Release);
}

fn protect(start: usize, len: usize, prot: c_int) -> bool {
    // SAFETY: only memory that is watched is given here; it stays mapped.
    unsafe { preload::syscall(libc::SYS_mprotect, [start, len, prot as usize, 0, 0, 0]) == 0 }
}

fn install() -> Result<(), Errno> {
    if OLD.get().is_some() {
        return Ok(());
    }
    let set = |signal: c_int, handler: usize| {
        // SAFETY: all zero bytes are a valid action.
        let (mut new, mut old): (libc::sigaction, libc::sigaction) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        new.sa_sigaction = handler;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both are actions.
        let set = unsafe { libc::sigaction(signal, &new, &mut old) };
        if set == 0 { Ok(old) } else { Err(libc::EINVAL) }
    };
    let old = [
        set(libc::SIGSEGV, fault as *const () as usize)?,
        set(libc::SIGTRAP, stepped as *const () as usize)?,
    ];
    // The lock of the caller lets nobody else come in between.
    let _ = OLD.set(old);
    Ok(())
}

/// Not ours: what was there before shall see it. The instruction faults again after the return.
fn give_back(signal: c_int, index: usize) {
    if let Some(old) = OLD.get() {
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
    let slot = SLOT.iter().find(|slot| {
        let start = slot.start.load(Ordering::Relaxed);
        start <= at && at < start + slot.len.load(Ordering::Acquire)
    });
    let (Some(slot), None) = (slot, STEP.get()) else {
        give_back(signal, 0);
        return;
    };
    let start = slot.start.load(Ordering::Relaxed);
    let end = start + slot.len.load(Ordering::Relaxed);
    let window = WIDEST.min(end - at);
    let (first, len) = pages(at, window);
    protect(first, len, libc::PROT_READ | libc::PROT_WRITE);
    let mut before = [0; WIDEST];
    for (i, before) in before.iter_mut().enumerate().take(window) {
        // SAFETY: within the area, which is mapped and was just made writable.
        unsafe {
            let byte = (at + i) as *mut u8;
            *before = byte.read_volatile();
            byte.write_volatile(pattern(*before, at + i));
        }
    }
    let area = slot.area.load(Ordering::Relaxed) as u32;
    STEP.set(Some(Step { area, start, at, window, before }));
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
    protect(first, len, libc::PROT_READ);
    let index = LOGGED.fetch_add(1, Ordering::AcqRel);
    if index < LOG {
        let raw = Raw { area: step.area, offset: step.at - step.start, width, bytes };
        // SAFETY: the index is this handler's alone.
        unsafe { (*ENTRIES.0.get())[index].write(raw) };
    }
}
