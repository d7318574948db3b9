//! The features that a processor's target ID can fix.
//!
//! Source: the processor tables of LLVM (`llvm/lib/TargetParser/TargetParser.cpp`, FEATURE_XNACK and
//! FEATURE_SRAMECC; "Processors" in the AMDGPU user guide). Unlisted processors support no feature. gfx1250
//! always replays page faults, so XNACK is no choice there.

use super::{BaseArch, Target};

const XNACK: &[&str] = &["xnack"];
const SRAMECC_XNACK: &[&str] = &["sramecc", "xnack"];

/// The supported features, sorted by base arch.
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
