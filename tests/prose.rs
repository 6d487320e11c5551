//! The language of the documents, and that the code has what those for engineers name. Bounds are on words and sentences outside of code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Words of a sentence outside of tables.
const SENTENCE_WORDS_MAX: usize = 35;

/// Words that make sentences circle, and how many of 1,000 words they may be. One is allowed in any document.
const CIRCLING: [(&[&str], usize); 2] = [(&["what", "who", "whose"], 3), (&["that", "those"], 13)];

/// The same of comments.
const CIRCLING_OF_COMMENTS: [(&[&str], usize); 2] = [(CIRCLING[0].0, 3), (CIRCLING[1].0, 15)];

/// Rooms whose comments are measured: the directories in these, and these themselves.
const COMMENTED: [(&str, bool); 8] = [
    ("src", true),
    ("crates", true),
    ("conduits", false),
    ("mpi", true),
    ("tools", true),
    ("tests", false),
    ("include", true),
    ("bindings", true),
];

/// Documents at the root, and the most lines that they may have.
const AT_ROOT: [(&str, usize); 6] = [
    ("ARCHITECTURE.md", 250),
    ("README.md", 120),
    ("HACKING.md", usize::MAX),
    ("CONTRIBUTING.md", usize::MAX),
    ("SECURITY.md", usize::MAX),
    ("CHANGELOG.md", usize::MAX),
];

const GLOSSARY: &str = "docs/internals/glossary.md";
const GLOSSARY_ENTRIES_MAX: usize = 40;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a directory, but for those of builds and of version control.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_ours = |path: &PathBuf| path.file_name().is_some_and(|name| name != "target" && name != ".git");
    paths.filter(is_ours).flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// All documents that are measured, by their paths from the root.
fn documents() -> Vec<String> {
    let below =
        files_below(&root().join("docs")).into_iter().filter(|path| path.extension().is_some_and(|e| e == "md"));
    let relative = below.map(|path| path.strip_prefix(root()).expect("below the root").display().to_string());
    AT_ROOT.iter().map(|(name, _)| (*name).to_owned()).chain(relative).collect()
}

/// A line without links' targets, and with each piece of code as one word.
fn plain(line: &str) -> String {
    let parts = line.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "code" });
    let text: String = parts.collect();
    let (mut plain, mut rest) = (String::new(), &*text);
    while let Some((before, after)) = rest.split_once("](") {
        plain += before;
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    plain + rest
}

/// The lines of prose, tables included: no fenced or indented code, no comments.
fn prose(text: &str) -> Vec<String> {
    let (mut is_fenced, mut is_comment, mut is_in_list) = (false, false, false);
    let mut lines = Vec::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        is_comment |= line.trim_start().starts_with("<!--");
        is_in_list = is_item(line) || is_in_list && (line.is_empty() || line.starts_with(' '));
        let is_code = is_fenced || fence || is_comment || line.starts_with("    ") && !is_in_list;
        lines.push(if is_code { String::new() } else { plain(line) });
        is_fenced ^= fence;
        is_comment &= !line.contains("-->");
    }
    lines
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("- ")
        || line.starts_with("* ")
        || line.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok())
}

