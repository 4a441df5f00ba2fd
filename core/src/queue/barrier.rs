//! Orders what the processor and a device see of each other. The names are rdma-core's.

#[cfg(not(target_arch = "aarch64"))]
use core::sync::atomic::{Ordering, compiler_fence, fence};

/// Stores to ring memory before it are visible to the device before a doorbell store after it.
///
/// x86 keeps stores in order, so only the compiler is held; AArch64 needs `dmb oshst`.
#[inline(always)]
pub fn to_device() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction only orders memory accesses; without `nomem` the compiler keeps its own order too.
    unsafe {
        core::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    if cfg!(target_arch = "x86_64") { compiler_fence(Ordering::SeqCst) } else { fence(Ordering::SeqCst) }
}

/// A load of a valid bit before it happens before the loads of the rest of the entry after it.
///
/// x86 keeps loads in order, so only the compiler is held; AArch64 needs `dmb oshld`.
#[inline(always)]
pub fn from_device() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction only orders memory accesses; without `nomem` the compiler keeps its own order too.
    unsafe {
        core::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    if cfg!(target_arch = "x86_64") { compiler_fence(Ordering::SeqCst) } else { fence(Ordering::SeqCst) }
}

/// Stores to ring memory before it are visible before write-combined stores after it.
#[inline(always)]
pub fn wc_start() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64; the instruction only orders stores.
    unsafe {
        core::arch::asm!("sfence", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction only orders memory accesses.
    unsafe {
        core::arch::asm!("dsb st", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fence(Ordering::SeqCst);
}

/// Write-combined stores before it leave the processor now.
#[inline(always)]
pub fn wc_flush() {
    wc_start();
}
