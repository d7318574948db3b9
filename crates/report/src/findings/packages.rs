//! Enum fields of findings about packages, their publication, and wheels, with the text of each variant.

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
    #[display("`Artifact` and `Components` outside `Artifactory` are not used")]
    OutsideArtifactory,
    #[display(
        "is declared architecture-independent, but has files for one architecture; the package is for that one"
    )]
    EveryProcessor,
    #[display(
        "takes {module} of the artifact {artifact} ({}), which does not have it",
        few(components, ComponentKind::ALL.len())
    )]
    AbsentModule { module: String, artifact: String, components: Vec<String> },
    #[display(
        "is a development package and is not split, but its device code goes into separate kernel \
         packages"
    )]
    WholeDevelopment,
}

/// The package that apt prefers of two with the same name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameWinner {
    Set,
    Distribution,
    /// Both have the same version.
    Either,
}

impl NameWinner {
    /// The consequence and the remedy for a package of the set with `version`.
    pub fn describe(&self, version: &str) -> String {
        match self {
            Self::Set => format!(
                "apt prefers the higher version, that of the set ({version}), and replaces an installed \
                 package of the distribution by it; give the package another name (`selectors`, \
                 `scheme`) to keep both"
            ),
            Self::Distribution => format!(
                "apt prefers the higher version and does not install that of the set ({version}); \
                 give the package another name (`selectors`, `scheme`), or set `epoch`"
            ),
            Self::Either => {
                "the set has the same version, so apt may install either; give the package \
                             another name (`selectors`, `scheme`)"
                    .to_owned()
            }
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
    /// The package, or `version` if the fault is about several.
    pub fn subject<'a>(&'a self, version: &'a str) -> &'a str {
        match self {
            Self::TakesPaths { package, .. } => package.as_str(),
            Self::Packages { .. } | Self::Unraised { .. } => version,
        }
    }

    /// The message for a set with `version`.
    pub fn describe(&self, version: &str) -> String {
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
                "{} as .{format} had this version in the earlier set already, and only the other format is \
                 newer: only package managers of that format will update to this set",
                counted(packages.len(), "package")
            ),
        }
    }
}

/// The reason why a receipt is not trusted, as the rest of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptDoubt {
    #[display("has no signature")]
    Unsigned,
    #[display("is signed, but no key was given to check it (--receipt-key)")]
    NoKey,
    #[display(
        "is signed by another key ({}): pass the public key with --receipt-key if you trust it",
        few(_0, 3)
    )]
    OtherKeys(Vec<String>),
    #[display("cannot be read: {_0}")]
    Unread(String),
}

/// Packages shown in a message; the fields list all.
const MISFITS_SHOWN: usize = 3;

/// Held-back packages shown in a message.
const NAMES_SHOWN: usize = 6;

/// The way in which a package does not fit the newest versions of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum ConflictKind {
    Needs,
    Excludes,
}

/// A package that cannot be installed together with the newest versions of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    pub package: PackageName,
    /// The full version.
    pub version: String,
    pub architecture: String,
    /// Whether clients may already have the package in this version.
    pub installed: bool,
    pub conflict: ConflictKind,
    /// The relation as text: `rocm-common = 7.1.0-1`.
    pub relation: String,
    /// The newest packages that the relation names: `rocm-common 7.1.0-2`. Empty if none provides the name any
    /// more, or if the matching package itself conflicts with others.
    pub offered: Vec<String>,
}

/// The message about packages that conflict with the newest versions of others, and about updates held back by them.
pub(super) fn held_back_for(misfits: &[Misfit], held_back: &[String]) -> String {
    // Packages that conflict only because another one does come last.
    let mut misfits: Vec<&Misfit> = misfits.iter().collect();
    misfits.sort_by_key(|misfit| misfit.installed && misfit.offered.is_empty());
    let told = misfits.iter().map(|misfit| {
        let Misfit { package, version, conflict, relation, offered, .. } = misfit;
        let newest = match offered.as_slice() {
            [] => ", which no suitable package provides".to_owned(),
            offered => format!(", and the newest is {}", list(offered)),
        };
        format!("{package} {version} {conflict} {relation}{newest}")
    });
    let texts: Vec<String> = told.collect();
    let more = match texts.len().saturating_sub(MISFITS_SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = texts.get(..MISFITS_SHOWN).unwrap_or(&texts).join("; ");
    let (verb, it) = if texts.len() == 1 { ("does", "it") } else { ("do", "them") };
    let held = match held_back.len() {
        0 => format!("clients cannot install {it}"),
        count => {
            let (updates, names) = (counted(count, "update"), few(held_back, NAMES_SHOWN));
            format!("clients hold back {updates} ({names})")
        }
    };
    let is_had = misfits.iter().any(|misfit| misfit.installed) && !held_back.is_empty();
    let removed = if is_had { ", or remove what does not fit" } else { "" };
    format!(
        "{} {verb} not fit the newest versions of other packages ({shown}{more}), so {held}{removed}: \
         publish {it} again together with those packages, or with relations that accept both versions",
        counted(texts.len(), "package"),
    )
}

/// The reason why a file of a folder is not published.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PackageLeftOut {
    #[display(
        "a .udeb is for Debian's installer and not for apt; to publish it anyway, name the file itself"
    )]
    Installer,
    #[display(
        "its name begins with a dot, like that of an unfinished copy; rename it, or name the file itself"
    )]
    Hidden,
    #[display(
        "it is a .{_0}, but its name does not have the extension of a package; rename it, or name the \
         file itself"
    )]
    Unnamed(Format),
    #[display("it is a link to a folder, which is not followed; name that folder as well")]
    LinkedFolder,
    /// The path of the same package, which is published.
    #[display("it is the same package as {_0} under another name; remove one of them")]
    Duplicate(String),
    #[display(
        "pip and uv take wheels and source distributions of an index, and this {_0}; make one by \
         `python -m build`, or move it elsewhere"
    )]
    NoDistribution(String),
    /// `repo` refuses the file without `--skip-bad`.
    #[display("it is damaged, or clients refuse it: {_0}; build it again")]
    Bad(String),
    /// `wheel` refuses the wheel without `--skip-bad`.
    #[display("it cannot be split: {_0}")]
    Unsplit(String),
}

