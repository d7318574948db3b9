//! Documents judged by JSON Schemas.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::{harness, tools};

/// A script that prints the first fault that jsonschema finds in each document.
const JUDGE: &str = "\
import json, sys, jsonschema
schema, documents = json.load(sys.stdin)
judge = jsonschema.Draft202012Validator
judge.check_schema(schema)
first = lambda d: next((e.message[-300:] for e in judge(schema).iter_errors(d)), None)
print(json.dumps([first(document) for document in documents]))
";

/// A Python with jsonschema. Without one, the test is skipped.
fn python() -> &'static str {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    let has = |python: &&str| {
        let found = Command::new(python).args(["-c", "import jsonschema"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let found = FOUND.get_or_init(|| ["/usr/bin/python3", "python3"].into_iter().find(has));
    found.unwrap_or_else(|| harness::skip("needs python3-jsonschema"))
}

/// The first fault of each document under a schema. Fails unless the schema itself is valid.
pub fn faults(schema: &Value, documents: &[Value]) -> Vec<Option<String>> {
    let mut input = tempfile::NamedTempFile::new().unwrap();
    serde_json::to_writer(&mut input, &json!([schema, documents])).unwrap();
    let mut command = Command::new(python());
    command.args(["-c", JUDGE]).stdin(fs::File::open(input.path()).unwrap());
    serde_json::from_str(&tools::succeed(&mut command)).unwrap()
}
