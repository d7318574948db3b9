//! The documentation as a book: its table of contents lists every page, every link leads somewhere, every
//! command can be called, and generated pages are those of this program.
//!
//! With `ROCKPACK_BLESS=1` these pages are written instead; look at the difference.

mod commands;
mod formats;
mod links;

use std::fs;
use std::path::PathBuf;

use support::documents::markdown;
use support::program::repository;

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The test that writes the pages, as arguments for cargo.
const WRITER: &str = "--test tree book::";

/// The pages in the table of contents, in its order.
fn listed() -> Vec<PathBuf> {
    let text = fs::read_to_string(repository(SUMMARY)).unwrap();
    let names = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    names.map(|name| PathBuf::from("docs").join(name)).collect()
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let mut listed = listed();
    listed.sort();
    let mut pages = markdown("docs");
    pages.retain(|page| page != &PathBuf::from(SUMMARY));
    assert!(pages.len() > 20, "{pages:?}");
    assert_eq!(listed, pages);
}
