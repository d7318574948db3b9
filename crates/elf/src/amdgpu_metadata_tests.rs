use std::path::Path;

use super::*;

const DATABASE: &str = "examples/shards/gfx110X-build/blas_lib_gfx110X-dgpu/math-libs/BLAS/\
                        rocBLAS/stage/lib/rocblas/library";

fn code_object() -> Content {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DATABASE);
    Content::of_bytes(std::fs::read(folder.join("TensileLibrary_gfx1100.co")).unwrap())
}

/// The expected values are those of `llvm-readelf --notes`; tests/pipeline/inspect/kernels.rs compares with
/// the tool itself.
#[test]
fn the_metadata_of_a_kernel() {
    let found = read(&code_object()).unwrap();
    let [metadata] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(metadata.version, [1, 2]);
    assert_eq!(metadata.target.as_deref(), Some("amdgcn-amd-amdhsa--gfx1100"));
    let [kernel] = metadata.kernels.as_slice() else { panic!("{metadata:?}") };
    assert_eq!(kernel.symbol, format!("{}.kd", kernel.name));
    assert_eq!((kernel.kernarg_segment_size, kernel.sgpr_count, kernel.vgpr_count), (24, 6, 2));
    assert_eq!((kernel.wavefront_size, kernel.max_flat_workgroup_size), (32, 1024));
    assert_eq!(kernel.agpr_count, None);
}

#[test]
fn a_code_object_cut_anywhere_is_an_error_or_has_no_notes() {
    let whole = code_object();
    let expected = read(&whole).unwrap();
    for end in 0..whole.len() {
        let cut = read(&whole.slice(0..end).unwrap());
        assert!(cut.is_err(), "cut to {end}: {cut:?}");
    }
    assert_eq!(expected.len(), 1);
}

/// A code object whose note descriptor is `descriptor`.
fn with_descriptor(descriptor: &[u8]) -> Content {
    with_descriptors(&[descriptor])
}

fn with_descriptors(descriptors: &[&[u8]]) -> Content {
    let whole = code_object();
    let at = whole.len();
    let mut note = Vec::new();
    for descriptor in descriptors {
        note.resize(note.len().next_multiple_of(4), 0);
        for word in [7, u32::try_from(descriptor.len()).unwrap(), METADATA] {
            note.extend(word.to_le_bytes());
        }
        note.extend(OWNER);
        note.push(0);
        note.extend(*descriptor);
    }
    let size = note.len() as u64;
    let file = ElfFile::with_header(&whole, FileHeader::read(&whole).unwrap().unwrap()).unwrap();
    let index = file.program_headers.iter().position(|h| h.p_type == elf::PT_NOTE).unwrap();
    let header = 64 + 56 * index as u64;
    let moved = whole
        .patched(header + 8, at.to_le_bytes())
        .unwrap()
        .patched(header + 32, size.to_le_bytes())
        .unwrap();
    Content::concat([&moved, &Content::of_bytes(note)])
}

#[test]
fn invalid_maps_are_refused() {
    let version = ("amdhsa.version", rmpv::Value::Array(vec![1.into(), 0.into()]));
    let good = encoded_map(&[version.clone(), ("unknown", 7.into())]);
    let metadata = read(&with_descriptor(&good)).unwrap();
    assert_eq!((metadata.len(), metadata[0].kernels.len(), &metadata[0].target), (1, 0, &None));
    let kernels = ("amdhsa.kernels", rmpv::Value::Array(vec![rmpv::Value::Map(vec![])]));
    let behind = [good.clone(), vec![0xc0]].concat();
    for bad in [
        encoded_map(&[]),
        encoded_map(&[version.clone(), kernels]),
        encoded_map(&[version.clone(), version.clone()]),
        encoded_map(&[("amdhsa.version", "1.0".into())]),
        behind,
        vec![0x91; 1 << 20],
        vec![],
    ] {
        let error = read(&with_descriptor(&bad)).unwrap_err();
        assert_eq!(error.place().structure.as_deref(), Some(STRUCTURE), "{error}");
    }
}

