//! Fat wheels, written by Python's zipfile, and the wheels made from them, as Python reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::example::{self, GROUPS, names, shards};
use crate::fixtures;
use crate::{python, tools};

/// The tags of test wheels: every Python on this system accepts them.
pub const TAGS: &str = "py3-none-manylinux_2_17_x86_64";

/// The mode of an executable regular file, as in ZIP headers.
pub const PROGRAM: u32 = 0o100_755;

/// The specification of a wheel to write.
#[derive(Clone)]
pub struct WheelSpec {
    file: String,
    info: String,
    members: Vec<Value>,
    has_record: bool,
    edits: Vec<(String, String)>,
    patches: Vec<Value>,
}

impl WheelSpec {
    /// A wheel with only METADATA and WHEEL.
    pub fn new(name: &str, version: &str) -> Self {
        Self::tagged(name, version, TAGS)
    }

    /// A wheel with these tags, which may begin with a build number.
    pub fn tagged(name: &str, version: &str, tags: &str) -> Self {
        let stem = format!("{}-{version}", name.replace(['-', '.'], "_"));
        let info = format!("{stem}.dist-info");
        let file = format!("{stem}-{tags}.whl");
        let tagged: Vec<&str> = tags.rsplitn(4, '-').collect();
        let wheel = wheel_file(&[tagged[2], tagged[1], tagged[0]], tagged.get(3).copied());
        let empty = Self {
            file,
            info,
            members: Vec::new(),
            has_record: true,
            edits: Vec::new(),
            patches: Vec::new(),
        };
        empty.info("METADATA", &metadata(name, version, "")).info("WHEEL", &wheel)
    }

    /// Adds a member.
    pub fn member(mut self, member: Value) -> Self {
        // Members of dist-info go to the end.
        let is_info = member["name"].as_str().unwrap().starts_with(&self.info);
        let of_info = |other: &Value| other["name"].as_str().unwrap().starts_with(&self.info);
        let at = if is_info { None } else { self.members.iter().position(of_info) };
        self.members.insert(at.unwrap_or(self.members.len()), member);
        self
    }

    /// Adds a member with the bytes of a file.
    pub fn file(self, name: &str, file: &Path) -> Self {
        self.member(json!({"name": name, "file": file}))
    }

    /// Adds a member with this text.
    pub fn text(self, name: &str, text: &str) -> Self {
        self.member(json!({"name": name, "text": text}))
    }

    /// Adds a text to the `dist-info` folder, or replaces the one there.
    pub fn info(mut self, name: &str, text: &str) -> Self {
        let name = format!("{}/{name}", self.info);
        match self.members.iter_mut().find(|member| member["name"] == name.as_str()) {
            Some(member) => member["text"] = text.into(),
            None => return self.text(&name, text),
        }
        self
    }

    /// Sets a field of a member.
    pub fn set(mut self, name: &str, field: &str, value: impl Into<Value>) -> Self {
        let member = self.members.iter_mut().find(|member| member["name"] == name);
        member.unwrap_or_else(|| panic!("no {name}"))[field] = value.into();
        self
    }

    /// Removes a member.
    pub fn without(mut self, name: &str) -> Self {
        let count = self.members.len();
        self.members.retain(|member| member["name"] != name);
        assert!(self.members.len() < count, "no {name}");
        self
    }

    /// Leaves RECORD out.
    pub fn without_record(mut self) -> Self {
        self.has_record = false;
        self
    }

    /// Names the wheel's file.
    pub fn called(mut self, file: &str) -> Self {
        file.clone_into(&mut self.file);
        self
    }

    /// Replaces a text in RECORD.
    pub fn edit(mut self, old: &str, new: &str) -> Self {
        self.edits.push((old.to_owned(), new.to_owned()));
        self
    }

    /// Exchanges the rows of METADATA and WHEEL in RECORD.
    pub fn stale(self) -> Self {
        let [metadata, wheel] =
            ["METADATA", "WHEEL"].map(|name| format!("{},", self.info_path(name)));
        self.edit(&metadata, "exchanged,").edit(&wheel, &metadata).edit("exchanged,", &wheel)
    }

