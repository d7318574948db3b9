//! README fits on one page.

use std::fs;

use support::program::repository;

/// The most lines and words of README.
const MOST: [usize; 2] = [200, 1500];

#[test]
fn the_readme_is_one_page() {
    let text = fs::read_to_string(repository("README.md")).unwrap();
    let size = [text.lines().count(), text.split_whitespace().count()];
    assert!(size[0] <= MOST[0] && size[1] <= MOST[1], "{size:?} of {MOST:?}");
}
