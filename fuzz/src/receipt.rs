//! Receipts: an accepted one survives being written.

use rockpack_package::receipt::Receipt;

pub fn run(bytes: &[u8]) {
    let Some(receipt) = super::read(Receipt::parse(bytes)) else {
        return;
    };
    let written = receipt.to_bytes().unwrap();
    assert_eq!(Receipt::parse(&written).unwrap(), receipt);
}
