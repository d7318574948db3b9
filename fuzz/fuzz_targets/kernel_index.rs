//! What a kernel index says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rockpack::content::Content;
use rockpack::database;

fuzz_target!(|data: &[u8]| {
    let _ = database::read_index(&Content::of_bytes(data));
});
