//! Files for clients as apt, dnf and zypper read them: stanzas of fields, sections of options, and one-line
//! sources. Refused: files that one of these clients refuses or reads in another way than the others.
//!
//! Source: sources.list(5), deb822(5), apt_preferences(5), dnf.conf(5), and what apt 2.6 and 3.3, dnf 5.4 and
//! zypper 1.14 do with changed files.

use std::collections::BTreeSet;

use rockpack_base::formats::deb::parse_fields;

/// The kinds of files for clients that are no keyrings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// dnf and zypper.
    Repo,
    /// apt.
    Sources,
    /// apt, with a source in a line; read as fields.
    List,
    /// Priorities of apt.
    Preferences,
}

/// Words that all clients take for no, and for yes.
const WORDS: [[&str; 4]; 2] = [["0", "no", "false", "off"], ["1", "yes", "true", "on"]];

/// One stanza or section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stanza {
    pub form: Form,
    /// Names, those of fields in small letters, and values with all of their lines.
    pub lines: Vec<(String, String)>,
}

impl Stanza {
    /// The values of a name, which all count: clients take the last, or refuse several.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The words of all values of a name.
    pub fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let has_commas = self.form == Form::Repo;
        let words = self.values(name).flat_map(move |value| {
            value.split(move |c: char| c.is_whitespace() || (has_commas && c == ','))
        });
        words.filter(|word| !word.is_empty())
    }

    /// Whether the switch of that name is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.values(name).next().is_some() && self.values(name).all(|value| is_set(value, true))
    }
}

/// Whether clients take the value for yes, or for no.
pub(super) fn is_set(value: &str, is_on: bool) -> bool {
    let [no, yes] = WORDS;
    (if is_on { yes } else { no }).contains(&value.trim().to_ascii_lowercase().as_str())
}

/// The stanzas of a file; the error is a reason in words.
pub(super) fn stanzas(text: &str, form: Form) -> Result<Vec<Stanza>, String> {
    let found = match form {
        Form::Repo => sections(text)?,
        Form::List => {
            let sources = text.lines().map(|line| source(line).ok_or_else(|| bad(line)));
            fields(&sources.collect::<Result<String, _>>()?, Form::Sources)?
        }
        Form::Sources | Form::Preferences => fields(text, form)?,
    };
    if found.is_empty() { Err("has nothing that clients read".to_owned()) } else { Ok(found) }
}

fn bad(line: &str) -> String {
    format!("`{}` is not a source, a section of its own, or an option", line.escape_debug())
}

/// The paragraphs of a file in deb822 style. Comments may be anywhere in it, and blank lines may have blanks.
fn fields(text: &str, form: Form) -> Result<Vec<Stanza>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.map(|it| if it.trim().is_empty() { "" } else { it }).collect();
    let text = lines.join("\n");
    let paragraphs = text.split("\n\n").filter(|text| !text.trim().is_empty());
    let stanzas = paragraphs.map(|text| -> Result<Stanza, String> {
        let fields = parse_fields(text.trim_matches('\n'));
        let fields = fields.map_err(|error| error.message().to_owned())?.to_map().into_iter();
        let lines = fields.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        Ok(Stanza { form, lines })
    });
    stanzas.collect()
}

/// The sections of an ini file. zypper reads none of a file with carriage returns, dnf ends at `main`, and dnf 4
/// at values that are not UTF-8.
fn sections(text: &str) -> Result<Vec<Stanza>, String> {
    let (mut found, mut ids) = (Vec::new(), BTreeSet::new());
    for line in text.split('\n') {
        if line.starts_with(['#', ';']) || line.trim().is_empty() {
            continue;
        }
        let is_bad = |c: char| (c.is_control() && c != '\t') || c == char::REPLACEMENT_CHARACTER;
        let is_text = !line.contains(is_bad);
        if let Some(section) = line.strip_prefix('[') {
            let id = section.split_once(']').map(|(id, _)| id).filter(|id| is_text && is_id(id));
            id.filter(|id| ids.insert(*id)).ok_or_else(|| bad(line))?;
            found.push(Stanza { form: Form::Repo, lines: Vec::new() });
        } else {
            let section = found.last_mut().filter(|_| is_text);
            section.and_then(|section| add(section, line)).ok_or_else(|| bad(line))?;
        }
    }
    Ok(found)
}

