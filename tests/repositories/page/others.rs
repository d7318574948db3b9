//! What lies at the path of the page and was not written by rockpack.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use support::example::{Entry, tree};
use support::repo_fixture::{deb, publish, repo_at};
use support::tools::need;

use super::{PAGE, URL, holders, json, page};

#[test]
fn it_stays_as_it_is() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("out"));
    deb(&given, ("one", "1", "amd64"), "");
    fs::create_dir(&out).unwrap();
    let place = out.join(PAGE);
    for (form, after) in ["file", "empty file", "link", "dangling link", "folder"].iter().zip(0..) {
        match *form {
            "file" => fs::write(&place, "<p>ours</p>").unwrap(),
            "empty file" => drop(File::create(&place).unwrap()),
            "link" => {
                fs::write(out.join("ours.html"), "<p>ours</p>").unwrap();
                symlink("ours.html", &place).unwrap();
            }
            "dangling link" => symlink("nowhere.html", &place).unwrap(),
            _ => fs::create_dir(&place).unwrap(),
        }
        let before = tree(&out)[PAGE].clone();
        for words in [&[][..], &["--check"], &["--set=index_page=false"], &["--dry-run"]] {
            let report = json(repo_at(&[&given], &out, after).args(URL).args(words));
            let findings = report["findings"].as_array().unwrap().iter();
            let kept: Vec<_> = findings.filter(|it| it["code"] == "R162").collect();
            let is_asked_for = words != ["--set=index_page=false"];
            assert_eq!(kept.len(), usize::from(is_asked_for), "{form} {words:?}: {kept:?}");
            for finding in kept {
                assert_eq!(
                    (&finding["path"], &finding["severity"]),
                    (&PAGE.into(), &"note".into())
                );
            }
            assert_eq!(tree(&out)[PAGE], before, "{form} {words:?}");
            assert!(holders(&out).is_empty(), "{form} {words:?}");
        }
        if matches!(before, Entry::Folder { .. }) {
            fs::remove_dir(&place).unwrap();
        } else {
            fs::remove_file(&place).unwrap();
        }
    }
    // Its place is free, so the next publication writes a page.
    assert!(!publish(&mut repo_at(&[], &out, 9)).contains("R162"));
    assert!(page(&out).starts_with("<!DOCTYPE html>"));
}

/// A file that is larger than the memory, sparse on disk.
#[test]
fn a_file_that_cannot_be_read_stays() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("out"));
    deb(&given, ("one", "1", "amd64"), "");
    fs::create_dir(&out).unwrap();
    File::create(out.join(PAGE)).unwrap().set_len(1 << 40).unwrap();
    assert!(publish(repo_at(&[&given], &out, 0).args(URL)).contains("R162"));
    assert!(!publish(repo_at(&[], &out, 1).arg("--set=index_page=false")).contains("R162"));
    assert_eq!(fs::metadata(out.join(PAGE)).unwrap().len(), 1 << 40);
}
