//! `rockpack inspect` of packages, from outside, beside dpkg-deb and rpm.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use support::example::{Set, rockpack};
use support::queries::{rpm_list, rpm_tags};
use support::tools;

fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(Set::build)
}

fn found(file: &Path) -> Value {
    let output = tools::run(rockpack().args(["inspect", "--json"]).arg(file));
    let mut all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all[0].take()
}

fn member<'a>(package: &'a Value, path: &str) -> &'a Value {
    let members = package["members"].as_array().unwrap();
    members.iter().find(|member| member["path"] == path).unwrap_or_else(|| panic!("{path}"))
}

#[test]
fn a_kernel_package_shows_its_archives() {
    for file in [set().deb("rocm-blas-gfx110x"), set().rpm("rocm-blas-gfx110x")] {
        let found = found(&file);
        assert_eq!(
            (&found["type"], &found["size"]),
            (&json!("package"), &json!(fs::metadata(&file).unwrap().len()))
        );
        assert_eq!(found["archs"], json!(["gfx1100", "gfx1101", "gfx1102"]));
        let archive = member(&found, "/opt/rocm-7.1/lib/.kpack/blas_lib_gfx1101.kpack");
        let device = json!({
            "what": "kernel-archive",
            "targets": ["gfx1101"],
            "code_objects": 4,
            "uncompressed_size": 16352,
        });
        assert_eq!(archive["device"], device);
        let code = "/opt/rocm-7.1/lib/rocblas/library/TensileLibrary_gfx1102.co";
        let device = &member(&found, code)["device"];
        assert_eq!(
            (&device["what"], &device["targets"]),
            (&json!("code-object"), &json!(["gfx1102"]))
        );
    }
}

#[test]
fn a_host_package_shows_what_refers_to_archives() {
    let found = found(&set().deb("rocm-blas"));
    for (path, what) in [
        ("lib/libexblas.so.1.2", json!("transformed-binary")),
        ("lib/.kpack/blas_lib.kpm", json!("kernel-manifest")),
        ("lib/libexcblas.so.1.0", Value::Null),
    ] {
        let member = member(&found, &format!("/opt/rocm-7.1/{path}"));
        assert_eq!(member["device"]["what"], what, "{path}");
    }
    let link = member(&found, "/opt/rocm-7.1/lib/libexblas.so");
    assert_eq!((&link["kind"], &link["target"]), (&json!("link"), &json!("libexblas.so.1")));
}

