//! The indexes of an apt suite and of the rpm repository, and their compressed forms.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use flate2::GzBuilder;
use rayon::prelude::*;
use rockpack_archive::apt_index::{IndexFile, KEYRING_KEYS, Release, Stanza, dep11, format_date};
use rockpack_archive::deb;
use rockpack_archive::rpm_md::DataFile;
use rockpack_core::compression::{Compression, Encoder, LongMatches, Method, Workers};
use rockpack_core::content::hex;
use rockpack_core::error::{Error, Result};
use rockpack_package::indexed::IndexMetadata;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};

use super::channel::{Channel, apt_index_paths};
use super::channel_files::ChannelFiles;
use super::rpm_lists::Chunks;
use super::state::{ChannelState, PoolRecord};
use super::store::FileContent;

/// Levels at which compressing the indexes of thousands of packages takes a fraction of a second.
pub(super) const GZIP: flate2::Compression = flate2::Compression::new(6);
const ZSTD: Compression = Compression::Zstd { level: 9, window_log: 23, long: LongMatches::Off };

pub(super) const ALL: &str = "all";

const SECONDS_PER_DAY: i64 = 86_400;

/// Adds the indexes of an apt suite to `files`, unless the earlier ones in `listed` are valid. Returns the unsigned
/// `Release`.
pub(super) fn add_apt_indexes(
    suite: &str,
    state: &ChannelState,
    listed: Option<&ListedIndexes>,
    files: &mut ChannelFiles,
) -> Result<String> {
    let made = if listed.is_some() { Vec::new() } else { apt_indexes(suite, state)? };
    let mut entries: Vec<IndexFile> = made.iter().map(|(file, _)| file.clone()).collect();
    entries.sort();
    for (file, content) in made {
        let mut names = apt_index_paths(suite, &file);
        files.visible.extend(names.pop().map(|name| (name, content.clone())));
        files.hidden.extend(names.into_iter().map(|name| (name, content.clone())));
    }
    let entries = listed.map_or(entries, |listed| listed.release.clone());
    let release = Release { fields: release_fields(suite, state)?, files: entries };
    let text = release.render()?;
    files.listed.release = release.files;
    Ok(text)
}

fn apt_indexes(suite: &str, state: &ChannelState) -> Result<Vec<(IndexFile, FileContent)>> {
    let archs = archs(state);
    let components = components(state);
    let pairs: Vec<(&str, &str)> =
        components.iter().flat_map(|c| archs.iter().map(move |a| (*c, *a))).collect();
    let indexes = |(component, arch): &(&str, &str)| -> Result<Vec<_>> {
        let path = format!("{component}/binary-{arch}/Packages");
        let mut files = forms(&path, &packages_text(state, component, arch))?;
        let drivers = drivers_text(suite, state, component, arch);
        if !drivers.is_empty() {
            files.extend(forms(&format!("{component}/dep11/Components-{arch}.yml"), &drivers)?);
        }
        Ok(files)
    };
    let made: Vec<Result<Vec<_>>> = pairs.par_iter().map(indexes).collect();
    Ok(made.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// The forms of an index, each with its line in `Release`. No `.xz`: at fast levels it is not smaller than `.gz`, which
/// every apt without support for `.zst` reads.
fn forms(path: &str, text: &str) -> Result<Vec<(IndexFile, FileContent)>> {
    let zstd = compress(text.as_bytes(), Method::Zstd)?;
    let gzip = compress(text.as_bytes(), Method::Gzip)?;
    let forms = [(Method::Stored, text.as_bytes()), (Method::Gzip, &gzip), (Method::Zstd, &zstd)];
    let files = forms.map(|(method, bytes)| IndexFile {
        path: format!("{path}{}", ending(method)),
        size: bytes.len() as u64,
        sha256: hex(&Sha256::digest(bytes)),
        sha512: Some(hex(&Sha512::digest(bytes))),
    });
    let zstd = FileContent::from(zstd);
    let stored = FileContent { unpacked: Some(text.len() as u64), ..zstd.clone() };
    Ok(files.into_iter().zip([stored, gzip.into(), zstd]).collect())
}

pub(super) fn components(state: &ChannelState) -> BTreeSet<&str> {
    if state.records.is_empty() {
        BTreeSet::from(["main"])
    } else {
        state.records.values().map(|r| r.component.as_str()).collect()
    }
}

/// The architectures of a suite, `all` first. Packages of architecture `all` are in the index of every architecture,
/// as in Debian's archive, and in an index of their own; `No-Support-for-Architecture-all` lets apt skip the latter.
/// A suite with no other packages has only the index of `all`.
pub(super) fn archs(state: &ChannelState) -> Vec<&str> {
    let found: BTreeSet<&str> =
        state.records.values().map(|record| record.indexed.facts.arch()).collect();
    let others = found.iter().copied().filter(|arch| *arch != ALL);
    let all = (found.contains(ALL) || found.is_empty()).then_some(ALL);
    all.into_iter().chain(others).collect()
}

/// The packages in the indexes of a component and an architecture.
fn records<'a>(
    state: &'a ChannelState,
    component: &str,
    arch: &str,
) -> impl Iterator<Item = (&'a String, &'a Arc<PoolRecord>)> {
    state.records.iter().filter(move |(_, record)| {
        let own = record.indexed.facts.arch();
        record.component == component && (own == arch || own == ALL)
    })
}

/// The hardware packages of a component and an architecture, as DEP-11. apt requests no such file for `all`.
fn drivers_text(suite: &str, state: &ChannelState, component: &str, arch: &str) -> String {
    let settings = &state.settings;
    let origin = format!("{}-{suite}-{component}", settings.name.as_deref().unwrap_or("local"));
    let debs = records(state, component, arch).filter_map(|(_, record)| {
        let IndexMetadata::Deb(package) = &record.indexed.facts else { return None };
        Some(package)
    });
    dep11::drivers(&origin, settings.url.as_deref(), debs.filter(|_| arch != ALL))
}

fn packages_text(state: &ChannelState, component: &str, arch: &str) -> String {
    let mut stanzas: Vec<Stanza<'_>> = records(state, component, arch)
        .filter_map(|(path, record)| {
            let indexed = &record.indexed;
            let IndexMetadata::Deb(package) = &indexed.facts else { return None };
            let (sha256, sha512) = (&*indexed.sha256, indexed.sha512.as_deref());
            Some(Stanza { package, path, size: indexed.size, sha256, sha512 })
        })
        .collect();
    stanzas.sort_by(|a, b| {
        let (a, b) = (a.package, b.package);
        a.name
            .cmp(&b.name)
            .then_with(|| deb::compare_versions(&a.version, &b.version))
            .then_with(|| a.architecture.cmp(&b.architecture))
    });
    let mut text = String::with_capacity(stanzas.len() << 10);
    for stanza in stanzas {
        stanza.render(&mut text);
    }
    text
}

fn release_fields(suite: &str, state: &ChannelState) -> Result<Vec<(String, String)>> {
    let (settings, archs) = (&state.settings, archs(state));
    let mut fields: Vec<(&str, Option<String>)> = vec![
        ("Origin", settings.origin.clone()),
        ("Label", settings.label.clone()),
        ("Suite", Some(suite.to_owned())),
        ("Codename", Some(settings.codename(suite).to_owned())),
        ("Date", Some(format_date(state.date)?)),
    ];
    if let Some(days) = settings.valid_days.filter(|days| *days > 0) {
        let until = state.date.saturating_add(i64::from(days) * SECONDS_PER_DAY);
        fields.push(("Valid-Until", Some(format_date(until)?)));
    }
    fields.push(("Acquire-By-Hash", Some("yes".to_owned())));
    if archs.first() == Some(&ALL) && archs.len() > 1 {
        fields.push(("No-Support-for-Architecture-all", Some("Packages".to_owned())));
    }
    fields.push(("Architectures", Some(archs.join(" "))));
    let components: Vec<&str> = components(state).into_iter().collect();
    fields.push(("Components", Some(components.join(" "))));
    fields.push(("Description", settings.description.clone()));
    fields.push((KEYRING_KEYS, (!state.keys.is_empty()).then(|| state.keys.join(" "))));
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(set.collect())
}

/// The entries of `Release` or `repomd.xml` for the indexes of a channel. The state keeps them, so that a publication
/// of the same packages need not render the indexes again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListedIndexes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<IndexFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repomd: Vec<DataFile>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chunks: Chunks,
}

