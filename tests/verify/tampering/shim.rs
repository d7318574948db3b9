//! A library that registers its wrappers with the shim: `verify --against` allows the changes that make it do so, and
//! no others.

use std::fs;

use support::shim_library::{SHIM, configuration};
use support::tampered::{Run, Set, section, verify};
use support::tools;

use super::{CONFIGURATION, Change, LIBRARY, Shard, fixture, rockpack, tag};

const REGISTER: &str = "rocm_kpack_register_fat_binary";
const UNREGISTER: &str = "rocm_kpack_unregister_fat_binary";

/// A set of one library, and the artifacts that it is built of.
fn built() -> (Shard, Set) {
    tools::need(&["gcc", "dpkg-deb"]);
    let shard = Shard::new();
    shard.add("lib/libx.so.1", &fixture("bfd_shared"), 0o755);
    let text = configuration(CONFIGURATION, shard.0.path());
    fs::write(shard.path("configuration.json"), text).unwrap();
    let set = Set::empty();
    shard.build_into("shards", &set.path(""));
    (shard, set.reopen())
}

/// The number of a dynamic symbol, and the offset of its entry.
fn symbol(bytes: &[u8], name: &str) -> (usize, usize) {
    let ((table, size), (strings, _)) = (section(bytes, ".dynsym"), section(bytes, ".dynstr"));
    let is_named = |offset: &usize| {
        let at = u32::from_le_bytes(bytes[*offset..][..4].try_into().unwrap()) as usize;
        bytes[strings + at..].starts_with(format!("{name}\0").as_bytes())
    };
    let offset = (table..table + size).step_by(24).find(is_named).unwrap();
    ((offset - table) / 24, offset)
}

/// The offset of the version index of a dynamic symbol.
fn version(bytes: &[u8], name: &str) -> usize {
    section(bytes, ".gnu.version").0 + 2 * symbol(bytes, name).0
}

/// The offset of the name of the shim in the dynamic strings.
fn name_of_shim(bytes: &[u8]) -> usize {
    let (start, size) = section(bytes, ".dynstr");
    let mut names = bytes[start..start + size].windows(SHIM.len());
    start + names.position(|name| name == SHIM.as_bytes()).unwrap()
}

#[test]
fn v013_changes_of_a_library_that_registers_with_the_shim() {
    let (shard, set) = built();
    let artifacts = shard.path("shards");
    let against = ["--against", artifacts.to_str().unwrap()];
    set.fires(&against, &[]);
    let built = set.file_of(&set.host(), LIBRARY);
    let changes: [(&str, &str, Change); 12] = [
        ("another renamed function", ".dynsym", |bytes| {
            let (from, to) = (symbol(bytes, REGISTER).1, symbol(bytes, "hipLaunchKernel").1);
            bytes.copy_within(from..from + 4, to);
        }),
        ("functions in the place of each other", ".dynsym", |bytes| {
            let (one, other) = (symbol(bytes, REGISTER).1, symbol(bytes, UNREGISTER).1);
            (0..4).for_each(|at| bytes.swap(one + at, other + at));
        }),
        ("a weak function", ".dynsym", |bytes| {
            let (_, at) = symbol(bytes, REGISTER);
            bytes[at + 4] ^= 0x30;
        }),
        ("the version of a function", ".gnu.version", |bytes| {
            let at = version(bytes, REGISTER);
            bytes[at] = 2;
        }),
        ("the version of another function", ".gnu.version", |bytes| {
            let at = version(bytes, "__cxa_atexit");
            bytes[at] = 1;
        }),
        ("the shim twice", ".dynamic", |bytes| {
            let (strings, _) = section(bytes, ".dynstr");
            let (at, name) = (tag(bytes, 0), name_of_shim(bytes) - strings);
            bytes[at] = 1;
            bytes[at + 8..at + 16].copy_from_slice(&(name as u64).to_le_bytes());
        }),
        ("another count of relocations", ".dynamic", |bytes| {
            let (start, size) = section(bytes, ".dynamic");
            let mut entries = (start..start + size).step_by(16);
            let at = entries.find(|at| bytes[*at..][..8] == 0x6fff_fff9_u64.to_le_bytes()).unwrap();
            bytes[at + 8] ^= 1;
        }),
        ("another size of the strings", ".dynamic", |bytes| {
            let at = tag(bytes, 10);
            bytes[at + 8] ^= 1;
        }),
        ("another library", ".dynamic", |bytes| {
            let at = name_of_shim(bytes);
            bytes[at + SHIM.len() - 1] = b'1';
        }),
        ("a string after the others", ".dynstr", |bytes| {
            let (start, size) = section(bytes, ".dynstr");
            bytes[start + size - 1] = b'x';
        }),
        ("another string", ".dynstr", |bytes| {
            let (start, _) = section(bytes, ".dynstr");
            bytes[start + 1] ^= 1;
        }),
        ("bytes where the strings were", "bytes of no section", |bytes| {
            let (start, size) = section(bytes, ".dynsym");
            bytes[start + size + 16] = 7;
        }),
    ];
    for (name, part, change) in changes {
        let mut bytes = built.clone();
        change(&mut bytes);
        set.edit(&set.host(), |root| fs::write(root.join(LIBRARY), bytes).unwrap());
        let run = set.verify(&against);
        assert!(run.codes().contains(&"V013".to_owned()), "{name}: {}", run.text);
        assert!(run.text.contains(part), "{name}: {}", run.text);
    }
}

