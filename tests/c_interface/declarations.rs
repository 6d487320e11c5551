//! The declarations of the headers, in a form for comparison with bindings of other languages.

use crate::support::compile::source_dir;
use std::collections::BTreeMap;

/// How a value is passed. A binding must agree with C about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Void,
    /// Up to 32 bits: a binding may have a wider type in place of a byte.
    Int,
    Long,
    Pointer,
    Float,
}

impl Class {
    /// A pointer is as wide as an integer of 64 bits, and is passed alike. For bindings that use an integer for a
    /// pointer.
    pub fn by_width(self) -> Class {
        if self == Class::Pointer { Class::Long } else { self }
    }
}

/// A function: its result and its arguments.
pub type Signature = (Class, Vec<Class>);

/// The chapters of the header, in the order of inclusion.
pub fn chapters() -> Vec<(String, String)> {
    let include = source_dir().join("include");
    let overview = std::fs::read_to_string(include.join("vgasnet.h")).expect("the header");
    let names = overview.lines().filter_map(|line| Some(line.strip_prefix("#include <vgasnet/")?.split_once(".h>")?.0));
    let text = |name: &str| std::fs::read_to_string(include.join(format!("vgasnet/{name}.h"))).expect("a chapter");
    names.map(|name| (name.to_owned(), text(name))).collect()
}

/// A text of C without comments and directives, and with single blanks.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain += before;
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    plain += rest;
    let plain = plain.replace("\\\n", " ");
    let is_macro =
        |line: &&str| line.starts_with('#') || line.starts_with("VGASNET_") || line.contains("extern \"C\" {");
    let words: Vec<_> = plain.lines().filter(|line| !is_macro(line)).flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn class_of(kind: &str) -> Class {
    let is_pointer = kind.contains(['*', '[']);
    let words: Vec<_> = kind.split_whitespace().filter(|word| !["const", "struct", "extern"].contains(word)).collect();
    match words.join(" ").as_str() {
        _ if is_pointer => Class::Pointer,
        "vgasnet_token_t" => Class::Pointer,
        "void" => Class::Void,
        "float" => Class::Float,
        "int"
        | "unsigned"
        | "unsigned int"
        | "uint32_t"
        | "int32_t"
        | "uint8_t"
        | "signed char"
        | "vgasnet_node_t"
        | "vgasnet_image_t"
        | "vgasnet_handler_t"
        | "vgasnet_handlerarg_t"
        | "vgasnet_coll_fn_handle_t" => Class::Int,
        "size_t"
        | "uintptr_t"
        | "uint64_t"
        | "long"
        | "vgasnet_register_value_t"
        | "vgasnet_handle_t"
        | "vgasnet_valget_handle_t"
        | "vgasnet_team_handle_t"
        | "vgasnet_coll_handle_t"
        | "vgasnet_file_t" => Class::Long,
        other => panic!("{other} has no class; tell it here"),
    }
}

/// The class of a declared argument: a type, a name, and an array suffix.
fn class_of_argument(declared: &str) -> Class {
    let end = declared.trim_end_matches(['[', ']']);
    let name_at = end.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_').map_or(0, |at| at + 1);
    class_of(&format!("{}{}", &end[..name_at], &declared[end.len()..]))
}

/// The functions declared by a text of C, by name.
pub fn functions(text: &str) -> BTreeMap<String, Signature> {
    let plain = plain(text);
    let mut parts = plain.split("typedef struct");
    let mut outside = parts.next().expect("a text has a first part").to_owned();
    for part in parts {
        let has_fields = part.find('{') < part.find(';') && part.contains('{');
        outside += if has_fields { part.split_once('}').expect("a structure ends").1 } else { part };
    }
    let mut found = BTreeMap::new();
    for declaration in outside.split([';', '}']).map(str::trim) {
        let Some((head, arguments)) = declaration.strip_suffix(')').and_then(|whole| whole.split_once('(')) else {
            continue;
        };
        // Neither a type nor a pointer to a function.
        if head.starts_with("typedef") || arguments.starts_with('*') {
            continue;
        }
        let head = head.trim();
        let name_at = head.rfind([' ', '*']).map_or(0, |at| at + 1);
        if !head[name_at..].starts_with("vgasnet_") {
            continue;
        }
        let arguments = match arguments {
            "" | "void" => Vec::new(),
            list => list.split(',').map(|argument| class_of_argument(argument.trim())).collect(),
        };
        found.insert(head[name_at..].to_owned(), (class_of(&head[..name_at]), arguments));
    }
    found
}

