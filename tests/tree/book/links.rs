//! Links between documents: the file exists, and so does the heading.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use support::documents::markdown;
use support::program::{repository, rust_files};

/// Top-level folders and files whose names documents write in backquotes.
const ROOTS: [&str; 13] = [
    ".ci",
    ".github",
    "benches",
    "config",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "runtime",
    "src",
    "templates",
    "tests",
    "Cargo.toml",
];

/// The lines of a document outside of code.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A text without the parts in backquotes.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The targets of the links and images of a document.
fn links(text: &str) -> Vec<String> {
    let text = without_code(&prose(text));
    let ends = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned());
    ends.collect()
}

/// The anchors of a document's headings, as in GitHub and mdBook.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for title in prose(text).lines().filter(|line| line.starts_with('#')) {
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|count| format!("{anchor}-{count}"));
        let mut names = std::iter::once(anchor.clone()).chain(again);
        found.insert(names.find(|name| !found.contains(name)).unwrap());
    }
    found
}

/// A path without `..`; absent if it leads out of the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => plain.pop().then_some(())?,
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// The fault of a link in a document, if any.
fn fault(document: &Path, link: &str) -> Option<String> {
    if link.starts_with("https://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = document.parent().unwrap();
    let Some(path) = plain(&folder.join(file)) else {
        return Some("leads out of the repository".to_owned());
    };
    let path = if file.is_empty() { document.to_owned() } else { path };
    let target = repository("").join(&path);
    if document.starts_with("docs") && !path.starts_with("docs") {
        // The book contains only its own pages.
        return Some("leads out of the book".to_owned());
    }
    if !target.exists() {
        return Some(format!("there is no {}", path.display()));
    }
    let text = || fs::read_to_string(&target).unwrap();
    (!anchor.is_empty() && !anchors(&text()).contains(anchor))
        .then(|| format!("{} has no heading #{anchor}", path.display()))
}

#[test]
fn every_link_of_every_document_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in markdown("") {
        let text = fs::read_to_string(repository("").join(&document)).unwrap();
        for link in links(&text) {
            count += 1;
            let fault = fault(&document, &link).map(|fault| (document.clone(), link, fault));
            wrong.extend(fault);
        }
    }
    assert!(count > 100, "{count}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn broken_links_are_found() {
    let page = Path::new("docs/guides/install.md");
    for wrong in ["no.md", "pin.md#no", "#no", "../../README.md", "../../../../x.md"] {
        assert!(fault(page, wrong).is_some(), "{wrong}");
    }
    for right in ["pin.md", "#remove", "../pipeline.svg", "https://example.org/x"] {
        assert_eq!(fault(page, right), None);
    }
    let text = "[a](b.md) `[c](d.md)` ![e](f.svg)\n```\n[g](h.md)\n# no\n```\n# One `Two`, 3\n";
    assert_eq!(links(text), ["b.md", "f.svg"]);
    assert_eq!(anchors(text), BTreeSet::from(["one-two-3".to_owned()]));
}

/// Texts in backquotes that look like paths of the repository.
fn paths(text: &str) -> Vec<&str> {
    let named = text.split('`').skip(1).step_by(2).filter_map(|code| code.split(' ').next());
    let is_path = |path: &&str| {
        let first = path.split('/').next().unwrap_or_default();
        ROOTS.contains(&first) && path.contains('/') && !path.contains(['*', '<', '…', '{'])
    };
    named.filter(is_path).map(|path| path.trim_end_matches([':', ','])).collect()
}

#[test]
fn every_path_that_is_named_is_there() {
    let mut wrong = Vec::new();
    let mut documents = markdown("docs");
    documents.extend(["README.md", "CONTRIBUTING.md"].map(PathBuf::from));
    for document in documents {
        let text = prose(&fs::read_to_string(repository("").join(&document)).unwrap());
        let missing = paths(&text).into_iter().filter(|path| {
            // Files that a command makes may be missing.
            !path.contains("target/") && !repository(path).exists() && !is_made(path)
        });
        wrong.extend(missing.map(|path| format!("{}: {path}", document.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Tells whether a path is a placeholder, or is written by commands of the text.
fn is_made(path: &str) -> bool {
    path.contains("COMMAND") || path.starts_with("examples/shards/gfx110X-build/blas_lib")
}

/// Pages that the program's texts and comments name must exist.
#[test]
fn every_page_that_the_source_names_is_there() {
    let mut wrong = Vec::new();
    let files = ["src", "crates", "tests"].map(|folder| rust_files(&repository(folder)));
    for file in files.iter().flatten() {
        if file.ends_with("tests/tree/book/links.rs") {
            continue;
        }
        let text = fs::read_to_string(file).unwrap();
        for (at, _) in text.match_indices("docs/") {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            let end = text[at..].find(|c| !is_name(c)).map_or(text.len(), |length| at + length);
            let name = text[at..end].trim_end_matches('.');
            if name.ends_with(".md") && !repository(name).exists() {
                wrong.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