    /// Sets a field in both headers of a member.
    pub fn patch(mut self, name: &str, field: &str, value: u32) -> Self {
        self.patches.push(json!([name, field, value]));
        self
    }

    /// The path of a file in the `dist-info` folder.
    pub fn info_path(&self, name: &str) -> String {
        format!("{}/{name}", self.info)
    }

    /// Writes the wheel into a folder, and returns its path.
    pub fn write(&self, folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(&self.file);
        let spec = json!({
            "path": path,
            "members": self.members,
            "record": self.has_record.then(|| self.info_path("RECORD")),
            "edits": self.edits,
            "patches": self.patches,
        });
        python::run(include_str!("wheel_writer.py"), &[], &spec.to_string()).unwrap();
        path
    }
}

/// METADATA with these lines after the required ones.
pub fn metadata(name: &str, version: &str, lines: &str) -> String {
    format!(
        "Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{lines}\nThe *body*: of it.\n"
    )
}

fn wheel_file(tags: &[&str; 3], build: Option<&str>) -> String {
    let [pythons, abis, platforms] = tags.map(|tags| tags.split('.').collect::<Vec<_>>());
    let mut text = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\n".to_owned();
    for python in pythons {
        for abi in &abis {
            for platform in &platforms {
                text += &format!("Tag: {python}-{abi}-{platform}\n");
            }
        }
    }
    build.map_or(text.clone(), |build| format!("{text}Build: {build}\n"))
}

/// A file of the shard of a group in [`GROUPS`], by install path.
pub fn of_shard(group: usize, installed: &str) -> PathBuf {
    GROUPS[group].original(&shards(), installed)
}

/// A library with two wrappers: a plain one for four archs, a compressed one for three.
pub fn library() -> PathBuf {
    of_shard(0, LIBRARY)
}

/// Writes [`library`] into `folder`, with a need of `soname` in place of `libamdhip64.so.7`, which is not shorter.
pub fn library_needing(folder: &Path, soname: &str) -> PathBuf {
    let (mut bytes, known) = (fs::read(library()).unwrap(), b"libamdhip64.so.7\0");
    let at = bytes.windows(known.len()).position(|name| name == known).unwrap();
    bytes[at..at + known.len()].fill(0);
    bytes[at..at + soname.len()].copy_from_slice(soname.as_bytes());
    let path = folder.join(format!("needs-{soname}"));
    fs::write(&path, bytes).unwrap();
    path
}

/// Links `folder/<name>` from C; it needs `libraries`.
pub fn linked(folder: &Path, name: &str, code: &str, libraries: &[&Path]) -> PathBuf {
    tools::need(&["gcc"]);
    let (source, library) = (folder.join("source.c"), folder.join(name));
    fs::write(&source, code).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", &format!("-Wl,-soname,{name}"), "-o"]);
    tools::run(gcc.arg(&library).arg(source).args(libraries));
    library
}

/// Links a stand-in for `librocm_kpack_shim.so.0` from C, with `more` code. Nothing loads it.
pub fn shim(folder: &Path, more: &str) -> PathBuf {
    let code = "void **rocm_kpack_register_fat_binary(const void *it) { return (void **)it; }\n\
                void rocm_kpack_unregister_fat_binary(void **it) { (void)it; }\n";
    linked(folder, "librocm_kpack_shim.so.0", &format!("{more}{code}"), &[])
}

/// The libraries that a file needs, by readelf.
pub fn needed(file: &Path) -> Vec<String> {
    tools::need(&["readelf"]);
    let dump = tools::succeed(Command::new("readelf").args(["-dW"]).arg(file));
    let names = dump.lines().filter(|line| line.contains("(NEEDED)"));
    let name = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
    names.filter_map(name).collect()
}

const LIBRARY: &str = "lib/libexblas.so.1.2";

