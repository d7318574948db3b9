//! Versions of packages that a path, or one of the two formats, does not tell apart as the other does, and
//! those that zypper does not update to.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{configuration, rockpack, shards};
use support::foreign_deb::{ForeignDeb, TOOLS};
use support::repo_fixture::{
    contents, deb, plain_spec, publish, refused, repo, repo_at, rpm, verify,
};
use support::tools::{need, need_root, run, said, succeed};

use crate::others::lines_with;

#[test]
fn packages_that_differ_in_their_epoch_alone_are_told_apart() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let low = deb(&here.join("low"), ("one", "1.0", "amd64"), "");
    let high = deb(&here.join("high"), ("one", "2:1.0", "amd64"), "");
    let low_rpm = rpm(&here.join("low"), &plain_spec("plain", "1.0", ""));
    let high_rpm = rpm(&here.join("high"), &plain_spec("plain", "1.0", "Epoch: 3"));
    let (debs, rpms) = (["one 2:1.0", "one 1.0"], ["plain 3:1.0-1", "plain 1.0-1"]);
    // In one run, in another one, in another suite, and of one that was just removed.
    epochs_are_told(&mut repo(&[&low, &high], &here.join("out")), debs);
    epochs_are_told(&mut repo(&[&low_rpm, &high_rpm], &here.join("out")), rpms);
    let out = here.join("repo");
    publish(&mut repo(&[&here.join("low")], &out));
    epochs_are_told(&mut repo(&[&high], &out), debs);
    epochs_are_told(&mut repo(&[&high_rpm], &out), rpms);
    epochs_are_told(repo(&[&high], &out).args(["--suite", "other"]), debs);
    epochs_are_told(repo(&[&high], &out).args(["--remove", "one"]), debs);
    publish(repo_at(&[], &out, 1).args(["--remove", "one"]));
    epochs_are_told(&mut repo_at(&[&high], &out, 2), debs);
    // One version in two spellings is a package that was built again.
    let zero = deb(&here.join("zero"), ("one", "0:1.0", "amd64"), "");
    let (said, _) = refused(&mut repo(&[&low, &zero], &here.join("out")));
    assert!(said.contains("that was built again"), "{said}");
    // With a release of its own it is one of its own.
    let next = deb(&here.join("next"), ("one", "2:1.0-2", "amd64"), "");
    publish(&mut repo_at(&[&next], &out, 3));
}

fn epochs_are_told(command: &mut Command, both: [&str; 2]) {
    let (said, _) = refused(command);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in both
        .into_iter()
        .chain(["they differ only in the epoch", "raise the version or the release"])
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("that was built again"), "{said}");
}

#[test]
fn versions_that_the_formats_order_differently_are_named() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let (word, date) = ("7.12.0~dev20260202", "7.12.0~20260202");
    for (folder, version) in
        [("word", word), ("date", date), ("later", "7.12.0~20260203"), ("release", "7.12.0")]
    {
        deb(&here.join(folder), ("plain", &format!("{version}-1"), "amd64"), "");
        rpm(&here.join(folder), &plain_spec("plain", version, ""));
    }
    let both: [&Path; 2] = [&here.join("word"), &here.join("date")];
    let packages = |out: &Path| -> Vec<String> {
        let paths = contents(out).into_keys();
        paths.filter(|path| path.ends_with(".deb") || path.ends_with(".rpm")).collect()
    };
    // What a run is given stays; files that went out of use wait for another publication.
    let keep = ["--keep", "1", "--set", "generations=1"];
    publish(repo(&both, &here.join("keep")).args(keep));
    assert_eq!(packages(&here.join("keep")).len(), 4);
    let said = publish(repo_at(&[], &here.join("keep"), 10).args(keep));
    let warned_of = lines_with(&said, "R059").join("\n");
    assert!(warned_of.contains(&format!("dpkg considers {word} the newer version")), "{said}");
    assert!(warned_of.contains(date) && warned_of.contains("(plain)"), "{said}");
    // As dpkg and rpm have it.
    run(Command::new("dpkg").args(["--compare-versions", word, "gt", date]));
    publish(repo_at(&[], &here.join("keep"), 4000).args(keep));
    let kept = packages(&here.join("keep"));
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[0].contains(&date[1..]) != kept[1].contains(&date[1..]), "{kept:?}");
    // One after the other, where the refusal of one format is explained.
    let out = here.join("after");
    publish(&mut repo(&[&here.join("word")], &out));
    let (said, _) = refused(&mut repo_at(&[&here.join("date")], &out, 1));
    assert!(said.contains("no client would upgrade to it") && said.contains("R059"), "{said}");
    // One format, or one order.
    assert!(lines_with(&publish(repo(&both, &here.join("deb")).arg("--deb")), "R059").is_empty());
    let ordered: [&Path; 3] = [&here.join("date"), &here.join("later"), &here.join("release")];
    assert!(lines_with(&publish(&mut repo(&ordered, &here.join("ordered"))), "R059").is_empty());
}

