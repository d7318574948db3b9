//! The package that installs the keys of a repository on clients.
//!
//! ```text
//! <name>-archive-keyring    .deb   /usr/share/keyrings/<name>-archive-keyring.asc
//!                           .rpm   /etc/pki/rpm-gpg/RPM-GPG-KEY-<name>
//! ```
//!
//! `docs/guides/repository.md` describes how to change the key.

use std::collections::BTreeSet;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, TreePath};
use rockpack_package::{
    DebControl, Format, Formats, Identity, Package, PackageEntry, Rights, Role, RpmControl,
    Treatment,
};

use super::channel::Channel;
use super::channels::Channels;
use super::input::{self, GivenPackage};
use super::options::RepoOptions;
use super::store::{PRIVATE, Store};

/// The licence of the key package: public keys are not protected by copyright.
const LICENSE: &str = "LicenseRef-PublicDomain";

/// The keyring's file name, in the repository and in the folder that apt reads. `name` is that of the repository.
pub fn file_name(name: Option<&str>) -> String {
    const UNNAMED: &str = "archive-keyring.asc";
    name.map_or_else(|| UNNAMED.to_owned(), |name| format!("{name}-{UNNAMED}"))
}

/// The path at which the key package for apt installs the keyring, which `.sources` files name.
pub fn installed_path(name: &str) -> String {
    format!("usr/share/keyrings/{}", file_name(Some(name)))
}

pub fn package(
    name: &str,
    version: &str,
    maintainer: &str,
    keys: &str,
) -> Result<Package<Content>> {
    check_version(version)?;
    let id = format!("{}-archive-keyring", name.to_lowercase());
    let file = || Node::File { data: Content::of_bytes(keys.as_bytes()), mode: 0o644 };
    let folders = ["usr", "usr/share", "usr/share/keyrings"];
    let folders = folders.map(|path| (path.to_owned(), Node::Directory { mode: 0o755 }));
    let deb_files = folders.into_iter().chain([(installed_path(name), file())]);
    let rpm_file = (format!("etc/pki/rpm-gpg/RPM-GPG-KEY-{name}"), file());
    // Entries are sorted by path; that of the `.rpm` is the first.
    let all =
        [(Format::Rpm, rpm_file)].into_iter().chain(deb_files.map(|entry| (Format::Deb, entry)));
    let entries = all.map(|(format, (path, node))| {
        let (path, formats) = (TreePath::new(path)?, Formats::Only(format));
        Ok(PackageEntry { path, node, treatment: Treatment::Plain, formats })
    });
    Ok(Package {
        role: Role::Support,
        summary: format!("Keys of the {name} package repository"),
        description: vec![format!(
            "The OpenPGP keys that the indexes and packages of the {name} repository are signed by."
        )],
        homepage: None,
        rights: Rights { license: LICENSE.to_owned(), ..Rights::default() },
        deb: Some(DebControl {
            name: id.clone(),
            version: version.to_owned(),
            architecture: "all".to_owned(),
            section: "misc".to_owned(),
            priority: "optional".to_owned(),
            maintainer: maintainer.to_owned(),
            ..DebControl::default()
        }),
        rpm: Some(RpmControl {
            name: id.clone(),
            version: version.to_owned(),
            release: "1".to_owned(),
            arch: "noarch".to_owned(),
            group: "System Environment/Base".to_owned(),
            license: LICENSE.to_owned(),
            packager: Some(maintainer.to_owned()),
            ..RpmControl::default()
        }),
        id,
        identity: Identity::default(),
        entries: entries.collect::<Result<_>>()?,
    })
}

/// Refuses an invalid version of a key package.
pub fn check_version(version: &str) -> Result<()> {
    let is_legal = version.chars().all(|c| c.is_ascii_alphanumeric() || ".+~".contains(c));
    if version.starts_with(|c: char| c.is_ascii_digit()) && is_legal {
        return Ok(());
    }
    let message = format!("`{}` is not a valid version of a key package", version.escape_debug());
    Err(Error::new(Kind::Usage, message).hint("for example the date: 2026.11.20"))
}

/// The folder below `.rockpack` in which key packages are built.
const FOLDER: &str = "keyring";

/// Builds the key packages, one per repository name. A channel gets one if it exists or gets some of `packages`.
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
    let signer = options.signer.as_ref();
    let signer = signer.ok_or_else(|| Error::bug("a key package has no key"))?;
    let keys = signer.public_keys()?;
    // The settings of the channel define the package's name and the path of its keyring.
    let names: Vec<(Channel, String)> = Channel::all(&options.suite)
        .into_iter()
        .filter(|channel| channel.format().is_some() && options.includes(channel.kind()))
        // A key package alone creates no channel.
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
        let package = package(name, wanted.version, wanted.maintainer, &keys)?;
        store.check(&[&format!("{PRIVATE}/{FOLDER}/{name}/package")])?;
        let folder = options.out.join(PRIVATE).join(FOLDER).join(name);
        for (file, indexed) in (wanted.write)(&package, &folder)? {
            let kind = indexed.facts.kind();
            if names.iter().any(|(channel, of)| channel.kind() == kind && of == name) {
                let found = input::inspect(file)?;
                let budget = store.budget();
                given.push(input::given_package(found, None, Some(&indexed), options, budget)?);
            }
        }
    }
    Ok(given)
}

fn unnamed() -> Error {
    Error::new(Kind::Usage, "a key package needs a name, but the repository has none")
        .hint("give --name, or --url, whose host becomes the name")
}
