//! The tar archive of a packed artifact: any members give an error, or trees below the listed prefixes whose
//! files are inside of the archive's content.

use std::path::Path;

use rockpack_archive::tar::{Dialect, TarMembers};
use rockpack_split::input::artifact::{ArchiveForm, Packed};
use rockpack_core::content::BlockStore;
use rockpack_core::run::Budget;
use rockpack_core::tree::Node;

pub fn run(bytes: &[u8]) {
    let bytes = &summed(bytes)[..];
    [ArchiveForm::Artifact, ArchiveForm::Tree].into_iter().for_each(|form| read(bytes, form));
}

fn read(bytes: &[u8], form: ArchiveForm) {
    let store = BlockStore::create(&std::env::temp_dir(), &Budget::unlimited()).unwrap();
    let mut members = TarMembers::new(bytes, Dialect::Strict);
    let packed = match Packed::read(&mut members, form, Path::new("a.tar.zst"), &store) {
        Ok(packed) => packed,
        Err(error) => return super::refuse_bug(&error),
    };
    let prefixes = match &packed.manifest {
        Some(manifest) => manifest.prefixes.iter().map(|prefix| prefix.as_str()).collect(),
        None => vec![""],
    };
    for prefix in prefixes {
        let tree = match packed.tree(prefix) {
            Ok(tree) => tree,
            Err(error) => {
                super::refuse_bug(&error);
                continue;
            }
        };
        for (path, node) in tree.iter().flatten() {
            if let Some(parent) = path.parent() {
                let above = tree.as_ref().unwrap().get(&parent);
                assert!(matches!(above, Some(Node::Directory { .. })), "{path}");
            }
            if let Node::File { data, .. } = node {
                assert!(data.len() <= bytes.len() as u64);
                data.sha256().expect("is read back");
            }
        }
    }
}

/// Sets a right checksum in everything that looks like a header: without it nothing behind is reached.
fn summed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for block in bytes.chunks_exact_mut(512).filter(|block| block[257..].starts_with(b"ustar")) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    bytes
}