/// The folder of kernel databases in the fat wheel.
pub const DATABASE: &str = "x/lib/rocblas/library";

/// The fat binaries of the fat wheel: the file on disk by member name.
pub fn fat_binaries() -> BTreeMap<String, PathBuf> {
    let other = fixtures::folder().join("binaries/bfd_shared");
    [
        ("x/_C.so", library()),
        ("x/sub/_C.so", of_shard(2, LIBRARY)),
        ("x.libs/libexblas-1a2b3c4d.so.1.2", of_shard(1, LIBRARY)),
        ("x/bin/tune", of_shard(0, "libexec/exblas/exblas-tune")),
        ("y/_D.so", other),
        ("_E.so", of_shard(1, LIBRARY)),
    ]
    .map(|(name, file)| (name.to_owned(), file))
    .into()
}

/// A fat wheel `x` with everything that a wheel may have: several packages with libraries next to them, two
/// libraries with the same file name, kernel databases, licences, an extra, and files installed elsewhere.
pub fn fat() -> WheelSpec {
    fat_version("1.0")
}

/// The wheel of [`fat`] in another version.
pub fn fat_version(version: &str) -> WheelSpec {
    let mut wheel = WheelSpec::new("x", version)
        .text("x/__init__.py", "import os\n")
        .text("x/sub/__init__.py", "")
        .text("y/__init__.py", "")
        .text(&format!("x-{version}.data/purelib/x/pure.py"), "pure = True\n")
        .text(&format!("x-{version}.data/scripts/x-tool"), "#!python\nprint(1)\n")
        .text("x/data, with \"all\"/ü.txt", "ü\n");
    for (name, file) in fat_binaries() {
        wheel = wheel.file(&name, &file);
    }
    wheel = wheel.set("x/bin/tune", "mode", PROGRAM).set("x/sub/_C.so", "method", 0);
    for (name, file) in databases() {
        wheel = wheel.file(&format!("{DATABASE}/{name}"), &file);
    }
    wheel
        .text("x/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2", "for all of gfx11\n")
        .text("x/lib/aotriton.images/amd-gfx90a/flash/attn_fwd.aks2", "for gfx90a\n")
        .info("METADATA", &metadata("x", version, FIELDS))
        .info("licenses/LICENSE.txt", "MIT\n")
        .info("licenses/third_party/NOTICE", "Others\n")
        .info("entry_points.txt", "[console_scripts]\nx-other = x:os\n")
        .info("top_level.txt", "x\ny\n")
}

const FIELDS: &str = "\
Summary: An example
Author: Somebody
License-Expression: MIT
License-File: LICENSE.txt
License-File: third_party/NOTICE
Project-URL: Home, https://example.org
Requires-Python: >=3.8
Provides-Extra: more
Requires-Dist: absent-of-this-index; extra == \"more\"
Description-Content-Type: text/markdown
";

/// The files of two shards' kernel databases; the common file is the first shard's.
fn databases() -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    for group in [0, 2] {
        let folder = of_shard(group, "lib/rocblas/library");
        for name in names(&folder) {
            let file = folder.join(&name);
            files.entry(name).or_insert(file);
        }
    }
    files
}

/// `rockpack wheel` of `wheels` into `out`, with all notes.
pub fn wheel_command(wheels: &[&Path], out: &Path) -> Command {
    let mut command = example::rockpack();
    command.args(["wheel", "-v"]).args(wheels).arg("--out").arg(out);
    command
}

/// A fat wheel and the wheels made from it.
pub struct Made {
    /// The folder of both, kept as long as this value.
    pub room: tempfile::TempDir,
    /// The wheel that was split.
    pub fat: PathBuf,
    /// The output of the run.
    pub said: String,
    /// The wheels as Python reads them, read at the first request.
    read: OnceLock<BTreeMap<String, ReadWheel>>,
}

