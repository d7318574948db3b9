//! Fields of findings about packages, their publication, and wheels, with the words for each form.

#![allow(missing_docs, reason = "the text of a form says what the form and its fields are")]

use derive_more::Display;
use rockpack_core::package_format::{Format, MissingDigest};
use rockpack_core::tree::ComponentKind;
use serde::Serialize;

use crate::subjects::{EarlierPackage, PackageName};
use crate::words::{are, counted, few, list};

/// A claim in an entry of a package list that is ignored.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoredClaim {
    #[display("its `Version` is not used: all packages of a set have one version")]
    Version,
    #[display(
        "`Postinstall` asks for scripts that are not in the list; the package makes no links (`series_link` \
         makes one to the newest series)"
    )]
    Postinstall,
    #[display("`Artifact` and `Components` outside of `Artifactory` are not used")]
    OutsideArtifactory,
    #[display("is to be for every processor, but has files for one; the package is for that one")]
    EveryProcessor,
    #[display(
        "takes {module} of the artifact {artifact} ({}), which does not have it",
        few(components, ComponentKind::ALL.len())
    )]
    AbsentModule { module: String, artifact: String, components: Vec<String> },
    #[display(
        "is a development package and is not split, but has device code, which goes into kernel \
         packages beside it"
    )]
    WholeDevelopment,
}

/// The package that apt prefers of two with the same name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameWinner {
    /// The package of the set, which has the higher version.
    Set,
    /// The package of the distribution.
    Distribution,
    /// Either, as their versions are the same.
    Either,
}

impl NameWinner {
    /// Writes the consequence and the remedy, for a package of the set with `version`.
    pub fn told(&self, version: &str) -> String {
        match self {
            Self::Set => format!(
                "apt takes the higher version, that of the set ({version}), also in place of the \
                 distribution's where that is installed; with another name (`selectors`, `scheme`) \
                 both can be there"
            ),
            Self::Distribution => format!(
                "apt takes the higher version, and that of the set ({version}) is not installed; \
                 give the package another name (`selectors`, `scheme`), or set `epoch`"
            ),
            Self::Either => "the set has the same version, and apt takes either; give the package \
                             another name (`selectors`, `scheme`)"
                .to_owned(),
        }
    }
}

/// The reason why a licence text is not quoted.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum NotQuoted {
    #[display("it is longer than 256 KiB")]
    TooLong,
    #[display("it is not UTF-8")]
    NotUtf8,
}

/// The way in which a version is not newer than that of the earlier set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotNewer {
    /// A package takes paths of an earlier package that is not older.
    TakesPaths { package: PackageName, from: EarlierPackage },
    /// These packages had newer versions in the earlier set.
    Packages { format: Format, newer: Vec<EarlierPackage> },
    /// These packages have the same version as in the earlier set, and are newer in the other format.
    Unraised { format: Format, packages: Vec<EarlierPackage> },
}

impl NotNewer {
    /// The package, or else the version of the set.
    pub fn subject<'a>(&'a self, version: &'a str) -> &'a str {
        match self {
            Self::TakesPaths { package, .. } => package.as_str(),
            Self::Packages { .. } | Self::Unraised { .. } => version,
        }
    }

    /// Writes the fault as a text about the packages with `version`.
    pub fn told(&self, version: &str) -> String {
        match self {
            Self::TakesPaths { from, .. } => format!(
                "takes paths of {from}, which is not older than {version}, so \
                 the relations that allow this do not apply to it"
            ),
            Self::Packages { format, newer } => format!(
                "the earlier set has newer versions of {} as .{format} ({}): package managers \
                 will not update to this set",
                counted(newer.len(), "package"),
                few(newer, 1)
            ),
            Self::Unraised { format, packages } => format!(
                "{} as .{format} had this version in the earlier set, and only the other format is newer: \
                 package managers will update to this set in one format alone",
                counted(packages.len(), "package")
            ),
        }
    }
}

