//! XML as a tree, as far as indexes need it.

use std::collections::{BTreeMap, BTreeSet};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::error::{Error, Result};

/// Deeper documents are no indexes.
const DEPTH_MAX: usize = 16;

/// An element.
#[derive(Debug, Default)]
pub struct Element {
    /// Its name, with its prefix.
    pub name: String,
    /// Its attributes by their names.
    pub attributes: BTreeMap<String, String>,
    /// Its text without that of its children.
    pub text: String,
    /// The elements in it.
    pub children: Vec<Element>,
}

impl Element {
    /// The root element of a document.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text =
            std::str::from_utf8(bytes).map_err(|e| Error::malformed("is no UTF-8").cause(e))?;
        let mut reader = Reader::from_str(text);
        let mut open: Vec<Self> = Vec::new();
        loop {
            match reader.read_event().map_err(fault)? {
                Event::Start(start) => {
                    if open.len() == DEPTH_MAX {
                        return Err(Error::malformed("is nested too deep"));
                    }
                    open.push(element(&start)?);
                }
                Event::Empty(start) => {
                    let empty = element(&start)?;
                    match open.last_mut() {
                        Some(above) => above.children.push(empty),
                        None => return Ok(empty),
                    }
                }
                Event::Text(text) => add(&mut open, &text),
                Event::GeneralRef(name) => {
                    let character = match name.resolve_char_ref().map_err(fault)? {
                        Some(character) => character.to_string(),
                        None => quick_xml::escape::resolve_predefined_entity(&name)
                            .ok_or_else(|| Error::malformed("has an entity that is not known"))?
                            .to_owned(),
                    };
                    add(&mut open, &character);
                }
                Event::End(_) => {
                    let closed = open.pop().unwrap_or_default();
                    match open.last_mut() {
                        Some(above) => above.children.push(closed),
                        None => return Ok(closed),
                    }
                }
                Event::Eof => return Err(Error::truncated("ends inside of an element")),
                _ => {}
            }
        }
    }

    /// The first child of a name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The children of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// A name that two children have, other than those that may repeat: [`Self::child`] is the first
    /// of them, and other readers may take another.
    pub fn twice(&self, may_repeat: &[&str]) -> Option<&str> {
        let mut seen = BTreeSet::new();
        let names = self.children.iter().map(|child| child.name.as_str());
        names.filter(|name| !may_repeat.contains(name)).find(|name| !seen.insert(*name))
    }

    /// The text of a child, empty if there is none.
    pub fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.as_str())
    }

    /// An attribute, empty if there is none.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// An attribute of a child.
    pub fn attribute_of(&self, child: &str, name: &str) -> &str {
        self.child(child).map_or("", |child| child.attribute(name))
    }
}

fn add(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn element(start: &BytesStart<'_>) -> Result<Element> {
    let mut element = Element { name: start.name().0.to_owned(), ..Element::default() };
    // The reader would hold each attribute against all others.
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(fault)?;
        let value = quick_xml::escape::unescape(&attribute.value).map_err(fault)?;
        let name = attribute.key.0.to_owned();
        if element.attributes.insert(name, value.into_owned()).is_some() {
            let name = attribute.key.0.escape_debug();
            return Err(Error::malformed(format!(
                "has an element with the attribute {name} twice"
            )));
        }
    }
    Ok(element)
}

fn fault(error: impl std::fmt::Display) -> Error {
    Error::malformed("is no XML").cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_tree_and_damage_is_an_error() {
        let text = r#"<?xml version="1.0"?><a x="1&amp;2"><b>c &lt; d &#65;</b><b/></a>"#;
        let root = Element::parse(text.as_bytes()).unwrap();
        assert_eq!((root.attribute("x"), root.text_of("b")), ("1&2", "c < d A"));
        assert_eq!(root.all("b").count(), 2);
        for len in 22..text.len() {
            assert!(Element::parse(&text.as_bytes()[..len]).is_err(), "{len}");
        }
        assert!(Element::parse("<a>".repeat(100).as_bytes()).is_err());
        let error = Element::parse(b"<a x='1' y='2' x='3'/>").unwrap_err().to_string();
        assert!(error.contains("attribute x twice"), "{error}");
        assert!(Element::parse(b"\xff").is_err());
    }
}
