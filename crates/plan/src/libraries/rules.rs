//! The entries of `libraries` in the configuration and the scheme.

use rockpack_core::error::{Faults, Result};

use crate::config::{Config, ConfigDocument, LibrarySchema};
use crate::naming::Naming;
use crate::relations::parse;
use rockpack_package::{Format, Relation, RelationKind};
use rockpack_split::input::database::matches_path;

/// An entry of `libraries`: the dependencies on libraries from outside of the set.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LibraryRule {
    /// The entry's key: a soname with `*` for any characters, possibly after a family and `:`.
    pub key: String,
    /// Whether its value is `false`: no package depends on the library.
    pub is_ignored: bool,
    deb: Option<Relation>,
    rpm: Option<Relation>,
}

impl LibraryRule {
    pub fn matches(&self, soname: &str, family: &str) -> bool {
        match self.key.split_once(':') {
            Some((own, glob)) => own == family && matches_path(glob, soname),
            None => matches_path(&self.key, soname),
        }
    }

    pub fn relation(&self, format: Format) -> Option<&Relation> {
        format.select(&self.deb, &self.rpm).as_ref()
    }

    /// Whether a package of `format` depends on something other than the library, or on nothing. In a `.deb`, an
    /// entry for a single library names its package, as a distribution's table does.
    pub fn replaces(&self, format: Format) -> bool {
        let is_other = format == Format::Rpm || self.key.contains('*');
        self.is_ignored || is_other && self.relation(format).is_some()
    }
}

/// External libraries and the dependencies on them: those of the configuration, then those of the scheme.
pub(crate) fn read(config: &Config, naming: &Naming) -> Result<Vec<LibraryRule>> {
    let (scheme, mut faults) = (&naming.scheme, Faults::default());
    let mut rules = Vec::new();
    for (key, library) in &config.keys.libraries.0 {
        rules.push(library_rule(key, library, config, |text| Ok(text.to_owned()), &mut faults)?);
    }
    for (key, library) in &scheme.libraries.0 {
        rules.push(library_rule(key, library, scheme, |text| naming.set_text(text), &mut faults)?);
    }
    faults.finish().map(|()| rules)
}

fn library_rule(
    key: &str,
    library: &LibrarySchema,
    document: &ConfigDocument,
    fill_in: impl Fn(&str) -> Result<String>,
    faults: &mut Faults,
) -> Result<LibraryRule> {
    let mut relation = |format: Format| -> Result<Option<Relation>> {
        let Some(text) = library.relation(format) else { return Ok(None) };
        let parsed = parse(format, RelationKind::Depends, &fill_in(text)?);
        let keys = ["libraries", key, format.as_str()];
        Ok(faults.keep(parsed.map_err(|error| document.located(&keys, &error))))
    };
    Ok(LibraryRule {
        deb: relation(Format::Deb)?,
        rpm: relation(Format::Rpm)?,
        key: fill_in(key)?,
        is_ignored: *library == LibrarySchema::Ignored,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_libraries_match_sonames_of_a_family() {
        let rule = |key: &str| {
            let key = key.to_owned();
            LibraryRule { key, is_ignored: false, deb: None, rpm: None }
        };
        for (key, is_matching) in [
            ("libpython3.11.so.1.0", true),
            ("libpython3.*.so.*", true),
            ("rocm-gdb:libpython3.*", true),
            ("libpython3.12.so.1.0", false),
            ("libpython3", false),
            ("rocm-gd:libpython3.*", false),
        ] {
            assert_eq!(rule(key).matches("libpython3.11.so.1.0", "rocm-gdb"), is_matching, "{key}");
        }
        let relation = parse(Format::Deb, RelationKind::Depends, "a | b").ok();
        let replaced = |rule: LibraryRule| Format::ALL.map(|format| rule.replaces(format));
        assert_eq!(replaced(rule("liba.so.*")), [false, false]);
        assert_eq!(replaced(LibraryRule { is_ignored: true, ..rule("liba.so.1") }), [true, true]);
        let deb = |key| LibraryRule { deb: relation.clone(), ..rule(key) };
        assert_eq!(replaced(deb("liba.so.1")), [false, false]);
        assert_eq!(replaced(deb("liba.so.*")), [true, false]);
        let rpm = LibraryRule { rpm: relation.clone(), ..rule("liba.so.1") };
        assert_eq!(replaced(rpm), [false, true]);
    }
}
