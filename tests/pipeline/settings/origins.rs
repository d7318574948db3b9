//! Every value says where it comes from.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Room, shown};
use support::example::{configuration, rockpack, shards};
use support::tools;

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
    command
        .args(["config", "show", "--config", config])
        .current_dir(support::program::repository(""));
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
