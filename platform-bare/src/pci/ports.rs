use spin::Mutex;

use super::access::Access;
use super::address::Address;
use super::config::Width;

/// The port that takes an address, and the first of four that are a window on it.
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;

/// Accesses to I/O ports.
pub trait PortIo {
    /// One load from a port, in the low bits.
    fn input(&self, port: u16, width: Width) -> u32;

    /// One store of the low bits of `value` to a port.
    fn output(&self, port: u16, width: Width, value: u32);
}

/// Configuration space through the ports 0xcf8 and 0xcfc: the first 256 bytes of each function. An access takes two steps,
/// which a lock keeps together.
#[derive(Debug)]
pub struct Ports<I> {
    io: Mutex<I>,
}

impl<I: PortIo> Ports<I> {
    /// Through `io`. Nobody else uses the two ports.
    pub const fn new(io: I) -> Self {
        Self { io: Mutex::new(io) }
    }

    fn select<T>(
        &self,
        address: Address,
        offset: u16,
        width: Width,
        then: impl FnOnce(&I, u16) -> T,
    ) -> Option<T> {
        if offset > 0xff || !offset.is_multiple_of(width.bytes()) {
            return None;
        }
        let io = self.io.lock();
        let selected = ENABLE | u32::from(address.bits()) << 8 | u32::from(offset & !3);
        io.output(ADDRESS, Width::Dword, selected);
        Some(then(&io, DATA + (offset & 3)))
    }
}

impl<I: PortIo> Access for Ports<I> {
    fn buses(&self) -> u16 {
        256
    }

    fn read(&self, address: Address, offset: u16, width: Width) -> u32 {
        self.select(address, offset, width, |io, port| io.input(port, width)).unwrap_or(width.mask())
    }

    fn write(&self, address: Address, offset: u16, width: Width, value: u32) {
        self.select(address, offset, width, |io, port| io.output(port, width, value));
    }
}

/// The processor's own `in` and `out` instructions.
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub struct Instructions(());

#[cfg(target_arch = "x86_64")]
impl Instructions {
    /// The instructions.
    ///
    /// # Safety
    /// The program may use I/O ports (it runs in ring 0, or was given them), and what it stores to them harms nobody.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

#[cfg(target_arch = "x86_64")]
impl PortIo for Instructions {
    fn input(&self, port: u16, width: Width) -> u32 {
        use core::arch::asm;
        let value: u32;
        // SAFETY: `new`'s caller may use ports; the instruction touches no memory.
        unsafe {
            match width {
                Width::Byte => {
                    asm!("in al, dx", "movzx eax, al", in("dx") port, out("eax") value, options(nomem, nostack))
                }
                Width::Word => {
                    asm!("in ax, dx", "movzx eax, ax", in("dx") port, out("eax") value, options(nomem, nostack))
                }
                Width::Dword => asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack)),
            }
        }
        value
    }

    fn output(&self, port: u16, width: Width, value: u32) {
        use core::arch::asm;
        // SAFETY: as in `input`.
        unsafe {
            match width {
                Width::Byte => asm!("out dx, al", in("dx") port, in("eax") value, options(nomem, nostack)),
                Width::Word => asm!("out dx, ax", in("dx") port, in("eax") value, options(nomem, nostack)),
                Width::Dword => asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::vec::Vec;

    #[derive(Default)]
    struct Recorder(RefCell<Vec<(u16, Width, u32)>>);

    impl PortIo for Recorder {
        fn input(&self, port: u16, width: Width) -> u32 {
            self.0.borrow_mut().push((port, width, 0));
            u32::from(port) & width.mask()
        }

        fn output(&self, port: u16, width: Width, value: u32) {
            self.0.borrow_mut().push((port, width, value));
        }
    }

    #[test]
    fn an_access_selects_a_register_and_uses_its_bytes_of_the_window() {
        let ports = Ports::new(Recorder::default());
        let address = Address::new(1, 2, 3);
        assert_eq!(ports.read(address, 0x0e, Width::Byte), 0xfe);
        ports.write(address, 0x06, Width::Word, 0x1234);
        let log = ports.io.lock().0.take();
        let selected = |offset: u32| (0xcf8, Width::Dword, 0x8001_1300 | offset);
        assert_eq!(
            log,
            [selected(0x0c), (0xcfe, Width::Byte, 0), selected(0x04), (0xcfe, Width::Word, 0x1234)]
        );
    }

    #[test]
    fn what_ports_do_not_reach_reads_as_ones() {
        let ports = Ports::new(Recorder::default());
        assert_eq!(ports.read(Address::new(0, 0, 0), 0x100, Width::Dword), u32::MAX);
        assert_eq!(ports.read(Address::new(0, 0, 0), 0x03, Width::Word), 0xffff);
        ports.write(Address::new(0, 0, 0), 0x100, Width::Byte, 1);
        assert!(ports.io.lock().0.take().is_empty());
    }
}
