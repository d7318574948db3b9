//! Files for clients as apt, dnf and zypper read them: stanzas of fields, and sections of options, whose
//! values go on in lines that begin with a blank.
//!
//! Source: sources.list(5) and deb822(5); dnf.conf(5), and the reader of ini files in libdnf.

/// One stanza or section.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stanza {
    /// Names in small letters, and values with all of their lines.
    pub lines: Vec<(String, String)>,
}

impl Stanza {
    /// The value of a name: of equal ones clients take the last.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.lines.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The words of all values of a name.
    pub fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.lines.iter().filter(move |(own, _)| own == name);
        named
            .flat_map(|(_, value)| value.split(|c: char| c.is_whitespace() || c == ','))
            .filter(|word| !word.is_empty())
    }
}

/// The stanzas of a text that are not empty; `is_ini` says whether `[id]` begins one, and not an empty line.
pub(super) fn stanzas(text: &str, is_ini: bool) -> Vec<Stanza> {
    let mut found = vec![Stanza::default()];
    for line in text.lines() {
        let begins = if is_ini { line.starts_with('[') } else { line.trim().is_empty() };
        let is_comment = line.starts_with('#') || (is_ini && line.starts_with(';'));
        if begins {
            found.push(Stanza::default());
        } else if !is_comment {
            add(found.last_mut(), line, is_ini);
        }
    }
    found.retain(|stanza| !stanza.lines.is_empty());
    found
}

fn add(stanza: Option<&mut Stanza>, line: &str, is_ini: bool) {
    let Some(stanza) = stanza else { return };
    if line.starts_with([' ', '\t'])
        && let Some((_, value)) = stanza.lines.last_mut()
    {
        value.push('\n');
        value.push_str(line);
        return;
    }
    let between: &[char] = if is_ini { &['=', ':'] } else { &[':'] };
    let (name, value) = line.split_once(between).unwrap_or((line, ""));
    if !line.trim().is_empty() {
        stanza.lines.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_on_where_lines_begin_with_blanks() {
        let sources = stanzas("# x\nURIs: a\n b\n# y\nTrusted:\n yes\n \nURIs: c\n", false);
        assert_eq!(sources.len(), 2);
        assert_eq!(sources[0].words("uris").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(sources[0].value("trusted").map(str::trim), Some("yes"));
        let repo = stanzas("[a]\nbaseurl=x,y\n  z\n\n[b]\n;c\nsslverify=0\n", true);
        assert_eq!(repo.len(), 2);
        assert_eq!(repo[0].words("baseurl").collect::<Vec<_>>(), ["x", "y", "z"]);
        assert_eq!(repo[1].value("sslverify"), Some("0"));
    }
}
