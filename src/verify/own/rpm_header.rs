//! Tags of an `.rpm`'s header that make rpm do more than its files and relations say: refuse the package,
//! leave files out, run programs.
//!
//! Tags by their numbers in rpm's `rpmtag.h`. Those that are neither read by other checks nor without
//! any effect are named, whatever they are: rpm may act on them.

use ::rpm::{Dependency, DependencyFlags, IndexData, PackageMetadata};
use md5::{Digest as _, Md5};
use rockpack_base::content::{Content, DigestingReader, hex};
use rockpack_base::error::{Error, Result};
use rockpack_base::formats::payload::{PayloadEntryKind, ReadEntry};
use rockpack_base::formats::rpm;

use super::facts::Class;
use super::installed::{Installed, InstalledNode};
use crate::verify::problem::{HeaderFault, LeftOutAs};

const FILE_VERIFY_FLAGS: u32 = 1045;
const RPM_VERSION: u32 = 1064;
const PREFIXES: u32 = 1098;
const OS: u32 = 1021;
const ARCH: u32 = 1022;
const FILE_FLAGS: u32 = 1037;
const FILE_LANGS: u32 = 1097;
const REQUIRE_NAME: u32 = 1049;
const PAYLOAD_FORMAT: u32 = 1124;
const FILE_COLORS: u32 = 1140;

/// MD5 over header and payload, in the signature.
const SIGNATURE_MD5: u32 = 1004;

/// Flags of files by which rpm may leave them out.
const FLAGS: [(u32, LeftOutAs); 3] =
    [(1, LeftOutAs::Config), (1 << 1, LeftOutAs::Document), (1 << 12, LeftOutAs::BuildArtifact)];

/// Colours that every rpm of x86-64 installs: none, and that of 64-bit files.
const COLORS: [u32; 2] = [0, 2];

/// Flags that packages of rockpack have: of files like others, of configuration that is kept, of documents
/// and of licences.
const OWN_FLAGS: [u32; 4] = [0, CONFIG_KEPT, 1 << 1, 1 << 7];

/// Configuration that stays as somebody changed it (`%config(noreplace)`).
const CONFIG_KEPT: u32 = 1 | 1 << 4;

/// Flags that dependencies of packages of rockpack have.
const OWN_DEPENDENCIES: DependencyFlags = DependencyFlags::LESS
    .union(DependencyFlags::GREATER)
    .union(DependencyFlags::EQUAL)
    .union(DependencyFlags::INTERP)
    .union(DependencyFlags::PRETRANS)
    .union(DependencyFlags::SCRIPT_PRE)
    .union(DependencyFlags::SCRIPT_POST)
    .union(DependencyFlags::SCRIPT_POSTUN)
    .union(DependencyFlags::FIND_REQUIRES)
    .union(DependencyFlags::FIND_PROVIDES)
    .union(DependencyFlags::RPMLIB)
    .union(DependencyFlags::CONFIG);

/// Tags that other tools write, and rpm or dnf may act on: states of files, and the module.
const NEVER_OWN: [u32; 2] = [1029, 5096];

/// Ranges of tags that are read by other checks, or that rpm only shows.
const HARMLESS: [(u32, u32); 32] = [
    (61, 63),
    (100, 100),
    (1000, 1007),
    (1009, 1016),
    (1020, 1026),
    (1028, 1030),
    (1033, 1037),
    (1039, 1040),
    (1044, 1050),
    (1053, 1055),
    (1064, 1064),
    (1080, 1082),
    (1085, 1088),
    (1090, 1090),
    (1094, 1098),
    (1112, 1118),
    (1122, 1126),
    (1131, 1132),
    (1140, 1146),
    (1151, 1155),
    (5008, 5009),
    (5011, 5012),
    (5034, 5034),
    (5046, 5057),
    (5062, 5062),
    (5092, 5093),
    (5096, 5097),
    // Format 6: sizes and digests of the payload, MIME types, the source package.
    (5112, 5117),
    (5120, 5124),
    // Scripts, which are judged as such.
    (1079, 1079),
    (1091, 1091),
    (5104, 5107),
];

/// Tags of the signature that are read, or say nothing.
const OF_SIGNATURE: [u32; 16] =
    [62, 267, 268, 269, 270, 271, 273, 278, 279, 999, 1000, 1002, 1004, 1005, 1007, 1008];

