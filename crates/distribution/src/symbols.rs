//! The symbols and shlibs files of dpkg, and the entries of a table that are made of them.
//!
//! ```text
//! libstdc++.so.6 libstdc++6 #MINVER#       symbols: a library, and its template
//! | libstdc++6 (>> 12), libstdc++6 (<< 13)          further templates, from 1
//! * Build-Depends-Package: libstdc++-12-dev         properties
//!  __cxa_throw@CXXABI_1.3 4.1.1 [1]                 a symbol: smallest version, and its template
//! #MISSING: 4.9# _ZGTt@GLIBCXX_3.4 4.6             a symbol that is gone, or `DEPRECATED`
//! [TYPE:] libz 1 zlib1g (>= 1:1.2)         shlibs: name and version of a library, dependencies
//! ```
//!
//! The table is smaller than the files and gives the same results. dpkg-shlibdeps takes, of a library with a symbols
//! file, the smallest version of all its symbols, and then the highest of those that the binary uses; so symbols
//! with the smallest version say nothing and are left out. Symbols of one version node (GLIBC_2.34) nearly always
//! have one version, which is written once as a node; symbols that differ from their node, and symbols without a
//! node, are listed. Symbols that are gone count for the smallest version alone.
//!
//! Source: deb-src-symbols(5), deb-shlibs(5), and dpkg 1.21 to 1.23.

use std::collections::BTreeMap;

use rockpack_archive::deb::compare_versions;

use crate::table::NO_VERSION;

/// A version and the number of a template.
type VersionTemplate = (String, usize);

#[derive(Debug, Default)]
struct SymbolsLibrary {
    templates: Vec<String>,
    /// Symbol with version node → requirement; `None` for symbols that are gone.
    symbols: BTreeMap<String, Option<VersionTemplate>>,
    /// The smallest version with the first template.
    smallest: Option<String>,
}

/// The entries of the libraries in a symbols file, by soname.
pub(crate) fn symbols_entries(text: &str) -> BTreeMap<String, String> {
    let mut libraries: Vec<(String, SymbolsLibrary)> = Vec::new();
    for line in text.lines() {
        match (line.bytes().next(), libraries.last_mut()) {
            (None, _) | (Some(b'*'), _) => {}
            (Some(b'|'), Some((_, library))) => {
                library.templates.push(template(line.trim_start_matches('|')));
            }
            (Some(b' ' | b'\t'), Some((_, library))) => library.add(line, false),
            (Some(b'#'), Some((_, library))) => {
                let gone = ["#MISSING: ", "#DEPRECATED: "];
                let gone = gone.iter().find_map(|start| line.strip_prefix(start));
                if let Some((_, symbol)) = gone.and_then(|rest| rest.split_once('#')) {
                    library.add(symbol, true);
                }
            }
            _ => {
                let Some((soname, first)) = line.split_once(char::is_whitespace) else { continue };
                let templates = vec![template(first)];
                let library = SymbolsLibrary { templates, ..SymbolsLibrary::default() };
                libraries.push((soname.to_owned(), library));
            }
        }
    }
    libraries.into_iter().rev().map(|(soname, it)| (soname.clone(), it.entry(&soname))).collect()
}

impl SymbolsLibrary {
    fn add(&mut self, line: &str, is_gone: bool) {
        let mut words = line.split_whitespace();
        let (Some(symbol), Some(version)) = (words.next(), words.next()) else { return };
        let template = words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
        // dpkg-shlibdeps finds no dependency for a template that is missing.
        if template >= self.templates.len() {
            return;
        }
        let is_smaller = |least: &String| compare_versions(version, least).is_lt();
        if template == 0 && self.smallest.as_ref().is_none_or(is_smaller) {
            self.smallest = Some(version.to_owned());
        }
        let value = (!is_gone).then(|| (version.to_owned(), template));
        self.symbols.insert(symbol.to_owned(), value);
    }

