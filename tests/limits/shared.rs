//! ELF files in which many records lead to one thing: it is refused, or read only once.

use std::collections::BTreeSet;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::amdgpu_metadata;
use rockpack_elf::code_object;
use rockpack_elf::{ElfFile, FileHeader, Linking, SearchPath, build_id};
use rockpack_split::host_binary;
use rockpack_verify as verify;
use support::example::rockpack;

use crate::fuzz_smoke::{dense_elf, dense_verify};
use crate::hostile_packages::deb;
use crate::{limited, text};

fn elf_file(bytes: &[u8]) -> ElfFile {
    let content = Content::of_bytes(bytes);
    let header = FileHeader::read(&content).unwrap().unwrap();
    ElfFile::with_header(&content, header).unwrap()
}

fn linking(bytes: &[u8]) -> Result<Linking> {
    Ok(Linking::read(&elf_file(bytes))?.unwrap())
}

fn limit(result: Result<impl Sized>) -> Error {
    let error = result.err().unwrap();
    assert_eq!(error.kind(), Kind::Limit, "{error}");
    error
}

#[test]
fn chains_of_versions_that_many_heads_lead_to_are_refused() {
    for list in [elf::DT_VERNEED, elf::DT_VERDEF] {
        limit(linking(&dense_elf::versions(list)));
    }
}

#[test]
fn one_long_name_of_many_symbols_is_refused() {
    limit(linking(&dense_elf::undefined()));
    limit(code_object::kernel_names(&Content::of_bytes(dense_elf::kernels())));
}

#[test]
fn a_version_that_many_symbols_have_is_kept_once() {
    let linking = linking(&dense_elf::bound_to_one_version()).unwrap();
    let versions = linking.undefined.iter().map(|symbol| symbol.version.as_deref().unwrap());
    let places: BTreeSet<*const u8> = versions.map(str::as_ptr).collect();
    assert_eq!(places.len(), 1);
    assert!(linking.undefined.len() > 1000);
}

#[test]
fn names_and_search_paths_beyond_any_are_refused() {
    limit(linking(&dense_elf::names_of_libraries(elf::DT_NEEDED)));
    // The loader takes the last of several search paths, so no other one is read.
    let paths = dense_elf::names_of_libraries(elf::DT_RUNPATH);
    assert_eq!(linking(&paths).unwrap().runpath.unwrap().len(), 4094);
    limit(SearchPath::read(&elf_file(&paths)));
    assert_eq!(long_search_paths(2).unwrap()[1].text.len(), dense_elf::LONG);
    limit(long_search_paths(3));
}

fn long_search_paths(count: usize) -> Result<Vec<SearchPath>> {
    let file = dense_elf::search_path(count, &"s".repeat(dense_elf::LONG));
    SearchPath::read(&elf_file(&file))
}

/// Verification remembers the names of every library.
#[test]
fn search_paths_of_more_than_a_mebibyte_are_refused_by_verification() {
    verified(dense_elf::search_path_of_a_section(1 << 20)).unwrap();
    limit(verified(dense_elf::search_path_of_a_section((1 << 20) + 1)));
}

#[test]
fn notes_that_many_sections_name_are_searched_a_few_times() {
    let id: String = b"build-id".iter().map(|byte| format!("{byte:02x}")).collect();
    let found = [0, 1, 2]
        .map(|count| build_id(&elf_file(&dense_elf::sections_of_notes(count, 1 << 20))).unwrap());
    assert_eq!(found, [Some(id.clone()), Some(id), None]);
}

#[test]
fn notes_that_many_headers_name_are_read_once() {
    let found = amdgpu_metadata::read(&Content::of_bytes(dense_elf::notes())).unwrap();
    let kernels: usize = found.iter().map(|metadata| metadata.kernels.len()).sum();
    assert_eq!(kernels, dense_elf::NOTED_KERNELS);
}

#[test]
fn of_a_thousand_faults_a_few_are_told() {
    let error = host_binary::examine(&Content::of_bytes(dense_elf::section_names())).unwrap_err();
    assert!((1..16).contains(&error.others().len()), "{}", error.others().len());
    assert!(error.to_string().len() < 16 * 5000);
}

#[test]
fn tables_that_share_bytes_are_refused() {
    let tables = Content::of_bytes(dense_elf::tables_of_symbols());
    let error = host_binary::examine(&tables).unwrap_err();
    assert_eq!(error.kind(), Kind::Malformed, "{error}");
    assert!(error.to_string().contains("shares bytes"), "{error}");
    let content = Content::of_bytes(dense_elf::tables_of_relocations());
    let error = verify::read_file("lib/x.so", &content).unwrap_err();
    assert!(error.message().contains("more bytes together than the file"), "{error}");
    assert!(error.hint_text().is_some());
}

#[test]
fn more_dynamic_sections_than_any_file_has_are_refused() {
    verified(dense_elf::dynamic_sections(1)).unwrap();
    limit(verified(dense_elf::dynamic_sections(2)));
}

#[test]
fn wrappers_that_all_point_to_one_bundle_are_refused() {
    let content = Content::of_bytes(dense_elf::wrappers());
    limit(verify::read_file("lib/x.so", &content));
}

/// Verifies a library.
fn verified(bytes: Vec<u8>) -> Result<()> {
    verify::read_file("lib/x.so", &Content::of_bytes(bytes))
}

/// Relocations of wrappers go by the dynamic symbols, which are read once.
#[test]
fn dynamic_symbols_of_many_relocations_are_read() {
    verified(dense_verify::one_symbol_table(500)).unwrap();
    verified(dense_verify::wrapper_by_symbol()).unwrap();
}

/// The names would take 256 and 128 MiB if all of them were read and kept.
#[test]
fn names_that_are_the_ends_of_others_cost_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    for library in [
        dense_verify::names_of_the_library(1 << 17, 4 << 20),
        dense_verify::names_of_sections(65_000, 4 << 20),
    ] {
        let package = deb(folder.path(), |data| data.file("./opt/lib/x.so", &library));
        let mut verify = rockpack();
        let output = limited(verify.arg("verify").arg(&package), 96).output().unwrap();
        // Verification fails for strangers' packages anyway; running out of memory would give no exit code.
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    }
}

/// The first of two bundles claims the bytes of the second.
#[test]
fn entries_of_a_bundle_do_not_have_what_is_behind_it() {
    let error = verified(dense_verify::bundles(2, 512)).unwrap_err();
    assert!(error.message().contains("the entries of a bundle have more bytes"), "{error}");
    assert!(error.hint_text().is_some());
}
