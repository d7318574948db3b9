//! dnf and zypper, with signatures of packages and of the repository checked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::bases::{self, RPM_TOOLS};
use support::example::{Set, rockpack};
use support::gpg_keys::{Key, key};
use support::repo_fixture::{client_file, plain_spec, publish, repo, rpm, verify, verify_by};
use support::sweep;
use support::tools::{self, need, need_root, run, told};

use crate::server::Server;

pub struct Room {
    pub folder: tempfile::TempDir,
    pub out: PathBuf,
    pub key: Key,
}

pub fn ready(client: &str) -> Room {
    need(&[&[client, "gpg", "python3"], &RPM_TOOLS[..]].concat());
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let key = key(folder.path(), "publisher", "rsa4096");
    let out = folder.path().join("repository");
    fs::create_dir(&out).unwrap();
    Room { folder, out, key }
}

impl Room {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The example set and the base, all signed.
    fn publish(&self, url: &str) {
        let set = Set::build();
        let mut repo = rockpack();
        repo.arg("repo").arg(set.out()).arg(bases::rpm()).arg("--out").arg(&self.out).arg("--rpm");
        repo.args(["--sign-packages", "--url", url, "--sign-key"]).arg(&self.key.secret);
        publish(&mut repo);
        let text = fs::read_to_string(client_file(&self.out, ".repo")).unwrap();
        assert!(text.contains("\ngpgcheck=1\nrepo_gpgcheck=1\n"), "{text}");
        let verified = self.verify();
        assert!(verified.contains("all checks passed"), "{verified}");
    }

    fn publish_from(&self, packages: &Path) {
        let mut repo = rockpack();
        repo.arg("repo").arg(packages).arg("--out").arg(&self.out).arg("--url");
        repo.arg(format!("file://{}", self.out.display()));
        publish(repo.args(["--sign-packages", "--sign-key"]).arg(&self.key.secret));
    }

    /// Two versions of a package: of this repository, and of a distribution.
    fn versions(&self) -> [PathBuf; 2] {
        ["1", "2"].map(|version| rpm(self.folder.path(), &plain_spec("moving", version, "")))
    }

    /// Publishes both versions, the first with a priority, for an empty root. Returns the distribution's URL.
    fn publish_pinned(&self, [own, other]: &[PathBuf; 2], pin: &str) -> String {
        let distribution = self.path("distribution");
        let url = format!("file://{}", self.out.display());
        let mut pinned = repo(&[own], &self.out);
        pinned
            .args(["--url", &url, "--set", &format!("pin={pin}"), "--sign-key"])
            .arg(&self.key.secret);
        publish(&mut pinned);
        publish(&mut repo(&[other], &distribution));
        let root = self.path("root");
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        format!("file://{}", distribution.display())
    }

    fn verify(&self) -> String {
        verify_by(&self.out, &self.key.public)
    }

    pub fn dnf(&self, arguments: &[&str]) -> Command {
        let repos = self.path("repos");
        fs::create_dir_all(&repos).unwrap();
        fs::copy(client_file(&self.out, ".repo"), repos.join("own.repo")).unwrap();
        let mut dnf = Command::new("dnf");
        dnf.arg(format!("--installroot={}", self.path("root").display()));
        dnf.arg(format!("--setopt=reposdir={}", repos.display()));
        dnf.args(["--releasever=1", "--refresh", "--setopt=metadata_expire=0", "-y"]);
        dnf.args(arguments).env("LC_ALL", "C");
        dnf
    }

    pub fn zypper(&self, arguments: &[&str]) -> Command {
        let mut zypper = Command::new("zypper");
        zypper.arg("--root").arg(self.path("root"));
        zypper.args(["--non-interactive", "--gpg-auto-import-keys"]).args(arguments);
        zypper.env("LC_ALL", "C");
        zypper
    }

    pub fn installed(&self) -> Vec<String> {
        let mut query = Command::new("rpm");
        query.arg(format!("--root={}", self.path("root").display()));
        let text = tools::succeed(query.args(["-qa", "--qf", "%{NAME}\n"]));
        let mut names: Vec<String> =
            text.lines().filter(|name| name.starts_with("rocm")).map(str::to_owned).collect();
        names.sort();
        names
    }

    pub fn installed_version(&self, package: &str) -> String {
        let mut query = Command::new("rpm");
        query.arg(format!("--root={}", self.path("root").display()));
        tools::succeed(query.args(["-q", "--qf", "%{VERSION}", package]))
    }
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    fs::write(path, bytes).unwrap();
}

pub fn refused(command: &mut Command, reasons: &[&str]) {
    let said = told(command);
    assert!(!said.ends_with("exit status: 0\n"), "{said}");
    assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
}

