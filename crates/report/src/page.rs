//! Renders HTML and Markdown pages from templates. Values are HTML-escaped if the template's name ends in `.html`.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, UndefinedBehavior, Value};
use rockpack_core::error::{Error, Result};
use serde::Serialize;

use crate::words::{bytes, counted};

/// Renders `template`. Additional filters: `bytes` (`3.94 MB`), `percent` (of a whole), `counted` (`2 files`), `cell`
/// (text in a Markdown table) and `code` (backquoted parts as HTML code). An undefined name is an error.
pub fn render(name: &str, template: &str, values: impl Serialize) -> Result<String> {
    let fault = |error| Error::bug("a template of the program cannot be rendered").cause(error);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("bytes", bytes);
    environment.add_filter("percent", percent);
    environment.add_filter("counted", |count: u64, noun: String| counted(count, &noun));
    environment.add_filter("cell", cell);
    environment.add_filter("code", code);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build();
    environment.set_syntax(syntax.map_err(fault)?);
    environment.render_named_str(name, template, Serde(values)).map_err(fault)
}

/// The percentage of a whole, rounded down.
fn percent(part: u64, whole: u64) -> String {
    let hundredths = (u128::from(part) * 100).checked_div(whole.into());
    hundredths.map_or_else(|| "–".to_owned(), |number| format!("{number} %"))
}

/// The text in one line, escaped for Markdown except for the parts between backticks.
fn cell(text: String) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let plain = |part: &str| {
        let html = part.replace('&', "&amp;").replace('<', "&lt;");
        html.replace('_', "\\_").replace('*', "\\*")
    };
    with_code(&text, plain, |code| format!("`{code}`"))
}

/// The text as HTML, with the parts between backticks as `<code>`.
fn code(text: String) -> Value {
    let plain = |part: &str| HtmlEscape(part).to_string();
    Value::from_safe_string(with_code(&text, plain, |code| format!("<code>{}</code>", plain(code))))
}

/// Maps the parts between two backticks with `code`, and all others with `plain`.
fn with_code(text: &str, plain: impl Fn(&str) -> String, code: impl Fn(&str) -> String) -> String {
    let last = text.matches('`').count();
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => plain(part),
        _ if at == last => format!("&#96;{}", plain(part)),
        _ => code(part),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_mean_nothing_to_html_and_markdown() {
        let values = || serde_json::json!({ "text": "<b>|\n&" });
        let page = |name, template| render(name, template, values()).unwrap();
        assert_eq!(page("x.html", "{{ text }}\n"), "&lt;b&gt;|\n&amp;\n");
        assert_eq!(page("x.html", "{{ '`<a` <b' | code }}"), "<code>&lt;a</code> &lt;b");
        assert_eq!(page("x.html", "{{ 'a ` b' | code }}"), "a &#96; b");
        assert_eq!(page("x.md", "{{ '`<a_` <b_' | cell }}"), "`<a_` &lt;b\\_");
        assert_eq!(page("x.md", "{{ 1 | percent(0) }} {{ 2 | percent(3) }}"), "– 66 %");
        assert_eq!(
            page("x.md", "{{ text | cell }} {{ 3940000 | bytes }}"),
            "&lt;b>\\| &amp; 3.94 MB"
        );
        assert!(render("x.md", "{{ other }}", values()).is_err());
    }
}
