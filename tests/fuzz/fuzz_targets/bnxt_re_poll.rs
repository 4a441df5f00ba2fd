#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    directverbs_suites::hostile::bnxt_re_poll(data);
});
