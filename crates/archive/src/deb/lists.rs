//! The lists of paths in a control archive.
//!
//! ```text
//! md5sums    <32 hex digits>  <path without leading slash>
//! conffiles  /<path>, or `remove-on-upgrade /<path>` for one that the package no longer has
//! ```
//!
//! Source: deb-md5sums(5), deb-conffiles(5), and dpkg 1.21, which ignores blanks at the end of conffiles lines
//! and empty lines. Refused, as by dpkg: lines of conffiles without an absolute path or with another flag, and a
//! last line without a line feed. Also refused: a path twice in md5sums, and far too many conffiles.

use std::ops::Range;
use std::sync::Arc;

use super::fields::excerpt;
use rockpack_core::content::unhex;
use rockpack_core::error::{Error, Kind, Result};

/// Maximum number of conffiles, a bound for hostile input: more than any package has.
const CONFFILES_MAX: usize = 1 << 20;

/// Bytes of the shortest row of md5sums: sum, two blanks, a path and a line feed.
const SHORTEST_SUM: usize = 36;

/// Paths with the values of their rows. A list may have very many rows, so the paths stay in the text.
#[derive(Debug)]
pub(super) struct Paths<T> {
    text: Arc<String>,
    /// The rows, sorted by path.
    rows: Vec<(Range<u32>, T)>,
}

pub(super) type Sums = Paths<[u8; 16]>;

/// The list `conffiles`, without files that the package no longer has.
pub(super) type Conffiles = Paths<()>;

impl<T> Paths<T> {
    fn new(text: Arc<String>, mut rows: Vec<(Range<u32>, T)>) -> Self {
        rows.shrink_to_fit();
        rows.sort_unstable_by(|(one, _), (other, _)| part(&text, one).cmp(part(&text, other)));
        Self { text, rows }
    }

    /// The value of a path without leading slash; `None` if the list lacks it.
    pub fn get(&self, path: &str) -> Option<&T> {
        let found = self.rows.binary_search_by(|(range, _)| part(&self.text, range).cmp(path));
        found.ok().and_then(|at| self.rows.get(at)).map(|(_, said)| said)
    }

    /// The paths without leading slash, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|(range, _)| part(&self.text, range))
    }
}

impl Sums {
    pub fn parse(text: Arc<String>) -> Result<Self> {
        let mut rows = Vec::with_capacity(text.len() / SHORTEST_SUM);
        let mut end = 0;
        for whole in text.split_inclusive('\n') {
            let start = end;
            end += whole.len();
            let line = whole.trim_end_matches(['\n', '\r']);
            let entry = line
                .split_once("  ")
                .filter(|(_, path)| !path.is_empty())
                .and_then(|(sum, path)| Some((path, unhex::<16>(sum)?)));
            let (path, sum) = entry.ok_or_else(|| {
                malformed("md5sums", format!("`{}` is not a sum and a path", excerpt(line)))
            })?;
            let path_end = start + line.len();
            rows.push((range(path_end - path.len()..path_end)?, sum));
        }
        let sums = Self::new(text, rows);
        let twice = sums.paths().zip(sums.paths().skip(1)).find(|(one, other)| one == other);
        if let Some((path, _)) = twice {
            let hint = "no tool writes such a list: build the package or copy it again";
            let message = format!("has `{}` twice", excerpt(path));
            return Err(malformed("md5sums", message).hint(hint));
        }
        Ok(sums)
    }
}

impl Conffiles {
    pub fn parse(text: Arc<String>) -> Result<Self> {
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(malformed("conffiles", "does not end with a line break".to_owned()));
        }
        let mut rows = Vec::new();
        let mut end = 0;
        for whole in text.split_inclusive('\n') {
            let start = end;
            end += whole.len();
            let line = whole.trim_end_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
            let removed = line.strip_prefix("remove-on-upgrade ");
            match (line, removed) {
                ("", _) => {}
                (_, Some(path)) if path.starts_with('/') => {}
                (path, None) if path.starts_with('/') => {
                    let below = below_root(path);
                    let path_end = start + path.len();
                    rows.push((range(path_end - below.len()..path_end)?, ()));
                }
                _ => {
                    let message = format!("`{}` is not an absolute path", excerpt(line));
                    return Err(malformed("conffiles", message));
                }
            }
            if rows.len() > CONFFILES_MAX {
                let message = format!("has more than {CONFFILES_MAX} paths");
                let hint = "no real package has as many: build it or copy it again";
                return Err(Error::new(Kind::Limit, message).structure("conffiles").hint(hint));
            }
        }
        Ok(Self::new(text, rows))
    }
}

