//! Settings, from outside: what is wrong is refused at once and before any input is opened, every
//! value says where it comes from, and what is generated from the declaration of the keys is true.
//!
//! With `ROCKPACK_BLESS=1` the schema and the README's table are written instead of compared; look at
//! the difference before you keep it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::example::{self, configuration, rockpack, shards};
use support::harness::skip;
use support::program::repository;
use support::tools;
use tempfile::TempDir;

/// The exit codes of wrong usage, and of a run that failed.
const USAGE: i32 = 64;
const FAILED: i32 = 2;

/// Where the README has the table of keys.
const TABLE: [&str; 2] =
    ["<!-- keys: generated, see tests/pipeline/settings.rs -->\n", "<!-- end of keys -->"];

/// The schema, for editors.
const SCHEMA: &str = "config/packaging.schema.json";

/// A folder with configurations, and no artifacts.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A command whose artifacts do not exist: whoever opens them says so.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = rockpack();
        command.args(words).arg("--artifacts").arg(self.path("absent"));
        if words[0] == "build" {
            command.arg("--out").arg(self.path("out"));
        }
        command
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Refused with this exit code, each of `expected` said in this order, and no input opened.
#[track_caller]
fn refused(command: &mut Command, code: i32, expected: &[&str]) {
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let mut rest = said.as_str();
    for part in expected {
        let at =
            rest.find(part).unwrap_or_else(|| panic!("{part} is not in its place in:\n{said}"));
        rest = &rest[at + part.len()..];
    }
    assert!(!said.contains("absent"), "the input was opened:\n{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn everything_wrong_on_the_command_line_is_refused_at_once() {
    let room = Room::new();
    let words = [
        "--version",
        "7_1",
        "--release",
        "1-2",
        "--distro",
        "debian-99",
        "--variant",
        "a_b",
        "--scheme",
        "rcom",
        "--prefix",
        "/usr",
        "--only",
        "a/b",
    ];
    let expected = [
        "--only `a/b` is no name",
        "--version: `7_1` is no version",
        "--release: `1-2` is no release",
        "--scheme: there is no naming scheme `rcom`",
        "the schemes are amdrocm, rocm, rocm-versioned",
        "--variant: `a_b` cannot be a package name",
        "--prefix: `/usr` cannot be the prefix",
        "--distro: there is no distribution `debian-99`",
        "known are debian-12, debian-13",
    ];
    refused(room.command(&["plan"]).args(words), USAGE, &expected);
    let of_build = [
        "--archive-level",
        "23",
        "--sign-key",
        "no-such-key",
        "--repo",
        "r",
        "--suite",
        "a b",
        "--url",
        "x",
    ];
    let more = [
        "--archive-level 23",
        "--suite `a b` is not one word",
        "--url `x` is no URL",
        "no-such-key",
    ];
    let mut build = room.command(&["build"]);
    refused(build.args(words).args(of_build), USAGE, &[&expected[..], &more[..]].concat());
    refused(
        room.command(&["build"]).args(["--memory", "100M"]),
        USAGE,
        &["--memory 100M is too little"],
    );
    let late = ("SOURCE_DATE_EPOCH", "5000000000");
    let expected = ["SOURCE_DATE_EPOCH: 5000000000 seconds", "outside of 1970 to 2106"];
    refused(room.command(&["plan"]).env(late.0, late.1), USAGE, &expected);
    assert!(!room.path("out").exists());
}

const WRONG: &str = "\
version = '7_1'
scheme = 'rcom'
distro = 'debian-99'
prefix = '/opt/rocm'
libdir = '/lib'
distribution_tag.deb = '-1'

[runtime_relation]
deb = 'a b'

[libraries.'libx.so.1']
deb = 'x,y'

[relations.rocm-blas]
deb.depends = ['fine', 'not fine']
rpm.requires = ['a >=']

[selectors]
ROCm = [{ artifact = 'blas' }]
rocm-x = [{ artifact = 'blas' }]

[[parts]]
name = 'tools'
components = ['bin']
role = 'host'
suffix = { deb = '-utils', rpm = '-tools' }
";

#[test]
fn everything_wrong_in_a_configuration_is_refused_at_once() {
    let room = Room::new();
    let file = room.write("c.toml", WRONG);
    let expected = [
        "c.toml: line 1, column 11: version: `7_1` is no version",
        "c.toml: line 6, column 24: distribution_tag",
        "c.toml: line 2, column 10: scheme: there is no naming scheme",
        "c.toml: line 4, column 10: prefix: `/opt/rocm` cannot be the prefix",
        "c.toml: line 3, column 10: distro: there is no distribution",
        "c.toml: line 19, column 8: selectors.ROCm: `ROCm` cannot be a package name",
        "c.toml: line 20, column 11: selectors.rocm-x.0: takes nothing",
        "c.toml: line 24, column 15: parts.0.components.0: ",
        "c.toml: line 12, column 7: libraries.libx.so.1.deb: `x,y` is no relation",
        "c.toml: line 5, column 10: libdir: `/lib` cannot be a folder",
        "c.toml: line 9, column 7: runtime_relation.deb: `a b` is no relation",
        "c.toml: line 15, column 24: relations.rocm-blas.deb.depends.1: `not fine` is no relation",
        "c.toml: line 16, column 17: relations.rocm-blas.rpm.requires.0: `a >=` is no relation",
    ];
    let file = file.to_str().unwrap();
    refused(&mut room.command(&["plan", "--config", file]), FAILED, &expected);
    // The command line decides the exit code.
    let usage = ["--release: `1-2`", "c.toml: line 1, column 11"];
    refused(&mut room.command(&["build", "--config", file, "--release", "1-2"]), USAGE, &usage);
    let output = room.command(&["config", "show", "--config", file]).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILED));
    assert!(expected.iter().all(|part| stderr(&output).contains(part)), "{}", stderr(&output));
}

