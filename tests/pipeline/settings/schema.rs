//! The schema and the list of keys match the declaration, and are true.

use std::fs;

use serde_json::{Value, json};

use super::Room;
use support::documents::{code_blocks, markdown, same, same_part};
use support::example::{configuration, rockpack};
use support::program::build_settings;
use support::schemas::faults;
use support::tools;

/// The page with the list of keys.
const PAGE: &str = "docs/reference/configuration.md";

/// The lines around the list.
const LIST: [&str; 2] =
    ["<!-- keys: generated, see tests/pipeline/settings -->\n", "<!-- end of keys -->"];

/// The schema for editors.
const SCHEMA: &str = "config/packaging.schema.json";

/// The tests that write the schema and the list, as arguments for cargo.
const WRITER: &str = "--test pipeline settings::";

fn schema_text() -> String {
    tools::succeed(rockpack().args(["config", "schema"]))
}

#[test]
fn the_schema_is_that_of_the_declaration() {
    same(SCHEMA, &schema_text(), WRITER);
}

#[test]
fn the_page_has_the_keys_of_the_declaration() {
    let list = rockpack::settings::key_list();
    assert!(list.lines().count() > 50, "{list}");
    same_part(PAGE, LIST, &list, WRITER);
}

/// The first fault that the schema finds in each document.
fn judged(documents: &[Value]) -> Vec<Option<String>> {
    faults(&serde_json::from_str(&schema_text()).unwrap(), documents)
}

/// The configurations of the examples and of the documentation.
fn examples() -> Vec<Value> {
    let mut found = vec![fs::read_to_string(configuration()).unwrap().parse().unwrap()];
    for document in markdown("docs").into_iter().chain(markdown("examples")) {
        for block in code_blocks(&document) {
            match &*block.language {
                "toml" => found.push(toml::from_str(&block.text).unwrap()),
                "json" => found.push(block.text.parse().unwrap()),
                _ => {}
            }
        }
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

/// Tells whether `build` accepts a configuration. It is asked in this process: there are a hundred documents.
fn is_taken(room: &Room, document: &Value) -> bool {
    let (file, out) = (room.write("one.json", &document.to_string()), room.path("out"));
    let [file, out] = [&file, &out].map(|path| path.to_str().unwrap());
    build_settings(["--artifacts", "x", "--out", out, "--config", file]).is_ok()
}

#[test]
fn examples_are_right_by_the_schema_and_for_the_program() {
    let (room, examples) = (Room::new(), examples());
    assert!(examples.len() > 6, "{}", examples.len());
    for (document, fault) in examples.iter().zip(judged(&examples)) {
        assert_eq!(fault, None, "{document}");
        assert!(is_taken(&room, document), "{document}");
    }
    let first = room.write("first.json", &examples[0].to_string());
    tools::succeed(rockpack().args(["config", "show", "--config"]).arg(first));
}

#[test]
fn mistakes_are_wrong_by_the_schema_and_for_the_program() {
    let room = Room::new();
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
        json!({ "distro": { "dpkg": "debian-12" } }),
        json!({ "version": 7 }),
        json!({ "epoch": -1 }),
        json!({ "epoch": 2_147_483_648_u32 }),
        json!({ "runpath": "document" }),
        json!({ "alternatives": "all" }),
        json!({ "replaces": { "x": "rocblas" } }),
        json!({ "replaces": { "x": { "dbe": ["rocblas"] } } }),
        json!({ "relations": { "x": { "deb": { "dpends": ["y"] } } } }),
        json!({ "selectors": { "x": [{ "artifact": "blas", "kinds": ["bin"] }] } }),
        json!({ "selectors": { "x": [{ "modules": ["rocBLAS"] }] } }),
        json!({ "databases": [{ "name": "x", "directories": ["y"], "names": "end" }] }),
        with_part("a b", "run"),
        with_part("tools", "bin"),
    ];
    let right = [
        json!({}),
        json!({ "$schema": "https://example.org/packaging.schema.json", "runpath": "origin" }),
        json!({ "replaces": { "rocm-x": ["rocblas < 7.0"], "rocm-y": { "deb": ["y-dev"] } } }),
        json!({ "components": { "blas": { "include_architectures": ["gfx90a", "gfx9-4-generic"] } } }),
        with_part("tools", "run"),
    ];
    let faults = judged(&[&wrong[..], &right].concat());
    for (document, fault) in wrong.iter().zip(&faults) {
        assert!(fault.is_some() && !is_taken(&room, document), "{document} is right");
    }
    for (document, fault) in right.iter().zip(&faults[wrong.len()..]) {
        assert!(fault.is_none() && is_taken(&room, document), "{document}: {fault:?}");
    }
}

fn with_part(name: &str, kind: &str) -> Value {
    json!({ "parts": [{ "name": name, "kinds": [kind], "role": "host",
                        "suffix": { "deb": "-x", "rpm": "-x" } }] })
}
