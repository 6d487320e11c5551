//! An HTML page that needs nothing besides itself.

/// On a narrow screen what is wide is moved sideways by itself. On paper tables go on over the next page.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\n\
h1,h2{line-height:1.2}h2{margin-top:2.2rem}figure,.table{margin:1rem 0;overflow-x:auto}\n\
table{border-collapse:collapse;font-size:.92rem}th:first-child,td:first-child{text-align:left;min-width:9rem}\n\
th,td{padding:.25rem .6rem;border-bottom:1px solid #ccc;text-align:right;vertical-align:top}\n\
.command{font-family:monospace;font-size:.85rem;color:#555}svg{width:100%;min-width:40rem;height:auto}\n\
@media print{body{max-width:none;margin:0;padding:0;font-size:11px}h2{break-after:avoid}figure,tr{break-inside:avoid}\n\
svg{min-width:0}table{font-size:9px}th,td{padding:.15rem .3rem}.command{font-size:9px}}";

/// Longer lines are broken at spaces: who checks sources takes a file with long ones to be made from others that are not there.
const LINE_BYTES_MAX: usize = 400;

/// A page that grows from its top to its end.
pub struct Page(String);

impl Page {
    pub fn new(title: &str) -> Page {
        let title = escaped(title);
        Page(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<h1>{title}</h1>\n"
        ))
    }

    pub fn head(&mut self, text: &str) {
        self.line(&format!("<h2>{}</h2>", escaped(text)));
    }

    pub fn paragraph(&mut self, text: &str) {
        self.line(&format!("<p>{}</p>", escaped(text)));
    }

    /// What prints the numbers above.
    pub fn command(&mut self, text: &str) {
        self.line(&format!("<p class=\"command\">{}</p>", escaped(text)));
    }

    /// A table of the model.
    pub fn sim_table(&mut self, table: &vgasnet_sim::Table) {
        if let [heads, rows @ ..] = table.rows() {
            self.table(&heads.iter().map(String::as_str).collect::<Vec<_>>(), rows);
        }
    }

    /// A paragraph and a list below it; nothing if the list is empty.
    pub fn list(&mut self, text: &str, items: impl Iterator<Item = String>) {
        let items: Vec<String> = items.map(|item| format!("<li>{}</li>", escaped(&item))).collect();
        if !items.is_empty() {
            self.paragraph(text);
            self.line(&format!("<ul>\n{}\n</ul>", items.join("\n")));
        }
    }

    pub fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        let row = |cells: &mut dyn Iterator<Item = &str>, tag: &str| {
            let cells: String = cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let head = row(&mut heads.iter().copied(), "th");
        let body: String = rows.iter().map(|cells| row(&mut cells.iter().map(String::as_str), "td")).collect();
        self.line(&format!(
            "<div class=\"table\"><table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody>\n</table></div>"
        ));
    }

    /// An image in SVG.
    pub fn chart(&mut self, svg: &str) {
        self.line(&format!("<figure>{svg}</figure>"));
    }

    pub fn end(mut self) -> String {
        self.line("</body>\n</html>");
        self.0
    }

    fn line(&mut self, html: &str) {
        for line in html.lines() {
            let mut bytes = 0;
            for word in line.split(' ') {
                let fits = bytes + 1 + word.len() <= LINE_BYTES_MAX;
                self.0.push_str(if bytes == 0 {
                    ""
                } else if fits {
                    " "
                } else {
                    "\n"
                });
                self.0.push_str(word);
                bytes = if fits { bytes + 1 } else { 0 } + word.len();
            }
            self.0.push('\n');
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_text_stays_text() {
        let mut page = Page::new("a < b");
        page.table(&["x & y"], &[vec!["<script>".into()]]);
        page.list("nothing", std::iter::empty());
        let html = page.end();
        assert!(html.contains("<title>a &lt; b</title>") && html.contains("<th>x &amp; y</th>"));
        assert!(html.contains("<td>&lt;script&gt;</td>") && !html.contains("nothing"));
        assert!(html.ends_with("</body>\n</html>\n"));
    }

    #[test]
    fn long_lines_are_broken_at_spaces() {
        let mut page = Page::new("long");
        let text = "some words ".repeat(200);
        page.paragraph(&text);
        let html = page.end();
        assert!(html.lines().all(|line| line.len() <= LINE_BYTES_MAX), "{html}");
        assert!(html.split_whitespace().collect::<Vec<_>>().join(" ").contains(text.trim()));
    }
}
