//! Parses the XML of indexes into trees. Memory is proportional to the input.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use rockpack_core::error::{Error, Kind, Result};

/// Maximum depth of elements; indexes are less deep.
const DEPTH_MAX: usize = 16;

/// Minimum average bytes per element or attribute; real lists have at least 15. In memory, each takes about a hundred.
const SHORTEST: usize = 10;

/// Elements and attributes that any document may have, however short.
const BASE_ALLOWANCE: usize = 1000;

/// Attributes of one element; indexes have five.
const ATTRIBUTES_MAX: usize = 64;

/// Descendants held for one visited element; lists have about thirty per package.
const HELD_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Element {
    /// With the namespace prefix.
    pub name: String,
    /// Sorted by name.
    pub attributes: Vec<(String, String)>,
    /// Without the text of children.
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// Parses a whole document into its root element.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut parser = Parser::new(bytes)?;
        loop {
            match parser.next()? {
                (0, root) => return Ok(root),
                (_, element) => parser.put(element),
            }
        }
    }

    /// The first child with this name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The children with this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of a child, empty if absent.
    pub fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.as_str())
    }

    /// The value of an attribute, empty if absent.
    pub fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.binary_search_by(|(own, _)| own.as_str().cmp(name));
        found.ok().and_then(|at| self.attributes.get(at)).map_or("", |(_, value)| value)
    }

    pub fn attribute_of(&self, child: &str, name: &str) -> &str {
        self.child(child).map_or("", |child| child.attribute(name))
    }
}

/// Calls `visit` with each child of the root named `name`, one at a time, and skips other children. `part` gets each
/// descendant with its open ancestors, and returns it to keep it in the tree, or `None` after it stored what is needed
/// in `T`.
pub fn each_below_root<T: Default>(
    bytes: &[u8],
    name: &str,
    mut part: impl FnMut(&mut T, &[Element], Element) -> Result<Option<Element>>,
    mut visit: impl FnMut(Element, T) -> Result<()>,
) -> Result<()> {
    let mut parser = Parser::new(bytes)?;
    let (mut parts, mut held) = (T::default(), 0);
    loop {
        match parser.next()? {
            (0, _) => return Ok(()),
            (1, element) => {
                let parts = std::mem::take(&mut parts);
                held = 0;
                if element.name == name {
                    visit(element, parts)?;
                }
            }
            (_, element) => {
                if let Some(element) = part(&mut parts, &parser.open, element)? {
                    held += 1;
                    parser.put(element);
                }
            }
        }
        if held > HELD_MAX {
            let message = format!("has more than {HELD_MAX} elements in one {name}");
            return Err(Error::new(Kind::Limit, message));
        }
    }
}

struct Parser<'a> {
    reader: Reader<&'a [u8]>,
    open: Vec<Element>,
    /// The number of further elements and attributes that the input may have.
    left: usize,
}

impl<'a> Parser<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self> {
        let text =
            std::str::from_utf8(bytes).map_err(|e| Error::malformed("is not UTF-8").cause(e))?;
        let left = text.len() / SHORTEST + BASE_ALLOWANCE;
        Ok(Self { reader: Reader::from_str(text), open: Vec::new(), left })
    }

    /// The next closed element with its depth.
    fn next(&mut self) -> Result<(usize, Element)> {
        loop {
            match self.reader.read_event().map_err(fault)? {
                Event::Start(start) => {
                    if self.open.len() == DEPTH_MAX {
                        return Err(Error::malformed("is nested too deep"));
                    }
                    let element = self.element(&start)?;
                    self.open.push(element);
                }
                Event::Empty(start) => return Ok((self.open.len(), self.element(&start)?)),
                Event::Text(text) => self.add(&text),
                Event::GeneralRef(name) => {
                    let character = match name.resolve_char_ref().map_err(fault)? {
                        Some(character) => character.to_string(),
                        None => quick_xml::escape::resolve_predefined_entity(&name)
                            .ok_or_else(|| Error::malformed("has an unknown entity"))?
                            .to_owned(),
                    };
                    self.add(&character);
                }
                Event::End(_) => {
                    let closed = self.open.pop().unwrap_or_default();
                    return Ok((self.open.len(), closed));
                }
                Event::Eof => return Err(Error::truncated("ends inside an element")),
                _ => {}
            }
        }
    }

    /// Adds a closed element to its parent.
    fn put(&mut self, element: Element) {
        if let Some(above) = self.open.last_mut() {
            above.children.push(element);
        }
    }

    fn add(&mut self, text: &str) {
        if let Some(element) = self.open.last_mut() {
            element.text.push_str(text);
        }
    }

    fn element(&mut self, start: &BytesStart<'_>) -> Result<Element> {
        let mut attributes = Vec::new();
        // The reader's own check is quadratic.
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(fault)?;
            let value = quick_xml::escape::unescape(&attribute.value).map_err(fault)?;
            attributes.push((attribute.key.0.to_owned(), value.into_owned()));
            if attributes.len() > ATTRIBUTES_MAX {
                let message = format!("has an element with more than {ATTRIBUTES_MAX} attributes");
                return Err(Error::new(Kind::Limit, message));
            }
        }
        attributes.sort();
        let mut pairs = attributes.iter().zip(attributes.iter().skip(1));
        if let Some(((name, _), _)) = pairs.find(|((one, _), (other, _))| one == other) {
            let name = name.escape_debug();
            return Err(Error::malformed(format!(
                "has an element with the attribute {name} twice"
            )));
        }
        let parts = 1 + attributes.len();
        self.left = self.left.checked_sub(parts).ok_or_else(|| {
            Error::new(Kind::Limit, "has more elements and attributes than lists of packages have")
        })?;
        let name = start.name().0.to_owned();
        Ok(Element { name, attributes, ..Element::default() })
    }
}

