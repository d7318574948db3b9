//! The package with the keys of a repository, made while the repository is published. Its name and
//! the path of its file follow from the settings of the channel that it goes to.

use std::collections::BTreeSet;

use rockpack_core::error::{Error, Kind, Result};

use super::channel::Channel;
use super::channels::Channels;
use super::input::{self, GivenPackage};
use super::options::RepoOptions;
use super::store::{PRIVATE, Store};
use crate::keyring;

/// The folder of the repository in which key packages are made.
const FOLDER: &str = "keyring";

/// Makes the key package for the channels of the formats asked for that are there or are given a
/// package of `packages`; each gets the one of its name.
pub(super) fn given(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    channels: &Channels,
    packages: &[GivenPackage],
) -> Result<Vec<GivenPackage>> {
    let Some(wanted) = options.key_package else {
        return Ok(Vec::new());
    };
    // The settings refuse a key package without a key.
    let signer = options.signer.ok_or_else(|| Error::bug("a key package has no key"))?;
    let keys = signer.public_keys()?;
    let names: Vec<(Channel, String)> = Channel::all(&options.suite)
        .into_iter()
        .filter(|channel| channel.format().is_some() && options.asks_for(channel.kind()))
        // The package alone makes no channel.
        .filter(|channel| {
            let is_its = |given: &GivenPackage| given.indexed.facts.kind() == channel.kind();
            channels.0.contains_key(&channel.name()) || packages.iter().any(is_its)
        })
        .map(|channel| {
            let settings = channels.settings(&channel, &options.settings);
            Ok((channel, settings.name.ok_or_else(unnamed)?))
        })
        .collect::<Result<_>>()?;
    let different: BTreeSet<&String> = names.iter().map(|(_, name)| name).collect();
    let mut given = Vec::new();
    for name in different {
        let package = keyring::package(name, wanted.version, wanted.maintainer, &keys)?;
        store.check(&[&format!("{PRIVATE}/{FOLDER}/{name}/package")])?;
        let folder = options.out.join(PRIVATE).join(FOLDER).join(name);
        for (file, indexed) in (wanted.write)(&package, &folder)? {
            let kind = indexed.facts.kind();
            if names.iter().any(|(channel, of)| channel.kind() == kind && of == name) {
                given.push(input::written(file, indexed, options, store.budget())?);
            }
        }
    }
    Ok(given)
}

fn unnamed() -> Error {
    Error::new(Kind::Usage, "a key package needs a name, and the repository has none")
        .hint("give --name, or --url: its host makes the name")
}
