//! Fuzzes `http_head`; what must hold is in `store::fuzzing`.
#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| page::fuzzing::run(store::fuzzing::TARGETS, "http_head", input));
