//! Shards at addresses: packed artifacts in object stores and on web servers.
//!
//! The address of a shard, or of a folder of shards, is listed; a list of addresses is a shard. Objects whose names are
//! neither those of packed artifacts nor of their checksums are skipped, like other files next to artifacts.

use std::path::Path;
use std::sync::Arc;

use rockpack_core::content::{Content, StampedFile, exists, hex};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::{ArtifactName, TreePath};
use rockpack_files::remove_file;
use rockpack_remote::{Address, Listing, Object, addresses, is_complete_copy};
use rockpack_report::Findings;

use super::ScanOptions;
use super::packed::{ArchiveSource, CHECKSUM_ENDING, Checksum, parse_name};
use super::roots::{FoundShard, FoundTree, Roots, named_shard, no_input, same_name};
use crate::input::tree::{InputPath, TreeForm, parse_tarball, tarball_method};

#[derive(Debug, Clone)]
pub struct RemoteArtifact {
    pub file_name: String,
    pub object: Arc<Object>,
    pub checksum: Option<Arc<Object>>,
}

impl RemoteArtifact {
    /// Reads its checksum file, and the SHA-256 in it.
    pub fn read_checksum(&self) -> Result<Option<(Vec<u8>, [u8; 32])>> {
        let Some(checksum) = &self.checksum else { return Ok(None) };
        let (text, checksum) = Checksum::of_object(checksum, &self.file_name)?;
        Ok(Some((text, checksum.digest)))
    }

    /// The name of the artifact; `None` if the object is not one.
    pub fn name(&self) -> Option<ArtifactName> {
        parse_name(&self.file_name)?.0.parse().ok()
    }
}

/// The objects at addresses.
#[derive(Debug)]
pub struct FoundObjects {
    /// The shards with their artifacts, both in name order.
    pub shards: Vec<(String, Vec<RemoteArtifact>)>,
    /// Tarballs that addresses name.
    pub tarballs: Vec<Arc<Object>>,
    pub findings: Findings,
}

/// Finds the artifacts at the addresses in `inputs`, without reading them.
pub fn find_objects(inputs: &[InputPath], options: &ScanOptions) -> Result<FoundObjects> {
    let roots = Roots::find(inputs, options);
    roots.findings.explain(roots.faults.finish())?;
    let tarballs = roots.trees.into_iter().filter_map(|tree| match tree.form {
        TreeForm::Fetched(_, object) => Some(object),
        _ => None,
    });
    let shards = roots.shards.into_iter().map(|(name, shard)| (name, shard.objects));
    Ok(FoundObjects {
        shards: shards.collect(),
        tarballs: tarballs.collect(),
        findings: roots.findings,
    })
}

/// Whether `path` is an address as messages write it.
pub fn is_address(path: &Path) -> bool {
    path.to_str().is_some_and(Address::is_one)
}

/// The addresses in the file at `path`, if it is a list of them.
pub(super) fn address_list(path: &Path) -> Result<Option<Vec<Address>>> {
    if path.extension().is_none_or(|ending| ending != "txt") {
        return Ok(None);
    }
    let content = Content::open(path, &Budget::unlimited())?;
    let bytes = content.read_vec(0..content.len(), LIST_LIMIT, "list of addresses")?;
    let listed = std::str::from_utf8(&bytes).map_or(Ok(None), addresses);
    listed.map_err(|error| error.file(path))
}

const LIST_LIMIT: u64 = 64 << 20;

impl Roots {
    pub(super) fn add_address(&mut self, input: &InputPath, address: &Address) {
        let name = address.name();
        let Some((stem, _)) = parse_tarball(&name) else {
            if let Some(listing) = self.faults.keep(Listing::at(&self.remote, address)) {
                self.listing(input, address, listing);
            }
            return;
        };
        let method =
            self.faults.keep(tarball_method(&name).map_err(|error| error.file(&input.path)));
        let listing = Listing::of(&self.remote, std::slice::from_ref(address));
        let listing = self.faults.keep(listing);
        if let (Some(Some(method)), Some(listing)) = (method, listing) {
            for object in listing.objects.values() {
                let form = TreeForm::Fetched(method, Arc::clone(object));
                self.trees.push(FoundTree { name: stem.to_owned(), input: input.clone(), form });
            }
            self.inputs.add_other(listing);
        }
    }

