//! The blocks of a document: commands, the files they use, and the lines they print.

/// How a block is tested.
#[derive(Debug)]
pub enum How {
    Runs,
    Tested(String),
    PartOf(String),
    ByHand(String),
}

/// Some commands of a document.
#[derive(Debug)]
pub struct Block {
    pub document: String,
    pub line: usize,
    pub commands: String,
    pub how: How,
    /// The expected output lines of the block.
    pub prints: Vec<String>,
}

fn how(line: &str) -> How {
    let said = |begin: &str| line.strip_prefix(begin)?.strip_suffix(" -->").map(str::to_owned);
    let tested = said("<!-- tested: ").map(How::Tested);
    tested
        .or_else(|| said("<!-- part of: ").map(How::PartOf))
        .or_else(|| said("<!-- by hand: ").map(How::ByHand))
        .unwrap_or(How::Runs)
}

/// The blocks of a document: blocks fenced as shell, and text indented after an empty line.
pub fn blocks_of(document: &str, text: &str) -> Vec<Block> {
    let (mut blocks, mut fence, mut last, mut is_before_empty) = (Vec::<Block>::new(), None::<bool>, "", true);
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let is_shown = match (fence, line.strip_prefix("```")) {
            (None, Some(kind)) => {
                fence = Some(kind == "sh");
                false
            }
            (Some(_), Some(_)) => {
                fence = None;
                false
            }
            (Some(is_shell), None) => is_shell,
            (None, None) => line.starts_with("    ") && (inside || is_before_empty),
        };
        if is_shown && !inside {
            let how = how(last);
            blocks.push(Block {
                document: document.to_owned(),
                line: at + 1,
                commands: String::new(),
                how,
                prints: Vec::new(),
            });
        }
        if is_shown {
            let block = blocks.last_mut().expect("it was begun");
            block.commands += line.strip_prefix("    ").unwrap_or(line);
            block.commands.push('\n');
        }
        inside = is_shown;
        is_before_empty = line.is_empty();
        if !line.is_empty() && !line.starts_with("```") {
            last = line;
        }
    }
    for (line, _, printed) in marked(text, "<!-- prints") {
        let block = blocks.iter_mut().rfind(|block| block.line < line);
        let block = block.unwrap_or_else(|| panic!("{document}:{line}: no commands print it"));
        block.prints.extend(printed.lines().map(str::to_owned));
    }
    blocks
}

/// The fenced blocks after a comment with this beginning: the line, the tail of the comment, and the text.
pub fn marked(text: &str, begin: &str) -> Vec<(usize, String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let found = lines.iter().enumerate().filter_map(|(at, line)| {
        let name = line.strip_prefix(begin)?.strip_suffix("-->")?.trim().to_owned();
        let is_fence = |line: &&str| line.starts_with("```");
        let first = at + 1 + lines[at + 1..].iter().position(is_fence)?;
        let count = lines[first + 1..].iter().position(is_fence)?;
        let body: String = lines[first + 1..first + 1 + count].iter().map(|line| format!("{line}\n")).collect();
        Some((at + 1, name, body))
    });
    found.collect()
}

/// The lines in which an output differs from the document, in any order. `…` in the document matches any text. Lines on
/// stderr may be missing from the document.
pub fn differences(prints: &[String], stdout: &str, stderr: &str) -> Vec<String> {
    let mut lines: Vec<(&str, bool)> = stdout.lines().map(|line| (line.trim_end(), true)).collect();
    lines.extend(stderr.lines().map(|line| (line.trim_end(), false)));
    let mut wrong = Vec::new();
    for expected in prints.iter().filter(|line| !line.is_empty()) {
        match lines.iter().position(|(line, _)| is_like(line, expected)) {
            Some(at) => {
                lines.swap_remove(at);
            }
            None => wrong.push(format!("it does not print {expected}")),
        }
    }
    let more = lines.iter().filter(|(line, is_stdout)| *is_stdout && !line.is_empty());
    wrong.extend(more.map(|(line, _)| format!("it also prints {line}")));
    wrong
}

