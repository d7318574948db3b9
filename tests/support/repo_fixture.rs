//! Packages made by dpkg-deb and rpmbuild, and runs of `rockpack repo`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

use crate::example::rockpack;
use crate::program::scratch;
use crate::tampered;
use crate::tools::{run, said};

/// 2023-11-14T22:13:20Z, the time of the first publication in these tests.
pub const EPOCH: i64 = 1_700_000_000;

/// Copies into `folder` the file that `make` makes, which it does once in a run for each key.
fn once(folder: &Path, key: String, make: impl FnOnce() -> PathBuf) -> PathBuf {
    static MADE: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let made = MADE.lock().unwrap().entry(key).or_default().clone();
    let made = made.get_or_init(make);
    fs::create_dir_all(folder).unwrap();
    let to = folder.join(made.file_name().unwrap());
    fs::copy(made, &to).unwrap();
    to
}

/// Writes a `.deb` with one file by dpkg-deb; `fields` are whole lines of its control file.
pub fn deb(folder: &Path, names: (&str, &str, &str), fields: &str) -> PathBuf {
    once(folder, format!("{names:?} {fields}"), || dpkg_deb(names, fields))
}

fn dpkg_deb((name, version, arch): (&str, &str, &str), fields: &str) -> PathBuf {
    let room = tempfile::tempdir().unwrap();
    let root = room.path();
    fs::create_dir_all(root.join("DEBIAN")).unwrap();
    fs::create_dir_all(root.join("usr/share/example")).unwrap();
    fs::write(root.join("usr/share/example").join(name), format!("{name} {version}\n")).unwrap();
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {arch}\n\
         Maintainer: Packager <packager@example.org>\n{fields}Description: one of {name}\n \
         Its long text\n .\n  has a line of code.\n"
    );
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    let (_, plain) = version.split_once(':').unwrap_or(("", version));
    let file = scratch("deb").join(format!("{name}_{plain}_{arch}.deb"));
    run(Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group", "-Zgzip"])
        .arg(root)
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", "1600000000"));
    file
}

/// The fields of a `.deb` with device code of `library` for `archs`.
pub fn kernels(library: &str, archs: &str, modaliases: &str) -> String {
    format!(
        "Depends: {library}\nEnhances: {library}\nX-ROCm-GPU-Architecture: {archs}\n\
         Modaliases: rocm({modaliases})\n"
    )
}

/// Writes the `.rpm` of a specification by rpmbuild.
pub fn rpm(folder: &Path, specification: &str) -> PathBuf {
    once(folder, specification.to_owned(), || rpmbuild(specification))
}

fn rpmbuild(specification: &str) -> PathBuf {
    let (room, out) = (tempfile::tempdir().unwrap(), scratch("rpmbuild"));
    let file = room.path().join("package.spec");
    fs::write(&file, specification).unwrap();
    run(Command::new("rpmbuild")
        .args(["-bb", "--quiet", "--define"])
        .arg(format!("_topdir {}", room.path().display()))
        .args(["--define", &format!("_rpmdir {}", out.display())])
        .args(["--define", "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"])
        // The same bytes in each run of the tests.
        .env("SOURCE_DATE_EPOCH", EPOCH.to_string())
        .args(["--define", "use_source_date_epoch_as_buildtime 1"])
        .args(["--define", "clamp_mtime_to_source_date_epoch 1"])
        .args(["--define", "_buildhost localhost"])
        // Strips binaries and packs manual pages, in six programs that find none.
        .args(["--define", "__os_install_post %{nil}"])
        .arg(&file));
    let mut made = fs::read_dir(out).unwrap();
    made.next().unwrap().unwrap().path()
}

/// An ordinary specification.
pub fn plain_spec(name: &str, version: &str, lines: &str) -> String {
    format!(
        "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: one of {name}\nLicense: MIT\n\
         BuildArch: noarch\n{lines}\n%description\nText.\n%install\n\
         mkdir -p %{{buildroot}}/usr/share/example\n\
         echo {name} {version} >%{{buildroot}}/usr/share/example/{name}\n%files\n\
         /usr/share/example/{name}\n"
    )
}

/// A repository with one `.deb`, in a folder of `room`.
pub fn published_one(room: &Path) -> PathBuf {
    let (packages, out) = (room.join("packages"), room.join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    publish(&mut repo(&[&packages], &out));
    out
}

/// `rockpack repo` of `packages` into `out`, published `after` seconds after [`EPOCH`].
pub fn repo_at(packages: &[&Path], out: &Path, after: i64) -> Command {
    let mut command = rockpack();
    command.arg("repo").args(packages).arg("--out").arg(out);
    command.env("SOURCE_DATE_EPOCH", (EPOCH + after).to_string());
    command
}

/// `rockpack repo` of `packages` into `out`.
pub fn repo(packages: &[&Path], out: &Path) -> Command {
    repo_at(packages, out, 0)
}

/// The output of a run that must succeed, both streams, with all notes.
pub fn publish(command: &mut Command) -> String {
    said(command.arg("--verbose"))
}

/// The errors of a run that must fail, and its exit code.
pub fn refused(command: &mut Command) -> (String, i32) {
    let Output { status, stderr, .. } = command.output().unwrap();
    assert!(!status.success(), "{command:?} succeeded");
    (String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

/// The only file at the top of a repository whose name ends so; most are called after the host of its URL.
pub fn client_file(out: &Path, ending: &str) -> PathBuf {
    let paths = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let mut found = paths.filter(|path| path.to_str().unwrap().ends_with(ending));
    let file = found.next().unwrap_or_else(|| panic!("no {ending} in {}", out.display()));
    assert_eq!(found.next(), None);
    file
}

/// The report of `rockpack verify` on a repository, with the exit status.
pub fn verify(out: &Path) -> String {
    tampered::told(&[out.to_str().unwrap()])
}

/// The report of `rockpack verify` on a repository that must be signed by `key`.
pub fn verify_by(out: &Path, key: &Path) -> String {
    let [out, key] = [out, key].map(|path| path.to_str().unwrap());
    tampered::told(&[out, "--key", key])
}

/// The codes of failed checks, each once.
pub fn failed_checks(said: &str) -> Vec<String> {
    let failed = said.lines().filter_map(|line| line.strip_prefix("failed: "));
    let mut codes: Vec<String> = failed.map(|line| line[..4].to_owned()).collect();
    codes.sort();
    codes.dedup();
    codes
}

/// The content of every path below `folder`, except for rockpack's own state.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut next = vec![folder.to_path_buf()];
    while let Some(from) = next.pop() {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if name == ".rockpack" {
                continue;
            }
            if path.is_dir() {
                next.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The committed list's entries for an index tool: `tool | field | reason`.
pub fn accepted(tool: &str) -> Vec<String> {
    let text = include_str!("../repositories/differences.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows = lines.map(|line| {
        let row: Vec<&str> = line.split('|').map(str::trim).collect();
        assert!(row.len() == 3 && !row[2].is_empty(), "a difference without a reason: {line}");
        (row[0], row[1].to_owned())
    });
    rows.filter(|(of, _)| *of == tool).map(|(_, what)| what).collect()
}
