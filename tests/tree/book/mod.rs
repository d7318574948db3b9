//! The documentation as a book: its table of contents lists every page, every link leads somewhere, every
//! command can be called, and generated pages are those of this program.
//!
//! With `ROCKPACK_BLESS=1` these pages are written instead; look at the difference.

mod commands;
mod formats;
mod links;
mod readme;

use std::fs;
use std::os::unix::fs::PermissionsExt;
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

/// Workflows of hosted CI call scripts of the repository, which must exist and be executable.
#[test]
fn workflows_call_scripts_that_are_there() {
    let mut count = 0;
    for workflow in fs::read_dir(repository(".github/workflows")).unwrap() {
        let text = fs::read_to_string(workflow.unwrap().path()).unwrap();
        let scripts = text.split_whitespace().filter(|word| word.starts_with(".ci/"));
        for script in scripts {
            let mode = fs::metadata(repository(script)).unwrap().permissions().mode();
            assert!(mode & 0o111 != 0, "{script}");
            count += 1;
        }
    }
    assert!(count >= 2, "{count}");
}

/// A page begins with its title, which the table of contents also shows.
#[test]
fn titles_are_those_of_the_table_of_contents() {
    let text = fs::read_to_string(repository(SUMMARY)).unwrap();
    for entry in text.lines().filter_map(|line| line.split_once("](")) {
        let title = entry.0.trim_start_matches([' ', '-', '[']);
        let page = entry.1.trim_end_matches(')');
        let text = fs::read_to_string(repository("docs").join(page)).unwrap();
        let first = text.lines().next().unwrap();
        let is_same = first == format!("# {title}") || page == "tutorial.md";
        assert!(is_same, "{page}: {first} is not {title}");
    }
}
