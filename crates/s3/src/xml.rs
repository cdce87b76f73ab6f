//! XML as S3 speaks it: documents that are written, and small ones that clients send.
//!
//! Always holds: what is written is well-formed, whatever the text; what is read has no DTD, no entities of its own,
//! and at most [`MAX_DEPTH`] levels and [`MAX_ELEMENTS`]; namespaces are read past. The size is limited before a
//! document
//! is read.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use vocabulary::markup;

/// The namespace of S3's documents.
pub const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// Elements within elements; S3's own documents have six levels.
const MAX_DEPTH: usize = 32;
/// Elements of a document: ten thousand parts of an upload have six each. An empty one takes forty times as much memory
/// as
/// its four bytes, so that the size of a document does not bound what it is read into.
pub(crate) const MAX_ELEMENTS: usize = 100_000;

/// Writes a document from its root to its end.
pub struct XmlWriter {
    out: String,
    open: Vec<&'static str>,
}

impl XmlWriter {
    /// A document with this root, in S3's namespace.
    pub fn document(root: &'static str) -> Self {
        let mut writer = Self::begun();
        writer.out.push_str(&format!("<{root} xmlns=\"{NAMESPACE}\">"));
        writer.open.push(root);
        writer
    }

    /// A document with this root, in the namespace of the security token service.
    pub fn sts(root: &'static str) -> Self {
        let mut writer = Self::begun();
        writer.open_with(root, "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"");
        writer
    }

    /// A document with this root and no namespace.
    pub fn plain(root: &'static str) -> Self {
        let mut writer = Self::begun();
        writer.open(root);
        writer
    }

    fn begun() -> Self {
        Self {
            out: "<?xml version='1.0' encoding='UTF-8'?>\n".to_owned(),
            open: Vec::new(),
        }
    }

    /// Begins an element.
    pub fn open(&mut self, name: &'static str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
        self.open.push(name);
    }

    /// Begins an element with these attributes, which are this program's own.
    pub fn open_with(&mut self, name: &'static str, attributes: &str) {
        self.out.push_str(&format!("<{name} {attributes}>"));
        self.open.push(name);
    }

    /// Ends the element that was begun last.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
        }
    }

    /// An element with nothing but text.
    pub fn text(&mut self, name: &'static str, text: &str) {
        self.open(name);
        markup::push_text(&mut self.out, text);
        self.close();
    }

    /// Text in the element that was begun last.
    pub fn content(&mut self, text: &str) {
        markup::push_text(&mut self.out, text);
    }

    /// An element with a number.
    pub fn number(&mut self, name: &'static str, number: u64) {
        self.text(name, &number.to_string());
    }

    /// The whole, every element ended.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }
}

/// An element that a client sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Element {
    /// Without its namespace.
    pub name: String,
    /// Its own text, of which S3 ignores the white space around it.
    pub text: String,
    /// Its attribute `xsi:type`, empty without one; no other attribute means anything.
    pub kind: String,
    /// What is in it, in order.
    pub children: Vec<Element>,
}

/// The document is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the document is not well-formed XML without a DTD")]
pub struct XmlError;

impl Element {
    /// Reads a document.
    pub fn parse(document: &[u8]) -> Result<Self, XmlError> {
        Self::read(document, false)
    }

    /// Reads a document that may have a DTD, of which nothing is read: where text has an entity of it, the rest of that
    /// text is dropped.
    pub fn parse_passing_dtd(document: &[u8]) -> Result<Self, XmlError> {
        Self::read(document, true)
    }

