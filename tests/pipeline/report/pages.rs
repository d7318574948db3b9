//! The pages themselves: HTML as Python's parser reads it, and Markdown with its tables.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::example::{Set, rockpack};
use support::{python, tools, trees};

use super::{json, markdown, report};

/// Reads an HTML page. Prints its faults, and the text of each item of its lists, table cell and `title`.
const READER: &str = r"
import json, sys
from html.parser import HTMLParser

VOID = {'br', 'hr', 'img', 'input', 'link', 'meta'}
ACTIVE = {'base', 'embed', 'form', 'iframe', 'object', 'script'}
ADDRESSES = {'action', 'background', 'data', 'formaction', 'href', 'poster', 'src', 'srcset', 'xlink:href'}

class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.faults, self.texts = [], [], [], []
    def fault(self, what):
        self.faults.append(f'{what} at {self.getpos()}')
    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ('li', 'td', 'th', 'title'):
            self.texts.append('')
    def handle_startendtag(self, tag, attributes):
        if tag in ACTIVE or len(dict(attributes)) < len(attributes):
            self.fault(self.get_starttag_text())
        for name, value in attributes:
            self.ids += [value] if name == 'id' else []
            if name.startswith('on') or name in ADDRESSES and not value.startswith(('data:', '#')):
                self.fault(self.get_starttag_text())
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.fault(f'</{tag}>')
    def handle_data(self, data):
        if self.open[-1:] == ['style'] and ('@import' in data or 'url(' in data):
            self.fault('a style with an address')
        if {'li', 'td', 'th', 'title'} & set(self.open):
            self.texts[-1] += data

page = Page()
page.feed(sys.stdin.read())
page.close()
page.faults += page.open + [id for id in page.ids if page.ids.count(id) > 1]
print(json.dumps([page.faults, page.texts]))
";

/// The texts of a page without faults.
fn texts_of(page: &str) -> Vec<String> {
    let read = python::run(READER, &[], page).unwrap();
    let (faults, texts): (Vec<String>, Vec<String>) = serde_json::from_str(&read).unwrap();
    assert!(faults.is_empty(), "{faults:#?}");
    texts
}

/// The HTML page about a set, compared with another one.
fn html(set: &Path, since: Option<&Path>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let since = since.into_iter().flat_map(|since| [Path::new("--since"), since]);
    tools::run(report(set).args(since).arg("--out").arg(&file));
    fs::read_to_string(file).unwrap()
}

