use core::ptr::NonNull;
use std::vec;
use std::vec::Vec;

use super::{GRANULE, Identity, Mapped, Memory};
use crate::dma::{DmaError, DmaMemory};
use crate::host::Host;
use crate::pci::tests::machine::{Fake, Machine};
use crate::pci::{Address, Command, Config, Function, Windows, command};
use crate::registers::{Caching, MapError, Registers};

const LEN: usize = 1 << 16;
const DEVICE: u64 = 0x70_0000_0000;

/// Memory with these addresses, which is never freed.
fn memory<const N: usize>() -> Memory<N> {
    let layout = std::alloc::Layout::from_size_align(LEN, LEN).unwrap();
    // SAFETY: the layout is not empty.
    let base = unsafe { std::alloc::alloc(layout) };
    // SAFETY: nobody else has the memory, and there is no device.
    unsafe { Memory::new(NonNull::new(base).unwrap(), LEN, DEVICE) }
}

fn owned<const N: usize>(
    memory: &Memory<N>,
    bytes: usize,
    align: usize,
) -> Result<super::Block<'_, N>, DmaError> {
    memory.take(bytes, align, 8)
}

#[test]
fn blocks_are_aligned_zeroed_and_apart() {
    let memory = memory::<16>();
    let mut first = owned(&memory, 100, 1).unwrap();
    let second = owned(&memory, 1, 4096).unwrap();
    assert_eq!((first.len(), second.len()), (128, GRANULE));
    assert_eq!((first.device_address(), second.device_address()), (DEVICE, DEVICE + 4096));
    assert!(second.base().as_ptr().addr().is_multiple_of(4096));
    assert!(first.write(0, &[7; 128]) && !first.write(1, &[7; 128]));
    assert_eq!(second.load::<u64>(0), Some(0));
    drop(first);
    assert_eq!(owned(&memory, 8, 8).unwrap().load::<u64>(0), Some(0), "what was there is gone");
}

#[test]
fn freed_neighbours_become_one() {
    let memory = memory::<16>();
    for order in [[1, 3, 2, 0], [0, 2, 3, 1]] {
        let mut blocks = [const { None }; 4];
        blocks.iter_mut().for_each(|block| *block = owned(&memory, LEN / 4, 1).ok());
        assert_eq!(memory.free(), (0, 0));
        assert!(owned(&memory, 1, 1).is_err());
        order.iter().for_each(|i| drop(blocks[*i].take()));
        assert_eq!(memory.free(), (LEN, LEN));
    }
}

#[test]
fn random_use_loses_nothing_and_overlaps_nowhere() {
    let memory = memory::<64>();
    let mut blocks: Vec<(super::Block<'_, 64>, u8)> = Vec::new();
    let mut random = 1u32;
    for round in 0..20_000u32 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (pick, size) = ((random >> 8) as usize, 1 + (random >> 16) as usize % 3000);
        if random & 0x80 == 0 || blocks.is_empty() {
            if let Ok(mut block) = owned(&memory, size, 1 << (pick % 13)) {
                assert!(block.write(0, &vec![round as u8; block.len()]));
                blocks.push((block, round as u8));
            }
        } else {
            let (block, mark) = blocks.swap_remove(pick % blocks.len());
            let mut bytes = vec![0; block.len()];
            assert!(block.read(0, &mut bytes) && bytes.iter().all(|byte| *byte == mark));
        }
    }
    drop(blocks);
    assert_eq!(memory.free(), (LEN, LEN));
}

