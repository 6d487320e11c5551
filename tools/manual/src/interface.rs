//! vgasnet(3) and one page per function, from the headers.

use crate::docstring::{Docstring, Entry};
use crate::header::{ANY_ARGUMENTS, CHAPTERS, OVERVIEW, Part, parts};
use crate::page::Page;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The names with pages of their own. Functions for any number of arguments appear as `nameM`.
static FUNCTIONS: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| DOCUMENTED.iter().flatten().filter_map(|(_, code)| called(code)).collect());

/// The page of the interface.
pub(crate) fn text() -> String {
    let mut page = Page::new("vgasnet", 3, "segments larger than memory: one-sided access, messages and collectives");
    page.section("SYNOPSIS");
    page.verbatim("#include <vgasnet.h>\n\ncc program.c $(pkg-config --cflags --libs vgasnet)");
    page.section("DESCRIPTION");
    page.paragraphs(&sentence(&head(OVERVIEW)));
    for (name, text) in CHAPTERS {
        page.section(&format!("<vgasnet/{name}>"));
        let mut docstring = None;
        for part in parts(text) {
            match part {
                Part::Comment(text) => page.paragraphs(&sentence(&narrow_code(&text))),
                Part::Heading(text) => page.subsection(&sentence(&text)),
                Part::Docstring(of_next) => docstring = Some(of_next),
                Part::Declaration(code) => {
                    page.verbatim(&narrow(&shown(&code)));
                    docstring.take().iter().for_each(|docstring| describe_in_short(&mut page, docstring));
                }
            }
        }
    }
    page.section("ENVIRONMENT");
    page.paragraphs("vgasnet(7) lists the variables.");
    page.documents();
    page.see_also(&["vgasnet(7)", "vgasnetrun(1)", "vgasnet-info(1)"]);
    page.finish()
}

/// The description and fatal errors of a declaration. Its own page has the details.
fn describe_in_short(page: &mut Page, docstring: &Docstring) {
    page.paragraphs(&narrow_code(&docstring.description));
    if let Some(fatal) = &docstring.fatal {
        page.paragraphs(&format!("Fatal: {fatal}"));
    }
}

/// The documented declarations of each chapter.
static DOCUMENTED: LazyLock<Vec<Vec<(Docstring, String)>>> =
    LazyLock::new(|| CHAPTERS.iter().map(|(_, text)| documented(text)).collect());

/// The page of a function or function-like macro. `None` if no chapter declares it.
pub(crate) fn text_of(function: &str) -> Option<String> {
    CHAPTERS.iter().zip(&*DOCUMENTED).find_map(|((name, text), declarations)| {
        let (docstring, code) = declarations.iter().find_map(|(docstring, code)| {
            let code = with_number(code, function);
            (called(&code).as_deref() == Some(function)).then_some((docstring, code))
        })?;
        Some(page_of(function, name, docstring, &code, &head(text)))
    })
}

fn page_of(function: &str, chapter: &str, docstring: &Docstring, code: &str, about: &str) -> String {
    let mut page = Page::new(function, 3, &docstring.brief());
    page.section("SYNOPSIS");
    page.verbatim("#include <vgasnet.h>");
    page.verbatim(&narrow(&shown(code)));
    page.section("DESCRIPTION");
    page.paragraphs(&narrow_code(&docstring.description));
    items(&mut page, "PARAMETERS", &docstring.parameters.iter().collect::<Vec<_>>());
    let (results, errors) = docstring.results_and_errors();
    if let Some(returned) = &docstring.returned {
        page.section("RETURN VALUE");
        page.paragraphs(&format!("{}.", sentence(returned)));
    }
    items(&mut page, "RETURN VALUE", &results);
    if code.starts_with("void ") {
        page.section("RETURN VALUE");
        page.paragraphs("None.");
    }
    items(&mut page, "ERRORS", &errors);
    if let Some(fatal) = &docstring.fatal {
        if errors.is_empty() {
            page.section("ERRORS");
        }
        page.paragraphs(&format!("The rank prints one line and the job ends for: {fatal}"));
    }
    page.section("NOTES");
    page.paragraphs(&format!("Declared in <vgasnet/{chapter}>:"));
    page.paragraphs(&sentence(&narrow_code(about)));
    page.documents();
    let see = docstring.see.iter().filter(|name| FUNCTIONS.contains(*name)).map(|name| page_named(name));
    let see: Vec<_> = see.chain(["vgasnet(3)".to_owned(), "vgasnet(7)".to_owned()]).collect();
    page.see_also(&see.iter().map(String::as_str).collect::<Vec<_>>());
    page.finish()
}

