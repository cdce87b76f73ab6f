//! The HTML that visitors see: a directory's listing, and why there is none.
//!
//! Always holds: what comes from names, metadata or the query is escaped for the place where it stands; a
//! link never leads above the listing's own directory by accident (dots are encoded).
//! The pages are byte for byte OpenStack Swift's, so that style sheets and scrapers keep working.

use std::fmt::Write;
use vocabulary::names::{query_value, quote};

/// What is shown of an object or directory.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct PageRow {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    subdir: Option<String>,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    content_type: String,
    #[serde(default)]
    last_modified: String,
}

/// A listing's page before its rows are known.
pub(super) struct ListingPage<'a> {
    /// `/v1/a/c/dir/`.
    pub(super) path: &'a str,
    /// How much of it a label replaces: `/v1/a/c`.
    pub(super) root: usize,
    /// `dir/`, or nothing.
    pub(super) directory: &'a str,
    /// Shown instead of the container's path.
    pub(super) label: Option<&'a str>,
    /// The style sheet.
    pub(super) css: Option<&'a str>,
    /// The visitor's query: links carry on what a signed URL says.
    pub(super) query: &'a str,
}

const TABLE_STYLE: &str = "  <style type=\"text/css\">
   h1 {font-size: 1em; font-weight: bold;}
   th {text-align: left; padding: 0px 1em 0px 1em;}
   td {padding: 0px 1em 0px 1em;}
   a {text-decoration: none;}
  </style>
";

const TEXT_STYLE: &str = "  <style type=\"text/css\">
   h1 {font-size: 1em; font-weight: bold;}
   p {font-size: 2}
  </style>
";

const HEADING: &str = "  <table id=\"listing\">
   <tr id=\"heading\">
    <th class=\"colname\">Name</th>
    <th class=\"colsize\">Size</th>
    <th class=\"coldate\">Date</th>
   </tr>
";

impl ListingPage<'_> {
    /// Directories first, then objects.
    pub(super) fn page(&self, rows: &[PageRow]) -> String {
        let title = self.title();
        let mut out = format!(
            "<!DOCTYPE html>\n<html>\n <head>\n  <title>{title}</title>\n{} </head>\n <body>\n  <h1 id=\"title\">{title}</h1>\n{HEADING}",
            self.style(TABLE_STYLE)
        );
        let signed = Signed::read(self.query);
        if signed.as_ref().map_or(!self.directory.is_empty(), |s| {
            s.reaches(parent(self.directory)) && !self.directory.is_empty()
        }) {
            add_row(
                &mut out,
                "id=\"parent\" class=\"item\"",
                "../",
                "../",
                signed.as_ref(),
                ["&nbsp;", "&nbsp;"],
            );
        }
        for subdir in rows.iter().filter_map(|row| row.subdir.as_deref()) {
            let name = self.within(subdir);
            let link = format!("./{}", dotless(name));
            add_row(
                &mut out,
                "class=\"item subdir\"",
                &link,
                name,
                signed.as_ref(),
                ["&nbsp;", "&nbsp;"],
            );
        }
        for row in rows {
            let Some(name) = &row.name else { continue };
            let name = self.within(name);
            let kinds: Vec<String> = row
                .content_type
                .to_lowercase()
                .split('/')
                .map(|part| format!("type-{}", escape(part)))
                .collect();
            let date = row
                .last_modified
                .split('.')
                .next()
                .unwrap_or_default()
                .replace('T', " ");
            add_row(
                &mut out,
                &format!("class=\"item {}\"", kinds.join(" ")),
                &format!("./{}", dotless(name)),
                name,
                signed.as_ref(),
                [&human(row.bytes), &escape(&date)],
            );
        }
        out.push_str("  </table>\n </body>\n</html>\n");
        out
    }

    /// Why there is no listing; `index` is the file that is missing too.
    pub(super) fn disabled(&self, index: Option<&str>) -> String {
        let mut out = format!(
            "<!DOCTYPE html>\n<html>\n<head>\n<title>{}</title>\n{}</head>\n<body>  <h1>Web Listing Disabled</h1>   \
             <p>The owner of this web site has disabled web listing.   \
             <p>If you are the owner of this web site, you can enable   \
             web listing by setting X-Container-Meta-Web-Listings.</p>",
            self.title(),
            self.style(TEXT_STYLE)
        );
        if let Some(index) = index {
            let index = escape(index);
            add(
                &mut out,
                format_args!(
                    "<h1>Index File Not Found</h1> <p>The owner of this web site has set  \
                     <b>X-Container-Meta-Web-Index: {index}</b>.  However, this file is not found.</p>"
                ),
            );
        }
        out.push_str(" </body>\n</html>\n");
        out
    }

    fn title(&self) -> String {
        match self.label {
            None => format!("Listing of {}", escape(self.path)),
            Some(label) => {
                let rest = self.path.get(self.root..).unwrap_or_default();
                format!("Listing of {}", escape(&format!("{label}{rest}")))
            }
        }
    }

    fn style(&self, usual: &str) -> String {
        let Some(css) = self.css else { return usual.to_owned() };
        format!(
            "  <link rel=\"stylesheet\" type=\"text/css\" href=\"{}\" />\n",
            self.css_link(css)
        )
    }

    fn css_link(&self, css: &str) -> String {
        let absolute = ["http://", "https://"].iter().find(|scheme| css.starts_with(*scheme));
        match absolute {
            Some(scheme) => format!("{scheme}{}", quote(&css[scheme.len()..]).replace("%3A", ":")),
            None if css.starts_with('/') => quote(css),
            None => format!("{}{}", "../".repeat(self.directory.matches('/').count()), quote(css)),
        }
    }

    /// A name without the directory that is being listed.
    fn within<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(self.directory).unwrap_or(name)
    }
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

