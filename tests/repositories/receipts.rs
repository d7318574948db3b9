//! Packages with a receipt: what is published has its digests and its signature, and what it depends on is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{Set, build_of, deb_name, files, shards};
use support::gpg_keys::{Key, key};
use support::repo_fixture::{contents, deb, publish, refused, repo, repo_at};
use support::tools::{need, run};

use crate::python::wheels::{device, family};

const RECEIPT: &str = "packages.json";

/// The example's `.deb` packages with a receipt that gpg signed.
struct Folder {
    room: tempfile::TempDir,
    own: Key,
}

impl Folder {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let own = key(room.path(), "own", "ed25519");
        let folder = Self { room, own };
        fs::create_dir(folder.path("set")).unwrap();
        for (name, bytes) in files(&Set::build().out()) {
            if !name.ends_with(".rpm") {
                fs::write(folder.path("set").join(name), bytes).unwrap();
            }
        }
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", &folder.own.home).args(["--batch", "--armor", "--detach-sign"]);
        run(gpg.arg(folder.path("set").join(RECEIPT)));
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// A copy of the folder that `change` changes.
    fn changed(&self, name: &str, change: impl FnOnce(&Path)) -> PathBuf {
        let copy = self.path(name);
        run(Command::new("cp").arg("-r").arg(self.path("set")).arg(&copy));
        change(&copy);
        copy
    }

    /// A publication by the key that signed the receipt.
    fn repo(&self, packages: &Path) -> Command {
        let mut repo = repo(&[packages], &self.path("repo"));
        repo.arg("--sign-key").arg(&self.own.secret);
        repo
    }

    /// Fails with `parts`, and publishes nothing.
    fn refuses(&self, command: &mut Command, parts: &[&str]) {
        let (said, code) = refused(command);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(said.contains(part) && code == 2, "{part}: {said}");
        }
        assert!(!self.path("repo/dists").exists());
    }
}

/// Builds the package again, with one more file.
fn build_again(package: &Path) {
    let room = tempfile::tempdir().unwrap();
    let root = room.path().join("root");
    run(Command::new("dpkg-deb").arg("-R").arg(package).arg(&root));
    fs::write(root.join("usr/more"), "of another build\n").unwrap();
    run(Command::new("dpkg-deb").args(["--root-owner-group", "-b"]).arg(&root).arg(package));
}

#[test]
fn a_package_that_its_receipt_does_not_have_is_refused() {
    need(&["dpkg-deb", "gpg"]);
    let folder = Folder::new();
    let [host, common, kernels] = ["rocm-blas", "rocm-common", "rocm-blas-gfx110x"].map(deb_name);
    let swapped = folder.changed("swapped", |copy| {
        build_again(&copy.join(&kernels));
        build_again(&copy.join(&common));
        fs::remove_file(copy.join(&host)).unwrap();
    });
    let receipt: serde_json::Value =
        serde_json::from_slice(&fs::read(swapped.join(RECEIPT)).unwrap()).unwrap();
    let packages = receipt["packages"].as_array().unwrap();
    let stated = packages.iter().find(|it| it["file_name"] == kernels.as_str()).unwrap();
    let stated = format!("{RECEIPT} states {}", stated["sha256"].as_str().unwrap());
    folder.refuses(&mut folder.repo(&swapped), &[&kernels, &common, &stated]);
    // The same where the package is named itself.
    folder.refuses(&mut folder.repo(&swapped.join(&kernels)), &[&stated]);
    let missing = folder.changed("missing", |copy| fs::remove_file(copy.join(&common)).unwrap());
    let absent = format!("{common} of {}", missing.join(RECEIPT).display());
    let needs =
        "would lack rocm-common < 7.1.1~ and rocm-common >= 7.1.0-1, required by 2 packages";
    let parts = [needs, &absent, "--allow=unmet"];
    folder.refuses(&mut folder.repo(&missing), &parts);
    folder.refuses(folder.repo(&missing).arg("--dry-run"), &parts);
    // The others of a family need nothing else.
    let said = publish(repo(&[], &folder.path("family")).args([
        &missing.join(&kernels),
        &folder.path("set").join(&host),
        &folder.path("set").join(&common),
    ]));
    assert!(!said.contains("R146"), "{said}");
    publish(folder.repo(&missing).arg("--allow=unmet"));
}

/// The receipt of a part names the packages of all parts.
#[test]
fn a_part_that_needs_packages_of_another_part_is_refused() {
    let room = tempfile::tempdir().unwrap();
    let [first, second, out] = ["first", "second", "repo"].map(|name| room.path().join(name));
    let build = |part: &str, folder: &Path| {
        let mut build = build_of(&shards(), folder);
        build.args(["--partition", part]);
        build
    };
    let absent = "rocm-common_7.1.0-1_all.deb of";
    let (said, _) = refused(build("1/2", &first).arg("--repo").arg(&out));
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(absent), "{said}");
    let (said, _) = refused(&mut repo(&[&first], &out));
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(absent), "{said}");
    run(&mut build("2/2", &second));
    // A part without packages is published like the others.
    let empty = room.path().join("empty");
    run(&mut build("20/20", &empty));
    publish(&mut repo(&[&first, &second, &empty], &out));
}

