//! A repository, and its clients, which tell whether damage changes what they do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha512};
use support::example::files;
use support::repo_fixture::{deb, plain_spec, publish, repo_at, rpm};
use support::tools::{need, told};
use support::{hex, sha256};

use super::damage::{Damage, copy_all, kind};
use crate::clients_apt::{self, Root};
use crate::clients_rpm::{Room, ready};
use crate::python::clients::{Environment, NEGOTIATING, Scripted};
use crate::python::wheels::{Wheel, family};
use crate::server::Server;

const KEYRING: &str = "flips-archive-keyring.asc";
const SOURCES: &str = "flips-stable.sources";
const PREFERENCES: &str = "flips-stable.pref";
const REPO: &str = "flips.repo";

/// A program that reads a repository, or a publication that goes on from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// apt of a release of Debian.
    Apt(&'static str),
    Dnf,
    Zypper,
    /// pip or uv.
    Python(&'static str),
    Gpgv,
    /// A client that has read the signed files of the publication before.
    Earlier,
    /// `rockpack repo` with further packages.
    NextRun,
}

/// The clients that read a file, the quickest ones first.
pub fn readers(file: &str) -> &'static [Client] {
    use Client::{Apt, Dnf, Earlier, Gpgv, NextRun, Python, Zypper};
    match file.split('/').next() {
        Some(".rockpack") => &[NextRun],
        Some("simple" | "wheels") => &[Python("pip"), Python("uv")],
        Some("repodata" | "packages" | REPO) => &[Gpgv, Earlier, Dnf, Zypper],
        Some(KEYRING) => &[Gpgv, Apt("bookworm"), Apt("sid"), Dnf, Zypper],
        _ => &[Gpgv, Earlier, Apt("bookworm"), Apt("sid")],
    }
}

/// A repository and its clients.
pub struct Judges {
    /// `room.out` is the repository that clients see.
    pub room: Room,
    /// The folder with the whole repository.
    pub good: PathBuf,
    /// The packages of the next publication.
    later: PathBuf,
    server: Server,
    pages_for_programs: Scripted,
    roots: BTreeMap<&'static str, Root>,
    /// The behaviour of clients with the whole repository.
    expected: BTreeMap<Client, String>,
}

impl Judges {
    /// Publishes twice.
    pub fn new() -> Self {
        clients_apt::need_all();
        need(&["zypper", "pip", "uv", "gpgv"]);
        let room = ready("dnf");
        let [first, second, later, good] =
            ["first", "second", "later", "good"].map(|name| room.path(name));
        deb(&first, ("one", "1", "amd64"), "");
        deb(&first, ("two", "1", "all"), "Depends: one\n");
        rpm(&first, &plain_spec("alpha", "1", ""));
        rpm(&first, &plain_spec("beta", "1", "Requires: alpha"));
        family(&first, "1.0");
        deb(&second, ("one", "2", "amd64"), "Suggests: two\n");
        deb(&second, ("three", "1", "amd64"), "Depends: one (>= 1)\nMulti-Arch: foreign\n");
        rpm(&second, &plain_spec("alpha", "2", "Recommends: beta"));
        family(&second, "1.1");
        deb(&later, ("four", "1", "amd64"), "");
        rpm(&later, &plain_spec("gamma", "1", ""));
        Wheel::of("extra", "1.0", "").write(&later);
        let server = Server::of(&room.out);
        let options =
            ["--set", "name=flips", "--set", "origin=Flips", "--set", "pin=990", "--sign-packages"];
        for (packages, after, more) in [
            (&first, 0, ["--key-package", "1"]),
            (&second, 100, ["--yank", "demo=1.0=it has a \"fault\""]),
        ] {
            let mut repo = repo_at(&[packages], &good, after);
            repo.args(options).args(["--url", &server.url]).args(more);
            publish(repo.arg("--sign-key").arg(&room.key.secret));
        }
        let pages_for_programs = Scripted::serve(NEGOTIATING, &room.out);
        let (roots, expected) = (BTreeMap::new(), BTreeMap::new());
        Self { room, good, later, server, pages_for_programs, roots, expected }
    }