/// The name of a function's page. A function for any number of arguments has a page per number; this returns the first.
fn page_named(function: &str) -> String {
    match function.strip_suffix('M').filter(|stem| stem.starts_with("vgasnet_AM")) {
        Some(stem) => format!("{stem}0(3)"),
        None => format!("{function}(3)"),
    }
}

fn items(page: &mut Page, heading: &str, entries: &[&Entry]) {
    if !entries.is_empty() {
        page.section(heading);
    }
    entries.iter().for_each(|(term, text)| page.item(term, text));
}

/// The declarations of a chapter with docstrings.
fn documented(header: &str) -> Vec<(Docstring, String)> {
    let parts = parts(header);
    let pair = |two: &[Part]| match two {
        [Part::Docstring(docstring), Part::Declaration(code)] => Some((docstring.clone(), code.clone())),
        _ => None,
    };
    parts.windows(2).filter_map(pair).collect()
}

/// The name of the function or function-like macro declared by some code.
fn called(code: &str) -> Option<String> {
    let (before, _) = code.split_once('(')?;
    let name = match before.strip_prefix("#define ") {
        Some(name) => name,
        None if before.starts_with("typedef") || before.starts_with("extern") || before.contains('{') => return None,
        None => before.rsplit([' ', '*']).next()?,
    };
    let is_name = name.to_lowercase().starts_with("vgasnet_") && !name.contains([' ', '\n']);
    is_name.then(|| name.to_owned())
}

/// If a declaration for any number of arguments covers `function`, the declaration for its number of arguments.
fn with_number(code: &str, function: &str) -> String {
    let stem = function.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let Ok(number) = function[stem.len()..].parse::<usize>() else { return code.to_owned() };
    let any = format!("{stem}M(");
    if number > 16 || !code.contains(&any) || !code.contains(ANY_ARGUMENTS) {
        return code.to_owned();
    }
    let arguments: String = (0..number).map(|at| format!(", vgasnet_handlerarg_t a{at}")).collect();
    code.replace(&any, &format!("{function}(")).replace(ANY_ARGUMENTS, &arguments)
}

/// The visible part of a declaration. For a macro with parameters it is the name and the parameters.
fn shown(code: &str) -> String {
    match (code.strip_prefix("#define "), called(code)) {
        (Some(definition), Some(_)) => definition[..=definition.find(')').unwrap_or(definition.len() - 1)].to_owned(),
        _ => code.to_owned(),
    }
}

/// The first comment of a header. It describes the whole header.
fn head(header: &str) -> String {
    let first = parts(header).into_iter().find_map(|part| match part {
        Part::Comment(text) => Some(text),
        _ => None,
    });
    first.unwrap_or_default()
}