/// The rows of the tables of a Markdown text, each with its cells.
fn tables(text: &str) -> Vec<Vec<Vec<String>>> {
    let cells = |line: &str| -> Vec<String> {
        let line = line.replace("\\|", "\u{1}");
        let inner = line.trim().strip_prefix('|').unwrap().strip_suffix('|').unwrap().to_owned();
        inner.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let lines: Vec<&str> = text.lines().collect();
    let blocks = lines.chunk_by(|one, other| one.starts_with('|') == other.starts_with('|'));
    let blocks = blocks.filter(|lines| lines[0].starts_with('|'));
    blocks.map(|lines| lines.iter().map(|line| cells(line)).collect()).collect()
}

#[test]
fn pages_are_well_formed_and_need_no_other_file() {
    let set = Set::build();
    let debs = Set::with(&["--format", "deb", "--only", "blas_run", "--release", "2"]);
    for (set, since) in [(&set, None), (&debs, Some(&set)), (&set, Some(&debs))] {
        let page = html(&set.out(), since.map(Set::out).as_deref());
        let texts = texts_of(&page);
        assert!(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"), "{page:.80}");
        let version = json(&mut report(&set.out()))["version"].as_str().unwrap().to_owned();
        assert!(texts.contains(&format!("Packages {version}")), "{texts:?}");
        // In the table of GPUs and in that of libraries.
        assert!(texts.iter().any(|text| text.starts_with("gfx1200 gfx1201Radeon ")), "{texts:?}");
        assert!(texts.contains(&"gfx1200 …".to_owned()), "{texts:?}");
    }
}

#[test]
fn every_finding_is_on_the_page() {
    let set = Set::build();
    let texts = texts_of(&html(&set.out(), None));
    let found = json(&mut report(&set.out()));
    for own in found["findings"].as_array().unwrap() {
        for text in own["texts"].as_array().unwrap() {
            let plain = crate::text(text).replace('`', "");
            assert!(texts.contains(&plain), "no `{plain}` in {texts:#?}");
        }
    }
}

#[test]
fn rows_of_a_table_have_the_same_number_of_cells() {
    let set = Set::build();
    let debs = Set::with(&["--format", "deb", "--only", "blas_run", "--release", "2"]);
    let since = tools::succeed(report(&set.out()).arg("--since").arg(debs.out()));
    for (text, columns) in [
        (markdown(&set.out()), [6, 5, 6, 5].to_vec()),
        (markdown(&debs.out()), [6, 5].to_vec()),
        (since, [8, 5, 8, 5].to_vec()),
    ] {
        let tables = tables(&text);
        assert!(tables.iter().map(|rows| rows[0].len()).eq(columns), "{tables:#?}");
        for rows in &tables {
            assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:#?}");
            assert!(
                rows[1].iter().all(|cell| cell.trim_end_matches(':').trim_matches('-').is_empty())
            );
            assert!(rows.len() > 3, "{rows:#?}");
        }
        // A table ends where a text begins.
        assert!(!text.contains("\n\n\n\n") && !text.contains("undefined"), "{text}");
    }
}

/// The set of a tree with a dangling link of this name.
fn set_with_link(folder: &Path, name: &str) -> PathBuf {
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("share")).unwrap();
    fs::write(tree.join("share/text"), "text\n").unwrap();
    symlink("nowhere", tree.join("share").join(name)).unwrap();
    let out = folder.join("out");
    let mut build = rockpack();
    build.arg("build").arg(trees::named("mine", &tree)).arg("--out").arg(&out);
    tools::run(build.args(["--version", "7.1.0", "--format", "deb"]));
    out
}

#[test]
fn paths_in_findings_are_texts() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<b>&amp;|<li class=x>\"'\\.so";
    let out = set_with_link(folder.path(), name);
    let found = json(&mut report(&out));
    let text = crate::text(&found["findings"][0]["texts"][0]);
    assert!(found["findings"][0]["code"] == "R006" && text.contains(name), "{found}");
    let page = html(&out, None);
    assert!(texts_of(&page).contains(&text), "{page}");
    assert!(!page.contains("<b>"), "{page}");
    let shown = markdown(&out);
    let line = shown.lines().find(|line| line.contains(": leads to nowhere")).unwrap();
    let escaped = "mine\\_lib/share/&lt;b>&amp;amp;\\|&lt;li class=x>\"'";
    assert!(line.starts_with(&format!("- {escaped}")), "{line}");
}

/// Texts of a receipt that no build of today writes, and more of them than a page shows at once.
#[test]
fn long_lists_are_cut_in_markdown_and_whole_in_html() {
    let folder = tempfile::tempdir().unwrap();
    let mut receipt = Set::build().receipt();
    let finding = |number: usize| {
        let message = format!("<i>{number}</i>\n| a & b");
        json!({ "code": "R999", "name": "x", "severity": "warning", "subject": "s", "message": message })
    };
    receipt["findings"] = (1..=12).map(finding).collect();
    receipt["left_out"] = (101..=160).map(|number| json!(format!("/opt/x|<u>{number}"))).collect();
    let file = folder.path().join("packages.json");
    fs::write(&file, receipt.to_string()).unwrap();
    let texts = texts_of(&html(&file, None));
    for number in 1..=12 {
        let expected = format!("s: <i>{number}</i>\n| a & b");
        assert!(texts.contains(&expected), "{texts:#?}");
    }
    for number in 101..=160 {
        assert!(texts.contains(&format!("/opt/x|<u>{number}")), "{texts:#?}");
    }
    let shown = markdown(&file);
    assert_eq!(shown.matches("\n- s: &lt;i>").count(), 10, "{shown}");
    assert!(shown.contains("\n- s: &lt;i>1&lt;/i> \\| a &amp; b\n"), "{shown}");
    assert!(shown.contains("\n- and 2 more\n"), "{shown}");
    assert_eq!(shown.matches("\n- /opt/x\\|&lt;u>1").count(), 50, "{shown}");
    assert!(shown.contains("\n- and 10 more\n"), "{shown}");
    let found = json(&mut report(&file));
    assert_eq!(
        (&found["findings"][0]["remedy"], &found["left_out"][59]),
        (&Value::Null, &json!("/opt/x|<u>160"))
    );
}
