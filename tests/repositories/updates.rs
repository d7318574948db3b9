//! Updates that clients hold back, and packages that they would remove: the findings of a publication,
//! compared with apt and dnf.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::repo_fixture::{contents, deb, plain_spec, publish, refused, repo, repo_at, rpm};
use support::tools::{need, run, succeed};

/// A package of the distribution that every client has.
const LIBC: &str = "Package: libc6\nStatus: install ok installed\nVersion: 9\n\
    Architecture: amd64\nMaintainer: Debian <d@example.org>\nDescription: C\n\n";

/// Gives apt a folder of its own, with these installed packages, further settings, and `out` as its source.
pub fn set_apt_up(room: &Path, out: &Path, status: &str, further: &str) {
    for folder in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(room.join(folder)).unwrap();
    }
    fs::write(room.join("status"), status).unwrap();
    let sources = format!("deb [trusted=yes] copy:{} stable main\n", out.display());
    fs::write(room.join("sources.list"), sources).unwrap();
    let at = room.display();
    let settings = format!(
        "Dir::State \"{at}\";\nDir::State::status \"{at}/status\";\nDir::Cache \"{at}/cache\";\n\
         Dir::Etc \"{at}\";\nDir::Etc::sourcelist \"{at}/sources.list\";\n\
         APT::Architecture \"amd64\";\nAPT::Architectures \"amd64\";\n\
         Debug::NoLocking \"1\";\nAPT::Sandbox::User \"root\";\n{further}"
    );
    fs::write(room.join("settings"), settings).unwrap();
}

/// apt with a database of its own, in which packages are installed.
struct Client {
    room: PathBuf,
}

impl Client {
    fn new(room: &Path, out: &Path, installed: &[PathBuf]) -> Self {
        let paragraphs = installed.iter().map(|package| {
            let control = succeed(Command::new("dpkg-deb").arg("-f").arg(package));
            format!("Status: install ok installed\n{control}\n")
        });
        let status: String = paragraphs.collect();
        set_apt_up(room, out, &format!("{LIBC}{status}"), "");
        let client = Self { room: room.to_path_buf() };
        client.ask(&["update"]);
        client
    }

    fn ask(&self, words: &[&str]) -> String {
        let mut apt = Command::new("apt-get");
        apt.args(words).env("APT_CONFIG", self.room.join("settings")).env("LC_ALL", "C");
        succeed(&mut apt)
    }

    /// The packages that apt lists under a heading.
    fn listed(&self, words: &[&str], heading: &str) -> BTreeSet<String> {
        let said = self.ask(words);
        let lines = said
            .lines()
            .skip_while(|line| !line.contains(heading))
            .skip(1)
            .take_while(|line| line.starts_with(' '));
        lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
    }

    fn kept_back(&self) -> BTreeSet<String> {
        self.listed(&["-s", "upgrade", "--with-new-pkgs"], "kept back")
    }

    fn removed(&self) -> BTreeSet<String> {
        self.listed(&["-s", "dist-upgrade"], "REMOVED")
    }

    /// Packages and bytes of a full upgrade.
    fn downloads(&self) -> (u64, u64) {
        let said = self.ask(&["-y", "--print-uris", "dist-upgrade"]);
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("'copy:")).collect();
        let size = |line: &&str| line.split(' ').nth(2).unwrap().parse::<u64>().unwrap();
        let bytes = lines.iter().map(size).sum();
        assert!(said.contains(&format!("Need to get {bytes} B")), "{said}");
        (lines.len() as u64, bytes)
    }
}

/// The result of a run as JSON.
fn said(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command.arg("--json"))).unwrap()
}

/// Names of packages that R118 says do not go with others, and of those that are held back.
fn told(said: &Value) -> [BTreeSet<String>; 2] {
    let found = said["findings"].as_array().unwrap().iter().find(|it| it["code"] == "R118");
    let misfits = list_of(found, "misfits").map(|misfit| &misfit["package"]);
    [owned(misfits), owned(list_of(found, "held_back"))]
}

fn list_of<'a>(finding: Option<&'a Value>, list: &str) -> impl Iterator<Item = &'a Value> {
    finding.and_then(|finding| finding[list].as_array()).into_iter().flatten()
}

fn owned<'a>(texts: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn names(words: &str) -> BTreeSet<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// A set in which all need exact versions of each other, with what is for GPUs.
fn set(folder: &Path, version: &str, which: &[&str]) -> Vec<PathBuf> {
    let gpu = format!("Depends: blas (= {version})\nX-ROCm-GPU-Architecture:");
    let made = which.iter().map(|name| {
        let fields = match *name {
            "blas" | "sparse" => format!("Depends: common (= {version})\n"),
            "meta" => format!("Depends: blas (= {version}), sparse (= {version})\n"),
            "blas-gfx110x" => format!("{gpu} gfx1100 gfx1101\n"),
            "blas-gfx1151-large" => format!("{gpu} gfx1151\n"),
            _ => String::new(),
        };
        deb(folder, (name, version, "amd64"), &fields)
    });
    made.collect()
}