    pub(super) fn add_listed(&mut self, input: &InputPath, listed: &[Address]) {
        let name = input.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(listing) = self.faults.keep(Listing::of(&self.remote, listed)) {
            self.objects(name, &input.path, &listing);
            self.inputs.add_other(listing);
        }
    }

    fn listing(&mut self, input: &InputPath, address: &Address, listing: Listing) {
        if input.name.is_some() {
            self.faults.add(named_shard(&input.path));
        } else if has_artifacts(&listing) {
            self.objects(address.shard(), &input.path, &listing);
        } else {
            let before = self.shards.len();
            for (name, folder) in &listing.folders {
                let inside = Listing::at(&self.remote, folder);
                let Some(inside) = self.faults.keep(inside) else { continue };
                if has_artifacts(&inside) {
                    self.objects(name.clone(), Path::new(&folder.to_string()), &inside);
                } else {
                    self.report_skipped(None, name);
                }
                self.inputs.add_other(inside);
            }
            if self.shards.len() == before {
                self.faults.add(no_input(&input.path));
            }
        }
        self.inputs.add_other(listing);
    }

    fn objects(&mut self, name: String, place: &Path, listing: &Listing) {
        if let Err(error) = TreePath::new(&*name) {
            return self.faults.add(error.file(place));
        }
        if let Some(FoundShard { folder: other, .. }) = self.shards.get(&name) {
            return self.faults.add(same_name(&name, other).file(place));
        }
        let is_archive = |name: &&String| parse_name(name).is_some();
        let archives: Vec<&str> =
            listing.objects.keys().filter(is_archive).map(String::as_str).collect();
        for (entry, object) in &listing.objects {
            let room = self.inputs.budget().charge_entry(entry.len());
            if self.faults.keep(room.map_err(|error| error.file(place))).is_none() {
                return;
            }
            let of = entry.strip_suffix(CHECKSUM_ENDING).unwrap_or(entry);
            if parse_name(of).is_none() || !listing.objects.contains_key(of) {
                self.report_non_artifact(&name, entry, object.path(), &archives);
            }
        }
        let artifacts = archives.iter().filter_map(|archive| {
            let object = Arc::clone(listing.objects.get(*archive)?);
            let checksum = listing.objects.get(&format!("{archive}{CHECKSUM_ENDING}")).cloned();
            Some(RemoteArtifact { file_name: (*archive).to_owned(), object, checksum })
        });
        let objects: Vec<RemoteArtifact> = artifacts.collect();
        for pair in objects.windows(2) {
            let [one, other] =
                [&pair[0], &pair[1]].map(|it| parse_name(&it.file_name).map(|(stem, _)| stem));
            if one == other {
                let path = pair[1].object.path();
                let message = format!(
                    "is the same artifact as {}, packed again",
                    pair[0].object.path().display()
                );
                let hint =
                    "give a list of the intended addresses: a .txt file with one address per line";
                self.faults.add(Error::new(Kind::Conflict, message).file(path).hint(hint));
            }
        }
        let folder = place.to_path_buf();
        self.shards.insert(name, FoundShard { folder, artifacts: Vec::new(), objects });
    }
}

fn has_artifacts(listing: &Listing) -> bool {
    let mut stems = listing.objects.keys().filter_map(|name| parse_name(name));
    stems.any(|(stem, _)| stem.parse::<ArtifactName>().is_ok())
}

/// The archive in `object`, from the folder `cache` by the SHA-256 in its checksum file; fetches it there first if
/// needed. `None` without a cache or checksum file.
pub(super) fn cached(
    object: &Arc<Object>,
    checksum: Option<&Checksum>,
    cache: Option<&Path>,
    budget: &Budget,
) -> Result<Option<ArchiveSource>> {
    let Some((checksum, cache)) = checksum.zip(cache) else { return Ok(None) };
    let digest = checksum.digest;
    let name = hex(&digest);
    let path = cache.join(&name[..2]).join(&name[2..]);
    if !is_complete_copy(&path, &digest)? {
        if exists(&path)? {
            remove_file(&path)?;
        }
        object.copy_to(&path, Some(digest), budget, |_| ())?;
    }
    Ok(Some(ArchiveSource::File(Arc::new(StampedFile::open(&path)?))))
}
