//! Hands the linker script of the target to the linker.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    println!("cargo:rerun-if-changed=build.rs");
    if !is("CARGO_CFG_TARGET_OS", "none") {
        return;
    }
    let arch = if is("CARGO_CFG_TARGET_ARCH", "x86_64") { "x86_64" } else { "aarch64" };
    println!("cargo:rerun-if-changed={arch}.ld");
    println!("cargo:rustc-link-arg-bins=-T{folder}/{arch}.ld");
}
