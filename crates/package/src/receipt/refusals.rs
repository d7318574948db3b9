//! Refuses receipts with texts that no package can have: they would go into relations, scripts and messages of
//! later packages.

use rockpack_archive::spelling::{is_name, is_rpm_part, is_version};
use rockpack_core::error::{Error, Result};
use rockpack_core::tree::TreePath;

use super::{PackageRecord, Receipt, RelationRecord, UpdateRecord};
use crate::{Comparison, Format, PathChange, RelationKind};

/// The kinds of relations to packages that had paths.
const OF_UPDATES: [RelationKind; 4] = [
    RelationKind::Breaks,
    RelationKind::Replaces,
    RelationKind::Conflicts,
    RelationKind::Obsoletes,
];

impl Receipt {
    /// Refuses a receipt whose prefix, versions, names, or means of updates are not spelt as a build spells
    /// them.
    pub(super) fn refuse_odd(&self) -> Result<()> {
        refuse_prefix(&self.prefix)?;
        for text in [&self.version, &self.release] {
            require(is_rpm_part(text), text, "version")?;
        }
        for package in self.all_packages() {
            let PackageRecord { format, id, file_name, version, group, archs, .. } = package;
            require(is_version(*format, version), version, "version")?;
            let mut names = [id, file_name].into_iter().chain(group).chain(archs);
            names.try_for_each(|text| require_name(text))?;
            package.update.iter().try_for_each(|update| update.refuse_odd(*format))?;
        }
        let of_part = self.part.iter().flat_map(|part| part.packages.keys());
        let documents = self.spdx.iter().map(|document| &document.file_name);
        let code_objects = self.all_code_objects().map(|record| &record.package);
        of_part.chain(documents).chain(code_objects).try_for_each(|text| require_name(text))
    }
}

impl UpdateRecord {
    fn refuse_odd(&self, format: Format) -> Result<()> {
        for RelationRecord { kind, name, comparison, version } in &self.relations {
            let has_version = version.as_ref().is_some_and(|text| is_version(format, text));
            let is_bound = *comparison == Some(Comparison::Less) && OF_UPDATES.contains(kind);
            let is_good = is_bound && has_version && is_name(format, name);
            require(is_good, name, "relation to a package that had paths")?;
        }
        for PathChange { path, target, members, .. } in &self.paths {
            require(path.strip_prefix('/').is_some_and(is_tree_path), path, "path")?;
            members.iter().try_for_each(|text| require(is_tree_path(text), text, "path"))?;
            let mut target = target.iter();
            target.try_for_each(|text| require(!text.contains(char::is_control), text, "path"))?;
        }
        Ok(())
    }
}

/// Whether the text is the path of a tree.
pub(super) fn is_tree_path(text: &str) -> bool {
    TreePath::new(text).is_ok()
}

/// Refuses a name unless it consists of letters, digits and `+-._~^`, and starts with a letter, a digit or `_`.
pub(super) fn require_name(text: &str) -> Result<()> {
    let is_good = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-._~^".contains(c));
    require(is_good, text, "name")
}

/// Refuses a prefix that is not an absolute path in normal form, or has characters that tools could read
/// differently. Checks receipts and plans.
pub(super) fn refuse_prefix(prefix: &str) -> Result<()> {
    let is_plain = prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c));
    let is_path = prefix.strip_prefix('/').is_some_and(is_tree_path);
    require(is_path && is_plain, prefix, "prefix")
}

/// Refuses `text`, a `what` of packages, unless it `is_good`.
fn require(is_good: bool, text: &str, what: &str) -> Result<()> {
    if is_good {
        return Ok(());
    }
    let message = format!("`{}` is no {what} of packages", text.escape_debug());
    let hint = "no build writes that, and nothing of it is taken over: build the set again, or restore \
                its receipt";
    Err(Error::malformed(message).structure("receipt").hint(hint))
}