fn encoded_map(pairs: &[(&str, rmpv::Value)]) -> Vec<u8> {
    let pairs = pairs.iter().map(|(key, value)| ((*key).into(), value.clone())).collect();
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &rmpv::Value::Map(pairs)).unwrap();
    bytes
}

#[test]
fn a_note_that_leaves_its_segment_is_refused() {
    let whole = with_descriptor(&[0x80]);
    let note = whole.len() - 12 - 8 - 1;
    let longer = whole.patched(note + 4, u32::MAX.to_le_bytes()).unwrap();
    assert_eq!(read(&longer).unwrap_err().kind(), Kind::Truncated);
    let renamed = whole.patched(note + 12, *b"amdgpu").unwrap();
    assert_eq!(read(&renamed).unwrap(), []);
}

/// Kernel databases are linked from many objects, each with a note.
#[test]
fn the_notes_of_all_linked_objects_are_read() {
    let own = code_object();
    let notes = ElfFile::with_header(&own, FileHeader::read(&own).unwrap().unwrap()).unwrap();
    let segment = notes.segment(elf::PT_NOTE).unwrap();
    let start = segment.p_offset + 20;
    let end = segment.p_offset + segment.p_filesz;
    let size = u32::from_le_bytes(own.read_array(segment.p_offset + 4).unwrap());
    let descriptor = own.read_vec(start..end, 4096, "descriptor").unwrap();
    let descriptor = &descriptor[..usize::try_from(size).unwrap()];
    let one = read(&own).unwrap();
    let two = read(&with_descriptors(&[descriptor, descriptor])).unwrap();
    assert_eq!((one.len(), two.len()), (1, 1));
    assert_eq!(two[0].kernels, [one[0].kernels.clone(), one[0].kernels.clone()].concat());
    // {"amdhsa.version": [1]}: another version.
    let other = [b"\x81\xaeamdhsa.version\x91\x01".as_slice()].concat();
    assert_eq!(read(&with_descriptors(&[descriptor, &other])).unwrap().len(), 2);
}

/// A code object with one more note segment, in place of a header that the reader ignores.
fn with_segment(offset: u64, size: u64) -> Content {
    let whole = code_object();
    let file = ElfFile::with_header(&whole, FileHeader::read(&whole).unwrap().unwrap()).unwrap();
    let other = file.program_headers.iter().position(|header| header.is_load()).unwrap();
    let header = 64 + 56 * other as u64;
    let content = whole
        .patched(header, elf::PT_NOTE.0.to_le_bytes())
        .unwrap()
        .patched(header + 8, offset.to_le_bytes())
        .unwrap();
    content.patched(header + 32, size.to_le_bytes()).unwrap()
}

#[test]
fn segments_that_share_notes_are_refused_and_the_same_one_is_read_once() {
    let whole = code_object();
    let file = ElfFile::with_header(&whole, FileHeader::read(&whole).unwrap().unwrap()).unwrap();
    let notes = file.segment(elf::PT_NOTE).unwrap();
    let twice = with_segment(notes.p_offset, notes.p_filesz);
    assert_eq!(read(&twice).unwrap(), read(&whole).unwrap());
    let error = read(&with_segment(notes.p_offset + 4, notes.p_filesz - 4)).unwrap_err();
    assert_eq!(error.kind(), Kind::Malformed, "{error}");
    assert!(error.message().contains("shares notes"), "{error}");
}

#[test]
fn notes_of_more_versions_than_there_are_are_refused() {
    // {"amdhsa.version": [n]}
    let descriptors: Vec<Vec<u8>> =
        (0_u8..=64).map(|n| [b"\x81\xaeamdhsa.version\x91", &[n][..]].concat()).collect();
    let versions: Vec<&[u8]> = descriptors.iter().map(Vec::as_slice).collect();
    assert_eq!(read(&with_descriptors(&versions[..64])).unwrap().len(), 64);
    assert_eq!(read(&with_descriptors(&versions)).unwrap_err().kind(), Kind::Limit);
}
