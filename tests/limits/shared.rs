//! ELF files in which many records lead to one thing: what they have is refused or read once.

use std::collections::BTreeSet;

use object::elf;
use rockpack::content::Content;
use rockpack::error::{Error, Kind, Result};
use rockpack::formats::elf::{ElfFile, FileHeader, Linking, SearchPath, build_id};
use rockpack::formats::{amdgpu_metadata, code_object};
use rockpack::host_binary;
use rockpack::verify;

use crate::dense_elf;

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
    for tag in [elf::DT_NEEDED, elf::DT_RUNPATH] {
        limit(linking(&dense_elf::names_of_libraries(tag)));
    }
    limit(SearchPath::read(&elf_file(&dense_elf::names_of_libraries(elf::DT_RUNPATH))));
}

#[test]
fn notes_that_many_sections_name_are_searched_a_few_times() {
    let found = |count| build_id(&elf_file(&dense_elf::sections_of_notes(count, 1 << 20))).unwrap();
    let id: String = b"build-id".iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((found(0), found(1)), (Some(id.clone()), Some(id)));
    assert_eq!(found(2), None);
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
}

/// None is passed over: the loader may go by any of them.
#[test]
fn more_dynamic_sections_than_any_file_has_are_refused() {
    let read = |count| {
        let content = Content::of_bytes(dense_elf::dynamic_sections(count));
        verify::read_file("lib/x.so", &content)
    };
    read(4).unwrap();
    limit(read(5));
}

#[test]
fn wrappers_that_all_point_to_one_bundle_are_refused() {
    let content = Content::of_bytes(dense_elf::wrappers());
    limit(verify::read_file("lib/x.so", &content));
}