/// Names of the tags that are seen most among those that rpm acts on.
const ACTING: [(u32, u32, &str); 11] = [
    (1029, 1029, "states of installed files"),
    (5096, 5096, "the module, by which dnf leaves packages out"),
    (1027, 1027, "paths of files as rpm 3 had them"),
    (1065, 1069, "triggers"),
    (1092, 1092, "triggers"),
    (1147, 1150, "security contexts"),
    (5020, 5028, "how scriptlets are run"),
    (5030, 5033, "security policies"),
    (5066, 5091, "file triggers"),
    (5109, 5110, "users to be made"),
    (274, 275, "signatures of files"),
];

/// Features that rpm of every distribution has that takes the packages at all.
const FEATURES: [&str; 18] = [
    "BuiltinLuaScripts",
    "CaretInVersions",
    "CompressedFileNames",
    "ConcurrentAccess",
    "ExplicitPackageProvide",
    "FileCaps",
    "FileDigests",
    "HeaderLoadSortsTags",
    "LargeFiles",
    "PartialHardlinkSets",
    "PayloadFilesHavePrefix",
    "PayloadIsBzip2",
    "PayloadIsLzma",
    "PayloadIsXz",
    "PayloadIsZstd",
    "RichDependencies",
    "ScriptletInterpreterArgs",
    "TildeInVersions",
];

/// Judges the header of an opened package whose content was read.
pub(in crate::verify) fn faults(
    rpm: &rpm::RpmReader,
    package: &Content,
    installed: &Installed,
) -> Result<Vec<HeaderFault>> {
    let header = Tags(rpm.metadata());
    let mut faults = header.texts();
    faults.extend(header.features());
    faults.extend(header.hidden(installed));
    faults.extend(header.unknown()?);
    faults.extend(header.md5(package)?);
    faults.extend(header.files(rpm, installed));
    Ok(faults)
}

/// Judges what the header says beyond what packages of other tools may say, too.
pub(in crate::verify) fn own_faults(
    rpm: &rpm::RpmReader,
    installed: &Installed,
) -> Result<Vec<HeaderFault>> {
    let header = Tags(rpm.metadata());
    let mut faults = header.own_files(rpm, installed);
    faults.extend(header.own_dependencies());
    let tags = rpm.metadata().header.get_all_entries().map_err(bad_tags)?.into_iter();
    faults.extend(tags.map(|(tag, _)| tag).filter(|tag| NEVER_OWN.contains(tag)).map(named));
    Ok(faults)
}

/// The text behind `name` in the header field that names the program which made the package.
pub(in crate::verify) fn generator(metadata: &PackageMetadata, name: &str) -> Option<String> {
    Some(Tags(metadata).text(RPM_VERSION)?.strip_prefix(name)?.to_owned())
}

/// The prefixes from which rpm may move the package.
pub(in crate::verify) fn prefixes(metadata: &PackageMetadata) -> Vec<String> {
    Tags(metadata).texts_of(PREFIXES)
}

struct Tags<'a>(&'a PackageMetadata);

