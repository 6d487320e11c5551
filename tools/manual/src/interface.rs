//! vgasnet(3), from the headers.

use crate::page::Page;

/// The header that includes the chapters.
const OVERVIEW: &str = include_str!("../../../include/vgasnet.h");

/// The chapters, by the names that the header includes them by.
const CHAPTERS: [(&str, &str); 19] = [
    ("version.h", include_str!("../../../include/vgasnet/version.h")),
    ("errors.h", include_str!("../../../include/vgasnet/errors.h")),
    ("types.h", include_str!("../../../include/vgasnet/types.h")),
    ("job.h", include_str!("../../../include/vgasnet/job.h")),
    ("segment.h", include_str!("../../../include/vgasnet/segment.h")),
    ("transfer.h", include_str!("../../../include/vgasnet/transfer.h")),
    ("nonblocking.h", include_str!("../../../include/vgasnet/nonblocking.h")),
    ("values.h", include_str!("../../../include/vgasnet/values.h")),
    ("atomics.h", include_str!("../../../include/vgasnet/atomics.h")),
    ("lists.h", include_str!("../../../include/vgasnet/lists.h")),
    ("readonly.h", include_str!("../../../include/vgasnet/readonly.h")),
    ("residency.h", include_str!("../../../include/vgasnet/residency.h")),
    ("messages.h", include_str!("../../../include/vgasnet/messages.h")),
    ("locks.h", include_str!("../../../include/vgasnet/locks.h")),
    ("barrier.h", include_str!("../../../include/vgasnet/barrier.h")),
    ("collectives.h", include_str!("../../../include/vgasnet/collectives.h")),
    ("files.h", include_str!("../../../include/vgasnet/files.h")),
    ("stats.h", include_str!("../../../include/vgasnet/stats.h")),
    ("debug.h", include_str!("../../../include/vgasnet/debug.h")),
];

/// The page.
pub fn text() -> String {
    let mut page = Page::new("vgasnet", 3, "segments larger than memory: one-sided access, messages and collectives");
    page.section("SYNOPSIS");
    page.verbatim("#include <vgasnet.h>\n\ncc program.c $(pkg-config --cflags --libs vgasnet)");
    page.section("DESCRIPTION");
    for part in sentence(&comments(OVERVIEW).next().unwrap_or_default()).split("\n\n") {
        page.paragraphs(part);
    }
    for (name, text) in CHAPTERS {
        page.section(&format!("<vgasnet/{name}>"));
        for part in declarations_first(parts(text)) {
            match part {
                Part::Comment(text) => page.paragraphs(&sentence(&text)),
                Part::Declaration(text) => page.verbatim(&narrow(&text)),
            }
        }
    }
    page.section("ENVIRONMENT");
    page.paragraphs("vgasnet(7) lists the variables.");
    page.documents();
    page.see_also(&["vgasnet(7)", "vgasnetrun(1)", "vgasnet-info(1)"]);
    page.finish()
}

/// The page of a function, or of a macro that is called as one: its declaration, and what the header says of that. `None` if no chapter
/// declares it.
pub fn text_of(function: &str) -> Option<String> {
    // Those that are made for each number of arguments are declared once.
    let stem = function.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let declarations = [format!("{function}("), format!("{stem}##M(")];
    let is_declared = |text: &str| declarations.iter().any(|declaration| declares(text, declaration));
    for (name, text) in CHAPTERS {
        let parts = declarations_first(parts(text));
        let is_it = |part: &Part| matches!(part, Part::Declaration(text) if is_declared(text));
        let Some(at) = parts.iter().position(is_it) else { continue };
        let said = parts[at + 1..].iter().map_while(|part| match part {
            Part::Comment(text) => Some(text),
            Part::Declaration(_) => None,
        });
        let mut page = Page::new(function, 3, &format!("declared in <vgasnet/{name}>"));
        page.section("SYNOPSIS");
        page.verbatim("#include <vgasnet.h>");
        if let Part::Declaration(text) = &parts[at] {
            page.verbatim(&narrow(text));
        }
        page.section("DESCRIPTION");
        said.for_each(|text| page.paragraphs(&sentence(text)));
        if let Some(Part::Comment(about)) = parts.first().filter(|_| at > 0) {
            page.section("NOTES");
            page.paragraphs(&sentence(about));
        }
        page.documents();
        page.see_also(&["vgasnet(3)", "vgasnet(7)"]);
        return Some(page.finish());
    }
    None
}

/// Whether a text has this declaration: the name alone, not as the end of a longer one.
fn declares(text: &str, declaration: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices(declaration).any(|(at, _)| !text[..at].ends_with(is_part))
}

