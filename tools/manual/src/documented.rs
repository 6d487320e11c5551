//! Every function declared in a header has a complete docstring in front.

use crate::docstring::{Docstring, Entry};
use crate::header::{ANY_ARGUMENTS, Part, parts};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A function, or a function-like macro.
#[derive(Debug, PartialEq, Eq)]
struct Declared {
    name: String,
    parameters: Vec<String>,
    /// `None` for a macro: it may or may not return a value.
    returns: Option<bool>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The headers in a directory with this prefix, each with its text.
fn headers(directory: &str, prefix: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("include").join(directory)).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in ASCII"));
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix) && name.ends_with(".h")).collect();
    names.sort();
    let text = |name: &String| fs::read_to_string(root().join("include").join(directory).join(name)).expect("a header");
    names.into_iter().map(|name| (format!("{directory}/{name}"), text(&name))).collect()
}

fn is_letter_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The names in a parameter list.
fn parameters(list: &str) -> Vec<String> {
    let list = list.trim_end_matches(ANY_ARGUMENTS);
    let name = |parameter: &str| {
        let declared = parameter.trim().trim_end_matches("[]");
        declared.rsplit(|letter| !is_letter_of_name(letter)).next().unwrap_or_default().to_owned()
    };
    list.split(',').filter(|parameter| !matches!(parameter.trim(), "" | "void")).map(name).collect()
}

/// The function of ours or the macro with parameters declared by some code, if any.
fn declared(code: &str) -> Option<Declared> {
    let (head, rest) = code.trim().split_once('(')?;
    let list = rest.split(')').next().unwrap_or_default();
    let macro_name = head.strip_prefix("#define ");
    let name = match macro_name {
        Some(name) => name,
        None if head.starts_with("typedef") || head.contains(['{', '#']) => return None,
        None => head.rsplit(|letter| !is_letter_of_name(letter)).next()?,
    };
    let is_ours =
        name.to_lowercase().starts_with("vgasnet_") && !name.ends_with('_') && name.chars().all(is_letter_of_name);
    let returns = macro_name.is_none().then(|| head.split(name).next().map(str::trim) != Some("void"));
    is_ours.then(|| Declared { name: name.to_owned(), parameters: parameters(list), returns })
}

/// The declarations in some code. The first may have a docstring in front. A macro ends with its line.
fn declarations(code: &str) -> Vec<String> {
    let (mut found, mut begun) = (Vec::new(), String::new());
    for line in code.replace("\\\n", " ").lines() {
        begun = format!("{begun} {line}");
        if line.starts_with("#define ") || line.ends_with(';') {
            found.push(std::mem::take(&mut begun));
        }
    }
    found
}

/// The omissions in a function's docstring. `is_known` tells the names allowed in `@see`.
fn lacking(function: &Declared, docstring: &Docstring, is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let Docstring { description, parameters, returned, results, see, .. } = docstring;
    let mut lacks = Vec::new();
    let brief = description.split("\n\n").next().unwrap_or_default().trim();
    if !brief.ends_with('.') || brief.trim_end_matches('.').contains(". ") {
        lacks.push(format!("its first paragraph is not one sentence: {brief:?}"));
    }
    let named: Vec<_> = parameters.iter().map(|(name, _)| name.clone()).collect();
    if named != function.parameters {
        lacks.push(format!("@param names {named:?}, and its parameters are {:?}", function.parameters));
    }
    let is_empty = |(_, text): &&Entry| text.trim().is_empty();
    lacks.extend(
        parameters.iter().chain(results).filter(is_empty).map(|(name, _)| format!("nothing is said of {name}")),
    );
    let says_result = returned.is_some() || !results.is_empty();
    if function.returns.is_some_and(|returns| returns != says_result) {
        lacks.push("@return or @retval does not fit its type".to_owned());
    }
    if see.is_empty() {
        lacks.push("there is no @see".to_owned());
    }
    lacks.extend(see.iter().filter(|name| !is_known(name)).map(|name| format!("@see names {name}, which is nothing")));
    lacks.into_iter().map(|what| format!("{}: {what}", function.name)).collect()
}

/// The omissions in the docstrings of a header, and its number of functions.
fn complaints(text: &str, is_known: impl Fn(&str) -> bool) -> (Vec<String>, usize) {
    let parts = parts(text);
    let (mut complaints, mut count) = (Vec::new(), 0);
    for (at, part) in parts.iter().enumerate() {
        let Part::Declaration(code) = part else { continue };
        for (nth, function) in
            declarations(code).iter().enumerate().filter_map(|(nth, code)| Some((nth, declared(code)?)))
        {
            count += 1;
            match at.checked_sub(1).map(|before| &parts[before]) {
                Some(Part::Docstring(docstring)) if nth == 0 => {
                    complaints.extend(lacking(&function, docstring, &is_known))
                }
                _ => complaints.push(format!("{} has no docstring", function.name)),
            }
        }
    }
    (complaints, count)
}

/// All names in the headers: functions, types and macros.
fn names() -> BTreeSet<String> {
    let texts = headers("vgasnet", "").into_iter().chain(headers("gasnet-ex", "")).map(|(_, text)| text);
    let text: String = texts.collect::<String>().replace("##M", "M");
    text.split(|letter| !is_letter_of_name(letter)).map(str::to_owned).collect()
}