fn add_row(out: &mut String, attributes: &str, link: &str, name: &str, signed: Option<&Signed>, cells: [&str; 2]) {
    let query = signed.map_or("", |signed| signed.query.as_str());
    let (name, [size, date]) = (escape(name), cells);
    add(
        out,
        format_args!(
            "   <tr {attributes}>\n    <td class=\"colname\"><a href=\"{link}{query}\">{name}</a></td>\n    \
             <td class=\"colsize\">{size}</td>\n    <td class=\"coldate\">{date}</td>\n   </tr>\n"
        ),
    );
}

/// `a/b/` lies in `a/`, which lies in nothing.
fn parent(directory: &str) -> &str {
    let inner = directory.strip_suffix('/').unwrap_or(directory);
    inner.rfind('/').map_or("", |slash| &inner[..=slash])
}

/// What links carry on of a signed URL for a prefix.
struct Signed {
    prefix: String,
    /// `?temp_url_prefix=…`, escaped for HTML.
    query: String,
}

impl Signed {
    fn read(query: &str) -> Option<Self> {
        if query.is_empty() {
            return None;
        }
        let value_of = |name: &str| query_value(query, name)?.ok();
        let prefix = value_of("temp_url_prefix")?;
        let mut out = format!("?temp_url_prefix={}", quote(&prefix));
        for name in ["temp_url_expires", "temp_url_sig", "temp_url_ip_range"] {
            if let Some(value) = value_of(name) {
                add(&mut out, format_args!("&amp;{name}={}", quote(&value)));
            }
        }
        if value_of("inline").is_some() {
            out.push_str("&amp;inline");
        }
        Some(Self { prefix, query: out })
    }

    fn reaches(&self, directory: &str) -> bool {
        directory.starts_with(&self.prefix)
    }
}

/// For text and for attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            c => out.push(c),
        }
    }
    out
}

/// A link in which no `.` or `..` can mean a directory.
fn dotless(name: &str) -> String {
    quote(name).replace('.', "%2E")
}

/// `1234` → `1Ki`; halves go to the even neighbour.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let rounded = value.round_ties_even();
    match unit {
        0 => format!("{rounded}"),
        unit => format!("{rounded}{}i", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_as_openstack_shows_them() {
        for (bytes, shown) in [
            (0, "0"),
            (1023, "1023"),
            (1234, "1Ki"),
            (1536, "2Ki"),
            (2560, "2Ki"),
            (5 << 30, "5Gi"),
        ] {
            assert_eq!(human(bytes), shown);
        }
    }

    #[test]
    fn parents() {
        for (directory, expected) in [("", ""), ("a/", ""), ("a/b/", "a/"), ("a//", "a/"), ("/", "")] {
            assert_eq!(parent(directory), expected, "{directory}");
        }
    }

    #[test]
    fn signed_links_do_not_lead_out_of_their_prefix() {
        let listing = |directory| ListingPage {
            path: "/v1/a/c/sub/",
            root: 7,
            directory,
            label: None,
            css: None,
            query: "temp_url_prefix=sub/&temp_url_expires=2024-12-31T00:00:00&temp_url_sig=s&inline&x=y",
        };
        let page = listing("sub/").page(&[]);
        assert!(!page.contains("id=\"parent\""));
        let link = "<a href=\"../?temp_url_prefix=sub/&amp;temp_url_expires=2024-12-31T00%3A00%3A00&amp;temp_url_sig=s&amp;inline\">";
        assert!(listing("sub/deep/").page(&[]).contains(link));
    }

    proptest! {
        #[test]
        fn nothing_breaks_out_of_its_place(path in "\\PC{0,12}", name in "\\PC{0,12}", query in "\\PC{0,24}", css in "\\PC{0,9}") {
            let directory = format!("{name}/");
            let listing = ListingPage {
                path: &path,
                root: 3,
                directory: &directory,
                label: Some(&name),
                css: Some(&css),
                query: &query,
            };
            let rows = [
                PageRow { name: Some(format!("{directory}{name}")), content_type: name.clone(), last_modified: name.clone(), ..PageRow::default() },
                PageRow { subdir: Some(name.clone()), ..PageRow::default() },
            ];
            let plain = PageRow { name: Some("x".into()), ..PageRow::default() };
            let tags = |page: String| page.matches('<').count();
            let clean = ListingPage { path: "x", root: 0, directory: "x/", label: Some("x"), css: Some("x"), query: "" };
            let innocent = [plain, PageRow { subdir: Some("x".into()), ..PageRow::default() }];
            let signed = Signed::read(&query).is_some();
            prop_assert!(signed || tags(listing.page(&rows)) == tags(clean.page(&innocent)));
            prop_assert_eq!(tags(listing.disabled(Some(&name))), tags(clean.disabled(Some("x"))));
        }
    }
}
