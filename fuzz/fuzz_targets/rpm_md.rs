//! The lists of dnf and zypper, as verification reads them: whatever is a tree stays one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rockpack::verify::Element;

fuzz_target!(|bytes: &[u8]| {
    let Ok(root) = Element::parse(bytes) else {
        return;
    };
    let depth = depth(&root);
    assert!(depth <= 16, "{depth}");
});

fn depth(element: &Element) -> usize {
    1 + element.children.iter().map(depth).max().unwrap_or(0)
}
