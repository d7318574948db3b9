//! Rules of kernel databases, and, behind the first zero byte, a path to match.

use rockpack_split::input::database::DatabaseRules;
use rockpack_core::tree::TreePath;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (text, path) = text.split_once('\0').unwrap_or((text, "lib/rocblas/library/x_gfx906.co"));
    let (Some(rules), Some(path)) =
        (super::read(DatabaseRules::parse(text)), super::read(TreePath::new(path)))
    else {
        return;
    };
    if let Some(claim) = rules.claim(&path) {
        assert!(claim.directory.is_sorted());
        claim.rule.is_standalone(path.name());
    }
}
