//! The indexes of the rpm repository.

use std::sync::Arc;

use rayon::prelude::*;
use rockpack_archive::rpm_md::{DataFile, Repomd, RepositoryRpm, filelists, other, primary};
use rockpack_core::compression::Method;
use rockpack_core::content::hex;
use rockpack_core::error::Result;
use sha2::{Digest, Sha256};

use super::channel_files::ChannelFiles;
use super::compress::{compress, ending};
use super::listed_indexes::ListedIndexes;
use super::state::{ChannelState, PoolRecord};
use rockpack_package::indexed::Facts;

type WriteList = fn(&[RepositoryRpm<'_>]) -> Result<Vec<u8>>;

/// Adds the lists of `state`, which has packages and date, to `files`, unless those that are `listed` can stay.
/// Returns `repomd.xml`.
pub(super) fn add_indexes(
    state: &ChannelState,
    listed: Option<&ListedIndexes>,
    method: Method,
    files: &mut ChannelFiles,
) -> Result<Vec<u8>> {
    let mut data = listed.map(|listed| listed.repomd.clone()).unwrap_or_default();
    let made = if listed.is_some() { Vec::new() } else { lists(state, method)? };
    for (file, bytes) in made {
        files.hidden.push((file.path.clone(), bytes));
        data.push(file);
    }
    let repomd = Repomd { revision: state.date, keys: state.keys.clone(), data };
    let text = repomd.render()?;
    files.listed.repomd = repomd.data;
    Ok(text)
}

/// All lists, whose names say their content.
fn lists(state: &ChannelState, method: Method) -> Result<Vec<(DataFile, Arc<[u8]>)>> {
    let places = places(state);
    let write: [(&str, WriteList); 3] =
        [("primary", primary), ("filelists", filelists), ("other", other)];
    let made: Vec<Result<_>> =
        write.par_iter().map(|(kind, write)| list(kind, &write(&places)?, method)).collect();
    made.into_iter().collect()
}

fn list(kind: &str, open: &[u8], method: Method) -> Result<(DataFile, Arc<[u8]>)> {
    let bytes = compress(open, method)?;
    let sha256 = hex(&Sha256::digest(&bytes));
    let file = DataFile {
        kind: kind.to_owned(),
        path: format!("repodata/{sha256}-{kind}.xml{}", ending(method)),
        sha256,
        size: bytes.len() as u64,
        open_sha256: hex(&Sha256::digest(open)),
        open_size: open.len() as u64,
    };
    Ok((file, bytes))
}

/// The packages by name, version and architecture.
fn places(state: &ChannelState) -> Vec<RepositoryRpm<'_>> {
    let mut records: Vec<(&String, &Arc<PoolRecord>)> = state.records.iter().collect();
    records.sort_by(|(a_path, a), (b_path, b)| {
        let (a, b) = (&a.indexed.facts, &b.indexed.facts);
        a.name().cmp(b.name()).then_with(|| a.compare_versions(b)).then_with(|| a_path.cmp(b_path))
    });
    let places = records.into_iter().filter_map(|(path, record)| match &record.indexed.facts {
        Facts::Rpm(package) => {
            let (size, sha256) = (record.indexed.size, record.indexed.sha256.as_str());
            Some(RepositoryRpm { package, path, size, sha256 })
        }
        Facts::Deb(_) | Facts::Wheel(_) => None,
    });
    places.collect()
}
