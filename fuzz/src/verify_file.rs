//! Verification's own readers of host binaries and of their bundles.

use rockpack_verify as verify;
use rockpack_core::content::Content;

pub fn run(bytes: &[u8]) {
    let content = Content::of_bytes(bytes);
    for path in ["lib/x.so", "lib/x.kpm", "lib/rocblas/library/x.dat"] {
        super::read(verify::read_file(path, &content));
    }
}