#[test]
fn what_cannot_be_had_is_an_error_and_changes_nothing() {
    let memory = memory::<3>();
    let refused = |bytes, align| owned(&memory, bytes, align).expect_err("too much");
    assert_eq!(refused(LEN + 1, 1), DmaError::Exhausted { bytes: LEN + 1, align: 1 });
    assert_eq!(refused(usize::MAX, 1), DmaError::Exhausted { bytes: usize::MAX, align: 1 });
    assert_eq!(refused(1, 3), DmaError::Alignment(3));
    assert_eq!(refused(1, 1 << 63), DmaError::Alignment(1 << 63), "addresses differ there");
    let _first = owned(&memory, 64, 1).unwrap();
    let _second = owned(&memory, 64, 1).unwrap();
    assert_eq!(refused(64, 1), DmaError::Exhausted { bytes: 64, align: 1 }, "there are three pieces");
    let all = LEN - 128;
    assert_eq!(owned(&memory, all, 1).unwrap().len(), all, "but the last can be taken whole");
}

#[test]
fn abandoned_memory_of_a_function_comes_back_when_it_is_at_rest() {
    let memory = memory::<16>();
    let machine = Machine::new([((1, 0), Fake::endpoint()), ((2, 0), Fake::endpoint())]);
    let mapped = Mapped { windows: Windows { narrow: 0..0, wide: 0..0 }, distance: 0 };
    let host = |device| {
        let function = Function::new(&machine, Address::new(0, device, 0));
        // SAFETY: nothing is mapped, and there is no device.
        unsafe { Identity::new(function, &machine, &memory, &mapped) }.unwrap()
    };
    let (first, second) = (host(1), host(2));
    command::enable(second.config(), Command::BUS_MASTER);
    first.dma(64, 1).unwrap().abandon();
    second.dma(128, 1).unwrap().abandon();
    assert_eq!((memory.abandoned(), memory.free().0), (192, LEN - 192));
    assert_eq!(second.quiesce(), Ok(()));
    assert!(!command::get(second.config()).contains(Command::BUS_MASTER));
    assert_eq!((memory.abandoned(), memory.free().0), (64, LEN - 64));
    assert_eq!(first.quiesce(), Ok(()));
    assert_eq!(memory.free(), (LEN, LEN));
    assert_eq!(first.reset(), Err(crate::host::ResetError::Unsupported));
}

#[test]
fn registers_are_where_the_bar_is() {
    #[repr(align(4096))]
    struct Page([u64; 512]);
    let mut page = std::boxed::Box::new(Page([0; 512]));
    page.0[1] = 0x0102_0304_0506_0708;
    let at = (&raw mut *page).expose_provenance();
    let machine =
        Machine::of(Fake::endpoint().with_bar(0, 0x1000, true, true).with_bar(2, 0x1000, true, true));
    let memory = memory::<8>();
    let bus = 0x30_0000_0000u64;
    machine.only().write32(0x10, bus as u32);
    machine.only().write32(0x14, (bus >> 32) as u32);
    let open = |wide, distance| {
        let mapped = Mapped { windows: Windows { narrow: 0..0, wide }, distance };
        // SAFETY: the BAR, if it is in the windows, is at the page, which lives on.
        let host = unsafe { Identity::new(machine.only(), &machine, &memory, &mapped) }.unwrap();
        let read = |bar, offset| host.map_bar(bar, offset, 8, Caching::Uncached).map(|bar| bar.read64(0));
        (host.bar_len(0), read(0, 8), read(0, 0x1000), read(2, 0), read(0, 4))
    };
    let distance = at.wrapping_sub(bus as usize);
    let outside = |offset| Err(MapError::Outside { bar: 0, has: 0x1000, offset, len: 8 });
    let missing = |bar| Err(MapError::Missing { bar });
    let found = (0x1000, Ok(0x0102_0304_0506_0708), outside(0x1000), missing(2), outside(4));
    assert_eq!(open(bus..bus + 0x1000, distance), found);
    // A BAR that claims to be where nothing is mapped is not there.
    let lost = (0, missing(0), missing(0), missing(2), missing(0));
    assert_eq!(open(bus..bus + 0xfff, distance), lost);
    assert_eq!(open(bus + 1..bus + 0x2000, distance), lost);
}