/// A text whose first letter is a capital: in a header it follows the header's name. The name of a function stays as it is.
fn sentence(text: &str) -> String {
    if text.split(' ').next().is_some_and(|word| word.contains('_')) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Columns of a terminal of 80 beside the indentation of a page.
const COLUMNS: usize = 72;

/// Declarations whose lines fit a terminal: longer ones go on in lines of their own.
fn narrow(code: &str) -> String {
    code.lines().map(narrow_line).collect::<Vec<_>>().join("\n")
}

fn narrow_line(line: &str) -> String {
    let code = line.trim_end_matches('\\').trim_end();
    // A macro ends with its line, unless that says otherwise.
    let goes_on = if line.starts_with('#') || code.len() < line.len() { " \\" } else { "" };
    let (mut lines, mut indent, mut rest) = (Vec::new(), code.len() - code.trim_start().len(), code.to_owned());
    if rest.len() > COLUMNS - goes_on.len() {
        // What is aligned far to the right would leave no room.
        indent = indent.min(16);
        rest = format!("{}{}", " ".repeat(indent), code.trim_start());
    }
    while let Some(fitting) = rest.get(..COLUMNS - goes_on.len()) {
        let is_room = |at: &usize| *at > indent + 4;
        // A remark beside code is far from it.
        let before_remark = fitting[indent..].find("   ").map(|at| indent + at).filter(is_room);
        let behind_comma = fitting.rfind(", ").map(|at| at + 1).filter(|at| *at > COLUMNS / 2);
        let Some(at) = before_remark.or(behind_comma).or(fitting.rfind(' ')).filter(is_room) else { break };
        lines.push(format!("{}{goes_on}", &rest[..at]));
        rest = format!("{}{}", " ".repeat(indent + 4), rest[at..].trim_start());
    }
    lines.push(format!("{rest}{}", if code.len() < line.len() { goes_on } else { "" }));
    lines.join("\n")
}

/// A piece of a header.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Comment(String),
    Declaration(String),
}

/// Puts what a comment is about before it, as readers of manuals expect. Headers have it behind. The first is about the whole header.
fn declarations_first(mut parts: Vec<Part>) -> Vec<Part> {
    for at in 2..parts.len() {
        if matches!(parts[at - 1..=at], [Part::Comment(_), Part::Declaration(_)]) {
            parts.swap(at - 1, at);
        }
    }
    parts
}

