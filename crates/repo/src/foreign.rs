//! Files in the folder of a repository that no state knows: of another tool, or of rockpack before `.rockpack` was
//! lost. They stay as they are.

use rockpack_core::error::{Error, Kind, Result};

use super::catalog::Addition;
use super::channel::Channel;
use super::channels::Channels;
use super::index_paths::{PROJECT_LISTS, PYTHON_FOLDER, REPOMD, suite_folder};
use super::store::Store;

/// Refuses to publish `channel` over indexes, or signatures of indexes, that its state does not
/// know.
pub(super) fn refuse_indexes(
    store: &dyn Store,
    channel: &Channel,
    channels: &Channels,
) -> Result<()> {
    let state = channels.0.get(&channel.name());
    for (path, is_signature) in files(channel) {
        let known = state.is_some_and(|state| state.signed || !is_signature);
        if !known && store.stat(&path)?.is_some() {
            return Err(if state.is_some() {
                unknown_signature(&path)
            } else {
                unknown_index(&path, channel)
            });
        }
    }
    Ok(())
}

/// The files that clients begin with, and whether each is a signature.
fn files(channel: &Channel) -> Vec<(String, bool)> {
    match channel {
        Channel::Apt(suite) => {
            let names = [("InRelease", true), ("Release.gpg", true), ("Release", false)];
            let folder = suite_folder(suite);
            names.map(|(name, signs)| (format!("{folder}/{name}"), signs)).into()
        }
        Channel::Rpm => vec![(format!("{REPOMD}.asc"), true), (REPOMD.to_owned(), false)],
        Channel::Python => PROJECT_LISTS.map(|path| (path.to_owned(), false)).into(),
    }
}

pub(super) fn unknown_index(path: &str, channel: &Channel) -> Error {
    let message = format!("{path} is there already, and rockpack remembers nothing of it");
    let folder = match channel {
        Channel::Apt(suite) => suite_folder(suite),
        Channel::Rpm => "repodata".to_owned(),
        Channel::Python => PYTHON_FOLDER.to_owned(),
    };
    Error::new(Kind::Conflict, message).hint(format!(
        "the repository of another tool stays as it is: name another folder; where it is rockpack's \
         own and .rockpack was lost, move its packages out of it, remove {folder}/, and publish all \
         of them again, signed as they were"
    ))
}

fn unknown_signature(path: &str) -> Error {
    let message = format!("{path} is there, and rockpack published without a signature");
    Error::new(Kind::Conflict, message).hint(
        "new indexes beside an old signature are refused by clients: remove it, and give \
         --sign-key, --gpg-key-id or --sign-command",
    )
}

/// The pool's file at the path of a package that is to be published is another one.
pub(super) fn other_file(path: &str, addition: &Addition) -> Error {
    let message =
        format!("is not the {path} that is there already, which rockpack did not publish");
    Error::new(Kind::Conflict, message)
        .file(&addition.file)
        .hint("somebody else's file is not replaced: move it away, or publish to another folder")
}