#[test]
fn templates_of_a_scheme_are_tried_before_any_package_is_named() {
    let room = Room::new();
    let own = fs::read_to_string(repository("config/schemes/rocm-versioned.toml")).unwrap();
    let wrong = own.replace("kernels = \"{name}", "kernels = \"{name}_{name}");
    let wrong =
        wrong.replace("package = \"{name}{variant}{series}\"", "package = \"{name}-{group}\"");
    assert_eq!(wrong.lines().zip(own.lines()).filter(|(one, other)| one != other).count(), 2);
    let scheme = room.write("own.toml", &wrong);
    let expected = [
        "own.toml: line 9, column 11: names.package: `{name}-{group}` names a group",
        "own.toml: line 11, column 11: names.kernels: ",
        "cannot be a package name",
    ];
    let scheme = scheme.to_str().unwrap();
    refused(
        &mut room.command(&["plan", "--scheme", scheme, "--version", "7.1"]),
        FAILED,
        &expected,
    );
    let short = ["plan", "--scheme", "rocm-versioned", "--version", "7", "--prefix", "/opt/x"];
    refused(&mut room.command(&short), USAGE, &["--version: the version 7 has no minor number"]);
}

#[test]
fn options_of_a_repository_without_one_are_named() {
    let room = Room::new();
    let mut build = room.command(&["build", "--suite", "x", "--generations", "3", "--wait"]);
    let expected = ["--suite, --generations, --wait: nothing is published without --repo"];
    refused(&mut build, USAGE, &expected);
}

/// What `config show` says of each key: its value, and where that comes from.
fn shown(words: &[&str]) -> Vec<(String, Value, Value)> {
    let mut command = rockpack();
    command.args(["config", "show", "--json"]).args(words).current_dir(repository(""));
    let mut list: Vec<Value> =
        serde_json::from_str(&tools::succeed(command.env("SOURCE_DATE_EPOCH", "1700000000")))
            .unwrap();
    let triple = |setting: &mut Value| {
        let [key, value] = ["key", "value"].map(|field| setting[field].take());
        let origin = setting.as_object_mut().unwrap();
        origin.retain(|field, _| !["key", "value", "unset"].contains(&field.as_str()));
        (key.as_str().unwrap().to_owned(), value, setting.take())
    };
    list.iter_mut().map(triple).collect()
}

