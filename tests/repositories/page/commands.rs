//! The commands of the page, run as they are, in the root of a system.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::installers;
use support::repo_fixture::{publish, repo};
use support::tools::{need, succeed, told};

use super::{packages, read};
use crate::clients_apt::{self, Root};
use crate::clients_rpm;
use crate::server::Server;

const GPU: &str = "gfx942";

/// What the GPU needs, and nothing for another one.
const NEEDED: [&str; 2] = ["rocm-blas", "rocm-blas-gfx942"];

/// Publishes packages of every kind in `out`, for clients of a server.
fn published(out: &Path, more: &[&str]) -> Server {
    need(&["dpkg-deb", "rpmbuild", "curl"]);
    let given = tempfile::tempdir().unwrap();
    packages(given.path(), "1");
    let server = Server::of(out);
    publish(
        repo(&[given.path()], out).args(["--url", &server.url, "--set", "name=own"]).args(more),
    );
    server
}

/// Runs the commands for [`GPU`] of a part of the page, for the system in `root`. Returns what they print, with the
/// exit status of the last one.
fn run_commands(server: &Server, part: &str, root: &Path, pip_install: &str) -> String {
    let page = read(&succeed(Command::new("curl").args(["-fsS", &server.url])));
    let commands = page["parts"][part]["commands"][GPU].as_str().unwrap();
    let script = format!("{}{commands}\n", include_str!("programs.sh"));
    let mut sh = Command::new("sh");
    sh.args(["-euc", &script]).env("ROOT", root).env("PIP_INSTALL", pip_install);
    told(sh.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive"))
}

fn is_done(told: &str) {
    assert!(told.ends_with("exit status: 0\n"), "{told}");
}

#[test]
fn apt_installs_what_a_gpu_needs_and_refuses_unsigned_indexes() {
    clients_apt::need_all();
    let (root, room) = (Root::of("bookworm"), tempfile::tempdir().unwrap());
    let key = support::gpg_keys::key(room.path(), "publisher", "rsa4096");
    let [signed, unsigned] = ["signed", "unsigned"].map(|name| room.path().join(name));
    let server = published(&unsigned, &[]);
    let told = run_commands(&server, "deb-stable", &root.folder, "");
    assert!(told.contains("is not signed") && !told.ends_with("exit status: 0\n"), "{told}");
    assert!(root.installed().is_empty());
    let server =
        published(&signed, &["--set", "pin=990", "--sign-key", key.secret.to_str().unwrap()]);
    is_done(&run_commands(&server, "deb-stable", &root.folder, ""));
    assert_eq!(root.installed(), NEEDED);
    for (name, folder) in [
        ("own-archive-keyring.asc", "usr/share/keyrings"),
        ("own-stable.sources", "etc/apt/sources.list.d"),
        ("own-stable.pref", "etc/apt/preferences.d"),
    ] {
        let installed = fs::read(root.folder.join(folder).join(name)).unwrap();
        assert_eq!(installed, fs::read(signed.join(name)).unwrap(), "{name}");
    }
}

/// Runs the commands for an rpm system with and without signatures.
fn installs_by(client: &str) {
    let room = clients_rpm::ready(client);
    let key = room.key.secret.to_str().unwrap();
    for (name, words) in [
        ("signed", &["--set", "pin=990", "--sign-packages", "--sign-key", key][..]),
        ("unsigned", &[]),
    ] {
        let (out, root) = (room.path(name), room.path("root"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("etc/yum.repos.d")).unwrap();
        let server = published(&out, words);
        is_done(&run_commands(&server, client, &root, ""));
        assert_eq!(room.installed(), NEEDED, "{name}");
    }
}

#[test]
fn dnf_installs_what_a_gpu_needs() {
    installs_by("dnf");
}

#[test]
fn zypper_installs_what_a_gpu_needs() {
    installs_by("zypper");
}

#[test]
fn pip_installs_what_a_gpu_needs() {
    need(&["python3", "pip"]);
    let room = tempfile::tempdir().unwrap();
    let (out, folder) = (room.path().join("out"), room.path().join("environment"));
    let server = published(&out, &["--wheel"]);
    let environment = installers::Environment::new(&folder);
    let pip = environment.client("pip", "install");
    let words = [pip.get_program()].into_iter().chain(pip.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    is_done(&run_commands(&server, "pip", room.path(), &words.join(" ")));
    assert_eq!(environment.installed(), ["demo-1", "demo_device_gfx942-1"]);
}
