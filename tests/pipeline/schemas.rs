//! The documentation's JSON Schemas, compared with the program's output.
//!
//! The schemas are strict here: a field that they do not name is a fault.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::example::{build_of, configuration, rockpack, shards};
use support::program::repository;
use support::schemas::faults;
use support::tools;
use support::wheels::LooseWheel;
use tempfile::TempDir;

/// The folder of the schemas.
const FOLDER: &str = "docs/reference/schemas";

/// The schema of findings, to which the others refer.
const FINDING: &str = "finding.schema.json";

/// A schema as its file has it.
fn file(name: &str) -> Value {
    let text = fs::read_to_string(repository(FOLDER).join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The schema of receipts, to which that of inspections refers.
const RECEIPT: &str = "receipt.schema.json";

/// A schema, with those that it refers to included, which refuses fields that it does not name.
fn strict(name: &str) -> Value {
    let mut schema = file(name);
    let mut finding = file(FINDING);
    finding.as_object_mut().unwrap().remove("$schema");
    tighten(&mut schema, &finding);
    schema
}

fn tighten(schema: &mut Value, finding: &Value) {
    if *schema == json!({ "$ref": FINDING }) {
        *schema = finding.clone();
        return;
    }
    if *schema == json!({ "$ref": RECEIPT }) {
        // With an identifier, its references to its own definitions keep their meaning.
        *schema = with(&strict(RECEIPT), "/$id", Some(json!("file:///receipt")));
        return;
    }
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| tighten(value, finding));
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tighten(item, finding)),
        _ => {}
    }
}

/// Fails unless the schema accepts all documents that are `right`, and none that is `wrong`.
pub(crate) fn judges(name: &str, right: &[Value], wrong: &[Value]) {
    let found = faults(&strict(name), &[right, wrong].concat());
    let (of_right, of_wrong) = found.split_at(right.len());
    let found: Vec<&String> = of_right.iter().flatten().collect();
    assert!(!right.is_empty() && found.is_empty(), "{name}: {found:#?}");
    for (document, fault) in wrong.iter().zip(of_wrong) {
        assert!(fault.is_some(), "{name} takes {document}");
    }
}

struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A build of the example into a folder of this name.
    fn build(&self, out: &str, words: &[&str]) -> Command {
        let mut build = build_of(&shards(), &self.path(out));
        build.args(words);
        build
    }

    fn build_with_events(&self, out: &str, words: &[&str]) -> Output {
        let words = [&["--log-format", "json", "--json"][..], words].concat();
        self.build(out, &words).output().unwrap()
    }

    /// The JSON that `plan` prints with these options.
    fn plan(&self, words: &[&str]) -> Value {
        let mut plan = rockpack();
        plan.current_dir(self.0.path()).args(["plan", "--version", "7.1.0", "--artifacts"]);
        plan.arg(shards()).arg("--config").arg(configuration());
        parsed(&tools::succeed(plan.args(words)))
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The lines on standard error.
fn events(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stderr).lines().map(parsed).collect()
}

/// A document with another value of a field, or without it.
fn with(document: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut document = document.clone();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let fields = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
    document
}

#[test]
fn receipts_of_wheels_are_as_their_schema_says() {
    support::kpack::need_python();
    let receipt = support::fat_wheels::Made::of(&support::fat_wheels::fat(), &[]).receipt();
    judges(FINDING, receipt["findings"].as_array().unwrap(), &[]);
    let without =
        ["/wheels", "/content_date", "/wheels/0/role", "/wheels/1/sha256", "/code_objects/0/size"];
    let mut others: Vec<Value> =
        without.iter().map(|pointer| with(&receipt, pointer, None)).collect();
    others.push(with(&receipt, "/schema", Some(json!(2))));
    others.push(with(&receipt, "/wheels/0/other", Some(json!(1))));
    judges("wheels.schema.json", std::slice::from_ref(&receipt), &others);
}

