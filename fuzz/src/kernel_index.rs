//! The content of a kernel index.

use rockpack_split::input::database;
use rockpack_core::content::Content;

pub fn run(data: &[u8]) {
    super::read(database::read_index(&Content::of_bytes(data)));
}
