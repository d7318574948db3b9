//! Wheels that are refused, each with its reason, and nothing is published.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::fat_wheels::{WheelSpec, metadata};
use support::program::rockpack;
use support::python::PYTHON;
use support::repo_fixture::{contents, deb, publish, refused, repo, repo_at};
use support::tools::{need, said, told};

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
    let variant = ["is a variant wheel (PEP 825", "without a label, demo-1.0-py3-none-any.whl"];
    let cases: [(&str, Vec<u8>, &[&str]); 9] = [
        ("demo-1.0.whl", bytes.clone(), &["demo-1.0.whl", "is not a valid wheel file name"]),
        ("demo-1.0-py3-none-any-null.whl", bytes.clone(), &variant),
        ("demo.zip", bytes.clone(), &["demo.zip", "is not a valid wheel file name"]),
        ("demo-1.1-py3-none-any.whl", bytes.clone(), &["the version 1.1", "METADATA says 1.0"]),
        ("omed-1.0-py3-none-any.whl", bytes.clone(), &["the name omed", "METADATA says demo"]),
        ("demo-1.0-py3-none-any.whl", bytes[..bytes.len() - 9].to_vec(), &["demo-1.0-py3"]),
        ("demo-1.0-py3-none-any.whl", b"PK\x03\x04".to_vec(), &["demo-1.0-py3"]),
        ("demo-1.0-py3-none-any.whl", nameless, &["METADATA"]),
        ("demo-main-py3-none-any.whl", odd, &["version main", "PEP 440"]),
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

/// A wheel with a row of RECORD that no change of other files spoils.
fn plain() -> WheelSpec {
    WheelSpec::new("x", "1.0").text("x/a.py", "")
}

const ROW: &str = "x/a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n";
const OWN: &str = "x-1.0.dist-info/RECORD,,\n";

/// A spoiled wheel, and words of its refusal.
type Spoiled = (WheelSpec, [&'static str; 2]);

/// Wheels that pip or uv refuse.
fn uninstallable() -> [Spoiled; 13] {
    let metadata = support::fat_wheels::metadata("x", "1.0", "Requires-Dist: a b\n");
    let damaged = plain().text("x/b.py", "b = 1\n").patch("x/b.py", "crc", 7);
    let blank = support::fat_wheels::metadata("x ", "1.0", "");
    let scripts = |line: &str| {
        plain().info("entry_points.txt", &format!("# of x\n[console_scripts]\n\n{line}\n"))
    };
    [
        (plain().text("../x.py", ""), ["../x.py", "not a path inside the wheel"]),
        (plain().text("x/a.py/b.py", ""), ["the file x/a.py", "members below it"]),
        (plain().text("x-1.0.data/odd/b.py", ""), ["odd/b.py", "by which nothing is installed"]),
        (damaged, ["the member x/b.py is damaged", "CRC-32"]),
        (plain().without_record(), ["has no x-1.0.dist-info/RECORD", "not a wheel"]),
        (plain().without("x-1.0.dist-info/WHEEL"), ["has no x-1.0.dist-info/WHEEL", "not a wheel"]),
        (plain().info("METADATA", &metadata), ["Requires-Dist", "`a b`"]),
        (plain().info("METADATA", &blank), ["METADATA", "has the Name `x`"]),
        (
            plain().info("WHEEL", "Wheel-Version: 1\nRoot-Is-Purelib: true\n"),
            ["WHEEL", "Version 1,"],
        ),
        (plain().text("y-1.0.dist-info", ""), ["two .dist-info folders", "y-1.0.dist-info"]),
        (plain().text("x-1.0.data/scripts/a/b", ""), ["data/scripts/a,", "nothing is installed"]),
        (scripts("../y = x:main"), ["entry_points.txt", "has the script `../y = x:main`"]),
        (scripts("y = x"), ["entry_points.txt", "has the script `y = x`"]),
    ]
}

/// Wheels that both install, as something else than their RECORD says.
fn misread() -> [Spoiled; 8] {
    let link = plain().text("x/link", "a.py").set("x/link", "mode", 0o120_777);
    [
        (link, ["x/link", "symbolic link"]),
        (plain().text("x/../a.py", ""), ["x/../a.py", "not a path inside the wheel"]),
        (plain().edit("sha256=4", "sha256=5"), ["x/a.py", "another sha256 than RECORD says"]),
        (plain().edit(ROW, &ROW.replace(",0", ",1")), ["x/a.py", "0 bytes, and RECORD says 1"]),
        (plain().edit(ROW, ""), ["x/a.py", "is not in RECORD"]),
        (plain().edit(ROW, &format!("{ROW}gone.py,,\n")), ["gone.py", "not in the wheel"]),
        (plain().edit(OWN, ""), ["RECORD", "has no row of itself"]),
        (plain().edit(ROW, &format!("{ROW}{ROW}")), ["RECORD", "x/a.py twice"]),
    ]
}

#[test]
fn spoiled_wheels_are_refused_as_verify_refuses_them() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    let good = Wheel::of("demo", "1.0", "").write(&wheels);
    let is_refused = |wheel: &Path| {
        let folder = tempfile::tempdir().unwrap();
        clients_refuse(wheel, folder.path())
    };
    assert!(!is_refused(&plain().write(&wheels)));
    for (wheel, words) in uninstallable() {
        let path = wheel.write(&wheels);
        assert!(is_refused(&path), "{words:?}");
        refuses(&good, &path, &out, &words);
    }
    for (wheel, words) in misread() {
        refuses(&good, &wheel.write(&wheels), &out, &words);
    }
    // What only a wheel that was split must not have.
    let listed = plain().set("x/a.py", "hash", false).info("RECORD.jws", "{}").text("x/b/", "");
    let points = "[x]\ny\n[console_scripts]\n# of x\ny = x.z:main [more]\n";
    let listed = listed.info("entry_points.txt", points);
    publish(&mut repo(&[&good, &listed.write(&wheels)], &out));
}

/// Clients do not compare the rows of METADATA and WHEEL, which tools edit.
#[test]
fn stale_rows_of_edited_texts_are_warnings() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let (wheel, out) =
        (plain().stale().write(&room.path().join("wheels")), room.path().join("repo"));
    assert!(!clients_refuse(&wheel, room.path()));
    let said = publish(&mut repo(&[&wheel], &out));
    assert!(said.contains("R149") && said.contains("x-1.0.dist-info/WHEEL has "), "{said}");
    for (path, options, words, code) in [
        (&out, &[][..], "warning: V093", 0),
        (&out, &["--strict"][..], "failed: V093", 1),
        (&wheel, &[][..], "warning: V093", 0),
        (&wheel, &["--strict"][..], "failed: V093", 1),
    ] {
        let said = told(rockpack().arg("verify").arg(path).args(options));
        assert!(said.ends_with(&format!("exit status: {code}\n")), "{words}: {said}");
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// rockpack wrote RECORD of wheels that were split.
#[test]
fn stale_rows_of_split_wheels_are_refused() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let [wheels, out] = ["wheels", "repo"].map(|name| room.path().join(name));
    let brings = "Provides-Extra: device-gfx942\n\
                  Requires-Dist: x-device-gfx942 == 1.0; extra == \"device-gfx942\"\n";
    plain().info("METADATA", &metadata("x", "1.0", brings)).stale().write(&wheels);
    let (said, code) = refused(&mut repo(&[&wheels], &out));
    assert!(said.contains("edited after the split") && code == 2, "{said}");
    Wheel::of("demo", "1.0", "").write(&wheels);
    let (said, code) = refused(repo(&[&wheels], &out).arg("--skip-bad"));
    assert!(said.contains("R058") && said.contains("x-1.0-") && code == 1, "{said}");
    assert!(out.join("wheels/demo").exists() && !out.join("wheels/x").exists());
}

#[test]
fn spoiled_wheels_are_left_out_on_request() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    let good = Wheel::of("demo", "1.0", "").write(&wheels);
    fs::write(wheels.join("cut-1.0-py3-none-any.whl"), &fs::read(&good).unwrap()[..200]).unwrap();
    plain().edit("sha256=4", "sha256=5").write(&wheels);
    let (said, code) = refused(repo(&[&wheels], &out).arg("--skip-bad"));
    assert_eq!(code, 1, "{said}");
    for words in ["cut-1.0-py3-none-any.whl: is left out", "another sha256 than RECORD says"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let published: Vec<_> = fs::read_dir(out.join("wheels")).unwrap().collect();
    assert_eq!(published.len(), 1, "{published:?}");
    assert!(out.join("simple/demo/index.html").exists());
}

/// Fails unless `repo` refuses `path` with the words and changes nothing, and `verify` refuses it, too.
fn refuses(good: &Path, path: &Path, out: &Path, words: &[&str]) {
    let file = path.file_name().unwrap().to_str().unwrap();
    let parts: Vec<&str> = words.iter().copied().chain([file]).collect();
    changes_nothing(&mut repo(&[good, path], out), out, &parts);
    let verified = told(rockpack().arg("verify").arg(path));
    assert!(verified.ends_with("exit status: 1\n"), "{words:?}: {verified}");
}

/// Whether uv or pip refuses to install the wheel.
fn clients_refuse(wheel: &Path, folder: &Path) -> bool {
    let (mut uv, mut pip) = (Command::new("uv"), Command::new("pip"));
    uv.args(["pip", "install", "--no-cache", "--no-config", "--python", PYTHON]);
    pip.args(["--isolated", "--disable-pip-version-check", "install", "--no-cache-dir"]);
    [("uv", uv), ("pip", pip)].into_iter().any(|(name, mut client)| {
        client.args(["--no-index", "--no-deps", "--target"]).arg(folder.join(name)).arg(wheel);
        !client.output().unwrap().status.success()
    })
}

#[test]
fn one_name_is_one_content_for_good() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    family(&wheels, "1.0");
    publish(&mut repo(&[&wheels], &out));
    let same = Wheel::of("demo", "1.0", "Summary: built again\n").write(&room.path().join("again"));
    let parts = ["is demo 1.0 for py3-none-any, like ", "SHA-256"];
    assert_eq!(changes_nothing(&mut repo_at(&[&same], &out, 1), &out, &parts), 2);
    // Another spelling of the name or version is the same wheel for installers.
    let folder = room.path().join("spelled");
    fs::create_dir_all(&folder).unwrap();
    for name in ["Demo-1.0-py3-none-any.whl", "demo-1.0.0-py3-none-any.whl"] {
        let spelled = folder.join(name);
        fs::copy(&same, &spelled).unwrap();
        let parts = ["are different packages with one name"];
        assert_eq!(changes_nothing(&mut repo_at(&[&spelled], &out, 1), &out, &parts), 2, "{name}");
    }
    // Also where it was removed a moment ago.
    publish(repo_at(&[], &out, 1).args(["--remove", "demo=1.0", "--allow=unmet"]));
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
        let why = if path.starts_with("wheels/") {
            "which rockpack did not publish"
        } else {
            "already exists"
        };
        changes_nothing(&mut repo(&[&wheels], &out), &out, &[path, why]);
        fs::remove_file(out.join(path)).unwrap();
    }
    publish(&mut repo(&[&wheels], &out));
    Wheel::of("more", "1.0", "").write(&wheels);
    fs::create_dir_all(out.join("simple/more")).unwrap();
    fs::write(out.join("simple/more/index.html"), "of another tool").unwrap();
    changes_nothing(
        &mut repo_at(&[&wheels], &out, 1),
        &out,
        &["simple/more/index.html already exists"],
    );
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
