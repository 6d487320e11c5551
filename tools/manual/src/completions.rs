//! Shell completions: clap's scripts, fixed for bash, and extended for programs that start another program.

use clap::{Arg, Command};
use clap_complete::{Shell, generate};

/// The completion script of a shell for a program.
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
            // clap's script for zsh recognizes the program argument by its value hint.
            _ => text = with_np_in_zsh(&text),
        }
    }
    text.into_bytes()
}

/// The options with a value. `-np` (`with_np`) is added because clap does not know it.
fn options_with_value(command: &Command) -> Vec<String> {
    let with_value =
        command.get_arguments().filter(|option| !option.is_positional() && option.get_action().takes_values());
    let names: Vec<_> = with_value.flat_map(crate::arguments::names).collect();
    let np = names.iter().any(|name| name == "-n").then(|| "-np".to_owned());
    np.into_iter().chain(names).collect()
}

/// Without this zsh would take the value of `-np` for the program.
fn with_np_in_zsh(text: &str) -> String {
    text.replacen("'-n+[", "'-np[As -n]:RANKS:_default' \\\n'-n+[", 1)
}

/// Completes the arguments behind a started program's name with the program's own completions.
fn of_program_in_fish(name: &str, options: &[String]) -> String {
    let is_np = |option: &String| option == "-np";
    let np =
        if options.iter().any(is_np) { format!("complete -c {name} -o np -d 'As -n' -r\n") } else { String::new() };
    // The fish function parses names with two hyphens as its own options unless a name with one hyphen comes first.
    let (long, short): (Vec<&str>, Vec<&str>) =
        options.iter().map(String::as_str).partition(|name| name.starts_with("--"));
    format!("{np}complete -c {name} -x -a \"(__fish_complete_subcommand {} {})\"\n", short.join(" "), long.join(" "))
}

/// For program names with a hyphen, clap's bash script records the subcommand under one name and looks it up under
/// another.
fn with_subcommands(text: &str, program: &str) -> String {
    let (looked_for, noted) = (program.replace('-', "__subcmd__"), program.replace('-', "__"));
    text.replace(&format!("{looked_for}__subcmd__"), &format!("{noted}__subcmd__"))
}

/// The same as in fish.
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
