//! Receipts and plans as input of differences: an accepted set is in order and equal to itself.

use rockpack_package::receipt::{difference, listing};

pub fn run(bytes: &[u8]) {
    let Some(set) = super::read(listing::parse("set".to_owned(), bytes)) else {
        return;
    };
    assert!(set.packages.is_sorted_by(|one, other| one.key() <= other.key()));
    let difference = difference::between(&set, &set);
    assert!(difference.is_empty(), "{difference:?}");
}
