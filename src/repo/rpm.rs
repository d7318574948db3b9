//! The indexes of the rpm repository.

use std::sync::Arc;

use rayon::prelude::*;
use rockpack_base::content::hex;
use rockpack_base::error::Result;
use rockpack_base::formats::compression::Method;
use rockpack_base::formats::rpm_md::{DataFile, Repomd, RepositoryRpm, filelists, other, primary};
use sha2::{Digest, Sha256};

use super::compress::{compress, ending};
use super::state::{ChannelState, PoolRecord};
use crate::package::indexed::Facts;

/// Files of the rpm repository, ready to be put in place.
#[derive(Debug, Default)]
pub(super) struct RpmIndexes {
    /// The lists that were made, under names that say their content.
    pub lists: Vec<(String, Arc<[u8]>)>,
    /// All lists.
    pub data: Vec<DataFile>,
    /// `repomd.xml`.
    pub repomd: Vec<u8>,
}

type WriteList = fn(&[RepositoryRpm<'_>]) -> Result<Vec<u8>>;

impl RpmIndexes {
    /// Writes the indexes of `state`, which has packages and date.
    pub fn of_state(state: &ChannelState, method: Method) -> Result<Self> {
        let places = places(state);
        let write: [(&str, WriteList); 3] =
            [("primary", primary), ("filelists", filelists), ("other", other)];
        let made: Vec<Result<_>> =
            write.par_iter().map(|(kind, write)| list(kind, &write(&places)?, method)).collect();
        let (mut data, mut lists) = (Vec::new(), Vec::new());
        for made in made {
            let (file, bytes): (DataFile, Arc<[u8]>) = made?;
            lists.push((file.path.clone(), bytes));
            data.push(file);
        }
        Ok(Self { lists, ..Self::of_lists(state, data)? })
    }

    /// The indexes of `state`, which has the packages whose lists `data` names.
    pub fn of_lists(state: &ChannelState, data: Vec<DataFile>) -> Result<Self> {
        let repomd = Repomd { revision: state.date, keys: state.keys.clone(), data };
        Ok(Self { lists: Vec::new(), repomd: repomd.render()?, data: repomd.data })
    }
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
