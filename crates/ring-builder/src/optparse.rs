//! Words on a command line as Python's optparse reads them, which OpenStack's programs read theirs with.
//!
//! Comes in: which options there are ([`OptionName`]) and the words. Goes out: each option with its value, in the order
//! of the line, and the other words.
//! Always holds: an option's value is what follows, whatever it begins with (`-p=x` gives `=x`); long names may be
//! shortened as far as one is meant; nothing behind `--help` is looked at.
//! Deliberately absent: what options and values mean (`options.rs` here, clap in `martlet`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// An option as the parser knows it.
#[derive(Debug, Clone)]
pub struct OptionName<'n, T> {
    /// What the caller gets when the option is given.
    pub option: T,
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// Its long names, without dashes; messages have the first.
    pub longs: Vec<&'n str>,
    /// Whether a value follows it.
    pub takes_value: bool,
    /// Whether long names count in full only, as those do that OpenStack's program does not have: what is short for one
    /// of its own options stays so.
    pub exact: bool,
}

/// An option on the line: which one, how messages name it (`-p`, `--policy`), and its value, if it takes one.
#[derive(Debug)]
pub struct GivenOption<'w, T> {
    /// Which.
    pub option: T,
    /// `-p`, `--policy`.
    pub shown: String,
    /// What follows it.
    pub value: Option<&'w OsStr>,
}

/// What keeps a line from being read. The text is optparse's sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionMistake {
    /// There is no such option, or several may be meant.
    Unknown(String),
    /// A flag has got a value.
    ValueUnwanted(String),
    /// The value is missing.
    ValueMissing(String),
}

impl OptionMistake {
    /// The sentence.
    pub fn into_text(self) -> String {
        match self {
            OptionMistake::Unknown(text) | OptionMistake::ValueUnwanted(text) | OptionMistake::ValueMissing(text) => {
                text
            }
        }
    }
}

/// What stands on a line beside its options.
#[derive(Debug, PartialEq, Eq)]
pub enum OtherWords<'w> {
    /// These words.
    Words(Vec<&'w OsStr>),
    /// Help is asked for; the rest of the line does not count.
    Help,
}

/// Reads a line and passes each option to `take`; its refusal ends the reading.
pub fn read<'w, T: Copy, E: From<OptionMistake>>(
    names: &[OptionName<'_, T>],
    words: &'w [impl AsRef<OsStr>],
    take: impl FnMut(GivenOption<'w, T>) -> Result<(), E>,
) -> Result<OtherWords<'w>, E> {
    let words = words.iter().map(AsRef::as_ref);
    OptionLine { names, words, take }.read()
}

/// A line, and how far it has been read.
struct OptionLine<'n, T, W, F> {
    names: &'n [OptionName<'n, T>],
    words: W,
    take: F,
}

impl<'n, 'w, T: Copy, W, F, E> OptionLine<'n, T, W, F>
where
    W: Iterator<Item = &'w OsStr>,
    F: FnMut(GivenOption<'w, T>) -> Result<(), E>,
    E: From<OptionMistake>,
{
    fn read(mut self) -> Result<OtherWords<'w>, E> {
        let mut others = vec![];
        while let Some(word) = self.words.next() {
            let helps = match word.as_bytes() {
                b"--" => {
                    others.extend(self.words.by_ref());
                    false
                }
                [b'-', b'-', long @ ..] => self.long(long)?,
                [b'-', letters @ ..] if !letters.is_empty() => self.letters(letters)?,
                _ => {
                    others.push(word);
                    false
                }
            };
            if helps {
                return Ok(OtherWords::Help);
            }
        }
        Ok(OtherWords::Words(others))
    }

    /// `--name` or `--name=value`; whether it asks for help.
    fn long(&mut self, word: &'w [u8]) -> Result<bool, E> {
        let mut parts = word.splitn(2, |byte| *byte == b'=');
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let value = parts.next();
        let Some(option) = self.named(&name)? else {
            return Ok(true);
        };
        let shown = format!("--{}", option.longs.first().copied().unwrap_or_default());
        if value.is_some() && !option.takes_value {
            let text = format!("{shown} option does not take a value");
            return Err(OptionMistake::ValueUnwanted(text).into());
        }
        self.give(option, shown, value).map(|()| false)
    }

    /// `-abc`: flags, the last of them perhaps with a value; whether one asks for help.
    fn letters(&mut self, letters: &'w [u8]) -> Result<bool, E> {
        for (at, letter) in letters.iter().enumerate() {
            let letter = char::from(*letter);
            let Some(option) = self.names.iter().find(|name| name.short == Some(letter)) else {
                if letter == 'h' {
                    return Ok(true);
                }
                let rest = String::from_utf8_lossy(&letters[at..]);
                let text = format!("no such option: -{}", rest.chars().next().unwrap_or_default());
                return Err(OptionMistake::Unknown(text).into());
            };
            let rest = &letters[at + 1..];
            let value = Some(rest).filter(|rest| option.takes_value && !rest.is_empty());
            self.give(option, format!("-{letter}"), value)?;
            if option.takes_value {
                break;
            }
        }
        Ok(false)
    }

    /// The option of a long name, or of its beginning; none for `--help`.
    fn named(&self, name: &str) -> Result<Option<&'n OptionName<'n, T>>, E> {
        let unknown = |text| Err(OptionMistake::Unknown(text).into());
        if let Some(option) = self.names.iter().find(|option| option.longs.contains(&name)) {
            return Ok(Some(option));
        }
        let begun = |option: &'n OptionName<'n, T>| option.longs.iter().find(|long| long.starts_with(name)).copied();
        let shortened = self.names.iter().filter(|option| !option.exact);
        let mut meant: Vec<(&str, Option<&OptionName<'n, T>>)> = shortened
            .filter_map(|option| Some((begun(option)?, Some(option))))
            .collect();
        if "help".starts_with(name) {
            meant.push(("help", None));
        }
        meant.sort_by_key(|(long, _)| *long);
        match meant[..] {
            [(_, one)] => Ok(one),
            [] => unknown(format!("no such option: --{name}")),
            _ => {
                let all: Vec<String> = meant.iter().map(|(long, _)| format!("--{long}")).collect();
                unknown(format!("ambiguous option: --{name} ({}?)", all.join(", ")))
            }
        }
    }

    /// Passes an option on, with the value that stands beside it or else in the next word.
    fn give(&mut self, option: &OptionName<'_, T>, shown: String, value: Option<&'w [u8]>) -> Result<(), E> {
        let value = match (option.takes_value, value) {
            (false, _) => None,
            (true, Some(value)) => Some(OsStr::from_bytes(value)),
            (true, None) => match self.words.next() {
                Some(word) => Some(word),
                None => {
                    return Err(OptionMistake::ValueMissing(format!("{shown} option requires 1 argument")).into());
                }
            },
        };
        (self.take)(GivenOption {
            option: option.option,
            shown,
            value,
        })
    }
}