/// The remedy if a signature of rockpack solves the problem.
pub(super) const SIGN_REMEDY: &str = "sign with --sign-packages; published packages never change, \
                                    so they need a new release number";

/// The message about packages of an rpm repository without a digest that rpm 6 needs.
pub fn without_digest(packages: &[String], missing: MissingDigest) -> String {
    let remedy = match missing {
        MissingDigest::Header => SIGN_REMEDY,
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

/// How a file differs between the device wheels of one release for several Pythons.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PythonDifference {
    #[display(", which only some of them have")]
    Absent,
    #[display(", whose device code differs")]
    Code,
    #[display(
        ", whose code has different symbols `__hip_cuid_…`, which clang derives from paths and options: compile it \
         with one `-cuid=`, or with `-fuse-cuid=none`"
    )]
    Unit,
    #[display(", whose name depends on all device code, and the code for other GPUs differs")]
    Name,
    #[display("")]
    File,
}

/// The reason why PyPI would refuse a wheel.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum PypiRefusal {
    #[display("the version {version} has a local part")]
    LocalVersion { version: String },
    #[display("the platform tag {platform} does not name the systems that it runs on")]
    Platform { platform: String },
    #[display(
        "{size} bytes are more than the {limit} that a project may upload unless PyPI allows more"
    )]
    Size { size: u64, limit: u64 },
}

/// The reason why an extra for a GPU does not install everything that the GPU needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraGap {
    /// The extra, or a device wheel, requires a wheel that is missing, or missing for its tags.
    Absent,
    /// The extra does not install the device code of a wheel that its own wheel requires.
    NotBrought,
    /// The wheel requires the extra of another wheel that does not offer it.
    NotOffered,
    /// The extra installs a device wheel that the device wheel of its group does not require.
    NotByName,
}

impl ExtraGap {
    /// The message about the wheel with `extra`; an empty `extra` stands for a device wheel.
    pub fn describe(self, extra: &str, required: &str) -> String {
        match self {
            Self::Absent if extra.is_empty() => format!(
                "requires {required}, which the index does not have for its tags, so it cannot be installed: \
                 publish that wheel as well"
            ),
            Self::Absent => format!(
                "its extra {extra} requires {required}, which the index does not have for its tags, so the \
                 extra cannot be installed: publish that wheel as well"
            ),
            Self::NotBrought => format!(
                "requires {required}, but its extra {extra} does not install {required}[{extra}], so kernels \
                 of {required} are missing: split the two in one run, or with `--split-elsewhere`"
            ),
            Self::NotOffered => format!(
                "requires {required}[{extra}], but {required} has no such extra, and pip only warns about it: \
                 split the two in one run"
            ),
            Self::NotByName => format!(
                "does not require {required}, which the extra {extra} of its host installs, so installing it by \
                 name is incomplete: install the extra, or split its host again"
            ),
        }
    }
}

/// The message about a RECORD with missing or superfluous rows, or rows without a digest.
pub(super) fn record_faults(unlisted: &[String], absent: &[String], unhashed: usize) -> String {
    let mut parts = Vec::new();
    if !unlisted.is_empty() {
        let (count, names) = (counted(unlisted.len(), "member"), few(unlisted, 5));
        parts.push(format!("{count} {} not in its RECORD: {names}", are(unlisted.len())));
    }
    if !absent.is_empty() {
        let (count, names) = (counted(absent.len(), "path"), few(absent, 5));
        parts
            .push(format!("{count} of its RECORD {} not in the wheel: {names}", are(absent.len())));
    }
    if unhashed > 0 {
        let has = if unhashed == 1 { "has" } else { "have" };
        parts.push(format!("{} {has} no digest in its RECORD", counted(unhashed, "member")));
    }
    parts.join("; ")
}
