//! The texts of packages: summaries, descriptions, scripts and documents from `templates/`.
//!
//! A name that a template uses and its caller does not give is an error, never an empty text.

pub(super) mod licences;

use std::io::Write;

use flate2::{Compression, GzBuilder};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::BaseArch;

use crate::config::{SUMMARY_LIMIT, paragraphs};
use crate::drafts::EffectiveTexts;
use licences::Licence;
use rockpack_hardware::product_and_chip_names;
use rockpack_package::Rights;

/// Names of templates with their texts, which are in the files `templates/<folder><name><ending>`.
macro_rules! templates {
    ($folder:literal, $ending:literal: $($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../templates/", $folder, $name, $ending)))),*]
    };
}

const COPYRIGHT: (&str, &str) = ("copyright", include_str!("../../../../templates/copyright"));
const CHANGELOG: (&str, &str) = ("changelog", include_str!("../../../../templates/changelog"));

pub(super) const CHANGE: &str = "Packaged from the output of a ROCm build.";

pub(super) const DESCRIPTIONS: [(&str, &str); 16] = templates! { "descriptions/", ".txt":
    "all" "common" "component" "dbg" "dev" "doc" "group" "host" "hosts" "kernels" "listed" "part"
    "set" "shim" "tests" "unversioned"
};

const SCRIPTS: [(&str, &str); 17] = templates! { "", ".sh":
    "alternatives-post" "alternatives-postinst" "alternatives-postrm" "alternatives-postun"
    "alternatives-prerm" "debug-postinst" "debug-prerm" "folders-postun" "gpu-postinst" "gpu-rpm" "guard"
    "loader-post" "loader-postun" "path-type-change-postinst" "path-type-change-postrm"
    "path-type-change-preinst" "series-link"
};

/// The templates of scripts in Lua, which is built into rpm, by name.
const LUA_SCRIPTS: [(&str, &str); 4] = templates! { "", ".lua":
    "empty-folders-postun" "guard-pre" "lua-prefix" "path-type-change-pretrans"
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Description {
    pub summary: String,
    pub paragraphs: Vec<String>,
}

/// The names of GPUs and chips with these targets, each on one line of a description.
pub(super) fn gpu_names(archs: &[BaseArch]) -> String {
    let names = product_and_chip_names(archs).into_iter().map(|name| name.replace(' ', "\u{a0}"));
    names.collect::<Vec<_>>().join(", ")
}

#[derive(Debug)]
pub(super) struct Texts(Environment<'static>);

impl Texts {
    pub fn new() -> Result<Self> {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build();
        environment.set_syntax(syntax.map_err(fault)?);
        // Compiles each template once, not once per package.
        let scripts = SCRIPTS.into_iter().chain(LUA_SCRIPTS);
        let all = [COPYRIGHT, CHANGELOG].into_iter().chain(DESCRIPTIONS).chain(scripts);
        for (name, template) in all {
            environment.add_template(name, template).map_err(fault)?;
        }
        Ok(Self(environment))
    }

    pub fn render(&self, name: &str, values: Value) -> Result<String> {
        self.0.get_template(name).and_then(|template| template.render(values)).map_err(fault)
    }

    /// The description `name` of `subject`; its first line is the summary.
    pub fn description(&self, name: &str, subject: &str, values: Value) -> Result<Description> {
        let text = self.render(name, values)?;
        let (summary, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let summary = summary.trim().to_owned();
        if summary.chars().count() > SUMMARY_LIMIT {
            let message = format!(
                "the summary of {subject} has more than {SUMMARY_LIMIT} characters: {summary}"
            );
            let hint = "shorten the name of the group or the artifact";
            return Err(Error::new(Kind::Config, message).hint(hint));
        }
        Ok(Description { summary, paragraphs: paragraphs(rest) })
    }

    /// Debian's machine-readable `copyright` file (DEP-5): licence texts of the artifact are quoted in full.
    pub fn copyright(
        &self,
        family: &str,
        effective: &EffectiveTexts<'_>,
        texts: &[Licence],
    ) -> Result<String> {
        let EffectiveTexts { rights: Rights { license, copyright, .. }, homepage, .. } = effective;
        let own = copyright.clone().map(|own| vec![own]);
        let mut holders = own.unwrap_or_else(|| licences::holders(texts));
        if holders.is_empty() {
            holders.push(format!("the authors of {family}"));
        }
        let texts = texts.iter();
        let texts = texts.map(|it| context! { path => it.path.as_str(), lines => &it.lines });
        let texts: Vec<Value> = texts.collect();
        let holders = holders.join("\n ");
        let values = context! { family, license, homepage, holders, texts };
        self.render(COPYRIGHT.0, values)
    }

    /// Debian's `changelog.Debian.gz`; the gzip header has no name and no time.
    pub fn changelog(
        &self,
        package: &str,
        version: &str,
        maintainer: &str,
        date: &str,
    ) -> Result<Vec<u8>> {
        let values = context! { package, version, maintainer, date, change => CHANGE };
        let text = self.render(CHANGELOG.0, values)?;
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
        let written = packed.write_all(text.as_bytes());
        written
            .and_then(|()| packed.finish())
            .map_err(|e| Error::bug("cannot compress in memory").cause(e))
    }
}

fn fault(error: minijinja::Error) -> Error {
    Error::bug("a template of the program cannot be rendered").cause(error)
}

#[cfg(test)]
mod tests {
    use rockpack_package::Format;

    use super::*;
    use crate::prefix::Prefix;

    #[test]
    fn a_name_that_is_not_given_is_an_error() {
        let texts = Texts::new().unwrap();
        assert!(texts.description("dev", "x", context! {}).is_err());
        assert!(texts.description("dev", "x", context! { name => "x" }).is_ok());
        assert!(texts.description("nothing", "x", context! {}).is_err());
    }

    #[test]
    fn templates_have_names_of_their_own() {
        let scripts = SCRIPTS.into_iter().chain(LUA_SCRIPTS);
        let all = [COPYRIGHT, CHANGELOG].into_iter().chain(DESCRIPTIONS).chain(scripts);
        let names = all.map(|(name, _)| name);
        let distinct: std::collections::BTreeSet<_> = names.clone().collect();
        assert_eq!(distinct.len(), names.count());
    }

    #[test]
    fn a_summary_that_is_too_long_is_refused() {
        let values = context! { name => "x".repeat(80) };
        let error = Texts::new().unwrap().description("dev", "rocm-x", values).unwrap_err();
        assert!(error.message().contains("rocm-x"));
    }

    /// Runs the guard of a `.deb` on a prefix below `root`.
    fn guarded(root: &std::path::Path, prefix: &str) -> bool {
        let prefix = Prefix::new(prefix).unwrap();
        let system = prefix.system_folders(Format::Deb).join(" | ");
        let values = context! { package => "rocm-x", prefix => prefix.absolute(), system };
        let script = Texts::new().unwrap().render("guard", values).unwrap();
        let mut shell = std::process::Command::new("sh");
        let status = shell.arg("-c").arg(script).env("DPKG_ROOT", root).status();
        status.unwrap().success()
    }

    #[test]
    fn the_guard_refuses_a_link_in_the_vendors_own_folders() {
        for (system, own) in [("opt", "amd"), ("usr/lib", "amd"), ("var/opt", "amd")] {
            let prefix = format!("/{system}/{own}/rocm");
            let root = tempfile::tempdir().unwrap();
            let real = root.path().join("real");
            assert!(guarded(root.path(), &prefix), "nothing is there yet");
            std::fs::create_dir_all(root.path().join(&prefix[1..])).unwrap();
            assert!(guarded(root.path(), &prefix));
            for (link, passes) in [(system.to_owned(), true), (format!("{system}/{own}"), false)] {
                let place = root.path().join(&link);
                std::fs::rename(&place, &real).unwrap();
                std::os::unix::fs::symlink(&real, &place).unwrap();
                assert_eq!(guarded(root.path(), &prefix), passes, "{link}");
                std::fs::remove_file(&place).unwrap();
                std::fs::rename(&real, &place).unwrap();
            }
        }
    }

    #[test]
    fn the_guard_knows_no_folder_of_the_system_above_a_prefix_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("real/rocm")).unwrap();
        std::os::unix::fs::symlink("real", root.path().join("nfs")).unwrap();
        assert!(!guarded(root.path(), "/nfs/rocm"));
        // A link above the root does not matter.
        std::os::unix::fs::symlink(root.path(), root.path().join("link")).unwrap();
        assert!(guarded(&root.path().join("link"), "/opt/rocm-7.1"));
    }

    #[test]
    fn a_changelog_has_no_time_in_its_header() {
        let texts = Texts::new().unwrap();
        let packed = texts.changelog("p", "1-1", "A <a@b.example>", "date").unwrap();
        assert_eq!(packed[4..8], [0; 4]);
        assert_eq!(packed[3], 0, "no name");
    }
}