#[test]
fn every_value_says_where_it_comes_from() {
    let room = Room::new();
    let text = "version = '6.4'\nrelease = '3'\ndistro = 'debian-13'\n\n[architecture_groups.one]\n\
                architectures = ['gfx90a']\n\n[[parts]]\nname = 'tools'\ncomponents = ['run']\n\
                role = 'host'\nsuffix = { deb = '-utils', rpm = '-tools' }\n";
    let file = room.write("c.toml", text);
    let file = file.to_str().unwrap();
    let words = [
        "--config",
        file,
        "--version",
        "7.15.0-rc1",
        "--scheme",
        "amdrocm",
        "--preset",
        "small",
        "--sbom",
        "--payload-level",
        "3",
        "--cache",
        "c",
        "--artifacts",
        "x",
        "y",
    ];
    let shown = shown(&words);
    let flag = |option: &str| json!({ "origin": "flag", "option": option });
    let at = |line: u32, column: u32| json!({ "origin": "file", "file": file, "line": line, "column": column });
    let default = json!({ "origin": "default" });
    let scheme = json!({ "origin": "scheme" });
    for (key, value, origin) in [
        ("version", json!("7.15.0-rc1"), flag("--version")),
        ("release", json!("3"), at(2, 11)),
        ("scheme", json!("amdrocm"), flag("--scheme")),
        ("prefix", json!("/opt/rocm/core-7.15"), scheme.clone()),
        ("distro", json!("debian-13"), at(3, 10)),
        ("variant", Value::Null, default.clone()),
        ("runtime_relation.deb", json!("amdrocm-runtime7.15"), scheme),
        ("architecture_groups.one.architectures", json!(["gfx90a"]), at(6, 17)),
        ("validation.untransformable", json!("error"), default.clone()),
        ("validation.error_on_duplicate_device_code", json!(true), default.clone()),
        ("maintainer", json!("Unnamed packager <packager@rockpack.invalid>"), default.clone()),
        ("kpackdir", json!("lib/.kpack"), default.clone()),
        ("--preset", json!("small"), flag("--preset")),
        ("--archive-level", json!(19), flag("--preset")),
        ("--payload-level", json!("3"), flag("--payload-level")),
        ("--compression", json!("zstd"), default.clone()),
        ("--sbom", json!(true), flag("--sbom")),
        ("--strict", json!(false), default.clone()),
        ("--cache", json!("c"), flag("--cache")),
        ("--cache-size", json!("32G"), default),
        ("--artifacts", json!(["x", "y"]), flag("--artifacts")),
        (
            "SOURCE_DATE_EPOCH",
            json!(1_700_000_000),
            json!({ "origin": "environment", "variable": "SOURCE_DATE_EPOCH" }),
        ),
    ] {
        let expected = [(key.to_owned(), value, origin)];
        let found: Vec<_> = shown.iter().filter(|(known, ..)| known == key).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>());
    }
    let mut keys: Vec<&str> = shown.iter().map(|(key, ..)| key.as_str()).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
}

/// The table shows the same as the JSON.
#[test]
fn settings_are_shown_as_a_table() {
    let mut command = rockpack();
    let config = "examples/packaging-config.json";
    command.args(["config", "show", "--config", config]).current_dir(repository(""));
    let text = tools::succeed(&mut command);
    let row = |key: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("{key} is not in {text}"))
            .split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("primary_shard"), ["gfx110X-build", "examples/packaging-config.json:1:20"]);
    assert_eq!(row("version"), ["0.0.0", "default"]);
    assert_eq!(row("vendor"), ["-", "default"]);
    assert_eq!(row("--jobs").len(), 2);
    assert_eq!(row("--memory").join(" "), "(a quarter of the machine's) default");
}

/// What a build does with values that somebody set, it does with those that are shown for them.
#[test]
fn a_default_that_is_written_out_changes_nothing() {
    let room = Room::new();
    let planned = |config: &Path| {
        let mut plan = rockpack();
        plan.args(["plan", "--json", "--version", "7.1.0", "--artifacts"]).arg(shards());
        tools::succeed(plan.arg("--config").arg(config))
    };
    let mut text = fs::read_to_string(configuration()).unwrap();
    text.truncate(text.rfind('}').unwrap());
    for (key, value, origin) in
        shown(&["--config", configuration().to_str().unwrap(), "--version", "7.1.0"])
    {
        let is_key = !key.contains(['-', '.']) && key != "SOURCE_DATE_EPOCH" && key != "version";
        if is_key
            && !value.is_null()
            && (origin["origin"] == "default" || origin["origin"] == "scheme")
        {
            text += &format!(", \"{key}\": {value}");
        }
    }
    assert!(
        text.contains("\"libdir\": \"lib\"") && text.contains("\"prefix\": \"/opt/rocm-7.1\""),
        "{text}"
    );
    let file = room.write("written.json", &(text + "}"));
    assert_eq!(planned(&configuration()), planned(&file));
}

