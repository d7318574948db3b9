//! Pages and files of the index, and what a run changes of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use rockpack_core::content::Content;
use serde_json::Value;
use support::repo_fixture::{contents, deb, failed_checks, publish, repo, repo_at, verify};
use support::tools::{need, succeed};

use super::wheels::{Wheel, family};

fn sha256(bytes: &[u8]) -> String {
    Content::of_bytes(bytes.to_vec()).digest().unwrap().to_string()
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command.arg("--json"))).unwrap()
}

#[test]
fn every_wheel_lies_where_its_page_says_with_its_metadata() {
    need(&["python3", "unzip"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    family(&wheels, "1.0+rocm7.1");
    let long = "Requires-Python: >=3.9, <4\n\nA description with \"marks\" & <tags>.\n";
    Wheel { tags: "1-cp311.cp312-abi3-manylinux_2_28_x86_64", ..Wheel::of("Two.Pkg", "2.0", long) }
        .write(&wheels);
    publish(&mut repo(&[&wheels], &out));
    let files = contents(&out);
    let list: Value = serde_json::from_slice(&files["simple/index.json"]).unwrap();
    let names: Vec<&str> = list["projects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["demo", "demo-device-gfx1100", "demo-device-gfx942", "two-pkg"]);
    let list = String::from_utf8(files["simple/index.html"].clone()).unwrap();
    for name in &names {
        assert!(list.contains(&format!("<a href=\"{name}/\">{name}</a>")), "{list}");
        let page: Value =
            serde_json::from_slice(&files[&format!("simple/{name}/index.json")]).unwrap();
        let html = String::from_utf8(files[&format!("simple/{name}/index.html")].clone()).unwrap();
        assert_eq!((&page["name"], page["files"].as_array().unwrap().len()), (&(*name).into(), 1));
        let file = &page["files"][0];
        let name = file["filename"].as_str().unwrap();
        let path = format!("wheels/{}/{name}", page["name"].as_str().unwrap());
        let (wheel, metadata) = (&files[&path], &files[&format!("{path}.metadata")]);
        assert_eq!(file["hashes"]["sha256"], sha256(wheel));
        assert_eq!(file["size"], wheel.len());
        assert_eq!(file["core-metadata"]["sha256"], sha256(metadata));
        let inside = succeed(
            Command::new("unzip").arg("-p").arg(out.join(&path)).arg("*.dist-info/METADATA"),
        );
        assert_eq!(inside.as_bytes(), metadata);
        let url = format!("../../{}", path.replace('+', "%2B"));
        assert_eq!(file["url"], url);
        let link = format!("<a href=\"{url}#sha256={}\"", sha256(wheel));
        let core = format!("data-core-metadata=\"sha256={}\"", sha256(metadata));
        assert!(html.contains(&link) && html.contains(&core), "{html}");
    }
    let page = String::from_utf8(files["simple/two-pkg/index.html"].clone()).unwrap();
    assert!(page.contains("data-requires-python=\"&gt;=3.9, &lt;4\""), "{page}");
}

fn stamps(out: &Path, below: &str) -> BTreeMap<String, (u64, i64)> {
    let names = contents(out).into_keys().filter(|name| name.starts_with(below));
    let stamp = |name: String| {
        let file = fs::metadata(out.join(&name)).unwrap();
        (name, (file.ino(), file.mtime_nsec()))
    };
    names.map(stamp).collect()
}

#[test]
fn a_run_reads_new_wheels_alone_and_writes_pages_that_change() {
    need(&["python3", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    family(&wheels, "1.0");
    Wheel::of("other", "1.0", "").write(&wheels);
    assert_eq!(added_and_read(&json(&mut repo(&[&wheels], &out))), [("python".into(), 4, 4)]);
    let before = (stamps(&out, "simple"), stamps(&out, "wheels"));
    for packages in [&[&*wheels][..], &[]] {
        let again = json(&mut repo_at(packages, &out, 1));
        assert_eq!(added_and_read(&again), [("python".into(), 0, 0)]);
        assert_eq!((stamps(&out, "simple"), stamps(&out, "wheels")), before);
        assert_eq!(again["channels"][0]["mirror"]["index_bytes"], 0);
    }
    // One call, two channels; of the pages, those of one project change.
    deb(&wheels, ("one", "1", "amd64"), "");
    Wheel::of("other", "2.0", "").write(&wheels);
    let more = json(&mut repo_at(&[&wheels], &out, 2));
    assert_eq!(added_and_read(&more), [("apt-stable".into(), 1, 1), ("python".into(), 1, 1)]);
    let after = stamps(&out, "simple");
    let changed: Vec<&String> = after
        .iter()
        .filter(|(name, stamp)| before.0.get(*name) != Some(stamp))
        .map(|it| it.0)
        .collect();
    assert_eq!(changed, ["simple/other/index.html", "simple/other/index.json"]);
    let checked = json(repo_at(&[&wheels], &out, 2).arg("--check").arg("--wheel"));
    assert_eq!(added_and_read(&checked), [("python".into(), 0, 5)]);
    // Deleted files come back, and so do changed ones, except wheels.
    let whole = contents(&out);
    for gone in
        whole.keys().filter(|name| name.starts_with("simple") || name.ends_with(".metadata"))
    {
        fs::remove_file(out.join(gone)).unwrap();
        publish(repo_at(&[], &out, 2).arg("--wheel"));
        assert_eq!(contents(&out), whole, "{gone}");
    }
    fs::write(out.join("simple/demo/index.html"), "no page").unwrap();
    publish(repo_at(&[], &out, 2).arg("--wheel"));
    assert_eq!(contents(&out), whole);
    let fresh = room.path().join("fresh");
    publish(&mut repo_at(&[&wheels], &fresh, 2));
    let mut whole = whole;
    for (_, page) in whole.iter_mut().filter(|(name, _)| name.starts_with("simple")) {
        let text = String::from_utf8(page.clone()).unwrap();
        *page = text.replace("T22:13:20Z", "T22:13:22Z").into_bytes();
    }
    assert_eq!(contents(&fresh), whole, "however it came about, but for the times");
}

/// The channels of a report, each with how many packages were added and how many were read.
fn added_and_read(report: &Value) -> Vec<(String, usize, u64)> {
    let channels = report["channels"].as_array().unwrap().iter();
    let of = |channel: &Value| {
        let added = channel["added"].as_array().unwrap().len();
        (channel["channel"].as_str().unwrap().to_owned(), added, channel["read"].as_u64().unwrap())
    };
    channels.map(of).collect()
}

/// A damage with its name, and the codes of the checks that fail.
type Damage = (&'static str, fn(&Path), &'static [&'static str]);

fn changed(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn verify_compares_pages_with_each_other_and_with_wheels() {
    need(&["python3", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, one) = (room.path().join("wheels"), room.path().join("one"));
    family(&wheels, "1.0+rocm7.1");
    const WHEEL: &str = "wheels/demo/demo-1.0+rocm7.1-py3-none-any.whl";
    const METADATA: &str = "wheels/demo/demo-1.0+rocm7.1-py3-none-any.whl.metadata";
    let damages: [Damage; 19] = [
        ("wheel-gone", |out| fs::remove_file(out.join(WHEEL)).unwrap(), &["V072"]),
        ("metadata-gone", |out| fs::remove_file(out.join(METADATA)).unwrap(), &["V072"]),
        ("wheel", |out| fs::write(out.join(WHEEL), "no wheel").unwrap(), &["V073"]),
        ("metadata", |out| fs::write(out.join(METADATA), "Name: x\n").unwrap(), &["V073"]),
        (
            "page-gone",
            |out| fs::remove_file(out.join("simple/demo/index.html")).unwrap(),
            &["V071"],
        ),
        (
            "project-gone",
            |out| fs::remove_dir_all(out.join("simple/demo")).unwrap(),
            &["V071", "V076", "V077"],
        ),
        (
            "list",
            |out| changed(&out.join("simple/index.html"), "demo-device-gfx942/", "x/"),
            &["V071"],
        ),
        (
            "python",
            |out| changed(&out.join("simple/demo/index.html"), "&gt;=3.8", "&gt;=3.9"),
            &["V071"],
        ),
        (
            "both",
            |out| {
                changed(&out.join("simple/demo/index.html"), "&gt;=3.8", "&gt;=3.9");
                changed(&out.join("simple/demo/index.json"), ">=3.8", ">=3.9");
            },
            // Only the state knows that the pages are others.
            &["V073", "V104"],
        ),
        (
            "time",
            |out| changed(&out.join("simple/demo/index.html"), "T22:13:20Z", "T22:13:19Z"),
            &["V071"],
        ),
        (
            "no-time",
            |out| {
                changed(&out.join("simple/demo/index.html"), "T22:13:20Z", "");
                changed(&out.join("simple/demo/index.json"), "T22:13:20Z", "");
            },
            // The state knows that the page for people is another, too.
            &["V070", "V104"],
        ),
        (
            "refresh",
            |out| {
                let refresh = "<meta http-equiv=\"refresh\" content=\"0; url=x\"><title>";
                changed(&out.join("simple/demo/index.html"), "<title>", refresh);
            },
            &["V104"],
        ),
        (
            "tracks",
            |out| {
                let tracks = "\"api-version\":\"1.1\",\"tracks\":[\"https://x\"]";
                changed(&out.join("simple/index.json"), "\"api-version\":\"1.1\"", tracks);
            },
            &["V104"],
        ),
        (
            "outside",
            |out| changed(&out.join("simple/demo/index.json"), "../../wheels", "../../../wheels"),
            &["V070", "V071", "V076", "V077"],
        ),
        (
            "base",
            |out| {
                changed(&out.join("simple/demo/index.html"), "<title>", "<base href=\"/\"><title>")
            },
            &["V104"],
        ),
        (
            "facts",
            |out| {
                changed(&out.join("simple/demo/index.json"), "\"name\":\"demo\"", "\"name\":\"x\"");
                changed(&out.join("simple/index.json"), "\"1.1\"", "\"2.0\"");
            },
            &["V104"],
        ),
        (
            "list-gone",
            |out| fs::remove_file(out.join("simple/index.json")).unwrap(),
            &["V071", "V076"],
        ),
        ("json", |out| fs::write(out.join("simple/index.json"), "{").unwrap(), &["V070", "V076"]),
        ("orphan", |out| fs::write(out.join("wheels/demo/x.whl"), "").unwrap(), &["V076"]),
    ];
    for (name, damage, codes) in damages {
        let out = room.path().join(name);
        publish(repo(&[&wheels], &out).args(["--yank", "demo=1.0+rocm7.1=\"so\" & so"]));
        assert_eq!(failed_checks(&verify(&out)), [""; 0]);
        damage(&out);
        assert_eq!(failed_checks(&verify(&out)), codes, "{name}");
    }
    // Fields without an effect, in pages that no state knows and that state no times.
    let out = room.path().join("plain");
    publish(&mut repo(&[&wheels], &out));
    fs::remove_dir_all(out.join(".rockpack")).unwrap();
    let plain = "\"api-version\":\"1.1\",\"_last-serial\":7,\"tracks\":[]";
    changed(&out.join("simple/demo/index.json"), "\"api-version\":\"1.1\"", plain);
    let [html, json] = ["index.html", "index.json"].map(|page| out.join("simple/demo").join(page));
    changed(&html, " data-upload-time=\"2023-11-14T22:13:20Z\"", "");
    changed(&json, "\"upload-time\":\"2023-11-14T22:13:20Z\",", "");
    assert_eq!(failed_checks(&verify(&out)), [""; 0]);
    // Beside packages, and after wheels went that wait to be removed.
    let out = room.path().join("more");
    deb(&one, ("one", "1", "amd64"), "");
    publish(&mut repo(&[&wheels, &one], &out));
    family(&wheels, "1.1+rocm7.1");
    publish(&mut repo_at(&[&wheels], &out, 1));
    publish(repo_at(&[], &out, 2).args(["--keep", "1"]));
    publish(repo_at(&[], &out, 3).args(["--remove", "demo-device-gfx942"]));
    let said = verify(&out);
    assert_eq!(failed_checks(&said), ["V077"], "the extra for gfx942 is open");
    assert!(said.contains("3 indexed packages"), "{said}");
}

#[test]
fn a_project_that_goes_has_an_empty_page_for_a_while() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    family(&wheels, "1.0");
    let other = Wheel::of("other", "1.0", "").write(&wheels);
    publish(&mut repo(&[&wheels], &out));
    let words = ["--set", "generations=2", "--remove", "Other=1.0.0"];
    publish(repo_at(&[], &out, 10).args(words));
    let html = page(&out, "other/index.html").unwrap();
    let list = page(&out, "index.html").unwrap();
    assert!(!html.contains("<a ") && !list.contains("other"), "{html}");
    assert!(
        out.join("wheels/other/other-1.0-py3-none-any.whl").is_file(),
        "for those who read before"
    );
    for after in [20, 4000] {
        publish(repo_at(&[], &out, after).args(&words[..2]));
    }
    assert!(page(&out, "other/index.html").is_none() && !out.join("wheels/other").exists());
    publish(&mut repo_at(&[&other], &out, 4001));
    assert!(page(&out, "other/index.html").unwrap().contains("<a "));
    assert!(page(&out, "index.html").unwrap().contains("other/"));
}

fn page(out: &Path, name: &str) -> Option<String> {
    fs::read_to_string(out.join("simple").join(name)).ok()
}
