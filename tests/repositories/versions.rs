//! Versions of packages that a path, or one of the two formats, does not tell apart as the other does.

use std::path::Path;
use std::process::Command;

use support::repo_fixture::{contents, deb, plain_spec, publish, refused, repo, repo_at, rpm};
use support::tools::{need, run};

use crate::others::warned;

#[test]
fn packages_that_differ_in_their_epoch_alone_are_told_apart() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let at = |name: &str| room.path().join(name);
    let low = deb(&at("low"), ("one", "1.0", "amd64"), "");
    let high = deb(&at("high"), ("one", "2:1.0", "amd64"), "");
    let low_rpm = rpm(&at("low"), &plain_spec("plain", "1.0", ""));
    let high_rpm = rpm(&at("high"), &plain_spec("plain", "1.0", "Epoch: 3"));
    let is_told = |command: &mut Command, both: [&str; 2]| {
        let (said, _) = refused(command);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in both
            .into_iter()
            .chain(["they differ in their epoch alone", "raise the version or the release"])
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("what was built again"), "{said}");
    };
    let (debs, rpms) = (["one 2:1.0", "one 1.0"], ["plain 3:1.0-1", "plain 1.0-1"]);
    // In one run, in another one, in another suite, and of one that was just removed.
    is_told(&mut repo(&[&low, &high], &at("out")), debs);
    is_told(&mut repo(&[&low_rpm, &high_rpm], &at("out")), rpms);
    let out = at("repo");
    publish(&mut repo(&[&at("low")], &out));
    is_told(&mut repo(&[&high], &out), debs);
    is_told(&mut repo(&[&high_rpm], &out), rpms);
    is_told(repo(&[&high], &out).args(["--suite", "other"]), debs);
    is_told(repo(&[&high], &out).args(["--remove", "one"]), debs);
    publish(repo_at(&[], &out, 1).args(["--remove", "one"]));
    is_told(&mut repo_at(&[&high], &out, 2), debs);
    // One version in two spellings is a package that was built again.
    let zero = deb(&at("zero"), ("one", "0:1.0", "amd64"), "");
    let (said, _) = refused(&mut repo(&[&low, &zero], &at("out")));
    assert!(said.contains("what was built again"), "{said}");
    // With a release of its own it is one of its own.
    let next = deb(&at("next"), ("one", "2:1.0-2", "amd64"), "");
    publish(&mut repo_at(&[&next], &out, 3));
}

#[test]
fn versions_that_the_formats_order_differently_are_named() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let at = |name: &str| room.path().join(name);
    let made = |folder: &str, version: &str| {
        deb(&at(folder), ("plain", &format!("{version}-1"), "amd64"), "");
        rpm(&at(folder), &plain_spec("plain", version, ""));
    };
    let (word, date) = ("7.12.0~dev20260202", "7.12.0~20260202");
    made("word", word);
    made("date", date);
    made("later", "7.12.0~20260203");
    made("release", "7.12.0");
    let both: [&Path; 2] = [&at("word"), &at("date")];
    let said = publish(repo(&both, &at("keep")).args(["--keep", "1"]));
    let warned_of = warned(&said, "R059").join("\n");
    assert!(warned_of.contains(&format!("dpkg takes {word} for the newer version")), "{said}");
    assert!(warned_of.contains(date) && warned_of.contains("(plain)"), "{said}");
    // As dpkg and rpm have it.
    run(Command::new("dpkg").args(["--compare-versions", word, "gt", date]));
    let kept: Vec<String> = contents(&at("keep"))
        .into_keys()
        .filter(|path| path.ends_with(".deb") || path.ends_with(".rpm"))
        .collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[0].contains(&date[1..]) != kept[1].contains(&date[1..]), "{kept:?}");
    // One after the other, where the refusal of one format is explained.
    let out = at("after");
    publish(&mut repo(&[&at("word")], &out));
    let (said, _) = refused(&mut repo_at(&[&at("date")], &out, 1));
    assert!(said.contains("nobody would get it by an upgrade") && said.contains("R059"), "{said}");
    // One format, or one order.
    assert!(warned(&publish(repo(&both, &at("deb")).arg("--deb")), "R059").is_empty());
    let ordered: [&Path; 3] = [&at("date"), &at("later"), &at("release")];
    assert!(warned(&publish(&mut repo(&ordered, &at("ordered"))), "R059").is_empty());
}