fn is_like(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The commands of a block, one per line, without comments.
pub fn commands_of(block: &Block) -> Vec<String> {
    let joined = block.commands.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split(" # ").next().unwrap_or_default().trim().to_owned());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The words of a command that its test must contain: the program, its options, and its variables.
pub fn essential_words(command: &str) -> Vec<String> {
    let words: Vec<_> = command.split_whitespace().collect();
    let variable = |word: &str| {
        let (name, _) = word.split_once('=')?;
        let is_name = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
        (is_name && !name.is_empty()).then(|| name.to_owned())
    };
    let program = words.iter().find(|word| variable(word).is_none());
    let program = program.map(|word| word.rsplit('/').next().unwrap_or(word).to_owned());
    let options = words.iter().filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word));
    program
        .into_iter()
        .chain(options.map(str::to_owned))
        .chain(words.iter().filter_map(|word| variable(word)))
        .collect()
}

/// Whether a line of a script has all words of a command, in order. Variables may be missing, and placeholder names
/// match any word.
pub fn has_command(script: &str, command: &str) -> bool {
    let is_name = |word: &&str| {
        let is_variable = word.contains('=') && !word.starts_with('-');
        !is_variable && !word.chars().all(|letter| letter.is_ascii_uppercase()) && !word.starts_with(['>', '<'])
    };
    // A quoted value may contain blanks.
    let command = match command.split_once("=\"").and_then(|(name, rest)| Some((name, rest.split_once('"')?.1))) {
        Some((name, rest)) if !name.contains(' ') => rest,
        _ => command,
    };
    let words: Vec<_> = command.split_whitespace().filter(is_name).collect();
    let has_all = |line: &str| words.iter().try_fold(line, |rest, word| Some(rest.split_once(word)?.1)).is_some();
    !words.is_empty() && script.lines().any(has_all)
}

#[test]
fn blocks_are_found_with_how_they_are_tested() {
    let text = "Text:\n\n    a b\n    c\n\n<!-- tested: x::y -->\n\n```sh\nd\n```\n\n- item\n    no command\n\n```c\nno\n```\n\n<!-- by hand: it is far -->\n\n    e\n";
    let found: Vec<String> = blocks_of("z", text)
        .iter()
        .map(|block| format!("{} {:?} {:?}", block.line, block.commands, block.how))
        .collect();
    assert_eq!(found, [r#"3 "a b\nc\n" Runs"#, r#"9 "d\n" Tested("x::y")"#, r#"21 "e\n" ByHand("it is far")"#]);
}

#[test]
fn all_of_a_block_is_looked_for() {
    let block = Block {
        document: "z".into(),
        line: 1,
        commands: "A=b x/run --one=1 \\\n  -p DIR # why\n# no\nmake -C dir\n".into(),
        how: How::Runs,
        prints: Vec::new(),
    };
    let commands = commands_of(&block);
    assert_eq!(commands, ["A=b x/run --one=1    -p DIR", "make -C dir"]);
    assert_eq!(essential_words(&commands[0]), ["run", "--one", "A"]);
    let script = "cd x && make -C \"$work/dir\"\nmake all\n";
    assert!(has_command(script, "make -C dir >log") && has_command(script, "X=1 make DIR"));
    assert!(has_command(script, "FLAGS=\"-a -b\" make all") && !has_command(script, "FLAGS=\"-a -b\" make none"));
    assert!(!has_command(script, "make -C all") && !has_command(script, "make clean") && !has_command(script, "X=1"));
}

#[test]
fn files_and_outputs_are_found() {
    let text = "<!-- file: a.c -->\n\n```c\nx\ny\n```\n\n    run\n\n<!-- prints -->\n\n```text\nsum … is …!\n```\n";
    assert_eq!(marked(text, "<!-- file: "), [(1, "a.c".to_owned(), "x\ny\n".to_owned())]);
    let blocks = blocks_of("z", text);
    assert_eq!((blocks.len(), &blocks[0].prints[..]), (1, &["sum … is …!".to_owned()][..]));
    let prints = &blocks[0].prints;
    assert!(differences(prints, "sum 1 is 2!\n", "a warning\n").is_empty());
    assert_eq!(differences(prints, "sum 1 is 2\n", "").len(), 2);
    assert_eq!(differences(prints, "sum 1 is 2!\nmore\n", ""), ["it also prints more"]);
}
