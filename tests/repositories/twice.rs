//! Packages that indexes have twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::repo_fixture::{deb, failed_checks, plain_spec, publish, repo, rpm, verify};
use support::tools::{need, run, succeed};

const LISTS: [&str; 3] = ["primary", "filelists", "other"];

/// The rpm repository of two packages, whose lists may be written anew.
struct Lists {
    room: tempfile::TempDir,
    texts: [String; 3],
}

impl Lists {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
        rpm(&packages, &plain_spec("one", "1", "Requires: here"));
        rpm(&packages, &plain_spec("two", "1", ""));
        publish(&mut repo(&[&packages], &out));
        let text = |kind: &str| {
            let mut files = fs::read_dir(out.join("repodata")).unwrap().map(|e| e.unwrap().path());
            let end = format!("{kind}.xml.gz");
            let list = files.find(|path| path.to_str().unwrap().ends_with(&end)).unwrap();
            succeed(Command::new("gzip").arg("-dc").arg(list))
        };
        let texts = LISTS.map(text);
        Self { room, texts }
    }

    fn out(&self) -> PathBuf {
        self.room.path().join("repo")
    }

    /// The `<data>` of a list with this text, which is written under `name`.
    fn data(&self, kind: &str, name: &str, text: &str) -> String {
        let file = self.out().join("repodata").join(name);
        fs::write(&file, text).unwrap();
        run(Command::new("gzip").arg("-nf").arg(&file));
        let content = support::fixtures::content(file.with_extension("xml.gz"));
        let digest = content.digest().unwrap().to_string();
        format!(
            "<data type=\"{kind}\"><checksum type=\"sha256\">{digest}</checksum>\
             <location href=\"repodata/{name}.gz\"/></data>"
        )
    }

    /// The repository with lists that `edit` changes, and what it adds to `repomd.xml`.
    fn verify(&self, edit: impl Fn(&Self, &mut [String; 3]) -> String) -> String {
        fs::remove_dir_all(self.out().join("repodata")).unwrap();
        fs::create_dir(self.out().join("repodata")).unwrap();
        let mut texts = self.texts.clone();
        let mut repomd = edit(self, &mut texts);
        for (kind, text) in LISTS.iter().zip(&texts) {
            repomd += &self.data(kind, &format!("{kind}.xml"), text);
        }
        let repomd = format!("<repomd>{repomd}</repomd>");
        fs::write(self.out().join("repodata/repomd.xml"), repomd).unwrap();
        verify(&self.out())
    }
}

/// Asserts that only this check fails, and says so.
#[track_caller]
fn failed(said: &str, code: &str, what: &str) {
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("failed: ")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(code)), "{said}");
    assert!(said.contains(what) && said.ends_with("exit status: 1\n"), "{said}");
}

/// The text of the first package of a list, up to its end.
fn first_package(text: &str) -> String {
    let start = text.find("<package ").unwrap();
    let end = text.find("</package>").unwrap() + "</package>".len();
    text[start..end].to_owned()
}

/// The package under another digest, which its file does not have.
fn other_id(package: &str) -> String {
    let digits = |text: &&str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let digest = package.split(['"', '<', '>']).find(digits).unwrap();
    package.replace(digest, &"0".repeat(64))
}

#[test]
fn lists_and_packages_of_rpm_are_there_once() {
    need(&["rpmbuild", "gzip"]);
    let lists = Lists::new();
    let said = lists.verify(|_, _| String::new());
    assert!(said.contains("all checks passed"), "{said}");
    // dnf reads one of the two, which may be without packages.
    let said = lists.verify(|lists, texts| {
        let start = texts[0].find("<package ").unwrap();
        let end = texts[0].rfind("</package>").unwrap() + "</package>".len();
        let empty = format!("{}{}", &texts[0][..start], &texts[0][end..]);
        lists.data("primary", "empty.xml", &empty)
    });
    failed(&said, "V070", "lists primary twice");
    for (index, kind) in LISTS.iter().enumerate().skip(1) {
        let said = lists.verify(|_, texts| {
            let package = first_package(&texts[index]);
            let lie = match index {
                1 => package.replace("/usr/share/example/", "/etc/shadow/"),
                _ => package.clone(),
            };
            texts[index] = texts[index].replace(&package, &format!("{lie}{package}"));
            String::new()
        });
        failed(&said, "V078", &format!("{kind} has a package twice"));
    }
}

/// A file that an index names again and again is read once.
#[test]
fn a_file_of_a_repository_of_rpm_is_one_package() {
    need(&["rpmbuild", "gzip"]);
    let lists = Lists::new();
    let said = lists.verify(|_, texts| {
        for text in texts {
            let package = first_package(text);
            *text = text.replace(&package, &format!("{package}{}", other_id(&package)));
        }
        String::new()
    });
    assert!(said.contains("is named by primary twice"), "{said}");
    assert_eq!(failed_checks(&said), ["V078", "V109"], "{said}");
}

