//! Verification's own readers of host binaries and of the bundles in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rockpack::content::Content;
use rockpack::verify;

fuzz_target!(|bytes: &[u8]| {
    let content = Content::of_bytes(bytes);
    for path in ["lib/x.so", "lib/x.kpm", "lib/rocblas/library/x.dat"] {
        let _ = verify::read_file(path, &content);
    }
});
