//! Fuzzes `xfile`; what must hold is in `page::fuzzing`.
#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| page::fuzzing::run(page::fuzzing::TARGETS, "xfile", input));