/// A client that refreshes and installs all the time, while another run publishes all the time: until
/// both did so a few times, or for a minute in a sweep of all.
///
/// Packages and lists never fail it. `repomd.xml` and its signature are two requests of dnf: where a
/// publication falls between them, it says that the signature is bad, and asking again is enough.
#[test]
fn publishing_never_breaks_dnf_but_between_its_two_requests() {
    let room = ready("dnf");
    let server = Server::of(&room.out);
    let packages = room.path("packages");
    let mut version = 0;
    let mut next = || {
        version += 1;
        rpm(&packages, &plain_spec("moving", &version.to_string(), ""));
        let mut repo = rockpack();
        repo.arg("repo").arg(&packages).arg("--out").arg(&room.out);
        repo.args(["--sign-packages", "--sign-key"]).arg(&room.key.secret);
        repo.args(["--keep", "2", "--set", "generations=1", "--url", &server.url]);
        run(&mut repo);
        version
    };
    next();
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (rounds, asked_again) = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (mut rounds, mut asked_again) = (0, 0);
            while !stop.load(Ordering::Relaxed) {
                let said = told(&mut room.dnf(&["install", "moving", "--best"]));
                if said.ends_with("exit status: 0\n") {
                    rounds += 1;
                    done.store(rounds, Ordering::Relaxed);
                } else {
                    assert!(said.contains("GPG signature verification"), "{said}");
                    asked_again += 1;
                }
            }
            (rounds, asked_again)
        });
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) && !client.is_finished() {
            if next() >= 12 && done.load(Ordering::Relaxed) >= 5 && !sweep::all() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        client.join().unwrap()
    });
    println!("{rounds} rounds, {asked_again} asked again, {version} publications");
    assert!(rounds > 2 && version > 4, "{rounds} rounds, {version} publications");
    assert!(asked_again <= rounds, "{asked_again} of {rounds} rounds had to ask again");
    // Nobody publishes: it works at the first try.
    run(&mut room.dnf(&["install", "moving", "--best"]));
}

const GROUP: [&str; 3] = ["rocm-blas", "rocm-blas-gfx110x", "rocm-common"];

#[test]
fn dnf_installs_and_refuses_what_was_tampered_with() {
    let room = ready("dnf");
    let server = Server::of(&room.out);
    room.publish(&server.url);
    run(&mut room.dnf(&["install", "base-system"]));
    run(&mut room.dnf(&["install", "rocm-blas-gfx110x"]));
    assert_eq!(room.installed(), GROUP);
    // A package of the same size.
    let package = room.out.join("packages/r/rocm-blas-gfx115x-7.1.0-1.x86_64.rpm");
    let whole = fs::read(&package).unwrap();
    flip(&package);
    refused(&mut room.dnf(&["install", "rocm-blas-gfx115x"]), &["hecksum", "digest"]);
    assert!(room.verify().contains("V073"));
    fs::write(&package, whole).unwrap();
    // The file that is signed.
    let repomd = room.out.join("repodata/repomd.xml");
    let whole = fs::read(&repomd).unwrap();
    fs::write(&repomd, [&whole[..], b"\n"].concat()).unwrap();
    refused(&mut room.dnf(&["install", "rocm-blas-gfx115x"]), &["GPG", "signature"]);
    assert!(room.verify().contains("V074"));
    fs::write(&repomd, whole).unwrap();
    run(&mut room.dnf(&["install", "rocm"]));
}

#[test]
fn zypper_installs_and_refuses_what_was_tampered_with() {
    let room = ready("zypper");
    let url = format!("file://{}", room.out.display());
    room.publish(&url);
    fs::create_dir_all(room.path("root")).unwrap();
    run(room.zypper(&["addrepo"]).arg(client_file(&room.out, ".repo")));
    run(&mut room.zypper(&["refresh"]));
    run(&mut room.zypper(&["install", "--no-recommends", "base-system"]));
    run(&mut room.zypper(&["install", "--no-recommends", "rocm-blas-gfx110x"]));
    assert_eq!(room.installed(), GROUP);
    let repomd = room.out.join("repodata/repomd.xml");
    let whole = fs::read(&repomd).unwrap();
    fs::write(&repomd, [&whole[..], b"\n"].concat()).unwrap();
    refused(&mut room.zypper(&["refresh", "--force"]), &["ignature"]);
    fs::write(&repomd, whole).unwrap();
    run(&mut room.zypper(&["refresh", "--force"]));
    let package = room.out.join("packages/r/rocm-blas-gfx115x-7.1.0-1.x86_64.rpm");
    flip(&package);
    refused(
        &mut room.zypper(&["install", "--no-recommends", "rocm-blas-gfx115x"]),
        &["integrity", "hecksum", "digest"],
    );
}

/// The pins, and the versions that clients install: those of the distribution, and the pinned ones.
const PINNED: [(&str, &str); 3] = [("100", "2"), ("500", "2"), ("501", "1")];

#[test]
fn dnf_takes_the_repository_that_is_pinned() {
    let room = ready("dnf");
    let versions = room.versions();
    for (pin, version) in PINNED {
        let other = format!("--repofrompath=other,{}", room.publish_pinned(&versions, pin));
        run(&mut room.dnf(&[&other, "--setopt=other.gpgcheck=0", "install", "moving"]));
        assert_eq!(room.installed_version("moving"), version, "{pin}");
    }
}