fn blessing() -> bool {
    std::env::var("ROCKPACK_BLESS").as_deref() == Ok("1")
}

/// Holds `actual` against what a file has, or writes it there.
fn same(file: &str, actual: &str) {
    let path = repository(file);
    if blessing() {
        fs::write(&path, actual).unwrap();
    }
    let hint = "run `ROCKPACK_BLESS=1 cargo test --test pipeline settings::` and look at the difference";
    assert!(fs::read_to_string(&path).unwrap() == actual, "{file} is out of date: {hint}");
}

fn schema_text() -> String {
    tools::succeed(rockpack().args(["config", "schema"]))
}

#[test]
fn the_schema_is_that_of_the_declaration() {
    same(SCHEMA, &schema_text());
}

#[test]
fn the_readme_has_the_keys_of_the_declaration() {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let (before, rest) = readme.split_once(TABLE[0]).unwrap();
    let (_, after) = rest.split_once(TABLE[1]).unwrap();
    let table = rockpack::settings::table();
    assert!(table.lines().count() > 50, "{table}");
    same("README.md", &format!("{before}{}{table}{}{after}", TABLE[0], TABLE[1]));
}

/// A key that is an option is described the same way by both.
#[test]
fn the_help_has_the_words_of_the_declaration() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let schema: Value = serde_json::from_str(&schema_text()).unwrap();
    let keys: Vec<_> = rockpack::settings::keys();
    let options: Vec<_> = keys.iter().filter_map(|key| Some((key, key.option.as_ref()?))).collect();
    assert_eq!(options.len(), 6);
    for command in ["build", "plan"] {
        let help = words(&tools::succeed(rockpack().args([command, "--help"])));
        for (key, option) in &options {
            assert!(help.contains(&format!("{option} <")), "{option}");
            let property = &schema["properties"][&key.path[0]];
            let default = property["default"].as_str().map(|value| format!(" [default: {value}]"));
            let text = property["description"].as_str().unwrap().to_owned();
            let text = words(&(text + &default.unwrap_or_default()));
            assert!(help.contains(&text), "{option}: {text}\nis not in {help}");
        }
    }
}

