//! Foreign judges of thinned binaries: those of `tools`, and clang-offload-bundler, which reads their bundles.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
use support::program::rockpack;
use support::{fixtures, sha256, tools};

use crate::tools::{
    Case, Changed, assert_debug_splits, assert_lints, assert_survives, code_of, number,
    registrations, rest,
};

/// The target whose code stays. Every case has code for it in each bundle.
const KEPT: &str = "gfx1100";

/// The starts of the ids of device code: of clang's driver, and of its new driver.
const DEVICE: [&str; 2] = ["hipv4-amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa--"];

const BUNDLER: &str = "clang-offload-bundler-19";

/// A case for `original`, which becomes shorter unless it is one of those that [`stays`].
fn case(test: &str, (number, original): (usize, &Path)) -> Case {
    let (original, name) = (original.to_owned(), fixtures::name(original));
    let folder = fixtures::scratch(&format!("{test}-thin-{name}"));
    let out = folder.join("thinned");
    let mut thin = rockpack();
    thin.arg("thin").arg(&original).args(["--target", KEPT, "--out"]).arg(&out);
    tools::run(&mut thin);
    let thinned = out.join(&name);
    let [before, after] = [&original, &thinned].map(|path| fs::metadata(path).unwrap().len());
    assert_eq!(after < before, !stays(&name), "{name}: {before} bytes became {after}");
    Case { number, original, changed: Changed::Thinned(thinned), folder }
}

/// Cases with code for one target alone, or with less than a page for others.
fn stays(name: &str) -> bool {
    ["big", "compressed", "one_unit"].iter().any(|end| name.ends_with(end))
        || name.starts_with("sub_page")
}

/// Libraries with bundles of the bundler, plain and compressed.
fn of_bundler() -> [PathBuf; 2] {
    [fixtures::bundled("plain", &[], &[]), fixtures::bundled("ccob", &["--compress"], &[])]
}

fn for_all_cases(test: &str, needed: &[&str], check: fn(&Case)) {
    tools::need(needed);
    tools::need(&[BUNDLER, "gcc"]);
    let mut all = fixtures::matrix().to_vec();
    all.extend(fixtures::committed());
    all.extend(of_bundler());
    for (number, path) in all.iter().enumerate() {
        note!("{}", path.display());
        let case = case(test, (number, path));
        check(&case);
        fs::remove_dir_all(&case.folder).unwrap();
    }
}

/// What the bundler says about, or takes out of, a bundle in `folder`.
fn bundler(folder: &Path, bundle: &[u8], words: &[&str]) -> String {
    fs::write(folder.join("bundle"), bundle).unwrap();
    let mut bundler = Command::new(BUNDLER);
    bundler.args(["--type=o", "--input=bundle"]).args(words).current_dir(folder);
    tools::succeed(&mut bundler)
}

/// The ids of a bundle.
fn list(folder: &Path, bundle: &[u8]) -> Vec<String> {
    let mut ids: Vec<String> =
        bundler(folder, bundle, &["--list"]).lines().map(str::to_owned).collect();
    ids.sort();
    ids
}

/// The target of an entry by its id; `None` for the host.
fn target(id: &str) -> Option<&str> {
    DEVICE.iter().find_map(|start| id.strip_prefix(start))
}

/// The digest of a bundle's code for [`KEPT`].
fn kept_code(folder: &Path, bundle: &[u8]) -> String {
    let ids = list(folder, bundle);
    let id = ids.iter().find(|id| target(id) == Some(KEPT)).unwrap();
    let targets = format!("--targets={id}");
    bundler(folder, bundle, &["--unbundle", &targets, "--output=code"]);
    sha256(&fs::read(folder.join("code")).unwrap())
}

/// The bundle at an address, up to the end of the device code; a compressed one alone, which nothing may follow.
fn bundle_at((start, code): &(u64, Vec<u8>), address: u64) -> &[u8] {
    let bundle = &code[(address - start) as usize..];
    match bundle.strip_prefix(b"CCOB\x02\0") {
        Some(rest) => &bundle[..u32::from_le_bytes(rest[2..6].try_into().unwrap()) as usize],
        None => bundle,
    }
}

/// The addresses of the symbols of device code, by name.
fn code_symbols(binary: &[u8]) -> BTreeMap<String, u64> {
    let file = ElfFile64::<LittleEndian>::parse(binary).unwrap();
    let section = file.section_by_name(".hip_fatbin").map(|section| section.index());
    let own = file.symbols().chain(file.dynamic_symbols());
    let own = own.filter(|symbol| symbol.section_index() == section);
    own.map(|symbol| (symbol.name().unwrap().to_owned(), symbol.address())).collect()
}

/// Fails unless the program registers the same wrappers, each with a bundle of the same kind that has exactly the
/// code for [`KEPT`], and the symbols of bundles lead to the same ones.
fn assert_bundles(case: &Case) {
    let file = case.changed("load");
    if stays(&fixtures::name(&case.original)) {
        return;
    }
    let outputs = [&case.original, &file].map(|file| fixtures::load(file));
    assert_eq!(rest(&outputs[0]), rest(&outputs[1]));
    let [old, new] = outputs.map(|output| registrations(&output));
    assert!(!old.is_empty() && old.keys().eq(new.keys()), "{old:?} {new:?}");
    let binaries = [&case.original, &file].map(|file| fs::read(file).unwrap());
    let codes = binaries.each_ref().map(|binary| code_of(binary));
    let symbols = binaries.each_ref().map(|binary| code_symbols(binary));
    for (wrapper, before) in &old {
        let after = &new[wrapper];
        for field in ["object", "magic", "version", "reserved", "bundle"] {
            assert_eq!(before[field], after[field], "{wrapper:#x}: {field}");
        }
        let targets = [before, after].map(|fields| number(&fields["target"]));
        let bundles = [0, 1].map(|at| bundle_at(&codes[at], targets[at]));
        let [mut expected, found] = bundles.map(|bundle| list(&case.folder, bundle));
        expected.retain(|id| target(id).is_none_or(|target| target == KEPT));
        assert_eq!(found, expected, "wrapper at {wrapper:#x}");
        let [expected, found] = bundles.map(|bundle| kept_code(&case.folder, bundle));
        assert_eq!(found, expected, "wrapper at {wrapper:#x}");
        for (name, _) in symbols[0].iter().filter(|(_, address)| **address == targets[0]) {
            assert_eq!(symbols[1][name], targets[1], "{name}");
        }
    }
}

#[test]
fn the_loader_and_the_bundler_find_the_kept_code() {
    for_all_cases("load", &[], assert_bundles);
}

#[test]
fn linters_find_nothing_new_in_thinned_binaries() {
    for_all_cases("lint", &["eu-elflint", "readelf"], assert_lints);
}

#[test]
fn tools_of_distributions_leave_thinned_binaries_loadable() {
    for_all_cases("treat", &["eu-elflint"], assert_survives);
}

#[test]
fn debug_information_splits_off_thinned_binaries() {
    for_all_cases("debug", &["objcopy", "readelf"], assert_debug_splits);
}
