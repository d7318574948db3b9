//! A `.deb` assembled by ar, tar and a compressor, member by member.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::tools::run;

/// The programs that assemble it.
pub const TOOLS: [&str; 5] = ["ar", "tar", "md5sum", "bzip2", "xz"];

/// A package with one file, `/usr/share/<name>/file`.
#[derive(Debug, Clone)]
pub struct ForeignDeb<'a> {
    /// The package's name, which `control` states.
    pub name: &'a str,
    /// The control file.
    pub control: String,
    /// The content of `debian-binary`.
    pub version: &'a str,
    /// The path of the file; `/usr/share/<name>/file` if unset.
    pub path: Option<&'a str>,
    /// The ending of the data archive, `.gz`; with an ending that no tool here knows, it stays uncompressed.
    pub data: &'a str,
    /// Members to insert before `debian-binary`, before both control and data, and after the data.
    pub members: [&'a [&'a str]; 3],
    /// Further options of tar for the control and the data archive.
    pub options: [&'a [&'a str]; 2],
    /// Whether the control archive has md5sums.
    pub has_sums: bool,
    /// Whether a link replaces the file.
    pub is_link: bool,
}

impl<'a> ForeignDeb<'a> {
    /// A package like dpkg-deb's, with further lines in the control file.
    pub fn new(name: &'a str, fields: &str) -> Self {
        let control = format!(
            "Package: {name}\nVersion: 1\nArchitecture: all\n\
             Maintainer: Packager <packager@example.org>\n{fields}Description: one of {name}\n"
        );
        let (members, options) = ([&[][..]; 3], [&[][..]; 2]);
        Self {
            name,
            control,
            path: None,
            version: "2.0\n",
            data: ".gz",
            members,
            options,
            has_sums: true,
            is_link: false,
        }
    }

    /// Writes the package.
    pub fn write(&self, file: &Path) {
        let room = tempfile::tempdir().unwrap();
        let [root, control] = ["root", "own"].map(|name| room.path().join(name));
        let own = format!("usr/share/{}/file", self.name);
        let path = self.path.map_or(own, str::to_owned);
        let owned = root.join(&path);
        fs::create_dir_all(owned.parent().unwrap()).unwrap();
        fs::create_dir_all(&control).unwrap();
        if self.is_link {
            symlink("elsewhere", &owned).unwrap();
        } else {
            fs::write(&owned, format!("file of {}\n", self.name)).unwrap();
        }
        fs::write(control.join("control"), &self.control).unwrap();
        if self.has_sums && !self.is_link {
            let sums = run(Command::new("md5sum").arg(&path).current_dir(&root)).stdout;
            fs::write(control.join("md5sums"), sums).unwrap();
        }
        fs::write(room.path().join("debian-binary"), self.version).unwrap();
        let data = format!("data.tar{}", self.data);
        archive(&control, &room.path().join("control.tar.gz"), ".gz", self.options[0]);
        archive(&root, &room.path().join(&data), self.data, self.options[1]);
        let [first, between, behind] = self.members;
        for name in first.iter().chain(between).chain(behind) {
            let extra = room.path().join(name);
            if !extra.exists() {
                fs::write(extra, format!("{name}\n")).unwrap();
            }
        }
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let _ = fs::remove_file(file);
        let mut ar = Command::new("ar");
        ar.arg("qc").arg(file).args(first).arg("debian-binary").args(between);
        ar.arg("control.tar.gz").args(between).arg(data).args(behind);
        run(ar.current_dir(room.path()));
    }
}

/// Archives a folder as `./`.
fn archive(folder: &Path, file: &Path, ending: &str, options: &[&str]) {
    let mut tar = Command::new("tar");
    tar.args([
        "--format=gnu",
        "--owner=root:0",
        "--group=root:0",
        "--sort=name",
        "--mode=u=rwX,go=rX",
    ]);
    match ending {
        ".gz" => drop(tar.arg("--gzip")),
        ".xz" => drop(tar.arg("--xz")),
        ".bz2" => drop(tar.arg("--bzip2")),
        ".lzma" => drop(tar.arg("--use-compress-program=xz --format=lzma")),
        _ => {}
    }
    run(tar.args(options).arg("-C").arg(folder).arg("-cf").arg(file).arg("./"));
}
