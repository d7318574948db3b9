//! The page on the architecture names every room, in the order in which rooms use each other.

use std::fs;

use support::program::repository;

/// The names in the first column of the tables of the page.
fn named() -> Vec<String> {
    let text = fs::read_to_string(repository("docs/architecture.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

/// The folders in `path`, in order.
fn folders(path: &str) -> Vec<String> {
    let entries = fs::read_dir(repository(path)).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<String> = entries
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    folders.sort();
    folders
}

#[test]
fn every_room_and_crate_is_described() {
    let crates = folders("crates").into_iter().map(|name| format!("crates/{name}"));
    let runtime = ["runtime".to_owned()];
    let mut there: Vec<String> = folders("src").into_iter().chain(crates).chain(runtime).collect();
    there.sort();
    let mut named = named();
    named.sort();
    assert_eq!(named, there);
}

#[test]
fn rooms_stand_in_the_order_in_which_they_use_each_other() {
    let rooms = crate::layers::MAY_USE.iter().map(|(room, _)| *room);
    let there = folders("src");
    let ordered: Vec<&str> = rooms.filter(|room| there.iter().any(|name| name == room)).collect();
    let named = named();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let rooms = named.iter().copied().filter(|name| ordered.contains(name));
    assert_eq!(rooms.collect::<Vec<_>>(), ordered);
}
