//! `form-signature`: signs an upload form for browsers and prints it, for the `formpost` filter.
//!
//! Compared with `swift-form-signature` in `tests/operator/test_small_tools.py`. Quotation marks and angle brackets in
//! what was given are written as HTML wants them, where OpenStack's program prints a form that is broken.

use crate::console::{Console, ToolStatus};
use clap::Args;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use std::io;
use world::World;

const SYNTAX: &str = include_str!("form_signature.txt");

/// The command line of `form-signature`.
#[derive(Debug, Args)]
pub struct FormSignatureArguments {
    /// PATH REDIRECT MAX_FILE_SIZE MAX_FILE_COUNT SECONDS KEY: the prefix of the objects' names
    /// (/v1/account/container/prefix), where to send the browser afterwards (may be empty), the largest file in bytes,
    /// how many files at most, for how many seconds from now, and the account's or container's Temp-URL key.
    #[arg(value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// A form to sign.
struct Form<'a> {
    path: &'a str,
    redirect: &'a str,
    max_file_size: i128,
    max_file_count: i128,
    expires: i128,
    key: &'a str,
}

/// Signs and prints.
pub fn run(arguments: &FormSignatureArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let [path, redirect, size, count, seconds, key] = arguments.words.as_slice() else {
        console.say(SYNTAX.trim_end())?;
        return Ok(ToolStatus::FAILURE);
    };
    let Some(max_file_size) = pythonic::int(size).filter(|size| *size >= 0) else {
        return console.fail("Please use a <max_file_size> value greater than or equal to 0.");
    };
    let Some(max_file_count) = pythonic::int(count).filter(|count| *count > 0) else {
        return console.fail("Please use a positive <max_file_count> value.");
    };
    let now = world.clock.now().as_f64();
    let expires = pythonic::int(seconds).map(|seconds| (now + seconds as f64) as i128);
    let Some(expires) = expires.filter(|expires| *expires > 0) else {
        return console.fail("Please use a positive <seconds> value.");
    };
    if !names_a_container(path) {
        console.say("<path> must point to a container at least.")?;
        console.say("For example: /v1/account/container")?;
        return console.fail("         Or: /v1/account/container/object_prefix");
    }
    let form = Form {
        path,
        redirect,
        max_file_size,
        max_file_count,
        expires,
        key,
    };
    form.print(console)?;
    Ok(ToolStatus::SUCCESS)
}

/// `/v1/account/container` and whatever follows.
fn names_a_container(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("")
        && parts.next() == Some("v1")
        && parts.next().is_some_and(|account| !account.is_empty())
        && parts.next().is_some_and(|container| !container.is_empty())
}

impl Form<'_> {
    fn signature(&self) -> String {
        let (path, redirect, expires) = (self.path, self.redirect, self.expires);
        let (size, count) = (self.max_file_size, self.max_file_count);
        let text = format!("{path}\n{redirect}\n{size}\n{count}\n{expires}");
        let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(self.key.as_bytes()) else {
            return String::new(); // keys of any length are fine
        };
        mac.update(text.as_bytes());
        vocabulary::hex::encode(mac.finalize().into_bytes())
    }

    fn print(&self, console: &mut Console<'_>) -> io::Result<()> {
        let signature = self.signature();
        console.say(format_args!("  Expires: {}", self.expires))?;
        console.say(format_args!("Signature: {signature}"))?;
        console.say("")?;
        console.say("Sample form:\n")?;
        console.say("NOTE: the <form> tag's \"action\" attribute does not contain the Swift cluster's hostname.")?;
        console.say("You should manually add it before using the form.\n")?;
        let action = quoted(self.path);
        console.say(format_args!(
            "<form action=\"{action}\" method=\"POST\" enctype=\"multipart/form-data\">"
        ))?;
        if !self.redirect.is_empty() {
            hidden(console, "redirect", quoted(self.redirect))?;
        }
        hidden(console, "max_file_size", self.max_file_size)?;
        hidden(console, "max_file_count", self.max_file_count)?;
        hidden(console, "expires", self.expires)?;
        hidden(console, "signature", signature)?;
        console.say(format_args!(
            "  <!-- This signature allows for at most {} files, -->",
            self.max_file_count
        ))?;
        console.say("  <!-- but it may also have any smaller number. -->")?;
        console.say("  <!-- Remove file inputs as needed. -->")?;
        for number in 0..self.max_file_count {
            console.say(format_args!(
                "  <input type=\"file\" name=\"file{number}\" />\n  <br />"
            ))?;
        }
        console.say("  <input type=\"submit\" />\n</form>")
    }
}

fn hidden(console: &mut Console<'_>, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    console.say(format_args!(
        "  <input type=\"hidden\" name=\"{name}\" value=\"{value}\" />"
    ))
}

/// As the value of an attribute.
fn quoted(text: &str) -> String {
    text.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(words: &[&str]) -> (ToolStatus, String) {
        let arguments = FormSignatureArguments {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let (mut out, mut err) = (vec![], vec![]);
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            shows_progress: false,
        };
        let status = run(&arguments, &World::real(), &mut console).unwrap();
        (status, String::from_utf8(out).unwrap())
    }

    #[test]
    fn signs_as_formpost_checks() {
        let form = Form {
            path: "/v1/a/c/o",
            redirect: "http://x/",
            max_file_size: 100,
            max_file_count: 5,
            expires: 1_795_248_891,
            key: "key",
        };
        assert_eq!(form.signature(), "522472470c3bb705d90cf2e23c5f31d24385893d");
    }

    #[test]
    fn refuses_what_formpost_would_refuse() {
        let good = ["/v1/a/c", "", "5", "1", "60", "key"];
        assert_eq!(outcome(&good).0, ToolStatus::SUCCESS);
        for (place, wrong) in [
            (0, "/v1/a"),
            (0, "/v1/a//b"),
            (2, "-1"),
            (3, "0"),
            (4, "1.5"),
            (4, "-99999999999"),
        ] {
            let mut words = good;
            words[place] = wrong;
            assert_eq!(outcome(&words).0, ToolStatus::FAILURE, "{words:?}");
        }
        assert!(outcome(&good[..5]).1.starts_with("Syntax: swift-form-signature <path>"));
    }
}