#[test]
fn receipts_and_events_are_as_their_schemas_say() {
    let room = Room::new();
    let whole = room.build_with_events("whole", &["--format", "deb", "--sbom"]);
    let part = room.build_with_events("part", &["--partition", "1/2"]);
    let only = room.build_with_events("only", &["--format", "rpm", "--only", "blas_run"]);
    let receipts =
        [&whole, &part, &only].map(|output| parsed(&String::from_utf8_lossy(&output.stdout)));
    judges(FINDING, receipts[0]["findings"].as_array().unwrap(), &[]);
    let receipt = &receipts[2];
    judges(
        "receipt.schema.json",
        &receipts,
        &[
            json!({}),
            with(receipt, "/schema", Some(json!(3))),
            with(receipt, "/other", Some(json!(1))),
            with(receipt, "/packages/0/sha256", None),
            with(receipt, "/packages/0/role", Some(json!("other"))),
            with(receipt, "/packages/0/folders", Some(json!({ "/x": {} }))),
            with(receipt, "/packages/0/folders", Some(json!({ "/x/": { "a": { "kind": "x" } } }))),
            with(receipt, "/packages/0/shared_folders", Some(json!({ "/x/": { "a": [1] } }))),
            with(receipt, "/code_objects/0/key", None),
            with(receipt, "/findings/0/code", Some(json!("V001"))),
        ],
    );

    let mut all = events(&whole);
    fs::remove_file(room.path("whole/rocm_7.1.0-1_amd64.deb")).unwrap();
    let mut verify = rockpack();
    verify.args(["verify", "--log-format", "json"]).arg(room.path("whole"));
    all.extend(events(&verify.output().unwrap()));
    all.extend(events(
        &room.build("x", &["--log-format", "json", "--release", "a b"]).output().unwrap(),
    ));
    let names: Vec<&str> = all.iter().filter_map(|event| event["event"].as_str()).collect();
    for name in ["begin", "end", "package", "note", "warning", "failed", "summary", "error"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    all.push(
        json!({ "event": "progress", "stage": "pack", "done": 1, "bytes": 2, "seconds": 0.5 }),
    );
    judges(
        "event.schema.json",
        &all,
        &[
            json!({ "event": "other" }),
            json!({ "event": "begin", "stage": "build", "bytes": 1 }),
            json!({ "event": "package", "file": "x" }),
            json!({ "event": "warning", "message": "x" }),
        ],
    );
}

#[test]
fn plans_and_matrices_are_as_their_schemas_say() {
    let room = Room::new();
    let plans = [
        room.plan(&["--json", "--format", "rpm", "--archive-level", "none"]),
        room.plan(&["--json", "--format", "deb", "--digests", "--only", "blas_run"]),
    ];
    judges(
        "plan.schema.json",
        &plans,
        &[
            with(&plans[1], "/kind", Some(json!("receipt"))),
            with(&plans[1], "/packages/0/download", Some(json!(7))),
            with(&plans[1], "/packages/0/other", Some(json!(7))),
        ],
    );
    let matrix = room.plan(&["--matrix", "2"]);
    let other = with(&matrix, "/include/0/partition", Some(json!("1")));
    judges("matrix.schema.json", std::slice::from_ref(&matrix), &[other]);
}

#[test]
fn gpus_are_as_their_schema_says() {
    let room = Room::new();
    tools::run(&mut room.build("out", &["--format", "deb"]));
    let gpu = |words: &[&str]| {
        let mut gpu = rockpack();
        gpu.args(["gpu", "--json"]).args(words).env_remove("HSA_OVERRIDE_GFX_VERSION");
        let output = gpu.current_dir(repository("tests/machines")).output().unwrap();
        parsed(&String::from_utf8_lossy(&output.stdout))
    };
    let out = room.path("out");
    let from = ["--for", "apt", "--from", out.to_str().unwrap()];
    let found = [
        gpu(&[&["--sysfs", "apu-beside-card"][..], &from].concat()),
        gpu(&["--sysfs", "unknown-id-beside-known"]),
        gpu(&[&["RX 7900 XTX", "gfx11-generic", "amdgcnspirv"][..], &from].concat()),
    ];
    assert!(found[0]["install"]["command"].is_string() && found[1]["skipped"][0].is_object());
    judges(
        "gpu.schema.json",
        &found,
        &[
            json!({}),
            with(&found[0], "/gpus/0/known_by", Some(json!("other"))),
            with(&found[0], "/install/command", None),
            with(&found[1], "/skipped", None),
            with(&found[2], "/targets/0/other", Some(json!(1))),
        ],
    );
}

#[test]
fn reports_are_as_their_schema_says() {
    let room = Room::new();
    tools::run(&mut room.build("out", &["--format", "deb"]));
    tools::run(&mut room.build("part", &["--format", "deb", "--only", "blas_run"]));
    let report = |set: &str, more: &[&str]| {
        let mut report = rockpack();
        report.current_dir(room.0.path()).args(["report", "--json", set]).args(more);
        parsed(&tools::succeed(&mut report))
    };
    let earlier = repository("tests/fixtures/receipt/packages.json");
    let since = |set: &str| report(set, &["--since", earlier.to_str().unwrap()]);
    let reports = [report("out", &[]), report("part", &["--since", "out"]), since("out")];
    let changes = &reports[2]["changes"];
    for field in ["added", "removed", "changed"] {
        assert!(!changes[field].as_array().unwrap().is_empty(), "{field}: {changes}");
    }
    let gpu = |field: &str| format!("/formats/0/gpus/0/{field}");
    judges(
        "report.schema.json",
        &reports,
        &[
            json!({}),
            with(&reports[0], "/since", None),
            with(&reports[0], "/other", Some(json!(1))),
            with(&reports[0], &gpu("sizes"), Some(json!(null))),
            with(&reports[0], &gpu("families"), Some(json!({ "rocm-blas": -1 }))),
            with(&reports[0], "/findings/0/severity", Some(json!("error"))),
            with(&reports[1], &gpu("earlier"), Some(json!(1))),
            with(&reports[2], "/changes/by_size", None),
            with(&reports[2], "/changes/changed/0/download", Some(json!(7))),
        ],
    );
}

#[test]
fn inspections_are_as_their_schema_says() {
    let room = Room::new();
    tools::run(&mut room.build("out", &["--format", "deb"]));
    let packages = ["rocm-blas_7.1.0-1_amd64.deb", "rocm-blas-gfx110x_7.1.0-1_amd64.deb"];
    for package in packages {
        tools::unpack(&room.path("out").join(package), &room.path("root"));
    }
    let lib = room.path("root/opt/rocm-7.1/lib");
    let shard = shards().join("gfx110X-build");
    let stage = shard.join("blas_lib_gfx110X-dgpu/math-libs/BLAS/rocBLAS/stage/lib");
    let mut wheel = LooseWheel::new("a-1-1-py3-none-any.whl", "Provides-Extra: x\n");
    let headers = wheel.info("WHEEL");
    wheel.add(&headers, wheel.text(&headers) + "Build: 1\n");
    wheel.add("a/liba.so", fs::read(stage.join("libexblas.so.1.2")).unwrap());
    let files = [
        room.path("out").join(packages[1]),
        lib.join(".kpack/blas_lib_gfx1100.kpack"),
        lib.join(".kpack/blas_lib.kpm"),
        lib.join("libexblas.so.1.2"),
        stage.join("libexblas.so.1.2"),
        stage.join("rocblas/library/TensileLibrary_gfx1100.co"),
        stage.join("rocblas/library/TensileLibrary_gfx1100.dat"),
        shard.join("blas_lib_gfx110X-dgpu"),
        wheel.write(&room.path("out")),
        room.path("out"),
    ];
    let inspected = parsed(&tools::succeed(rockpack().args(["inspect", "--json"]).args(&files)));
    let kinds = inspected.as_array().unwrap().iter().map(|file| file["type"].as_str().unwrap());
    let expected = [
        "package",
        "archive",
        "manifest",
        "host-binary",
        "host-binary",
        "code-object",
        "index",
        "artifact",
        "wheel",
        "receipt",
    ];
    assert!(kinds.eq(expected), "{inspected}");
    judges(
        "inspect.schema.json",
        std::slice::from_ref(&inspected),
        &[
            json!({}),
            json!([{ "file": "x", "type": "other" }]),
            with(&inspected, "/0/size", None),
            with(&inspected, "/1/rows/other", Some(json!(1))),
            with(&inspected, "/3/size", None),
            with(&inspected, "/9/receipt/prefix", None),
            with(&inspected, "/9/receipt/packages/0/other", Some(json!(1))),
        ],
    );
}