#[test]
fn the_text_names_fields_and_members() {
    let output = tools::run(rockpack().arg("inspect").arg(set().deb("rocm-blas-gfx110x")));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Package: .deb ("), "{text}");
    for part in [
        "\n  Package: rocm-blas-gfx110x\n",
        "\n  Version: 7.1.0-1\n",
        "\nArchs: gfx1100 gfx1101 gfx1102\n",
        "  kernel archive for gfx1100: 4 code objects, 16.35 kB\n",
        "/usr/share/doc/rocm-blas-gfx110x -> rocm-blas\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// `dpkg-deb -f` and `-c` report the same fields and members.
#[test]
fn a_deb_is_what_dpkg_sees() {
    tools::need(&["dpkg-deb"]);
    for package in ["rocm-blas", "rocm-blas-gfx120x", "rocm"] {
        let file = set().deb(package);
        let found = found(&file);
        for (name, value) in found["fields"].as_object().unwrap() {
            let mut field = Command::new("dpkg-deb");
            let theirs = tools::succeed(field.arg("-f").arg(&file).arg(name));
            assert_eq!(words_of(value.as_str().unwrap()), words_of(&theirs), "{name}");
        }
        let listed = tools::succeed(Command::new("dpkg-deb").arg("-c").arg(&file));
        let mut members = found["members"].as_array().unwrap().iter();
        for line in listed.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let path = words[5].trim_start_matches('.').trim_end_matches('/');
            if path.is_empty() {
                continue;
            }
            let own = members.next().unwrap();
            assert_eq!((&own["path"], &own["owner"]), (&json!(path), &json!(words[1])));
            assert_eq!(own["size"].to_string(), words[2], "{line}");
            assert_eq!(permissions(own), &words[0][1..], "{line}");
            assert_eq!(own["target"].as_str(), words.get(7).copied(), "{line}");
        }
        assert!(members.next().is_none());
    }
}

/// The words of a field. In descriptions, dpkg writes an empty line as a lone dot.
fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().filter(|word| *word != ".").map(str::to_owned).collect()
}

/// The mode of a member as `ls` writes it.
fn permissions(member: &Value) -> String {
    let mode = u32::from_str_radix(member["mode"].as_str().unwrap(), 8).unwrap();
    let bit =
        |bit: usize| if mode & (1 << (8 - bit)) == 0 { '-' } else { ['r', 'w', 'x'][bit % 3] };
    (0..9).map(bit).collect()
}

/// `rpm -qp` reports the same tags, relations and files.
#[test]
fn an_rpm_is_what_rpm_sees() {
    tools::need(&["rpm"]);
    let tags: BTreeMap<&str, &str> = BTreeMap::from([
        ("Name", "NAME"),
        ("Version", "VERSION"),
        ("Release", "RELEASE"),
        ("Architecture", "ARCH"),
        ("Group", "GROUP"),
        ("Size", "SIZE"),
        ("License", "LICENSE"),
        ("Source RPM", "SOURCERPM"),
        ("Build Date", "BUILDTIME"),
        ("Build Host", "BUILDHOST"),
        ("Packager", "PACKAGER"),
        ("Vendor", "VENDOR"),
        ("URL", "URL"),
        ("Summary", "SUMMARY"),
        ("Description", "DESCRIPTION"),
    ]);
    for package in ["rocm-blas", "rocm-blas-gfx115x"] {
        let file = set().rpm(package);
        let found = found(&file);
        for (name, value) in found["fields"].as_object().unwrap() {
            let own = value.as_str().unwrap();
            match tags.get(name.as_str()) {
                Some(tag) => assert_eq!(own, rpm_tags(&file, &format!("%{{{tag}}}")), "{name}"),
                None => {
                    let mut own: Vec<&str> = own.split(", ").collect();
                    own.sort_unstable();
                    let theirs = rpm_list(&file, &format!("--{}", name.to_lowercase()));
                    let mut theirs: Vec<&str> = theirs.lines().map(str::trim_end).collect();
                    theirs.sort_unstable();
                    assert_eq!(own, theirs, "{name}");
                }
            }
        }
        assert!(found["fields"]["Requires"].is_string());
        let listed = rpm_tags(&file, "[%{FILENAMES} %{FILESIZES} %{FILEMODES:octal}\n]");
        let mut listed: Vec<Vec<&str>> =
            listed.lines().map(|line| line.split(' ').collect()).collect();
        let mut members: Vec<&Value> = found["members"].as_array().unwrap().iter().collect();
        listed.sort();
        members.sort_by_key(|member| member["path"].as_str().unwrap());
        assert_eq!(members.len(), listed.len());
        for (own, theirs) in members.iter().zip(&listed) {
            assert_eq!(own["path"], theirs[0]);
            if own["kind"] == "file" {
                assert_eq!(own["size"].to_string(), theirs[1]);
            }
            let octal = own["mode"].as_str().unwrap();
            assert!(theirs[2].ends_with(&octal[1..]), "{own} {theirs:?}");
        }
    }
}

/// A member named like an archive that cannot be read is shown with its fault, beside the others.
#[test]
fn a_broken_archive_inside_is_a_fault_of_its_own() {
    tools::need(&["dpkg-deb"]);
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    fs::create_dir_all(root.join("DEBIAN")).unwrap();
    let control = "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n";
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    fs::write(root.join("broken.kpack"), b"KPAK\x01\0\0\0").unwrap();
    fs::write(root.join("text"), b"text").unwrap();
    let package = scratch.path().join("x.deb");
    let mut build = Command::new("dpkg-deb");
    tools::run(build.args(["--root-owner-group", "--build"]).arg(&root).arg(&package));
    let found = found(&package);
    let fault = member(&found, "/broken.kpack")["fault"].as_str().unwrap();
    assert!(fault.contains("kernel archive header"), "{fault}");
    assert_eq!(member(&found, "/text")["size"], 4);
    let bytes = fs::read(&package).unwrap();
    for end in (0..bytes.len()).step_by(13) {
        fs::write(&package, &bytes[..end]).unwrap();
        let output = rockpack().arg("inspect").arg(&package).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "cut to {end}");
    }
}
