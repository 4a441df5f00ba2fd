//! The smallest complete program without an operating system: brings up the first bnxt_re NIC and creates a queue pair.
//!
//! Boot code calls `start` on the only processor, with a stack, and with everything mapped where the bus has it: memory cached,
//! registers not. The addresses are those of QEMU's machine `virt,highmem=off`. Nothing else of this folder is needed.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(not(target_os = "none"), allow(dead_code, reason = "it is compiled here, and runs elsewhere"))]

use core::cell::UnsafeCell;
use core::ops::Range;
use core::ptr::{NonNull, without_provenance_mut};

use directverbs::verbs::{AccessFlags, Device, QpCapabilities, QpInit, QpType};
use directverbs_bare::identity::{Identity, Mapped, Memory};
use directverbs_bare::mmio::Mmio;
use directverbs_bare::pci::{self, Ecam, Windows};
use directverbs_bare::{Clock, bnxt_re};

/// Configuration space, and where BARs may be.
const ECAM: Range<usize> = 0x3f00_0000..0x4000_0000;
const REGISTERS: Range<u64> = 0x1000_0000..0x3eff_0000;

/// Memory that devices reach: any that is mapped, and nobody else's.
#[repr(C, align(4096))]
struct Pool(UnsafeCell<[u8; 16 << 20]>);

// SAFETY: one processor lends it to one `Memory`.
unsafe impl Sync for Pool {}

static POOL: Pool = Pool(UnsafeCell::new([0; 16 << 20]));

/// The processor's counter, as nanoseconds: all waits end by it.
struct Counter;

impl Clock for Counter {
    fn now_ns(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of this kind has it. A machine measures its speed; here it is 1 GHz.
        return unsafe { core::arch::x86_64::_rdtsc() };
        #[cfg(target_arch = "aarch64")]
        {
            let count: u64;
            // SAFETY: reads a register. Its speed is in another one; here it is QEMU's, 62.5 MHz.
            unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
            count * 16
        }
    }

    fn relax(&self) {
        core::hint::spin_loop();
    }
}

/// Brings the NIC up, uses it, and takes it down. Each error says what does not work; here only where.
fn run() -> Result<(), &'static str> {
    let base = NonNull::new(without_provenance_mut(ECAM.start)).ok_or("ECAM")?;
    // SAFETY: the machine has configuration space there, mapped uncached.
    let access = Ecam::new(unsafe { Mmio::new(base, ECAM.end - ECAM.start) });
    let pool = NonNull::new(POOL.0.get().cast()).ok_or("pool")?;
    // SAFETY: called once, so the pool is this value's; it is where the bus has it, and coherent with DMA.
    let memory: Memory<256> = unsafe { Memory::new(pool, 16 << 20, pool.as_ptr().addr() as u64) };
    let mapped = Mapped { windows: Windows { narrow: REGISTERS, wide: 0..0 }, distance: 0 };

    pci::configure(&access, &mapped.windows).map_err(|_| "bus")?;
    let function = pci::find(&access, bnxt_re::is_supported).map_err(|_| "bus")?.ok_or("no NIC")?;
    // SAFETY: the window is mapped and nothing else; the function has no other driver.
    let host = unsafe { Identity::new(function, &Counter, &memory, &mapped) }.map_err(|_| "BARs")?;
    let mut nic = bnxt_re::Nic::open(host, &bnxt_re::Config::default()).map_err(|_| "bring-up")?;
    use_it(&mut nic.device()).map_err(|_| "use")?;
    nic.close().map_err(|_| "teardown")
}

/// Everything from here on knows neither vendor nor platform.
fn use_it<D: Device>(device: &mut D) -> Result<(), D::Error> {
    let pd = device.alloc_pd()?;
    let region = device.alloc_mr(&pd, 4096, AccessFlags::LOCAL_WRITE)?;
    let mut cq = device.create_cq(32)?;
    let capabilities = QpCapabilities {
        max_send_wr: 16,
        max_recv_wr: 16,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let qp_type = QpType::Rc;
    let init = QpInit { qp_type, capabilities, send_cq: &cq, recv_cq: &cq, srq: None, signal_all: false };
    let qp = device.create_qp(&pd, &init)?;
    // Here: exchange addresses with a peer, `modify_qp` to RTS, `post_send`, `poll`.
    device.destroy_qp(qp, &mut [&mut cq])?;
    device.destroy_cq(cq)?;
    device.dealloc_mr(region)?;
    device.dealloc_pd(pd)
}

/// What boot code calls.
#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    let _done = run();
    loop {
        core::hint::spin_loop();
    }
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

#[cfg(not(target_os = "none"))]
fn main() {}