    fn entry(self, soname: &str) -> String {
        let smallest = self.smallest.unwrap_or_default();
        let least = (smallest.clone(), 0);
        let mut by_node: BTreeMap<&str, Vec<(&str, VersionTemplate)>> = BTreeMap::new();
        for (symbol, value) in &self.symbols {
            let node = symbol.rsplit_once('@').map_or(NO_VERSION, |(_, node)| node);
            let value = value.clone().unwrap_or_else(|| least.clone());
            by_node.entry(node).or_default().push((symbol, value));
        }
        let mut nodes = String::new();
        let mut listed: Vec<(&str, VersionTemplate)> = Vec::new();
        for (node, symbols) in by_node {
            let mut usual = &least;
            if node != NO_VERSION {
                usual = most_frequent(&symbols).unwrap_or(usual);
                nodes.push_str(&format!("{} = {}\n", quoted(node), bound(usual)));
            }
            let others = symbols.iter().filter(|(_, value)| value != usual);
            listed.extend(others.cloned());
        }
        let quoted_soname = quoted(soname);
        let templates: Vec<String> = self.templates.iter().map(|text| quoted(text)).collect();
        let mut text = format!(
            "[libraries.{quoted_soname}]\ndepends = [{}]\nminimum = {}\n",
            templates.join(", "),
            quoted(&smallest)
        );
        if !nodes.is_empty() {
            text.push_str(&format!("[libraries.{quoted_soname}.nodes]\n{nodes}"));
        }
        if !listed.is_empty() {
            text.push_str(&format!("[libraries.{quoted_soname}.symbols]\n"));
            listed.sort_by(|(one, value), (other, next)| {
                compare_versions(&value.0, &next.0).then((value, one).cmp(&(next, other)))
            });
        }
        // A line for each version and template, in order, with its symbols.
        for same in listed.chunk_by(|(_, one), (_, other)| one == other) {
            let names: Vec<&str> = same.iter().map(|(symbol, _)| *symbol).collect();
            let value = same.first().map(|(_, value)| bound(value)).unwrap_or_default();
            text.push_str(&format!("{value} = {}\n", quoted(&names.join(" "))));
        }
        text
    }
}

/// The value that most symbols have, or the first of several in order.
fn most_frequent<'a>(symbols: &'a [(&str, VersionTemplate)]) -> Option<&'a VersionTemplate> {
    let mut counts: BTreeMap<&VersionTemplate, usize> = BTreeMap::new();
    symbols.iter().for_each(|(_, value)| *counts.entry(value).or_default() += 1);
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

/// `2.34`, or `2.34 1` where another template than the first holds.
fn bound((version, template): &VersionTemplate) -> String {
    if *template == 0 { quoted(version) } else { quoted(&format!("{version} {template}")) }
}

/// A template without bounds by a variable, which stands for the version of the library's own source.
fn template(text: &str) -> String {
    let mut parts = text.trim().split(" (");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((bound, rest)) if bound.contains("${") => text + rest,
        _ => text + " (" + part,
    })
}

/// The lines of a shlibs file: possible sonames, and the entry. Lines of type `deb` come first; those of
/// other types, such as `udeb`, are left out.
pub(crate) fn shlibs_entries(text: &str) -> Vec<(String, String)> {
    let (mut typed, mut untyped) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (lines, line) = match line.split_once(": ") {
            Some(("deb", rest)) => (&mut typed, rest.trim_start()),
            Some((kind, _)) if !kind.contains(char::is_whitespace) => continue,
            _ => (&mut untyped, line),
        };
        let mut words = line.splitn(3, char::is_whitespace);
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let depends = quoted(&template(words.next().unwrap_or_default()));
        for soname in [format!("{name}.so.{version}"), format!("{name}-{version}.so")] {
            let entry = format!("[libraries.{}]\ndepends = [{depends}]\n", quoted(&soname));
            lines.push((soname, entry));
        }
    }
    typed.extend(untyped);
    typed
}

