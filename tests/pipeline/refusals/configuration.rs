//! Packaging configurations with faults, and the line and column that the error names.

use std::fs;

use support::example::configuration;

use crate::refusals::{Bad, USAGE, refused};

/// The example as JSON and as TOML.
fn json() -> String {
    fs::read_to_string(configuration()).unwrap()
}

const TOML: &str = r#"primary_shard = "gfx110X-build"

[architecture_groups.gfx110X]
display_name = "ROCm gfx110X (RDNA3)"
architectures = ["gfx1100", "gfx1101", "gfx1102"]

[architecture_groups.gfx115X]
display_name = "ROCm gfx115X (RDNA3.5)"
architectures = ["gfx1151"]

[architecture_groups.gfx120X]
display_name = "ROCm gfx120X (RDNA4)"
architectures = ["gfx1200", "gfx1201"]

[validation]
error_on_duplicate_device_code = true
"#;

/// Refuses `text` as the configuration file `name`. In the first of `expected`, `{}` means that file.
fn refuses(name: &str, text: &str, expected: &[&str]) {
    let bad = Bad::new();
    let file = bad.folder.path().join(name);
    fs::write(&file, text).unwrap();
    let place = format!("{}: {}", file.display(), expected[0]);
    let expected: Vec<&str> =
        [place.as_str()].into_iter().chain(expected[1..].iter().copied()).collect();
    refused(&mut with(&bad, &file), USAGE, &expected);
    assert!(!bad.out().exists());
}

fn with(bad: &Bad, file: &std::path::Path) -> std::process::Command {
    let mut command = support::example::rockpack();
    command.args(["build", "--version", "7.1.0", "--artifacts"]).arg(bad.shards());
    command.arg("--config").arg(file).arg("--out").arg(bad.out());
    command
}

/// Replaces `what` in `text`. Returns the new text and the place of `what` as `line L, column C: `, with
/// `columns` added to C.
fn replaced(text: &str, what: &str, with: &str, columns: usize) -> (String, String) {
    let before = &text[..text.find(what).unwrap_or_else(|| panic!("no {what}"))];
    let line = before.lines().count() + usize::from(before.ends_with('\n'));
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1 + columns;
    (text.replacen(what, with, 1), format!("line {line}, column {column}: "))
}

#[test]
fn the_toml_of_this_test_is_good() {
    let bad = Bad::new();
    let file = bad.folder.path().join("packaging.toml");
    fs::write(&file, TOML).unwrap();
    support::tools::run(&mut with(&bad, &file));
}

#[test]
fn a_group_without_archs_is_refused() {
    let (text, _) = replaced(&json(), "[\"gfx1151\"]", "[]", 0);
    let (_, place) = replaced(&json(), "{ \"display_name\": \"ROCm gfx115X", "", 0);
    refuses("c.json", &text, &[&place, "architecture_groups.gfx115X: has no architectures"]);
    let (text, _) = replaced(TOML, "[\"gfx1151\"]", "[]", 0);
    refuses("c.toml", &text, &["line 7, column ", "gfx115X: has no architectures", "remove it"]);
}

#[test]
fn an_unknown_primary_shard_is_refused() {
    let (text, place) = replaced(&json(), "\"gfx110X-build\"", "\"gfx110x-build\"", 0);
    let expected = [
        &place,
        "primary_shard: there is no shard `gfx110x-build`",
        "the shards are gfx110X-build, gfx1151-build, gfx120X-build",
    ];
    refuses("c.json", &text, &expected);
    let (text, place) = replaced(TOML, "\"gfx110X-build\"", "\"gfx110x-build\"", 0);
    refuses("c.toml", &text, &[&place, "there is no shard `gfx110x-build`"]);
}

#[test]
fn an_arch_in_two_groups_is_refused() {
    let expected = "gfx1100 is already in the group gfx110X";
    let (text, place) = replaced(&json(), "\"gfx1151\"", "\"gfx1100\"", 0);
    refuses("c.json", &text, &[&place, "gfx115X.architectures.0", expected]);
    let (text, place) = replaced(TOML, "\"gfx1151\"", "\"gfx1100\"", 0);
    refuses("c.toml", &text, &[&place, "gfx115X.architectures.0", expected]);
}

#[test]
fn a_mistyped_key_is_refused() {
    let hint = "did you mean `architecture_groups`?";
    let (text, place) = replaced(&json(), "\"architecture_groups\"", "\"architecture_group\"", 19);
    refuses("c.json", &text, &[&place, "unknown field `architecture_group`", hint]);
    let (text, place) = replaced(TOML, "display_name", "dispaly_name", 0);
    let expected = [&place, "unknown field `dispaly_name`", "did you mean `display_name`?"];
    refuses("c.toml", &text, &expected);
}

#[test]
fn a_value_of_another_type_is_refused() {
    let (text, place) = replaced(&json(), "[\"gfx1151\"]", "\"gfx1151\"", 8);
    refuses("c.json", &text, &[&place, "expected a sequence"]);
    let (text, place) = replaced(TOML, "[\"gfx1151\"]", "7", 0);
    refuses("c.toml", &text, &[&place, "expected a sequence"]);
}

