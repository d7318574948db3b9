//! What a kernel index says.

use rockpack::content::Content;
use rockpack::input::database;

pub fn run(data: &[u8]) {
    super::read(database::read_index(&Content::of_bytes(data)));
}