/// The bad hotfix, what makes it good, and the numbers of both, as apt has them.
#[test]
fn apt_keeps_back_and_removes_what_is_named() {
    need(&["dpkg-deb", "apt-get"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let out = here.join("out");
    let (host, kernels) = (["common", "blas"], ["blas-gfx110x", "blas-gfx1151-large"]);
    let rest = ["sparse", "meta"];
    let first = set(&here.join("one"), "1-1", &[&host[..], &kernels, &rest, &["free"]].concat());
    let hotfix = set(&here.join("two"), "1-2", &[&host[..], &kernels, &["free"]].concat());
    set(&here.join("three"), "1-2", &rest);
    let begun = said(&mut repo(&[&here.join("one")], &out));
    assert_eq!(told(&begun), [names(""), names("")]);
    let (mirror, clients) = (&begun["channels"][0]["mirror"], &begun["channels"][0]["clients"]);
    assert_eq!(
        (mirror["packages"].as_u64(), mirror["bytes"].as_u64()),
        (Some(7), Some(total_size(&first)))
    );
    assert!(mirror["index_bytes"].as_u64().unwrap() > 0);
    assert_eq!(clients[0]["packages"], 0, "nothing to update");
    // Nothing is written where that is a mistake.
    let before = contents(&out);
    let (refusal, code) = refused(repo_at(&[&here.join("two")], &out, 1).arg("--strict"));
    assert_eq!((code, contents(&out)), (2, before), "{refusal}");
    let refusal = refusal.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["R118", "sparse 1-1 needs common = 1-1, and the newest is common 1-2", "(blas, "] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    let done = said(&mut repo_at(&[&here.join("two")], &out, 1));
    let client = Client::new(&here.join("client"), &out, &first);
    let [misfits, held] = told(&done);
    assert_eq!((&misfits, &held), (&client.removed(), &client.kept_back()));
    assert_eq!(misfits, names("meta sparse"));
    assert_eq!(held, names("blas blas-gfx110x blas-gfx1151-large common"));
    let clients = &done["channels"][0]["clients"][0];
    let (packages, bytes) = (clients["packages"].as_u64(), clients["bytes"].as_u64());
    assert_eq!((packages.unwrap(), bytes.unwrap()), client.downloads());
    let (kernels, others): (Vec<_>, Vec<_>) =
        hotfix.into_iter().partition(|file| file.to_str().unwrap().contains("gfx"));
    assert_eq!(clients["without_gpu_code"]["bytes"], total_size(&others));
    let largest = kernels.iter().map(|file| fs::metadata(file).unwrap().len()).max().unwrap();
    assert_eq!(clients["largest_gpu"]["arch"], "gfx1151");
    assert_eq!(clients["largest_gpu"]["bytes"], largest);
    // It is told once, and over when the others come.
    assert_eq!(told(&said(&mut repo_at(&[], &out, 2)))[0], names(""));
    let good = publish(&mut repo_at(&[&here.join("three")], &out, 3));
    assert!(!good.contains("R118"), "{good}");
    for line in ["\n  new for mirrors: 2 packages, ", "\n  an update for amd64: 2 packages, "] {
        assert!(good.contains(line), "{good}");
    }
    let client = Client::new(&here.join("client"), &out, &first);
    assert_eq!((client.removed(), client.kept_back()), (names(""), names("")));
}

fn total_size(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| fs::metadata(file).unwrap().len()).sum()
}

/// Packages before and after, `name version: fields`, options of the publication, who fits no more.
type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], &'a str);

