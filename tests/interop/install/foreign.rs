//! Packages of other vendors on a system, and trees that belong to no package.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A package of another vendor.
pub struct Foreign {
    pub name: &'static str,
    pub version: &'static str,
    /// A required package, and its lowest version.
    pub needs: Option<(&'static str, &'static str)>,
    /// Files by path, relative to the root.
    pub files: &'static [(&'static str, &'static str)],
    /// The folders that belong to the package.
    pub folders: &'static [&'static str],
}

impl Foreign {
    pub fn plant(&self, root: &Path) {
        for (path, text) in self.files {
            write(&root.join(path), text);
        }
    }
}

/// The library under its name before ROCm 7, in the prefix of ROCm 6.
pub const LEGACY: Foreign = Foreign {
    name: "rocblas",
    version: "4.4.1.60401",
    needs: None,
    files: &[("opt/rocm-6.4.1/lib/librocblas.so.4", "not a library\n")],
    folders: &["opt/rocm-6.4.1"],
};

/// A program that asks for the library by that name.
pub const USER_OF_LEGACY: Foreign = Foreign {
    name: "solver",
    version: "1",
    needs: Some(("rocblas", "4.0")),
    files: &[("usr/share/solver/readme", "a program\n")],
    folders: &["usr/share/solver"],
};

/// The package that those of the scheme `amdrocm` need, and no set has.
pub const RUNTIME: Foreign = Foreign {
    name: "amdrocm-runtime7.1",
    version: "7.1.0",
    needs: None,
    files: &[("usr/share/amdrocm-runtime/readme", "stands for the runtime\n")],
    folders: &["usr/share/amdrocm-runtime"],
};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Makes `/opt/rocm` a link to the tree of a release, as packages of ROCm up to 6 do.
pub fn versioned_tree(root: &Path) {
    write(&root.join("opt/rocm-6.4.0/lib/libexblas.so.1.2"), "of another vendor\n");
    write(&root.join("opt/rocm-6.4.0/.info/version"), "6.4.0-47\n");
    symlink("/opt/rocm-6.4.0", root.join("opt/rocm")).unwrap();
}

/// Makes `/opt/rocm` a directory whose `lib` and `bin` are alternatives, as packages of ROCm 7 do.
pub fn tree_of_alternatives(root: &Path) {
    write(&root.join("opt/rocm-6.4.0/lib/libexblas.so.1.2"), "of another vendor\n");
    fs::create_dir_all(root.join("opt/rocm-6.4.0/bin")).unwrap();
    fs::create_dir_all(root.join("opt/rocm")).unwrap();
    fs::create_dir_all(root.join("etc/alternatives")).unwrap();
    for name in ["lib", "bin"] {
        symlink(format!("/etc/alternatives/rocm-{name}"), root.join("opt/rocm").join(name))
            .unwrap();
        let alternative = root.join("etc/alternatives").join(format!("rocm-{name}"));
        symlink(format!("/opt/rocm-6.4.0/{name}"), alternative).unwrap();
    }
}

/// Removes the trees of other installers.
pub fn remove_trees(root: &Path) {
    let paths =
        ["opt/rocm", "opt/rocm-6.4.0", "etc/alternatives/rocm-lib", "etc/alternatives/rocm-bin"];
    for place in paths.map(|path| root.join(path)) {
        match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(place).unwrap(),
            Ok(_) => fs::remove_file(place).unwrap(),
            Err(_) => {}
        }
    }
}
