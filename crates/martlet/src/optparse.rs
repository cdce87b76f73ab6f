//! Words on a command line as Python's optparse reads them, which OpenStack's programs read theirs with.
//!
//! Comes in: a subcommand's declaration and the words behind its name. Goes out: the same in the one form that clap cannot
//! mistake: `--name=value` for each option, then `--` and the other words.
//! Always holds: an option's value is what follows, whatever it begins with (`-p=x` says `=x`); long names may be shortened
//! as far as one is meant, but names that OpenStack's program does not have count in full only, so that what is short for
//! one of its own stays so; nothing behind `--help` is looked at.
//! Deliberately absent: what values mean.

use clap::{Arg, Command, error::ErrorKind};
use operator_tools::OURS;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What keeps a line from being read: clap's word for it, and optparse's sentence.
#[derive(Debug)]
pub struct Mistake(pub ErrorKind, pub String);

/// The words, each option spelled out.
pub fn spelled_out(command: &Command, words: &[OsString]) -> Result<Vec<OsString>, Mistake> {
    if has_no_options(command) {
        // All words are the program's; asked for help alone it helps.
        return Ok(match words {
            [only] if is_help(only) && !command.is_disable_help_flag_set() => words.to_vec(),
            _ => [&[OsString::from("--")], words].concat(),
        });
    }
    Line::of(command, words).read()
}

fn has_no_options(command: &Command) -> bool {
    command.get_arguments().all(Arg::is_positional)
}

fn is_help(word: &OsStr) -> bool {
    word == "-h" || word == "--help"
}

/// A line, and how far it has been read.
struct Line<'a> {
    command: &'a Command,
    words: std::slice::Iter<'a, OsString>,
    options: Vec<OsString>,
    others: Vec<OsString>,
}

/// What an option's name stands for.
enum Named<'a> {
    Help,
    Option(&'a Arg),
}

impl<'a> Line<'a> {
    fn of(command: &'a Command, words: &'a [OsString]) -> Self {
        Self {
            command,
            words: words.iter(),
            options: vec![],
            others: vec![],
        }
    }

    fn read(mut self) -> Result<Vec<OsString>, Mistake> {
        while let Some(word) = self.words.next() {
            let helps = match word.as_bytes() {
                b"--" => {
                    self.others.extend(self.words.by_ref().cloned());
                    false
                }
                [b'-', b'-', long @ ..] => self.long(long)?,
                [b'-', letters @ ..] if !letters.is_empty() => self.letters(letters)?,
                _ => {
                    self.others.push(word.clone());
                    false
                }
            };
            if helps {
                return Ok(vec!["--help".into()]);
            }
        }
        self.options.push("--".into());
        self.options.append(&mut self.others);
        Ok(self.options)
    }

    /// `--name` or `--name=value`; whether it asks for help.
    fn long(&mut self, word: &[u8]) -> Result<bool, Mistake> {
        let mut parts = word.splitn(2, |byte| *byte == b'=');
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let value = parts.next();
        let Named::Option(option) = self.named(&name)? else {
            return Ok(true);
        };
        let name = option.get_long().unwrap_or_default();
        match value {
            Some(_) if !takes_value(option) => {
                let what = format!("--{name} option does not take a value");
                Err(Mistake(ErrorKind::TooManyValues, what))
            }
            value => self.take(option, value, format_args!("--{name}")).map(|()| false),
        }
    }

    /// `-abc`: flags, the last of them perhaps with a value; whether one asks for help.
    fn letters(&mut self, letters: &[u8]) -> Result<bool, Mistake> {
        for (at, letter) in letters.iter().enumerate() {
            let option = self
                .command
                .get_arguments()
                .find(|arg| arg.get_short() == Some(char::from(*letter)));
            let Some(option) = option else {
                if *letter == b'h' {
                    return Ok(true);
                }
                let rest = String::from_utf8_lossy(&letters[at..]);
                let what = format!("no such option: -{}", rest.chars().next().unwrap_or_default());
                return Err(Mistake(ErrorKind::UnknownArgument, what));
            };
            let rest = &letters[at + 1..];
            if takes_value(option) {
                let value = Some(rest).filter(|rest| !rest.is_empty());
                return self
                    .take(option, value, format_args!("-{}", char::from(*letter)))
                    .map(|()| false);
            }
            self.take(option, None, format_args!(""))?;
        }
        Ok(false)
    }

