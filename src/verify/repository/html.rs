//! Pages of an index for people and pip, as an HTML parser sees them.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The elements of such pages. Others may change where links lead, as `base` does.
const ELEMENTS: [&str; 8] = ["html", "head", "meta", "title", "body", "h1", "a", "br"];

/// The name of the element `meta` that has the version of the interface (PEP 629).
const INTERFACE: &str = "pypi:repository-version";

/// Names of `meta`, beside that, which no client acts on.
const PLAIN_META: [&str; 4] = ["generator", "viewport", "robots", "description"];

/// A page of an index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HtmlPage {
    /// The versions of the interface that the page states.
    pub interfaces: Vec<String>,
    /// The links: their texts and their attributes.
    pub links: Vec<(String, BTreeMap<String, String>)>,
    /// The first element that such pages do not have, or not with its attributes.
    pub foreign: Option<String>,
}

/// Reads a page; the error is a reason in words.
pub(super) fn read(text: &str) -> Result<HtmlPage, String> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    // `meta` and `br` have no end.
    (config.check_end_names, config.allow_unmatched_ends) = (false, true);
    let (mut page, mut open) = (HtmlPage::default(), None);
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        match event {
            Event::Eof => {
                page.links.extend(open.take());
                return Ok(page);
            }
            Event::Start(element) | Event::Empty(element) => {
                let name = element.name().as_ref().to_ascii_lowercase();
                let mut attributes = attributes(&element)?;
                if name == "meta" && attributes.get("name").is_some_and(|name| name == INTERFACE) {
                    attributes.remove("name");
                    page.interfaces.push(attributes.remove("content").unwrap_or_default());
                }
                match name.as_str() {
                    // Parsers of HTML end a link where the next one begins.
                    "a" => page.links.extend(open.replace((String::new(), attributes))),
                    known if ELEMENTS.contains(&known) && attributes.iter().all(is_plain) => {}
                    _ => drop(page.foreign.get_or_insert(name)),
                }
            }
            Event::Text(text) => {
                if let Some((own, _)) = &mut open {
                    own.push_str(&text);
                }
            }
            Event::End(end) if end.name().as_ref().eq_ignore_ascii_case("a") => {
                page.links.extend(open.take());
            }
            Event::DocType(kind) if kind.trim().eq_ignore_ascii_case("html") => {}
            // Plain comments are the same to every parser; in others, and in what is none of HTML, links may hide.
            Event::Comment(text) if !text.contains(['<', '>']) && !text.contains("--") => {}
            Event::Comment(_) => drop(page.foreign.get_or_insert_with(|| "!--".to_owned())),
            Event::DocType(_) | Event::CData(_) | Event::PI(_) | Event::Decl(_) => {
                page.foreign.get_or_insert_with(|| "!".to_owned());
            }
            _ => {}
        }
    }
}

/// Whether no client acts on an attribute of an element other than `a`.
fn is_plain((name, value): (&String, &String)) -> bool {
    match name.as_str() {
        "charset" => value.eq_ignore_ascii_case("utf-8"),
        "name" => PLAIN_META.contains(&value.as_str()),
        "content" | "lang" => true,
        _ => false,
    }
}

fn attributes(element: &BytesStart<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    for attribute in element.html_attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let name = attribute.key.as_ref().to_ascii_lowercase();
        let value =
            quick_xml::escape::unescape(&attribute.value).map_err(|error| error.to_string())?;
        if found.insert(name.clone(), value.into_owned()).is_some() {
            return Err(format!("an element has the attribute {name} twice"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_foreign_elements_are_found() {
        let page = read(
            "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">\n\
             <META name=\"pypi:repository-version\" content=\"1.1\"><BASE href='x'>\n\
             <title>t</title></head><body><h1>t</h1><a href=\"a&amp;b\" data-yanked>t</a><br>\n\
             <a href=\"c\">u</a><br></body></html>\n",
        )
        .unwrap();
        assert_eq!(page.interfaces, ["1.1"]);
        assert_eq!(page.foreign.as_deref(), Some("base"));
        let texts: Vec<_> =
            page.links.iter().map(|(text, all)| (text.as_str(), &all["href"])).collect();
        assert_eq!(texts, [("t", &"a&b".to_owned()), ("u", &"c".to_owned())]);
        assert_eq!(page.links[0].1["data-yanked"], "");
        let page = read("<a href=\"x\">x <a href=\"y\">y</a> <a href=\"z\">").unwrap();
        let links: Vec<&str> = page.links.iter().map(|(_, all)| all["href"].as_str()).collect();
        assert_eq!(links, ["x", "y", "z"]);
        assert!(read("<a href=\"x").is_err());
        assert!(read("<a href='x' HREF='y'>z</a>").is_err());
        for hidden in [
            "<?x ><a href='x'>x</a>?>",
            "<!--><base href='x'>-->",
            "<!-- --!><base href='x'>-->",
            "<![CDATA[><base href='x'>]]>",
            "<!DOCTYPE html [<!ENTITY a 'b'>]>",
            "<meta http-equiv='refresh' content='0; url=x'>",
            "<meta name='pypi:repository-version' content='1.1' http-equiv='refresh'>",
            "<meta name='pypi:tracks' content='x'>",
            "<meta charset='utf-16'>",
            "<body onload='x'>",
        ] {
            assert!(read(hidden).unwrap().foreign.is_some(), "{hidden}");
        }
        let plain = "<!DOCTYPE html><!--SERIAL 12--><meta name='generator' content='x'>";
        assert_eq!(read(plain).unwrap(), HtmlPage::default());
    }
}