impl Tags<'_> {
    fn text(&self, tag: u32) -> Option<String> {
        match self.0.header.entry(tag) {
            Ok(IndexData::StringTag(text)) => Some(text),
            Ok(IndexData::StringArray(mut texts)) if texts.len() == 1 => texts.pop(),
            _ => None,
        }
    }

    fn texts_of(&self, tag: u32) -> Vec<String> {
        match self.0.header.entry(tag) {
            Ok(IndexData::StringArray(texts)) => texts,
            Ok(IndexData::StringTag(text)) => vec![text],
            _ => Vec::new(),
        }
    }

    fn numbers(&self, tag: u32) -> Vec<u32> {
        match self.0.header.entry(tag) {
            Ok(IndexData::Int32(numbers)) => numbers,
            _ => Vec::new(),
        }
    }

    /// Judges the digests and texts that rpm asks of every package before it installs it.
    fn texts(&self) -> Vec<HeaderFault> {
        let missing = rpm::missing_digest(self.0).into_iter();
        let mut faults: Vec<_> = missing.map(|missing| HeaderFault::NoDigest { missing }).collect();
        let [os, arch, format] =
            [OS, ARCH, PAYLOAD_FORMAT].map(|tag| self.text(tag).unwrap_or_default());
        if !os.eq_ignore_ascii_case("linux") {
            faults.push(HeaderFault::System { os });
        }
        if !["x86_64", "noarch"].contains(&arch.as_str()) {
            faults.push(HeaderFault::Machine { arch });
        }
        if format != "cpio" {
            faults.push(HeaderFault::PayloadFormat { format });
        }
        faults
    }

    /// Features of rpm that the package needs and no rpm has.
    fn features(&self) -> Vec<HeaderFault> {
        let names = self.texts_of(REQUIRE_NAME).into_iter();
        let features = names.filter(|name| {
            let feature = name.strip_prefix("rpmlib(").and_then(|name| name.strip_suffix(')'));
            feature.is_some_and(|feature| !FEATURES.contains(&feature))
        });
        features.map(|feature| HeaderFault::Feature { feature }).collect()
    }

    /// Dependencies that are wrongly marked as those of a script or of rpm.
    fn hidden(&self, installed: &Installed) -> Vec<HeaderFault> {
        let needs = self.0.get_requires().unwrap_or_default().into_iter();
        let hidden = needs.filter(|Dependency { name, flags, .. }| {
            (flags.contains(DependencyFlags::RPMLIB) && !name.starts_with("rpmlib("))
                || (flags.contains(DependencyFlags::CONFIG) && !name.starts_with("config("))
                || (flags.contains(DependencyFlags::INTERP) && !has_scripts_for(installed, name))
        });
        hidden.map(|need| HeaderFault::HiddenNeed { name: need.name }).collect()
    }

    fn unknown(&self) -> Result<Vec<HeaderFault>> {
        let header = self.0.header.get_all_entries().map_err(bad_tags)?;
        let signature = self.0.signature.get_all_entries().map_err(bad_tags)?;
        let header_tags = header.into_iter().map(|(tag, _)| tag).filter(|tag| !is_harmless(*tag));
        let signature_tags =
            signature.into_iter().map(|(tag, _)| tag).filter(|tag| !OF_SIGNATURE.contains(tag));
        Ok(header_tags.chain(signature_tags).map(named).collect())
    }

    /// The MD5 over header and payload, where the signature states one.
    fn md5(&self, package: &Content) -> Result<Option<HeaderFault>> {
        let Ok(IndexData::Bin(stated)) = self.0.signature.entry(SIGNATURE_MD5) else {
            return Ok(None);
        };
        let start = self.0.get_package_segment_offsets().header;
        let reader = package.slice(start..package.len())?.reader();
        let mut digesting = DigestingReader::<_, Md5>::new(reader);
        std::io::copy(&mut digesting, &mut std::io::sink())
            .map_err(|e| Error::io_unplaced("read the package", e))?;
        let same = hex(&digesting.digest.finalize()) == hex(&stated);
        Ok((!same).then_some(HeaderFault::Md5))
    }

    /// Dependencies with flags beside comparisons and those of scripts, of rpm and of its generators.
    fn own_dependencies(&self) -> impl Iterator<Item = HeaderFault> + use<> {
        let metadata = self.0;
        let lists = [
            metadata.get_requires(),
            metadata.get_provides(),
            metadata.get_conflicts(),
            metadata.get_obsoletes(),
            metadata.get_recommends(),
            metadata.get_suggests(),
            metadata.get_supplements(),
            metadata.get_enhances(),
        ];
        let all = lists.into_iter().flat_map(std::result::Result::unwrap_or_default);
        all.filter(|it| it.flags.bits() & !OWN_DEPENDENCIES.bits() != 0)
            .map(|it| HeaderFault::DependencyFlags { name: it.name, flags: it.flags.bits() })
    }

    /// Hard links, files that `rpm --verify` passes over or that have flags that no build gives, and a loader's
    /// file that rpm would not keep.
    fn own_files(&self, rpm: &rpm::RpmReader, installed: &Installed) -> Vec<HeaderFault> {
        let (all, verified) = (self.numbers(FILE_FLAGS), self.numbers(FILE_VERIFY_FLAGS));
        let mut faults = Vec::new();
        for (index, read) in rpm.entries().iter().enumerate() {
            let flags = all.get(index).copied().unwrap_or_default();
            if let PayloadEntryKind::Special(_) = read.entry.kind {
                faults.push(HeaderFault::HardLink { path: absolute_path(read) });
            }
            if !OWN_FLAGS.contains(&flags) {
                faults.push(HeaderFault::FileFlags { path: absolute_path(read), flags });
            }
            if verified.get(index).is_some_and(|verified| *verified != u32::MAX) {
                faults.push(HeaderFault::Unverified { path: absolute_path(read) });
            }
            if flags != CONFIG_KEPT
                && read.entry.is_file()
                && is_loader_file(installed, &absolute_path(read))
            {
                faults.push(HeaderFault::NotKept { path: absolute_path(read) });
            }
        }
        faults
    }

    /// Files with code that rpm may leave out.
    fn files(&self, rpm: &rpm::RpmReader, installed: &Installed) -> Vec<HeaderFault> {
        let (flags, colors) = (self.numbers(FILE_FLAGS), self.numbers(FILE_COLORS));
        let langs = self.texts_of(FILE_LANGS);
        let mut faults = Vec::new();
        for (index, read) in rpm.entries().iter().enumerate() {
            let path = absolute_path(read);
            let Some(node) = installed.paths.get(&path) else { continue };
            let flags = flags.get(index).copied().unwrap_or_default();
            let marked = FLAGS.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, how)| *how);
            let lang = langs.get(index).is_some_and(|lang| !lang.is_empty());
            let color = colors.get(index).is_some_and(|color| !COLORS.contains(color));
            let possible = [(lang, LeftOutAs::Language), (color, LeftOutAs::Colour)];
            let odd = possible.into_iter().filter_map(|(odd, how)| odd.then_some(how));
            let all = marked.chain(odd).filter(|how| !may_be(*how, &path, node));
            faults.extend(all.map(|how| HeaderFault::LeftOut { path: path.clone(), how }));
        }
        faults
    }
}

