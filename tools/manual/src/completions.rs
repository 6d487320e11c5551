//! What shells offer after a program's name: clap's scripts, mended for bash, and for a program that starts another one.

use clap::{Arg, Command};
use clap_complete::{Shell, generate};

/// The script of a shell for a program.
pub(crate) fn completions(mut command: Command, shell: Shell) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    generate(shell, &mut command, &name, &mut text);
    let mut text = String::from_utf8(text).expect("clap writes UTF-8");
    if shell == Shell::Bash {
        text = with_subcommands(&text, &name);
    }
    if command.get_positionals().any(Arg::is_trailing_var_arg_set) {
        match shell {
            Shell::Bash => text += &of_program_in_bash(&name, &options_with_value(&command)),
            Shell::Fish => text += &of_program_in_fish(&name, &options_with_value(&command)),
            // clap's script knows by the argument's hint that it is a program.
            _ => text = with_np_in_zsh(&text),
        }
    }
    text.into_bytes()
}

/// The options with a value, as `-np` (`with_np`) is one that clap does not know.
fn options_with_value(command: &Command) -> Vec<String> {
    let with_value =
        command.get_arguments().filter(|option| !option.is_positional() && option.get_action().takes_values());
    let names: Vec<_> = with_value.flat_map(crate::arguments::names).collect();
    let np = names.iter().any(|name| name == "-n").then(|| "-np".to_owned());
    np.into_iter().chain(names).collect()
}

/// Without it, zsh takes the value of `-np` for the program.
fn with_np_in_zsh(text: &str) -> String {
    text.replacen("'-n+[", "'-np[As -n]:RANKS:_default' \\\n'-n+[", 1)
}

/// What follows the name of a program that this one starts is completed as it is elsewhere.
fn of_program_in_fish(name: &str, options: &[String]) -> String {
    let is_np = |option: &String| option == "-np";
    let np =
        if options.iter().any(is_np) { format!("complete -c {name} -o np -d 'As -n' -r\n") } else { String::new() };
    // The function takes names that begin with two hyphens for its own options, unless one with a single hyphen comes before them.
    let (long, short): (Vec<&str>, Vec<&str>) =
        options.iter().map(String::as_str).partition(|name| name.starts_with("--"));
    format!("{np}complete -c {name} -x -a \"(__fish_complete_subcommand {} {})\"\n", short.join(" "), long.join(" "))
}

/// Clap's script for bash notes which subcommand was given by one name, and looks for it by another, if the program's name has a hyphen.
fn with_subcommands(text: &str, program: &str) -> String {
    let (looked_for, noted) = (program.replace('-', "__subcmd__"), program.replace('-', "__"));
    text.replace(&format!("{looked_for}__subcmd__"), &format!("{noted}__subcmd__"))
}

/// As in fish.
fn of_program_in_bash(name: &str, options: &[String]) -> String {
    format!(
        r#"
# The program that is started, and its arguments.
_{name}_or_program() {{
    local at=1
    while [[ ${{COMP_WORDS[at]}} == -* ]] && ((at < COMP_CWORD)); do
        case ${{COMP_WORDS[at]}} in
        {options}) ((at += 1)); [[ ${{COMP_WORDS[at]}} != = ]] || ((at += 1)) ;;
        esac
        ((at += 1))
    done
    if ((at > COMP_CWORD)) || [[ ${{COMP_WORDS[at]}} == -* ]]; then
        _{name} "$@"
    elif ((at == COMP_CWORD)); then
        compopt -o filenames
        COMPREPLY=($(compgen -c -- "$2"))
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$at"
    else
        COMPREPLY=()
    fi
}}
complete -F _{name}_or_program -o bashdefault -o default {name}
"#,
        options = options.join(" | ")
    )
}
