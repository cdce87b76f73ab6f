//! What listings look like: plain names, JSON as Python spells it, XML as ElementTree does.
//!
//! Entries are written as they come from the database; the whole listing is one buffer.
//! Always holds: plain text inside JSON and XML is escaped, so no name can break out of its place or
//! make XML ill-formed; a listing takes no more than [`MOST`], whatever names another replica's database has brought.
//! One that would is refused rather than cut short, because clients take a page that is not full for the last.

use crate::accept::ListingFormat;
use listing_engine::{ContainerEntry, Entry, ObjectEntry, listed_content_type};
use std::fmt::Write;
use vocabulary::Policies;
use vocabulary::markup::{push_attribute, push_text};

/// A listing under construction.
pub(crate) struct ListingText {
    format: ListingFormat,
    text: String,
    count: usize,
    most: usize,
    is_too_long: bool,
    /// The element that XML wraps a listing in, and the name of what is listed.
    of: (&'static str, String),
}

/// Bytes of a listing, as many as a gateway reads of one: ten thousand of the longest names of the default constraints,
/// each byte of them escaped, have half as many.
const MOST: usize = 128 << 20;

/// Bytes that one of a name becomes in JSON, at most (`\u0001`); in XML, too (`&quot;`).
const LONGEST_ESCAPE: usize = 6;

const XML_HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

impl ListingText {
    /// Of the objects of a container.
    pub(crate) fn of_container(format: ListingFormat, name: &str) -> Self {
        Self::new(format, "container", name)
    }

    /// Of the containers of an account.
    pub(crate) fn of_account(format: ListingFormat, name: &str) -> Self {
        Self::new(format, "account", name)
    }

    fn new(format: ListingFormat, element: &'static str, name: &str) -> Self {
        Self {
            format,
            // Nothing is put before a long text later on, which would be copied.
            text: if format == ListingFormat::Json { "[" } else { "" }.to_owned(),
            count: 0,
            most: MOST,
            is_too_long: false,
            of: (element, name.to_owned()),
        }
    }

    /// Whether anything is listed.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The whole text; none for one that is too long.
    pub(crate) fn finish(mut self) -> Option<String> {
        (!self.is_too_long).then(|| self.whole())
    }

    fn whole(&mut self) -> String {
        let (element, name) = &self.of;
        match (self.format, *element) {
            (ListingFormat::Plain, _) => std::mem::take(&mut self.text),
            (ListingFormat::Json, _) => {
                self.text.push(']');
                std::mem::take(&mut self.text)
            }
            (_, "account") => {
                let name = attribute(name);
                format!("{XML_HEAD}<account name=\"{name}\">\n{}</account>", self.text)
            }
            _ if self.count == 0 => format!("{XML_HEAD}<container name=\"{}\" />", attribute(name)),
            _ => format!(
                "{XML_HEAD}<container name=\"{}\">{}</container>",
                attribute(name),
                self.text
            ),
        }
    }

    /// Notes one more entry; false when there may be no room for it.
    fn begin(&mut self, name: &str) -> bool {
        if self.text.len() + LONGEST_ESCAPE * name.len() > self.most {
            self.is_too_long = true;
            self.text = String::new();
        }
        if self.is_too_long {
            return false;
        }
        if self.format == ListingFormat::Json && self.count > 0 {
            self.text.push_str(", ");
        }
        self.count += 1;
        true
    }

    fn shared(&mut self, prefix: &str) {
        match (self.format, self.of.0) {
            (ListingFormat::Plain, _) => self.plain(prefix),
            (ListingFormat::Json, _) => {
                self.text.push_str("{\"subdir\": ");
                pythonic::json_text(&mut self.text, prefix);
                self.text.push('}');
            }
            (_, "account") => {
                self.text.push_str("<subdir name=\"");
                self.text.push_str(&attribute(prefix));
                self.text.push_str("\" />\n");
            }
            _ => {
                self.text.push_str("<subdir name=\"");
                self.text.push_str(&attribute(prefix));
                self.text.push_str("\"><name>");
                push_text(&mut self.text, prefix);
                self.text.push_str("</name></subdir>");
            }
        }
    }

    fn plain(&mut self, name: &str) {
        self.text.push_str(name);
        self.text.push('\n');
    }

    /// Adds a line of a container's listing.
    pub(crate) fn object(&mut self, entry: Entry<'_, ObjectEntry<'_>>) {
        let (Entry::Shared(name) | Entry::Item(ObjectEntry { name, .. })) = entry;
        if !self.begin(name) {
            return;
        }
        let object = match entry {
            Entry::Shared(prefix) => return self.shared(prefix),
            Entry::Item(object) => object,
        };
        let (content_type, size) = listed_content_type(object.content_type);
        let (size, modified) = (size.unwrap_or(object.size), object.timestamp.iso());
        let text = &mut self.text;
        match self.format {
            ListingFormat::Plain => self.plain(object.name),
            ListingFormat::Json => {
                number(text, "{\"bytes\": ", size);
                json_field(text, ", \"hash\": ", object.etag);
                json_field(text, ", \"name\": ", object.name);
                json_field(text, ", \"content_type\": ", &content_type);
                json_field(text, ", \"last_modified\": ", &modified);
                text.push('}');
            }
            ListingFormat::Xml | ListingFormat::TextXml => {
                xml_field(text, "<object><name>", object.name);
                xml_field(text, "</name><hash>", object.etag);
                number(text, "</hash><bytes>", size);
                xml_field(text, "</bytes><content_type>", &content_type);
                xml_field(text, "</content_type><last_modified>", &modified);
                text.push_str("</last_modified></object>");
            }
        }
    }

