//! Pages for people, from templates. What a name ending in `.html` gives is escaped as HTML.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, UndefinedBehavior, Value};
use rockpack_core::error::{Error, Result};
use serde::Serialize;

use crate::words::bytes;

/// Fills in `template`. It has filters of its own: `bytes` (`3.94 MB`), `cell` (a text in a line of Markdown) and `code`
/// (a text with `code` in HTML). A name that it uses and `values` lack is an error.
pub fn render(name: &str, template: &str, values: impl Serialize) -> Result<String> {
    let fault = |error| Error::bug("a template of the program cannot be rendered").cause(error);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("bytes", bytes);
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

/// A text in one line, without what means something to Markdown or HTML.
fn cell(text: String) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as HTML, with the parts between backticks as code.
fn code(text: String) -> Value {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => HtmlEscape(part).to_string(),
        _ => format!("<code>{}</code>", HtmlEscape(part)),
    });
    Value::from_safe_string(parts.collect())
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
        assert_eq!(
            page("x.md", "{{ text | cell }} {{ 3940000 | bytes }}"),
            "&lt;b>\\| &amp; 3.94 MB"
        );
        assert!(render("x.md", "{{ other }}", values()).is_err());
    }
}