fn malformed(list: &str, message: String) -> Error {
    Error::malformed(message).structure(list)
}

/// The paths that the two lists name, without leading slash; other lines are ignored.
pub(super) fn paths<'a>(sums: &'a str, conffiles: &'a str) -> impl Iterator<Item = &'a str> {
    let sums = sums.lines().filter_map(|line| line.split_once("  ").map(|(_, path)| path));
    let own = conffiles.lines().map(str::trim_end).filter(|line| line.starts_with('/'));
    sums.chain(own).map(below_root).filter(|path| !path.is_empty())
}

/// A path below the root, without any number of leading `/` and `./`, which dpkg ignores.
pub(super) fn below_root(path: &str) -> &str {
    let mut rest = path;
    while let Some(next) = rest.strip_prefix("./").or_else(|| rest.strip_prefix('/')) {
        rest = next;
    }
    rest
}

fn part<'a>(text: &'a str, range: &Range<u32>) -> &'a str {
    text.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// A range of the text in 32 bits: a control archive is far smaller than 4 GiB.
fn range(range: Range<usize>) -> Result<Range<u32>> {
    let narrow = |at: usize| u32::try_from(at).map_err(|_| Error::bug("a list of more than 4 GiB"));
    Ok(narrow(range.start)?..narrow(range.end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conffiles(text: &str) -> Result<Vec<String>> {
        let list = Conffiles::parse(Arc::new(text.to_owned()))?;
        Ok(list.paths().map(str::to_owned).collect())
    }

    #[test]
    fn conffiles_are_those_that_dpkg_sees() {
        let text = "/etc/b\n\n \n/etc/a \t\r\nremove-on-upgrade /etc/c\n/etc/ä b\n/etc/a\n";
        assert_eq!(conffiles(text).unwrap(), ["etc/a", "etc/a", "etc/b", "etc/ä b"]);
        let list = Conffiles::parse(Arc::new(text.to_owned())).unwrap();
        assert!(list.get("etc/a").is_some() && list.get("etc/b").is_some());
        assert!(list.get("etc/c").is_none() && list.get("").is_none());
        assert_eq!(conffiles("").unwrap(), [""; 0]);
        for odd in [
            "/etc/a",
            "etc/a\n",
            " /etc/a\n",
            "unknown /etc/a\n",
            "remove-on-upgrade\n",
            "remove-on-upgrade etc/a\n",
            "remove-on-upgrade  /etc/a\n",
        ] {
            assert!(conffiles(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn more_conffiles_than_any_package_has_are_refused() {
        assert!(conffiles(&"\n".repeat(4 * CONFFILES_MAX)).is_ok());
        let error = conffiles(&"/a\n".repeat(CONFFILES_MAX + 1)).unwrap_err();
        assert_eq!(error.kind(), Kind::Limit);
        assert!(error.hint_text().is_some());
    }

    #[test]
    fn sums_are_found_by_their_paths() {
        let text = format!("{}  b\r\n{}  a  b\n", "0".repeat(32), "1".repeat(32));
        let sums = Sums::parse(Arc::new(text.clone())).unwrap();
        assert_eq!(sums.paths().collect::<Vec<_>>(), ["a  b", "b"]);
        assert_eq!((sums.get("b"), sums.get("a")), (Some(&[0; 16]), None));
        for (odd, said) in [
            (format!("{text}\n"), "`` is not a sum and a path"),
            (format!("{text}{text}"), "has `a  b` twice"),
            (text.replace("  b", "  "), "is not a sum and a path"),
        ] {
            let error = Sums::parse(Arc::new(odd)).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