/// `rockpack build` of the example, 7.1.0 of a release type in both formats.
fn build_of_type(out: &Path, release_type: &str) -> Command {
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(shards()).arg("--config").arg(configuration());
    command.args(["--version", "7.1.0", "--release-type", release_type]).arg("--out").arg(out);
    command
}

/// Versions and releases of `rocm-blas` in a set, as dpkg and rpm read them.
fn versions_of_blas(set: &Path) -> [String; 2] {
    let [mut debs, mut rpms] = ["rocm-blas_*.deb", "rocm-blas-7*.rpm"].map(|pattern| {
        let found = succeed(Command::new("find").arg(set).args(["-name", pattern]));
        found.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(debs.len() == 1 && rpms.len() == 1, "{debs:?} {rpms:?}");
    let (deb, rpm) = (debs.remove(0), rpms.remove(0));
    let deb = succeed(Command::new("dpkg-deb").args(["-f", &deb, "Version"]));
    let query = ["-qp", "--nosignature", "--qf", "%{VERSION}-%{RELEASE}", &rpm];
    [deb.trim().to_owned(), succeed(Command::new("rpm").args(query)).trim().to_owned()]
}

/// Whether dpkg and rpm take the new versions, without release, for newer than the old ones.
fn are_newer(new: [&str; 2], old: [&str; 2]) -> [bool; 2] {
    let mut dpkg = Command::new("dpkg");
    let deb = dpkg.args(["--compare-versions", new[0], "gt", old[0]]).status().unwrap();
    let [one, other] = [new, old].map(|versions| versions[1].trim_end_matches("-1"));
    let lua = format!("%{{lua: print(rpm.vercmp('{one}', '{other}'))}}");
    let rpm = succeed(Command::new("rpm").args(["--eval", &lua]));
    [deb.success(), rpm.trim() == "1"]
}

#[test]
fn a_stream_that_one_format_does_not_follow_is_named() {
    need(&["dpkg", "dpkg-deb", "rpm", "find"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let types = [
        ("nightly:20261120", ["7.1.0~20261120-1", "7.1.0~20261120-1"]),
        ("prerelease:2", ["7.1.0~pre2-1", "7.1.0~rc2-1"]),
        ("prerelease:3", ["7.1.0~pre3-1", "7.1.0~rc3-1"]),
        ("dev:20261120g1a2b3c4d", ["7.1.0~dev20261120-1", "7.1.0~20261120g1a2b3c4d-1"]),
        ("dev:20261120g2b3c4d5e", ["7.1.0~dev20261120-1", "7.1.0~20261120g2b3c4d5e-1"]),
    ];
    let set = |release_type: &str| here.join(release_type);
    for (release_type, expected) in types {
        run(&mut build_of_type(&set(release_type), release_type));
        assert_eq!(versions_of_blas(&set(release_type)), expected);
        assert!(verify(&set(release_type)).contains("all checks passed"));
    }
    let [nightly, second, third, dev, later_dev] = types;
    for ((old, old_versions), (new, new_versions), [has_r084, has_r059]) in [
        (nightly, second, [1, 1]),
        (second, nightly, [1, 1]),
        (second, third, [0, 0]),
        (nightly, dev, [0, 0]),
        // rpm sorts two commits of a day by their digits, and the `.deb` has none.
        (dev, later_dev, [1, 0]),
    ] {
        let [deb, rpm] = are_newer(new_versions, old_versions);
        assert_eq!(usize::from(!deb) + usize::from(!rpm), has_r084, "{old} {new}");
        // A build knows the set that it updates, and a repository its own packages.
        let mut next = build_of_type(&here.join(format!("{new} after {old}")), new);
        let told = said(next.arg("--since").arg(set(old).join("packages.json")));
        assert_eq!(lines_with(&told, "R084").len(), has_r084, "{old} {new}: {told}");
        let out = here.join(format!("{new} after {old} published"));
        publish(&mut repo(&[&set(old)], &out));
        let told = publish(repo_at(&[&set(new)], &out, 1).arg("--allow=downgrade"));
        assert_eq!(lines_with(&told, "R059").len(), has_r059, "{old} {new}: {told}");
    }
}

/// zypper keeps a package of another vendor, and succeeds.
#[test]
fn a_vendor_that_changes_is_named() {
    need(&["rpmbuild", "rpm", "zypper"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let noarch = "BuildArch: noarch\n";
    // rpmbuild takes its own architecture without the line, and would make debug packages.
    let native = "%global debug_package %{nil}\n";
    for (case, (from, to, form, differ)) in [
        ("Vendor: One", "Vendor: Two", noarch, true),
        ("", "Vendor: One", noarch, true),
        ("Vendor: One", "", noarch, true),
        ("Vendor: One", "Vendor: ONE", noarch, false),
        ("Vendor: One", "Vendor: Two", native, true),
        ("Vendor: One", "Vendor: One", native, false),
    ]
    .into_iter()
    .enumerate()
    {
        let here = room.path().join(case.to_string());
        let next = plain_spec("plain", "2", to).replace(noarch, form);
        let [old, new] =
            [plain_spec("plain", "1", from), next].map(|spec| rpm(&here.join("packages"), &spec));
        let (out, root) = (here.join("repo"), here.join("root"));
        fs::create_dir(&root).unwrap();
        publish(&mut repo(&[&old], &out));
        zypper(&root, &["addrepo", &format!("file://{}", out.display()), "set"]);
        zypper(&root, &["refresh"]);
        zypper(&root, &["install", "plain"]);
        // The old version goes in the same publication, or stays.
        let said = publish(repo_at(&[&new], &out, 1).args(["--keep", "1"]));
        assert_eq!(lines_with(&said, "R138").len(), usize::from(differ), "{said}");
        let both = publish(&mut repo(&[&old, &new], &here.join("both")));
        assert_eq!(lines_with(&both, "R138"), lines_with(&said, "R138"));
        zypper(&root, &["refresh", "--force"]);
        zypper(&root, &["update"]);
        assert_eq!(installed_version(&root), if differ { "1" } else { "2" }, "{from} {to}");
        zypper(&root, &["update", "--allow-vendor-change"]);
        assert_eq!(installed_version(&root), "2");
    }
    let said = publish(&mut repo(&[&room.path().join("1/packages")], &room.path().join("named")));
    let command = "changes from none to One in 1 package (plain): `zypper update` keeps";
    assert!(said.contains(command) && said.contains("--allow-vendor-change"), "{said}");
}

fn zypper(root: &Path, arguments: &[&str]) {
    let mut zypper = Command::new("zypper");
    zypper.arg("--root").arg(root).args(["--non-interactive", "--no-gpg-checks"]);
    run(zypper.args(arguments).env("LC_ALL", "C"));
}

fn installed_version(root: &Path) -> String {
    succeed(Command::new("rpm").arg("--root").arg(root).args(["-q", "--qf", "%{VERSION}", "plain"]))
}

#[test]
fn placeholders_of_builds_are_named() {
    need(&TOOLS);
    need(&["rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let unnamed = "Unnamed packager <packager@rockpack.invalid>";
    let [made, out] = ["made", "repo"].map(|name| room.path().join(name));
    let unset = deb(&made, ("unset", "2:0.0.0-1", "amd64"), "");
    let by_nobody = rpm(&made, &plain_spec("by-nobody", "1", &format!("Packager: {unnamed}")));
    let both = ForeignDeb::new("both", "");
    let control = both.control.replace("Packager <packager@example.org>", unnamed);
    let [zero, plain] = ["0.0.0", "10.0.0"].map(|version| {
        let control = control.replace("Version: 1\n", &format!("Version: {version}\n"));
        let file = made.join(format!("both_{version}_all.deb"));
        ForeignDeb { control, ..ForeignDeb::new("both", "") }.write(&file);
        file
    });
    for (package, placeholders) in [
        (&unset, &["0.0.0: is"][..]),
        (&by_nobody, &["rockpack.invalid>: is"][..]),
        (&zero, &["0.0.0: is", "rockpack.invalid>: is"][..]),
        (&plain, &["rockpack.invalid>: is"][..]),
    ] {
        let (said, _) = refused(repo(&[package], &out).arg("--strict"));
        assert!(!out.join("pool").exists() && !out.join("packages").exists());
        let found = lines_with(&said, "R140");
        assert_eq!(found.len(), placeholders.len(), "{said}");
        assert!(placeholders.iter().all(|it| said.contains(it)), "{said}");
    }
    // One line for both kinds of packages, with the remedy for this placeholder.
    let (said, _) = refused(repo(&[&plain, &by_nobody], &out).arg("--strict"));
    let found = lines_with(&said, "R140");
    assert!(found.len() == 1 && said.contains("`maintainer`"), "{said}");
    assert!(!said.contains("with `--version`"), "{said}");
    let said = publish(&mut repo(&[&made], &out));
    assert!(said.contains("0.0.0: is a placeholder in 2 packages (both, unset)"), "{said}");
    for version in ["0.0.1", "10.0.0", "0.0.0~20260202", "0.0.0.1"] {
        let file = deb(&made, ("good", version, "amd64"), "");
        let said = publish(&mut repo(&[&file], &room.path().join(version)));
        assert!(lines_with(&said, "R140").is_empty(), "{said}");
    }
}
