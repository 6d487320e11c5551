//! Command lines in the style of other launchers.

use clap::{Arg, Command};
use std::ffi::OsString;

/// The names of an option, with their hyphens.
pub(crate) fn names(option: &Arg) -> impl Iterator<Item = String> + use<> {
    let short = option.get_short().map(|name| format!("-{name}"));
    short.into_iter().chain(option.get_long().map(|name| format!("--{name}")))
}

/// Accepts `-np`, as in other launchers, for `-n`. If a command starts a program, arguments after the program's name
/// are left alone.
pub fn with_np(command: &Command, arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let options =
        command.get_arguments().filter(|option| !option.is_positional() && option.get_action().takes_values());
    let with_value: Vec<String> = options.flat_map(names).collect();
    let starts_program = command.get_positionals().any(|argument| argument.is_trailing_var_arg_set());
    // The name of this program comes first and is treated like a value.
    let (mut is_options, mut is_value) = (true, true);
    let translate = |argument: OsString| {
        let is_name = is_options && !std::mem::take(&mut is_value);
        let is_np = is_name && argument == "-np";
        if is_name {
            is_value = is_np || with_value.iter().any(|name| argument == name.as_str());
            is_options = argument != "--" && (argument.to_string_lossy().starts_with('-') || !starts_program);
        }
        if is_np { "-n".into() } else { argument }
    };
    arguments.map(translate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    #[test]
    fn np_is_n_up_to_the_program() {
        let options = [
            Arg::new("ranks").short('n'),
            Arg::new("label").short('l').action(ArgAction::SetTrue),
            Arg::new("hosts").long("hosts"),
        ];
        let launcher = Command::new("run").args(options.clone());
        let launcher = launcher.arg(Arg::new("program").num_args(1..).trailing_var_arg(true));
        let other =
            Command::new("other").args(options).subcommand(Command::new("sub").arg(Arg::new("ranks").short('n')));
        let read = |command: &Command, line: &str| {
            let words = with_np(command, line.split(' ').map(OsString::from));
            words.join(" ".as_ref()).into_string().expect("text")
        };
        for (line, launched, else_read) in [
            ("run -np 2 -l echo -np 5", "run -n 2 -l echo -np 5", "run -n 2 -l echo -n 5"),
            ("run --hosts -np -l", "run --hosts -np -l", "run --hosts -np -l"),
            ("run --hosts=a -np 3", "run --hosts=a -n 3", "run --hosts=a -n 3"),
            ("-np -- -np", "-np -- -np", "-np -- -np"),
            ("other sub -np 4", "other sub -np 4", "other sub -n 4"),
        ] {
            assert_eq!(
                (read(&launcher, line), read(&other, line)),
                (launched.to_owned(), else_read.to_owned()),
                "{line}"
            );
        }
    }
}
