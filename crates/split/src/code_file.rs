//! Code files of kernel databases as compressed offload bundles.
//!
//! ```text
//! host-x86_64-unknown-linux-gnu-          no bytes
//! hipv4-amdgcn-amd-amdhsa--<target id>    the code object, at a multiple of 4096
//! ```
//!
//! The bundle of these two entries is in a CCOB of version 2, compressed by zstd. The HIP runtime opens such files by
//! itself, and ROCm's own builds write them (rocBLAS since ROCm 7.0, hipBLASLt since 6.4).
//!
//! Facts about readers, from the sources of the HIP runtime (clr, `hip_fatbin.cpp`), of comgr and of LLVM:
//!
//! - The HIP runtime takes the first size of version 1 for that of the file, and reads 32 bits of version 3's.
//! - An entry serves the devices whose target ID it matches; the loader does not check the target of a plain code
//!   object. Entries of generic targets are found since ROCm 7.0.
//! - comgr caches bundles by the hash in the header, so it must be right.
//! - LLVM of spring 2026 reads the magic of CCOB within the stream as the next bundle (llvm-project#182579,
//!   #206745).

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::gfx::Target;
use rockpack_elf::ccob::{self, CcobMethod};
use rockpack_elf::{code_object, offload_bundle};

/// The id of the host's entry, as clang writes it.
const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// Longest code object: version 2 has 32 bits for the length of a bundle, in which it begins at a page.
const MAX_LEN: u64 = u32::MAX as u64 - 4096;

/// The text before the target in the id of a code object's entry.
const HIP: &str = "hipv4-amdgcn-amd-amdhsa--";

/// The target of a file that may be compressed: one code object, not for a generic target, short enough for version 2.
pub fn compressible_target(content: &Content) -> Result<Option<Target>> {
    if !code_object::is_code_object(content)? || content.len() > MAX_LEN {
        return Ok(None);
    }
    let target = code_object::read_header(content)?.target;
    Ok(target.filter(|target| !target.base().is_generic()))
}

/// The compressed bundle with the code object of a file. `None` for files that stay unchanged: a bundle would not be
/// smaller, or readers could mistake it for two bundles.
pub fn compressed(content: &Content) -> Result<Option<Vec<u8>>> {
    let Some(target) = compressible_target(content)? else { return Ok(None) };
    let entries =
        [(HOST.to_owned(), Content::default()), (format!("{HIP}{target}"), content.clone())];
    let bundle = offload_bundle::write(&entries)?;
    let bytes = ccob::write(2, CcobMethod::Zstd, &bundle)?;
    let (magic, stream) = bytes.split_at(ccob::MAGIC.len());
    let is_ambiguous = stream.windows(magic.len()).any(|window| window == magic);
    let is_kept = is_ambiguous || bytes.len() as u64 >= content.len();
    Ok((!is_kept).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_object(flags: u32, rest: &[u8]) -> Content {
        let mut file = vec![0_u8; 64];
        file[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 2]);
        (file[16], file[18]) = (3, 224);
        file[48..52].copy_from_slice(&flags.to_le_bytes());
        file.extend(rest);
        Content::of_bytes(file)
    }

    fn bytes(content: &Content) -> Vec<u8> {
        content.read_vec(0..content.len(), 1 << 20, "code file").unwrap()
    }

    #[test]
    fn a_code_object_is_behind_an_entry_for_the_host() {
        for (flags, target) in
            [(0x41, "gfx1100"), (0x33f, "gfx90a:xnack+"), (0xa3f, "gfx90a:sramecc-:xnack-")]
        {
            let code = code_object(flags, &[0; 4096]);
            let file = Content::of_bytes(compressed(&code).unwrap().unwrap());
            // The reader refuses other sizes and another hash.
            let opened = ccob::open(&file).unwrap();
            assert_eq!((opened.header.version, opened.extent), (2, file.len()));
            let entries = offload_bundle::parse(&opened.content).unwrap().entries;
            let entries = entries.iter().map(|entry| (entry.id.to_string(), bytes(&entry.content)));
            let expected =
                [(HOST.to_owned(), Vec::new()), (format!("{HIP}{target}"), bytes(&code))];
            assert_eq!(entries.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn other_files_stay_as_they_are() {
        let zeros = [0; 4096];
        let [generic, unknown] = [0x0100_0054, 0xfe].map(|flags| code_object(flags, &zeros));
        for file in [generic, unknown, code_object(0x41, b"short"), Content::of_bytes(zeros)] {
            assert_eq!(compressed(&file).unwrap(), None);
        }
    }

    /// Bytes without any pattern are the same in the stream.
    #[test]
    fn no_stream_looks_like_a_second_bundle() {
        let mut state = 1_u32;
        let mut noise = [0; 1024].map(|_: u8| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        });
        let file = |noise: &[u8]| code_object(0x41, &[noise, &[0; 8192]].concat());
        assert!(compressed(&file(&noise)).unwrap().is_some());
        noise[500..504].copy_from_slice(ccob::MAGIC);
        assert!(compressed(&file(&noise)).unwrap().is_none());
    }
}
