//! The headers of the interface, split into parts.

use crate::docstring::Docstring;

/// The header that includes the chapters.
pub(crate) const OVERVIEW: &str = include_str!("../../../include/vgasnet.h");

macro_rules! chapters {
    ($($name:literal)*) => {
        /// The chapters, under the names in the header's `#include`s.
        pub(crate) const CHAPTERS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../include/vgasnet/", $name)))),*];
    };
}

chapters! {
    "version.h" "errors.h" "types.h" "job.h" "segment.h" "transfer.h" "completion.h" "nonblocking.h" "values.h" "atomics.h"
    "lists.h" "readonly.h" "residency.h" "messages.h" "counted.h" "locks.h" "barrier.h" "teams.h" "images.h" "reductions.h"
    "collectives.h" "files.h" "stats.h" "debug.h"
}

/// A part of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A separate comment.
    Comment(String),
    /// The title of the following parts: `/* ---- title ---- */`.
    Heading(String),
    /// A comment about the following declaration.
    Docstring(Docstring),
    Declaration(String),
}

/// The arguments of a message in the declarations of functions for any number of arguments.
pub(crate) const ANY_ARGUMENTS: &str = ", vgasnet_handlerarg_t a0, ...";

/// A header as seen by a plain C compiler, but with comments and macros. Of two alternatives it takes the one after
/// `#else`.
fn in_plain_c(header: &str) -> String {
    let mut lines = Vec::new();
    // The first line of each open condition, and whether it tests for C++.
    let mut conditions = Vec::new();
    for line in header.lines() {
        if line.starts_with("#if") {
            conditions.push((lines.len(), line.ends_with("def __cplusplus")));
        } else if line.starts_with("#else") {
            lines.truncate(conditions.last().map_or(lines.len(), |(first, _)| *first));
        } else if line.starts_with("#endif") {
            if let Some((first, true)) = conditions.pop() {
                lines.truncate(first);
            }
        } else if !line.starts_with("#pragma") {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

/// A header with functions for each number of arguments declared once, as `nameM`, instead of the macro that creates
/// them.
fn with_counted(header: &str) -> String {
    let Some((before, making)) = header.split_once("#define VGASNET_MESSAGES_(M) \\\n") else {
        return header.to_owned();
    };
    // The parameter lists are not a part of the interface.
    let before = before.find("/* The parameters and the arguments").map_or(before, |at| &before[..at]);
    let (bodies, uses) = making.split_once("\nVGASNET_MESSAGES_(0)\n").expect("the macro is used");
    let behind = uses.rsplit_once("VGASNET_MESSAGES_(16)\n").map_or("", |(_, behind)| behind);
    let declared = bodies.split("    /**\n").skip(1).map(|function| {
        let (comment, code) = function.split_once("*/ \\\n").expect("a comment ends");
        let (head, _) = code.split_once("##M(").expect("a function of M arguments");
        let arguments = code[head.len() + "##M(".len()..].split(" VGASNET_PARAMETERS").next().unwrap_or_default();
        let arguments = arguments.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let head = head.trim().trim_start_matches("static inline ");
        format!("/**\n{comment}*/\n{head}M({arguments}{ANY_ARGUMENTS});\n")
    });
    let declared: Vec<_> = declared.collect();
    format!("{before}{}{behind}", declared.join("\n"))
}

/// The comments and declarations of a header in order, without include guards and `#include`s.
pub(crate) fn parts(header: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let header = with_counted(&in_plain_c(header));
    let mut rest = header.as_str();
    while let Some((code, behind)) = rest.split_once("/*") {
        // A comment behind code on the same line belongs to the code.
        let is_trailing = !code.is_empty() && !code.ends_with('\n');
        let (comment, after) = behind.split_once("*/").unwrap_or((behind, ""));
        if is_trailing {
            let line = code.rfind('\n').map_or(code, |at| &code[at + 1..]);
            let before = &code[..code.len() - line.len()];
            push_declarations(&mut parts, before);
            let end = after.find('\n').unwrap_or(after.len());
            push_declarations(&mut parts, &format!("{line}/*{comment}*/{}", &after[..end]));
            rest = &after[end..];
        } else {
            push_declarations(&mut parts, code);
            parts.push(about(comment));
            rest = after;
        }
    }
    push_declarations(&mut parts, rest);
    parts
}

/// The part for a comment at the start of a line.
fn about(comment: &str) -> Part {
    match comment.strip_prefix('*') {
        Some(docstring) => Part::Docstring(Docstring::of(&bare(docstring))),
        None => match comment.trim().strip_prefix("---- ").and_then(|text| text.strip_suffix(" ----")) {
            Some(heading) => Part::Heading(heading.to_owned()),
            None => Part::Comment(bare(comment)),
        },
    }
}

fn push_declarations(parts: &mut Vec<Part>, code: &str) {
    let is_frame = |line: &str| {
        let is_guard = line.starts_with("#define VGASNET_") && line.ends_with("_H");
        is_guard || line.trim().is_empty() || line.starts_with("#include")
    };
    let lines: Vec<_> = code.lines().filter(|line| !is_frame(line)).collect();
    if lines.is_empty() {
        return;
    }
    let text = lines.join("\n");
    match parts.last_mut() {
        Some(Part::Declaration(last)) => *last = format!("{last}\n{text}"),
        _ => parts.push(Part::Declaration(text)),
    }
}

/// A comment without stars, with its empty lines. A paragraph with all lines indented is code, and keeps its
/// indentation.
fn bare(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches('*'));
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    let paragraphs = lines.split(|line| line.is_empty()).map(|paragraph| {
        let is_code = !paragraph.is_empty() && paragraph.iter().all(|line| line.starts_with("  "));
        paragraph.iter().map(|line| if is_code { line } else { line.trim() }).collect::<Vec<_>>().join("\n")
    });
    let text = paragraphs.collect::<Vec<_>>().join("\n\n");
    text.trim_matches('\n').trim_end().trim_start_matches("vgasnet: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chapter_that_the_header_includes_is_there() {
        let included = OVERVIEW.lines().filter_map(|line| line.strip_prefix("#include <vgasnet/")?.split_once('>'));
        let included: Vec<_> = included.map(|(name, _)| name).collect();
        let chapters: Vec<_> = CHAPTERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(included, chapters);
    }

    #[test]
    fn declarations_stay_with_their_comments() {
        let header = "/* vgasnet: a test. */\n#ifndef VGASNET_A_H\n#define VGASNET_A_H\n\n/*\n * First.\n *   Still.\n *\n *   f();\n */\n\
            int a(void);\n\n/* ---- more ---- */\n\n/** Two. */\n#define B 1 /* one */\nint c;\n#endif\n";
        let expected = [
            Part::Comment("a test.".into()),
            Part::Comment("First.\nStill.\n\n  f();".into()),
            Part::Declaration("int a(void);".into()),
            Part::Heading("more".into()),
            Part::Docstring(Docstring { description: "Two.".into(), ..Docstring::default() }),
            Part::Declaration("#define B 1 /* one */\nint c;".into()),
        ];
        assert_eq!(parts(header), expected);
    }

    #[test]
    fn of_two_ways_one_is_shown_and_no_condition_is() {
        let header = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n#if defined(A)\nint a;\n#else\n#if B\n#pragma c\n#endif\nint d;\n#endif\n";
        assert_eq!(parts(header), [Part::Declaration("int d;".into())]);
    }

    #[test]
    fn functions_of_each_number_of_arguments_are_declared_once() {
        let (_, counted) = CHAPTERS.iter().find(|(name, _)| *name == "counted.h").expect("the chapter");
        let parts = parts(counted);
        let declared = "int vgasnet_AMReplyShortM(vgasnet_token_t token, vgasnet_handler_t handler, vgasnet_handlerarg_t a0, ...);";
        let at = parts.iter().position(|part| *part == Part::Declaration(declared.into())).expect("it is declared");
        assert!(matches!(&parts[at - 1], Part::Docstring(docstring) if docstring.parameters.len() == 2), "{parts:?}");
        let of_macro = |part: &Part| matches!(part, Part::Declaration(text) if text.contains("VGASNET_MESSAGES_"));
        assert!(!parts.iter().any(of_macro) && parts.len() == 15, "{parts:?}");
    }
}