fn has_scripts_for(installed: &Installed, interpreter: &str) -> bool {
    let mut programs = installed.scripts.iter().map(|script| script.interpreter.as_str());
    programs.any(|program| program.split(' ').next() == Some(interpreter))
}

fn is_harmless(tag: u32) -> bool {
    HARMLESS.iter().any(|(first, last)| (*first..=*last).contains(&tag))
}

pub(in crate::verify) fn bad_tags(error: ::rpm::Error) -> Error {
    Error::malformed("has bad tags").cause(error)
}

fn absolute_path(read: &ReadEntry) -> String {
    format!("/{}", read.entry.path)
}

/// Whether rpm may leave out, and dpkg keep as it was, what stands at `path`: documents in the folders for
/// them, texts in a language, configuration below `/etc`, files of other word sizes, but nothing that has
/// code.
pub(super) fn may_be(how: LeftOutAs, path: &str, node: &InstalledNode) -> bool {
    let class = node.facts().map(|facts| &facts.class);
    let is_code = class.is_some_and(|class| {
        !matches!(
            class,
            Class::Other | Class::Script(_) | Class::LoaderFolders(_) | Class::Foreign(_)
        )
    });
    !is_code
        && match how {
            LeftOutAs::Document => {
                has_folder(path, &["/doc/", "/man/", "/info/", "/licenses/", "/docs/"])
            }
            LeftOutAs::Language => has_folder(path, &["/locale/", "/man/", "/doc/", "/help/"]),
            LeftOutAs::Config => path.starts_with("/etc/"),
            LeftOutAs::BuildArtifact => path.contains("/.build-id"),
            LeftOutAs::Colour => matches!(class, Some(Class::Foreign(_))),
        }
}

/// Whether one of `folders` is in the path.
fn has_folder(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.contains(folder))
}

/// Whether a package has a file of the loader's configuration at `path`.
pub(super) fn is_loader_file(package: &Installed, path: &str) -> bool {
    let facts = package.paths.get(path).and_then(InstalledNode::facts);
    facts.is_some_and(|facts| matches!(facts.class, Class::LoaderFolders(_)))
}

fn named(tag: u32) -> HeaderFault {
    let known = ACTING.iter().find(|(first, last, _)| (*first..=*last).contains(&tag));
    match known {
        Some((_, _, what)) => HeaderFault::Acting { tag, what: (*what).to_owned() },
        None => HeaderFault::Unknown { tag },
    }
}
