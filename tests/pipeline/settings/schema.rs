//! The schema and the table of keys are those of the declaration, and true.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::Room;
use support::example::{configuration, rockpack};
use support::tools;

/// Where the README has the table of keys.
const TABLE: [&str; 2] =
    ["<!-- keys: generated, see tests/pipeline/settings -->\n", "<!-- end of keys -->"];

/// The schema, for editors.
const SCHEMA: &str = "config/packaging.schema.json";

fn blessing() -> bool {
    std::env::var("ROCKPACK_BLESS").as_deref() == Ok("1")
}

/// Holds `actual` against what a file has, or writes it there.
fn same(file: &str, actual: &str) {
    let path = support::program::repository(file);
    if blessing() {
        fs::write(&path, actual).unwrap();
    }
    let hint =
        "run `ROCKPACK_BLESS=1 cargo test --test pipeline settings::` and look at the difference";
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
    let readme = fs::read_to_string(support::program::repository("README.md")).unwrap();
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
    python.unwrap_or_else(|| support::harness::skip("needs python3-jsonschema"))
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
        let text = fs::read_to_string(support::program::repository(file)).unwrap();
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
    let folder = support::program::repository("examples/debian-rocm");
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