/// Whether a target of `@see` exists: a name, a document, or a specification of another project.
fn is_there(name: &str, names: &BTreeSet<String>) -> bool {
    let is_others = ["GASNet-EX specification", "GASNet-1 specification", "GASNet's README-tools"]
        .iter()
        .any(|text| name.starts_with(text));
    is_others || names.contains(name) || name.starts_with("docs/") && root().join(name).is_file()
}

#[test]
fn every_function_has_a_docstring_with_all_of_its_parameters() {
    let names = names();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (header, text) in headers("vgasnet", "").into_iter().chain(headers("gasnet-ex", "vgasnet_ex")) {
        let (found, functions) = complaints(&text, |name| is_there(name, &names));
        wrong.extend(found.into_iter().map(|complaint| format!("include/{header}: {complaint}")));
        count += functions;
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 350, "{count}");
}

/// The names in a GASNet header that are functions or stand for one, each with the text in front.
fn names_of_gasnet(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    for line in text.lines() {
        let name = match line.strip_prefix("#define ") {
            Some(definition) => definition.split([' ', '(']).next(),
            None if line.starts_with("static inline ") || line.starts_with("GASNETT_INLINE(") => {
                let code = line
                    .split_once(") ")
                    .filter(|_| line.starts_with("GASNETT_INLINE("))
                    .map_or(line, |(_, code)| code);
                code.split('(').next().and_then(|head| head.rsplit([' ', '*']).next())
            }
            None => None,
        };
        let is_function = |name: &&str| {
            ["gasnet_", "gex_", "gasnett_"].iter().any(|prefix| name.starts_with(prefix)) && !name.ends_with('_')
        };
        if let Some(name) = name.filter(is_function) {
            let begin = before.iter().rposition(|line| line.starts_with("/*")).unwrap_or(before.len());
            found.push((name.to_owned(), before[begin..].join(" ")));
        }
        before.push(line);
    }
    found
}

#[test]
fn every_name_of_gasnets_has_a_docstring_that_leads_on() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (header, text) in headers("gasnet-compat", "gasnet").into_iter().chain(headers("gasnet-ex", "g")) {
        for (name, before) in names_of_gasnet(&text) {
            count += 1;
            if !(before.starts_with("/**") && before.ends_with("*/") && before.contains(" @see ")) {
                wrong.push(format!("include/{header}: {name} has no docstring with @see right before it"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 500, "{count}");
}

#[test]
fn a_docstring_that_lacks_something_is_found() {
    let good = "/**\n * Does it.\n *\n * Fatal: a null pointer.\n *\n * @param a the first\n * @param b the second\n * @retval VGASNET_OK on success\n * @see vgasnet_b\n */\n\
        int vgasnet_a(int a,\n              const int b[]);\n";
    let told = |text: &str| complaints(text, |name| name == "vgasnet_b");
    assert_eq!(told(good), (Vec::new(), 1));
    for (is, becomes, complaint) in [
        ("/**", "/*", "vgasnet_a has no docstring"),
        ("Does it.", "Does it. And more.", "vgasnet_a: its first paragraph is not one sentence"),
        ("Does it.", "", "vgasnet_a: its first paragraph is not one sentence"),
        (
            "@param a the first\n * @param b the second",
            "@param b the second\n * @param a the first",
            "vgasnet_a: @param names [\"b\", \"a\"]",
        ),
        ("@param b the second\n * ", "", "vgasnet_a: @param names [\"a\"]"),
        ("the second", "", "vgasnet_a: nothing is said of b"),
        ("@retval VGASNET_OK on success\n * ", "", "vgasnet_a: @return or @retval does not fit its type"),
        ("int vgasnet_a", "void vgasnet_a", "vgasnet_a: @return or @retval does not fit its type"),
        ("\n * @see vgasnet_b", "", "vgasnet_a: there is no @see"),
        ("vgasnet_b", "vgasnet_c", "vgasnet_a: @see names vgasnet_c"),
        ("[]);\n", "[]);\nvoid vgasnet_d(void);\n", "vgasnet_d has no docstring"),
        ("[]);\n", "[]);\n#define vgasnet_e(x) vgasnet_a(x, 0)\n", "vgasnet_e has no docstring"),
    ] {
        let text = good.replacen(is, becomes, 1);
        assert_ne!(text, good, "{is}");
        let (found, _) = told(&text);
        assert!(found.len() == 1 && found[0].starts_with(complaint), "{complaint}: {found:?}");
    }
}

#[test]
fn a_name_of_gasnets_without_a_docstring_is_found() {
    let text = "/** Does it. @see a */\n#define gasnet_a vgasnet_a\n#define gasnet_b vgasnet_b\n#define GASNET_C 1\n\
        static inline int gex_d(int e) { return e; }\nGASNETT_INLINE(gasnett_f) uint64_t gasnett_f(void) {\n";
    let found = names_of_gasnet(text);
    let names: Vec<_> = found.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["gasnet_a", "gasnet_b", "gex_d", "gasnett_f"]);
    assert_eq!(found[0].1, "/** Does it. @see a */");
    assert!(!found[1].1.ends_with("*/"), "{found:?}");
}
