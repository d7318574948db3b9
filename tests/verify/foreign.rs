//! Packages that hold what no artifact has and no rule makes, or that package managers refuse.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rpm::IndexData;
use support::headers::{Tagged, remade};
use support::tampered::Set;
use support::tools::need;

const SHARDS: &[&str] = &["--against", "examples/shards"];
const PREFIX: &str = "opt/rocm-7.1";

fn add(root: &Path, path: &str, text: &str, mode: u32) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

/// The receipt agrees with all that was added, as with one that was made anew.
#[test]
fn what_no_artifact_has_is_named_in_a_deb() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.edit(&set.host(), |root| {
        add(root, "etc/cron.d/evil", "* * * * * root evil\n", 0o644);
        add(root, &format!("{PREFIX}/bin/helper"), "#!/bin/sh\n", 0o4755);
        add(root, "etc/ld.so.conf.d/evil.conf", "/opt/rocm-7.1/lib\ninclude /tmp/evil\n", 0o644);
        add(root, "usr/share/doc/rocm-blas/run", "#!/bin/sh\n", 0o755);
        fs::create_dir_all(root.join("var/evil")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", root.join(PREFIX).join("lib/evil.so")).unwrap();
    });
    let run = set.verify(SHARDS);
    assert_eq!(run.codes(), ["V100", "V101"], "{}", run.text);
    for (code, part) in [
        ("V100", "bin/helper"),
        ("V101", "/etc/cron.d/evil"),
        ("V101", "bin/helper"),
        ("V101", "/etc/ld.so.conf.d/evil.conf"),
        ("V101", "/usr/share/doc/rocm-blas/run"),
        ("V101", "/var/evil"),
        ("V101", "lib/evil.so"),
    ] {
        let found = run.problems();
        let of = |problem: &serde_json::Value| {
            problem["code"] == code && problem.to_string().contains(part)
        };
        assert!(found.iter().any(of), "{code} {part}: {}", run.text);
    }
    // Without the artifacts nobody knows whose the files are.
    set.fires(&[], &["V100"]);
}

/// Archives, documents and folders have the modes that rules give, whatever the receipt says.
#[test]
fn modes_of_what_rules_make_are_compared() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    let modes = [
        (set.kernels("gfx110x"), format!("{PREFIX}/lib/.kpack/blas_lib_gfx1100.kpack"), 0o666),
        (set.kernels("gfx115x"), format!("{PREFIX}/lib/.kpack"), 0o777),
        (set.host(), "usr/share/doc/rocm-blas/copyright".to_owned(), 0o600),
    ];
    for (package, path, mode) in &modes {
        set.edit(package, |root| {
            fs::set_permissions(root.join(path), Permissions::from_mode(*mode)).unwrap();
        });
    }
    let run = set.verify(SHARDS);
    let found = run.problems();
    for (_, path, mode) in &modes {
        let told = format!("is in a package with mode {mode:o}");
        let of = |problem: &&serde_json::Value| {
            problem["code"] == "V013" && problem.to_string().contains(&told)
        };
        assert!(found.iter().any(|it| of(&it) && it.to_string().contains(path)), "{}", run.text);
    }
}

/// A kernel package of the set with these changes of its header.
fn with_header(set: &Set, name: &str, change: impl FnOnce(Vec<Tagged>) -> Vec<Tagged>) {
    let package = set.path(name);
    let bytes = remade(&fs::read(&package).unwrap(), change, &[]);
    fs::write(&package, bytes).unwrap();
}

fn set_tag(tags: &mut Vec<Tagged>, tag: u32, data: IndexData) {
    tags.retain(|(own, _)| *own != tag);
    tags.push((tag, data));
    tags.sort_by_key(|(tag, _)| *tag);
}

fn string_tag(text: &str) -> IndexData {
    IndexData::StringTag(text.to_owned())
}

#[test]
fn headers_that_rpm_refuses_or_that_leave_code_out_are_named() {
    let set = Set::of_rpms();
    set.remove_receipt();
    set.fires(&[], &[]);
    let name = set.kernels("gfx110x");
    with_header(&set, &name, |mut tags| {
        tags.retain(|(tag, _)| ![5092, 5097].contains(tag));
        set_tag(&mut tags, 1021, string_tag("windows"));
        // What rpm does not refuse is no fault of a header: triggers, and tags that nobody knows.
        set_tag(&mut tags, 1065, IndexData::StringArray(vec!["other".to_owned()]));
        set_tag(&mut tags, 60_000, IndexData::Int32(vec![1]));
        let archive = of_archive(&tags);
        for (tag, data) in &mut tags {
            match (*tag, data) {
                (1037, IndexData::Int32(flags)) => flags[archive] = 2,
                (1097, IndexData::StringArray(langs)) => langs[archive] = "de".to_owned(),
                (1140, IndexData::Int32(colors)) => colors[archive] = 4,
                (1049, IndexData::StringArray(names)) => {
                    let own = names.iter_mut().find(|name| name.starts_with("rpmlib("));
                    *own.unwrap() = "rpmlib(Nothing)".to_owned();
                }
                _ => {}
            }
        }
        tags
    });
    let run = set.verify(&[]);
    assert_eq!(run.codes(), ["V103"], "{}", run.text);
    for part in [
        "states no SHA-256 of the payload",
        "for the system `windows`",
        "as a document (%doc)",
        "for one language (%lang)",
        "its colour",
        "needs rpmlib(Nothing)",
    ] {
        assert!(run.text.contains(part), "{part}: {}", run.text);
    }
}

/// The place of a kernel archive in the list of files.
fn of_archive(tags: &[Tagged]) -> usize {
    let names = tags.iter().find(|(tag, _)| *tag == 1117).unwrap();
    let IndexData::StringArray(names) = &names.1 else { panic!("no names") };
    names.iter().position(|name| name.ends_with("_gfx1100.kpack")).unwrap()
}

#[test]
fn the_digest_of_a_header_is_compared_with_it() {
    let set = Set::of_rpms();
    set.remove_receipt();
    let name = set.kernels("gfx110x");
    let good = fs::read(set.path(&name)).unwrap();
    let digest = {
        use sha1::Digest as _;
        let place = rockpack_archive::rpm::RpmFront::read(
            &rockpack_core::content::Content::of_bytes(good.as_slice()),
        )
        .unwrap()
        .header;
        let [start, end] = [place.start, place.end].map(|at| usize::try_from(at).unwrap());
        support::hex(&sha1::Sha1::digest(&good[start..end]))
    };
    let at = good.windows(40).position(|window| window == digest.as_bytes()).unwrap();
    let mut bad = good.clone();
    bad[at] = if bad[at] == b'0' { b'1' } else { b'0' };
    fs::write(set.path(&name), bad).unwrap();
    let run = set.verify(&[]);
    assert!(run.codes().contains(&"V001".to_owned()), "{}", run.text);
    assert!(run.text.contains("the header's SHA-1 differs from the signature's"), "{}", run.text);
}
