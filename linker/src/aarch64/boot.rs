//! From the loader to Rust: memory is mapped where it is, so that it is cached and takes unaligned accesses.
//!
//! Source: Arm Architecture Reference Manual, D8 (translation) and D24 (system registers).

use core::arch::global_asm;

/// Bytes of the stack.
const STACK: usize = 1 << 20;

/// Attribute 0: memory, cached. Attribute 1: registers, each access as it is.
const ATTRIBUTES: u64 = 0x04ff;
/// Addresses of 39 bits, pages of 4 KiB, tables in cached and shared memory, no addresses of the upper half; physical
/// addresses of 40 bits.
const CONTROL: u64 = 25 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 2 << 32;

/// A GiB that is there and has been accessed.
const BLOCK: u64 = 1 << 10 | 1;
const REGISTERS: u64 = BLOCK | 1 << 2 | 3 << 53;
const MEMORY: u64 = BLOCK | 3 << 8;

/// One entry for each GiB: the first holds the registers, the second the memory.
#[repr(C, align(4096))]
struct Table([u64; 512]);

static TABLE: Table = {
    let mut entries = [0; 512];
    entries[0] = REGISTERS;
    entries[1] = MEMORY | 1 << 30;
    Table(entries)
};

global_asm!(
    r#"
    .section .text.boot, "ax"
    .global boot
boot:
    // Floating point registers, which the compiler uses for copies.
    mov x1, #(3 << 20)
    msr cpacr_el1, x1
    adrp x1, {vectors}
    add x1, x1, :lo12:{vectors}
    msr vbar_el1, x1

    adrp x1, bss_start
    adrp x2, bss_end
    add x2, x2, :lo12:bss_end
2:  stp xzr, xzr, [x1], #16
    cmp x1, x2
    b.lo 2b

    ldr x1, ={attributes}
    msr mair_el1, x1
    ldr x1, ={control}
    msr tcr_el1, x1
    adrp x1, {table}
    msr ttbr0_el1, x1
    dsb sy
    tlbi vmalle1
    dsb sy
    isb
    mrs x1, sctlr_el1
    mov x2, #0x1005             // caches and translation
    orr x1, x1, x2
    bic x1, x1, #2              // unaligned accesses
    msr sctlr_el1, x1
    isb

    adrp x1, stack_top
    mov sp, x1
    bl {start}

    .section .bss.boot, "aw", @nobits
    .balign 4096
    .skip {stack}
stack_top:
    "#,
    vectors = sym super::traps::VECTORS,
    attributes = const ATTRIBUTES,
    control = const CONTROL,
    table = sym TABLE,
    stack = const STACK,
    start = sym super::start,
);