/// Packages for more architectures than there are: those for all would be held against each.
#[test]
fn architectures_of_a_repository_of_rpm_have_a_limit() {
    need(&["rpmbuild", "gzip"]);
    let lists = Lists::new();
    let said = lists.verify(|_, texts| {
        let package = first_package(&texts[0]);
        let more = (0..65).map(|n| package.replace(">noarch<", &format!(">a{n}<")));
        texts[0] = texts[0].replace(&package, &(package.clone() + &more.collect::<String>()));
        String::new()
    });
    assert!(said.contains("has packages for 65 architectures, more than 64"), "{said}");
}

/// One name, version and architecture under two paths, with the same content or another.
fn two_of_one(out: &Path, make: impl Fn(&Path, &str)) -> [PathBuf; 2] {
    let folders = ["a", "b"].map(|folder| out.join("pool").join(folder));
    make(&folders[0], "");
    make(&folders[1], "other");
    folders
}

#[test]
fn one_package_at_two_places_is_found_in_a_suite() {
    need(&["dpkg-deb", "apt-ftparchive"]);
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    let [first, second] = two_of_one(out, |folder, what| {
        let section = if what.is_empty() { "" } else { "Section: other\n" };
        deb(folder, ("one", "1", "amd64"), section);
    });
    deb(&first, ("two", "1", "amd64"), "");
    deb(&second, ("two", "2", "amd64"), "");
    deb(&second, ("two", "1", "arm64"), "");
    let said = published_by_ftparchive(out);
    failed(&said, "V078", "is one 1 for amd64, and so is pool/a/one_1_amd64.deb with");
    fs::copy(first.join("one_1_amd64.deb"), second.join("one_1_amd64.deb")).unwrap();
    let said = published_by_ftparchive(out);
    assert!(said.contains("all checks passed"), "{said}");
}

/// Publishes the pool by apt-ftparchive, and returns the output of `verify`.
fn published_by_ftparchive(out: &Path) -> String {
    let suite = out.join("dists/stable");
    for arch in ["amd64", "arm64"] {
        let folder = suite.join(format!("main/binary-{arch}"));
        fs::create_dir_all(&folder).unwrap();
        let mut archive = Command::new("apt-ftparchive");
        let index = succeed(archive.current_dir(out).args(["-a", arch, "packages", "pool"]));
        fs::write(folder.join("Packages"), index).unwrap();
    }
    let _ = fs::remove_file(suite.join("Release"));
    let mut archive = Command::new("apt-ftparchive");
    let release = succeed(archive.arg("release").arg(&suite));
    fs::write(suite.join("Release"), release).unwrap();
    verify(out)
}

#[test]
fn one_package_at_two_places_is_found_in_a_repository_of_rpm() {
    need(&["rpmbuild", "createrepo_c"]);
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    let [first, second] = two_of_one(out, |folder, what| {
        let requires = if what.is_empty() { "" } else { "Requires: other" };
        rpm(folder, &plain_spec("one", "1", requires));
    });
    rpm(&first, &plain_spec("two", "1", ""));
    rpm(&second, &plain_spec("two", "2", ""));
    run(Command::new("createrepo_c").arg("--quiet").arg(out));
    failed(&verify(out), "V078", "is one 1-1 for noarch, and so is pool/");
    fs::remove_file(second.join("one-1-1.noarch.rpm")).unwrap();
    run(Command::new("createrepo_c").arg("--quiet").arg(out));
    let said = verify(out);
    assert!(said.contains("all checks passed"), "{said}");
}

/// Such an index is for no architecture, and none is named.
#[test]
fn an_index_of_apt_outside_of_an_architectures_folder_is_read() {
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "Depends: one (= 2)\n");
    publish(repo(&[&packages], &out).arg("--allow=unmet"));
    let suite = out.join("dists/stable");
    let index = suite.join("main/binary-amd64/Packages.gz");
    let index = succeed(Command::new("gzip").arg("-dc").arg(index));
    fs::remove_dir_all(suite.join("main")).unwrap();
    fs::create_dir(suite.join("main")).unwrap();
    let list = suite.join("main/Packages");
    fs::write(&list, format!("{index}\n{index}")).unwrap();
    let content = support::fixtures::content(&list);
    let row = format!(" {} {} main/Packages", content.digest().unwrap(), content.len());
    for name in ["InRelease", "Release.gpg"] {
        let _ = fs::remove_file(suite.join(name));
    }
    fs::write(suite.join("Release"), format!("Suite: stable\nSHA256:\n{row}\n")).unwrap();
    let said = verify(&out);
    assert!(said.contains("one_1_amd64.deb, which an earlier entry lists"), "{said}");
    assert!(said.contains("depends on one = 2, which no package provides"), "{said}");
}
