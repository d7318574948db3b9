//! Faults that `rockpack verify REPO` finds, beside those that clients refuse.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::bases::build_rpm;
use support::gpg_keys::key;
use support::repo_fixture::{
    deb, failed_checks, plain_spec, publish, published_one, repo, repo_at, rpm, verify, verify_by,
};
use support::tools::{need, run, succeed};

fn failed(out: &Path) -> Vec<String> {
    let said = verify(out);
    let codes = failed_checks(&said);
    assert_eq!(codes.is_empty(), said.ends_with("exit status: 0\n"), "{said}");
    codes
}

#[test]
fn dependencies_close_within_a_suite_and_an_architecture() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (good, bad) = (room.path().join("good"), room.path().join("bad"));
    let out = room.path().join("repo");
    deb(&good, ("host", "1.0-1", "amd64"), "Provides: capability (= 2)\n");
    deb(&good, ("kernels", "1.0-1", "amd64"), "Depends: host (= 1.0-1), libc6 (>= 2.34), x | y\n");
    deb(&good, ("user", "1", "all"), "Depends: absent | capability (>= 1)\n");
    rpm(&good, &plain_spec("host", "1.0", "Provides: capability = 2"));
    rpm(&good, &plain_spec("kernels", "1.0", "Requires: host = 1.0-1, capability >= 1, libc"));
    publish(&mut repo(&[&good], &out));
    assert!(failed(&out).is_empty());
    // Another version, another architecture, a sibling that is not there.
    deb(&bad, ("a", "1", "amd64"), "Depends: host (>= 2)\n");
    deb(&bad, ("b", "1", "arm64"), "Depends: host\n");
    deb(&bad, ("c", "1", "amd64"), "Depends: elsewhere (= 1)\n");
    rpm(&bad, &plain_spec("d", "1", "Requires: host >= 2"));
    // Names of fields have no case.
    deb(&bad, ("e", "1", "amd64"), "depends: host (>= 2)\n");
    for name in
        ["a_1_amd64.deb", "b_1_arm64.deb", "c_1_amd64.deb", "d-1-1.noarch.rpm", "e_1_amd64.deb"]
    {
        let out = room.path().join(name);
        publish(&mut repo(&[&good], &out));
        publish(repo_at(&[&bad.join(name)], &out, 1).arg("--allow=unmet"));
        assert_eq!(failed(&out), ["V077"], "{name}");
    }
}

/// Clients look for required paths among the files in `primary` and what packages provide.
#[test]
fn required_paths_that_clients_do_not_find_are_named() {
    need(&["rpmbuild", "createrepo_c"]);
    // What a package needs of its owner's path, and whether clients do not find it.
    let cases = [
        ("file", "Requires: PATH", true),
        ("own", "Requires: /usr/share/example/user-own", true),
        ("provided", "Requires: PATH", false),
        ("listed", "Requires: PATH", false),
        ("elsewhere", "Requires: /usr/share/example/other", false),
        ("weak", "Recommends: PATH", false),
        ("condition", "Requires: (PATH if OWNER)", false),
        ("both", "Requires: (PATH and OWNER)", true),
        ("either", "Requires: (PATH or absent)", true),
        ("other", "Requires: (PATH or OWNER)", false),
    ];
    let mut packages = Vec::new();
    for (name, need, _) in cases {
        let owner = format!("owner-{name}");
        let folder = if name == "listed" { "/usr/bin" } else { "/usr/share/example" };
        let path = format!("{folder}/{owner}");
        let provides = if name == "provided" { format!("Provides: {path}") } else { String::new() };
        packages.push(user(name, &need.replace("PATH", &path).replace("OWNER", &owner)));
        packages.push([owner, provides, path]);
    }
    let hidden = cases.into_iter().filter(|(.., is_hidden)| *is_hidden).map(|(name, ..)| name);
    are_named(&spec_of(&packages), &hidden.collect::<Vec<_>>(), false);
    let hidden = ["folder", "ghost"];
    let owned = "/opt/folder/file\n%dir /opt/folder\n%ghost /opt/ghost";
    let mut packages = vec![["owner", "", owned].map(str::to_owned)];
    packages.extend(hidden.map(|name| user(name, &format!("Requires: /opt/{name}"))));
    are_named(&spec_of(&packages), &hidden, true);
}

/// A package that needs something: its name, its tags, and its file.
fn user(name: &str, tags: &str) -> [String; 3] {
    [format!("user-{name}"), tags.to_owned(), format!("/usr/share/example/user-{name}")]
}