pub(crate) fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "libx.so.1 libx1 #MINVER#
| libx1 (>> 2.0), libx1 (<< 2.1)
| libx1 (= ${binary:Version}), liby1 (>= 3) | libz
* Build-Depends-Package: libx-dev
 a@X_1 1.5
 b@X_1 1.5
 c@X_1 1.10
 d@X_2 1.6 1
\te@X_2 1.6 2
 old@Base 1.2
 new@Base 1.9
 without_template@Base 1.0 3
 incomplete@Base
#MISSING: 1.8# gone@X_1 1.1
#DEPRECATED: 1.8# late@X_2 1.3
# a comment

libsecond-2.so second
 s@Base 0:1~rc1
";

    /// Versions are in the order of dpkg. Of versions that are equally frequent, the smallest is that of the node.
    #[test]
    fn every_line_of_a_symbols_file_counts_as_for_dpkg_shlibdeps() {
        let entries = symbols_entries(SYMBOLS);
        let first = r#"[libraries."libx.so.1"]
depends = ["libx1 #MINVER#", "libx1 (>> 2.0), libx1 (<< 2.1)", "libx1, liby1 (>= 3) | libz"]
minimum = "1.1"
[libraries."libx.so.1".nodes]
"X_1" = "1.5"
"X_2" = "1.1"
[libraries."libx.so.1".symbols]
"1.1" = "gone@X_1"
"1.2" = "old@Base"
"1.6 1" = "d@X_2"
"1.6 2" = "e@X_2"
"1.9" = "new@Base"
"1.10" = "c@X_1"
"#;
        let second =
            "[libraries.\"libsecond-2.so\"]\ndepends = [\"second\"]\nminimum = \"0:1~rc1\"\n";
        let expected = [("libsecond-2.so", second), ("libx.so.1", first)];
        let expected = expected.map(|(soname, entry)| (soname.to_owned(), entry.to_owned()));
        assert_eq!(entries, expected.into());
    }

    #[test]
    fn the_first_library_of_a_name_counts() {
        let entries = symbols_entries("libx.so.1 one\n a@Base 1\nlibx.so.1 two\n b@Base 2\n");
        let expected = "[libraries.\"libx.so.1\"]\ndepends = [\"one\"]\nminimum = \"1\"\n";
        assert_eq!(entries.values().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn lines_of_a_shlibs_file_are_of_two_names_and_those_of_debs_come_first() {
        let text = "# comment\nlibz 1 zlib1g (>= 1:1.2)\nudeb: libz 1 zlib1g-udeb\n\
                    deb: libz 1 typed\nshort\nlibempty 2\nliby 3 y (= ${v}), z\n";
        let expected = [
            ("libz.so.1", "typed"),
            ("libz-1.so", "typed"),
            ("libz.so.1", "zlib1g (>= 1:1.2)"),
            ("libz-1.so", "zlib1g (>= 1:1.2)"),
            ("libempty.so.2", ""),
            ("libempty-2.so", ""),
            ("liby.so.3", "y, z"),
            ("liby-3.so", "y, z"),
        ];
        let expected = expected.map(|(soname, depends)| {
            let entry = format!("[libraries.\"{soname}\"]\ndepends = [\"{depends}\"]\n");
            (soname.to_owned(), entry)
        });
        assert_eq!(shlibs_entries(text), expected);
    }

    #[test]
    fn texts_are_escaped_as_in_toml() {
        let texts = ["plain", "\"quoted\" \\", "tab\t, bell\u{7}", "ä"];
        for text in texts {
            let read: BTreeMap<String, String> =
                toml::from_str(&format!("{} = {}", quoted(text), quoted(text))).unwrap();
            assert_eq!(read, [(text.to_owned(), text.to_owned())].into());
        }
    }
}