    /// Tells whether a client reacts differently to the damaged repository.
    pub fn is_noticed(&mut self, client: Client, damage: &Damage) -> bool {
        let whole = match self.expected.get(&client) {
            Some(whole) => whole.clone(),
            None => self.outcome_of_whole(client),
        };
        self.serve_whole();
        damage.strike(&self.room.out);
        let before = public(&self.room.out);
        let outcome = self.outcome(client);
        // A run that refuses the repository, and leaves it as it was, breaks nobody.
        let is_refused = client == Client::NextRun && outcome.ends_with(&format!("{before:?}"));
        !is_refused && outcome != whole
    }

    /// The behaviour of a client with the whole repository: nothing fails.
    fn outcome_of_whole(&mut self, client: Client) -> String {
        self.serve_whole();
        let whole = self.outcome(client);
        let mut ends = whole.lines().filter(|line| line.starts_with("exit status"));
        assert!(ends.all(|line| line == "exit status: 0"), "{client:?}: {whole}");
        self.expected.insert(client, whole.clone());
        whole
    }

    /// Puts the whole repository where clients see it.
    fn serve_whole(&self) {
        for entry in fs::read_dir(&self.room.out).unwrap() {
            let path = entry.unwrap().path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.unwrap();
        }
        copy_all(&self.good, &self.room.out);
    }

    /// The behaviour of a client: exit statuses, complaints, and the packages and settings that it gets.
    fn outcome(&mut self, client: Client) -> String {
        match client {
            Client::Apt(suite) => {
                let root = self.roots.entry(suite).or_insert_with(|| Root::of(suite));
                of_apt(root, &self.room.out)
            }
            Client::Dnf => self.of_dnf(),
            Client::Zypper => self.of_zypper(),
            Client::Python(client) => {
                let urls = [&self.server.url, &self.pages_for_programs.url];
                urls.map(|url| of_python(client, url)).concat()
            }
            Client::Gpgv => of_gpgv(&self.room.out),
            Client::Earlier => misnamed(&self.room.out),
            Client::NextRun => {
                let mut repo = repo_at(&[&self.later], &self.room.out, 200);
                repo.arg("--sign-packages").arg("--sign-key").arg(&self.room.key.secret);
                let said = told(&mut repo);
                format!("{}{:?}", complaints(&said), public(&self.room.out))
            }
        }
    }

    fn of_dnf(&self) -> String {
        let Some(root) = self.rpm_root() else { return format!("no {REPO}") };
        let commands = [&["-q", "install", "alpha-1", "beta"][..], &["-q", "upgrade"]];
        let said = commands.map(|arguments| told(&mut self.room.dnf(arguments))).concat();
        said + &installed(&root)
    }

    fn of_zypper(&self) -> String {
        let Some(root) = self.rpm_root() else { return format!("no {REPO}") };
        let mut said = told(self.room.zypper(&["-q", "addrepo"]).arg(self.room.out.join(REPO)));
        let settings = files(&root.join("etc/zypp/repos.d"));
        said.extend(settings.values().map(|bytes| String::from_utf8_lossy(bytes)));
        for arguments in [
            &["-q", "refresh"][..],
            &["-q", "install", "--no-recommends", "alpha=1", "beta"],
            &["-q", "update"],
        ] {
            said += &told(&mut self.room.zypper(arguments));
        }
        said + &installed(&root)
    }

    /// An empty root for dnf and zypper; absent if the repository has no file to configure them by.
    fn rpm_root(&self) -> Option<PathBuf> {
        let root = self.room.path("root");
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("etc/zypp/repos.d")).unwrap();
        self.room.out.join(REPO).is_file().then_some(root)
    }
}

