//! Wheels that installers pass over, because one that differs behind the `+` alone sorts higher, are named.

use std::collections::BTreeSet;

use support::installers::CLIENTS;
use support::repo_fixture::{publish, repo, repo_at};
use support::tools::{need, said};

use super::clients::Environment;
use super::kept::{listed, names};
use super::wheels::{Wheel, family};
use crate::others::lines_with;

#[test]
fn clients_pass_over_what_is_named() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let [first, second, out] = ["first", "second", "a repo"].map(|name| room.path().join(name));
    let version = ["2.12.0+rocm7.15", "2.12.0+rocm10.1"];
    family(&first, version[0]);
    family(&second, version[1]);
    publish(&mut repo(&[&first], &out));
    let told = publish(repo_at(&[&second], &out, 1).args(["--keep", "1"]));
    let named = lines_with(&told, "R152");
    let text = "demo 2.12.0+rocm10.1: pip and uv choose 2.12.0+rocm7.15 from this index";
    assert!(named.len() == 1 && named[0].contains(text), "one for host and device wheels: {told}");
    let of_host = version.map(|version| format!("demo-{version}"));
    let of_host: Vec<&str> = of_host.iter().map(String::as_str).collect();
    assert!(listed(&out).is_superset(&names(&of_host)), "what was given stays: {told}");
    // The URL that is printed is one that clients take as it is.
    let url = told.split("--index-url ").nth(1).unwrap().lines().next().unwrap();
    assert!(url.starts_with("file:///") && url.ends_with("/a%20repo/simple/"), "{url}");
    for client in CLIENTS {
        let folder = room.path().join(client);
        let environment = Environment::new(&folder, url.trim_end_matches("/simple/"));
        said(&mut environment.installs(client, &["demo"]));
        assert_eq!(environment.installed(), [of_host[0]], "{client}");
    }
    let again = publish(repo_at(&[&second], &out, 2).args(["--url", "https://example.org/rocm"]));
    assert!(lines_with(&again, "R152").is_empty(), "nothing is added: {again}");
    assert!(again.contains("  for pip and uv: --index-url https://example.org/rocm/simple/\n"));
}

#[test]
fn versions_that_differ_behind_the_plus_alone_are_compared() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let [first, second, out, once] =
        ["first", "second", "repo", "once"].map(|name| room.path().join(name));
    // Whether the second is named in a run after the first, and in the same run, where nothing says which is newer
    // but numbers.
    let cases = [
        ("tools", "1.0+cu99", "1.0+cu118", [true, true]),
        ("commit", "1.0+gfff0", "1.0+g1a2b", [true, false]),
        ("without", "1.0.0+rocm7.1", "1.0", [true, false]),
        ("counted", "1.0+rocm7.9", "1.0+rocm7.1", [true, false]),
        ("alpha", "1.0+rocm7.9.0", "1.0+rocm7.9.0a1", [true, false]),
        ("higher", "1.0+rocm7.9", "1.0+rocm9.0", [false, false]),
        ("public", "2.12.0+rocm7.15", "2.11.1+rocm10.1", [false, false]),
        ("release", "1.0.post1+rocm7.15", "1.0.dev1+rocm10.1", [false, false]),
        ("yanked", "1.0+rocm7.15", "1.0+rocm10.1", [false, false]),
    ];
    for (name, earlier, added, _) in cases {
        Wheel::of(name, earlier, "").write(&first);
        Wheel::of(name, added, "").write(&second);
    }
    let of_python = |python: &str, version| {
        let tags = format!("{python}-{python}-linux_x86_64");
        Wheel { tags: &tags, ..Wheel::of("pythons", version, "") }.write(&room.path().join(python))
    };
    let pythons = [of_python("cp311", "1.0+rocm7.15"), of_python("cp312", "1.0+rocm10.1")];
    let yank = ["--yank", "yanked=1.0+rocm7.15"];
    publish(repo(&[&first, &pythons[0]], &out).args(yank));
    let runs = [
        publish(&mut repo_at(&[&second, &pythons[1]], &out, 1)),
        publish(repo(&[&first, &second, &pythons[0], &pythons[1]], &once).args(yank)),
    ];
    for (run, told) in runs.into_iter().enumerate() {
        let named = lines_with(&told, "R152");
        let projects: BTreeSet<&str> =
            named.iter().map(|line| line.split(' ').nth(3).unwrap()).collect();
        let expected: BTreeSet<&str> =
            cases.iter().filter(|case| case.3[run]).map(|case| case.0).collect();
        assert_eq!(projects, expected, "{told}");
    }
}
