//! Man pages and shell completions of the tools, from the definitions of their `--help`, and common parsing of their
//! command lines.
//!
//! `scripts/install` calls each tool with `--generate` and `man`, `bash`, `zsh` or `fish`, and one of the tools for the
//! other pages.

mod arguments;
mod completions;
mod docstring;
#[cfg(test)]
mod documented;
mod header;
mod interface;
mod page;
mod settings_page;

pub use arguments::with_np;

use clap::Command;
use clap_complete::Shell;
use completions::completions;
use page::Page;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// A hidden option: only the installation needs it.
const OPTION: &str = "--generate";

/// Contents of a tool's page in addition to its options.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageExtras<'a> {
    /// Sections at the end: a heading, and paragraphs separated by empty lines.
    pub sections: &'a [(&'a str, &'a str)],
    /// Pages for SEE ALSO, as `vgasnet(7)`.
    pub see_also: &'a [&'a str],
}

/// The text requested by `--generate`, if the command line consists of this option and its value.
pub fn asked() -> Option<String> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match &words[..] {
        [option, what] if option == OPTION => Some(what.clone()),
        _ => None,
    }
}

/// Prints a text about a tool. False if there is no text of this name.
pub fn print(command: Command, what: &str, extras: PageExtras<'_>) -> bool {
    let name = command.get_name().to_owned();
    let text = match what {
        "man" => of_command(command, extras).into_bytes(),
        "bash" => completions(command, Shell::Bash),
        "zsh" => completions(command, Shell::Zsh),
        "fish" => completions(command, Shell::Fish),
        _ => return false,
    };
    write_out(&name, &text);
    true
}

/// Prints a page of no tool: the interface, or the settings. `functions:DIR` reads names of functions from standard
/// input, a line each, writes their pages into `DIR`, and prints the names without a page. False if there is no page of
/// this name.
pub fn print_page(program: &str, what: &str) -> bool {
    let text = match what {
        "interface" => interface::text(),
        "settings" => settings_page::text(),
        _ => match what.strip_prefix("functions:") {
            Some(dir) => write_pages(Path::new(dir)).unwrap_or_else(|error| {
                eprintln!("{program}: {dir}: {error}");
                std::process::exit(1);
            }),
            None => return false,
        },
    };
    write_out(program, text.as_bytes());
    true
}

/// Writes the pages of the functions that standard input names into a directory. Returns the names without one, a line
/// each.
fn write_pages(dir: &Path) -> std::io::Result<String> {
    let mut without = String::new();
    for function in std::io::stdin().lines() {
        let function = function?;
        match interface::text_of(&function) {
            Some(text) => std::fs::write(dir.join(format!("{function}.3")), text)?,
            None => without += &format!("{function}\n"),
        }
    }
    Ok(without)
}

/// Writes to standard output. A closed pipe is ignored; any other error ends the program.
pub fn write_out(program: &str, bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("{program}: standard output: {error}");
            std::process::exit(1);
        }
        _ => {}
    }
}

/// The page of a program in section 1. Subcommands get sections instead of pages.
fn of_command(mut command: Command, extras: PageExtras<'_>) -> String {
    command.build();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = Page::new(command.get_name(), 1, about.lines().next().unwrap_or_default());
    page.section("SYNOPSIS");
    page.usage(&usage(&mut command));
    if let Some(about) = command.get_long_about() {
        page.section("DESCRIPTION");
        page.paragraphs(&about.to_string());
    }
    page.section("OPTIONS");
    page.raw(&options(&command));
    let mut subcommands: Vec<_> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned().collect();
    subcommands.retain(|sub| sub.get_name() != "help");
    if !subcommands.is_empty() {
        page.section("COMMANDS");
    }
    for mut sub in subcommands {
        page.subsection(sub.get_name());
        page.paragraphs(&sub.get_long_about().or(sub.get_about()).map(ToString::to_string).unwrap_or_default());
        page.usage(&usage(&mut sub));
        page.raw(&options(&sub));
    }
    for (heading, text) in extras.sections {
        page.section(heading);
        page.paragraphs(text);
    }
    page.see_also(extras.see_also);
    page.finish()
}

fn usage(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    usage.trim_start_matches("Usage:").trim().to_owned()
}

/// The options as in clap's own pages, without the heading.
fn options(command: &Command) -> String {
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(command.clone()).render_options_section(&mut text);
    rendered.expect("memory takes all bytes");
    let text = String::from_utf8(text).expect("clap writes UTF-8");
    text.lines().filter(|line| !line.starts_with(".SH")).map(|line| format!("{line}\n")).collect()
}
