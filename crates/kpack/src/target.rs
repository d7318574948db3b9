//! GPU targets: target IDs, base archs, features, and the code that a device can run.
//!
//! Source: the AMDGPU chapter of LLVM's user guide ("Processors", "Target ID"), and code objects of two
//! compiler generations.

mod compatible;

use std::fmt;
use std::str::FromStr;

pub use compatible::{CompatibleTarget, TRIPLE_PREFIX, compatible};

type Result<T> = std::result::Result<T, TargetFault>;

/// The reason why a text is not a target ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetFault {
    /// This text is not a processor.
    Arch(String),
    /// A feature is unknown, or occurs twice.
    Feature { target: String, feature: String },
}

impl TargetFault {
    /// The correct spelling, for messages.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Arch(_) => "an arch is written as in `gfx1100`, `gfx90a` or `gfx1250-strict`",
            Self::Feature { .. } => {
                "features are written as in `gfx90a:sramecc+:xnack-`, each once"
            }
        }
    }
}

impl fmt::Display for TargetFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arch(text) => write!(f, "`{text}` is not a GPU arch"),
            Self::Feature { target, feature } => {
                write!(f, "`{feature}` in the target ID `{target}` is not a feature")
            }
        }
    }
}

impl std::error::Error for TargetFault {}

/// The processor part of a target ID, e.g. `gfx90a`, `gfx1250-strict`, `gfx11-generic`,
/// or `amdgcnspirv` for arch-neutral device code.
///
/// A hyphenated qualifier belongs to the base arch: `gfx1250-strict` is not `gfx1250`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct BaseArch(String);

/// The base arch of SPIR-V device code, which every GPU compiles at load time.
pub const SPIRV: &str = "amdgcnspirv";

impl BaseArch {
    /// The spelling used in archives, packages and reports.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether this is arch-neutral SPIR-V rather than a processor.
    pub fn is_spirv(&self) -> bool {
        self.0 == SPIRV
    }

    /// Tells whether this is a generic target (`gfx11-generic`), which several processors run.
    pub fn is_generic(&self) -> bool {
        self.0.ends_with("-generic")
    }
}

impl FromStr for BaseArch {
    type Err = TargetFault;

    fn from_str(text: &str) -> Result<Self> {
        let (stem, qualifier) = match text.split_once('-') {
            Some((stem, qualifier)) => (stem, Some(qualifier)),
            None => (text, None),
        };
        let digits = stem.strip_prefix("gfx").unwrap_or_default();
        let processor = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(is_lower_or_digit);
        // `gfx9-4-generic` has two hyphens: all words after the first are qualifiers.
        let qualified = qualifier.is_none_or(|words| {
            !words.is_empty()
                && words.split('-').all(|w| !w.is_empty() && w.bytes().all(is_lower_or_digit))
        });
        if text == SPIRV || (processor && qualified) {
            return Ok(Self(text.to_owned()));
        }
        Err(TargetFault::Arch(text.to_owned()))
    }
}

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

crate::as_text!(BaseArch);

impl fmt::Display for BaseArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The target features that a target ID can fix.
pub const FEATURES: [&str; 2] = ["sramecc", "xnack"];

/// A target ID: a base arch and the features it fixes, e.g. `gfx90a:sramecc+:xnack-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct Target {
    base: BaseArch,
    /// The features sorted by name, as the runtime spells them.
    features: Vec<(String, bool)>,
}

impl Target {
    /// A target of `base` that fixes `features` (name, on).
    pub fn new(base: BaseArch, features: impl IntoIterator<Item = (String, bool)>) -> Self {
        let mut features: Vec<_> = features.into_iter().collect();
        features.sort();
        features.dedup();
        Self { base, features }
    }

    /// The part before the first `:`.
    pub fn base(&self) -> &BaseArch {
        &self.base
    }

    pub fn features(&self) -> &[(String, bool)] {
        &self.features
    }

