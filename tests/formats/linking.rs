//! `formats::elf` on a library made by the system's linker.

use std::fs;
use std::process::Command;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::{Dynamic, ElfFile, Linking, with_rpath};
use support::tools;

/// A library that needs another one, made by a C compiler.
fn library() -> Content {
    tools::need(&["cc"]);
    let folder = tempfile::tempdir().unwrap();
    let [source, file] = ["x.c", "libx.so"].map(|name| folder.path().join(name));
    fs::write(&source, "int puts(const char *); int x(void) { return puts(\"\"); }").unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-nostdlib", "-Wl,-soname,libx.so.7", "-Wl,-rpath,$ORIGIN/a:/b"]);
    cc.arg(&source).args(["-Wl,--no-as-needed", "-l:libc.so.6", "-o"]);
    tools::run(cc.arg(&file));
    Content::of_bytes(fs::read(&file).unwrap())
}

fn linking(content: &Content) -> Result<Option<Linking>> {
    ElfFile::read(content, elf::EM_X86_64)?.map_or(Ok(None), |file| Linking::read(&file))
}

#[test]
fn what_the_linker_wrote_is_found() {
    let found = linking(&library()).unwrap().unwrap();
    assert_eq!(found.soname.as_deref(), Some("libx.so.7"));
    assert_eq!(found.needed, ["libc.so.6"]);
    assert_eq!(found.runpath.as_deref(), Some("$ORIGIN/a:/b"));
    let puts = found.undefined.iter().find(|symbol| symbol.name == "puts").unwrap();
    let version = puts.version.as_deref().unwrap();
    let needed = &found.versions.needed;
    assert_eq!(puts.library.as_deref(), Some("libc.so.6"));
    assert!(version.starts_with("GLIBC_") && needed.len() == 1, "{needed:?}");
    assert!(needed[0].versions.iter().any(|needed| needed.name == version), "{needed:?}");
    assert!(found.is_shared_object && found.interpreter.is_none());
}

/// The loader keeps only the last value of each tag, except `DT_NEEDED`.
#[test]
fn of_entries_of_one_tag_the_last_counts() {
    let content = library();
    let file = ElfFile::read(&content, elf::EM_X86_64).unwrap().unwrap();
    let dynamic = Dynamic::read(&file).unwrap().unwrap();
    let needed = dynamic.value(elf::DT_NEEDED).unwrap();
    let mut bytes = content.read_vec(0..content.len(), u64::MAX, "file").unwrap();
    // GNU ld leaves room for more entries.
    let end = usize::try_from(dynamic.entries.last().unwrap().offset).unwrap() + 16;
    for (at, tag) in [(end, elf::DT_SONAME), (end + 16, elf::DT_RUNPATH)] {
        let entry = [tag.0.to_le_bytes(), needed.to_le_bytes()].concat();
        assert_eq!(bytes[at..at + 16], [0; 16], "no room for more entries");
        bytes[at..at + 16].copy_from_slice(&entry);
    }
    let found = linking(&Content::of_bytes(bytes)).unwrap().unwrap();
    assert_eq!(found.soname.as_deref(), Some("libc.so.6"));
    assert_eq!(found.runpath.as_deref(), Some("libc.so.6"));
}

#[test]
fn a_library_cut_anywhere_is_an_error_or_less() {
    let content = library();
    let whole = linking(&content).unwrap().unwrap();
    for end in 0..content.len() {
        let cut = content.slice(0..end).unwrap();
        if let Ok(Some(found)) = linking(&cut) {
            let told = (&found.needed, &found.versions);
            assert_eq!(told, (&whole.needed, &whole.versions), "{end}");
        }
    }
}

/// The program header of the dynamic section in a debug file leads to other bytes, or to none.
#[test]
fn a_debug_file_has_no_runpath() {
    tools::need(&["eu-strip", "objcopy"]);
    let folder = tempfile::tempdir().unwrap();
    let [library_file, one, other] =
        ["libx.so", "one.debug", "other.debug"].map(|name| folder.path().join(name));
    fs::write(&library_file, all(&library())).unwrap();
    tools::run(Command::new("objcopy").arg("--only-keep-debug").args([&library_file, &one]));
    tools::run(Command::new("eu-strip").arg("-f").args([&other, &library_file]));
    for file in [one, other] {
        assert!(inherited(&Content::of_bytes(fs::read(file).unwrap())).is_none());
    }
    let changed = inherited(&Content::of_bytes(fs::read(library_file).unwrap())).unwrap();
    assert!(inherited(&changed).is_none());
    let found = linking(&changed).unwrap().unwrap();
    assert_eq!((found.rpath.as_deref(), found.runpath), (Some("$ORIGIN/a:/b"), None));
}

fn inherited(content: &Content) -> Option<Content> {
    with_rpath(&ElfFile::read(content, elf::EM_X86_64).unwrap().unwrap()).unwrap()
}

fn all(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), u64::MAX, "file").unwrap()
}
