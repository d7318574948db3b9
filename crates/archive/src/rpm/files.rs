//! The files in the header of an `.rpm`.

use std::collections::{HashMap, HashSet};

use rpm::{FileFlags, Header, IndexTag};

use super::front::{RpmFront, number};
use super::{MODE_DIRECTORY, MODE_FILE, MODE_LINK, SHA256_ALGORITHM, fault};
use crate::payload::{Digest, PayloadEntry, PayloadEntryKind, ReadEntry, SpecialKind, Treatment};
use rockpack_core::content::unhex;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::TreePath;

/// Longest path of a file with several names, which is copied for each. Any number of such paths is accepted.
const LINKED_PATH_MAX: usize = 900;

/// The entries of a header, in its order. Refused: source packages, devices, ghosts, capabilities, digests
/// other than SHA-256, a path twice, names of one file that differ in more.
pub(super) fn entries(header: &Header<IndexTag>) -> Result<Vec<ReadEntry>> {
    if !header.entry_is_present(IndexTag::RPMTAG_SOURCERPM) {
        return Err(Error::unsupported("is a source package"));
    }
    if !header.entry_is_present(IndexTag::RPMTAG_BASENAMES) {
        return Ok(Vec::new());
    }
    let algorithm = number(header, IndexTag::RPMTAG_FILEDIGESTALGO as u32)?;
    if algorithm != Some(SHA256_ALGORITHM.into()) {
        return Err(Error::unsupported(format!(
            "file digests of algorithm {algorithm:?} are not supported"
        )));
    }
    let columns = Columns::read(header)?;
    let mut entries =
        (0..columns.bases.len()).map(|index| columns.entry(index)).collect::<Result<Vec<_>>>()?;
    // rpm finds files by their paths, and rpmbuild never repeats one.
    let mut seen = HashSet::new();
    if let Some(read) = entries.iter().find(|read| !seen.insert(&read.entry.path)) {
        return Err(fault(&format!("lists /{} twice", read.entry.path)));
    }
    columns.link(&mut entries)?;
    Ok(entries)
}

/// The absolute paths that both packages have and at which rpm sees a conflict: another mode (except for
/// links), owner, size, digest or link text. A ghost conflicts with nothing.
pub fn differing_paths(one: &RpmFront, other: &RpmFront) -> Result<Vec<String>> {
    let [one, other] = [one, other].map(|front| Columns::read(&front.metadata.header));
    let (one, other) = (one?, other?);
    let places: HashMap<String, usize> =
        (0..other.bases.len()).filter_map(|at| Some((other.whole_path(at)?, at))).collect();
    let common = (0..one.bases.len()).filter_map(|at| {
        let path = one.whole_path(at)?;
        let with = *places.get(&path)?;
        (one.identity(at)? != other.identity(with)?).then_some(path)
    });
    Ok(common.collect())
}

struct Columns<'a> {
    bases: Vec<&'a str>,
    directories: Vec<&'a str>,
    indexes: Vec<u32>,
    sizes: Vec<u64>,
    modes: Vec<u16>,
    mtimes: Vec<u32>,
    flags: Vec<u32>,
    links: Vec<&'a str>,
    sums: Vec<&'a str>,
    users: Vec<&'a str>,
    groups: Vec<&'a str>,
    /// File capabilities; empty if no file has any.
    capabilities: Vec<&'a str>,
    /// Device numbers of the files on the build machine; zeros if one of the tags is missing, as for rpm.
    devices: Vec<u32>,
    inodes: Vec<u32>,
}

