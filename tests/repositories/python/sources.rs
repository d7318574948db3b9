//! Source distributions beside wheels, and archives that are only named like them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::fat_wheels::{WheelSpec, library, metadata, wheel_command};
use support::installers::CLIENTS;
use support::python;
use support::repo_fixture::{
    contents, deb, failed_checks, publish, refused, repo, repo_at, verify,
};
use support::tools::{need, run, said};

use super::clients::Environment;
use super::wheels::Wheel;
use crate::server::Server;

/// Writes a source distribution with this PKG-INFO, or without one.
fn source(folder: &Path, file: &str, info: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(file);
    let top = file.strip_suffix(".tar.gz").or_else(|| file.strip_suffix(".zip")).unwrap();
    python::run(include_str!("sdist.py"), &[path.to_str().unwrap(), top], info).unwrap();
    path
}

fn info(name: &str, version: &str, fields: &str) -> String {
    format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{fields}")
}

fn page(out: &Path, project: &str) -> (String, Value) {
    let read = |ending: &str| {
        fs::read_to_string(out.join(format!("simple/{project}/index.{ending}"))).unwrap()
    };
    (read("html"), serde_json::from_str(&read("json")).unwrap())
}

#[test]
fn clients_build_source_distributions_of_the_index() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("repo"));
    let needs = "Requires-Dist: ex-rocm[libraries] == 1.0\nRequires-Dist: zipped\n";
    Wheel::of("extorch", "1.0", needs).write(&given);
    let fields = "Requires-Python: >=3.6\nProvides-Extra: libraries\n";
    let file = source(&given, "Ex-Rocm-1.0.tar.gz", &info("Ex-Rocm", "1.0", fields));
    source(&given, "zipped-2.0.zip", &info("zipped", "2.0", ""));
    publish(repo(&[&given], &out).arg("--strict"));
    assert_eq!(failed_checks(&verify(&out)), [""; 0]);
    let (html, json) = page(&out, "ex-rocm");
    let listed = &json["files"][0];
    assert_eq!(listed["url"], "../../wheels/ex-rocm/Ex-Rocm-1.0.tar.gz");
    assert_eq!(listed["size"], fs::metadata(&file).unwrap().len());
    assert_eq!(listed["requires-python"], ">=3.6");
    assert!(html.contains("data-requires-python=\"&gt;=3.6\""), "{html}");
    // What is built may have other metadata.
    assert!(!html.contains("metadata=") && listed.get("core-metadata").is_none(), "{html}");
    assert!(!contents(&out).contains_key("wheels/ex-rocm/Ex-Rocm-1.0.tar.gz.metadata"));
    let server = Server::of(&out);
    for client in CLIENTS {
        let environment = Environment::new(&room.path().join(client), &server.url);
        said(&mut environment.installs(client, &["extorch"]));
        let expected = ["ex_rocm-1.0", "extorch-1.0", "zipped-2.0"];
        assert_eq!(environment.installed(), expected, "{client}");
    }
    let again = publish(repo_at(&[&given], &out, 1).args(["--yank", "Ex-Rocm-1.0.tar.gz=old"]));
    assert!(again.contains("0 added, 0 removed, 0 read"), "{again}");
    assert!(page(&out, "ex-rocm").0.contains("data-yanked=\"old\""));
    // `verify` reads what pages list.
    fs::write(out.join("wheels/zipped/zipped-2.0.zip"), "").unwrap();
    fs::write(out.join("wheels/zipped/zipped-3.0.zip"), "").unwrap();
    assert_eq!(failed_checks(&verify(&out)), ["V073", "V076"]);
}

