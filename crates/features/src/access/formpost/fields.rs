//! The fields of a signed form: what its owner allows, and the signature that says so.
//!
//! Always holds: only fields with a meaning are kept, each cut at [`MAX_VALUE`] bytes, so a form of any size
//! takes little memory; fields behind a file do not count for it.

use super::FormRefusal;
use crate::access::signatures::{KeyScope, Signature, SigningKeys};
use settings::kinds::Digests;
use std::collections::BTreeMap;

/// Bytes of a field's value that are looked at.
pub const MAX_VALUE: usize = 4096;

/// Fields with a meaning.
const KNOWN: [&str; 9] = [
    "redirect",
    "max_file_size",
    "max_file_count",
    "expires",
    "signature",
    "x_delete_at",
    "x_delete_after",
    "content-type",
    "content-encoding",
];

/// Fields so far.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<&'static str, Vec<u8>>);

impl Fields {
    /// Takes a field, if it has a meaning.
    pub fn set(&mut self, name: &str, value: Vec<u8>) {
        let name = name.to_lowercase();
        if let Some(known) = KNOWN.iter().find(|known| **known == name) {
            self.0.insert(known, value);
        }
    }

    /// The value; empty when there is none.
    pub fn get(&self, name: &str) -> &[u8] {
        self.0.get(name).map_or(b"", Vec::as_slice)
    }

    /// The value, if there is one that is not empty.
    pub fn some(&self, name: &str) -> Option<&[u8]> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    /// How many files the form may have.
    pub fn max_file_count(&self) -> Result<i128, FormRefusal> {
        self.number_or_zero("max_file_count", "max_file_count not an integer")
    }

    /// How large each may be.
    pub fn max_file_size(&self) -> Result<i128, FormRefusal> {
        self.number_or_zero("max_file_size", "max_file_size not an integer")
    }

    /// Whether what may be given to an object with its name and content is well formed.
    pub fn check_times(&self) -> Result<(), FormRefusal> {
        let at = "x_delete_at not an integer: Unix timestamp required.";
        let after = "x_delete_after not an integer: Number of seconds required.";
        self.number("x_delete_at", at)?;
        self.number("x_delete_after", after)?;
        Ok(())
    }

    /// Whether the form is still good at `now`.
    pub fn check_expiry(&self, now: u64) -> Result<(), FormRefusal> {
        match self.number_or_zero("expires", "expired not an integer")? {
            expires if expires < i128::from(now) => Err(FormRefusal::Unauthorised("Form Expired")),
            _ => Ok(()),
        }
    }

    /// Whose signature the form has.
    pub fn scope(&self, path: &str, keys: &SigningKeys, allowed: &Digests) -> Option<(KeyScope, &'static str)> {
        let signature = Signature::parse(std::str::from_utf8(self.get("signature")).ok()?)?;
        if !signature.is_allowed(allowed) {
            return None;
        }
        let numbers = ["max_file_size", "max_file_count", "expires"].map(|name| self.some(name).unwrap_or(b"0"));
        let signed = [&[path.as_bytes(), self.get("redirect")], &numbers[..]]
            .concat()
            .join(&b'\n');
        Some((signature.scope(keys, &[signed])?, signature.digest()))
    }

    /// The same of one that means 0 when it is empty.
    fn number_or_zero(&self, name: &str, problem: &'static str) -> Result<i128, FormRefusal> {
        self.some(name).map_or(Ok(0), |_| self.number(name, problem))
    }

    /// A whole number as Python reads it; 0 when the field is missing.
    fn number(&self, name: &str, problem: &'static str) -> Result<i128, FormRefusal> {
        match self.0.get(name) {
            None => Ok(0),
            Some(value) => number(value).ok_or(FormRefusal::Invalid(problem)),
        }
    }
}

fn number(value: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let is_spaced = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits.split('_').all(is_spaced) {
        return None;
    }
    // More digits than fit mean more than anybody has.
    Some(sign * digits.replace('_', "").parse::<i128>().unwrap_or(i128::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(name: &str, value: &str) -> Fields {
        let mut fields = Fields::default();
        fields.set(name, value.into());
        fields
    }

    #[test]
    fn numbers_as_python_reads_them() {
        for (text, expected) in [
            ("5", Some(5)),
            (" 5\n", Some(5)),
            ("-5", Some(-5)),
            ("+1_0", Some(10)),
            ("1__0", None),
            ("", Some(0)),
            (" ", None),
            ("-", None),
            ("5.0", None),
            ("x", None),
        ] {
            assert_eq!(with("MAX_file_count", text).max_file_count().ok(), expected, "{text:?}");
        }
        assert_eq!(Fields::default().max_file_size().ok(), Some(0));
        assert!(with("expires", &"9".repeat(1000)).check_expiry(5).is_ok());
        assert_eq!(
            with("expires", "4").check_expiry(5),
            Err(FormRefusal::Unauthorised("Form Expired"))
        );
        assert_eq!(
            Fields::default().check_expiry(5),
            Err(FormRefusal::Unauthorised("Form Expired"))
        );
    }

    #[test]
    fn only_fields_with_a_meaning_are_kept() {
        assert!(with("x-object-meta-a", "1").0.is_empty());
        assert_eq!(with("Content-Type", "a/b").some("content-type"), Some(&b"a/b"[..]));
        assert_eq!(with("redirect", "").some("redirect"), None);
    }

    proptest! {
        #[test]
        fn any_value_is_a_number_or_not(value in prop::collection::vec(any::<u8>(), 0..50), text in "[-+_0-9 ]{0,60}") {
            let _ = number(&value);
            let _ = number(text.as_bytes());
        }
    }
}
