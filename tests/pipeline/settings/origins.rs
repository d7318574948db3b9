//! Every value states its origin.

use std::fs;
use std::path::Path;

use rockpack::settings::{KeyDefault, KeyDocument, keys};
use rockpack_core::run::parse_size;
use serde_json::{Value, json};

use super::{Room, shown};
use support::example::{configuration, rockpack, shards};
use support::tools;

#[test]
fn every_value_says_where_it_comes_from() {
    let room = Room::new();
    let text = "version = '6.4'\nrelease = '3'\ndistro = 'debian-13'\n\n[architecture_groups.one]\n\
                architectures = ['gfx90a']\n\n[[parts]]\nname = 'tools'\nkinds = ['run']\n\
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
    let default = json!({ "origin": "default" });
    let scheme = json!({ "origin": "scheme" });
    for (key, value, origin) in [
        ("version", json!("7.15.0-rc1"), from_flag("--version")),
        ("release", json!("3"), from_file(file, 2, 11)),
        ("scheme", json!("amdrocm"), from_flag("--scheme")),
        ("prefix", json!("/opt/rocm/core-7.15"), scheme.clone()),
        ("distro", json!("debian-13"), from_file(file, 3, 10)),
        ("variant", Value::Null, default.clone()),
        ("runpath", json!("rpath"), scheme.clone()),
        ("series_link", json!(true), scheme.clone()),
        ("runtime_relation.deb", json!("amdrocm-runtime7.15"), scheme),
        ("architecture_groups.one.architectures", json!(["gfx90a"]), from_file(file, 6, 17)),
        ("validation.untransformable", json!("error"), default.clone()),
        ("validation.error_on_duplicate_device_code", json!(true), default.clone()),
        ("maintainer", json!("Unnamed packager <packager@rockpack.invalid>"), default.clone()),
        ("kpackdir", json!("lib/.kpack"), default.clone()),
        ("--preset", json!("small"), from_flag("--preset")),
        ("archive_level", json!("19"), from_flag("--preset")),
        ("--payload-level", json!(3), from_flag("--payload-level")),
        ("--compression", json!("zstd"), json!({ "origin": "distribution" })),
        ("--sbom", json!(true), from_flag("--sbom")),
        ("--strict", json!(false), default.clone()),
        ("--cache", json!("c"), from_flag("--cache")),
        ("--cache-size", json!(32_u64 << 30), default),
        ("--artifacts", json!(["x", "y"]), from_flag("--artifacts")),
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

/// The distribution gives the compression of each format, and a tag unless the configuration does.
#[test]
fn a_distribution_with_rpm_gives_compression_and_tag() {
    let room = Room::new();
    let file = room.write("c.toml", "distribution_tag.rpm = '.mine'\n");
    let file = file.to_str().unwrap();
    let configured = format!("--distro el9 --config {file}");
    let [el8, el9] = ["--distro el8", "--distro el9"];
    let of_distribution = json!({ "origin": "distribution" });
    let of_default = json!({ "origin": "default" });
    let tag = "distribution_tag.rpm";
    for (words, key, value, origin) in [
        (el8, tag, json!(".el8"), &of_distribution),
        (el8, "--compression", json!("deb=zstd,rpm=xz"), &of_distribution),
        (el8, "--payload-level", json!("deb=9,rpm=6"), &of_default),
        (el9, "--compression", json!("zstd"), &of_distribution),
        ("--distro el8 --format rpm", "--compression", json!("xz"), &of_distribution),
        ("--distro el8 --compression zstd", "--payload-level", json!(9), &of_default),
        ("--distro fedora", tag, Value::Null, &of_default),
        ("--distro el9 --release 1.el9", tag, Value::Null, &of_default),
        (configured.as_str(), tag, json!(".mine"), &from_file(file, 1, 24)),
    ] {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(["--artifacts", "x"]);
        let shown = shown(&words);
        let found = shown.iter().find(|(known, ..)| known == key);
        assert_eq!(found, Some(&(key.to_owned(), value, origin.clone())), "{words:?}");
    }
}

fn from_flag(option: &str) -> Value {
    json!({ "origin": "flag", "option": option })
}

fn from_file(file: &str, line: u32, column: u32) -> Value {
    json!({ "origin": "file", "file": file, "line": line, "column": column })
}

/// The option and the key share a name but have different meanings.
#[test]
fn the_option_packages_does_not_hide_the_key() {
    let room = Room::new();
    let file = room.write("c.toml", "[packages.rocm-blas]\nsummary = 'Words'\n");
    let list = "tests/fixtures/package_list/package.json";
    let shown = shown(&["--config", file.to_str().unwrap(), "--packages", list]);
    for (key, expected) in [("packages.rocm-blas.summary", "Words"), ("--packages", list)] {
        let value = shown.iter().find(|(known, ..)| known == key).map(|it| it.1.clone());
        assert_eq!(value, Some(json!(expected)), "{key}");
    }
}

/// The table shows the same values as the JSON.
#[test]
fn settings_are_shown_as_a_table() {
    let mut command = rockpack();
    let config = "examples/packaging-config.json";
    command
        .args(["config", "show", "--config", config])
        .current_dir(support::program::repository(""));
    let text = tools::succeed(&mut command);
    let place = "examples/packaging-config.json:1:20";
    assert_eq!(row(&text, "primary_shard"), ["gfx110X-build", place]);
    assert_eq!(row(&text, "version"), ["0.0.0", "default"]);
    assert_eq!(row(&text, "vendor"), ["-", "default"]);
    assert_eq!(row(&text, "--jobs").len(), 2);
    assert_eq!(row(&text, "--memory").join(" "), "(a quarter of the machine's) default");
}

fn row<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(key));
    line.unwrap_or_else(|| panic!("{key} is not in {text}")).split_whitespace().skip(1).collect()
}