/// The functions of all chapters.
pub fn all_functions() -> BTreeMap<String, Signature> {
    chapters().iter().flat_map(|(_, text)| functions(text)).collect()
}

/// The names of all constants with a number as their value.
pub fn constants() -> Vec<String> {
    let of_text = ["VGASNET_CONFIG_STRING", "VGASNET_HSL_INITIALIZER"];
    let mut names = Vec::new();
    for (_, text) in chapters() {
        let defines = text.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
        let numbers = defines.filter(|(name, value)| {
            // Names with a trailing underscore belong to the header's own macros.
            !name.contains('(')
                && !name.ends_with('_')
                && !value.is_empty()
                && !of_text.contains(name)
                && !value.starts_with('\\')
        });
        names.extend(numbers.map(|(name, _)| name.to_owned()).filter(|name| name.to_uppercase() == *name));
    }
    names
}

/// The structures of all chapters, each with its fields.
pub fn structures() -> Vec<(String, Vec<String>)> {
    structures_of(chapters().iter().map(|(_, text)| &**text))
}

/// As [`structures`], for these texts.
pub fn structures_of<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for text in texts {
        for part in plain(text).split("typedef struct {").skip(1) {
            let (body, rest) = part.split_once('}').expect("a structure ends");
            let name = rest.split_once(';').expect("it has a name").0.trim().to_owned();
            if found.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let field = |declared: &str| {
                let declared =
                    declared.split_once("(*").map_or(declared, |(_, name)| name.split_once(')').expect("a name").0);
                let declared = declared.split_once('[').map_or(declared, |(before, _)| before);
                declared.rsplit([' ', '*']).next().expect("a name").to_owned()
            };
            found.push((name, body.split(';').map(str::trim).filter(|field| !field.is_empty()).map(field).collect()));
        }
    }
    found
}

/// A program in C that prints a line for each constant, structure and field. Bindings must agree with the lines.
pub fn layout_in_c() -> String {
    printing_layout("vgasnet.h", &constants(), &structures())
}

/// As [`layout_in_c`], for these constants and structures of a header.
pub fn printing_layout(header: &str, constants: &[String], structures: &[(String, Vec<String>)]) -> String {
    let mut source = format!("#include <stdio.h>\n#include <stddef.h>\n#include <{header}>\n\nint main(void) {{\n");
    for name in constants {
        source += &format!("    printf(\"{name} %lld\\n\", (long long){name});\n");
    }
    for (name, fields) in structures {
        source += &format!("    printf(\"{name} %zu\\n\", sizeof({name}));\n");
        for field in fields {
            source += &format!("    printf(\"{name}.{field} %zu\\n\", offsetof({name}, {field}));\n");
        }
    }
    source + "    return 0;\n}\n"
}

#[test]
fn what_is_compared_is_all_there_is() {
    let (functions, constants, structures) = (all_functions(), constants(), structures());
    assert_eq!(functions["vgasnet_get"], (Class::Void, vec![Class::Pointer, Class::Int, Class::Pointer, Class::Long]));
    assert_eq!(functions["vgasnet_get_weighted"].1[4], Class::Float);
    assert_eq!(functions["vgasnet_coll_broadcastM"].1[..2], [Class::Long, Class::Pointer]);
    assert_eq!(functions["vgasnet_mynode"], (Class::Int, Vec::new()));
    assert!(functions.len() > 170, "{}", functions.len());
    for name in [
        "VGASNET_OK",
        "VGASNET_COLL_IN_MYSYNC",
        "VGASNET_TEAM_ALL",
        "VGASNET_FILE_ATOMIC",
        "SIZEOF_VGASNET_REGISTER_VALUE_T",
    ] {
        assert!(constants.contains(&name.to_owned()), "{name} is not among {constants:?}");
    }
    let entry = structures.iter().find(|(name, _)| name == "vgasnet_handlerentry_t").expect("it is there");
    assert_eq!(entry.1, ["index", "fnptr"]);
    let stats = structures.iter().find(|(name, _)| name == "vgasnet_stats_t").expect("it is there");
    assert!(stats.1.len() > 90 && stats.1.contains(&"drain_bytes".to_owned()), "{stats:?}");
    assert_eq!(structures.len(), 13, "{structures:?}");
}
