//! Refuses receipts that no build writes: with names that nobody could install, or with duplicate records. Of
//! two records for one thing, one would be believed and the other ignored.

use std::collections::BTreeSet;

use rockpack_base::error::{Error, Result};
use rockpack_base::formats::spelling::{is_name, is_rpm_part, is_version};
use rockpack_base::tree::TreePath;

use super::{
    CodeObjectPlace, PackageRecord, PathChangeRecord, Receipt, RelationRecord, UpdateRecord,
};
use crate::package::{Comparison, Format, RelationKind};

impl Receipt {
    /// Refuses a receipt whose prefix, versions, names, or means of updates are not spelt as a build spells
    /// them.
    pub(super) fn says_what_packages_can(&self) -> Result<()> {
        refuse_prefix(&self.prefix)?;
        let of_set = [&self.version, &self.release].into_iter().filter(|text| !is_rpm_part(text));
        let odd_packages = self.all_packages().filter(|it| !is_version(it.format, &it.version));
        let versions = of_set.chain(odd_packages.map(|package| &package.version));
        let names = self.names().filter(|text| !is_plain_name(text));
        let versions = versions.map(|text| (text, "version"));
        if let Some((text, what)) = versions.chain(names.map(|text| (text, "name"))).next() {
            return Err(odd(text, what));
        }
        let updates = self.all_packages().map(|package| (package.format, &package.update));
        let mut updates = updates.filter_map(|(format, update)| Some((format, update.as_ref()?)));
        updates.try_for_each(|(format, update)| update.refuse_odd(format))
    }

    /// The names of packages, files, groups and archs.
    fn names(&self) -> impl Iterator<Item = &String> {
        let of_packages = self.all_packages().flat_map(|package| {
            let names = [&package.id, &package.file_name].into_iter();
            names.chain(&package.group).chain(&package.archs)
        });
        let of_part = self.part.iter().flat_map(|part| part.packages.keys());
        let documents = self.spdx.iter().map(|document| &document.file_name);
        let code_objects = self.all_code_objects().map(|record| &record.package);
        of_packages.chain(of_part).chain(documents).chain(code_objects)
    }

    /// Refuses a receipt that has a package, a path of a package, or a code object twice. Entries of offload
    /// bundles may share a name.
    pub(super) fn names_each_once(&self) -> Result<()> {
        let (mut files, mut packages) = (BTreeSet::new(), BTreeSet::new());
        for package in self.all_packages() {
            let PackageRecord { file_name, format, id, members, .. } = package;
            let mut paths = BTreeSet::new();
            let repeated = members.iter().find(|member| !paths.insert(&member.path));
            let path = repeated.map(|member| member.path.escape_debug());
            let what = match (files.insert(file_name), packages.insert((format, id)), path) {
                (true, true, None) => continue,
                (true, true, Some(path)) => format!("the path {path} of {file_name}"),
                (false, _, _) => format!("the file {file_name}"),
                (true, false, _) => format!("the {format} package {id}"),
            };
            return Err(twice(&what));
        }
        let mut places = BTreeSet::new();
        let mut single = self
            .all_code_objects()
            .filter(|record| !matches!(record.place, CodeObjectPlace::File { entry: Some(_), .. }));
        let repeated = single.find(|record| !places.insert((&record.place, &record.target)));
        repeated.map_or(Ok(()), |record| {
            let [target, path] =
                [record.target.as_str(), record.place.path()].map(str::escape_debug);
            Err(twice(&format!("a code object for {target} in {path}")))
        })
    }
}

impl UpdateRecord {
    /// Refuses texts that no build writes: they go into relations and scripts.
    fn refuse_odd(&self, format: Format) -> Result<()> {
        let kinds = [
            RelationKind::Breaks,
            RelationKind::Replaces,
            RelationKind::Conflicts,
            RelationKind::Obsoletes,
        ];
        for RelationRecord { kind, name, comparison, version } in &self.relations {
            let has_version = version.as_ref().is_some_and(|text| is_version(format, text));
            let is_bound = *comparison == Some(Comparison::Less) && kinds.contains(kind);
            if !(is_bound && has_version && is_name(format, name)) {
                return Err(odd(name, "relation to a package that had paths"));
            }
        }
        for PathChangeRecord { path, target, members, .. } in &self.paths {
            let is_absolute = path.strip_prefix('/').is_some_and(is_tree_path);
            let odd_member = members.iter().find(|member| !is_tree_path(member));
            let odd_target = target.as_ref().filter(|text| text.contains(char::is_control));
            let odd_path = Some(path).filter(|_| !is_absolute).or(odd_member).or(odd_target);
            odd_path.map_or(Ok(()), |text| Err(odd(text, "path")))?;
        }
        Ok(())
    }
}

/// Whether the text is the path of a tree.
pub(super) fn is_tree_path(text: &str) -> bool {
    TreePath::new(text).is_ok()
}

/// Whether a text consists of letters, digits and `+-._~^`, and starts with a letter, a digit or `_`.
fn is_plain_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-._~^".contains(c))
}

/// Refuses a prefix that is not an absolute path in normal form, or has characters that tools could read
/// differently. Checks receipts and plans.
pub(super) fn refuse_prefix(prefix: &str) -> Result<()> {
    let is_plain = prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c));
    let is_path = prefix.strip_prefix('/').is_some_and(is_tree_path);
    if is_path && is_plain { Ok(()) } else { Err(odd(prefix, "prefix")) }
}

fn odd(text: &str, what: &str) -> Error {
    unreal(format!("`{}` is no {what} of packages", text.escape_debug()))
}

fn twice(what: &str) -> Error {
    unreal(format!("names {what} twice"))
}

/// The error for a receipt or plan that no build wrote.
fn unreal(message: String) -> Error {
    let hint = "no build writes that, and nothing of it is taken over: build the set again, or restore \
                its receipt";
    Error::malformed(message).structure("receipt").hint(hint)
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

    #[test]
    fn a_code_object_and_a_path_are_there_once() {
        let archive = r#""binary":"a","archive":"/x/a","key":"a#0""#;
        parsed_in_one_place(archive, ["gfx90a", "gfx942"]).unwrap();
        let error = parsed_in_one_place(archive, ["gfx90a", "gfx90a"]).unwrap_err();
        assert!(error.contains("names a code object for gfx90a in /x/a twice"), "{error}");
        parsed_in_one_place(r#""file":"/x/a""#, ["gfx90a", "gfx90a"]).unwrap_err();
        // Entries of offload bundles may share a name.
        parsed_in_one_place(r#""file":"/x/a","entry":"b""#, ["gfx90a", "gfx90a"]).unwrap();
        let folder = r#""/":{"x":{}}"#;
        let package = format!(
            r#"{{"id":"x","format":"rpm","file_name":"x.rpm","size":1,"installed_size":2,"sha256":"",
            "role":"host","version":"1-1","relations":[],"folders":{{{folder},{folder}}}}}"#
        );
        let error = parsed(&package, r#""code_objects":[]"#).unwrap_err();
        assert!(error.contains("names the path /x of x.rpm twice"), "{error}");
    }

    /// Parses a receipt with a code object for each of `targets` in one place.
    fn parsed_in_one_place(place: &str, targets: [&str; 2]) -> Result<Receipt, String> {
        let records = targets.map(|target| {
            format!(r#"{{"sha256":"","size":1,"target":"{target}","package":"x",{place}}}"#)
        });
        parsed("", &format!(r#""code_objects":[{}]"#, records.join(",")))
    }
}