    fn read(document: &[u8], passes_dtd: bool) -> Result<Self, XmlError> {
        let text = std::str::from_utf8(document).map_err(|_| XmlError)?;
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_end_names = true;
        let mut path: Vec<Element> = Vec::new();
        let mut root = None;
        let (mut count, mut has_dtd) = (0, false);
        // How deep the element lies of whose text the rest is dropped.
        let mut cut = None;
        loop {
            let event = reader.read_event().map_err(|_| XmlError)?;
            count += usize::from(matches!(event, Event::Start(_) | Event::Empty(_)));
            if count > MAX_ELEMENTS {
                return Err(XmlError);
            }
            match event {
                Event::Start(_) if root.is_some() || path.len() >= MAX_DEPTH => return Err(XmlError),
                Event::Start(start) => path.push(Element::begun_by(&start)),
                Event::Empty(_) if path.is_empty() && root.is_some() => return Err(XmlError),
                Event::Empty(start) => {
                    let element = Element::begun_by(&start);
                    place(&mut path, &mut root, element);
                }
                Event::End(_) => {
                    cut = cut.filter(|depth| *depth < path.len());
                    let element = path.pop().ok_or(XmlError)?;
                    place(&mut path, &mut root, element);
                }
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) if cut == Some(path.len()) => {}
                Event::Text(text) => {
                    push_text(&mut path, &text.xml_content(XmlVersion::Explicit1_0))?;
                }
                Event::CData(data) => push_text(&mut path, &data.xml_content(XmlVersion::Explicit1_0))?,
                Event::GeneralRef(reference) => match resolve(&reference) {
                    Some(character) => push_text(&mut path, &character)?,
                    None if has_dtd && !reference.is_char_ref() => cut = Some(path.len()),
                    None => return Err(XmlError),
                },
                Event::DocType(_) if passes_dtd && !has_dtd && path.is_empty() && root.is_none() => has_dtd = true,
                Event::DocType(_) | Event::PI(_) => return Err(XmlError),
                Event::Comment(_) | Event::Decl(_) => {}
                Event::Eof if path.is_empty() => return root.ok_or(XmlError),
                Event::Eof => return Err(XmlError),
            }
        }
    }

    fn begun_by(start: &BytesStart<'_>) -> Self {
        let mut element = Self {
            name: start.local_name().as_ref().to_owned(),
            ..Self::default()
        };
        // Without a look for attributes that come twice, which takes the square of their number.
        for attribute in start.attributes().with_checks(false).flatten() {
            if attribute.key.prefix().is_some() && attribute.key.local_name().as_ref() == "type" {
                element.kind = attribute.value.into_owned();
                break;
            }
        }
        element
    }

    /// The first element of this name in it.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the first element of this name in it, without white space around it.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim())
    }

    /// All elements of this name in it.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

fn place(path: &mut [Element], root: &mut Option<Element>, element: Element) {
    match path.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

fn push_text(path: &mut [Element], text: &str) -> Result<(), XmlError> {
    match path.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(XmlError),
    }
    Ok(())
}

/// A character reference, or one of XML's five entities; a document can have no others.
fn resolve(reference: &quick_xml::events::BytesRef<'_>) -> Option<String> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character.to_string());
    }
    let name = reference.xml_content(XmlVersion::Explicit1_0);
    quick_xml::escape::resolve_predefined_entity(&name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_with_their_references() {
        let read = Element::parse(
            b"<?xml version=\"1.0\"?><Delete xmlns=\"x\"><Object><Key> a&amp;&#x62; <![CDATA[<]]></Key></Object>\
              <Quiet/></Delete>\n",
        )
        .unwrap();
        assert_eq!(read.name, "Delete");
        assert_eq!(read.child("Object").unwrap().child("Key").unwrap().text, " a&b <");
        assert_eq!(read.text_of("Quiet"), Some(""));
        assert_eq!(read.all("Object").count(), 1);
    }

    #[test]
    fn what_is_no_plain_document_is_refused() {
        let deep = "<a>".repeat(40) + &"</a>".repeat(40);
        for bad in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a>&lol;</a>",
            "<!DOCTYPE a [<!ENTITY lol \"x\">]><a/>",
            "<a/>text",
            "<?php x?><a/>",
            deep.as_str(),
        ] {
            assert_eq!(Element::parse(bad.as_bytes()), Err(XmlError), "{bad}");
        }
        assert_eq!(Element::parse(b"<a>\xff</a>"), Err(XmlError));
        let wide = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count - 1));
        assert!(Element::parse(wide(MAX_ELEMENTS).as_bytes()).is_ok());
        assert_eq!(Element::parse(wide(MAX_ELEMENTS + 1).as_bytes()), Err(XmlError));
    }

    #[test]
    fn text_is_escaped() {
        let mut xml = XmlWriter::document("R");
        xml.open("A");
        xml.text("B", "<\r");
        assert!(xml.finish().ends_with("/\"><A><B>&lt;&#13;</B></A></R>"));
    }
}
