//! Receipts: what is accepted survives being written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rockpack::receipt::Receipt;

fuzz_target!(|bytes: &[u8]| {
    let Ok(receipt) = Receipt::parse(bytes) else {
        return;
    };
    let written = receipt.to_bytes().unwrap();
    assert_eq!(Receipt::parse(&written).unwrap(), receipt);
});
