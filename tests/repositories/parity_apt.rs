//! `Packages` beside those of apt-ftparchive and dpkg-scanpackages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::Set;
use support::foreign_deb::{ForeignDeb, TOOLS};
use support::repo_fixture::{accepted, deb, publish, repo};
use support::tools::{need, run, succeed};

type Fields = BTreeMap<String, String>;

/// The paragraphs of an index, with names of fields in small letters (they have no case), by name, version and architecture.
fn paragraphs(text: &str) -> BTreeMap<String, Fields> {
    let mut all = BTreeMap::new();
    for paragraph in text.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let mut fields = Fields::new();
        let mut last = String::new();
        for line in paragraph.lines() {
            if line.starts_with(' ') {
                fields.get_mut(&last).unwrap().push_str(&format!("\n{line}"))
            } else {
                let (name, value) = line.split_once(':').unwrap();
                last = name.to_lowercase();
                fields.insert(last.clone(), value.trim().to_owned());
            }
        }
        let key = ["package", "version", "architecture"].map(|name| fields[name].clone());
        assert!(all.insert(key.join(" "), fields).is_none(), "{key:?} twice");
    }
    all
}

/// Packages of rockpack and of dpkg-deb.
fn packages(folder: &Path) {
    let set = Set::build();
    for entry in fs::read_dir(set.out()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
    deb(folder, ("epoch", "2:1.0~rc1-1", "amd64"), "Source: other (3.0)\nSection: libs\n");
    deb(
        folder,
        ("words", "1.0", "amd64"),
        "Depends: epoch (>= 2:1), a | b:any\nPre-Depends: c\nMulti-Arch: same\n\
         Tag: role::program\nHomepage: https://example.org/?a=b&c\nX-Own: x: y\n",
    );
    ForeignDeb::new("silent", "Recommends:\n").write(&folder.join("silent_1_all.deb"));
}

fn differences(
    ours: &BTreeMap<String, Fields>,
    theirs: &BTreeMap<String, Fields>,
) -> BTreeSet<String> {
    assert!(ours.keys().eq(theirs.keys()), "{:?} {:?}", ours.keys(), theirs.keys());
    let mut differ = BTreeSet::new();
    for (key, own) in ours {
        let other = &theirs[key];
        let names: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        let unequal = names.into_iter().filter(|name| own.get(*name) != other.get(*name));
        differ.extend(unequal.cloned());
    }
    differ
}

#[test]
fn packages_says_what_the_tools_of_debian_say() {
    need(&["apt-ftparchive", "dpkg-scanpackages", "dpkg-deb"]);
    need(&TOOLS);
    let room = tempfile::tempdir().unwrap();
    let (debs, out) = (room.path().join("debs"), room.path().join("repo"));
    fs::create_dir(&debs).unwrap();
    packages(&debs);
    publish(&mut repo(&[&debs], &out));
    let index = out.join("dists/stable/main/binary-amd64/Packages");
    let ours = paragraphs(&fs::read_to_string(index).unwrap());
    let here = || Command::new("apt-ftparchive");
    let theirs = succeed(here().args(["packages", "debs"]).current_dir(room.path()));
    let expected: BTreeSet<String> =
        accepted("apt-ftparchive").into_iter().map(|n| n.to_lowercase()).collect();
    assert_eq!(differences(&ours, &paragraphs(&theirs)), expected);
    let mut scan = Command::new("dpkg-scanpackages");
    let theirs = succeed(scan.args(["--multiversion", "debs"]).current_dir(room.path()));
    let expected: BTreeSet<String> =
        accepted("dpkg-scanpackages").into_iter().map(|n| n.to_lowercase()).collect();
    assert_eq!(differences(&ours, &paragraphs(&theirs)), expected);
}

/// `Release` as apt-ftparchive would write it of the same folder lists the same digests.
#[test]
fn release_lists_what_apt_ftparchive_lists() {
    need(&["apt-ftparchive", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (debs, out) = (room.path().join("debs"), room.path().join("repo"));
    deb(&debs, ("one", "1", "amd64"), "Modaliases: one(pci:v00001002d*)\n");
    deb(&debs, ("data", "1", "all"), "");
    deb(&debs, ("two", "1", "arm64"), "");
    publish(&mut repo(&[&debs], &out));
    publish(repo(&[&debs.join("one_1_amd64.deb")], &out).args(["--set", "component=extra"]));
    let suite = out.join("dists/stable");
    let ours = fs::read_to_string(suite.join("Release")).unwrap();
    let theirs = succeed(Command::new("apt-ftparchive").arg("release").arg(&suite));
    assert_eq!(listed(&ours), listed(&theirs));
    assert!(ours.contains("\nArchitectures: all amd64 arm64\n"), "{ours}");
    assert!(ours.contains("\nComponents: extra main\n"), "{ours}");
    assert!(ours.contains("\nNo-Support-for-Architecture-all: Packages\n"), "{ours}");
    for (path, names) in [
        ("main/binary-amd64", "data one"),
        ("main/binary-arm64", "data two"),
        ("main/binary-all", "data"),
        ("extra/binary-amd64", "one"),
        ("extra/binary-all", ""),
    ] {
        let found = paragraphs(&packages_in(&suite, path));
        let found: Vec<&str> = found.values().map(|fields| fields["package"].as_str()).collect();
        assert_eq!(found.join(" "), names, "{path}");
    }
    for (packed, tool) in [("gz", "gzip"), ("zst", "zstd")] {
        let file = suite.join(format!("main/binary-amd64/Packages.{packed}"));
        let unpacked = run(Command::new(tool).arg("-dc").arg(file)).stdout;
        let plain = packages_in(&suite, "main/binary-amd64");
        assert_eq!(String::from_utf8(unpacked).unwrap(), plain, "{packed}");
    }
}

/// The rows of `Release` for files under their names.
fn listed(text: &str) -> BTreeSet<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = text.lines().filter(|line| line.starts_with(' ')).map(words);
    // MD5 and SHA-1, which are shorter, and the file itself.
    let rows = rows.filter(|row| row.find(' ') >= Some(64) && !row.ends_with(" Release"));
    rows.filter(|row| !row.contains("by-hash")).collect()
}

fn packages_in(suite: &Path, folder: &str) -> String {
    fs::read_to_string(suite.join(folder).join("Packages")).unwrap()
}
