//! A wheel in its archive: the `dist-info` folder, the places of the members, and faults.
//!
//! ```text
//! x/…, x.libs/…                        installed in site-packages
//! x-1.0.data/{purelib,platlib}/…       there as well
//! x-1.0.data/{scripts,headers,data}/…  installed elsewhere
//! x-1.0.dist-info/METADATA, WHEEL, RECORD, …
//! ```
//!
//! Faults are what pip 26.3 or uv 0.13 refuse or install as something else. Neither compares RECORD with the
//! members; PyPI, `installer` and `wheel unpack` do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use rayon::prelude::*;

use super::{
    InfoFault, ListingFault, Metadata, Record, RecordHasher, Requirement, Version, WheelFile,
    WheelName, normalized,
};
use crate::zip::{ZipMember, ZipReader};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::hold::fault;

/// The suffix of the names of folders with the metadata of a wheel.
const DIST_INFO: &str = ".dist-info";

/// Longest METADATA or WHEEL in bytes. METADATA has the whole README of a project.
const TEXT_LIMIT: u64 = 16 << 20;

/// Longest RECORD in bytes: some hundred for each of a hundred thousand files.
const RECORD_LIMIT: u64 = 64 << 20;

/// Rows that RECORD may have beyond two for each member.
const ROWS_MORE: usize = 1024;

/// The schemes by which installers install files of a data folder.
const SCHEMES: [&str; 5] = ["purelib", "platlib", "headers", "scripts", "data"];

/// The mode bits for the kind of a file, and their values.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// Bytes of a member that are digested at a time.
const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub struct WheelArchive {
    pub zip: ZipReader,
    pub dist_info: String,
    pub metadata: Metadata,
    pub wheel_file: WheelFile,
    pub record: Record,
}

/// The place of a member when it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    DistInfo,
    /// A path in site-packages.
    Site(&'a str),
    /// A scheme and a path in its folder: `scripts/tool`.
    Other(&'a str),
}

/// The place of the member called `name` of a wheel with this `dist-info` folder.
pub fn place<'a>(name: &'a str, dist_info: &str) -> Place<'a> {
    let stem = dist_info.strip_suffix(DIST_INFO).unwrap_or(dist_info);
    let (top, rest) = name.split_once('/').unwrap_or((name, ""));
    if top == dist_info {
        return Place::DistInfo;
    }
    if top.strip_suffix(".data") != Some(stem) {
        return Place::Site(name);
    }
    match rest.split_once('/') {
        Some(("purelib" | "platlib", path)) => Place::Site(path),
        _ => Place::Other(rest),
    }
}

/// The mode that pip gives a member: 0755 if its mode is that of a regular file with any execute bit, otherwise
/// 0644. uv does not look at the type.
pub fn installed_mode(member: &ZipMember) -> u32 {
    let mode = member.mode.unwrap_or_default();
    if mode & KIND == REGULAR && mode & 0o111 != 0 { 0o755 } else { 0o644 }
}

impl WheelArchive {
    /// Reads the headers of `archive` and the files of its one `dist-info` folder.
    pub fn open(archive: Content) -> Result<Self> {
        let zip = ZipReader::open(archive)?;
        let dist_info = dist_info(&zip)?;
        let metadata = Metadata::parse(&read_text(&zip, &dist_info, "METADATA", TEXT_LIMIT)?)?;
        let wheel_file = WheelFile::parse(&read_text(&zip, &dist_info, "WHEEL", TEXT_LIMIT)?)?;
        let record = read_text(&zip, &dist_info, "RECORD", RECORD_LIMIT)?;
        let rows = record.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
        let members = zip.members().len();
        // The budget limits the number of members.
        if rows / 2 > members.saturating_mul(2) + ROWS_MORE {
            let message = format!("has some {rows} rows, and the wheel has {members} members");
            let error = Error::new(Kind::Limit, message).structure("RECORD");
            return Err(error.hint("build the wheel again"));
        }
        let record = Record::parse(&record).context(|| format!("reading {dist_info}/RECORD"))?;
        refuse_scripts(&zip, &dist_info)?;
        Ok(Self { zip, dist_info, metadata, wheel_file, record })
    }

