//! What the options on a command line mean: their values as text and numbers. `optparse.rs` reads the line.
//!
//! Comes in: what is declared, and words. Goes out: [`ParsedOptions`], or why not, in the words of OpenStack's
//! programs. What the options mean is the commands' own affair.

use crate::number::{float, whole};
use crate::optparse::{self, OptionMistake, OptionName, OtherWords};
use pythonic::quoted;

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// Any text.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Float,
    /// One of these.
    OneOf(&'static [&'static str]),
}

/// An option that may be given.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// Its name, without dashes.
    pub long: &'static str,
    /// What follows it.
    pub takes: Takes,
    /// What it is for.
    pub help: &'static str,
}

impl Declared {
    fn name(&self) -> OptionName<'_, &Declared> {
        OptionName {
            option: self,
            short: self.short,
            longs: vec![self.long],
            takes_value: self.takes != Takes::Nothing,
            exact: false,
        }
    }
}

/// Declares an option.
pub const fn option(short: char, long: &'static str, takes: Takes, help: &'static str) -> Declared {
    Declared {
        short: Some(short),
        long,
        takes,
        help,
    }
}

/// Declares an option that has no letter.
pub const fn long(long: &'static str, takes: Takes, help: &'static str) -> Declared {
    Declared {
        short: None,
        long,
        takes,
        help,
    }
}

/// A value that was given.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Flag,
    Text(String),
    Whole(i64),
    Float(f64),
}

/// Options that were given, and the words between them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedOptions {
    values: Vec<(&'static str, Value)>,
    /// The words that are no options.
    pub words: Vec<String>,
}

/// Why there are no options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionError {
    /// Help was asked for.
    Help,
    /// Something is wrong with them.
    Wrong(String),
}

impl From<OptionMistake> for OptionError {
    fn from(mistake: OptionMistake) -> Self {
        OptionError::Wrong(mistake.into_text())
    }
}

impl ParsedOptions {
    /// Reads a command line.
    pub fn read(declared: &[Declared], words: &[String]) -> Result<ParsedOptions, OptionError> {
        let name = |option| Declared::name(option);
        let names: Vec<OptionName<'_, &Declared>> = declared.iter().map(name).collect();
        let mut options = ParsedOptions::default();
        let others = optparse::read(&names, words, |given| {
            let value = given.value.unwrap_or_default().to_string_lossy().into_owned();
            options.keep(given.option, &given.shown, value)
        })?;
        match others {
            OtherWords::Help => Err(OptionError::Help),
            OtherWords::Words(words) => {
                options.words = words.into_iter().map(|it| it.to_string_lossy().into_owned()).collect();
                Ok(options)
            }
        }
    }

    /// The last of several values counts.
    fn keep(&mut self, option: &Declared, shown: &str, text: String) -> Result<(), OptionError> {
        let refuse =
            |kind: &str| OptionError::Wrong(format!("option {shown}: invalid {kind} value: {}", quoted(&text)));
        let value = match option.takes {
            Takes::Nothing => Value::Flag,
            Takes::Whole => Value::Whole(whole(&text).map_err(|_| refuse("integer"))?),
            Takes::Float => Value::Float(float(&text).map_err(|_| refuse("floating-point"))?),
            Takes::OneOf(choices) if !choices.contains(&text.as_str()) => {
                let choices: Vec<String> = choices.iter().map(|it| quoted(it)).collect();
                let (text, choices) = (quoted(&text), choices.join(", "));
                return wrong(format!(
                    "option {shown}: invalid choice: {text} (choose from {choices})"
                ));
            }
            Takes::Text | Takes::OneOf(_) => Value::Text(text),
        };
        self.values.push((option.long, value));
        Ok(())
    }

