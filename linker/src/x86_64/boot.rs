//! From the loader to Rust: 32-bit code that a PVH loader starts, page tables, 64-bit mode.
//!
//! Source: Xen's documentation of the PVH boot protocol (`pvh.pandoc`); Intel SDM volume 3, chapters 4 and 10.

use core::arch::global_asm;
use core::arch::x86_64::__cpuid;

/// Bytes of the stack.
const STACK: usize = 1 << 20;
/// Leaf of the processor's extended features, and the bit in EDX that says that it has pages of 1 GiB.
const FEATURES: u32 = 0x8000_0001;
const GIB_PAGES: u32 = 26;

/// How much of the bus is mapped where it is, in GiB: 4, or all that one table of pages of 1 GiB reaches. The first GiB is
/// memory; everything else is registers, and not cached.
pub fn mapped_gib() -> u64 {
    if __cpuid(FEATURES).edx >> GIB_PAGES & 1 != 0 { 512 } else { 4 }
}

global_asm!(
    r#"
    // Note 18 of Xen: where a 32-bit loader starts.
    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 4, 18
    .asciz "Xen"
    .long boot

    .section .text.boot, "ax"
    .code32
    .global boot
boot:
    cli
    cld
    mov edi, offset bss_start
    mov ecx, offset bss_end
    sub ecx, edi
    xor eax, eax
    rep stosb
    mov esp, offset stack_top

    // Level 4: one entry. Level 3: four tables of level 2, then pages of 1 GiB if there are any.
    mov eax, offset level3 + 3
    mov [level4], eax
    mov eax, offset level2 + 3
    xor ecx, ecx
2:  mov [level3 + ecx * 8], eax
    add eax, 4096
    inc ecx
    cmp ecx, 4
    jne 2b

    mov eax, {features}
    cpuid
    bt edx, {gib_pages}
    jnc 4f
    mov ecx, 4
3:  mov eax, ecx
    shl eax, 30
    or eax, 0x9b                // present, writable, not cached, a page
    mov [level3 + ecx * 8], eax
    mov eax, ecx
    shr eax, 2
    mov [level3 + ecx * 8 + 4], eax
    inc ecx
    cmp ecx, 512
    jne 3b

    // Level 2: pages of 2 MiB. The first 512 are memory.
4:  xor ecx, ecx
5:  mov eax, ecx
    shl eax, 21
    or eax, 0x83
    cmp ecx, 512
    jb 6f
    or eax, 0x18
6:  mov [level2 + ecx * 8], eax
    inc ecx
    cmp ecx, 2048
    jne 5b

    mov eax, offset level4
    mov cr3, eax
    mov eax, cr4
    or eax, 0x20                // physical address extension
    mov cr4, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x100               // long mode
    wrmsr
    mov eax, cr0
    or eax, 0x80000001          // paging, protection
    mov cr0, eax
    lgdt [segments_pointer]
    push 8
    mov eax, offset boot64
    push eax
    retf

    .code64
boot64:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    xor eax, eax
    mov fs, ax
    mov gs, ax
    mov esp, offset stack_top
    call {start}
    ud2

    .section .rodata.boot, "a"
    .balign 8
segments:
    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
segments_pointer:
    .word 23
    .quad segments

    .section .bss.boot, "aw", @nobits
    .balign 4096
level4: .skip 4096
level3: .skip 4096
level2: .skip 4 * 4096
    .skip {stack}
stack_top:
    "#,
    features = const FEATURES,
    gib_pages = const GIB_PAGES,
    stack = const STACK,
    start = sym super::start,
);
