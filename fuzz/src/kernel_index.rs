//! What a kernel index says.

use rockpack::content::Content;
use rockpack::database;

pub fn run(data: &[u8]) {
    let _ = database::read_index(&Content::of_bytes(data));
}
