//! The program exports the libc functions it interposes, so that libraries it loads at run time find them first.

fn main() {
    println!("cargo::rerun-if-changed=../uverbs/preload/src/symbols.txt");
    let symbols = include_str!("../uverbs/preload/src/symbols.txt");
    for symbol in symbols.lines() {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbol}");
    }
}
