//! The lists of dnf and zypper, as verification reads them: an error, or a tree of limited depth.

use rockpack_verify::Element;

pub fn run(bytes: &[u8]) {
    let Some(root) = super::read(Element::parse(bytes)) else {
        return;
    };
    let depth = depth(&root);
    assert!(depth <= 16, "{depth}");
}

fn depth(element: &Element) -> usize {
    1 + element.children.iter().map(depth).max().unwrap_or(0)
}