    /// Refuses a wheel with the file name `name` that has a fault. Reads all members. Returns the members whose rows
    /// are stale, with the differences.
    pub fn check(&self, name: &WheelName) -> Result<BTreeMap<String, ListingFault>> {
        self.check_headers(name)?;
        let members = self.zip.members().par_iter();
        let checked: Vec<Result<_>> = members.map(|member| self.check_content(member)).collect();
        let stale = checked.into_iter().collect::<Result<Vec<_>>>()?;
        self.check_places()?;
        match self.rows_without_member().next() {
            Some(row) => Err(refusal(ListingFault::WithoutMember.to_string()).structure(row)),
            None => Ok(stale.into_iter().flatten().collect()),
        }
    }

    /// Refuses a wheel whose METADATA or folder do not fit the file name.
    pub fn check_headers(&self, name: &WheelName) -> Result<()> {
        match self.header_faults(name).first() {
            Some(fault) => Err(refusal(fault.to_string())),
            None => Ok(()),
        }
    }

    /// Refuses two members that cannot be installed next to each other.
    pub fn check_places(&self) -> Result<()> {
        let Some([file, other]) = self.conflicts().pop() else { return Ok(()) };
        let message = format!("is installed at or above the path of {other}");
        Err(refusal(message).structure(file))
    }

    /// The faults of METADATA and of the folder's name, compared with the file name.
    pub fn header_faults(&self, name: &WheelName) -> Vec<InfoFault> {
        let (own_name, own_version) = (self.metadata.name(), self.metadata.version());
        let mut faults = Vec::new();
        if name.parsed_version().is_none() {
            let version = name.version.clone();
            faults.push(InfoFault::NoVersion { file: "file name", version });
        } else if own_version.parse::<Version>().is_err() {
            let version = own_version.to_owned();
            faults.push(InfoFault::NoVersion { file: "METADATA", version });
        }
        let mut differs = |field, named: &str, stated: &str| {
            let (file, named, stated) = ("METADATA", named.to_owned(), stated.to_owned());
            faults.push(InfoFault::Name { field, file, named, stated });
        };
        if normalized(own_name) != normalized(&name.distribution) {
            differs("name", &name.distribution, own_name);
        }
        if !is_version(own_version, name) {
            differs("version", &name.version, own_version);
        }
        let stem = self.dist_info.strip_suffix(DIST_INFO).unwrap_or_default();
        let is_folder = stem.rsplit_once('-').is_some_and(|(distribution, version)| {
            normalized(distribution) == normalized(&name.distribution) && is_version(version, name)
        });
        if !is_folder {
            faults.push(InfoFault::Folder { folder: self.dist_info.clone() });
        }
        let parsed = self.metadata.all("Requires-Dist").map(Requirement::parse);
        let reasons = parsed.filter_map(Result::err).map(|error| error.to_string());
        faults.extend(reasons.map(|reason| InfoFault::Requirement { reason }));
        faults
    }

    /// Refuses a member that installers refuse or install differently. The reader of the archive checked its name.
    pub fn check_member(&self, member: &ZipMember) -> Result<()> {
        self.refuse_data(&member.name)?;
        match member.mode.unwrap_or_default() & KIND {
            _ if member.name.ends_with('/') => Ok(()),
            0 | REGULAR => Ok(()),
            LINK => {
                let hint = "pip and uv write its text as a file: put the file itself there";
                Err(Error::unsupported("is a symbolic link").hint(hint))
            }
            _ => Err(Error::unsupported("is not a regular file")),
        }
    }

    /// Refuses a member in a folder at the top that ends in `.data` and is not the wheel's own, or under an
    /// unknown scheme. pip takes each such folder for one of data.
    fn refuse_data(&self, name: &str) -> Result<()> {
        let (top, rest) = name.split_once('/').unwrap_or((name, ""));
        let Some(stem) = top.strip_suffix(".data") else { return Ok(()) };
        let is_known = match rest.split_once('/') {
            // uv refuses folders of scripts.
            Some(("scripts", path)) => !path.contains('/'),
            Some((scheme, _)) => SCHEMES.contains(&scheme),
            None => rest.is_empty() && name.ends_with('/'),
        };
        if is_known && self.dist_info.strip_suffix(DIST_INFO) == Some(stem) {
            return Ok(());
        }
        let (folder, _) = name.rsplit_once('/').unwrap_or((name, ""));
        let message = format!("lies in {folder}, by which nothing is installed");
        let hint = "pip takes each folder `….data` at the top for the one of the wheel: rename it";
        Err(Error::malformed(message).hint(hint))
    }

