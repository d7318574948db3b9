//! The table in README.md, compared with the tests that it names.

use std::fs;

use support::tools::repository;

#[test]
fn every_test_of_the_table_is_there() {
    let table = fs::read_to_string(repository("tests/limits/README.md")).unwrap();
    let mut count = 0;
    for (file, name) in table.lines().filter_map(named) {
        let source = fs::read_to_string(repository(&format!("tests/{file}"))).unwrap();
        assert!(source.contains(&format!("fn {name}()")), "{file} has no test {name}");
        count += 1;
    }
    assert!(count > 20, "{count} rows");
}

/// File and test in the last cell of a row: `` `limits/names.rs` `the_test` ``.
fn named(line: &str) -> Option<(&str, &str)> {
    let cell = line.strip_suffix(" |")?.rsplit("| ").next()?;
    let mut words = cell.split('`').filter(|word| !word.trim().is_empty());
    let (file, name) = (words.next()?, words.next()?);
    file.ends_with(".rs").then_some((file, name))
}
