//! Documents of the repository, and those generated from the program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::repository;

/// Folders without documents of this project.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];

/// Compares a file of the repository with `text`; if `ROCKPACK_BLESS=1` is set, writes `text` there first.
/// `test` is the test that writes the file: `--test tree book::`.
pub fn same(path: &str, text: &str, test: &str) {
    let file = repository(path);
    if std::env::var("ROCKPACK_BLESS").as_deref() == Ok("1") {
        fs::write(&file, text).unwrap();
    }
    let hint = format!("run `ROCKPACK_BLESS=1 cargo test {test}` and look at the difference");
    assert!(fs::read_to_string(&file).is_ok_and(|old| old == text), "{path} is stale: {hint}");
}

/// Compares the part of a file between two lines with `part`, or replaces it, like [`same`].
pub fn same_part(path: &str, between: [&str; 2], part: &str, test: &str) {
    let text = fs::read_to_string(repository(path)).unwrap();
    let (before, rest) = text.split_once(between[0]).unwrap();
    let (_, after) = rest.split_once(between[1]).unwrap();
    same(path, &format!("{before}{}{part}{}{after}", between[0], between[1]), test);
}

/// The Markdown files below a folder of the repository, by their paths in the repository, in order.
pub fn markdown(folder: &str) -> Vec<PathBuf> {
    let root = repository("");
    let (mut found, mut waiting) = (Vec::new(), vec![root.join(folder)]);
    while let Some(path) = waiting.pop() {
        let name = path.file_name().map_or("", |name| name.to_str().unwrap());
        if path.is_dir() && !path.is_symlink() && !SKIPPED.contains(&name) {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path.strip_prefix(&root).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

/// A code block in Markdown.
#[derive(Debug)]
pub struct CodeBlock {
    /// The language after the backquotes, e.g. `toml`.
    pub language: String,
    /// The lines between the backquotes.
    pub text: String,
}

/// The code blocks of a file of the repository.
pub fn code_blocks(path: &Path) -> Vec<CodeBlock> {
    let text = fs::read_to_string(repository("").join(path)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<CodeBlock> = None;
    for line in text.lines() {
        match (open.take(), line.trim_start().strip_prefix("```")) {
            (Some(block), Some(_)) => blocks.push(block),
            (Some(block), None) => open = Some(block.with(line)),
            (None, Some(language)) => open = Some(CodeBlock::new(language)),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a block of code has no end", path.display());
    blocks
}

impl CodeBlock {
    fn new(language: &str) -> Self {
        Self { language: language.to_owned(), text: String::new() }
    }

    fn with(mut self, line: &str) -> Self {
        self.text += line;
        self.text.push('\n');
        self
    }
}
