//! Finishes interrupted publications, or takes them back.
//!
//! ```text
//! .rockpack/shown-<channel>.json.zst   the files under names that clients read, as they will be
//! .rockpack/next-<channel>.json.zst    the state as it will be (see `channels`)
//! ```
//!
//! A publication writes both before anything else, then packages and indexes under names that say their content,
//! and then what clients read. A run that finds the two files completes the publication if all of the former are in
//! place. Otherwise clients have seen nothing of it, and the run removes what it wrote.

use std::collections::{BTreeSet, HashMap};

use rockpack_core::error::{Error, Kind, Result, ResultExt};
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::state::ChannelState;
use super::store::{PRIVATE, Store};

/// Path and content of a file under a name that clients read.
pub(super) type ShownFile = (String, ShownContent);

/// The place of the content of a shown file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ShownContent {
    /// The content itself: of `Release`, `repomd.xml`, signatures, keys and files for clients.
    Text(String),
    /// The content of the file at this path, whose name says it.
    Same(String),
}

/// The files that clients read: those that are the same as one of `hidden` by its path.
pub(super) fn shown<B: AsRef<[u8]>>(
    visible: &[(String, B)],
    hidden: &[(String, B)],
) -> Result<Vec<ShownFile>> {
    // Of several with one content, the first.
    let hidden: HashMap<&[u8], &String> =
        hidden.iter().rev().map(|(path, bytes)| (bytes.as_ref(), path)).collect();
    let shown = visible.iter().map(|(path, bytes)| {
        let bytes = bytes.as_ref();
        let found = match hidden.get(bytes) {
            Some(path) => Ok(ShownContent::Same((*path).clone())),
            None => String::from_utf8(bytes.to_vec()).map(ShownContent::Text),
        };
        let content =
            found.map_err(|error| Error::bug("an index has no name of its own").cause(error))?;
        Ok((path.clone(), content))
    });
    shown.collect()
}

/// The files to put in place to finish the publication `next` of a channel that is `now`, where clients will read
/// `shown`, if all of its new files exist.
pub(super) fn rest(
    store: &dyn Store,
    shown: Vec<ShownFile>,
    now: &ChannelState,
    next: &ChannelState,
) -> Result<Option<Vec<(String, Body)>>> {
    let odd =
        shown.iter().find(|(path, _)| path.starts_with(PRIVATE) || next.records.contains_key(path));
    if let Some((path, _)) = odd {
        let message = format!("says that `{}` is published last", path.escape_debug());
        return Err(Error::malformed(message));
    }
    // What clients read may lie there in part, or not yet.
    let late: BTreeSet<&String> = shown.iter().map(|(path, _)| path).collect();
    let early = next.records.keys().chain(&next.indexes).filter(|path| !late.contains(path));
    for path in early {
        if !now.has(path) && store.stat(path)?.is_none() {
            return Ok(None);
        }
    }
    let bodies: Result<Vec<_>> = shown
        .into_iter()
        .filter_map(|(path, content)| body(store, now, path, content).transpose())
        .collect();
    bodies.context(|| "finishing an interrupted publication".to_owned()).map(Some)
}

/// The content of a file that clients read; `None` if it is unchanged and
/// lost: the next publication rewrites it.
fn body(
    store: &dyn Store,
    now: &ChannelState,
    path: String,
    content: ShownContent,
) -> Result<Option<(String, Body)>> {
    let other = match content {
        ShownContent::Text(text) => return Ok(Some((path, Body::Bytes(text.into_bytes().into())))),
        ShownContent::Same(other) => other,
    };
    match store.read(&other)? {
        Some(bytes) => Ok(Some((path, Body::Same(other, bytes.into())))),
        None if now.has(&other) => Ok(None),
        None => Err(Error::new(Kind::Changed, "is gone from the repository").file(&other)),
    }
}
