//! Wheels of Python's own zipfile module.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use support::python;

/// The GPUs of [`family`].
pub const ARCHS: [&str; 2] = ["gfx1100", "gfx942"];

/// A wheel that is to be made.
pub struct Wheel<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub tags: &'a str,
    /// Lines of METADATA behind name and version.
    pub fields: &'a str,
    /// Paths and texts.
    pub files: &'a [(&'a str, &'a str)],
}

impl Wheel<'_> {
    pub fn of<'a>(name: &'a str, version: &'a str, fields: &'a str) -> Wheel<'a> {
        Wheel { name, version, tags: "py3-none-any", fields, files: &[] }
    }

    /// The file name.
    pub fn file(&self) -> String {
        format!("{}-{}.whl", self.stem(), self.tags)
    }

    fn stem(&self) -> String {
        format!("{}-{}", self.name.replace(['-', '.'], "_"), self.version)
    }

    /// Writes it into a folder.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let Wheel { name, version, fields, .. } = self;
        let metadata =
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{fields}\n");
        self.write_as(folder, &metadata)
    }

    /// Writes it with this METADATA.
    pub fn write_as(&self, folder: &Path, metadata: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let spec = json!({
            "stem": self.stem(),
            "tags": self.tags,
            "metadata": metadata,
            "files": self.files,
        });
        let arguments = [folder.to_str().unwrap()];
        python::run(include_str!("make.py"), &arguments, &spec.to_string()).unwrap();
        folder.join(self.file())
    }
}

/// Writes a host wheel `demo` with extras, and its device wheels, which bring a file each.
pub fn family(folder: &Path, version: &str) {
    family_of(folder, version, &ARCHS);
}

/// Writes a host wheel `demo` with device wheels for these GPUs.
pub fn family_of(folder: &Path, version: &str, archs: &[&str]) {
    let extras = archs.iter().map(|arch| {
        format!(
            "Provides-Extra: device-{arch}\n\
             Requires-Dist: demo-device-{arch} == {version} ; extra == \"device-{arch}\"\n"
        )
    });
    let fields = format!("Requires-Python: >=3.8\n{}", extras.collect::<String>());
    let code = format!("version = {version:?}\n");
    let files = [("demo/__init__.py", code.as_str())];
    Wheel { files: &files, ..Wheel::of("demo", version, &fields) }.write(folder);
    for arch in archs {
        device(folder, &format!("demo-device-{arch}"), version, "");
    }
}

/// Writes a device wheel of `demo`.
pub fn device(folder: &Path, name: &str, version: &str, fields: &str) -> PathBuf {
    let path = format!("demo/.kpack/{}.kpack", name.rsplit_once('-').unwrap().1);
    let files = [(path.as_str(), version)];
    let fields = format!("Requires-Dist: demo == {version}\n{fields}");
    Wheel { files: &files, ..Wheel::of(name, version, &fields) }.write(folder)
}