/// A specification of packages with their tags and files, of which the first one has a text.
fn spec_of(packages: &[[String; 3]]) -> String {
    let head = "Name: all\nVersion: 1\nRelease: 1\nSummary: all\nLicense: MIT\nBuildArch: noarch\n\
                %description\nText.\n";
    let [mut heads, mut install, mut lists] = [head, "%install\n", ""].map(str::to_owned);
    for [name, tags, files] in packages {
        let text = format!("%{{buildroot}}{}", files.lines().next().unwrap());
        heads += &format!("%package -n {name}\nSummary: one\n{tags}\n");
        heads += &format!("%description -n {name}\nText.\n");
        install += &format!("mkdir -p $(dirname {text})\necho {name} >{text}\n");
        lists += &format!("%files -n {name}\n{files}\n");
    }
    heads + &install + &lists
}

/// Fails unless everything that reads the packages of a specification names these users, and no others. A set
/// with a ghost is refused as such.
fn are_named(spec: &str, users: &[&str], has_ghost: bool) {
    let room = tempfile::tempdir().unwrap();
    let [packages, out] = ["packages", "repo"].map(|name| room.path().join(name));
    fs::create_dir(&packages).unwrap();
    build_rpm(spec, &packages);
    let named = |said: &str, code: &str, start: &str, end: &str| {
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(code)).collect();
        let of = |user: &&str| format!("{start}user-{user}{end}");
        let is_named = |user: &&str| lines.iter().any(|line| line.contains(&of(user)));
        assert!(lines.len() == users.len() && users.iter().all(is_named), "{said}");
    };
    let requires = "-1-1.noarch.rpm: requires ";
    let said = verify(&packages);
    if has_ghost {
        assert!(!said.contains("V050"), "{said}");
    } else {
        named(&said, "failed: V050", "", requires);
    }
    for said in [publish(&mut repo(&[&packages], &out)), publish(&mut repo_at(&[], &out, 1))] {
        named(&said, "R139", "is required by ", " 1-1 ");
    }
    // The same packages with the lists of another tool.
    run(Command::new("createrepo_c").arg("--quiet").arg(&packages));
    for repository in [&out, &packages] {
        let said = verify(repository);
        assert_eq!(failed_checks(&said), ["V077"], "{said}");
        named(&said, "failed: V077", "", requires);
    }
}

#[test]
fn a_verification_says_what_it_read_and_what_it_did_not_look_at() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    publish(&mut repo(&[&packages], &out));
    let said = verify(&out);
    let read = said.lines().next().unwrap();
    assert!(read.starts_with("1 repository, ") && read.ends_with(", 2 indexed packages"), "{said}");
    assert!(read.contains(" index files, "), "{said}");
    assert!(said.contains("not proved: the origin (no good signature"), "{said}");
}

#[test]
fn what_is_gone_lost_or_contradicts_is_named() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    let damages: [Damage; 7] = [
        ("package", |out| remove(&out.join("pool/main/o/one/one_1_amd64.deb")), &["V072"]),
        ("rpm", |out| remove(&out.join("packages/p/plain-1-1.noarch.rpm")), &["V072"]),
        ("index", |out| remove(&out.join("dists/stable/main/binary-amd64/Packages.gz")), &["V071"]),
        ("list", |out| remove(&ending(out, "filelists.xml.gz")), &["V071", "V078"]),
        ("orphan", |out| fs::write(out.join("packages/x.rpm"), "").unwrap(), &["V076"]),
        (
            "release",
            |out| fs::write(out.join("dists/stable/Release"), "x").unwrap(),
            &["V070", "V076"],
        ),
        (
            "repomd",
            |out| fs::write(out.join("repodata/repomd.xml"), "<a>").unwrap(),
            &["V070", "V076"],
        ),
    ];
    for (name, damage, codes) in damages {
        let out = room.path().join(name);
        publish(&mut repo(&[&packages], &out));
        assert!(failed(&out).is_empty());
        damage(&out);
        assert_eq!(failed(&out), codes, "{name}");
    }
}