impl<'a> Columns<'a> {
    fn read(header: &'a Header<IndexTag>) -> Result<Self> {
        let long = IndexTag::RPMTAG_LONGFILESIZES;
        let sizes = if header.entry_is_present(long) {
            header.get_entry_data_as_u64_array(long).map_err(bad_tags)?
        } else {
            let sizes = number_array(header, IndexTag::RPMTAG_FILESIZES)?;
            sizes.into_iter().map(u64::from).collect()
        };
        let bases = text_array(header, IndexTag::RPMTAG_BASENAMES)?;
        let count = bases.len();
        let capabilities = if header.entry_is_present(IndexTag::RPMTAG_FILECAPS) {
            text_array(header, IndexTag::RPMTAG_FILECAPS)?
        } else {
            vec![""; count]
        };
        let [devices, inodes] = [IndexTag::RPMTAG_FILEDEVICES, IndexTag::RPMTAG_FILEINODES];
        let there = [devices, inodes].into_iter().all(|tag| header.entry_is_present(tag));
        let [devices, inodes] = if there {
            [number_array(header, devices)?, number_array(header, inodes)?]
        } else {
            [vec![0; count], vec![0; count]]
        };
        let modes = header.get_entry_data_as_u16_array(IndexTag::RPMTAG_FILEMODES);
        let texts = |tag| text_array(header, tag).and_then(|texts| of_count(texts, count));
        let numbers = |tag| number_array(header, tag).and_then(|them| of_count(them, count));
        Ok(Self {
            bases,
            devices: of_count(devices, count)?,
            inodes: of_count(inodes, count)?,
            capabilities: of_count(capabilities, count)?,
            directories: text_array(header, IndexTag::RPMTAG_DIRNAMES)?,
            indexes: numbers(IndexTag::RPMTAG_DIRINDEXES)?,
            sizes: of_count(sizes, count)?,
            modes: of_count(modes.map_err(bad_tags)?, count)?,
            mtimes: numbers(IndexTag::RPMTAG_FILEMTIMES)?,
            flags: numbers(IndexTag::RPMTAG_FILEFLAGS)?,
            links: texts(IndexTag::RPMTAG_FILELINKTOS)?,
            sums: texts(IndexTag::RPMTAG_FILEDIGESTS)?,
            users: texts(IndexTag::RPMTAG_FILEUSERNAME)?,
            groups: texts(IndexTag::RPMTAG_FILEGROUPNAME)?,
        })
    }

    /// The entry at `index`, which must be below the number of base names.
    fn entry(&self, index: usize) -> Result<ReadEntry> {
        let path = self.path(index)?;
        let mode = u32::from(self.modes[index]);
        let kind = match mode & 0o170_000 {
            MODE_DIRECTORY => PayloadEntryKind::Directory,
            MODE_FILE => PayloadEntryKind::File,
            MODE_LINK => PayloadEntryKind::Link { target: self.links[index].to_owned() },
            _ => {
                let message = format!("/{path} of mode {mode:o} is not supported");
                return Err(Error::unsupported(message).structure("rpm header"));
            }
        };
        let flags = FileFlags::from_bits_retain(self.flags[index]);
        if flags.contains(FileFlags::GHOST) {
            return Err(Error::unsupported(format!("/{path} is a ghost")));
        }
        // Capabilities are refused as in artifacts, which might come from such a package.
        if !self.capabilities[index].is_empty() {
            let message = format!("/{path} has file capabilities, which are not supported");
            return Err(Error::unsupported(message).structure("rpm header"));
        }
        let sum = self.sums[index];
        let declared = match (&kind, unhex::<32>(sum)) {
            (PayloadEntryKind::File, Some(sum)) => Some(Digest::Sha256(sum)),
            (PayloadEntryKind::File, None) => {
                return Err(fault(&format!("/{path} has no SHA-256")));
            }
            (_, _) if sum.is_empty() => None,
            (_, _) => return Err(fault(&format!("/{path} is not a file but has a digest"))),
        };
        let stored = self.sizes[index];
        let size = if kind == PayloadEntryKind::File { stored } else { 0 };
        let (path, mode, treatment) = (path.into(), mode & 0o7777, treatment(flags));
        let entry = PayloadEntry { path, kind, mode, size, treatment };
        if entry.stored_size() != stored && entry.kind != PayloadEntryKind::Directory {
            return Err(fault(&format!("link /{} has another size", entry.path)));
        }
        let (user, group) = (self.users[index].to_owned(), self.groups[index].to_owned());
        Ok(ReadEntry { entry, user, group, mtime: self.mtimes[index].into(), declared })
    }