    /// A hasher of a member, by the hash function that its row has.
    pub fn hasher(&self, name: &str) -> Option<RecordHasher> {
        let digest = self.record.rows.get(name)?.digest.as_ref()?;
        Some(digest.hash.hasher())
    }

    /// The difference between RECORD and a member, whose bytes have `digest` by its [`hasher`](Self::hasher).
    pub fn listing_fault(&self, member: &ZipMember, digest: Option<&[u8]>) -> Option<ListingFault> {
        let own = member.name.strip_prefix(self.dist_info.as_str());
        let row = self.record.rows.get(&member.name);
        let (row, size) = match (own, row) {
            (Some("/RECORD"), None) => return Some(ListingFault::WithoutItself),
            (Some("/RECORD"), Some(row)) => {
                let has_facts = row.digest.is_some() || row.size.is_some();
                return has_facts.then(|| ListingFault::Stale(Box::new(ListingFault::OfItself)));
            }
            (Some("/RECORD.jws" | "/RECORD.p7s"), _) => return Some(ListingFault::Signature),
            (_, None) => return Some(ListingFault::Unlisted),
            (_, Some(row)) => (row, member.size),
        };
        let fault = match (row.size.filter(|stated| *stated != size), &row.digest) {
            (Some(stated), _) => ListingFault::Size { size, stated },
            (None, None) => return Some(ListingFault::WithoutDigest),
            (None, Some(stated)) => {
                digest.filter(|own| *own != stated.bytes)?;
                ListingFault::Digest { hash: stated.hash.to_string() }
            }
        };
        let is_edited = matches!(own, Some("/METADATA" | "/WHEEL"));
        Some(if is_edited { ListingFault::Stale(Box::new(fault)) } else { fault })
    }

    /// The paths of RECORD that no member has.
    pub fn rows_without_member(&self) -> impl Iterator<Item = &str> {
        let members = self.zip.members().iter().map(|member| member.name.as_str());
        let there: BTreeSet<&str> = members.collect();
        let rows = self.record.rows.keys().map(String::as_str);
        rows.filter(move |path| !there.contains(path))
    }

    /// Files that cannot be installed because another member is at or below their path, with the name of that one.
    pub fn conflicts(&self) -> Vec<[&str; 2]> {
        let mut found = Vec::new();
        // The path in site-packages (true) or elsewhere.
        let mut paths: BTreeMap<(bool, &str), &str> = BTreeMap::new();
        for name in self.zip.members().iter().map(|member| member.name.as_str()) {
            let key = match place(name, &self.dist_info) {
                Place::DistInfo => (true, name),
                Place::Site(path) => (true, path),
                Place::Other(path) => (false, path),
            };
            let other = paths.insert(key, name).filter(|_| !name.ends_with('/'));
            found.extend(other.map(|other| [name, other]));
        }
        for ((place, path), file) in paths.iter().filter(|(_, name)| !name.ends_with('/')) {
            let folder = format!("{path}/");
            let next = paths.range((*place, folder.as_str())..).next();
            if let Some(((there, path), other)) = next
                && there == place
                && path.starts_with(&folder)
            {
                found.push([*file, *other]);
            }
        }
        found
    }

    /// Reads a member, and compares it with its headers and its row. Returns its name and the difference if only its
    /// row is stale.
    fn check_content(&self, member: &ZipMember) -> Result<Option<(String, ListingFault)>> {
        let name = member.name.as_str();
        self.check_member(member).map_err(|error| error.hint(HINT).structure(name))?;
        if name.ends_with('/') {
            return Ok(None);
        }
        let (mut reader, mut hasher) = (self.zip.reader(member)?, self.hasher(name));
        let mut chunk = vec![0; CHUNK];
        loop {
            let len = reader.read(&mut chunk).map_err(fault)?;
            let bytes = chunk.get(..len).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            if let Some(hasher) = &mut hasher {
                hasher.update(bytes);
            }
        }
        let digest = hasher.map(|hasher| hasher.finalize().into_vec());
        match self.listing_fault(member, digest.as_deref()) {
            Some(fault @ ListingFault::Stale(_)) => Ok(Some((name.to_owned(), fault))),
            Some(fault) if !fault.is_of_split() => Err(refusal(fault.to_string()).structure(name)),
            _ => Ok(None),
        }
    }
}

