#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| conversation_store_fuzz::properties::journal::holds(data));
