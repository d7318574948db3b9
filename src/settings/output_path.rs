//! Paths of options that name an output.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

/// The path by which other programs mean standard output.
const STANDARD_OUTPUT: &str = "-";

/// A parser of output paths. It refuses `-`: a file or folder of that name is hardly meant, and nothing is
/// written to standard output instead.
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
