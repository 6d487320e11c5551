//! A man page, in macros common to all troffs.

/// The first entry has the date of this version, in a line such as ` -- NAME <ADDRESS>  Thu, 26 Nov 2026 12:00:00
/// +0000`.
const CHANGES: &str = include_str!("../../../debian/changelog");

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The day of the latest change, as `2026-11-26`.
fn date_of(changes: &str) -> String {
    let last = changes.lines().find(|line| line.starts_with(" -- "));
    let words: Vec<_> = last.and_then(|line| line.split_once(", ")).map_or("", |(_, date)| date).split(' ').collect();
    let month = words.get(1).and_then(|word| MONTHS.iter().position(|month| month == word));
    match (&words[..], month) {
        ([day, _, year, ..], Some(month)) => format!("{year}-{:02}-{day:0>2}", month + 1),
        _ => panic!("the first change in debian/changelog has no date"),
    }
}

/// A page under construction.
#[derive(Debug)]
pub struct Page {
    text: String,
}

impl Page {
    /// A page `name`(`section`) with a one-line description.
    pub fn new(name: &str, section: u32, about: &str) -> Page {
        let (version, date) = (env!("CARGO_PKG_VERSION"), date_of(CHANGES));
        let mut page = Page { text: String::new() };
        page.line(&format!(".TH {} {section} \"{date}\" \"vgasnet {version}\" \"vgasnet\"", name.to_uppercase()));
        // Users search for and copy names of variables and functions, so words are not hyphenated.
        page.line(".nh");
        page.line(".ad l");
        page.section("NAME");
        page.line(&format!("{} \\- {}", escaped(name), escaped(about)));
        page
    }

    /// Starts a section.
    pub fn section(&mut self, heading: &str) {
        self.line(&format!(".SH \"{}\"", escaped(heading)));
    }

    /// Starts a subsection.
    pub fn subsection(&mut self, heading: &str) {
        self.line(&format!(".SS \"{}\"", escaped(heading)));
    }

    /// Adds paragraphs separated by empty lines. A paragraph with all lines indented is verbatim.
    pub fn paragraphs(&mut self, text: &str) {
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
            if paragraph.lines().all(|line| line.starts_with("  ")) {
                self.verbatim(paragraph);
                continue;
            }
            self.begin_paragraph();
            paragraph.lines().for_each(|line| self.text_line(line.trim()));
        }
    }

    /// Adds a term and its meaning.
    pub fn item(&mut self, term: &str, text: &str) {
        self.line(".TP");
        self.line(&format!("\\fB{}\\fR", escaped(term)));
        text.lines().for_each(|line| self.text_line(line.trim()));
    }

    /// Adds a line below the text of an item.
    pub fn below_item(&mut self, text: &str) {
        self.line(".br");
        self.text_line(text);
    }

    /// Adds lines verbatim, such as declarations and commands.
    pub fn verbatim(&mut self, text: &str) {
        self.begin_paragraph();
        self.line(".nf");
        text.lines().for_each(|line| self.text_line(line));
        self.line(".fi");
    }

    /// Adds a command line. Lines break between options, not between an option and its value.
    pub fn usage(&mut self, text: &str) {
        self.begin_paragraph();
        let mut depth = 0_usize;
        let mut line = String::new();
        for letter in text.trim().chars() {
            match letter {
                '[' | '<' => depth += 1,
                ']' | '>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            line += &if letter == ' ' && depth > 0 { "\\ ".to_owned() } else { escaped(&letter.to_string()) };
        }
        self.line(&line);
    }

    /// Adds text already in troff.
    pub fn raw(&mut self, troff: &str) {
        self.text += troff;
    }

    /// Adds the locations of the pages called `docs/` in the text.
    pub fn documents(&mut self) {
        self.section("FILES");
        self.item("docs/", "this directory of the sources is share/doc/vgasnet of an installation, and /usr/share/doc/libvgasnet-dev of Debian's packages");
    }

    /// Adds references to other pages, as `vgasnet(7)`.
    pub fn see_also(&mut self, pages: &[&str]) {
        if pages.is_empty() {
            return;
        }
        self.section("SEE ALSO");
        let named = pages.iter().map(|page| {
            let (name, section) = page.split_once('(').unwrap_or((page, ")"));
            format!("\\fB{}\\fR({section}", escaped(name))
        });
        let named: Vec<_> = named.collect();
        self.line(&named.join(", "));
    }

    /// The complete page.
    pub fn finish(self) -> String {
        self.text
    }

    fn begin_paragraph(&mut self) {
        let last = self.text.lines().next_back().unwrap_or_default();
        // A heading starts a paragraph by itself.
        if !last.starts_with(".SH") && !last.starts_with(".SS") {
            self.line(".PP");
        }
    }

    fn text_line(&mut self, line: &str) {
        // At the start of a line these characters would start a request.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let line = format!("{guard}{}", escaped(line));
        self.line(&line);
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }
}

/// Escapes characters with a special meaning in troff.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_that_of_the_latest_change() {
        let changes = "a (2) x\n\n -- N <a@b>  Mon, 2 Feb 2026 12:00:00 +0000\n\na (1) x\n\n -- N <a@b>  Thu, 01 Jan 2026 12:00:00 +0000\n";
        assert_eq!(date_of(changes), "2026-02-02");
    }

    #[test]
    fn text_stays_text() {
        let mut page = Page::new("name", 7, "a test-page");
        page.paragraphs(".first \"word\"\nC:\\x\n\n'second\n\n  a();\n  b();");
        page.item("--option", "what it does");
        page.verbatim("int main(void);");
        page.usage("run [-n RANKS] PROGRAM [ARGUMENT]...");
        page.see_also(&["vgasnet(7)", "vgasnetrun(1)"]);
        let expected = ".TH NAME 7 \"DATE\" \"vgasnet VERSION\" \"vgasnet\"\n.nh\n.ad l\n.SH \"NAME\"\nname \\- a test\\-page\n.PP\n\
            \\&.first \\(dqword\\(dq\nC:\\ex\n.PP\n\\&'second\n.PP\n.nf\n  a();\n  b();\n.fi\n.TP\n\\fB\\-\\-option\\fR\nwhat it does\n.PP\n.nf\n\
            int main(void);\n.fi\n.PP\nrun [\\-n\\ RANKS] PROGRAM [ARGUMENT]...\n.SH \"SEE ALSO\"\n\\fBvgasnet\\fR(7), \\fBvgasnetrun\\fR(1)\n";
        let expected = expected.replace("VERSION", env!("CARGO_PKG_VERSION")).replace("DATE", &date_of(CHANGES));
        assert_eq!(page.finish(), expected);
    }
}
