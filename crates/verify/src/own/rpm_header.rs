//! Properties of an `.rpm`'s header by which rpm refuses the package, or may leave files with code out.
//!
//! Tags by their numbers in rpm's `rpmtag.h`.

use ::rpm::{IndexData, PackageMetadata};
use rockpack_archive::rpm;

use super::facts::Class;
use super::installed::{Installed, InstalledNode};

const OS: u32 = 1021;
const ARCH: u32 = 1022;
const FILE_FLAGS: u32 = 1037;
const REQUIRE_NAME: u32 = 1049;
const FILE_LANGS: u32 = 1097;
const PAYLOAD_FORMAT: u32 = 1124;
const FILE_COLORS: u32 = 1140;

/// Flags of files by which rpm may leave them out: `--noconfigs`, `--excludedocs`, `--excludeartifacts`.
const FLAGS: [(u32, &str); 3] = [
    (1, "configuration (%config)"),
    (1 << 1, "a document (%doc)"),
    (1 << 12, "an artifact of the build (%artifact)"),
];

/// Colours that every rpm of x86-64 installs: none, and that of 64-bit files.
const COLORS: [u32; 2] = [0, 2];

/// Features of rpm that all distributions have whose rpm reads the packages.
const FEATURES: &str = "BuiltinLuaScripts CaretInVersions CompressedFileNames ConcurrentAccess \
    ExplicitPackageProvide FileCaps FileDigests HeaderLoadSortsTags LargeFiles \
    PartialHardlinkSets PayloadFilesHavePrefix PayloadIsBzip2 PayloadIsLzma PayloadIsXz \
    PayloadIsZstd RichDependencies ScriptletInterpreterArgs TildeInVersions";

/// The faults of the header of a package whose files are known.
pub(super) fn faults(rpm: &rpm::RpmReader, installed: &Installed) -> Vec<String> {
    let header = Tags(rpm.metadata());
    let mut faults = header.refused();
    faults.extend(header.left_out(rpm, installed));
    faults
}

struct Tags<'a>(&'a PackageMetadata);

impl Tags<'_> {
    fn texts(&self, tag: u32) -> Vec<String> {
        match self.0.header.entry(tag) {
            Ok(IndexData::StringArray(texts)) => texts,
            Ok(IndexData::StringTag(text)) => vec![text],
            _ => Vec::new(),
        }
    }

    fn text(&self, tag: u32) -> String {
        self.texts(tag).pop().unwrap_or_default()
    }

    fn numbers(&self, tag: u32) -> Vec<u32> {
        match self.0.header.entry(tag) {
            Ok(IndexData::Int32(numbers)) => numbers,
            _ => Vec::new(),
        }
    }

    /// Everything for which rpm refuses the package.
    fn refused(&self) -> Vec<String> {
        let missing = rpm::missing_digest(self.0).into_iter();
        let without = |digest: rpm::MissingDigest| {
            format!("states no SHA-256 of the {digest}, and rpm 6 refuses such packages")
        };
        let mut faults: Vec<_> = missing.map(without).collect();
        let [os, arch, format] = [OS, ARCH, PAYLOAD_FORMAT].map(|tag| self.text(tag));
        if !os.eq_ignore_ascii_case("linux") {
            faults.push(format!("its header is for the system `{os}`; rpm of Linux refuses it"));
        }
        if !["x86_64", "noarch"].contains(&arch.as_str()) {
            faults.push(format!("its header is for `{arch}`, and rpm of x86-64 refuses it"));
        }
        if format != "cpio" {
            faults.push(format!("its payload is `{format}`, which rpm does not read"));
        }
        let unknown = self.texts(REQUIRE_NAME).into_iter().filter(|name| {
            let feature = name.strip_prefix("rpmlib(").and_then(|name| name.strip_suffix(')'));
            feature.is_some_and(|feature| !FEATURES.split(' ').any(|known| known == feature))
        });
        faults.extend(unknown.map(|feature| format!("needs {feature}, which no rpm has")));
        faults
    }

    /// Files with code that rpm may leave out.
    fn left_out(&self, rpm: &rpm::RpmReader, installed: &Installed) -> Vec<String> {
        let (flags, colors) = (self.numbers(FILE_FLAGS), self.numbers(FILE_COLORS));
        let langs = self.texts(FILE_LANGS);
        let mut faults = Vec::new();
        for (index, read) in rpm.entries().iter().enumerate() {
            let path = format!("/{}", read.entry.path);
            if !has_code(installed, &path) {
                continue;
            }
            let flags = flags.get(index).copied().unwrap_or_default();
            let marks = FLAGS.into_iter().filter(|(flag, _)| flags & flag != 0).map(|(_, how)| how);
            let lang = langs.get(index).is_some_and(|lang| !lang.is_empty());
            let color = colors.get(index).is_some_and(|color| !COLORS.contains(color));
            let all = marks
                .chain(lang.then_some("for one language (%lang)"))
                .chain(color.then_some("of another word size (its colour)"));
            faults.extend(all.map(|how| {
                format!("its header marks {path} as {how}, so that rpm may leave it out")
            }));
        }
        faults
    }
}

/// Whether the file at `path` has host or device code, or leads to some.
fn has_code(installed: &Installed, path: &str) -> bool {
    let facts = installed.paths.get(path).and_then(InstalledNode::facts);
    facts.is_some_and(|facts| {
        !matches!(facts.class, Class::Other | Class::Script(_) | Class::LoaderFolders(_))
    })
}