    fn last(&self, name: &str) -> Option<&Value> {
        let mut given = self.values.iter().rev();
        given.find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Whether an option was given at all.
    pub fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// The text of an option.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.last(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Every text of an option that may be said several times.
    pub fn texts<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        self.values.iter().filter_map(move |(known, value)| match value {
            Value::Text(text) if *known == name => Some(text.as_str()),
            _ => None,
        })
    }

    /// The whole number of an option.
    pub fn whole(&self, name: &str) -> Option<i64> {
        match self.last(name)? {
            Value::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// The number of an option.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.last(name)? {
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }
}

fn wrong<T>(text: String) -> Result<T, OptionError> {
    Err(OptionError::Wrong(text))
}

/// The options in a table, as `--help` shows them.
pub fn help(declared: &[Declared]) -> String {
    let mut out = String::from("Options:\n");
    let width = 26;
    let asked = option('h', "help", Takes::Nothing, "show this help message and exit");
    for option in std::iter::once(&asked).chain(declared) {
        let value = match option.takes {
            Takes::Nothing => String::new(),
            Takes::OneOf(choices) => format!("={}", choices.join("|")),
            _ => format!("={}", option.long.to_uppercase().replace('-', "_")),
        };
        let letter = option.short.map_or(String::new(), |letter| format!("-{letter}, "));
        let name = format!("  {letter}--{}{value}", option.long);
        let gap = if name.len() + 2 > width {
            format!("\n{:width$}", "")
        } else {
            " ".repeat(width - name.len())
        };
        out.push_str(&format!("{name}{gap}{}\n", option.help));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DECLARED: [Declared; 6] = [
        option('u', "id", Takes::Whole, ""),
        option('i', "ip", Takes::Text, ""),
        option('w', "weight", Takes::Float, ""),
        option('y', "yes", Takes::Nothing, ""),
        option('r', "region", Takes::Whole, ""),
        long("format-version", Takes::OneOf(&["1", "2"]), ""),
    ];

    fn read(line: &str) -> Result<ParsedOptions, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        ParsedOptions::read(&DECLARED, &words).map_err(|error| match error {
            OptionError::Help => "help".to_owned(),
            OptionError::Wrong(why) => why,
        })
    }

    #[test]
    fn options_stand_anywhere() {
        let options = read("d0 -y 5 --id=3 --weight 2.5 -r1 --for 2").unwrap();
        assert_eq!(options.words, ["d0", "5"]);
        assert_eq!((options.whole("id"), options.whole("region")), (Some(3), Some(1)));
        assert_eq!(options.float("weight"), Some(2.5));
        assert!(options.has("yes") && !options.has("ip"));
        assert_eq!(options.text("format-version"), Some("2"));
        assert_eq!(read("--id 0 -- -5").unwrap().words, ["-5"]);
        assert_eq!(read("--id 0 --id 1").unwrap().whole("id"), Some(1));
    }

    #[test]
    fn mistakes_are_named_in_openstacks_words() {
        let wrong = |line: &str| read(line).unwrap_err();
        assert_eq!(wrong("--foo"), "no such option: --foo");
        assert_eq!(wrong("-1"), "no such option: -1");
        assert_eq!(wrong("--i 1"), "ambiguous option: --i (--id, --ip?)");
        assert_eq!(wrong("--ip"), "--ip option requires 1 argument");
        assert_eq!(wrong("-ux"), "option -u: invalid integer value: 'x'");
        assert_eq!(
            wrong("--weight x"),
            "option --weight: invalid floating-point value: 'x'"
        );
        assert_eq!(
            wrong("--format-version 3"),
            "option --format-version: invalid choice: '3' (choose from '1', '2')"
        );
        assert_eq!(wrong("--yes=1"), "--yes option does not take a value");
        assert_eq!(wrong("x --help"), "help");
    }

    proptest! {
        #[test]
        fn nothing_panics(words in proptest::collection::vec("-{0,2}[a-z=ü1 ]{0,8}", 0..6)) {
            let _ = ParsedOptions::read(&DECLARED, &words);
        }
    }
}