#[test]
fn receipts_are_believed_by_the_keys_that_are_given() {
    need(&["dpkg-deb", "gpg"]);
    let folder = Folder::new();
    let other = key(folder.room.path(), "other", "ed25519");
    let set = folder.path("set");
    let warns = |packages: &Path, name: &str, options: &[&Path], part: &str| {
        let mut repo = repo(&[packages], &folder.path(name));
        let said = publish(repo.arg("--sign-key").arg(&other.secret).args(options));
        let found = said.lines().filter(|line| line.contains("R146") || line.contains("R148"));
        let found: Vec<&str> = found.collect();
        assert!(found.concat().contains(part) && found.len() <= 1, "{part}: {found:?}");
        assert_eq!(found.is_empty(), part.is_empty(), "{found:?}");
    };
    let [own, given] = [folder.own.public.as_path(), Path::new("--receipt-key")];
    warns(&set, "others", &[], "is signed by another key");
    warns(&set, "given", &[given, own], "");
    let unsigned = folder.changed("unsigned", |copy| {
        fs::remove_file(copy.join("packages.json.asc")).unwrap();
    });
    warns(&unsigned, "silent", &[], "");
    warns(&unsigned, "wanted", &[given, own], "has no signature");
    fs::write(unsigned.join(RECEIPT), "{\"packages\": []}\n").unwrap();
    warns(&unsigned, "odd", &[], "cannot be read");
    let more = folder.changed("more", |copy| {
        deb(copy, ("more", "1", "amd64"), "");
    });
    warns(&more, "more-repo", &[given, own], "no receipt there names 1 package (more_1_amd64.deb)");
    let edited = folder.changed("edited", |copy| {
        let text = fs::read_to_string(copy.join(RECEIPT)).unwrap();
        fs::write(copy.join(RECEIPT), format!("{text}\n")).unwrap();
    });
    folder.refuses(&mut folder.repo(&edited), &[RECEIPT, "has a signature that"]);
    fs::write(edited.join("packages.json.asc"), "no signature\n").unwrap();
    folder.refuses(&mut folder.repo(&edited), &["packages.json.asc"]);
    assert!(!publish(&mut folder.repo(&set)).contains("R148"));
}

#[test]
fn a_removal_that_leaves_packages_without_what_they_need_is_refused() {
    need(&["dpkg-deb", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    for (name, fields) in [
        ("base", ""),
        ("exact", "Depends: base (= 1)\n"),
        ("range", "Depends: base (>= 1), libc6\n"),
        ("free", "Depends: libc6\n"),
        ("either", "Depends: libelsewhere | base (= 1)\n"),
    ] {
        deb(&packages, (name, "1", "amd64"), fields);
    }
    family(&packages, "1.0");
    publish(&mut repo(&[&packages], &out));
    let alone = device(&room.path().join("alone"), "demo-device-gfx942", "2.0", "");
    let alone = alone.display().to_string();
    let before = contents(&out);
    for (options, parts) in [
        (&["--remove", "base"][..], &["base = 1, required by 1 package (exact 1)", "range 1"][..]),
        (&["--remove", "base", "--remove", "exact"], &["range 1"]),
        (&["--remove", "demo"], &["demo-device-gfx942 1.0: requires demo ==1.0"]),
        // A new device wheel needs its host, too.
        (&["--wheel", &alone], &["demo-device-gfx942 2.0: requires demo"]),
    ] {
        let (said, code) = refused(repo_at(&[], &out, 1).args(options));
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(parts.iter().all(|part| said.contains(part)) && code == 2, "{said}");
        assert!(!said.contains("either"), "the distribution may have it: {said}");
        assert_eq!(contents(&out), before);
    }
    let all = ["base", "exact", "range", "demo", "demo-device-gfx942", "demo-device-gfx1100"];
    let all = all.iter().flat_map(|name| ["--remove", *name]);
    publish(repo_at(&[], &out, 1).args(all));
    // A new version does not leave the others without theirs, unless that goes.
    let later = room.path().join("later");
    deb(&later, ("base", "2", "amd64"), "");
    let again = room.path().join("again");
    publish(&mut repo(&[&packages], &again));
    publish(&mut repo_at(&[&later], &again, 1));
    let (said, _) = refused(repo_at(&[], &again, 2).args(["--keep", "1"]));
    assert!(said.contains("exact 1") && !said.contains("range 1"), "{said}");
}
