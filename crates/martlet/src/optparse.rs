//! The words of an OpenStack-style command line, made ready for clap.
//!
//! Comes in: a subcommand's declaration and the words behind its name. Goes out: the same in the one form that clap
//! cannot mistake: `--name=value` for each option, then `--` and the other words.
//! Always holds: the line is read as `ring_builder::optparse` says; names that OpenStack's program does not have count
//! in full only.
//! Deliberately absent: what values mean.

use clap::{Arg, Command};
use operator_tools::OURS;
use ring_builder::optparse::{self, OptionMistake, OptionName, OtherWords};
use std::ffi::{OsStr, OsString};

/// The words, each option spelled out.
pub fn spelled_out(command: &Command, words: &[OsString]) -> Result<Vec<OsString>, OptionMistake> {
    if has_no_options(command) {
        // All words are the program's; asked for help alone it helps.
        return Ok(match words {
            [only] if is_help(only) && !command.is_disable_help_flag_set() => words.to_vec(),
            _ => [&[OsString::from("--")], words].concat(),
        });
    }
    let names: Vec<OptionName<'_, &Arg>> = command.get_arguments().map(name).collect();
    let mut line = vec![];
    let others = optparse::read(&names, words, |given| {
        let mut word = match (given.option.get_long(), given.option.get_short()) {
            (Some(long), _) => OsString::from(format!("--{long}")),
            (None, short) => OsString::from(format!("-{}", short.unwrap_or_default())),
        };
        if let Some(value) = given.value {
            word.push("=");
            word.push(value);
        }
        line.push(word);
        Ok::<(), OptionMistake>(())
    })?;
    let OtherWords::Words(others) = others else {
        return Ok(vec!["--help".into()]);
    };
    line.push("--".into());
    line.extend(others.into_iter().map(OsString::from));
    Ok(line)
}

fn has_no_options(command: &Command) -> bool {
    command.get_arguments().all(Arg::is_positional)
}

fn is_help(word: &OsStr) -> bool {
    word == "-h" || word == "--help"
}

/// An option of clap's, with its long name and others that mean the same.
fn name(option: &Arg) -> OptionName<'_, &Arg> {
    let aliases = option.get_all_aliases().unwrap_or_default();
    OptionName {
        option,
        short: option.get_short(),
        longs: option.get_long().into_iter().chain(aliases).collect(),
        takes_value: option.get_action().takes_values(),
        exact: option.get_help_heading() == Some(OURS),
    }
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
        let read = spelled_out(&command(), &words).map_err(OptionMistake::into_text);
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