    /// Makes files with the same device and inode hard links to the last of them: rpm installs them as one
    /// file, with the content of the last, whatever the payload says. An inode of zero does not count.
    fn link(&self, entries: &mut [ReadEntry]) -> Result<()> {
        let mut last = HashMap::new();
        for at in (0..entries.len()).rev() {
            let file = (self.devices[at], self.inodes[at]);
            if file.1 == 0 || !entries[at].entry.is_file() {
                continue;
            }
            let kept = *last.entry(file).or_insert(at);
            if kept == at {
                continue;
            }
            let target = entries[kept].entry.path.to_string();
            let read = &mut entries[at];
            if self.identity(at) != self.identity(kept) || target.len() > LINKED_PATH_MAX {
                let path = &read.entry.path;
                let message = format!("/{path} is a hard link to /{target}, by their inodes");
                let hint = "rpm would install both as one file: build it without hard links";
                return Err(Error::unsupported(message).structure("rpm header").hint(hint));
            }
            read.entry.kind = PayloadEntryKind::Special(SpecialKind::HardLink { target });
            (read.entry.size, read.declared) = (0, None);
        }
        Ok(())
    }

    /// The path of a file as written in the header; `None` if its directory is missing.
    fn whole_path(&self, at: usize) -> Option<String> {
        let directory =
            usize::try_from(self.indexes[at]).ok().and_then(|at| self.directories.get(at))?;
        Some(format!("{directory}{}", self.bases[at]))
    }

    /// The properties that rpm compares of two files at one path; `None` for a ghost.
    fn identity(&self, at: usize) -> Option<impl PartialEq + use<'a>> {
        let flags = FileFlags::from_bits_retain(self.flags[at]);
        let is_link = u32::from(self.modes[at]) & 0o170_000 == MODE_LINK;
        let mode = if is_link { MODE_LINK } else { self.modes[at].into() };
        let owners = (self.users[at], self.groups[at]);
        let content = (self.sizes[at], self.sums[at], self.links[at]);
        (!flags.contains(FileFlags::GHOST)).then_some((mode, owners, content))
    }

    fn path(&self, index: usize) -> Result<String> {
        let directory = usize::try_from(self.indexes[index])
            .ok()
            .and_then(|at| self.directories.get(at))
            .and_then(|text| text.strip_prefix('/'))
            .filter(|text| text.is_empty() || text.ends_with('/'))
            .ok_or_else(|| fault("has a file in no directory"))?;
        let path = format!("{directory}{}", self.bases[index]);
        if path.is_empty() || TreePath::new(path.as_str()).is_ok() {
            Ok(path)
        } else {
            Err(fault(&format!("has the path `/{}`", path.escape_debug())))
        }
    }
}

fn text_array(header: &Header<IndexTag>, tag: IndexTag) -> Result<Vec<&str>> {
    header.get_entry_data_as_string_array(tag).map_err(bad_tags)
}

fn number_array(header: &Header<IndexTag>, tag: IndexTag) -> Result<Vec<u32>> {
    header.get_entry_data_as_u32_array(tag).map_err(bad_tags)
}

/// The values of a tag, which has to have one for each of `count` files.
fn of_count<T>(values: Vec<T>, count: usize) -> Result<Vec<T>> {
    let has_count = values.len() == count;
    has_count.then_some(values).ok_or_else(|| fault("has file tags of different lengths"))
}

fn bad_tags(error: rpm::Error) -> Error {
    fault("has bad file tags").cause(error)
}