/// The packages in a root, with the digests of their headers.
fn installed(root: &Path) -> String {
    let mut query = Command::new("rpm");
    query.arg(format!("--root={}", root.display()));
    let said = told(query.args(["-qa", "--qf", "%{NEVRA} %{SHA256HEADER}\n"]));
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// The warnings and errors of a program, and its exit status.
fn complaints(said: &str) -> String {
    let starts = ["E:", "W:", "Err:", "warning:", "exit status"];
    let lines = said.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// The behaviour of apt: it gets all packages by the files for clients.
fn of_apt(root: &Root, repository: &Path) -> String {
    let given = [
        (SOURCES, "etc/apt/sources.list.d"),
        (PREFERENCES, "etc/apt/preferences.d"),
        (KEYRING, "usr/share/keyrings"),
    ];
    let caches = ["var/lib/apt/lists", "var/cache/apt"];
    for folder in given.iter().map(|(_, folder)| *folder).chain(caches) {
        let _ = fs::remove_dir_all(root.folder.join(folder));
        fs::create_dir_all(root.folder.join(folder)).unwrap();
    }
    for (file, folder) in given {
        if !repository.join(file).is_file() {
            return format!("no {file}");
        }
        root.copy_in(&repository.join(file), folder);
    }
    let mut said = complaints(&told(&mut root.apt(&["update"])));
    let mut policy = Command::new("chroot");
    policy.arg(&root.folder).args(["apt-cache", "policy", "one", "two", "three"]);
    said += &told(policy.env("LC_ALL", "C"));
    for packages in [&["one", "two", "three"][..], &["one=1"]] {
        let arguments = [&["install", "--download-only"], packages].concat();
        said += &complaints(&told(&mut root.apt(&arguments)));
    }
    let mut packages = digests(&root.folder.join("var/cache/apt/archives"));
    packages.retain(|file, _| file.ends_with(".deb"));
    format!("{said}{packages:?}")
}

/// The packages that pip or uv installs, a yanked version included.
fn of_python(client: &str, url: &str) -> String {
    let mut said = String::new();
    for requirement in ["demo[device-gfx942]", "demo[device-gfx942]==1.0"] {
        let room = tempfile::tempdir().unwrap();
        let environment = Environment::new(&room.path().join("environment"), url);
        let status = environment.installs(client, &[requirement]).output().unwrap().status;
        writeln!(said, "{status}\n{:?}", environment.installed()).unwrap();
    }
    said
}

/// The words of gpgv about all signatures by the keyring for clients.
fn of_gpgv(repository: &Path) -> String {
    let home = tempfile::tempdir().unwrap();
    let keyring = home.path().join("keyring.gpg");
    let mut dearmor = Command::new("gpg");
    dearmor
        .args(["--batch", "--quiet", "--no-permission-warning", "--output"])
        .arg(&keyring)
        .arg("--dearmor");
    let mut said = told(dearmor.arg(repository.join(KEYRING)).env("GNUPGHOME", home.path()));
    for files in [
        &["dists/stable/InRelease"][..],
        &["dists/stable/Release.gpg", "dists/stable/Release"],
        &["repodata/repomd.xml.asc", "repodata/repomd.xml"],
    ] {
        let files = files.iter().map(|file| repository.join(file));
        let answer = told(Command::new("gpgv").arg("--keyring").arg(&keyring).args(files));
        writeln!(said, "{}", answer.lines().last().unwrap()).unwrap();
    }
    said
}

/// The indexes that do not have the digest in their name: clients that know them by an earlier
/// publication refuse them.
fn misnamed(repository: &Path) -> String {
    let mut found = String::new();
    for (file, bytes) in files(repository) {
        let name = file.rsplit('/').next().unwrap();
        let digest = match kind(&file) {
            "by-hash" if name.len() == 128 => hex(&Sha512::digest(&bytes)),
            "by-hash" | "lists of rpm-md" => sha256(&bytes),
            _ => continue,
        };
        if !name.starts_with(&digest) {
            writeln!(found, "{file}").unwrap();
        }
    }
    found
}

/// The digests of the files that clients can read.
fn public(repository: &Path) -> BTreeMap<String, String> {
    let mut published = digests(repository);
    published.retain(|file, _| !file.starts_with(".rockpack/"));
    published
}

fn digests(folder: &Path) -> BTreeMap<String, String> {
    files(folder).into_iter().map(|(file, bytes)| (file, sha256(&bytes))).collect()
}
