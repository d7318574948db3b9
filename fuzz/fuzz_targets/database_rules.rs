//! Rules of kernel databases, and a path behind the first zero byte that they are asked about.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rockpack::database::Rules;
use rockpack::tree::TreePath;

fuzz_target!(|text: &str| {
    let (text, path) = text.split_once('\0').unwrap_or((text, "lib/rocblas/library/x_gfx906.co"));
    let (Ok(rules), Ok(path)) = (Rules::parse(text), TreePath::new(path)) else {
        return;
    };
    if let Some(claim) = rules.claim(&path) {
        assert!(claim.directory.is_sorted());
        claim.rule.is_standalone(path.name());
    }
});