#[test]
fn v101_a_file_that_only_has_the_name_of_the_shim() {
    let (shard, set) = built();
    let file = format!("opt/rocm-7.1/lib/x/{SHIM}");
    set.edit(&set.host(), |root| {
        fs::create_dir_all(root.join("opt/rocm-7.1/lib/x")).unwrap();
        fs::write(root.join(&file), "no library\n").unwrap();
    });
    let run = set.verify(&["--against", shard.path("shards").to_str().unwrap()]);
    assert!(run.codes().contains(&"V101".to_owned()), "{}", run.text);
    assert!(run.text.contains(&file), "{}", run.text);
}

#[test]
fn v063_a_path_to_the_shim_that_leaves_the_packages() {
    let (shard, set) = built();
    let mut bytes = set.file_of(&set.host(), LIBRARY);
    let (at, path) = (name_of_shim(&bytes), format!("$ORIGIN/../../../tmp/{SHIM}"));
    bytes[at..at + path.len()].copy_from_slice(path.as_bytes());
    set.edit(&set.host(), |root| fs::write(root.join(LIBRARY), bytes).unwrap());
    let run = set.verify(&["--against", shard.path("shards").to_str().unwrap()]);
    assert!(run.codes().contains(&"V063".to_owned()), "{}", run.text);
}

/// Fails unless V063 alone fails, and names the library that needs the shim.
#[track_caller]
fn lacks_shim(run: &Run, library: &str) {
    run.fired(&["V063"]);
    assert!(
        run.text.contains(&format!("{library} needs {SHIM}, which is missing")),
        "{}",
        run.text
    );
}

#[test]
fn v063_a_set_without_the_shim() {
    let (_, set) = built();
    set.remove_receipt();
    set.fires(&[], &[]);
    let package = set.named("rocm-kpack-shim");
    let file = format!("opt/rocm-7.1/lib/{SHIM}");
    // Another file of that name is not the shim.
    set.edit(&package, |root| fs::write(root.join(&file), "no library\n").unwrap());
    lacks_shim(&set.verify(&[]), LIBRARY);
    fs::remove_file(set.path(&package)).unwrap();
    lacks_shim(&set.verify(&[]), LIBRARY);
    set.fires(&["--partial"], &[]);
}

#[test]
fn v063_an_installed_prefix_without_the_shim() {
    let (_, set) = built();
    let root = set.path("root");
    for package in set.packages() {
        tools::unpack(package.as_ref(), &root);
    }
    let prefix = root.join("opt/rocm-7.1");
    let prefix = [prefix.to_str().unwrap()];
    verify(&prefix, &["--installed"]).fired(&[]);
    let shim = root.join("opt/rocm-7.1/lib").join(SHIM);
    // Under another name, or with another soname, it is not what loaders look for.
    let mut bytes = fs::read(&shim).unwrap();
    fs::rename(&shim, shim.with_extension("1")).unwrap();
    lacks_shim(&verify(&prefix, &["--installed"]), "/lib/libx.so.1");
    verify(&prefix, &["--installed", "--partial"]).fired(&[]);
    let end_of_soname = name_of_shim(&bytes) + SHIM.len() - 1;
    bytes[end_of_soname] = b'1';
    fs::write(&shim, bytes).unwrap();
    lacks_shim(&verify(&prefix, &["--installed"]), "/lib/libx.so.1");
}

/// Their receipts say that packages are missing.
#[test]
fn sets_of_some_components_and_parts_need_not_have_the_shim() {
    let (shard, _) = built();
    for (options, codes) in [
        (["--partition", "1/2"], &["V080"][..]),
        (["--partition", "2/2"], &["V080"]),
        (["--only", "blas"], &[]),
    ] {
        let out = shard.path(&options[1].replace('/', "-of-"));
        let mut build = rockpack();
        build.arg("build").arg("--artifacts").arg(shard.path("shards"));
        build.args(["--version", "7.1.0", "--format", "deb", "--config"]);
        build.arg(shard.path("configuration.json")).args(options).arg("--out").arg(&out);
        tools::run(&mut build);
        verify(&[out.to_str().unwrap()], &[]).fired(codes);
    }
}