fn treatment(flags: FileFlags) -> Treatment {
    match flags {
        _ if flags.contains(FileFlags::CONFIG) => Treatment::Config,
        _ if flags.contains(FileFlags::DOC) => Treatment::Doc,
        _ if flags.contains(FileFlags::LICENSE) => Treatment::License,
        _ => Treatment::Plain,
    }
}

const PATH_MAX: usize = 4096;

/// Bytes of joined paths allowed per byte of the header. rpmbuild writes some 58 bytes for a link or folder,
/// and 150 for a file with its digest, so any number of paths of 900 bytes is accepted.
const PATHS_PER_BYTE: u64 = 16;

/// Refuses paths that are too long, or take far more bytes than the header of `len` bytes. It lists for each file a
/// base name and the number of a directory. Any number of files can share one directory, so the joined paths may take
/// far more bytes than the header. Code that joins them may rely on these checks.
pub(super) fn check_paths(header: &Header<IndexTag>, len: u64) -> Result<()> {
    if !header.entry_is_present(IndexTag::RPMTAG_BASENAMES) {
        return Ok(());
    }
    let bases = text_array(header, IndexTag::RPMTAG_BASENAMES)?;
    let directories = text_array(header, IndexTag::RPMTAG_DIRNAMES)?;
    let indexes = number_array(header, IndexTag::RPMTAG_DIRINDEXES)?;
    let mut sum = 0;
    for (base, index) in bases.iter().zip(indexes) {
        let directory = usize::try_from(index).ok().and_then(|index| directories.get(index));
        let path = directory.map_or(0, |directory| directory.len()) + base.len();
        if path > PATH_MAX {
            let message = format!("lists a path of {path} bytes, and the longest has {PATH_MAX}");
            return Err(limit(message));
        }
        sum += path as u64;
    }
    let most = len * PATHS_PER_BYTE;
    if sum > most {
        Err(limit(format!(
            "of {len} bytes lists paths of {sum}, more than {PATHS_PER_BYTE} for each byte"
        )))
    } else {
        Ok(())
    }
}

fn limit(message: String) -> Error {
    let hint = "no real package has such paths: get it from its builder";
    Error::new(Kind::Limit, message).structure("rpm header").hint(hint)
}

#[cfg(test)]
mod tests {
    use super::super::header::repeated_text;
    use super::*;
    use rpm::{HeaderEntry, IndexData};

    /// A header with empty files called `names`.
    fn header(names: [&str; 2]) -> Header<IndexTag> {
        built(names, &[])
    }

    /// A header with empty files called `names`, and more tags.
    fn built(names: [&str; 2], more: &[(IndexTag, [u32; 2])]) -> Header<IndexTag> {
        use IndexTag as Tag;
        let count = names.len();
        let tags = [
            (Tag::RPMTAG_SOURCERPM, IndexData::StringTag("x.src.rpm".to_owned())),
            (Tag::RPMTAG_FILEDIGESTALGO, IndexData::Int32(vec![SHA256_ALGORITHM])),
            (Tag::RPMTAG_BASENAMES, IndexData::StringArray(names.map(str::to_owned).to_vec())),
            (Tag::RPMTAG_DIRNAMES, IndexData::StringArray(vec!["/opt/".to_owned()])),
            (Tag::RPMTAG_DIRINDEXES, IndexData::Int32(vec![0; count])),
            (Tag::RPMTAG_FILESIZES, IndexData::Int32(vec![0; count])),
            (Tag::RPMTAG_FILEMODES, IndexData::Int16(vec![0o100_644; count])),
            (Tag::RPMTAG_FILEMTIMES, IndexData::Int32(vec![0; count])),
            (Tag::RPMTAG_FILEFLAGS, IndexData::Int32(vec![0; count])),
            (Tag::RPMTAG_FILELINKTOS, repeated_text("", count)),
            (Tag::RPMTAG_FILEDIGESTS, repeated_text(&"0".repeat(64), count)),
            (Tag::RPMTAG_FILEUSERNAME, repeated_text("root", count)),
            (Tag::RPMTAG_FILEGROUPNAME, repeated_text("root", count)),
        ];
        let more: Vec<_> =
            more.iter().map(|(tag, data)| (*tag, IndexData::Int32(data.to_vec()))).collect();
        let kept = tags.into_iter().filter(|(tag, _)| more.iter().all(|(other, _)| other != tag));
        let tags: Vec<_> = kept.chain(more.clone()).collect();
        let tags = tags.into_iter().map(|(tag, data)| HeaderEntry::new(tag.into(), data));
        Header::from_entries(tags.collect::<Vec<_>>(), Tag::RPMTAG_HEADERIMMUTABLE)
    }