    /// Tells whether code for `self` runs on a device that reports exactly `device`: the base arch is the
    /// same, and the device has each fixed feature of `self` with the same value.
    pub fn runs_on(&self, device: &Target) -> bool {
        self.base == device.base && self.features.iter().all(|f| device.features.contains(f))
    }

    /// Reads any of the spellings in use: `gfx90a:xnack+` (bundles), `gfx90a-xnack+` (Tensile
    /// file names), `gfx90a_xnackp` and `gfx90a_xnack_` (CMake-sanitized names).
    pub fn parse_spelling(text: &str) -> Result<Self> {
        let mut rest = text;
        let mut features = Vec::new();
        while let Some((before, feature)) =
            FEATURES.iter().find_map(|name| last_feature(rest, name))
        {
            features.push(feature);
            rest = before;
        }
        Ok(Self::new(rest.parse()?, features))
    }
}

/// Splits a trailing `[:-_]name[+-p_m]` off `text`: a feature in any of the spellings in use.
pub fn last_feature<'a>(text: &'a str, name: &str) -> Option<(&'a str, (String, bool))> {
    let (stem, on) = match text.as_bytes().last()? {
        b'+' | b'p' => (&text[..text.len() - 1], true),
        b'-' | b'_' | b'm' => (&text[..text.len() - 1], false),
        _ => return None,
    };
    let before = stem.strip_suffix(name)?;
    let base = before.strip_suffix([':', '-', '_'])?;
    Some((base, (name.to_owned(), on)))
}

impl FromStr for Target {
    type Err = TargetFault;

    /// Reads the canonical spelling, `base[:feature±]*`.
    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split(':');
        let base = parts.next().unwrap_or_default().parse()?;
        let mut features: Vec<(String, bool)> = Vec::new();
        for part in parts {
            let (name, on) = match (part.strip_suffix('+'), part.strip_suffix('-')) {
                (Some(name), _) => (name, true),
                (_, Some(name)) => (name, false),
                _ => return Err(bad_feature(text, part)),
            };
            let known = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric());
            if !known || features.iter().any(|(other, _)| other == name) {
                return Err(bad_feature(text, part));
            }
            features.push((name.to_owned(), on));
        }
        Ok(Self::new(base, features))
    }
}

fn bad_feature(target: &str, feature: &str) -> TargetFault {
    TargetFault::Feature { target: target.to_owned(), feature: feature.to_owned() }
}

crate::as_text!(Target);

impl From<BaseArch> for Target {
    fn from(base: BaseArch) -> Self {
        Self { base, features: Vec::new() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str())?;
        for (name, on) in &self.features {
            write!(f, ":{name}{}", if *on { '+' } else { '-' })?;
        }
        Ok(())
    }
}

const XNACK: &[&str] = &["xnack"];
const SRAMECC_XNACK: &[&str] = &["sramecc", "xnack"];

/// The features that a processor's target ID can fix, sorted by base arch.
///
/// Source: the processor tables of LLVM (`llvm/lib/TargetParser/TargetParser.cpp`, FEATURE_XNACK and
/// FEATURE_SRAMECC; "Processors" in the AMDGPU user guide). Unlisted processors support no feature. gfx1250
/// always replays page faults, so XNACK is no choice there.
const SUPPORTED: &[(&str, &[&str])] = &[
    ("gfx10-1-generic", XNACK),
    ("gfx1010", XNACK),
    ("gfx1011", XNACK),
    ("gfx1012", XNACK),
    ("gfx1013", XNACK),
    ("gfx801", XNACK),
    ("gfx810", XNACK),
    ("gfx9-4-generic", SRAMECC_XNACK),
    ("gfx9-generic", XNACK),
    ("gfx900", XNACK),
    ("gfx902", XNACK),
    ("gfx904", XNACK),
    ("gfx906", SRAMECC_XNACK),
    ("gfx908", SRAMECC_XNACK),
    ("gfx909", XNACK),
    ("gfx90a", SRAMECC_XNACK),
    ("gfx90c", XNACK),
    ("gfx940", SRAMECC_XNACK),
    ("gfx941", SRAMECC_XNACK),
    ("gfx942", SRAMECC_XNACK),
    ("gfx950", SRAMECC_XNACK),
];

