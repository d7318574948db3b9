//! The page of file formats lists the modules of the source whose texts have byte tables. `.ci/book` adds the texts.

use std::fmt::Write;
use std::fs;

use support::documents::same;
use support::program::{repository, rust_files};

use super::WRITER;

const PAGE: &str = "docs/internals/formats.md";

const HEAD: &str = "\
# File formats

Each module of the source that reads or writes a file format opens with its byte table, the source of that
knowledge, and the places where real files differ. `cargo doc --open` shows these texts with all types. The book
that `.ci/book` builds has them on this page.
";

/// The folders with modules of formats, and the files of those among other modules.
const PLACES: [&str; 6] = [
    "crates/kpack/src",
    "crates/core/src",
    "crates/elf/src",
    "crates/archive/src",
    "crates/split/src/aks2.rs",
    "crates/split/src/code_file.rs",
];

/// The text at the top of a module; absent if the module has no table, and so is no format.
fn module_text(source: &str) -> Option<String> {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let text = text.join("\n");
    text.contains("```text\n").then_some(text)
}

/// Markdown without the link brackets that only rustdoc can follow.
fn without_links(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

/// The key of a module in the list: its file, or its folder.
fn place(path: &str) -> &str {
    path.strip_suffix("/mod.rs").or(path.strip_suffix("/src/lib.rs")).unwrap_or(path)
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let root = repository("");
    for file in PLACES.iter().flat_map(|folder| rust_files(&repository(folder))) {
        let source = fs::read_to_string(&file).unwrap();
        let Some(text) = module_text(&source).filter(|_| !file.ends_with("kpack/src/lib.rs"))
        else {
            continue;
        };
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap();
        let text = without_links(&text);
        let (title, _) = text.split_once("\n\n").unwrap();
        let title = title.replace('\n', " ");
        let title = title.trim_end_matches('.');
        write!(page, "\n## {title}\n\nModule `{}`.\n", place(path)).unwrap();
    }
    page
}

#[test]
fn the_page_of_formats_is_that_of_the_modules() {
    let page = page();
    assert!(page.matches("\n## ").count() > 15, "{page}");
    same(PAGE, &page, WRITER);
}
