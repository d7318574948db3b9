//! Foreign judges of transformed host binaries: the dynamic loader with a stub HIP runtime, `eu-elflint`,
//! `readelf`, and the tools that distributions run on packaged binaries.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf::{DT_RPATH, DT_RUNPATH};
use object::read::elf::{Dyn, ElfFile64};
use object::{LittleEndian, Object, ObjectSection};
use rockpack_core::error::Kind;
use rockpack_split::host_binary::{Analysis, Examined, examine, examine_for};
use support::sweep::or_all;
use support::transform::{analyse, analyse_for, marker};
use support::{fixtures, tools};

/// A run path too long for any slack, so that `patchelf` has to move sections.
const LONG_RUN_PATH: &str =
    "/opt/rocm/lib:/a/run/path/that/is/far/too/long/for/the/room/of/the/old/one";

/// A treatment's name, its tool, and its command.
type Treatment = (&'static str, &'static str, &'static str);

/// Treatments for a transformed file, as shell commands with the file as `$1`.
const TREATMENTS: [Treatment; 11] = [
    ("strip", "strip", "strip $1"),
    ("strip-g", "strip", "strip -g $1"),
    (
        "dh_strip",
        "strip",
        "strip --remove-section=.comment --remove-section=.note --strip-unneeded $1",
    ),
    ("objcopy", "objcopy", "objcopy $1"),
    ("eu-strip", "eu-strip", "eu-strip $1"),
    ("eu-strip-f", "eu-strip", "eu-strip -f $1.debug $1"),
    ("llvm-strip", "llvm-strip-19", "llvm-strip-19 $1"),
    ("patchelf", "patchelf", "patchelf --set-rpath $RUN_PATH $1"),
    ("patchelf-strip", "patchelf", "patchelf --set-rpath $RUN_PATH $1 && strip $1"),
    ("chrpath", "chrpath", "chrpath -r /opt $1"),
    ("debugedit", "debugedit", "debugedit -b /build -d /usr/src/debug -i -s 0123456789abcdef $1"),
];

/// Fixtures made from `cases.S`, with the assembler's flags.
const SHAPES: [(&str, &[&str]); 6] = [
    ("ordered", &[]),
    ("reversed", &["-DORDER=1"]),
    ("shared_bundle", &["-DORDER=2"]),
    ("exact_pages", &["-DCODE=4096"]),
    ("one_word", &["-DCODE=512"]),
    ("before_bss", &["-DCODE=520", "-DWRITABLE"]),
];

/// The original and the changed file of a case, in a folder of its own.
pub struct Case {
    /// The case's number within its test.
    pub number: usize,
    pub original: PathBuf,
    pub changed: Changed,
    pub folder: PathBuf,
}

/// What a case becomes.
pub enum Changed {
    /// A binary without device code.
    Host(Box<Analysis>),
    /// A file that `rockpack thin` wrote.
    Thinned(PathBuf),
}

impl Case {
    fn new(test: &str, (number, original): (usize, &Path), any_runtime: bool) -> Self {
        let name = fixtures::name(original);
        Self {
            number,
            changed: Changed::Host(analyse_for(original, any_runtime)),
            original: original.to_owned(),
            folder: fixtures::scratch(&format!("{test}-{any_runtime}-{name}")),
        }
    }

    /// Copies the original under its own name into a folder called `purpose`.
    fn copy(&self, purpose: &str) -> PathBuf {
        let path = self.path(purpose);
        std::fs::copy(&self.original, &path).unwrap();
        path
    }

    /// Copies the changed file in the same way.
    pub fn changed(&self, purpose: &str) -> PathBuf {
        let path = self.path(purpose);
        match &self.changed {
            Changed::Host(analysis) => {
                let mut file = std::fs::File::create(&path).unwrap();
                let content = analysis.apply(&marker()).unwrap();
                std::io::copy(&mut content.reader(), &mut file).unwrap();
                file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            Changed::Thinned(file) => drop(std::fs::copy(file, &path).unwrap()),
        }
        path
    }

    /// Fails unless a treated file has what the changed one leads to.
    fn assert_kept(&self, file: &Path) {
        match (&self.changed, examine(&fixtures::content(file)).unwrap()) {
            (Changed::Host(_), Examined::Transformed(_)) => {}
            (Changed::Thinned(before), Examined::Fat(_)) => {
                let [before, after] =
                    [before, file].map(|file| code_of(&std::fs::read(file).unwrap()));
                assert!(before == after, "other device code");
            }
            (_, other) => panic!("{other:?}"),
        }
    }

    fn path(&self, purpose: &str) -> PathBuf {
        let folder = self.folder.join(purpose);
        std::fs::create_dir_all(&folder).unwrap();
        folder.join(fixtures::name(&self.original))
    }
}

/// The address and bytes of the device code of a binary.
pub fn code_of(binary: &[u8]) -> (u64, Vec<u8>) {
    let file = ElfFile64::<LittleEndian>::parse(binary).unwrap();
    let section = file.section_by_name(".hip_fatbin").unwrap();
    (section.address(), section.data().unwrap().to_vec())
}

/// The fields in the stub runtime's lines, by wrapper address.
pub fn registrations(output: &str) -> BTreeMap<u64, BTreeMap<String, String>> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("register "));
    let fields = |line: &str| -> BTreeMap<String, String> {
        let pairs = line.split(' ').filter_map(|field| field.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    lines.map(fields).map(|fields| (number(&fields["wrapper"]), fields)).collect()
}

pub fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// The wrapper addresses of a file, found without the transform's own reader.
fn wrapper_addresses(path: &Path) -> Vec<u64> {
    let data = std::fs::read(path).unwrap();
    let file = ElfFile64::<LittleEndian>::parse(&*data).unwrap();
    let section = file.section_by_name(".hipFatBinSegment").unwrap();
    let bytes = section.data().unwrap();
    let starts = (0..bytes.len()).step_by(8);
    let wrappers = starts.filter(|at| bytes[*at..].starts_with(b"FPIH\x01\0\0\0"));
    wrappers.map(|at| section.address() + at as u64).collect()
}

/// Fails unless every wrapper that the program registers leads to the marker with its own index, and in the
/// original led to the bundle from the analysis.
fn assert_resolves(case: &Case, before: &str, after: &str) {
    let Changed::Host(analysis) = &case.changed else { panic!("a thinned file") };
    let (old, new) = (registrations(before), registrations(after));
    assert!(!old.is_empty(), "{before}");
    assert!(old.keys().eq(new.keys()), "{before}{after}");
    let addresses = wrapper_addresses(&case.original);
    let data = std::fs::read(&case.original).unwrap();
    let file = ElfFile64::<LittleEndian>::parse(&*data).unwrap();
    let start = file.section_by_name(".hip_fatbin").unwrap().address();
    for (address, fields) in &new {
        let index = addresses.iter().position(|other| other == address).unwrap();
        assert_eq!(fields["magic"], "4b504948");
        assert_eq!(number(&fields["reserved"]), index as u64);
        assert_eq!(number(&fields["target"]), start);
        let bundle = analysis.wrappers()[index].bundle_offset;
        assert_eq!(number(&old[address]["target"]), start + bundle);
    }
    let text = " kernel_name =lib/libx.so kpack_search_paths =.kpack/x_@GFXARCH@.kpack\n";
    assert_eq!(after.matches(text).count(), new.len(), "{after}");
}

/// The program's lines other than registrations: results of its own code.
pub fn rest(output: &str) -> Vec<&str> {
    output.lines().filter(|line| !line.starts_with("register ")).collect()
}

fn assert_loads(case: &Case) {
    let before = fixtures::load(&case.original);
    let after = fixtures::load(&case.changed("load"));
    assert_resolves(case, &before, &after);
    assert_eq!(rest(&before), rest(&after));
    assert!(after.contains("exit status: 0"), "{after}");
}

pub fn assert_lints(case: &Case) {
    let before = tools::lint(&case.original);
    let file = case.changed("lint");
    let new: Vec<_> =
        tools::lint(&file).into_iter().filter(|line| !before.contains(line)).collect();
    assert!(new.is_empty(), "{new:?}");
    let mut readelf = Command::new("readelf");
    let output = readelf.arg("-lSdrsnW").arg(&file).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// Runs a tool on a file and returns its messages. Fails if the tool refuses the file or leaves it unchanged,
/// since the checks would then judge an untreated file.
fn treat(name: &str, command: &str, file: &Path) -> String {
    let before = std::fs::read(file).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-ec", command, "sh"]).arg(file);
    let said = tools::told(shell.env("RUN_PATH", LONG_RUN_PATH));
    if name == "chrpath" && !has_run_path(&before) {
        assert!(said.contains("no rpath or runpath tag found"), "{name}: {said}");
        return said;
    }
    assert!(said.ends_with("exit status: 0\n"), "{name}: {said}");
    let changed = std::fs::read(file).unwrap() != before;
    assert!(changed || !has_work(name, &before), "{name} left {} as it was", file.display());
    if name == "debugedit" && contains(&before, b"/build/src") {
        let after = std::fs::read(file).unwrap();
        assert!(contains(&after, b"/usr/src/debug/src"), "{} has its old sources", file.display());
    }
    said
}

fn contains(data: &[u8], text: &[u8]) -> bool {
    data.windows(text.len()).any(|window| window == text)
}

fn has_run_path(data: &[u8]) -> bool {
    let file = ElfFile64::<LittleEndian>::parse(data).unwrap();
    let entries = file.elf_section_table().dynamic(LittleEndian, data).unwrap();
    let (entries, _) = entries.expect("every fixture is linked to the runtime");
    entries.iter().any(|entry| [DT_RPATH, DT_RUNPATH].contains(&entry.d_tag(LittleEndian)))
}

/// Tells whether a tool has something to change in a file.
fn has_work(name: &str, data: &[u8]) -> bool {
    let file = ElfFile64::<LittleEndian>::parse(data).unwrap();
    match name {
        "patchelf" | "patchelf-strip" | "chrpath" => true,
        "debugedit" => has_section(&file, ".note.gnu.build-id"),
        // The tool rewrites the output of `ld`, often byte for byte.
        "objcopy" => false,
        // The tool keeps symbols that the linker's remaining relocations name.
        "eu-strip" | "eu-strip-f" => {
            has_section(&file, ".symtab") && !has_section(&file, ".rela.text")
        }
        _ => has_section(&file, ".symtab"),
    }
}

fn has_section(file: &ElfFile64<'_, LittleEndian>, name: &str) -> bool {
    file.section_by_name(name).is_some()
}

/// A tool's messages without the file's name and without build IDs, which some tools print.
fn without(said: &str, file: &Path) -> Vec<String> {
    let said = said.replace(&*file.to_string_lossy(), "");
    let is_build_id = |word: &str| word.len() == 40 && word.chars().all(|c| c.is_ascii_hexdigit());
    said.lines().filter(|line| !is_build_id(line)).map(str::to_owned).collect()
}

/// The treatments among `all` for a case. A sample takes a third, a different one for each case, so that each
/// tool treats a third of the cases. The two linkers' builds of a shape get different thirds, and a tool gets
/// the shapes that give it the most to do.
fn chosen(case: &Case, all: &[Treatment]) -> Vec<Treatment> {
    let name = fixtures::name(&case.original);
    // The linkers make as many cases each, in almost the same order.
    let number = case.number + usize::from(name.starts_with("lld_"));
    let turn = |at: usize| (at + number).is_multiple_of(or_all(3, 1));
    let has_most = |tool: &str| match tool {
        "debugedit" => name.ends_with("_dwarf4"),
        "eu-strip" => name.ends_with("_emit_relocs"),
        _ => false,
    };
    let all = all.iter().enumerate().filter(|(at, (tool, ..))| turn(*at) || has_most(tool));
    all.map(|(_, treatment)| *treatment).collect()
}

/// Fails unless the file loads as before after each tool, and the tool reports nothing that it does not also
/// report for the original.
pub fn assert_survives(case: &Case) {
    let expected = fixtures::load(&case.changed("plain"));
    for (name, tool, command) in chosen(case, &TREATMENTS) {
        note!("{}: {name}", case.original.display());
        if !tools::have(&[tool]) {
            continue;
        }
        let original = case.copy(&format!("{name}-original"));
        let said = treat(name, command, &original);
        let file = case.changed(name);
        let says = treat(name, command, &file);
        assert_eq!(without(&says, &file), without(&said, &original), "{name}");
        assert_eq!(fixtures::load(&file), expected, "{name}");
        let known = tools::lint(&original);
        let new: Vec<_> =
            tools::lint(&file).into_iter().filter(|line| !known.contains(line)).collect();
        assert!(new.is_empty(), "{name}: {new:?}");
        case.assert_kept(&file);
    }
}

/// Fails unless the separate debug information can be split off, without complaints other than the
/// original's, and is recognised.
pub fn assert_debug_splits(case: &Case) {
    let mut complaints = Vec::new();
    for (purpose, file) in [("fat", case.copy("fat")), ("host", case.changed("host"))] {
        let debug = case.path(&format!("{purpose}-debug"));
        let mut objcopy = Command::new("objcopy");
        let said = tools::told(objcopy.arg("--only-keep-debug").arg(&file).arg(&debug));
        assert!(said.ends_with("exit status: 0\n"), "{purpose}: {said}");
        complaints.push(without(&said, &debug));
        let examined = examine(&support::fixtures::content(&debug)).unwrap();
        assert!(matches!(examined, Examined::SeparateDebug), "{purpose}: {examined:?}");
        tools::succeed(Command::new("readelf").arg("-SW").arg(&debug));
    }
    assert_eq!(complaints[1], complaints[0]);
}

/// Cases that cannot be made for every HIP runtime: programs for a fixed address, files without an entry to spare in
/// the dynamic section, and device code that is smaller than the names of dynamic symbols.
fn is_refused(name: &str) -> bool {
    name.ends_with("nopie")
        || matches!(name, "lld_relr" | "lld_relr_pie")
        || name.starts_with("sub_page")
}

fn for_all_cases(test: &str, needed: &[&str], check: fn(&Case)) {
    tools::need(needed);
    let both = |path| [(path, false), (path, true)];
    for (number, (path, any_runtime)) in fixtures::matrix().iter().flat_map(both).enumerate() {
        note!("{}, for any HIP runtime: {any_runtime}", path.display());
        if any_runtime && is_refused(&fixtures::name(path)) {
            let error = examine_for(&fixtures::content(path), true).unwrap_err();
            assert_eq!(error.kind(), Kind::Unsupported, "{error}");
            continue;
        }
        let case = Case::new(test, (number, path), any_runtime);
        check(&case);
        std::fs::remove_dir_all(&case.folder).unwrap();
    }
}

#[test]
fn wrappers_resolve_at_run_time() {
    for_all_cases("load", &["gcc"], assert_loads);
}

#[test]
fn linters_find_nothing_new() {
    for_all_cases("lint", &["eu-elflint", "readelf"], assert_lints);
}

#[test]
fn tools_of_distributions_leave_binaries_loadable() {
    for_all_cases("treat", &["gcc", "eu-elflint"], assert_survives);
}

#[test]
fn debug_information_splits_off() {
    for_all_cases("debug", &["objcopy", "readelf"], assert_debug_splits);
}

#[test]
fn committed_and_assembled_binaries_load_and_survive() {
    tools::need(&["gcc", "eu-elflint", "readelf"]);
    let mut paths = fixtures::committed();
    for (name, flags) in SHAPES {
        paths.push(fixtures::assembled(name, flags));
    }
    for (index, path) in paths.iter().enumerate() {
        note!("{}", path.display());
        let case = Case::new(&format!("small{index}"), (index, path), false);
        assert_loads(&case);
        assert_lints(&case);
        assert_survives(&case);
    }
}

/// Transforms binaries that were treated before.
fn assert_treated_input_transforms(case: &Case) {
    let treatments = ["strip", "objcopy", "llvm-strip", "patchelf"]
        .map(|name| *TREATMENTS.iter().find(|(other, ..)| *other == name).unwrap());
    for (name, tool, command) in chosen(case, &treatments) {
        if !tools::have(&[tool]) {
            continue;
        }
        let original = case.copy(&format!("{name}-first"));
        treat(name, command, &original);
        if name == "patchelf" {
            let other = case.copy("patchelf-other");
            std::fs::write(&other, as_other_patchelf(std::fs::read(&original).unwrap())).unwrap();
            assert_is_transformed(case, "patchelf-other", other);
        }
        assert_is_transformed(case, name, original);
    }
}

fn assert_is_transformed(case: &Case, name: &str, original: PathBuf) {
    let (number, folder) = (case.number, case.folder.join(name));
    let treated = Case { number, changed: Changed::Host(analyse(&original)), folder, original };
    assert_loads(&treated);
    assert_lints(&treated);
}

/// Replaces the filler that Debian 12's patchelf writes in place of sections with that of Debian 13's.
fn as_other_patchelf(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(16).position(|run| run == [b'X'; 16]) {
        let start = from + at;
        let len = bytes[start..].iter().take_while(|byte| **byte == b'X').count();
        bytes[start..start + len].fill(b'Z');
        from = start + len;
    }
    let vacated = bytes.windows(16).any(|run| run == [b'Z'; 16]);
    assert!(vacated, "patchelf left nothing where sections were");
    bytes
}

#[test]
fn treated_binaries_are_transformed() {
    let needed = ["gcc", "eu-elflint", "readelf"];
    for_all_cases("treated", &needed, assert_treated_input_transforms);
}
