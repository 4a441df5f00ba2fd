//! Sees stores into pages: which bytes, in which order, how many at once.
//!
//! A watched page may be read but not written. A store into it faults; the handler makes the page writable, puts a
//! pattern where the store will be, and lets the processor carry out that one instruction (trap flag). Then the bytes
//! that are not the pattern any more are what was stored. The pattern differs from what was there, so an instruction
//! that reads what it writes (a locked add) would see it: registers are not used like that.
//!
//! Faults of one area on several threads at the same time would miss stores: post on one thread at a time.
//!
//! A store is either logged, to be [taken](take) later, or handed to a [`Sink`] before the instruction after it runs, as a
//! bus would. The sink runs inside the signal that the store raised: it may do what the thread may do at that place, so
//! nobody may store into a page with a sink while holding a lock that the sink takes, the allocator's among them.
//!
//! x86_64 Linux only; elsewhere [`watch`] fails.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Errno;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use x86_64 as machine;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod machine {
    use std::sync::Arc;

    use super::{Errno, Raw, Sink};

    pub fn watch(_: usize, _: usize, _: u32, _: Option<Arc<dyn Sink>>) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub fn forget(_start: usize, _len: usize) {}

    pub fn drain(_into: &mut Vec<Raw>) {}
}

/// Most bytes that one instruction stores.
pub const WIDEST: usize = 64;

/// A store as the handler saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Area, from [`new_area`].
    pub area: u32,
    /// Bytes from the area's beginning.
    pub offset: usize,
    /// Bytes stored.
    pub width: usize,
    /// What was stored; only the first `width` bytes count.
    pub bytes: [u8; WIDEST],
}

/// Where stores go as they happen.
pub trait Sink: Send + Sync {
    /// A store of `bytes` at `offset` of the area.
    fn store(&self, offset: usize, bytes: &[u8]);
}

static AREAS: AtomicU32 = AtomicU32::new(1);

/// Stores that were drained from the handler's log but not yet taken.
static WAITING: Mutex<Vec<Raw>> = Mutex::new(Vec::new());

/// A number that no other area has.
pub fn new_area() -> u32 {
    AREAS.fetch_add(1, Ordering::Relaxed)
}

/// Logs stores into `len` bytes, whole pages, at `start` from now on.
///
/// # Errors
/// There are too many areas, or the machine cannot do it.
pub fn watch(start: usize, len: usize, area: u32) -> Result<(), Errno> {
    machine::watch(start, len, area, None)
}

/// Hands stores into `len` bytes, whole pages, at `start` to `sink` from now on.
///
/// # Errors
/// There are too many areas, or the machine cannot do it.
pub fn deliver(start: usize, len: usize, sink: Arc<dyn Sink>) -> Result<(), Errno> {
    machine::watch(start, len, new_area(), Some(sink))
}

/// Watches nothing any more that lies within these bytes. They can be written again.
pub fn forget(start: usize, len: usize) {
    machine::forget(start, len);
}