/// A build gives the same packages if the shown values are set explicitly.
#[test]
fn a_default_that_is_written_out_changes_nothing() {
    let room = Room::new();
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

fn planned(config: &Path) -> String {
    let mut plan = rockpack();
    plan.args(["plan", "--json", "--version", "7.1.0", "--artifacts"]).arg(shards());
    tools::succeed(plan.arg("--config").arg(config))
}

/// The defaults that the configuration's keys state, by key; only single values.
fn declared_keys() -> Vec<(String, String)> {
    let value = |key: KeyDocument| match key.default {
        Some(KeyDefault::Value(value)) => Some((key.path.join("."), plain(&value))),
        Some(KeyDefault::Words(_)) | None => None,
    };
    // A value inside a map applies to all entries, and is shown with the map.
    keys().into_iter().filter_map(value).filter(|(key, _)| !key.contains('*')).collect()
}

/// The defaults that the help of `build` states, by option; only single words.
fn declared_options() -> Vec<(String, String)> {
    let help = tools::succeed(rockpack().args(["build", "--help"]));
    let mut found = Vec::new();
    let mut option = "";
    let mut text = String::new();
    for line in help.lines().map(str::trim_start) {
        if let Some(at) = line.find("--").filter(|_| line.starts_with('-')) {
            option = line[at..].split_whitespace().next().unwrap();
            text.clear();
        }
        text.extend([line, " "]);
        let default = text.rsplit_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
        if let Some((default, _)) = default.filter(|(default, _)| !default.contains(' ')) {
            found.push((option.to_owned(), default.to_owned()));
            text.clear();
        }
    }
    // These options affect a command's messages, not its results.
    found.retain(|(option, _)| !["--log-format", "--color"].contains(&option.as_str()));
    found
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A default stated in the texts is the one that applies if nobody sets a value.
#[test]
fn every_default_that_is_stated_is_the_one_that_holds() {
    let room = Room::new();
    let shown = shown(&["--repo", room.path("repo").to_str().unwrap()]);
    let options = declared_options();
    for option in ["--preset", "--format", "--distro", "--version", "--cache-size"] {
        assert!(options.iter().any(|(known, _)| known == option), "{option}: {options:?}");
    }
    let keys = declared_keys();
    for key in ["repository.suite", "repository.generations"] {
        assert!(keys.iter().any(|(known, _)| known == key), "{key}: {keys:?}");
    }
    let declared = [keys, options].concat();
    assert!(declared.len() > 20, "{declared:?}");
    for (key, default) in declared {
        // Options that are also keys are shown as keys.
        let name = key.trim_start_matches('-');
        let mut known = shown.iter().filter(|(known, ..)| *known == key || *known == name);
        let (_, value, origin) = known.next().unwrap_or_else(|| panic!("{key} is not shown"));
        let default = match parse_size(&default) {
            Ok(bytes) if key == "--cache-size" => bytes.to_string(),
            _ => default,
        };
        assert_eq!(plain(value), default, "{key}");
        assert_eq!(origin["origin"], "default", "{key}");
    }
}