/// A Python that has jsonschema, which judges documents by schemas.
fn judge() -> &'static str {
    let has = |python: &&str| {
        let found = Command::new(python).args(["-c", "import jsonschema"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let python = ["/usr/bin/python3", "python3"].into_iter().find(has);
    python.unwrap_or_else(|| skip("needs python3-jsonschema"))
}

/// The first fault that jsonschema finds in each document, by the schema.
const JUDGE: &str = "\
import json, sys, jsonschema
schema, documents = json.load(sys.stdin)
judge = jsonschema.Draft202012Validator
judge.check_schema(schema)
first = lambda d: next((e.message for e in judge(schema).iter_errors(d)), None)
print(json.dumps([first(document) for document in documents]))
";

fn judged(python: &str, documents: &[Value]) -> Vec<Option<String>> {
    let room = Room::new();
    let schema: Value = serde_json::from_str(&schema_text()).unwrap();
    let input = room.write("input.json", &json!([schema, documents]).to_string());
    let mut command = Command::new(python);
    command.args(["-c", JUDGE]).stdin(fs::File::open(input).unwrap());
    serde_json::from_str(&tools::succeed(&mut command)).unwrap()
}

/// The configurations of the examples and of the README.
fn examples() -> Vec<Value> {
    let mut found = vec![fs::read_to_string(configuration()).unwrap().parse().unwrap()];
    for file in ["README.md", "examples/tutorial.md", "examples/debian-rocm/README.md"] {
        let text = fs::read_to_string(repository(file)).unwrap();
        let blocks = |kind: &str| {
            let start = format!("```{kind}\n");
            let pieces =
                text.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
            pieces.collect::<Vec<_>>()
        };
        found.extend(blocks("toml").iter().map(|text| toml::from_str(text).unwrap()));
        let objects =
            blocks("json").into_iter().filter(|text| text.contains("architecture_groups"));
        found.extend(objects.map(|text| text.parse::<Value>().unwrap()));
    }
    let folder = repository("examples/debian-rocm");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let configurations =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    found.extend(
        configurations.map(|path| toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()),
    );
    found
}

/// Whether rockpack takes a configuration.
fn is_taken(room: &Room, document: &Value) -> bool {
    let file = room.write("one.json", &document.to_string());
    let mut show = rockpack();
    show.args(["config", "show", "--config"]).arg(file).output().unwrap().status.success()
}

#[test]
fn examples_are_right_by_the_schema_and_for_the_program() {
    let python = judge();
    let (room, examples) = (Room::new(), examples());
    assert!(examples.len() > 6, "{}", examples.len());
    for (document, fault) in examples.iter().zip(judged(python, &examples)) {
        assert_eq!(fault, None, "{document}");
        assert!(is_taken(&room, document), "{document}");
    }
}

#[test]
fn mistakes_are_wrong_by_the_schema_and_for_the_program() {
    let python = judge();
    let room = Room::new();
    let part = |name: &str, kind: &str| {
        json!({ "parts": [{ "name": name, "components": [kind], "role": "host",
                            "suffix": { "deb": "-x", "rpm": "-x" } }] })
    };
    let wrong = [
        json!({ "primry_shard": "x" }),
        json!({ "validation": { "untransformable": "keep" } }),
        json!({ "validation": { "error_on_duplicate_device_code": "yes" } }),
        json!({ "components": { "blas": { "untransformed": "error" } } }),
        json!({ "architecture_groups": { "a": { "architectures": [] } } }),
        json!({ "architecture_groups": { "a": { "architectures": ["gfx90a:xnack+"] } } }),
        json!({ "architecture_groups": { "a": { "display_name": "A" } } }),
        json!({ "packages": { "x": { "summary": "x".repeat(81) } } }),
        json!({ "packages": { "x": { "section": "Libs" } } }),
        json!({ "scheme": "rcom" }),
        json!({ "distro": "debian-99" }),
        json!({ "version": 7 }),
        json!({ "epoch": -1 }),
        json!({ "epoch": 2_147_483_648_u32 }),
        json!({ "runpath": "document" }),
        json!({ "alternatives": "all" }),
        json!({ "replaces": { "x": "rocblas" } }),
        json!({ "replaces": { "x": { "dbe": ["rocblas"] } } }),
        json!({ "relations": { "x": { "deb": { "dpends": ["y"] } } } }),
        json!({ "selectors": { "x": [{ "artifact": "blas", "components": ["bin"] }] } }),
        json!({ "selectors": { "x": [{ "modules": ["rocBLAS"] }] } }),
        json!({ "databases": [{ "name": "x", "directories": ["y"], "names": "end" }] }),
        part("a b", "run"),
        part("tools", "bin"),
    ];
    let right = [
        json!({}),
        json!({ "$schema": "https://example.org/packaging.schema.json", "runpath": "origin" }),
        json!({ "replaces": { "rocm-x": ["rocblas < 7.0"], "rocm-y": { "deb": ["y-dev"] } } }),
        json!({ "components": { "blas": { "include_architectures": ["gfx90a", "gfx9-4-generic"] } } }),
        part("tools", "run"),
    ];
    for (document, fault) in wrong.iter().zip(judged(python, &wrong)) {
        assert!(fault.is_some() && !is_taken(&room, document), "{document} is right");
    }
    for (document, fault) in right.iter().zip(judged(python, &right)) {
        assert!(fault.is_none() && is_taken(&room, document), "{document}: {fault:?}");
    }
}

/// A schema without words helps nobody in an editor.
#[test]
fn every_key_of_the_schema_has_words() {
    fn check(schema: &Value, path: &str) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            // The fields of control files are their own words.
            let plain = ["DebRelations", "RpmRelations"].iter().any(|table| path.contains(table));
            let words = property["description"].as_str().unwrap_or_default();
            assert!(plain || words.len() > 5, "{path}.{name}");
            check(property, &format!("{path}.{name}"));
        }
    }
    let schema: Value = serde_json::from_str(&schema_text()).unwrap();
    check(&schema, "");
    let tables = schema["$defs"].as_object().unwrap();
    assert!(tables.len() > 10);
    tables.iter().for_each(|(name, table)| check(table, name));
}

