//! Markers of requirements.
//!
//! ```text
//! (python_version > "3" and extra == "a") or os_name == "nt"
//! ```
//!
//! Source: the specification of dependency specifiers (PEP 508).

/// The variable with the requested extras.
const EXTRA: &str = "extra";

/// The variables of markers; names with a dot, and the last one, are obsolete.
const VARIABLES: &str = "extra extras dependency_groups implementation_name \
    implementation_version os_name platform_machine platform_python_implementation \
    platform_release platform_system platform_version python_full_version python_version \
    sys_platform os.name platform.machine platform.python_implementation platform.version \
    sys.platform python_implementation";

/// A comparison in a marker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comparison<'a> {
    left: Operand<'a>,
    operator: &'a str,
    right: Operand<'a>,
}

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand<'a> {
    Variable(&'a str),
    Text(&'a str),
}

/// A part of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// Text in quotes.
    Text(&'a str),
    /// A variable or a word.
    Word(&'a str),
    /// A comparison in signs.
    Signs(&'a str),
    Open,
    Close,
}

impl<'a> Comparison<'a> {
    /// The required extra, if the comparison is one with an extra.
    pub fn extra(&self) -> Option<&'a str> {
        match (self.left, self.operator, self.right) {
            (Operand::Variable(EXTRA), "==", Operand::Text(extra))
            | (Operand::Text(extra), "==", Operand::Variable(EXTRA)) => Some(extra),
            _ => None,
        }
    }
}

/// The comparisons of a marker; `None` if it is invalid.
pub(super) fn comparisons(marker: &str) -> Option<Vec<Comparison<'_>>> {
    let tokens = tokens(marker)?;
    let mut rest = tokens.as_slice();
    let (mut found, mut depth) = (Vec::new(), 0usize);
    loop {
        while let [Token::Open, behind @ ..] = rest {
            (rest, depth) = (behind, depth + 1);
        }
        let (comparison, behind) = comparison(rest)?;
        found.push(comparison);
        rest = behind;
        while let [Token::Close, behind @ ..] = rest {
            (rest, depth) = (behind, depth.checked_sub(1)?);
        }
        match rest {
            [] => return (depth == 0).then_some(found),
            [Token::Word("and" | "or"), behind @ ..] => rest = behind,
            _ => return None,
        }
    }
}

/// Reads the comparison at the start of `tokens`, and returns it with the rest.
fn comparison<'a, 'b>(tokens: &'b [Token<'a>]) -> Option<(Comparison<'a>, &'b [Token<'a>])> {
    let (left, operator, right, behind) = match tokens {
        [left, Token::Signs(operator) | Token::Word(operator @ "in"), right, behind @ ..] => {
            (left, *operator, right, behind)
        }
        [left, Token::Word("not"), Token::Word("in"), right, behind @ ..] => {
            (left, "not in", right, behind)
        }
        _ => return None,
    };
    let is_known =
        ["<=", "<", "!=", "==", ">=", ">", "~=", "===", "in", "not in"].contains(&operator);
    let (left, right) = (operand(*left)?, operand(*right)?);
    is_known.then_some((Comparison { left, operator, right }, behind))
}

fn operand(token: Token<'_>) -> Option<Operand<'_>> {
    match token {
        Token::Text(text) => Some(Operand::Text(text)),
        Token::Word(word) => {
            VARIABLES.split(' ').any(|own| own == word).then_some(Operand::Variable(word))
        }
        Token::Signs(_) | Token::Open | Token::Close => None,
    }
}

/// The tokens of a marker; `None` if a quote is not closed, or a character cannot occur in markers.
fn tokens(marker: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = marker.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, behind) = match first {
            '"' | '\'' => {
                let (text, behind) = rest.strip_prefix(first)?.split_once(first)?;
                (Token::Text(text), behind)
            }
            '(' => (Token::Open, rest.strip_prefix('(')?),
            ')' => (Token::Close, rest.strip_prefix(')')?),
            '=' | '<' | '>' | '!' | '~' => {
                let (signs, behind) = split_while(rest, |c| "=<>!~".contains(c));
                (Token::Signs(signs), behind)
            }
            'a'..='z' => {
                let (word, behind) =
                    split_while(rest, |c| c.is_ascii_lowercase() || "._".contains(c));
                (Token::Word(word), behind)
            }
            _ => return None,
        };
        tokens.push(token);
        rest = behind.trim_start();
    }
    Some(tokens)
}

fn split_while(text: &str, is_in: fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !is_in(c)).unwrap_or(text.len());
    text.split_at(end)
}