    #[test]
    fn a_path_is_listed_once() {
        assert_eq!(entries(&header(["a", "b"])).unwrap().len(), 2);
        let error = entries(&header(["a", "a"])).unwrap_err();
        assert!(error.to_string().contains("lists /opt/a twice"), "{error}");
    }

    #[test]
    fn files_of_one_inode_are_hard_links_to_the_last() {
        let (devices, inodes) = (IndexTag::RPMTAG_FILEDEVICES, IndexTag::RPMTAG_FILEINODES);
        let same = [(devices, [1, 1]), (inodes, [7, 7])];
        let linked = entries_with(&same).unwrap();
        let target = "opt/b".to_owned();
        let link = PayloadEntryKind::Special(SpecialKind::HardLink { target });
        assert_eq!((&linked[0].entry.kind, linked[0].declared), (&link, None));
        assert!(linked[1].entry.is_file());
        for tag in [IndexTag::RPMTAG_FILESIZES, IndexTag::RPMTAG_FILEFLAGS] {
            let error = entries_with(&[same[0], same[1], (tag, [1, 0])]);
            assert_eq!(error.is_err(), tag == IndexTag::RPMTAG_FILESIZES);
        }
        for other in [
            &[(devices, [1, 1]), (inodes, [1, 2])][..],
            &[(devices, [1, 2]), (inodes, [7, 7])],
            &[(devices, [1, 1]), (inodes, [0, 0])],
            &[(devices, [1, 1])],
            &[(inodes, [7, 7])],
        ] {
            assert!(entries_with(other).unwrap().iter().all(|read| read.entry.is_file()));
        }
    }

    fn entries_with(more: &[(IndexTag, [u32; 2])]) -> Result<Vec<ReadEntry>> {
        entries(&built(["a", "b"], more))
    }

    /// Checks a header of `len` bytes with `count` files in a folder whose name has `folder` bytes.
    fn listed(count: usize, folder: usize, len: u64) -> Result<()> {
        let tags = [
            (IndexTag::RPMTAG_BASENAMES, IndexData::StringArray(vec!["a".to_owned(); count])),
            (IndexTag::RPMTAG_DIRNAMES, IndexData::StringArray(vec!["d".repeat(folder)])),
            (IndexTag::RPMTAG_DIRINDEXES, IndexData::Int32(vec![0; count])),
        ];
        let entries = tags.into_iter().map(|(tag, data)| HeaderEntry::new(tag.into(), data));
        check_paths(
            &Header::from_entries(entries.collect::<Vec<_>>(), IndexTag::RPMTAG_HEADERIMMUTABLE),
            len,
        )
    }

    #[test]
    fn paths_have_a_longest() {
        listed(1, 4095, 5000).unwrap();
        let error = listed(1, 4096, 5000).unwrap_err();
        assert!(error.to_string().contains("lists a path of 4097 bytes"), "{error}");
    }

    #[test]
    fn paths_take_no_more_than_their_header_allows() {
        listed(400, 399, 10_000).unwrap();
        let error = listed(401, 399, 10_000).unwrap_err();
        assert!(error.to_string().contains("of 10000 bytes lists paths of 160400"), "{error}");
    }
}
