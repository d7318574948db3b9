//! Files of any kind for `inspect`: an error, or a result that can be shown to people and programs.

use rockpack::cli::inspect_text;
use rockpack::inspect::inspect;
use rockpack_core::content::Content;

pub fn run(bytes: &[u8]) {
    match inspect(&Content::of_bytes(bytes)) {
        Ok(inspected) => {
            assert!(!inspect_text(&inspected, true).is_empty());
            serde_json::to_string(&inspected).unwrap();
        }
        Err(error) => super::refuse_bug(&error),
    }
}
