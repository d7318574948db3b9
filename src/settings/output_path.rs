//! Paths of options that something is written to.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

/// What other programs take for their standard output.
const STANDARD_OUTPUT: &str = "-";

/// The parser of a path that something is written to. `-` is refused: a file or folder of that name is
/// hardly meant, and nothing is written to standard output in its place.
pub fn output_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path == Path::new(STANDARD_OUTPUT) {
            let message = "it is written to a file or folder, and not to standard output; \
                           name one, `./-` if it is to be called that";
            Err(message.to_owned())
        } else {
            Ok(path)
        }
    })
}