#[cfg(test)]
mod tests {
    use crate::receipt::{Receipt, SCHEMA};

    fn parsed(package: &str, more: &str) -> Result<Receipt, String> {
        let text = format!(
            r#"{{"schema":{SCHEMA},"rockpack_version":"","version":"1","release":"1","prefix":"/x",
            "content_date":0,"packages":[{package}],"findings":[],{more}}}"#
        );
        Receipt::parse(text.as_bytes()).map_err(|error| error.in_full())
    }

    #[test]
    fn words_are_those_that_packages_can_have() {
        let package = r#"{"id":"rocm-x","format":"deb","file_name":"rocm-x_1.deb","size":1,
            "installed_size":2,"sha256":"","role":"kernels","group":"gfx11X","archs":["gfx1100"],
            "version":"1:1-1","relations":[],"folders":{}}"#;
        let none = r#""code_objects":[]"#;
        parsed(package, none).unwrap();
        for (good, bad, what) in [
            (r#""rocm-x""#, r#""rocm x""#, "`rocm x` is no name"),
            (r#""rocm-x""#, r#""-rf""#, "is no name"),
            ("rocm-x_1.deb", "../x_1.deb", "is no name"),
            ("gfx11X", "gfx11/X", "is no name"),
            ("gfx1100", "gfx1100\\u001b[2J", "`gfx1100\\u{1b}[2J` is no name"),
            ("1:1-1", "1-1) | bash", "is no version"),
        ] {
            let error = parsed(&package.replace(good, bad), none).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        parsed(package, &part_fields("a_1.deb")).unwrap();
        assert!(parsed(package, &part_fields("a/b.deb")).unwrap_err().contains("is no name"));
    }

    fn part_fields(file: &str) -> String {
        let part = format!(r#"{{"index":1,"of":1,"plan_sha256":"","packages":{{"{file}":1}}}}"#);
        format!(r#""code_objects":[],"part":{part}"#)
    }

    #[test]
    fn means_of_updates_are_those_that_builds_write() {
        let relation =
            r#"{"relations":[{"kind":"breaks","name":"y","comparison":"<","version":"1"}]}"#;
        let path = r#"{"paths":[{"path":"/x","was":"link","is":"directory","target":"y",
            "members":["a/b"]}]}"#;
        parsed_update(relation).unwrap();
        parsed_update(path).unwrap();
        for (good, bad) in [
            ("breaks", "depends"),
            (r#""y""#, r#""y\nPre-Depends: z""#),
            (r#""1""#, r#""1) | z""#),
            (r#""<""#, r#""=""#),
        ] {
            parsed_update(&relation.replace(good, bad)).unwrap_err();
        }
        for (good, bad) in
            [(r#""/x""#, r#""x""#), (r#""y""#, r#""y\nz""#), ("a/b", "../b"), ("a/b", "a\\nb")]
        {
            parsed_update(&path.replace(good, bad)).unwrap_err();
        }
    }

    fn parsed_update(update: &str) -> Result<Receipt, String> {
        let package = format!(
            r#"{{"id":"x","format":"deb","file_name":"x.deb","size":1,"installed_size":2,
            "sha256":"","role":"host","version":"1-1","relations":[],
            "folders":{{}},"update":{update}}}"#
        );
        parsed(&package, r#""code_objects":[]"#)
    }

    /// Of two records for one path, one would be believed and the other ignored.
    #[test]
    fn a_path_is_there_once() {
        let folder = r#""/":{"x":{}}"#;
        let package = format!(
            r#"{{"id":"x","format":"rpm","file_name":"x.rpm","size":1,"installed_size":2,"sha256":"",
            "role":"host","version":"1-1","relations":[],"folders":{{{folder},{folder}}}}}"#
        );
        let error = parsed(&package, r#""code_objects":[]"#).unwrap_err();
        assert!(error.contains("a path is given twice"), "{error}");
    }
}