#[test]
fn zypper_takes_the_repository_that_is_pinned() {
    // Each client waits more than it works.
    let clients = PINNED.map(|pinned| (ready("zypper"), pinned));
    let takes = |room: &Room, (pin, version): (&str, &str)| {
        let other = room.publish_pinned(&room.versions(), pin);
        run(room.zypper(&["addrepo"]).arg(client_file(&room.out, ".repo")));
        run(&mut room.zypper(&["addrepo", "--no-gpgcheck", &other, "other"]));
        run(&mut room.zypper(&["refresh"]));
        let install = ["install", "--no-recommends", "--allow-unsigned-rpm", "moving"];
        run(&mut room.zypper(&install));
        assert_eq!(room.installed_version("moving"), version, "{pin}");
    };
    std::thread::scope(|scope| {
        for (room, pinned) in &clients {
            scope.spawn(move || takes(room, *pinned));
        }
    });
}

/// The message that refuses everything else says what to do.
#[test]
fn dnf_goes_on_with_a_repository_whose_memory_was_lost() {
    let room = ready("dnf");
    let (packages, pool) = (room.path("given"), room.out.join("packages"));
    rpm(&packages, &plain_spec("moving", "1", ""));
    room.publish_from(&packages);
    run(&mut room.dnf(&["install", "moving"]));
    assert_eq!(room.installed_version("moving"), "1");
    fs::remove_dir_all(room.out.join(".rockpack")).unwrap();
    fs::remove_dir_all(room.out.join("repodata")).unwrap();
    let moved = room.path("moved");
    fs::rename(&pool, &moved).unwrap();
    rpm(&moved, &plain_spec("moving", "2", ""));
    room.publish_from(&moved);
    run(&mut room.dnf(&["upgrade", "moving"]));
    assert_eq!(room.installed_version("moving"), "2");
}

/// Asks zypper, which does not read the list of all files, to install a package from an unsigned
/// repository.
fn zypper_tries(out: &Path, package: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    let zypper = |arguments: &[&str]| {
        let mut zypper = Command::new("zypper");
        zypper.arg("--root").arg(root.path()).args(["--non-interactive", "--no-gpg-checks"]);
        zypper.args(arguments).env("LC_ALL", "C");
        zypper
    };
    run(zypper(&["addrepo", "--no-gpgcheck"]).arg(out).arg("here"));
    told(&mut zypper(&["install", "--dry-run", "--no-recommends", package]))
}

/// Asks dnf the same.
fn dnf_tries(out: &Path, package: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    let mut dnf = Command::new("dnf");
    dnf.arg(format!("--installroot={}", root.path().display()));
    dnf.arg(format!("--repofrompath=here,file://{}", out.display()));
    dnf.args(["--setopt=reposdir=/dev/null", "--repo=here", "--nogpgcheck", "--releasever=1"]);
    told(dnf.args(["--assumeno", "install", package]).env("LC_ALL", "C"))
}

#[test]
fn clients_find_interpreters_outside_of_bin() {
    need(&["dnf", "zypper", "rpm", "rpmbuild"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    for (artifact, program, interpreter) in [
        ("tool", "bin/own", "/opt/rocm-7.1/libexec/own"),
        ("tool", "libexec/own", "/opt/rocm-7.1/libexec/other"),
        ("other", "libexec/other", "/bin/sh"),
    ] {
        let folder = here.join(format!("shard/{artifact}_lib_generic"));
        let file = folder.join("math/part/stage").join(program);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(folder.join("artifact_manifest.txt"), "math/part/stage\n").unwrap();
        fs::write(&file, format!("#!{interpreter}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (set, out) = (here.join("set"), here.join("repository"));
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--format", "rpm", "--artifacts"]);
    run(build.arg(here.join("shard")).arg("--out").arg(&set));
    let base = rpm(here, &plain_spec("base", "1", "Provides: /bin/sh"));
    let said = publish(&mut repo(&[&set, &base], &out));
    assert!(!said.contains("R139") && verify(&out).contains("all checks passed"), "{said}");
    let said = zypper_tries(&out, "rocm-tool");
    assert!(said.ends_with("exit status: 0\n"), "{said}");
    let said = dnf_tries(&out, "rocm-tool");
    assert!(said.contains("Transaction Summary"), "{said}");
    // Packages of others, of which none provides the path.
    let spec = plain_spec("owner", "1", "") + "%dir /usr/share/example\n";
    let owner = rpm(here, &spec);
    for (name, need) in [
        ("file", "/usr/share/example/owner"),
        ("folder", "/usr/share/example"),
        ("either", "(/usr/share/example/owner or absent)"),
    ] {
        let user = rpm(here, &plain_spec(name, "1", &format!("Requires: {need}")));
        let out = here.join(name);
        assert!(publish(&mut repo(&[&owner, &user], &out)).contains("R139"), "{name}");
        let said = zypper_tries(&out, name);
        assert!(said.contains(&format!("nothing provides {need}")), "{said}");
    }
}