impl Made {
    /// Splits `wheel` with further options.
    pub fn of(wheel: &WheelSpec, options: &[&str]) -> Self {
        let room = tempfile::tempdir().unwrap();
        let fat = wheel.write(&room.path().join("in"));
        let out = room.path().join("out");
        let said = tools::said(wheel_command(&[&fat], &out).args(options));
        Self { room, fat, said, read: OnceLock::new() }
    }

    /// The folder of the wheels.
    pub fn out(&self) -> PathBuf {
        self.room.path().join("out")
    }

    /// The parsed receipt.
    pub fn receipt(&self) -> Value {
        serde_json::from_slice(&fs::read(self.out().join("wheels.json")).unwrap()).unwrap()
    }

    /// The wheels by file name, in order.
    pub fn wheels(&self) -> BTreeMap<String, ReadWheel> {
        let ask = || {
            let made = names(&self.out()).into_iter().filter(|name| name.ends_with(".whl"));
            read(&made.map(|name| self.out().join(name)).collect::<Vec<_>>())
        };
        self.read.get_or_init(ask).clone()
    }

    /// The only wheel of a distribution.
    pub fn wheel(&self, distribution: &str) -> ReadWheel {
        let start = format!("{}-", distribution.replace(['-', '.'], "_"));
        let mut found = self.wheels().into_iter().filter(|(name, _)| name.starts_with(&start));
        let (_, wheel) = found.next().unwrap_or_else(|| panic!("no {distribution}"));
        assert!(found.next().is_none(), "several of {distribution}");
        wheel
    }
}

/// A wheel as Python reads it.
#[derive(Debug, Clone)]
pub struct ReadWheel {
    /// The members in the directory's order: `name`, `sha256`, `stored` and more.
    pub members: Vec<Value>,
    /// The texts of the `dist-info` folder, by path in it.
    pub texts: BTreeMap<String, String>,
    /// The reader's whole output.
    pub value: Value,
}

impl ReadWheel {
    /// The names of the members, in order.
    pub fn names(&self) -> Vec<&str> {
        self.members.iter().map(|member| member["name"].as_str().unwrap()).collect()
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> &Value {
        let found = self.members.iter().find(|member| member["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {:?}", self.names()))
    }

    /// The text of METADATA.
    pub fn metadata(&self) -> &str {
        &self.texts["METADATA"]
    }

    /// The values of a field of METADATA.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        fields(self.metadata(), name)
    }

    /// The requirements of an extra; those without an extra if `extra` is empty.
    pub fn requires(&self, extra: &str) -> BTreeSet<&str> {
        let all = self.fields("Requires-Dist").into_iter();
        let own = all.filter_map(|line| match line.split_once("; extra == ") {
            Some((what, name)) => (name.trim_matches('"') == extra).then_some(what),
            None => extra.is_empty().then_some(line),
        });
        own.collect()
    }
}

/// The values of a field before the body of a text.
pub fn fields<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let head = text.split("\n\n").next().unwrap();
    let start = format!("{name}: ");
    head.lines().filter_map(|line| line.strip_prefix(&start)).collect()
}

/// Reads one wheel with Python.
pub fn read_one(wheel: &Path) -> ReadWheel {
    read(&[wheel.to_path_buf()]).into_values().next().unwrap()
}

/// Reads wheels with Python, by file name.
pub fn read(wheels: &[PathBuf]) -> BTreeMap<String, ReadWheel> {
    let paths: Vec<&str> = wheels.iter().map(|path| path.to_str().unwrap()).collect();
    let Value::Object(found) = python::python("wheel_reader.py", &paths).unwrap() else { panic!() };
    let wheel = |value: Value| {
        let members = value["members"].as_array().unwrap().clone();
        let texts = value["texts"].as_object().unwrap().iter().map(|(path, text)| {
            let (_, name) = path.split_once('/').unwrap();
            (name.to_owned(), text.as_str().unwrap().to_owned())
        });
        ReadWheel { members, texts: texts.collect(), value: value.clone() }
    };
    found.into_iter().map(|(name, value)| (name, wheel(value))).collect()
}