/// Whether dnf takes it for the id of a repository.
fn is_id(id: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !id.is_empty() && id != "main" && id.chars().all(is_legal)
}

/// Adds an option, or a further line of the last one; `None` if it is neither.
fn add(section: &mut Stanza, line: &str) -> Option<()> {
    if line.starts_with([' ', '\t']) {
        let (_, value) = section.lines.last_mut()?;
        value.push('\n');
        value.push_str(line);
    } else {
        let (name, value) = line.split_once('=')?;
        section.lines.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Some(())
}

/// A source in one line, `deb [option=value …] URI suite component …`, as fields.
fn source(line: &str) -> Option<String> {
    let line = line.split('#').next()?.trim();
    if line.is_empty() {
        return Some(String::new());
    }
    let (kind, rest) = line.split_once(char::is_whitespace)?;
    let inside = rest.trim_start().strip_prefix('[');
    let (options, rest) = inside.map_or(Some(("", rest)), |inside| inside.split_once(']'))?;
    let mut words = rest.split_whitespace();
    let (uri, suite, components) = (words.next()?, words.next()?, Vec::from_iter(words).join(" "));
    let options = options.split_whitespace().map(|option| {
        let option = option.replace("arch=", "architectures=");
        option.replacen('=', ": ", 1).replace(',', " ") + "\n"
    });
    let options: String = options.collect();
    Some(format!(
        "Types: {kind}\nURIs: {uri}\nSuites: {suite}\nComponents: {components}\n{options}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_on_where_lines_begin_with_blanks() {
        let text = "# x\nURIs: a\n b\n# y\nTrusted:\n yes\n \nURIs: c,d\n";
        let sources = stanzas(text, Form::Sources).unwrap();
        assert_eq!(sources.len(), 2);
        assert_eq!(sources[0].words("uris").collect::<Vec<_>>(), ["a", "b"]);
        assert!(sources[0].is_on("trusted") && !sources[1].is_on("trusted"));
        assert_eq!(sources[1].words("uris").collect::<Vec<_>>(), ["c,d"]);
        let text = "[a]\nbaseurl=x,y\n  z\n\n[b] # c\n;c\nsslverify = 0\n";
        let repo = stanzas(text, Form::Repo).unwrap();
        assert_eq!(repo.len(), 2);
        assert_eq!(repo[0].words("baseurl").collect::<Vec<_>>(), ["x", "y", "z"]);
        assert!(repo[1].values("sslverify").all(|value| is_set(value, false)));
        let list = "# deb x y z\ndeb [ arch=a,b trusted=yes ] uri suite one two # c\n\n";
        let list = stanzas(list, Form::List).unwrap();
        assert!(list.len() == 1 && list[0].is_on("trusted"));
        assert_eq!(list[0].words("architectures").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(list[0].words("components").collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn files_that_a_client_does_not_read_are_refused() {
        let repo = ["", "a=b\n", "[]\n", "[main]\n", "[a b]\n", "[a\n", " [a]\n", "[a]\n[a]\n"];
        let lines = ["[a]\n b\n", "[a]\nb\n", "[a]\nb : c\n", "[a]\r\n", "\u{feff}[a]\n"];
        let no_text = ["[a]\nb=\u{fffd}\n"];
        let sources = ["", "# a\n", "a\n", " a: b\n", "<html>\n", "a: b\nA: c\n", "a: b\0\n"];
        let list = ["deb\n", "deb [a=b\n", "deb [a] b c d\n", "# deb a b c\n"];
        for (texts, form) in [
            (&repo[..], Form::Repo),
            (&lines[..], Form::Repo),
            (&no_text[..], Form::Repo),
            (&sources[..], Form::Sources),
            (&list[..], Form::List),
        ] {
            for text in texts {
                assert!(stanzas(text, form).is_err(), "{text:?}");
            }
        }
    }
}