#[test]
fn what_is_at_odds_is_told_and_nothing_else() {
    need(&["dpkg-deb", "apt-get"]);
    let room = tempfile::tempdir().unwrap();
    let made = |folder: &Path, packages: &[&str]| -> Vec<PathBuf> {
        let made = packages.iter().map(|text| {
            let (package, fields) = text.split_once(": ").unwrap_or((text, ""));
            let (name, version) = package.split_once(' ').unwrap();
            let fields: String =
                fields.split_inclusive(';').map(|line| line.replace(';', "\n")).collect();
            let end = if fields.is_empty() { "" } else { "\n" };
            deb(folder, (name, version, "amd64"), &format!("{}{end}", fields.replace("\n ", "\n")))
        });
        made.collect()
    };
    let old = ["a 1", "b 1: Depends: a (= 1)"];
    let cases: [Case; 13] = [
        (&old, &["a 2"], &[], "b"),
        (&old, &["a 2", "b 2: Depends: a (= 2)"], &[], ""),
        (&["a 1", "b 1: Depends: a (>= 1), a (<< 3)"], &["a 2"], &[], ""),
        (&["a 1", "b 1: Depends: a (>= 1), a (<< 3)"], &["a 1:2"], &[], "b"),
        (&["a 1", "b 1: Depends: a (<< 2) | c (>= 1)"], &["a 2", "c 1"], &[], ""),
        (
            &["a 1: Provides: v (= 1)", "b 1: Depends: v (= 1)"],
            &["a 2: Provides: v (= 2)"],
            &[],
            "b",
        ),
        (&["a 1", "b 1: Depends: libc6 (>= 1)"], &["b 2: Depends: libc6 (>= 9)"], &[], ""),
        // It goes with those that it needs; it stays on clients and holds them back; it is replaced.
        (&old, &["a 2"], &["--remove", "a", "--allow=unmet"], "b"),
        (&old, &["a 2"], &["--remove", "b"], "b"),
        (&old, &["a 2", "c 2: Conflicts: b; Replaces: b; Provides: b"], &[], ""),
        (&old, &["c 1"], &["--keep", "1"], ""),
        (&["a 1", "b 1"], &["b 2: Breaks: a (<< 2)"], &[], "b"),
        // A set that does not fit itself.
        (&["x 1"], &["a 1", "b 2: Depends: a (= 2)"], &["--allow=unmet"], "b"),
    ];
    for (number, (before, after, options, expected)) in cases.into_iter().enumerate() {
        let here = room.path().join(number.to_string());
        let installed = made(&here.join("before"), before);
        made(&here.join("after"), after);
        publish(&mut repo(&[&here.join("before")], &here.join("out")));
        let said = said(repo_at(&[&here.join("after")], &here.join("out"), 1).args(options));
        let [misfits, held] = told(&said);
        assert_eq!(misfits, names(expected), "{before:?} {after:?}");
        let client = Client::new(&here.join("client"), &here.join("out"), &installed);
        // A full upgrade installs new packages that older ones need, and what is replaced is meant to go.
        if after.concat().contains("c 1") {
            assert_eq!(client.removed(), names(""), "{before:?} {after:?}");
        } else if !after.concat().contains("Replaces") {
            assert_eq!(held, client.kept_back(), "{before:?} {after:?} {options:?}");
        }
    }
}

#[test]
fn dnf_skips_what_is_named() {
    need(&["dnf", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    for (folder, name, version, lines) in [
        ("one", "common", "1", ""),
        ("one", "sparse", "1", "Requires: common = 1-1"),
        ("one", "blas-gfx1100", "1", "Requires: common\nProvides: blas-kernels"),
        ("two", "common", "2", ""),
        ("two", "blas-gfx1100", "2", "Requires: common\nProvides: blas-kernels"),
        ("three", "sparse", "2", "Requires: (common = 2-1 or common = 3-1)"),
    ] {
        rpm(&here.join(folder), &plain_spec(name, version, lines));
    }
    let out = here.join("out");
    let dnf = |words: &[&str]| {
        let mut dnf = Command::new("dnf");
        dnf.arg(format!("--installroot={}", here.join("root").display()));
        dnf.arg(format!("--repofrompath=x,file://{}", out.display())).arg("--repo=x");
        dnf.args(["--releasever=1", "--nogpgcheck", "--refresh", "-y"]).args(words);
        dnf.env("LC_ALL", "C");
        dnf
    };
    let begun = said(&mut repo(&[&here.join("one")], &out));
    assert_eq!(told(&begun), [names(""), names("")]);
    run(&mut dnf(&["install", "common", "sparse", "blas-gfx1100"]));
    let done = said(&mut repo_at(&[&here.join("two")], &out, 1));
    assert_eq!(told(&done), [names("sparse"), names("common")]);
    let clients = &done["channels"][0]["clients"][0];
    let largest = &clients["largest_gpu"];
    assert_eq!((&clients["packages"], &largest["packages"]), (&2.into(), &1.into()));
    assert_eq!(largest["arch"], "gfx1100");
    run(&mut dnf(&["upgrade"]));
    assert_eq!(installed_in(&here.join("root")), names("blas-gfx1100-2 common-1 sparse-1"));
    assert_eq!(told(&said(&mut repo_at(&[&here.join("three")], &out, 2))), [names(""), names("")]);
    run(&mut dnf(&["upgrade"]));
    assert_eq!(installed_in(&here.join("root")), names("blas-gfx1100-2 common-2 sparse-2"));
}

fn installed_in(root: &Path) -> BTreeSet<String> {
    let mut query = Command::new("rpm");
    query.arg(format!("--root={}", root.display()));
    names(&succeed(query.args(["-qa", "--qf", "%{NAME}-%{VERSION} "])))
}
