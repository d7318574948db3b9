//! Tables of distributions, and the files of dpkg that tables are made of: status, symbols and shlibs. A table
//! that was made can be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rockpack_distribution::Table;

/// The start of dpkg's status in the root.
const STATUS: &str =
    "Package: dpkg\nStatus: install ok installed\nVersion: 1.22.22\nArchitecture: amd64\n";

/// The library of the root, and the start of a header for x86-64.
const LIBRARY: &str = "usr/lib/libz.so.1";
const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0";

/// Files in the root that the first byte chooses from.
const FILES: [&str; 3] =
    ["var/lib/dpkg/status", "var/lib/dpkg/info/dpkg.symbols", "var/lib/dpkg/info/dpkg.shlibs"];

pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let chosen = usize::from(kind % 4).checked_sub(1).and_then(|at| FILES.get(at));
    let Some(file) = chosen else {
        if let Some(Table::Deb(distribution)) =
            super::read(Table::read(text.to_owned(), Path::new("x")))
        {
            distribution.packages().for_each(|library| drop(super::read(library)));
        }
        return;
    };
    let root = root();
    for each in FILES {
        let own = if each == *file { text } else { "" };
        let start = if each == FILES[0] { STATUS } else { "" };
        fs::write(root.join(each), format!("{start}{own}")).unwrap();
    }
    if let Some(made) = super::read(Table::make(root)) {
        Table::read(made, root).unwrap();
    }
}

/// A root with a package, which has a library.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = std::env::temp_dir().join(format!("rockpack-fuzz-{}", std::process::id()));
        for folder in ["var/lib/dpkg/info", "usr/lib"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("var/lib/dpkg/info/dpkg.list"), format!("/{LIBRARY}\n/usr/bin/dpkg\n"))
            .unwrap();
        fs::write(root.join(LIBRARY), ELF).unwrap();
        root
    })
}
