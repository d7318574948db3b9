//! Packages that are unpacked, edited and rebuilt, with a matching receipt.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use rockpack_core::content::Content;
use rockpack_package::MemberKind;
use rockpack_package::receipt::{MemberRecord, Receipt, listing};
use tempfile::TempDir;

use super::archive::{field, rows};
use super::{Set, hex, rpm, sha256};
use crate::tools;

/// An unpacked package.
struct Unpacked {
    root: TempDir,
    /// Paths in the root that do not belong to the package.
    others: BTreeSet<String>,
}

impl Unpacked {
    /// The current members of the package.
    fn members(&self) -> Vec<MemberRecord> {
        let mut members = Vec::new();
        walk(self.root.path(), self.root.path(), &mut members);
        members.retain(|member| !self.others.contains(&member.path));
        members
    }
}

impl Set {
    /// Unpacks a package, edits it, updates its digests and rebuilds it; updates the receipt, if there is
    /// one.
    pub fn edit(&self, name: &str, edit: impl FnOnce(&Path)) {
        if name.ends_with(".rpm") {
            return self.rebuild(name, edit);
        }
        self.rebuild(name, |root| {
            sum(root);
            edit(root);
            let kept = fs::read_to_string(root.join("DEBIAN/md5sums")).unwrap();
            sum(root);
            // Entries that the edit itself added to the sums stay.
            let sums = root.join("DEBIAN/md5sums");
            let added: String = kept
                .lines()
                .filter(|line| line.starts_with(&"0".repeat(32)))
                .map(|line| format!("{line}\n"))
                .collect();
            fs::write(&sums, fs::read_to_string(&sums).unwrap() + &added).unwrap();
        });
    }

    /// Edits a `.deb` like [`Set::edit`], but leaves its md5sums.
    pub fn edit_without_sums(&self, name: &str, edit: impl FnOnce(&Path)) {
        self.rebuild(name, edit);
    }

    /// Makes an `.rpm`'s header state a wrong digest for the file at `path`.
    pub fn misstate(&self, name: &str, path: &str) {
        rpm::misstate(&self.path(name), &sha256(&self.file_of(name, path)));
        let unpacked = self.unpack(name);
        self.update(name, &unpacked);
    }

    fn rebuild(&self, name: &str, edit: impl FnOnce(&Path)) {
        self.rebuild_with(name, edit, None);
    }

    /// Rebuilds a package after `edit`; an `.rpm` with `needs` requires only these packages.
    fn rebuild_with(&self, name: &str, edit: impl FnOnce(&Path), needs: Option<&[String]>) {
        let unpacked = self.unpack(name);
        let root = unpacked.root.path();
        let time = self.time(root);
        edit(root);
        // Everything in a set has the same timestamp.
        let mut touch = Command::new("find");
        touch.arg(root).args(["-exec", "touch", "-h", "-d", &format!("@{time}"), "{}", "+"]);
        tools::run(&mut touch);
        if name.ends_with(".rpm") {
            rpm::build(&self.path(name), root, &unpacked.members(), needs);
        } else {
            state_size(root, &unpacked.members());
            let mut build = Command::new("dpkg-deb");
            build.args(["--root-owner-group", "-Zgzip", "-b"]).arg(root).arg(self.path(name));
            tools::run(&mut build);
        }
        self.update(name, &unpacked);
    }

    /// The timestamp of the set's content, in seconds since 1970; `root` is one of its packages, unpacked.
    fn time(&self, root: &Path) -> i64 {
        if let Ok(receipt) = Receipt::parse(&self.receipt) {
            return receipt.content_date;
        }
        let mut members = Vec::new();
        walk(root, root, &mut members);
        let file = members.iter().find(|member| member.kind == MemberKind::File).unwrap();
        root.join(&file.path[1..]).metadata().unwrap().mtime()
    }

    fn unpack(&self, name: &str) -> Unpacked {
        let (package, root) = (self.path(name), tempfile::tempdir().unwrap());
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let others = if name.ends_with(".rpm") {
            rpm::unpack(&package, root.path())
        } else {
            tools::run(Command::new("dpkg-deb").arg("-R").arg(package).arg(root.path()));
            BTreeSet::new()
        };
        Unpacked { root, others }
    }

    /// Reads a file inside a package.
    pub fn file_of(&self, name: &str, path: &str) -> Vec<u8> {
        fs::read(self.unpack(name).root.path().join(path)).unwrap()
    }

    /// Updates the receipt, if there is one, to match a package.
    fn update(&self, name: &str, unpacked: &Unpacked) {
        if !self.path("packages.json").exists() {
            return;
        }
        let package = fs::read(self.path(name)).unwrap();
        let listed = listing::listed(&Content::of_bytes(package.clone()), name).unwrap();
        self.edit_receipt(|receipt| {
            let record = receipt.packages.iter_mut().find(|r| r.file_name == name).unwrap();
            record.relations = listed.relations;
            record.version = listed.version;
            record.installed_size = listed.installed.bytes;
            (record.size, record.sha256) = (package.len() as u64, sha256(&package));
            record.members = unpacked.members();
        });
    }

