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

/// The hint for receipts and plans that no build wrote.
const UNREAL: &str = "no build writes that, and nothing of it is taken over: build the set again, or \
                      restore its receipt";

impl Receipt {
    /// Refuses a receipt whose prefix, version, release, or names of packages, archs and groups are not spelt
    /// as a build spells them.
    pub(super) fn says_what_packages_can(&self) -> Result<()> {
        refuse_prefix(&self.prefix)?;
        let said = [("version", &self.version), ("release", &self.release)];
        let wrong = said.into_iter().find(|(_, text)| !is_rpm_part(text));
        wrong.map_or(Ok(()), |(what, text)| Err(odd(text, what)))?;
        let of_packages = self.all_packages().find_map(PackageRecord::odd_word);
        let found = of_packages
            .or_else(|| self.odd_package_of_code_objects())
            .or_else(|| self.odd_file_of_part());
        found.map_or(Ok(()), |(text, what)| Err(odd(text, what)))
    }

    fn odd_package_of_code_objects(&self) -> Option<(&str, &'static str)> {
        let mut packages = self.all_code_objects().map(|record| &record.package);
        let odd = packages.find(|package| !is_of(package, "+-._~^"))?;
        Some((odd, "name"))
    }

    fn odd_file_of_part(&self) -> Option<(&str, &'static str)> {
        let odd = self.part.as_ref()?.packages.keys().find(|file| !is_of(file, "+-._~^"))?;
        Some((odd, "file name"))
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
        match single.find(|record| !places.insert((&record.place, &record.target))) {
            None => Ok(()),
            Some(record) => {
                let (target, path) = (&record.target, record.place.path());
                let what =
                    format!("a code object for {target} in {path}").escape_debug().to_string();
                Err(twice(&what))
            }
        }
    }
}

impl PackageRecord {
    /// A word that no build writes, and the kind of text it should be.
    fn odd_word(&self) -> Option<(&str, &'static str)> {
        let texts = [(&self.id, "name"), (&self.file_name, "file name")];
        if let Some((text, what)) = texts.into_iter().find(|(text, _)| !is_of(text, "+-._~^")) {
            return Some((text, what));
        }
        if let Some(group) = self.group.as_ref().filter(|group| !is_of(group, "-.")) {
            return Some((group, "group of kernels"));
        }
        if let Some(arch) = self.archs.iter().find(|arch| !is_of(arch, "-")) {
            return Some((arch, "arch"));
        }
        if !is_version(self.format, &self.version) {
            return Some((&self.version, "version"));
        }
        self.update.as_ref()?.odd_word(self.format)
    }
}

impl UpdateRecord {
    /// A word that no build writes, and the kind of text it should be. These texts go into relations and
    /// scripts.
    fn odd_word(&self, format: Format) -> Option<(&str, &'static str)> {
        let kinds = [
            RelationKind::Breaks,
            RelationKind::Replaces,
            RelationKind::Conflicts,
            RelationKind::Obsoletes,
        ];
        for RelationRecord { kind, name, comparison, version } in &self.relations {
            let is_bound = *comparison == Some(Comparison::Less) && kinds.contains(kind);
            if !is_bound || !is_name(format, name) {
                return Some((name, "relation to a package that had paths"));
            }
            match version {
                Some(text) if !is_version(format, text) => return Some((text, "version")),
                Some(_) => {}
                None => return Some((name, "relation to a package that had paths")),
            }
        }
        for PathChangeRecord { path, target, members, .. } in &self.paths {
            let is_absolute = path.strip_prefix('/').is_some_and(is_tree_path);
            let odd_member = members.iter().find(|member| !is_tree_path(member));
            let odd_target = target.as_ref().filter(|text| text.contains(char::is_control));
            let odd = Some(path).filter(|_| !is_absolute).or(odd_member).or(odd_target);
            if let Some(text) = odd {
                return Some((text, "path"));
            }
        }
        None
    }
}

/// Whether the text is the path of a tree.
pub(super) fn is_tree_path(text: &str) -> bool {
    TreePath::new(text).is_ok()
}

/// Whether a text consists of letters, digits and these signs, and starts with a letter, a digit or `_`.
fn is_of(text: &str, signs: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

/// Refuses a prefix that is not an absolute path in normal form, or has characters that tools could read
/// differently. Checks receipts and plans.
pub(super) fn refuse_prefix(prefix: &str) -> Result<()> {
    let is_plain = prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c));
    let is_path = prefix.strip_prefix('/').is_some_and(is_tree_path);
    if is_path && is_plain { Ok(()) } else { Err(odd(prefix, "prefix")) }
}

fn odd(text: &str, what: &str) -> Error {
    let message = format!("`{}` is no {what} of packages", text.escape_debug());
    Error::malformed(message).structure("receipt").hint(UNREAL)
}

fn twice(what: &str) -> Error {
    let hint = "no build writes that: build the set again, or restore its receipt";
    Error::malformed(format!("names {what} twice")).structure("receipt").hint(hint)
}

#[cfg(test)]
mod tests {
    use crate::receipt::{Receipt, SCHEMA};

    fn parsed(package: &str, more: &str) -> Result<Receipt, String> {
        let text = format!(
            r#"{{"schema":{SCHEMA},"generator":"","version":"1","release":"1","prefix":"/x",
            "content_date":0,"packages":[{package}],"findings":[],{more}}}"#
        );
        Receipt::parse(text.as_bytes()).map_err(|error| error.in_full())
    }

    #[test]
    fn words_are_those_that_packages_can_have() {
        let package = r#"{"id":"rocm-x","format":"deb","file_name":"rocm-x_1.deb","size":1,
            "installed_size":2,"sha256":"","role":"kernels","group":"gfx11X","archs":["gfx1100"],
            "code_objects":0,"version":"1:1-1","relations":[],"members":[]}"#;
        let none = r#""code_objects":[]"#;
        parsed(package, none).unwrap();
        for (good, bad, what) in [
            (r#""rocm-x""#, r#""rocm x""#, "`rocm x` is no name"),
            (r#""rocm-x""#, r#""-rf""#, "is no name"),
            ("rocm-x_1.deb", "../x_1.deb", "is no file name"),
            ("gfx11X", "gfx11/X", "is no group of kernels"),
            ("gfx1100", "gfx1100\\u001b[2J", "`gfx1100\\u{1b}[2J` is no arch"),
            ("1:1-1", "1-1) | bash", "is no version"),
        ] {
            let error = parsed(&package.replace(good, bad), none).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        parsed(package, &part_fields("a_1.deb")).unwrap();
        assert!(parsed(package, &part_fields("a/b.deb")).unwrap_err().contains("is no file name"));
    }

    fn part_fields(file: &str) -> String {
        let part = format!(r#"{{"index":1,"of":1,"plan":"","packages":{{"{file}":1}}}}"#);
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
            "sha256":"","role":"host","code_objects":0,"version":"1-1","relations":[],
            "members":[],"update":{update}}}"#
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
        let member = r#"{"path":"/x","kind":"link","mode":511}"#;
        let package = format!(
            r#"{{"id":"x","format":"rpm","file_name":"x.rpm","size":1,"installed_size":2,"sha256":"",
            "role":"host","code_objects":0,"version":"1-1","relations":[],
            "members":[{member},{member}]}}"#
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