/// The sentences of the lines, a paragraph, heading or item of a list each beginning a new one.
fn sentences(lines: &[String]) -> Vec<String> {
    let (mut sentences, mut sentence) = (Vec::new(), String::new());
    for line in lines {
        let is_apart = line.trim().is_empty() || line.starts_with(['#', '|']);
        if is_apart || is_item(line) {
            sentences.push(std::mem::take(&mut sentence));
        }
        for word in line.split_whitespace().filter(|_| !is_apart) {
            sentence = format!("{sentence} {word}");
            if word.trim_end_matches(['*', ')', '"']).ends_with(['.', '?', '!']) {
                sentences.push(std::mem::take(&mut sentence));
            }
        }
    }
    sentences.push(sentence);
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Which circling words a text has too many of.
fn circles(text: &str, bounds: &[(&[&str], usize)]) -> Vec<String> {
    let joined = text.to_lowercase();
    let words: Vec<&str> =
        joined.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let circling = bounds.iter().filter_map(|(circling, most)| {
        let found = words.iter().filter(|word| circling.contains(word)).count();
        let is_much = found > 1 && found * 1000 > most * words.len();
        is_much
            .then(|| format!("{} are {found} of {} words; at most {most} of 1,000", circling.join(", "), words.len()))
    });
    circling.collect()
}

/// The comments of Rust or C that are lines or blocks of their own, or stand behind code.
fn comments(text: &str) -> String {
    let mut comments = String::new();
    let mut is_block = false;
    for line in text.lines() {
        let (begin, end) = (line.find("/*"), line.find("*/"));
        let begin = if is_block { Some(0) } else { begin.filter(|_| !line.trim_start().starts_with("//")) };
        is_block = begin.is_some() && end.is_none();
        let behind_slashes = || line.trim_start().starts_with("//").then_some(0).or_else(|| line.find(" // "));
        let comment = begin.map(|begin| &line[begin..end.unwrap_or(line.len())]);
        comments += comment.or_else(|| behind_slashes().map(|begin| &line[begin..])).unwrap_or("");
        comments.push('\n');
    }
    comments
}

/// The comments and docstrings of Python.
fn docstrings(text: &str) -> String {
    let mut is_docstring = false;
    let mut is_shown = |line: &&str| {
        let marks = line.matches("\"\"\"").count();
        let was_docstring = is_docstring;
        is_docstring ^= marks == 1;
        was_docstring || marks > 0 || line.trim_start().starts_with('#')
    };
    text.lines().filter(&mut is_shown).map(|line| format!("{line}\n")).collect()
}

/// The comments of a source file, by the name's end.
fn comments_of(path: &Path) -> String {
    match path.extension().and_then(|end| end.to_str()) {
        Some("rs" | "h") => comments(&read(path)),
        Some("py") => docstrings(&read(path)),
        Some("f90" | "inc") => {
            let of_fortran = |line: &&str| line.trim_start().starts_with('!');
            read(path).lines().filter(of_fortran).map(|line| format!("{line}\n")).collect()
        }
        _ => String::new(),
    }
}

/// What is wrong with the language of a text.
fn complaints(text: &str) -> Vec<String> {
    let lines = prose(text);
    let circling = circles(&lines.join("\n"), &CIRCLING).into_iter();
    let long = sentences(&lines).into_iter().filter_map(|sentence| {
        let count = sentence.split_whitespace().count();
        (count > SENTENCE_WORDS_MAX).then(|| format!("{count} words, at most {SENTENCE_WORDS_MAX}:{sentence}"))
    });
    circling.chain(long).collect()
}

#[test]
fn documents_keep_to_the_bounds_of_prose() {
    let mut wrong = Vec::new();
    for document in documents() {
        let found = complaints(&read(&root().join(&document)));
        wrong.extend(found.into_iter().map(|complaint| format!("{document}: {complaint}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The directories whose comments are measured, each as a whole.
fn commented_rooms() -> Vec<PathBuf> {
    let below = |(room, is_of_rooms): (&str, bool)| {
        let room = root().join(room);
        let entries = fs::read_dir(&room).expect("a directory").map(|entry| entry.expect("an entry").path());
        if is_of_rooms { entries.filter(|path| path.is_dir()).collect() } else { vec![room] }
    };
    COMMENTED.into_iter().flat_map(below).collect()
}

#[test]
fn comments_keep_to_the_bounds_of_prose() {
    let mut wrong = Vec::new();
    let mut words = 0;
    for room in commented_rooms() {
        let text: String = files_below(&room).iter().map(|path| comments_of(path)).collect();
        words += text.split_whitespace().count();
        wrong.extend(
            circles(&text, &CIRCLING_OF_COMMENTS).into_iter().map(|found| format!("{}: {found}", room.display())),
        );
    }
    assert!(words > 100_000 && wrong.is_empty(), "{words} words\n{}", wrong.join("\n"));
}

#[test]
fn comments_are_found() {
    let text =
        "/// One what.\nlet a = b; // two\n/* three\n * four */ code\n//! five /* six\nlet url = \"http://x\";\n";
    let words: Vec<String> = comments(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words.join(" "), "/// One what. // two /* three * four //! five /* six");
    let text = "\"\"\"One.\n\nTwo.\n\"\"\"\na = 1\n# three\ndef f():\n    \"\"\"Four.\"\"\"\n    return 5\n";
    let words: Vec<String> = docstrings(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words.join(" "), "\"\"\"One. Two. \"\"\" # three \"\"\"Four.\"\"\"");
}

#[test]
fn documents_keep_to_their_lengths() {
    for (document, most) in AT_ROOT {
        let lines = read(&root().join(document)).lines().count();
        assert!(lines <= most, "{document} has {lines} lines; at most {most}");
    }
    let entries = entries(&read(&root().join(GLOSSARY)));
    assert!((10..=GLOSSARY_ENTRIES_MAX).contains(&entries), "{entries} words in {GLOSSARY}");
}

/// Rows of a table, but for its head.
fn entries(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("| ")).count() - 2
}

/// Pieces of code of a line: between backquotes.
fn code_spans(text: &str) -> BTreeSet<String> {
    let outside_fences = text.split("```").step_by(2);
    outside_fences.flat_map(|part| part.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The project's files, by their paths from the root, and the words of the sources among them.
struct Code {
    files: Vec<String>,
    words: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl Code {
    fn of_project() -> Code {
        let paths = files_below(root());
        let files: Vec<String> =
            paths.iter().map(|path| path.strip_prefix(root()).expect("below the root").display().to_string()).collect();
        let is_source = |file: &&String| [".rs", ".c", ".h", ".py"].iter().any(|end| file.ends_with(end));
        let mut code = Code { files: files.clone(), words: BTreeSet::new(), functions: BTreeSet::new() };
        for file in files.iter().filter(is_source).filter(|file| *file != "tests/prose.rs") {
            code.take(&String::from_utf8_lossy(&fs::read(root().join(file)).expect("a file")));
        }
        code
    }

    fn take(&mut self, text: &str) {
        let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let mut before = "";
        for word in words.filter(|word| !word.is_empty()) {
            if before == "fn" {
                self.functions.insert(word.to_owned());
            }
            self.words.insert(word.to_owned());
            before = word;
        }
    }

    /// Whether there is such a file: it may be named by the end of its path, as a folder by its beginning.
    fn has_file(&self, name: &str) -> bool {
        let as_end = format!("/{name}");
        self.files.iter().any(|file| match name.strip_suffix('/') {
            Some(_) => file.starts_with(name) || file.contains(&as_end),
            None => file == name || file.ends_with(&as_end),
        })
    }

    /// Whether the sources have what a document names. Code that is neither a name of Rust's nor a file is not looked at.
    fn has(&self, span: &str) -> bool {
        let is_file =
            [".rs", ".c", ".h", ".py", ".toml", ".svg"].iter().any(|end| span.ends_with(end)) || span.ends_with('/');
        let parts: Vec<&str> = span.split("::").collect();
        let is_word = |part: &&str| part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        if is_file && !span.contains([' ', '*']) {
            return self.has_file(span);
        }
        if parts.len() < 2 || !parts.iter().all(is_word) {
            return true;
        }
        let last = parts[parts.len() - 1];
        let is_function = last.starts_with(char::is_lowercase);
        parts.iter().all(|part| self.words.contains(*part)) && (!is_function || self.functions.contains(last))
    }
}

/// The names of functions and files among the texts of a picture.
fn names_in_picture(svg: &str) -> Vec<String> {
    let texts = svg.split('<').filter_map(|element| element.split_once('>')).map(|(_, text)| text);
    let words = texts.flat_map(|text| text.split([' ', ',', ';', '(', ')']));
    let words = words.map(|word| word.trim_end_matches([':', '.']));
    words.filter(|word| word.contains("::") || word.ends_with(".rs")).map(str::to_owned).collect()
}

/// Walks, tables and pictures lead to functions and files that there are.
#[test]
fn names_of_code_in_documents_for_engineers_are_in_the_code() {
    let code = Code::of_project();
    let is_for_engineers = |document: &String| {
        document.starts_with("docs/internals/") || ["ARCHITECTURE.md", "HACKING.md"].contains(&&**document)
    };
    let mut wrong = Vec::new();
    let mut names = 0;
    for document in documents().into_iter().filter(is_for_engineers) {
        let spans = code_spans(&read(&root().join(&document)));
        names += spans.len();
        wrong.extend(
            spans.into_iter().filter(|span| !code.has(span)).map(|span| format!("{document}: there is no {span}")),
        );
    }
    for picture in files_below(&root().join("docs/images/internals")) {
        let texts = names_in_picture(&fs::read_to_string(&picture).expect("a picture"));
        names += texts.len();
        let gone = texts.into_iter().filter(|text| !code.has(text));
        wrong.extend(gone.map(|text| format!("{}: there is no {text}", picture.display())));
    }
    assert!(names > 500 && wrong.is_empty(), "{names} names\n{}", wrong.join("\n"));
}

#[test]
fn a_text_that_circles_is_found() {
    let good = "The home writes the page. ".repeat(20);
    assert_eq!(complaints(&good), [""; 0]);
    let circling = format!("{good}What leaves, who asks.");
    assert_eq!(complaints(&circling).len(), 1, "{:?}", complaints(&circling));
    let pointing = format!("{good}That of those that ask.");
    assert!(complaints(&pointing)[0].starts_with("that, those are 3 of 105 words"), "{:?}", complaints(&pointing));
    let long = ["word"; 36].join(" ");
    assert!(complaints(&format!("{long}."))[0].starts_with("36 words"), "{:?}", complaints(&long));
    assert!(complaints(&format!("- {long}\n- {long}")).len() == 2);
    // Neither code, nor a table's cells, nor two items of a list are one sentence.
    for fine in
        [format!("```text\nwhat what {long}\n```"), format!("| {long} |"), format!("Text:\n\n    what who {long}")]
    {
        assert_eq!(complaints(&fine), [""; 0], "{fine}");
    }
    assert_eq!(complaints("- one `what who whose`\n  two\n- three [four](what-who.md)\n"), [""; 0]);
}

#[test]
fn pictures_have_names_in_their_texts_alone() {
    let svg = "<svg a::b><text x='1'>Engine::drive: takes in (a/b.rs)</text><text>page.</text></svg>";
    assert_eq!(names_in_picture(svg), ["Engine::drive", "a/b.rs"]);
}

#[test]
fn names_that_are_gone_are_found() {
    let mut code = Code { files: vec!["src/a/b.rs".into()], words: BTreeSet::new(), functions: BTreeSet::new() };
    code.take("impl Engine { fn drive(&self) {} } enum Work { Put }");
    for there in ["src/a/b.rs", "b.rs", "a/", "src/", "Engine::drive", "Work::Put", "cargo test -p x", "Gone", "page"] {
        assert!(code.has(there), "{there}");
    }
    for gone in ["c.rs", "z/", "Engine::poll", "Engine::gone", "Gone::drive", "Work::Get", "Engine::Put::poll"] {
        assert!(!code.has(gone), "{gone}");
    }
    assert_eq!(code_spans("`a` b `c`\n```sh\nd `e`\n```\n`f`"), ["a", "c", "f"].map(str::to_owned).into());
    assert_eq!(entries("| word | meaning |\n| --- | --- |\n| a | b |\n"), 1);
}