#[test]
fn what_is_no_json_or_toml() {
    let (text, _) = replaced(&json(), "[\"gfx1151\"]", "[\"gfx1151\"", 0);
    refuses("c.json", &text, &["line 4, column ", "expected `,` or `]`"]);
    let (text, _) = replaced(TOML, "[\"gfx1151\"]", "[\"gfx1151\"", 0);
    refuses("c.toml", &text, &["line 11, column 1: ", "expected `,`"]);
    refuses("c.json", "", &["line 1, column 0: "]);
}

#[test]
fn what_is_no_arch() {
    let (text, place) = replaced(&json(), "\"gfx1151\"", "\"gtx1151\"", 0);
    refuses("c.json", &text, &[&place, "`gtx1151` is not a GPU arch", "gfx90a"]);
}

/// Every arch that a configuration names must be known or declared.
#[test]
fn archs_that_nobody_knows() {
    let (text, place) = replaced(&json(), "\"gfx1151\"", "\"gfx11510x\"", 0);
    let expected = "this version of rockpack does not know the GPU arch `gfx11510x`";
    refuses("c.json", &text, &[&place, expected, "did you mean `gfx1151`? (`additional_archit"]);
    for (tables, key) in [
        ("components.blas_lib.exclude_architectures = ['gfx1130']", "gfx1103"),
        ("packages.rocm-blas.include_architectures = ['gfx90aa']", "gfx90a"),
        ("architecture_groups.x.architectures = ['gfx1250-strct']", "gfx1250-strict"),
        ("architecture_groups.x.architectures = ['gfx11-genric']", "gfx11-generic"),
        ("architecture_groups.x.architectures = ['GFX1030']", "gfx1030"),
        (
            "databases = [{ name = 'x', directories = ['y'], \
             directory_archs = { z = ['gfx10300x'] } }]",
            "gfx1030",
        ),
    ] {
        let meant = format!("did you mean `{key}`?");
        refuses("c.toml", &format!("{tables}\n"), &["line 1, column ", &meant]);
    }
    let declared = "additional_architectures = ['gfx10300x']\n";
    refuses(
        "c.toml",
        declared,
        &["line 1", "does not look like a GPU arch", "did you mean `gfx1030`?"],
    );
    let family = "architecture_groups.x.architectures = ['gfx120X']\n";
    refuses("c.toml", family, &["line 1", "is not a GPU arch", "one by one: `gfx1200`, `gfx1201`"]);
}

#[test]
fn names_of_indexes_that_pair_nothing() {
    let rule = |master: &str| {
        format!(
            "databases = [{{ name = 'x', directories = ['y'], \
             lazy = {{ master = '{master}', mapping = 'All_*_Map' }} }}]\n"
        )
    };
    for master in ["All", "All_*_*"] {
        let expected = format!("`{master}` must have one `*`");
        refuses("c.toml", &rule(master), &["line 1, column ", &expected]);
    }
}

#[test]
fn archs_that_are_known_or_declared() {
    let bad = Bad::new();
    let file = bad.folder.path().join("packaging.toml");
    let known = "\n[components.blas_lib]\nexclude_architectures = [\
                 'gfx906', 'gfx11-generic', 'gfx9-4-generic', 'gfx1250-strict', 'amdgcnspirv']\n";
    fs::write(&file, format!("{TOML}{known}")).unwrap();
    support::tools::run(&mut with(&bad, &file));
    let tomorrow = "\n[packages.rocm-blas]\nexclude_architectures = ['gfx1400', 'gfx14-generic']\n";
    let declared = "additional_architectures = ['gfx1400', 'gfx14-generic']\n";
    fs::write(&file, format!("{declared}{TOML}{tomorrow}")).unwrap();
    support::tools::run(&mut with(&bad, &file));
    fs::write(&file, format!("{TOML}{tomorrow}")).unwrap();
    let expected = "this version of rockpack does not know the GPU arch `gfx1400`";
    refused(&mut with(&bad, &file), USAGE, &[expected]);
}

#[test]
fn a_configuration_of_an_unknown_syntax_is_refused() {
    let bad = Bad::new();
    let file = bad.folder.path().join("c.yaml");
    fs::write(&file, TOML).unwrap();
    refused(&mut with(&bad, &file), USAGE, &["c.yaml: ", "ends neither in .json nor in .toml"]);
    assert!(!bad.out().exists());
}

#[test]
fn an_illegal_prefix_or_version_of_the_configuration_is_refused() {
    for (line, key) in [("prefix = \"/usr\"", "prefix: "), ("version = \"7 1\"", "version: ")] {
        let bad = Bad::new();
        let file = bad.folder.path().join("c.toml");
        fs::write(&file, format!("{line}\n{TOML}")).unwrap();
        let mut command = support::example::rockpack();
        command.args(["build", "--artifacts"]).arg(bad.shards());
        command.arg("--config").arg(&file).arg("--out").arg(bad.out());
        let column = line.find('"').unwrap() + 1;
        let place = format!("c.toml: line 1, column {column}: {key}");
        refused(&mut command, USAGE, &[&place]);
        assert!(!bad.out().exists());
    }
}