/// A text with a capital first letter. In a header it follows the header's name. A function's name stays as it is.
fn sentence(text: &str) -> String {
    if text.split(' ').next().is_some_and(|word| word.contains('_')) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Columns of an 80-column terminal, minus the indentation of a page.
const COLUMNS: usize = 72;

/// Breaks the lines of paragraphs of code to fit a terminal.
fn narrow_code(text: &str) -> String {
    let is_code = |paragraph: &str| paragraph.lines().all(|line| line.starts_with("  "));
    let shown = |paragraph: &str| if is_code(paragraph) { narrow(paragraph) } else { paragraph.to_owned() };
    text.split("\n\n").map(shown).collect::<Vec<_>>().join("\n\n")
}

/// Declarations with lines broken to fit a terminal.
fn narrow(code: &str) -> String {
    code.lines().map(narrow_line).collect::<Vec<_>>().join("\n")
}

fn narrow_line(line: &str) -> String {
    let code = line.trim_end_matches('\\').trim_end();
    // A macro ends with its line, unless the line is continued.
    let goes_on = if line.starts_with('#') || code.len() < line.len() { " \\" } else { "" };
    let (mut lines, mut indent, mut rest) = (Vec::new(), code.len() - code.trim_start().len(), code.to_owned());
    if rest.len() > COLUMNS - goes_on.len() {
        // Code aligned far to the right would leave no room.
        indent = indent.min(16);
        rest = format!("{}{}", " ".repeat(indent), code.trim_start());
    }
    while let Some(fitting) = rest.get(..COLUMNS - goes_on.len()) {
        let is_room = |at: &usize| *at > indent + 4;
        // A trailing comment is separated from its code by a wide gap.
        let before_remark = fitting[indent..].find("   ").map(|at| indent + at).filter(is_room);
        let behind_comma = fitting.rfind(", ").map(|at| at + 1).filter(|at| *at > COLUMNS / 2);
        let Some(at) = before_remark.or(behind_comma).or(fitting.rfind(' ')).filter(is_room) else { break };
        lines.push(format!("{}{goes_on}", &rest[..at]));
        rest = format!("{}{}", " ".repeat(indent + 4), rest[at..].trim_start());
    }
    lines.push(format!("{rest}{}", if code.len() < line.len() { goes_on } else { "" }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // The text shown by troff.
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
        for function in
            ["vgasnet_get", "vgasnet_init", "vgasnet_put_nb_bulk", "vgasnet_AMRequestShort3", "vgasnet_atomic_swap_u64"]
        {
            let page = text_of(function).unwrap_or_else(|| panic!("{function}"));
            assert!(page.starts_with(&format!(".TH {} 3 ", function.to_uppercase())), "{page}");
            let sections: Vec<_> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
            assert_eq!(
                sections[..4],
                ["NAME", "SYNOPSIS", "DESCRIPTION", "PARAMETERS"].map(|name| format!("\"{name}\"")),
                "{page}"
            );
            assert!(sections.contains(&"\"ERRORS\"") && sections.ends_with(&["\"SEE ALSO\""]), "{page}");
        }
        let page = text_of("vgasnet_get").expect("a page");
        for said in [
            "vgasnet_get \\- reads bytes of a rank's segment, and returns when they have arrived\n",
            "void vgasnet_get(void *dest, vgasnet_node_t node, void *src,\n",
            "\\fBnbytes\\fR\nnumber of bytes",
            ".SH \"RETURN VALUE\"\nNone.\n",
            "\\fBvgasnet_get_nb\\fR(3), ",
        ] {
            assert!(page.contains(said), "{said} is not in {page}");
        }
        let page = text_of("vgasnet_init").expect("a page");
        assert!(page.contains(".SH \"RETURN VALUE\"\n.TP\n\\fBVGASNET_OK\\fR\non success\n.SH \"ERRORS\"\n"), "{page}");
        assert!(text_of("vgasnet_ge").is_none() && text_of("get").is_none());
    }

    #[test]
    fn messages_have_their_own_number_of_arguments() {
        let page = text_of("vgasnet_AMReplyShort2").expect("a page");
        let declared = "int vgasnet_AMReplyShort2(vgasnet_token_t token,\n    vgasnet_handler_t handler, vgasnet_handlerarg_t a0,\n    vgasnet_handlerarg_t a1);\n";
        assert!(page.contains(declared), "{page}");
        assert!(text_of("vgasnet_AMReplyShort0").is_some_and(|page| page.contains("vgasnet_handler_t handler);\n")));
        assert!(text_of("vgasnet_AMReplyShort17").is_none());
        let page = text_of("vgasnet_AMReplyShortArgs").expect("a page");
        assert!(page.contains("\\fBvgasnet_AMReplyShort0\\fR(3)"), "{page}");
    }

    #[test]
    fn macros_are_shown_as_they_are_called() {
        let page = text_of("VGASNET_BLOCKUNTIL").expect("a page");
        assert!(page.contains(".nf\nVGASNET_BLOCKUNTIL(cond)\n.fi\n"), "{page}");
        assert!(!text().contains("vgasnet_since_"));
    }
}