impl BaseArch {
    /// The features that a target ID of this arch can fix, sorted by name; empty for an unknown arch.
    pub fn supported_features(&self) -> &'static [&'static str] {
        let found = SUPPORTED.binary_search_by_key(&self.as_str(), |(arch, _)| arch);
        found.map_or(&[], |index| SUPPORTED[index].1)
    }

    /// All target IDs of this arch that fix all of `features`, as devices report them.
    pub fn fully_specified<'a>(&self, features: impl IntoIterator<Item = &'a str>) -> Vec<Target> {
        let mut combinations = vec![Vec::new()];
        for name in features {
            combinations = combinations
                .iter()
                .flat_map(|fixed: &Vec<(String, bool)>| {
                    [true, false].map(|on| [&fixed[..], &[(name.to_owned(), on)]].concat())
                })
                .collect();
        }
        let targets = combinations.into_iter();
        targets.map(|fixed| Target::new(self.clone(), fixed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_name_one_target() {
        for text in ["gfx90a:xnack+", "gfx90a-xnack+", "gfx90a_xnackp"] {
            assert_eq!(Target::parse_spelling(text).unwrap().to_string(), "gfx90a:xnack+");
        }
        for text in ["gfx90a:xnack-", "gfx90a-xnack-", "gfx90a_xnack_"] {
            assert_eq!(Target::parse_spelling(text).unwrap().to_string(), "gfx90a:xnack-");
        }
        let both = Target::parse_spelling("gfx942:xnack-:sramecc+").unwrap();
        assert_eq!(both.to_string(), "gfx942:sramecc+:xnack-");
    }

    #[test]
    fn a_qualifier_belongs_to_the_base_arch() {
        let strict: Target = "gfx1250-strict".parse().unwrap();
        assert_eq!(strict.base().as_str(), "gfx1250-strict");
        assert!(!strict.runs_on(&"gfx1250".parse().unwrap()));
        assert!("gfx9-4-generic".parse::<Target>().unwrap().base().is_generic());
    }

    #[test]
    fn invalid_targets_are_refused() {
        for text in [
            "",
            "gfx",
            "gfxabc",
            "sm_90",
            "gfx90a:",
            "gfx90a:xnack",
            "gfx90a:xnack+:xnack-",
            "gfx90a/..",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn fixed_features_must_agree_with_the_device() {
        let device: Target = "gfx90a:sramecc+:xnack-".parse().unwrap();
        assert!("gfx90a".parse::<Target>().unwrap().runs_on(&device));
        assert!("gfx90a:xnack-".parse::<Target>().unwrap().runs_on(&device));
        assert!(!"gfx90a:xnack+".parse::<Target>().unwrap().runs_on(&device));
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(SUPPORTED.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (arch, features) in SUPPORTED {
            assert!(features.is_sorted(), "{arch}");
            assert!(arch.parse::<BaseArch>().is_ok(), "{arch}");
        }
    }

    #[test]
    fn combinations_of_all_features() {
        let arch: BaseArch = "gfx90a".parse().unwrap();
        let targets = arch.fully_specified(arch.supported_features().iter().copied());
        let texts: Vec<_> = targets.iter().map(Target::to_string).collect();
        assert_eq!(
            texts,
            [
                "gfx90a:sramecc+:xnack+",
                "gfx90a:sramecc+:xnack-",
                "gfx90a:sramecc-:xnack+",
                "gfx90a:sramecc-:xnack-"
            ]
        );
        let plain: BaseArch = "gfx1100".parse().unwrap();
        assert_eq!(plain.fully_specified([]), [Target::from(plain.clone())]);
    }
}