/// A damage: its name, the change, and the codes of the checks that fail.
type Damage = (&'static str, fn(&Path), &'static [&'static str]);

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

fn ending(out: &Path, end: &str) -> std::path::PathBuf {
    let entries = fs::read_dir(out.join("repodata")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_str().unwrap().ends_with(end)).unwrap()
}

#[test]
fn names_with_dots_are_names_like_others() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    for (number, component) in ["7.1", "7.2"].into_iter().enumerate() {
        let name = format!("in-{component}");
        let one = deb(&packages, (&name, "1", "amd64"), "");
        let set = format!("component={component}");
        let words = ["--suite", "rocm-7.x", "--set", &set];
        publish(repo_at(&[&one], &out, i64::try_from(number).unwrap()).args(words));
    }
    assert!(failed(&out).is_empty());
}

/// gpg signs what another tool wrote.
fn sign(home: &Path, mode: &str, file: &Path, to: &Path) {
    run(Command::new("gpg")
        .env("GNUPGHOME", home)
        .args(["--batch", "--quiet", "--yes", "--armor", mode, "--output"])
        .arg(to)
        .arg(file));
}

#[test]
fn a_repository_of_apt_ftparchive_and_gpg_passes() {
    need(&["dpkg-deb", "apt-ftparchive", "gpg", "gpgconf"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    deb(&out.join("pool/main"), ("one", "1", "amd64"), "Section: misc\nPriority: optional\n");
    deb(&out.join("pool/main"), ("two", "1", "amd64"), "Depends: one (= 1)\n");
    let suite = out.join("dists/stable");
    let folder = suite.join("main/binary-amd64");
    fs::create_dir_all(&folder).unwrap();
    let mut archive = Command::new("apt-ftparchive");
    let index = succeed(archive.current_dir(&out).args(["packages", "pool"]));
    fs::write(folder.join("Packages"), &index).unwrap();
    run(Command::new("bzip2").arg("--keep").arg(folder.join("Packages")));
    run(Command::new("gzip").arg("--keep").arg(folder.join("Packages")));
    let own = key(room.path(), "own", "ed25519");
    let text = release_by_ftparchive(&suite);
    assert!(text.contains("MD5Sum:") && text.contains("SHA1:"), "{text}");
    fs::write(suite.join("Release"), &text).unwrap();
    sign(&own.home, "--clear-sign", &suite.join("Release"), &suite.join("InRelease"));
    sign(&own.home, "--detach-sign", &suite.join("Release"), &suite.join("Release.gpg"));
    let said = verify_by(&out, &own.public);
    assert!(!said.contains("not checked"), "{said}");
    assert!(said.contains("2 good signatures") && said.contains("all checks passed"), "{said}");
    // As Debian publishes: listed uncompressed, and stored compressed.
    let plain = folder.join("Packages");
    remove(&plain);
    let said = verify_by(&out, &own.public);
    assert!(said.contains("2 good signatures") && said.contains("all checks passed"), "{said}");
    let (form, aside) = (folder.join("Packages.gz"), room.path().join("aside"));
    fs::rename(&form, &aside).unwrap();
    // Another compressed form is no excuse; and of bz2, nothing is known but the digest.
    assert_eq!(failed(&out), ["V071", "V076"]);
    fs::write(&plain, index.replace("Package: two", "Package: to")).unwrap();
    run(Command::new("gzip").arg("--keep").arg(&plain));
    fs::write(&plain, &index).unwrap();
    fs::write(suite.join("Release"), release_by_ftparchive(&suite)).unwrap();
    remove(&suite.join("InRelease"));
    remove(&plain);
    let said = verify(&out);
    let why = "Packages.gz: does not contain the Packages that Release lists";
    assert!(said.contains(why) && said.contains("V071"), "{said}");
    fs::write(&plain, &index).unwrap();
    fs::rename(&aside, &form).unwrap();
    // As many publish: InRelease alone, SHA-256 alone.
    let (start, rest) = text.split_once("MD5Sum:").unwrap();
    let (_, rest) = rest.split_once("SHA256:").unwrap();
    let (short, _) = rest.split_once("SHA512:").unwrap();
    fs::write(suite.join("Release"), format!("{start}SHA256:{short}")).unwrap();
    sign(&own.home, "--clear-sign", &suite.join("Release"), &suite.join("InRelease"));
    remove(&suite.join("Release"));
    remove(&suite.join("Release.gpg"));
    let said = verify_by(&out, &own.public);
    assert!(said.contains("1 good signature") && said.contains("all checks passed"), "{said}");
    // And what is stated has to be so.
    fs::write(suite.join("InRelease"), &text).unwrap();
    let said = verify_by(&out, &own.public);
    assert!(said.contains("InRelease: is not an OpenPGP clear-signed text"), "{said}");
    remove(&suite.join("InRelease"));
    fs::write(suite.join("Release"), text.replace("SHA256:", "Other:")).unwrap();
    assert_eq!(failed(&out), ["V070", "V076"]);
    remove(&folder.join("Packages.gz"));
    remove(&folder.join("Packages.bz2"));
    fs::write(folder.join("Packages"), index.replace("\nSize: ", "\nSize: 1")).unwrap();
    fs::write(suite.join("Release"), release_by_ftparchive(&suite)).unwrap();
    assert!(failed(&out).contains(&"V073".to_owned()));
}

fn release_by_ftparchive(suite: &Path) -> String {
    let mut archive = Command::new("apt-ftparchive");
    archive.arg("release");
    for (name, value) in [("Suite", "stable"), ("Architectures", "amd64"), ("Components", "main")] {
        archive.arg("-o").arg(format!("APT::FTPArchive::Release::{name}={value}"));
    }
    succeed(archive.arg(suite))
}

#[test]
fn a_repository_of_createrepo_c_and_gpg_passes() {
    need(&["rpmbuild", "createrepo_c", "gpg", "gpgconf"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    let libc = "AutoReqProv: no\nRequires: libc.so.6()(64bit), libc.so.6(GLIBC_2.2.5)(64bit), \
                libc.so.6(GLIBC_2.34)(64bit)\n";
    rpm(&out, &plain_spec("one", "1", libc));
    rpm(&out, &plain_spec("two", "1", "Requires: one = 1-1"));
    fs::write(room.path().join("comps.xml"), "<comps></comps>\n").unwrap();
    run(Command::new("createrepo_c")
        .args(["--quiet", "--database", "--groupfile"])
        .arg(room.path().join("comps.xml"))
        .arg(&out));
    let own = key(room.path(), "own", "ed25519");
    let repomd = out.join("repodata/repomd.xml");
    sign(&own.home, "--detach-sign", &repomd, &out.join("repodata/repomd.xml.asc"));
    let said = verify_by(&out, &own.public);
    assert!(said.contains("1 good signature") && said.contains("all checks passed"), "{said}");
    // Files beside the lists of packages are held against their digests, too.
    fs::write(ending(&out, "primary.sqlite.bz2"), "other").unwrap();
    assert!(verify_by(&out, &own.public).contains("V071"));
}

#[test]
fn indexes_are_read_inside_of_the_repository_only() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = published_one(room.path());
    let release = out.join("dists/stable/Release");
    let text = fs::read_to_string(&release).unwrap();
    let ups = "../".repeat(16);
    let damages = [format!("{ups}dev/zero"), "main/binary-amd64/zero".to_owned()];
    std::os::unix::fs::symlink("/dev/zero", out.join("dists/stable").join(&damages[1])).unwrap();
    for path in damages {
        fs::write(&release, text.replace("main/binary-amd64/Packages.gz", &path)).unwrap();
        let codes = failed(&out);
        assert!(codes.contains(&"V070".to_owned()), "{path}: {codes:?}");
    }
}

/// apt takes the first digest of an index, and fails here: "Hash Sum mismatch".
#[test]
fn an_index_of_two_digests_is_named() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = published_one(room.path());
    let release = out.join("dists/stable/Release");
    let whole = fs::read_to_string(&release).unwrap();
    for list in ["SHA256", "SHA512"] {
        let (head, rest) = whole.split_once(&format!("{list}:\n")).unwrap();
        let row = rest.lines().next().unwrap();
        let (digest, place) = row.trim_start().split_once(' ').unwrap();
        let zeros = format!(" {} {place}", "0".repeat(digest.len()));
        fs::write(&release, format!("{head}{list}:\n{row}\n{rest}")).unwrap();
        assert!(failed(&out).is_empty(), "{list}: the same once more");
        fs::write(&release, format!("{head}{list}:\n{zeros}\n{rest}")).unwrap();
        let said = verify(&out);
        assert!(
            said.contains("V070") && said.contains("in two sizes or with two digests"),
            "{list}: {said}"
        );
    }
}

/// A package and its list beside the repository, unchanged: a reader that leaves the repository finds
/// the files that the indexes name.
struct Beside {
    room: tempfile::TempDir,
    out: std::path::PathBuf,
}

impl Beside {
    fn new(package: &Path, index: fn(&Path) -> std::path::PathBuf) -> Self {
        let room = tempfile::tempdir().unwrap();
        let out = room.path().join("repo");
        publish(&mut repo(&[package], &out));
        fs::copy(package, room.path().join("escaped")).unwrap();
        fs::copy(index(&out), room.path().join("index")).unwrap();
        Self { room, out }
    }

    /// The ways to a file beside the repository.
    fn ways(&self, name: &str) -> [String; 3] {
        let whole = self.room.path().join(name).to_str().unwrap().to_owned();
        [format!("../{name}"), format!("pool/../../{name}"), whole]
    }

    /// `verify` names the path that leads there.
    fn is_named(&self, way: &str, code: &str) {
        let said = verify(&self.out);
        assert!(said.ends_with("exit status: 1\n"), "{way}: {said}");
        let named = |line: &str| line.starts_with("failed: ") && line.contains(code);
        assert!(said.lines().any(named) && said.contains(way), "{way}: {said}");
    }
}

fn digest_and_size(file: &Path) -> (String, u64) {
    let content = support::fixtures::content(file);
    (content.digest().unwrap().to_string(), content.len())
}

#[test]
fn packages_of_apt_are_looked_for_inside_of_the_repository_only() {
    need(&["dpkg-deb"]);
    let packages = tempfile::tempdir().unwrap();
    let one = deb(packages.path(), ("one", "1", "amd64"), "");
    let beside = Beside::new(&one, plain_index);
    let out = &beside.out;
    let (list, release) = (plain_index(out), out.join("dists/stable/Release"));
    let (text, head) = [&list, &release].map(|file| fs::read_to_string(file).unwrap()).into();
    let head = head.split_once("SHA256:").unwrap().0.replace("Acquire-By-Hash: yes\n", "");
    // One form alone, under one name, which is as its release says.
    fs::remove_dir_all(list.parent().unwrap()).unwrap();
    fs::create_dir(list.parent().unwrap()).unwrap();
    let place = "pool/main/o/one/one_1_amd64.deb";
    let publish = |way: &str| {
        fs::write(&list, text.replace(place, way)).unwrap();
        let (digest, size) = digest_and_size(&list);
        let row = format!("SHA256:\n {digest} {size} main/binary-amd64/Packages\n");
        fs::write(&release, format!("{head}{row}")).unwrap();
    };
    publish(place);
    assert!(failed(out).is_empty());
    for way in beside.ways("escaped") {
        publish(&way);
        beside.is_named(&way, "V072");
    }
}

fn plain_index(out: &Path) -> std::path::PathBuf {
    out.join("dists/stable/main/binary-amd64/Packages")
}

#[test]
fn lists_and_packages_of_rpm_are_looked_for_inside_of_the_repository_only() {
    need(&["rpmbuild", "gzip"]);
    let packages = tempfile::tempdir().unwrap();
    let plain = rpm(packages.path(), &plain_spec("plain", "1", ""));
    let beside = Beside::new(&plain, |out| ending(out, "primary.xml.gz"));
    let out = &beside.out;
    let (list, repomd) = (ending(out, "primary.xml.gz"), out.join("repodata/repomd.xml"));
    let whole = fs::read_to_string(&repomd).unwrap();
    let href = format!("repodata/{}", list.file_name().unwrap().to_str().unwrap());
    for way in beside.ways("index") {
        fs::write(&repomd, whole.replace(&href, &way)).unwrap();
        beside.is_named(&way, "V070");
    }
    let text = succeed(Command::new("gzip").arg("-dc").arg(&list));
    let open = out.with_file_name("open");
    fs::write(&open, &text).unwrap();
    let before = [digest_and_size(&list), digest_and_size(&open)];
    let publish = |way: &str| {
        fs::write(&open, text.replace("packages/p/plain-1-1.noarch.rpm", way)).unwrap();
        run(Command::new("gzip").args(["-nkf"]).arg(&open));
        fs::copy(open.with_extension("gz"), &list).unwrap();
        let now = [digest_and_size(&list), digest_and_size(&open)];
        let (old, new) = (statements(&before), statements(&now));
        let mut repomd_now = whole.clone();
        for (old, new) in old.iter().zip(&new) {
            assert!(repomd_now.contains(old), "{old}: {repomd_now}");
            repomd_now = repomd_now.replacen(old, new, 1);
        }
        fs::write(&repomd, repomd_now).unwrap();
    };
    publish("packages/p/plain-1-1.noarch.rpm");
    assert!(failed(out).is_empty());
    for way in beside.ways("escaped") {
        publish(&way);
        beside.is_named(&way, "V072");
    }
}

/// The statements of `repomd.xml` about the digests and sizes of a list, packed and unpacked.
fn statements(list: &[(String, u64); 2]) -> Vec<String> {
    ["", "open-"]
        .iter()
        .zip(list)
        .flat_map(|(name, (digest, size))| {
            let checksum = format!("<{name}checksum type=\"sha256\">{digest}<");
            [checksum, format!("<{name}size>{size}<")]
        })
        .collect()
}