/// Takes the stores into the areas that `wanted` says, oldest first.
pub fn take(wanted: impl Fn(u32) -> bool) -> Vec<Raw> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    machine::drain(&mut waiting);
    waiting.extract_if(.., |store| wanted(store.area)).collect()
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    struct Watched {
        at: usize,
        area: u32,
    }

    const LEN: usize = 8192;

    impl Watched {
        fn new() -> Self {
            let watched = Self::unwatched();
            watch(watched.at, LEN, watched.area).unwrap();
            watched
        }

        fn unwatched() -> Self {
            let prot = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping.
            let at = unsafe { mmap_anonymous(std::ptr::null_mut(), LEN, prot, MapFlags::PRIVATE) }.unwrap();
            Self { at: at as usize, area: new_area() }
        }

        fn store<T: Copy>(&self, offset: usize, value: T) {
            // SAFETY: within the mapping.
            unsafe { ((self.at + offset) as *mut T).write_volatile(value) };
        }

        fn load(&self, offset: usize) -> u64 {
            // SAFETY: within the mapping.
            unsafe { ((self.at + offset) as *const u64).read_volatile() }
        }

        fn seen(&self) -> Vec<(usize, Vec<u8>)> {
            let stores = take(|area| area == self.area);
            stores.iter().map(|s| (s.offset, s.bytes[..s.width].to_vec())).collect()
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            forget(self.at, LEN);
            // SAFETY: the mapping is ours.
            unsafe { munmap(self.at as *mut _, LEN) }.unwrap();
        }
    }

    #[test]
    fn stores_are_seen_in_order_with_their_width() {
        let page = Watched::new();
        page.store(8, 0x1122_3344_5566_7788u64);
        page.store(16, 0xaabb_ccddu32);
        page.store(20, 7u16);
        page.store(4095, 9u8);
        page.store(4096, 0u64);
        let expected = [
            (8, 0x1122_3344_5566_7788u64.to_le_bytes().to_vec()),
            (16, vec![0xdd, 0xcc, 0xbb, 0xaa]),
            (20, vec![7, 0]),
            (4095, vec![9]),
            (4096, vec![0; 8]),
        ];
        assert_eq!(page.seen(), expected);
        assert_eq!(page.seen(), []);
    }

    #[test]
    fn a_store_of_what_was_there_is_a_store() {
        let page = Watched::new();
        for value in [5u64, 5, 0, 0, u64::MAX, u64::MAX] {
            page.store(0x20, value);
        }
        let widths: Vec<usize> = page.seen().iter().map(|(_, bytes)| bytes.len()).collect();
        assert_eq!(widths, [8; 6]);
    }

    #[test]
    fn the_memory_holds_what_was_stored_and_nothing_else() {
        let page = Watched::new();
        page.store(0x100, 0x0102_0304u32);
        assert_eq!((page.load(0x100), page.load(0x108)), (0x0102_0304, 0));
        page.store(0x104, 0x0506_0708u32);
        assert_eq!(page.load(0x100), 0x0506_0708_0102_0304);
        assert_eq!(page.seen().len(), 2);
    }

    #[test]
    fn vector_stores_are_one_store() {
        use core::arch::x86_64::{_mm_set_epi64x, _mm_store_si128, _mm_stream_si64};
        let page = Watched::new();
        // SAFETY: within the mapping and aligned.
        unsafe {
            _mm_store_si128((page.at + 0x40) as *mut _, _mm_set_epi64x(2, 1));
            _mm_stream_si64((page.at + 0x80) as *mut _, 3);
        }
        let bytes: Vec<u8> = [1u64, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(page.seen(), [(0x40, bytes), (0x80, 3u64.to_le_bytes().to_vec())]);
    }

    #[test]
    fn a_sink_has_a_store_before_the_next_instruction_runs() {
        struct Last(AtomicU32);
        impl Sink for Last {
            fn store(&self, offset: usize, bytes: &[u8]) {
                // What a device may do: allocate, and lock.
                let copy = Mutex::new(bytes.to_vec());
                let first = copy.lock().unwrap()[0];
                self.0.store(offset as u32 + u32::from(first), Ordering::Relaxed);
            }
        }
        let (page, last) = (Watched::unwatched(), Arc::new(Last(AtomicU32::new(0))));
        deliver(page.at, LEN, last.clone()).unwrap();
        for value in 1..100 {
            page.store(0x100, u64::from(value));
            assert_eq!(last.0.load(Ordering::Relaxed), 0x100 + value);
        }
        assert_eq!(page.seen(), []);
    }

    #[test]
    fn what_is_forgotten_is_plain_memory() {
        let page = Watched::new();
        forget(page.at, LEN);
        page.store(0, 1u64);
        assert_eq!(page.seen(), []);
        assert_eq!(page.load(0), 1);
    }

    #[test]
    fn many_stores_fit_the_log() {
        let page = Watched::new();
        for i in 0..5000u64 {
            page.store(0, i);
            if i % 1000 == 999 {
                assert_eq!(page.seen().len(), 1000);
            }
        }
    }
}