/// The reason why no signature proves a receipt, as the rest of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptDoubt {
    #[display("has no signature")]
    Unsigned,
    #[display("is signed, and no key is given to check that (--receipt-key)")]
    NoKey,
    #[display(
        "is signed by another key ({}): give the public key by --receipt-key if you trust it",
        few(_0, 3)
    )]
    OtherKeys(Vec<String>),
    #[display("cannot be read: {_0}")]
    Unread(String),
}

/// Misfits that a text shows. The fields have all of them.
const MISFITS_SHOWN: usize = 3;

/// Names of held-back packages that a text shows.
const NAMES_SHOWN: usize = 6;

/// The way in which a package does not fit the newest versions of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Discord {
    Needs,
    Excludes,
}

/// A package that cannot be installed together with the newest versions of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// The name.
    pub package: PackageName,
    /// The full version.
    pub version: String,
    /// The architecture.
    pub architecture: String,
    /// Whether clients may already have the package in this version.
    pub installed: bool,
    /// The way in which it does not fit.
    pub discord: Discord,
    /// The relation in words: `rocm-common = 7.1.0-1`.
    pub relation: String,
    /// The newest packages that the relation is about: `rocm-common 7.1.0-2`. Empty if nothing
    /// offers its name any more, or if a suitable one does not fit others itself.
    pub offered: Vec<String>,
}

/// Writes a text about packages that no longer fit, and about updates that are held back for them.
pub(super) fn held_back_for(misfits: &[Misfit], held_back: &[String]) -> String {
    // Those that do not fit because others do not come last.
    let mut misfits: Vec<&Misfit> = misfits.iter().collect();
    misfits.sort_by_key(|misfit| misfit.installed && misfit.offered.is_empty());
    let told = misfits.iter().map(|misfit| {
        let Misfit { package, version, discord, relation, offered, .. } = misfit;
        let newest = match offered.as_slice() {
            [] => ", which no package that fits provides".to_owned(),
            offered => format!(", and the newest is {}", list(offered)),
        };
        format!("{package} {version} {discord} {relation}{newest}")
    });
    let texts: Vec<String> = told.collect();
    let more = match texts.len().saturating_sub(MISFITS_SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = texts.get(..MISFITS_SHOWN).unwrap_or(&texts).join("; ");
    let (verb, it) = if texts.len() == 1 { ("does", "it") } else { ("do", "them") };
    let held = match held_back.len() {
        0 => format!("nobody can install {it}"),
        count => {
            let (updates, names) = (counted(count, "update"), few(held_back, NAMES_SHOWN));
            format!("clients hold back {updates} ({names})")
        }
    };
    let is_had = misfits.iter().any(|misfit| misfit.installed) && !held_back.is_empty();
    let removed = if is_had { ", or remove what does not fit" } else { "" };
    format!(
        "{} {verb} not go with the newest versions of others ({shown}{more}), so {held}{removed}: \
         publish {it} anew along with those, or with relations that take both versions",
        counted(texts.len(), "package"),
    )
}

/// The reason why a file of a folder is not published.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PackageLeftOut {
    #[display(
        "a .udeb is for Debian's installer, and no package that apt should offer; to publish it all \
         the same, name the file itself"
    )]
    Installer,
    #[display(
        "its name begins with a dot, as that of an unfinished copy; rename it, or name the file itself"
    )]
    Hidden,
    #[display(
        "its content is that of a .{_0}, and its name does not end like one of a package; rename it, or \
         name the file itself"
    )]
    Unnamed(Format),
    #[display("it is a link to a folder, which is not followed; name that folder, too")]
    LinkedFolder,
    /// Another name for a package that is published at this path.
    #[display("it is the same package as {_0}, under another name; remove one of them")]
    Duplicate(String),
    #[display(
        "pip and uv take wheels and source distributions of an index, and this {_0}; make one by \
         `python -m build`, or move it elsewhere"
    )]
    NoDistribution(String),
    /// A file that `repo` would refuse without `--skip-bad`.
    #[display("it is damaged, or clients refuse it: {_0}; build it again")]
    Bad(String),
    /// A wheel that `wheel` would refuse without `--skip-bad`.
    #[display("it cannot be split: {_0}")]
    Unsplit(String),
}

