#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tavola_fuzz::long_form::run(data));
