//! The states that rockpack keeps of a repository. Only values that checks need are read from them, so that they
//! may be of any version.

use std::io::Read;
use std::path::Path;

use rockpack_base::content::{is_folder, list};
use rockpack_base::error::{Error, Kind, Result};
use serde_json::Value;

use super::context::{INDEX_MAX, NamedFiles};

/// The folder in which the writer of a repository keeps its states.
const FOLDER: &str = ".rockpack";

/// The start of the names of states that are being published.
const NEXT: &str = "next-";

/// A state of a channel.
pub(super) struct State {
    /// Whether its publication was interrupted: the next run finishes it or takes it back.
    pub is_next: bool,
    pub value: Value,
}

/// Tells whether the repository has states.
pub(super) fn are_kept(root: &Path) -> Result<bool> {
    is_folder(&root.join(FOLDER))
}

/// All states of the repository.
pub(super) fn all(files: NamedFiles<'_>) -> Result<Vec<State>> {
    let mut states = Vec::new();
    if !are_kept(files.root)? {
        return Ok(states);
    }
    for entry in list(&files.root.join(FOLDER))? {
        let path = entry?.path();
        let Some(text) = text(files, &path)? else { continue };
        let value = serde_json::from_slice(&text).map_err(|error| no_state(&path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        states.push(State { is_next: name.starts_with(NEXT), value });
    }
    Ok(states)
}

/// The JSON of a state, which earlier versions of rockpack did not compress; `None` for other files.
fn text(files: NamedFiles<'_>, path: &Path) -> Result<Option<Vec<u8>>> {
    let name = path.to_string_lossy();
    if name.ends_with(".json") {
        return files.read(path, "a state").map(Some);
    }
    if !name.ends_with(".json.zst") {
        return Ok(None);
    }
    let bytes = files.read(path, "a state")?;
    let mut text = Vec::new();
    let decoder = zstd::Decoder::new(&*bytes).map_err(|error| no_state(path, error))?;
    decoder.take(INDEX_MAX + 1).read_to_end(&mut text).map_err(|error| no_state(path, error))?;
    if text.len() as u64 > INDEX_MAX {
        let message =
            format!("unpacks to more than the {INDEX_MAX} bytes that such a file may have");
        return Err(Error::new(Kind::Limit, message).file(path));
    }
    Ok(Some(text))
}

fn no_state(path: &Path, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::malformed("is no state of a repository").file(path).cause(cause)
}