impl ListedIndexes {
    /// Path and size of every listed file of `channel`, under each of its names.
    pub fn files(&self, channel: &Channel) -> Vec<(String, u64)> {
        let mut files: Vec<(String, u64)> =
            self.repomd.iter().map(|file| (file.path.clone(), file.size)).collect();
        if let Channel::Apt(suite) = channel {
            files.extend(self.release.iter().flat_map(|file| {
                apt_index_paths(suite, file).into_iter().map(|name| (name, file.size))
            }));
        }
        files
    }

    /// Whether the lists of an rpm repository are compressed by `method`.
    pub fn is_compressed_by(&self, method: Method) -> bool {
        self.repomd.iter().all(|file| file.path.ends_with(&format!(".xml{}", ending(method))))
    }
}

/// Compresses `bytes` reproducibly.
pub(super) fn compress(bytes: &[u8], method: Method) -> Result<Vec<u8>> {
    let compression = match method {
        Method::Gzip => {
            let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), GZIP);
            encoder.write_all(bytes).map_err(not_compressed)?;
            return encoder.finish().map_err(not_compressed);
        }
        Method::Zstd => ZSTD,
        method => {
            return Err(Error::bug(format!("indexes are not compressed by {}", method.as_str())));
        }
    };
    let mut encoder = Encoder::new(Vec::new(), compression, &Workers::new(1), bytes.len() as u64)?;
    encoder.write_all(bytes).map_err(not_compressed)?;
    encoder.finish().map_err(not_compressed)
}

pub(super) fn not_compressed(error: io::Error) -> Error {
    Error::io_without_path("compress an index", error)
}

pub(super) fn ending(method: Method) -> &'static str {
    match method {
        Method::Gzip => ".gz",
        Method::Zstd => ".zst",
        // Others are not written.
        Method::Stored | Method::Xz | Method::Lzma => "",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn all_forms_of_an_index_have_its_text() {
        let text = "Package: a\n\nPackage: b\n\n";
        let made = forms("Packages", text).unwrap();
        for (file, content) in &made {
            let bytes = content.to_vec().unwrap();
            assert_eq!((file.size, content.size()), (bytes.len() as u64, bytes.len() as u64));
            assert_eq!(file.sha256, hex(&Sha256::digest(&bytes)));
            assert_eq!(file.sha512, Some(hex(&Sha512::digest(&bytes))));
        }
        let paths: Vec<&str> = made.iter().map(|(file, _)| file.path.as_str()).collect();
        assert_eq!(paths, ["Packages", "Packages.gz", "Packages.zst"]);
        let [stored, gzip, zstd] = [0, 1, 2].map(|form: usize| &made[form].1);
        assert_eq!(stored.to_vec().unwrap(), text.as_bytes());
        let mut unpacked = String::new();
        GzDecoder::new(&*gzip.to_vec().unwrap()).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
        assert_eq!(zstd.bytes, stored.bytes);
    }
}