/// A header as a compiler for C without extensions reads it, but with its comments and macros: of two ways the one behind `#else`.
fn in_plain_c(header: &str) -> String {
    let mut lines = Vec::new();
    // Where the lines of each condition begin, and whether it is one for C++.
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

/// The comments and declarations of a header, in order; what guards and includes is left out.
fn parts(header: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let header = in_plain_c(header);
    let mut rest = header.as_str();
    while let Some((code, behind)) = rest.split_once("/*") {
        // A comment behind something on its line belongs to that.
        let is_beside = !code.is_empty() && !code.ends_with('\n');
        let (comment, after) = behind.split_once("*/").unwrap_or((behind, ""));
        if is_beside {
            let line = code.rfind('\n').map_or(code, |at| &code[at + 1..]);
            let before = &code[..code.len() - line.len()];
            push_declarations(&mut parts, before);
            let end = after.find('\n').unwrap_or(after.len());
            push_declarations(&mut parts, &format!("{line}/*{comment}*/{}", &after[..end]));
            rest = &after[end..];
        } else {
            push_declarations(&mut parts, code);
            parts.push(Part::Comment(bare(comment)));
            rest = after;
        }
    }
    push_declarations(&mut parts, rest);
    parts
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

/// The texts of the comments that begin a line.
fn comments(header: &str) -> impl Iterator<Item = String> {
    parts(header).into_iter().filter_map(|part| match part {
        Part::Comment(text) => Some(text),
        Part::Declaration(_) => None,
    })
}

/// A comment without stars, with its empty lines. A paragraph of which all lines are further in than others is code, and stays so.
fn bare(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches('*'));
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    let paragraphs = lines.split(|line| line.is_empty()).map(|paragraph| {
        let is_code = paragraph.iter().all(|line| line.starts_with("  "));
        let shown = |line: &&str| if is_code { narrow_line(line) } else { line.trim().to_owned() };
        paragraph.iter().map(shown).collect::<Vec<_>>().join("\n")
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
        assert_eq!(included, CHAPTERS.map(|(name, _)| name));
    }

    #[test]
    fn declarations_stay_with_their_comments() {
        let header = "/* vgasnet: a test. */\n#ifndef VGASNET_A_H\n#define VGASNET_A_H\n\n/*\n * First.\n *   Still.\n *\n *   f();\n */\n\
            int a(void);\n\n#define B 1 /* one */\nint c;\n#endif\n";
        let [comment, declaration]: [fn(String) -> Part; 2] = [Part::Comment, Part::Declaration];
        let expected = [
            comment("a test.".into()),
            comment("First.\nStill.\n\n  f();".into()),
            declaration("int a(void);\n#define B 1 /* one */\nint c;".into()),
        ];
        assert_eq!(parts(header), expected);
    }

    #[test]
    fn what_is_declared_comes_before_what_is_said_of_it() {
        let header = "/* All. */\nint a;\n/* B. */\nint b;\n\n/* Some. */\n\n/* C. */\nint c;\n";
        let [comment, declaration]: [fn(&str) -> Part; 2] =
            [|text| Part::Comment(text.into()), |text| Part::Declaration(text.into())];
        let expected = [
            comment("All."),
            declaration("int a;"),
            declaration("int b;"),
            comment("B."),
            comment("Some."),
            declaration("int c;"),
            comment("C."),
        ];
        assert_eq!(declarations_first(parts(header)), expected);
        let text = text();
        let [declared, said] = ["int vgasnet_init(int *argc, char ***argv);", "Makes this process a rank of the job."]
            .map(|part| text.find(part).expect("it is there"));
        assert!(declared < said);
    }

    #[test]
    fn a_sentence_begins_with_a_capital_unless_with_a_function() {
        assert_eq!(sentence("what it is."), "What it is.");
        assert_eq!(sentence("vgasnet_init accepts it."), "vgasnet_init accepts it.");
        assert!(!text().contains("Vgasnet_"));
    }

    #[test]
    fn long_declarations_go_on_in_further_lines() {
        let line = format!("int f(int {}, int b);", "a".repeat(60));
        assert_eq!(narrow(&line), format!("int f(int {},\n    int b);", "a".repeat(60)));
        let define = format!("    #define {0} \\\n#define A {0} {0}", "b".repeat(40));
        assert_eq!(narrow(&define), format!("    #define {0} \\\n#define A {0} \\\n    {0}", "b".repeat(40)));
        assert_eq!(narrow(&"c".repeat(90)), "c".repeat(90));
        assert_eq!(
            narrow(&format!("  f(a, b);      it {}", "d".repeat(70))),
            format!("  f(a, b);\n      it\n      {}", "d".repeat(70))
        );
        let (page, mut is_code) = (text(), false);
        for line in page.lines() {
            is_code = (is_code || line == ".nf") && line != ".fi";
            // What troff shows of them.
            let shown = line.replace("\\-", "-").replace("\\(dq", "\"").replace("\\e", "\\").replace("\\&", "");
            assert!(!is_code || shown.len() <= COLUMNS || !shown.trim().contains(' '), "{shown}");
        }
    }

    #[test]
    fn functions_are_there_with_what_they_do() {
        let text = text();
        assert!(text.contains("int vgasnet_init(int *argc, char ***argv);\n"), "{text}");
        assert!(text.contains("Makes this process a rank of the job."));
        assert!(!text.contains("#include <stdint.h>") && !text.contains("extern \"C\""));
    }

    #[test]
    fn a_function_has_a_page_of_its_own() {
        for function in ["vgasnet_get", "vgasnet_init", "vgasnet_put_nb_bulk", "vgasnet_AMRequestShort3"] {
            let page = text_of(function).unwrap_or_else(|| panic!("{function}"));
            assert!(page.starts_with(&format!(".TH {} 3 ", function.to_uppercase())), "{page}");
            let (_, behind) = page.split_once("#include <vgasnet.h>").expect("a synopsis");
            let (synopsis, description) = behind.split_once("DESCRIPTION").expect("a description");
            assert!(synopsis.contains(function.trim_end_matches('3')) && description.len() > 100, "{page}");
        }
        assert!(text_of("vgasnet_ge").is_none() && text_of("get").is_none());
    }

    #[test]
    fn of_two_ways_one_is_shown_and_no_condition_is() {
        let header = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n#if defined(A)\nint a;\n#else\n#if B\n#pragma c\n#endif\nint d;\n#endif\n";
        assert_eq!(parts(header), [Part::Declaration("int d;".into())]);
        let handlers = text();
        assert!(handlers.contains("void (*fnptr)();") && !handlers.contains("void *fnptr;"), "{handlers}");
        assert!(!handlers.lines().any(|line| line.starts_with("#if") || line.starts_with("#pragma")), "{handlers}");
    }
}
