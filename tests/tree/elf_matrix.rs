//! The table `elf-matrix.md`, which takes `.ci/elf-matrix` long to make: it has a row for everything that the
//! script tries, and no row failed. `tests/transform/tools.rs` checks that it names every fixture.

use support::program::repository;

/// Sources of real libraries, with their number, and whether they have device code.
const REAL: [(&str, usize, bool); 8] = [
    ("Debian's librocrand1", 1, true),
    ("Debian's librocblas0", 1, true),
    ("Debian's librocfft0", 1, true),
    ("Debian's librocalution0", 1, false),
    ("Debian's librccl1", 1, true),
    ("onnxruntime-rocm", 1, true),
    ("bitsandbytes", 6, true),
    ("cupy-rocm-5-0", 3, true),
];
const SYSTEMS: [&str; 2] = ["debian-12", "debian-13"];

fn document() -> String {
    let path = repository("tests/elf-matrix.md");
    std::fs::read_to_string(path).unwrap()
}

fn section<'a>(text: &'a str, title: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n## {title}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

/// The cells of a table without its head, by row.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let lines = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Both numbers of `12 of 13`.
fn counts(text: &str) -> (usize, usize) {
    let (part, whole) = text.split_once(" of ").unwrap();
    (part.parse().unwrap(), whole.parse().unwrap())
}

/// The number of tools that treat every file.
fn tools(text: &str) -> usize {
    let (head, _) = text.split_once("\n## ").unwrap();
    head.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |")).count()
}

/// The number of `ok` cells in a grid's row. A cell covers the builds of both systems, and names them if they
/// differ.
fn ok_cells(row: &[&str]) -> usize {
    let one =
        |cell: &&str| if *cell == "ok" { SYSTEMS.len() } else { cell.matches("ok (").count() };
    row[1..].iter().map(one).sum()
}

fn grids(text: &str) -> Vec<Vec<&str>> {
    SYSTEMS.iter().flat_map(|system| rows(section(text, &format!("Tools of {system}")))).collect()
}

#[test]
fn no_tool_makes_a_fixture_worse() {
    let text = document();
    let mut totals = rows(section(&text, "Totals"));
    let all = totals.pop().unwrap();
    let pairs: Vec<_> = totals.iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(pairs, SYSTEMS.map(|tools| SYSTEMS.map(|built| (tools, built))).concat());
    for row in &totals {
        let [fixtures, cells, ok, original, fail] =
            [2, 3, 4, 5, 6].map(|column| number(row[column]));
        assert_eq!(cells, fixtures * tools(&text), "{row:?}");
        assert_eq!((ok + original, fail), (cells, 0), "{row:?}");
    }
    for column in 3..7 {
        let sum: usize = totals.iter().map(|row| number(row[column])).sum();
        assert_eq!(number(all[column]), sum, "{all:?}");
    }
    let grids = grids(&text);
    assert_eq!(grids.iter().map(|row| ok_cells(row)).sum::<usize>(), number(all[4]));
    for row in &grids {
        assert_eq!(row.len(), 1 + tools(&text), "{row:?}");
        assert!(!row.iter().any(|cell| cell.contains("fails")), "{row:?}");
    }
}

fn number(text: &str) -> usize {
    text.parse().unwrap()
}

/// Any other result as bad as the original's deserves a look.
#[test]
fn only_a_run_path_that_is_not_there_is_refused() {
    let text = document();
    let reasons = section(&text, "What is not ok, and why");
    let lines: Vec<_> = reasons.lines().filter(|line| line.starts_with("- ")).collect();
    let totals = rows(section(&text, "Totals"));
    // A line covers a fixture as built by both systems.
    assert_eq!((lines.len() * SYSTEMS.len()).to_string(), totals.last().unwrap()[5]);
    for line in lines {
        assert!(line.starts_with("- as original, `chrpath` of "), "{line}");
        assert!(line.ends_with(" no rpath or runpath tag found. status 2"), "{line}");
    }
}

#[test]
fn every_program_starts_under_old_kernels() {
    let text = document();
    let words: Vec<_> = section(&text, "Old kernels").split_whitespace().collect();
    let told = words.join(" ");
    let mut passed: Vec<_> = told.split(" programs pass.").collect();
    let controls = passed.pop().unwrap();
    let grids = grids(&text);
    let programs =
        grids.iter().filter(|row| row[0].ends_with("pie`")).map(|row| ok_cells(row)).sum();
    assert!(programs > 1000, "{programs}");
    assert_eq!(passed.len(), 2, "{told}");
    for told in passed {
        let (_, told) = told.rsplit_once(": ").unwrap();
        assert_eq!(counts(told), (programs, programs));
    }
    let (_, controls) = controls.split_once("The check can fail: ").unwrap();
    let (count, what) = controls.split_once(' ').unwrap();
    assert!(count.parse::<usize>().unwrap() > 0, "{controls}");
    assert!(what.ends_with("and none of them runs there."), "{controls}");
}

#[test]
fn real_libraries_fare_as_their_originals_do() {
    let text = document();
    let rows = rows(section(&text, "Real libraries"));
    let origins: Vec<_> = rows.iter().map(|row| row[0]).collect();
    let fetched = REAL.iter().flat_map(|(origin, count, fat)| vec![(*origin, *fat); *count]);
    assert_eq!(origins, fetched.clone().map(|(origin, _)| origin).collect::<Vec<_>>());
    for (row, (_, fat)) in rows.iter().zip(fetched) {
        let [before, after] =
            [3, 4].map(|column| row[column].replace(',', "").parse::<u64>().unwrap());
        let (registered, wrappers) = counts(row[5]);
        assert_eq!((registered, wrappers > 0, after < before), (wrappers, fat, fat), "{row:?}");
        // With the tools of Debian 12 and of Debian 13.
        for cell in [row[6], row[7]] {
            if fat {
                assert_treated(cell, tools(&text));
            } else {
                assert_eq!((cell, after), ("no device code: every byte is kept", before));
            }
        }
    }
}

/// Checks a cell such as `12 of 13; chrpath as original`.
fn assert_treated(cell: &str, tools: usize) {
    let (ok, others) = cell.split_once("; ").unwrap_or((cell, ""));
    let others: Vec<_> = others.split(", ").filter(|other| !other.is_empty()).collect();
    assert!(others.iter().all(|other| *other == "chrpath as original"), "{cell}");
    let (ok, all) = counts(ok);
    assert_eq!((ok + others.len(), all), (tools, tools), "{cell}");
}