    /// Adds a line of an account's listing.
    pub(crate) fn container(&mut self, entry: Entry<'_, ContainerEntry<'_>>, policies: &Policies) {
        let (Entry::Shared(name) | Entry::Item(ContainerEntry { name, .. })) = entry;
        if !self.begin(name) {
            return;
        }
        let container = match entry {
            Entry::Shared(prefix) => return self.shared(prefix),
            Entry::Item(container) => container,
        };
        let modified = container.put_timestamp.iso();
        let policy = policies.get(container.policy).map(|policy| policy.name.as_str());
        let text = &mut self.text;
        match self.format {
            ListingFormat::Plain => self.plain(container.name),
            ListingFormat::Json => {
                json_field(text, "{\"name\": ", container.name);
                number(text, ", \"count\": ", container.object_count);
                number(text, ", \"bytes\": ", container.bytes_used);
                json_field(text, ", \"last_modified\": ", &modified);
                if let Some(policy) = policy {
                    json_field(text, ", \"storage_policy\": ", policy);
                }
                text.push('}');
            }
            ListingFormat::Xml | ListingFormat::TextXml => {
                xml_field(text, "<container><name>", container.name);
                number(text, "</name><count>", container.object_count);
                number(text, "</count><bytes>", container.bytes_used);
                xml_field(text, "</bytes><last_modified>", &modified);
                text.push_str("</last_modified>");
                if let Some(policy) = policy {
                    xml_field(text, "<storage_policy>", policy);
                    text.push_str("</storage_policy>");
                }
                text.push_str("</container>\n");
            }
        }
    }
}

fn number(text: &mut String, before: &str, number: u64) {
    text.push_str(before);
    // Writing to a String cannot fail.
    let _ = write!(text, "{number}");
}

fn json_field(text: &mut String, before: &str, value: &str) {
    text.push_str(before);
    pythonic::json_text(text, value);
}

fn xml_field(text: &mut String, before: &str, value: &str) {
    text.push_str(before);
    push_text(text, value);
}

/// The inside of an attribute as ElementTree writes it.
fn attribute(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    push_attribute(&mut text, value);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vocabulary::{PolicyIndex, Timestamp};

    fn entry(name: &str) -> ObjectEntry<'_> {
        ObjectEntry {
            name,
            timestamp: Timestamp::from_seconds(1_700_000_000),
            size: 7,
            content_type: "text/plain;swift_bytes=77;charset=x",
            etag: "e",
            deleted: false,
            policy: PolicyIndex(0),
        }
    }

    #[test]
    fn spelled_as_openstack_spells_them() {
        let mut listing = ListingText::of_container(ListingFormat::Json, "c");
        listing.object(Entry::Item(entry("x\"\\ ö\u{1}")));
        listing.object(Entry::Shared("𝄞/"));
        assert_eq!(
            listing.finish().unwrap(),
            "[{\"bytes\": 77, \"hash\": \"e\", \"name\": \"x\\\"\\\\ \\u00f6\\u0001\", \
             \"content_type\": \"text/plain;charset=x\", \"last_modified\": \"2023-11-14T22:13:20.000000\"}, \
             {\"subdir\": \"\\ud834\\udd1e/\"}]"
        );
        let mut listing = ListingText::of_container(ListingFormat::Xml, "c<\"");
        listing.object(Entry::Item(entry("a&b")));
        listing.object(Entry::Shared("s/"));
        assert_eq!(
            listing.finish().unwrap(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<container name=\"c&lt;&quot;\"><object><name>a&amp;b</name>\
             <hash>e</hash><bytes>77</bytes><content_type>text/plain;charset=x</content_type>\
             <last_modified>2023-11-14T22:13:20.000000</last_modified></object>\
             <subdir name=\"s/\"><name>s/</name></subdir></container>"
        );
        assert!(ListingText::of_container(ListingFormat::Plain, "c").is_empty());
    }

    #[test]
    fn a_listing_that_is_too_long_is_none() {
        for format in [ListingFormat::Plain, ListingFormat::Json, ListingFormat::Xml] {
            let name = "\u{1}".repeat(100_000);
            let mut listing = ListingText::of_container(format, "c");
            for _ in 0..1_200 {
                listing.object(Entry::Item(entry(&name)));
                assert!(listing.text.len() <= MOST);
            }
            assert_eq!(listing.finish().is_none(), format != ListingFormat::Plain, "{format:?}");
        }
        let mut listing = ListingText::of_account(ListingFormat::Json, "a");
        listing.most = 1000;
        for prefix in ["a/", "b/", "c/"] {
            listing.container(Entry::Shared(&prefix.repeat(30)), &Policies::default());
        }
        assert_eq!(listing.finish().map(|text| text.len()), Some(3 * (60 + 14) + 2 * 2 + 2));
    }

    proptest! {
        #[test]
        fn any_name_stays_in_its_place(name in any::<String>()) {
            let mut listing = ListingText::of_container(ListingFormat::Json, &name);
            listing.object(Entry::Item(entry(&name)));
            let parsed: serde_json::Value = serde_json::from_str(&listing.finish().unwrap()).unwrap();
            prop_assert_eq!(parsed[0]["name"].as_str(), Some(name.as_str()));
        }
    }
}