#[test]
fn source_distributions_are_versions_of_their_project() {
    need(&["python3"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let [input, given, out] = ["in", "given", "repo"].map(|name| room.path().join(name));
    let fat = WheelSpec::new("ex", "1.0").file("ex/_C.so", &library());
    fat.info("METADATA", &metadata("ex", "1.0", "")).write(&input);
    run(&mut wheel_command(&[&input], &given));
    // No receipt names them.
    let first = source(&given, "ex-2.0.tar.gz", &info("ex", "2.0", ""));
    publish(repo(&[&given], &out).arg("--strict"));
    // One that is for the host wheel of another run is as good as a wheel for every Python.
    let asks = "Provides-Extra: device-gfx942\n\
                Requires-Dist: more-device-gfx942 == 1.0; extra == 'device-gfx942'\n";
    let more = room.path().join("more");
    Wheel::of("more", "1.0", asks).write(&more);
    let device = "Requires-Dist: more == 1.0\n";
    let built = info("more-device-gfx942", "1.0", device);
    source(&more, "more-device-gfx942-1.0.tar.gz", &built);
    publish(repo_at(&[&more], &out, 1).arg("--strict"));
    assert_eq!(failed_checks(&verify(&out)), [""; 0]);
    let other = info("ex", "2.0", "Summary: built again\n");
    for (file, part) in [
        ("ex-2.0.tar.gz", "is ex 2.0 for .tar.gz, like "),
        ("EX-2.0.tar.gz", "are different packages with one name"),
    ] {
        let changed = source(&room.path().join("changed"), file, &other);
        let (told, code) = refused(&mut repo_at(&[&changed], &out, 2));
        assert!(told.contains(part) && code == 2, "{told}");
    }
    let told = publish(repo_at(&[], &out, 2).args(["--keep", "1"]));
    assert!(told.contains("ex-1.0-"), "{told}");
    assert!(page(&out, "ex").0.contains("ex-2.0.tar.gz"));
    publish(repo_at(&[], &out, 3).args(["--remove", "ex=2.0"]));
    assert!(!page(&out, "ex").0.contains("ex-2.0.tar.gz") && first.exists());
}

/// The lines of a finding.
fn left_out(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("R058")).collect()
}

#[test]
fn archives_that_are_only_named_like_distributions_are_named() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("repo"));
    Wheel::of("demo", "1.0", "").write(&given);
    let bare = source(&given, "rocm-dist-7.14.0.tar.gz", "");
    source(&given, "logs-1.0.zip", "");
    for name in ["old-1.0.tar.bz2", "old-1.0-py3.9.egg"] {
        fs::write(given.join(name), "").unwrap();
    }
    // Not named like one.
    for name in ["rocm-blas_7.1.0.orig.tar.gz", "notes.zip", "math_lib_gfx1151.tar.xz"] {
        fs::write(given.join(name), "").unwrap();
    }
    let told = publish(&mut repo(&[&given], &out));
    let lines = left_out(&told);
    for (file, reason) in [
        ("rocm-dist-7.14.0.tar.gz", "has no PKG-INFO"),
        ("logs-1.0.zip", "has no PKG-INFO"),
        ("old-1.0.tar.bz2", "is not named NAME-VERSION.tar.gz"),
        ("old-1.0-py3.9.egg", "is not named NAME-VERSION.tar.gz"),
    ] {
        assert!(lines.iter().any(|it| it.contains(file) && it.contains(reason)), "{told}");
    }
    assert_eq!(lines.len(), 4, "{told}");
    assert_eq!(fs::read_dir(out.join("wheels")).unwrap().count(), 1);
    // One that is named itself is refused.
    let (told, code) = refused(&mut repo(&[&bare], &room.path().join("other")));
    assert!(told.contains("has no PKG-INFO") && code == 64, "{code} {told}");
}

/// An archive of 400 kB that unpacks to 400 MiB.
const BOMB: &str = r#"
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w:gz", compresslevel=6) as archive:
    member = tarfile.TarInfo("bomb-1.0/zeros")
    member.size = 400 << 20
    archive.addfile(member, io.BytesIO(bytes(member.size)))
"#;

#[test]
fn bad_source_distributions_are_refused_or_left_out() {
    need(&["python3", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let [good, bad, out] = ["good", "bad", "repo"].map(|name| room.path().join(name));
    Wheel::of("demo", "1.0", "").write(&good);
    let whole = source(&good, "ex-1.0.tar.gz", &info("ex", "1.0", ""));
    let zipped = source(&good, "ex-1.0.zip", &info("ex", "1.0", ""));
    publish(repo(&[&good], &room.path().join("other")).arg("--strict"));
    source(&bad, "ex-1.1.tar.gz", &info("ex", "1.0", ""));
    source(&bad, "xe-1.0.tar.gz", &info("ex", "1.0", ""));
    source(&bad, "nameless-1.0.zip", "Metadata-Version: 2.1\nVersion: 1.0\n");
    fs::write(bad.join("text-1.0.tar.gz"), "no archive\n").unwrap();
    for (file, cut) in [(&whole, "cut-1.0.tar.gz"), (&zipped, "cut-1.0.zip")] {
        let bytes = fs::read(file).unwrap();
        fs::write(bad.join(cut), &bytes[..bytes.len() - 4]).unwrap();
    }
    python::run(BOMB, &[bad.join("bomb-1.0.tar.gz").to_str().unwrap()], "").unwrap();
    let reasons = [
        ("ex-1.1.tar.gz", "says ex 1.0"),
        ("xe-1.0.tar.gz", "says ex 1.0"),
        ("nameless-1.0.zip", "PKG-INFO: has no Name"),
        ("text-1.0.tar.gz", "cannot decode"),
        ("cut-1.0.tar.gz", ""),
        ("cut-1.0.zip", ""),
        ("bomb-1.0.tar.gz", "unpacks to"),
    ];
    let (told, code) = refused(&mut repo(&[&good, &bad], &out));
    assert!(code == 2 && !out.join("simple").exists(), "{code}: {told}");
    for (file, reason) in reasons {
        assert!(told.contains(file) && told.contains(reason), "{file}: {told}");
    }
    // Who publishes packages alone has archives of other things.
    let mixed = room.path().join("mixed");
    deb(&mixed, ("one", "1", "amd64"), "");
    fs::copy(bad.join("text-1.0.tar.gz"), mixed.join("text-1.0.tar.gz")).unwrap();
    let told = publish(repo(&[&mixed], &room.path().join("packages")).arg("--deb"));
    assert_eq!(left_out(&told).len(), 0, "{told}");
    let (told, code) = refused(repo(&[&good, &bad], &out).arg("--skip-bad"));
    assert!(code == 1 && left_out(&told).len() == reasons.len(), "{code}: {told}");
    assert_eq!(page(&out, "ex").1["files"].as_array().unwrap().len(), 2);
}