const HINT: &str = "installers refuse such a wheel, or install something else: build or copy it \
                    again, or leave it out";

fn refusal(message: String) -> Error {
    Error::malformed(message).hint(HINT)
}

fn is_version(version: &str, name: &WheelName) -> bool {
    let parsed = WheelName { version: version.replace('-', "_"), ..name.clone() }.parsed_version();
    version == name.version || parsed.is_some() && parsed == name.parsed_version()
}

/// The one folder at the top with such a name.
fn dist_info(zip: &ZipReader) -> Result<String> {
    let tops = zip.members().iter().filter_map(|member| member.name.split('/').next());
    let folders: BTreeSet<&str> = tops.filter(|top| top.ends_with(DIST_INFO)).collect();
    let mut found = folders.into_iter();
    match (found.next(), found.next()) {
        (Some(folder), None) => Ok(folder.to_owned()),
        (None, _) => {
            let error = Error::malformed("has no .dist-info folder, so it is not a wheel");
            Err(error.wrong_file_kind().hint("build the wheel again"))
        }
        (Some(one), Some(other)) => {
            let message = format!("has two .dist-info folders, {one} and {other}");
            Err(Error::malformed(message).hint("a wheel holds one distribution"))
        }
    }
}

fn read_text(zip: &ZipReader, folder: &str, file: &str, limit: u64) -> Result<Vec<u8>> {
    let path = format!("{folder}/{file}");
    let member = zip.members().iter().find(|member| member.name == path).ok_or_else(|| {
        let error =
            Error::malformed(format!("has no {path}, so it is not a wheel")).wrong_file_kind();
        error.hint("build the wheel again: METADATA, WHEEL and RECORD make an archive one")
    })?;
    zip.read(member, limit, file)
}

/// Refuses scripts of `entry_points.txt` that pip or uv refuses, or older ones write outside of their folder.
fn refuse_scripts(zip: &ZipReader, folder: &str) -> Result<()> {
    let path = format!("{folder}/entry_points.txt");
    let Some(member) = zip.members().iter().find(|member| member.name == path) else {
        return Ok(());
    };
    let bytes = zip.read(member, TEXT_LIMIT, "entry_points.txt")?;
    let text = String::from_utf8(bytes)
        .map_err(|_| refusal("is not UTF-8".to_owned()).structure(path.clone()))?;
    let mut is_scripts = false;
    for line in text.lines().map(str::trim) {
        let is_script = line.split_once('=').is_some_and(|(name, object)| {
            let object = object.split('[').next().unwrap_or_default();
            let is_object = |c: char| c.is_alphanumeric() || "_.: ".contains(c);
            !name.contains('/') && object.contains(':') && object.chars().all(is_object)
        });
        if line.starts_with('[') {
            is_scripts = matches!(line, "[console_scripts]" | "[gui_scripts]");
        } else if is_scripts && !is_script && !line.is_empty() && !line.starts_with(['#', ';']) {
            let message = format!("has the script `{}`", line.escape_debug());
            return Err(refusal(message).structure(path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_belong_where_installers_put_them() {
        for (name, expected) in [
            ("x/_C.so", Place::Site("x/_C.so")),
            ("x-1.0.data/platlib/x/_C.so", Place::Site("x/_C.so")),
            ("x-1.0.data/purelib/y.py", Place::Site("y.py")),
            ("x-1.0.data/scripts/tool", Place::Other("scripts/tool")),
            ("other.data/platlib/x", Place::Site("other.data/platlib/x")),
            ("x-1.0.dist-info/METADATA", Place::DistInfo),
        ] {
            assert_eq!(place(name, "x-1.0.dist-info"), expected, "{name}");
        }
    }
}
