//! XML as a tree of elements with attributes, each with the line it begins on. Text between elements is left out.
//!
//! Always holds: entities other than XML's own are refused, so that nothing expands; at most [`MOST_ELEMENTS`] elements
//! nested [`DEEPEST`] deep are taken.

use super::mistake::{WorkloadMistake, one_of};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

const MOST_ELEMENTS: usize = 100_000;
const DEEPEST: usize = 32;

/// An element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlElement {
    /// Its name.
    pub name: String,
    /// Where it begins, from 1 on.
    pub line: usize,
    /// In their order.
    pub attributes: Vec<(String, String)>,
    /// In their order.
    pub children: Vec<XmlElement>,
}

impl XmlElement {
    /// Reads a document.
    pub fn parse(text: &str) -> Result<Self, WorkloadMistake> {
        let mut reader = Reader::from_str(text);
        let (mut open, mut root, mut count): (Vec<XmlElement>, Option<XmlElement>, usize) = (vec![], None, 0);
        let mut lines = Lines { text, at: 0, line: 1 };
        loop {
            let line = lines.of(reader.buffer_position());
            let event = reader
                .read_event()
                .map_err(|error| WorkloadMistake::new(format!("this is no XML: {error}")).on_line(line))?;
            let closed = match event {
                Event::Start(start) => {
                    open.push(element(&start, line)?);
                    count += 1;
                    None
                }
                Event::Empty(start) => {
                    count += 1;
                    Some(element(&start, line)?)
                }
                Event::End(_) => open.pop(),
                Event::Eof => break,
                _ => None,
            };
            if count > MOST_ELEMENTS || open.len() > DEEPEST {
                let most = format!("expected at most {MOST_ELEMENTS} elements, nested at most {DEEPEST} deep");
                return Err(WorkloadMistake::new(most).on_line(line));
            }
            if let Some(closed) = closed {
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None if root.is_none() => root = Some(closed),
                    None => return Err(WorkloadMistake::new("a second root element").on_line(closed.line)),
                }
            }
        }
        match open.last() {
            Some(open) => Err(WorkloadMistake::new(format!("<{}> is not closed", open.name)).on_line(open.line)),
            None => root.ok_or_else(|| WorkloadMistake::new("there is no element in it")),
        }
    }

    /// The value of an attribute, trimmed.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        all.find(|(known, _)| known == name).map(|(_, value)| value.trim())
    }

    /// Refuses attributes and children that are not among these.
    pub fn allow(&self, attributes: &[&str], children: &[&str]) -> Result<(), WorkloadMistake> {
        if let Some((name, _)) = self
            .attributes
            .iter()
            .find(|(name, _)| !attributes.contains(&name.as_str()))
        {
            let allowed = match attributes {
                [] => "no attribute".to_owned(),
                some => one_of(some.iter().copied()),
            };
            return Err(self.mistake(WorkloadMistake::new(format!("attribute {name}: expected {allowed}"))));
        }
        if let Some(child) = self
            .children
            .iter()
            .find(|child| !children.contains(&child.name.as_str()))
        {
            let allowed = match children {
                [] => "nothing".to_owned(),
                some => one_of(some.iter().copied()),
            };
            let what = WorkloadMistake::new(format!("<{}> inside it: expected {allowed}", child.name));
            return Err(what.within(self).on_line(child.line));
        }
        Ok(())
    }

    /// Says that a mistake is in this element.
    pub fn mistake(&self, what: WorkloadMistake) -> WorkloadMistake {
        what.within(self).on_line(self.line)
    }

    /// Children with a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a XmlElement> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

impl std::fmt::Display for XmlElement {
    /// `<work name="main">`: as much as finds it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = ["name", "type"]
            .into_iter()
            .find_map(|name| Some((name, self.get(name)?)));
        match known {
            Some((attribute, value)) => write!(f, "<{} {attribute}=\"{value}\">", self.name),
            None => write!(f, "<{}>", self.name),
        }
    }
}

fn element(start: &BytesStart<'_>, line: usize) -> Result<XmlElement, WorkloadMistake> {
    let wrong = |error: &dyn std::fmt::Display| WorkloadMistake::new(format!("this is no XML: {error}")).on_line(line);
    let mut attributes = vec![];
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| wrong(&error))?;
        let value = quick_xml::escape::unescape(&attribute.value).map_err(|error| wrong(&error))?;
        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(XmlElement {
        name: start.name().as_ref().to_owned(),
        line,
        attributes,
        children: vec![],
    })
}

/// Lines of positions, which only grow.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of the next thing at or after a position that is no space.
    fn of(&mut self, position: u64) -> usize {
        let position = usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len());
        let bytes = self.text.as_bytes();
        let spaces = bytes[position..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let to = position + spaces;
        if to > self.at {
            self.line += bytes[self.at..to].iter().filter(|byte| **byte == b'\n').count();
            self.at = to;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::XmlElement;

    #[test]
    fn a_tree_knows_its_lines() {
        let root = XmlElement::parse(
            "<?xml version=\"1.0\"?>\n<a x='1'>\n  <!-- no -->\n\n  <b y=\"&lt;&#65;\"/>\n  <c>text</c></a>\n",
        )
        .unwrap();
        assert_eq!((root.name.as_str(), root.line, root.get("x")), ("a", 2, Some("1")));
        let lines: Vec<_> = root
            .children
            .iter()
            .map(|child| (child.name.as_str(), child.line))
            .collect();
        assert_eq!(lines, [("b", 5), ("c", 6)]);
        assert_eq!(root.children[0].get("y"), Some("<A"));
    }

    #[test]
    fn what_is_no_tree_is_refused_with_its_line() {
        for (text, line) in [
            ("", 0),
            ("<a>", 1),
            ("<a>\n</b>", 2),
            ("<a/><b/>", 1),
            ("\n<a x=\"&lol;\"/>", 2),
            ("<a x=1/>", 1),
            ("<a x='1' x='2'/>", 1),
        ] {
            assert_eq!(XmlElement::parse(text).map_err(|error| error.line), Err(line), "{text}");
        }
        let deep = "<a>".repeat(100);
        assert!(XmlElement::parse(&deep).unwrap_err().what.contains("nested at most 32"));
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        let root = XmlElement::parse("<work name='m' wrokers='1'>\n<op/></work>").unwrap();
        let refused = root.allow(&["name", "workers"], &["operation"]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "line 1: <work name=\"m\">: attribute wrokers: expected name or workers"
        );
        let refused = root.allow(&["name", "wrokers"], &["operation"]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "line 2: <work name=\"m\">: <op> inside it: expected operation"
        );
    }
}
