//! Requirements, as `Requires-Dist` has them.
//!
//! ```text
//! name [extras] versions ; marker
//! torch-device-gfx942 == 2.9.0+rocm7.1; extra == "device-gfx942"
//! ```
//!
//! Source: PEP 508. Of versions, what fits one only is of interest, and of markers, which extra they ask for.

use super::name::normalized;

/// A distribution that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The normalized name.
    pub name: String,
    /// The version, if one alone will do.
    pub exact: Option<String>,
    /// When it is needed.
    pub condition: Condition,
}

/// When a distribution is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    Always,
    /// If this extra is asked for; the name is normalized.
    Extra(String),
    /// If a marker holds that says something else.
    Marker(String),
}

impl Requirement {
    /// Reads the value of `Requires-Dist`; none if it begins with no name.
    pub fn parse(text: &str) -> Option<Self> {
        let (wish, marker) = text.split_once(';').unwrap_or((text, ""));
        let wish = wish.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let (name, rest) = wish.split_at(wish.find(|c| !is_name(c)).unwrap_or(wish.len()));
        let name = normalized(name);
        (!name.is_empty()).then(|| Self { name, exact: exact(rest), condition: condition(marker) })
    }
}

/// The only version that will do, of what follows a name.
fn exact(text: &str) -> Option<String> {
    let text = text.trim_start();
    let text = match text.strip_prefix('[') {
        Some(extras) => extras.split_once(']')?.1.trim_start(),
        None => text,
    };
    let bare = text.strip_prefix('(').and_then(|text| text.trim_end().strip_suffix(')'));
    let version = bare.unwrap_or(text).trim().strip_prefix("==")?.trim();
    let is_one = !version.is_empty() && !version.contains([',', '*', '=', '<', '>', ' ']);
    is_one.then(|| version.to_owned())
}

fn condition(marker: &str) -> Condition {
    let marker = marker.trim();
    let extra = || {
        let value = marker.strip_prefix("extra")?.trim_start().strip_prefix("==")?.trim();
        let quote = value.chars().next().filter(|c| ['"', '\''].contains(c))?;
        let extra = value.strip_prefix(quote)?.strip_suffix(quote)?;
        (!extra.contains(['"', '\''])).then(|| normalized(extra))
    };
    match extra() {
        _ if marker.is_empty() => Condition::Always,
        Some(extra) => Condition::Extra(extra),
        None => Condition::Marker(marker.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>, Condition) {
        let Requirement { name, exact, condition } = Requirement::parse(text).unwrap();
        (name, exact, condition)
    }

    #[test]
    fn one_version_and_one_extra_are_found() {
        let extra = |name: &str| Condition::Extra(name.to_owned());
        let pin = |version: &str| Some(version.to_owned());
        for (text, name, exact, condition) in [
            ("Two.Pkg", "two-pkg", None, Condition::Always),
            ("a == 1.0+rocm7.1", "a", pin("1.0+rocm7.1"), Condition::Always),
            ("a[x,y] (==1.0)", "a", pin("1.0"), Condition::Always),
            ("a==1.0;extra=='Device_gfx942'", "a", pin("1.0"), extra("device-gfx942")),
            ("a == 1.0 ; extra == \"device-all\"", "a", pin("1.0"), extra("device-all")),
            ("a>=1.0", "a", None, Condition::Always),
            ("a == 1.*", "a", None, Condition::Always),
            ("a == 1.0, != 2", "a", None, Condition::Always),
            ("a === 1.0", "a", None, Condition::Always),
            ("a @ https://example.org/a.whl", "a", None, Condition::Always),
            (
                "a == 1; extra == 'x' and os_name == 'nt'",
                "a",
                pin("1"),
                Condition::Marker("extra == 'x' and os_name == 'nt'".to_owned()),
            ),
        ] {
            assert_eq!(parsed(text), (name.to_owned(), exact, condition), "{text}");
        }
        assert_eq!(Requirement::parse(" == 1"), None);
    }
}