/// The lines that say what was decided without a configuration.
fn notes(output: &Output) -> Vec<String> {
    let said = stderr(output);
    said.lines().filter(|line| line.contains("no configuration")).map(str::to_owned).collect()
}

fn built(room: &Room, name: &str, artifacts: &Path, words: &[&str]) -> (Output, PathBuf) {
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--artifacts"]).arg(artifacts).args(words);
    let out = room.path(name);
    (tools::run(build.arg("--out").arg(&out)), out)
}

#[test]
fn without_a_configuration_the_proposed_one_is_used_and_named() {
    let room = Room::new();
    let (output, proposed) = built(&room, "proposed", &shards(), &[]);
    let [note] = notes(&output).try_into().unwrap();
    assert!(note.contains("the groups are gfx110X, gfx115X, gfx120X, without gfx906"), "{note}");
    assert!(note.contains("the primary shard is gfx110X-build"), "{note}");

    // The command that the line names saves a configuration that gives the same set.
    let command = note.split('`').nth(1).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_rockpack")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    tools::run(
        Command::new("sh").args(["-c", command]).env("PATH", path).current_dir(room.0.path()),
    );
    let saved = room.path("packaging.toml");
    let words = ["--config", saved.to_str().unwrap()];
    let (output, configured) = built(&room, "configured", &shards(), &words);
    assert_eq!(notes(&output), [""; 0]);
    assert!(example::contents(&proposed) == example::contents(&configured));

    let mut plan = rockpack();
    plan.args(["--log-format", "json", "plan", "--artifacts"]).arg(shards());
    let output = tools::run(&mut plan);
    let [event] = notes(&output).try_into().unwrap();
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!((&event["event"], &event["message"]), (&json!("note"), &json!(note)));
    let settings = shown(&[]);
    let origin = |key: &str| &settings.iter().find(|(known, ..)| known == key).unwrap().2["origin"];
    assert_eq!([origin("primary_shard"), origin("architecture_groups")], ["proposed", "proposed"]);
}

/// Whoever writes a configuration without groups gets one for each architecture.
#[test]
fn a_configuration_without_groups_keeps_its_meaning() {
    let room = Room::new();
    let file = room.write("c.toml", "release = '2'\n");
    let config = ["--config", file.to_str().unwrap()];
    let (output, out) = built(&room, "out", &shards().join("gfx1151-build"), &config);
    assert_eq!(notes(&output), [""; 0]);
    let names = example::names(&out);
    for arch in ["gfx906", "gfx1151"] {
        assert!(names.contains(&format!("rocm-blas-{arch}_7.1.0-2_amd64.deb")), "{names:?}");
    }
}

#[test]
fn without_device_code_there_is_nothing_to_propose() {
    let room = Room::new();
    let artifact = "gfx1151-build/host-suite-sparse_lib_generic";
    let copy = room.path("shard").join("host-suite-sparse_lib_generic");
    fs::create_dir(room.path("shard")).unwrap();
    tools::run(Command::new("cp").arg("-r").arg(shards().join(artifact)).arg(&copy));
    let (output, out) = built(&room, "out", &room.path("shard"), &[]);
    assert_eq!(notes(&output), [""; 0]);
    let names = example::names(&out);
    assert!(names.contains("rocm-host-suite-sparse_7.1.0-1_amd64.deb"), "{names:?}");
}

/// A list of packages says what goes where, and has no groups.
#[test]
fn with_a_list_of_packages_nothing_is_proposed() {
    let room = Room::new();
    let list = r#"[{ "Package": "amdrocm-blas", "Artifactory": [{ "Artifact": "blas",
        "Artifact_Subdir": [{ "Name": "rocBLAS", "Components": ["lib", "run"] }] }] }]"#;
    let file = room.write("package.json", list);
    let words = ["--packages", file.to_str().unwrap(), "--scheme", "amdrocm"];
    let (output, out) = built(&room, "out", &shards().join("gfx1151-build"), &words);
    assert_eq!(notes(&output), [""; 0]);
    let names = example::names(&out);
    assert!(names.contains("amdrocm-blas7.1-gfx906_7.1.0-1_amd64.deb"), "{names:?}");
}
