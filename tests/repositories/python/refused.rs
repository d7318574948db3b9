//! Wheels that are refused, each with its reason, and nothing is published.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::repo_fixture::{contents, deb, publish, refused, repo, repo_at};
use support::tools::{need, said};

use super::wheels::{Wheel, family};

/// A run that is refused with `parts` and changes nothing; its exit code.
fn changes_nothing(command: &mut Command, out: &Path, parts: &[&str]) -> i32 {
    let before = if out.exists() { contents(out) } else { Default::default() };
    let (said, code) = refused(command);
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
    let after = if out.exists() { contents(out) } else { Default::default() };
    assert_eq!(after, before);
    code
}

#[test]
fn what_is_no_wheel_is_refused() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    let good = Wheel::of("demo", "1.0", "").write(&wheels);
    let bytes = fs::read(&good).unwrap();
    let other = room.path().join("other");
    let nameless = "Metadata-Version: 2.1\n\n";
    let nameless = fs::read(Wheel::of("demo", "1.0", "").write_as(&other, nameless)).unwrap();
    let odd = "Metadata-Version: 2.1\nName: demo\nVersion: main\n\n";
    let odd = fs::read(Wheel::of("demo", "main", "").write_as(&other, odd)).unwrap();
    let cases: [(&str, Vec<u8>, &[&str]); 8] = [
        ("demo-1.0.whl", bytes.clone(), &["demo-1.0.whl", "is no name of a wheel"]),
        ("demo.zip", bytes.clone(), &["demo.zip", "is no name of a wheel"]),
        ("demo-1.1-py3-none-any.whl", bytes.clone(), &["version `1.0`", "file name has `1.1`"]),
        ("omed-1.0-py3-none-any.whl", bytes.clone(), &["name `demo`", "file name has `omed`"]),
        ("demo-1.0-py3-none-any.whl", bytes[..bytes.len() - 9].to_vec(), &["demo-1.0-py3"]),
        ("demo-1.0-py3-none-any.whl", b"PK\x03\x04".to_vec(), &["demo-1.0-py3"]),
        ("demo-1.0-py3-none-any.whl", nameless, &["METADATA"]),
        ("demo-main-py3-none-any.whl", odd, &["`main`", "PEP 440"]),
    ];
    for (name, bytes, parts) in cases {
        let bad = room.path().join("bad").join(name);
        fs::create_dir_all(bad.parent().unwrap()).unwrap();
        fs::write(&bad, bytes).unwrap();
        changes_nothing(&mut repo(&[&good, &bad], &out), &out, parts);
        fs::remove_file(bad).unwrap();
    }
    publish(&mut repo(&[&good], &out));
}

#[test]
fn one_name_is_one_content_for_good() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    family(&wheels, "1.0");
    publish(&mut repo(&[&wheels], &out));
    let same = Wheel::of("demo", "1.0", "Summary: built again\n").write(&room.path().join("again"));
    let parts = ["is another package demo 1.0 for py3-none-any", "SHA-256"];
    assert_eq!(changes_nothing(&mut repo_at(&[&same], &out, 1), &out, &parts), 2);
    // Another spelling of the name or version is the same wheel for installers.
    let folder = room.path().join("spelled");
    fs::create_dir_all(&folder).unwrap();
    for name in ["Demo-1.0-py3-none-any.whl", "demo-1.0.0-py3-none-any.whl"] {
        let spelled = folder.join(name);
        fs::copy(&same, &spelled).unwrap();
        let parts = ["are different packages of one name"];
        assert_eq!(changes_nothing(&mut repo_at(&[&spelled], &out, 1), &out, &parts), 2, "{name}");
    }
    // Also where it was removed a moment ago.
    publish(repo_at(&[], &out, 1).args(["--remove", "demo=1.0"]));
    let parts = ["differs from the wheels/demo/demo-1.0-py3-none-any.whl that the repository has"];
    changes_nothing(&mut repo_at(&[&same], &out, 2), &out, &parts);
    // And where its file is gone.
    let others = room.path().join("others");
    for (number, after) in [4000, 8000, 12000, 16000].into_iter().enumerate() {
        Wheel::of("other", &format!("1.{number}"), "").write(&others);
        publish(&mut repo_at(&[&others], &out, after));
    }
    assert!(!out.join("wheels/demo/demo-1.0-py3-none-any.whl").exists());
    let parts = ["differs from the wheels/demo/demo-1.0-py3-none-any.whl that the repository has"];
    changes_nothing(&mut repo_at(&[&same], &out, 17000), &out, &parts);
    publish(&mut repo_at(&[&wheels], &out, 17000));
    // A lower version is no downgrade: requirements choose.
    let lower = Wheel::of("demo", "0.9", "").write(&room.path().join("lower"));
    publish(&mut repo_at(&[&lower], &out, 18000));
    let listed = out.join("wheels/demo/demo-0.9-py3-none-any.whl");
    fs::write(&listed, "changed").unwrap();
    let parts = ["demo-0.9-py3-none-any.whl is not the package that was published"];
    changes_nothing(&mut repo_at(&[], &out, 18001), &out, &parts);
}

#[test]
fn files_of_others_stay_as_they_are() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    family(&wheels, "1.0");
    let wheel = "wheels/demo/demo-1.0-py3-none-any.whl";
    let metadata = format!("{wheel}.metadata");
    for path in
        ["simple/index.html", "simple/index.json", "simple/demo/index.html", wheel, &metadata]
    {
        fs::create_dir_all(out.join(path).parent().unwrap()).unwrap();
        fs::write(out.join(path), "of another tool").unwrap();
        changes_nothing(&mut repo(&[&wheels], &out), &out, &[path, "is there already"]);
        fs::remove_file(out.join(path)).unwrap();
    }
    publish(&mut repo(&[&wheels], &out));
    Wheel::of("more", "1.0", "").write(&wheels);
    fs::create_dir_all(out.join("simple/more")).unwrap();
    fs::write(out.join("simple/more/index.html"), "of another tool").unwrap();
    changes_nothing(&mut repo_at(&[&wheels], &out, 1), &out, &["simple/more/index.html is there"]);
}

#[test]
fn marks_are_for_wheels_that_are_there() {
    need(&["python3", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    publish(&mut repo(&[&one], &out));
    let marks: [&[&str]; 3] =
        [&["--yank", "demo=1.0"], &["--unyank", "demo=1.0"], &["--yank", "one=1"]];
    for words in marks {
        let code = changes_nothing(repo_at(&[], &out, 1).args(words), &out, &["has no wheel"]);
        assert_eq!(code, 64);
    }
    family(&wheels, "1.0");
    publish(&mut repo_at(&[&wheels], &out, 1));
    for (words, part) in [
        (["--yank", "demo=1.1"], "the repository has no wheel demo=1.1 to yank"),
        (["--unyank", "demo-1.1-py3-none-any.whl"], "no wheel demo-1.1-py3-none-any.whl to unyank"),
        (["--yank", "demo"], "`demo` names no wheel"),
        (["--yank", "demo==1.0"], "names no wheel"),
        (["--unyank", "demo"], "`demo` names no wheel"),
        (["--remove", "demo=1.1"], "no package demo=1.1 to remove"),
    ] {
        let code = changes_nothing(repo_at(&[], &out, 2).args(words), &out, &[part]);
        assert_eq!(code, 64);
    }
    // Of a repository with packages of all kinds, the index alone.
    let told = said(repo_at(&[], &out, 3).args(["--wheel", "--yank", "demo=1.0"]));
    assert!(told.contains("python: ") && !told.contains("apt-stable"), "{told}");
}
