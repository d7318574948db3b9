//! Documents judged by JSON Schemas.

use serde_json::{Value, json};

use crate::{python, tools};

/// A script that prints the first fault that jsonschema finds in each document.
const JUDGE: &str = "\
import json, sys, jsonschema
schema, documents = json.load(sys.stdin)
judge = jsonschema.Draft202012Validator
judge.check_schema(schema)
first = lambda d: next((e.message[-300:] for e in judge(schema).iter_errors(d)), None)
print(json.dumps([first(document) for document in documents]))
";

/// The first fault of each document under a schema. Fails unless the schema itself is valid. Without jsonschema, the
/// test is skipped.
pub fn faults(schema: &Value, documents: &[Value]) -> Vec<Option<String>> {
    match python::run(JUDGE, &[], &json!([schema, documents]).to_string()) {
        Err(error) if error.contains("No module named 'jsonschema'") => {
            tools::skip("needs python3-jsonschema")
        }
        printed => serde_json::from_str(&printed.unwrap()).unwrap(),
    }
}