/// The remedy for packages that a signature of rockpack mends.
pub(super) const SIGN_ANEW: &str = "sign with --sign-packages; what is published already never \
                                    changes and needs a new release number";

/// The text about packages of an rpm repository without a digest that rpm 6 needs.
pub fn without_digest(packages: &[String], missing: MissingDigest) -> String {
    let remedy = match missing {
        MissingDigest::Header => SIGN_ANEW,
        MissingDigest::Payload => {
            "a signature cannot add it: build again with rpm 4.14 or later, with a new release number"
        }
    };
    format!(
        "{} without a SHA-256 of the {missing} ({}), which rpm 6 refuses to install: {remedy}",
        counted(packages.len(), "package"),
        few(packages, 3)
    )
}

/// The reason why device wheels of one release for several Pythons are not equal, by a file in which they differ.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PythonDifference {
    #[display(", which one has and another has not")]
    Absent,
    #[display(", whose device code differs")]
    Code,
    #[display(
        ", whose code has another `__hip_cuid_…`, which clang makes of paths and options: compile it with one \
         `-cuid=`, or with `-fuse-cuid=none`"
    )]
    Unit,
    #[display(", which is named after all device code, and that for other GPUs differs")]
    Name,
    /// Another file differs.
    #[display("")]
    File,
}

/// The reason why PyPI would refuse a wheel.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum PypiRefusal {
    #[display("the version {version} has a local part")]
    LocalVersion { version: String },
    #[display("the platform {platform} says nothing of the systems that it runs on")]
    Platform { platform: String },
    #[display(
        "{size} bytes are more than the {limit} that a project may upload unless PyPI allows more"
    )]
    Size { size: u64, limit: u64 },
}

/// The reason why an extra for a GPU does not bring all that the GPU needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraGap {
    /// The extra, or a device wheel, requires a wheel that is not there, or not for its tags.
    Absent,
    /// The extra does not bring the device code of a wheel that its own wheel requires.
    NotBrought,
    /// The wheel requires the extra of another wheel that does not offer it.
    NotOffered,
    /// The extra brings a device wheel that the device wheel of its group does not require.
    NotByName,
}

impl ExtraGap {
    /// The text about the gap of `extra` at the required wheel.
    pub fn describe(self, extra: &str, required: &str) -> String {
        match self {
            Self::Absent if extra.is_empty() => format!(
                "requires {required}, which the index does not have, or not for its tags, so that nobody can \
                 install it: publish that wheel, too"
            ),
            Self::Absent => format!(
                "its extra {extra} requires {required}, which the index does not have, or not for its tags, so \
                 nobody can install it with this extra: publish that wheel, too"
            ),
            Self::NotBrought => format!(
                "requires {required}, but its extra {extra} does not bring {required}[{extra}], so that kernels \
                 of {required} are missing: split the two in one run, or with `--split-elsewhere`"
            ),
            Self::NotOffered => format!(
                "requires {required}[{extra}], but {required} has no such extra, and pip only warns of that: \
                 split the two in one run"
            ),
            Self::NotByName => format!(
                "does not require {required}, which the extra {extra} of its host brings, so that it is not \
                 complete if it is installed by its name: install it by the extra, or split its host again"
            ),
        }
    }
}

/// The text about a RECORD that lists too little, or too much.
pub(super) fn record_lacks(unlisted: &[String], absent: &[String], unhashed: usize) -> String {
    let mut parts = Vec::new();
    if !unlisted.is_empty() {
        let (count, names) = (counted(unlisted.len(), "member"), few(unlisted, 5));
        parts.push(format!("{count} {} not in its RECORD: {names}", are(unlisted.len())));
    }
    if !absent.is_empty() {
        let (count, names) = (counted(absent.len(), "path"), few(absent, 5));
        parts.push(format!("{count} of its RECORD {} not in it: {names}", are(absent.len())));
    }
    if unhashed > 0 {
        let has = if unhashed == 1 { "has" } else { "have" };
        parts.push(format!("{} {has} no digest in its RECORD", counted(unhashed, "member")));
    }
    parts.join("; ")
}