    /// Makes a package depend only on these packages, each a name with its version bound, or an empty one.
    pub fn depend(&self, name: &str, on: &[(&str, &str)]) {
        if name.ends_with(".rpm") {
            let needs: Vec<String> = on.iter().map(|(on, bound)| format!("{on} {bound}")).collect();
            return self.rebuild_with(name, |_| (), Some(&needs));
        }
        let needs = on.iter().map(|(on, bound)| match *bound {
            "" => (*on).to_owned(),
            bound => format!("{on} ({bound})"),
        });
        self.edit_control(name, "Depends", &needs.collect::<Vec<_>>().join(", "));
    }

    /// Replaces a field of a `.deb`'s control file.
    pub fn edit_control(&self, name: &str, field: &str, value: &str) {
        self.edit(name, |root| {
            let file = root.join("DEBIAN/control");
            let prefix = format!("{field}: ");
            let control = fs::read_to_string(&file).unwrap();
            let line = |line: &str| {
                if line.starts_with(&prefix) {
                    format!("{prefix}{value}\n")
                } else {
                    format!("{line}\n")
                }
            };
            let mut lines: Vec<String> = control.lines().map(line).collect();
            if !lines.iter().any(|line| line.starts_with(&prefix)) {
                lines.push(format!("{prefix}{value}\n"));
            }
            fs::write(file, lines.concat()).unwrap();
        });
    }

    /// Updates the host package's manifest to match the archives of `archs`.
    pub fn edit_manifest(&self, archs: &[&str]) {
        let packages = self.packages().into_iter().filter(|path| path.contains("/rocm-blas-gfx"));
        let kernels: Vec<Unpacked> = packages.map(|path| self.unpack(&path)).collect();
        let archive = |arch: &str| {
            let path = format!("opt/rocm-7.1/lib/.kpack/blas_lib_{arch}.kpack");
            let mut roots = kernels.iter().map(|unpacked| unpacked.root.path());
            roots.find_map(|root| fs::read(root.join(&path)).ok()).unwrap()
        };
        self.edit(&self.host(), |root| {
            let file = root.join("opt/rocm-7.1/lib/.kpack/blas_lib.kpm");
            let mut manifest =
                rmpv::decode::read_value(&mut &fs::read(&file).unwrap()[..]).unwrap();
            for arch in archs {
                let bytes = archive(arch);
                let entry = field(field(&mut manifest, "kpack_files"), arch);
                *field(entry, "size") = (bytes.len() as u64).into();
                *field(entry, "kernel_count") = rows(&bytes).into();
            }
            let mut out = Vec::new();
            rmpv::encode::write_value(&mut out, &manifest).unwrap();
            fs::write(file, out).unwrap();
        });
    }
}

/// Updates the control file's installed size.
fn state_size(root: &Path, members: &[MemberRecord]) {
    let kib = |member: &MemberRecord| match (member.kind, &member.target) {
        (MemberKind::Directory, _) => 1,
        (_, Some(target)) => target.len().div_ceil(1024),
        (_, None) => member.size.map_or(0, |size| usize::try_from(size).unwrap().div_ceil(1024)),
    };
    let kib = members.iter().map(kib).sum::<usize>() + 1;
    let file = root.join("DEBIAN/control");
    let control = fs::read_to_string(&file).unwrap();
    let line = |line: &str| match line.strip_prefix("Installed-Size: ") {
        Some(_) => format!("Installed-Size: {kib}\n"),
        None => format!("{line}\n"),
    };
    fs::write(file, control.lines().map(line).collect::<String>()).unwrap();
}

/// Writes the md5sums of all files in an unpacked package.
fn sum(root: &Path) {
    let mut members = Vec::new();
    walk(root, root, &mut members);
    let mut sums = String::new();
    for member in members.iter().filter(|member| member.kind == MemberKind::File) {
        use md5::Digest as _;
        let bytes = fs::read(root.join(&member.path[1..])).unwrap();
        sums += &format!("{}  {}\n", hex(&md5::Md5::digest(&bytes)), &member.path[1..]);
    }
    fs::write(root.join("DEBIAN/md5sums"), sums).unwrap();
}

pub fn walk(root: &Path, folder: &Path, members: &mut Vec<MemberRecord>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path == root.join("DEBIAN") {
            continue;
        }
        let metadata = path.symlink_metadata().unwrap();
        let mut member = MemberRecord {
            path: format!("/{}", path.strip_prefix(root).unwrap().display()),
            kind: MemberKind::File,
            mode: metadata.permissions().mode() & 0o7777,
            size: None,
            sha256: None,
            target: None,
        };
        if metadata.is_dir() {
            member.kind = MemberKind::Directory;
            walk(root, &path, members);
        } else if metadata.is_symlink() {
            member.kind = MemberKind::Link;
            member.target = Some(fs::read_link(&path).unwrap().display().to_string());
        } else {
            let bytes = fs::read(&path).unwrap();
            (member.size, member.sha256) = (Some(bytes.len() as u64), Some(sha256(&bytes)));
        }
        members.push(member);
    }
}