    /// The option of a long name, or of its beginning.
    fn named(&self, name: &str) -> Result<Named<'a>, Mistake> {
        let command = self.command;
        let exact = command
            .get_arguments()
            .find(|arg| names(arg).any(|known| known == name));
        if let Some(option) = exact {
            return Ok(Named::Option(option));
        }
        let theirs = command
            .get_arguments()
            .filter(|arg| arg.get_help_heading() != Some(OURS));
        let begun = |arg: &'a Arg| names(arg).find(|known| known.starts_with(name));
        let mut meant: Vec<(&str, Named<'a>)> = theirs
            .filter_map(|arg| Some((begun(arg)?, Named::Option(arg))))
            .collect();
        if "help".starts_with(name) {
            meant.push(("help", Named::Help));
        }
        meant.sort_by_key(|(long, _)| *long);
        match meant.len() {
            1 => Ok(meant.remove(0).1),
            0 => Err(Mistake(ErrorKind::UnknownArgument, format!("no such option: --{name}"))),
            _ => {
                let all: Vec<String> = meant.iter().map(|(long, _)| format!("--{long}")).collect();
                let what = format!("ambiguous option: --{name} ({}?)", all.join(", "));
                Err(Mistake(ErrorKind::UnknownArgument, what))
            }
        }
    }

    /// Notes an option, with the value that stands beside it or else in the next word.
    fn take(&mut self, option: &Arg, value: Option<&[u8]>, shown: std::fmt::Arguments<'_>) -> Result<(), Mistake> {
        let mut word = match (option.get_long(), option.get_short()) {
            (Some(long), _) => OsString::from(format!("--{long}")),
            (None, short) => OsString::from(format!("-{}", short.unwrap_or_default())),
        };
        if takes_value(option) {
            let value = value
                .map(OsStr::from_bytes)
                .or_else(|| self.words.next().map(OsString::as_os_str));
            let value = value.ok_or_else(|| {
                let what = format!("{shown} option requires 1 argument");
                Mistake(ErrorKind::InvalidValue, what)
            })?;
            word.push("=");
            word.push(value);
        }
        self.options.push(word);
        Ok(())
    }
}

/// Its long name, and others that mean the same.
fn names(option: &Arg) -> impl Iterator<Item = &str> {
    let aliases = option.get_all_aliases().unwrap_or_default();
    option.get_long().into_iter().chain(aliases)
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    fn command() -> Command {
        let flag = |name: &'static str, short| Arg::new(name).long(name).short(short).action(ArgAction::SetTrue);
        Command::new("tool").args([
            flag("all", 'a'),
            flag("verbose", 'v'),
            Arg::new("partition").long("partition").short('p'),
            Arg::new("policy-name").long("policy-name").short('P'),
            Arg::new("plain").long("plain").help_heading(OURS),
            Arg::new("zero-fps").long("zero-fps").alias("zero_fps"),
            Arg::new("words").num_args(0..),
        ])
    }

    fn read(line: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let read = spelled_out(&command(), &words).map_err(|Mistake(_, what)| what);
        let text = |word: OsString| word.into_string().unwrap();
        read.map(|words| words.into_iter().map(text).collect())
    }

    #[test]
    fn every_form_of_an_option_is_read() {
        let cases: [(&[&str], &[&str]); 14] = [
            (&["-p=x"], &["--partition==x", "--"]),
            (&["-p", "-a"], &["--partition=-a", "--"]),
            (&["-vap5", "a"], &["--verbose", "--all", "--partition=5", "--", "a"]),
            (&["--part", "--"], &["--partition=--", "--"]),
            (&["--partition="], &["--partition=", "--"]),
            (&["--pa=1=2"], &["--partition=1=2", "--"]),
            (&["a", "-v", "-", "--", "-a"], &["--verbose", "--", "a", "-", "-a"]),
            (&["--verb", "-P", ""], &["--verbose", "--policy-name=", "--"]),
            (&["--plain=1"], &["--plain=1", "--"]),
            (&["-ah", "--nope"], &["--help"]),
            (&["--he"], &["--help"]),
            (&["--zero=1"], &["--zero-fps=1", "--"]),
            (&["--zero_f", "1"], &["--zero-fps=1", "--"]),
            (&[], &["--"]),
        ];
        for (line, wanted) in cases {
            assert_eq!(read(line).unwrap(), wanted, "{line:?}");
        }
    }

    #[test]
    fn mistakes_are_named_as_optparse_names_them() {
        for (line, why) in [
            (&["-a", "-z"][..], "no such option: -z"),
            (&["-a=1"], "no such option: -="),
            (&["--nope"], "no such option: --nope"),
            (&["--pl"], "no such option: --pl"),
            (&["--p", "1"], "ambiguous option: --p (--partition, --policy-name?)"),
            (&["--al=1"], "--all option does not take a value"),
            (&["-vp"], "-p option requires 1 argument"),
            (&["--policy"], "--policy-name option requires 1 argument"),
            (&["-é"], "no such option: -é"),
        ] {
            assert_eq!(read(line).unwrap_err(), why);
        }
    }

    #[test]
    fn without_options_all_words_are_the_program_s() {
        let command = || Command::new("tool").arg(Arg::new("words").num_args(0..));
        for (words, wanted) in [
            (&["-h"][..], &["-h"][..]),
            (&["-h", "x"], &["--", "-h", "x"]),
            (&["--"], &["--", "--"]),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(spelled_out(&command(), &words).unwrap(), wanted);
        }
    }
}