fn fault(error: impl std::fmt::Display) -> Error {
    Error::malformed("is not XML").cause(error)
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

    #[test]
    fn elements_below_the_root_are_visited_one_by_one() {
        let text = b"<a><b x='1'><c/>t</b><d><b/></d><b/></a>";
        let mut seen = Vec::new();
        each_below_root(text, "b", keep_c, |b, parts| {
            seen.push((b.attribute("x").to_owned(), b.text.clone(), b.children.len(), parts));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [("1".to_owned(), "t".to_owned(), 1, 1), Default::default()]);
        for len in 0..text.len() {
            assert!(each_below_root(&text[..len], "b", keep_c, |_, _| Ok(())).is_err(), "{len}");
        }
    }

    /// Counts the parts and keeps those that are called `c`.
    fn keep_c(parts: &mut usize, around: &[Element], part: Element) -> Result<Option<Element>> {
        assert_eq!(around.len(), 2);
        *parts += 1;
        Ok((part.name == "c").then_some(part))
    }

    /// Keeps all elements.
    fn all(_: &mut (), _: &[Element], part: Element) -> Result<Option<Element>> {
        Ok(Some(part))
    }

    #[test]
    fn one_element_has_no_endless_parts() {
        assert!(visit_each_b(&list_of_files(HELD_MAX)).is_ok());
        assert_eq!(visit_each_b(&list_of_files(HELD_MAX + 1)).unwrap_err().kind(), Kind::Limit);
        let spread = "<b><c>a text that is</c></b>".repeat(HELD_MAX + 1);
        assert!(visit_each_b(&format!("<a>{spread}</a>")).is_ok());
        assert!(parse_attributes(ATTRIBUTES_MAX).is_ok());
        assert_eq!(parse_attributes(ATTRIBUTES_MAX + 1).unwrap_err().kind(), Kind::Limit);
    }

    fn visit_each_b(text: &str) -> Result<()> {
        each_below_root(text.as_bytes(), "b", all, |_, ()| Ok(()))
    }

    fn list_of_files(count: usize) -> String {
        format!("<a><b>{}</b></a>", "<file>/a/b</file>".repeat(count))
    }

    /// Parses an element with `count` attributes.
    fn parse_attributes(count: usize) -> Result<()> {
        let attributes: String = (0..count).map(|at| format!(" a{at}='1'")).collect();
        Element::parse(format!("<a{attributes}/>").as_bytes()).map(drop)
    }

    #[test]
    fn documents_of_nothing_but_elements_are_refused() {
        for part in ["<b/>", "<b x=''/>", "<b><c/></b>"] {
            let text = format!("<a>{}</a>", part.repeat(100_000));
            for result in [
                Element::parse(text.as_bytes()).map(drop),
                each_below_root(text.as_bytes(), "c", all, |_, ()| Ok(())),
            ] {
                assert_eq!(result.unwrap_err().kind(), Kind::Limit, "{part}");
            }
        }
        let text = format!("<a>{}</a>", "<file>/a/b</file>".repeat(100_000));
        assert_eq!(Element::parse(text.as_bytes()).unwrap().children.len(), 100_000);
    }
}
