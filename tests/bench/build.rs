//! The program exports the libc functions that the oracle interposes, so that the C libraries find them first.

fn main() {
    println!("cargo::rerun-if-changed=../oracle/src/preload/symbols.txt");
    for symbol in include_str!("../oracle/src/preload/symbols.txt").lines() {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbol}");
    }
}
