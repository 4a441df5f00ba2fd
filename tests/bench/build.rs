//! The program exports the libc functions that the oracle interposes, so that the C libraries find them first.

fn main() {
    println!("cargo::rerun-if-changed=../uverbs/preload/src/symbols.txt");
    for symbol in include_str!("../uverbs/preload/src/symbols.txt").lines() {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbol}");
    }
}
