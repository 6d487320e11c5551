//! Docstrings of declarations: `/** ... */` comments with Doxygen tags.

/// A name and its description.
pub(crate) type Entry = (String, String);

/// A parsed docstring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Docstring {
    /// Paragraphs separated by empty lines. The first is one sentence.
    pub(crate) description: String,
    /// The errors that end the job.
    pub(crate) fatal: Option<String>,
    pub(crate) parameters: Vec<Entry>,
    pub(crate) returned: Option<String>,
    /// Results with individual meanings.
    pub(crate) results: Vec<Entry>,
    pub(crate) see: Vec<String>,
}

impl Docstring {
    /// Parses the lines of a comment without its stars.
    pub(crate) fn of(text: &str) -> Docstring {
        let (described, tags) = text.split_at(text.find("\n@").map_or(text.len(), |at| at + 1));
        let mut docstring = Docstring::default();
        let is_fatal = |paragraph: &&str| paragraph.starts_with("Fatal: ");
        let (fatal, described): (Vec<_>, Vec<_>) = described.trim().split("\n\n").partition(is_fatal);
        docstring.description = described.join("\n\n");
        docstring.fatal = fatal.first().map(|text| text["Fatal: ".len()..].to_owned());
        for tag in format!("\n{tags}").split("\n@").skip(1) {
            docstring.take(tag.trim());
        }
        docstring
    }

    fn take(&mut self, tag: &str) {
        let tag = tag.split_whitespace().collect::<Vec<_>>().join(" ");
        let (kind, text) = tag.split_once(' ').unwrap_or((&*tag, ""));
        let entry =
            || text.split_once(' ').map_or((text.to_owned(), String::new()), |(a, b)| (a.to_owned(), b.to_owned()));
        match kind {
            "param" => self.parameters.push(entry()),
            "retval" => self.results.push(entry()),
            "return" => self.returned = Some(text.to_owned()),
            "see" => self.see.extend(text.split(", ").map(str::to_owned)),
            _ => panic!("@{kind} is no tag of ours; give @param, @return, @retval or @see"),
        }
    }

    /// The first sentence as a phrase for a list of pages.
    pub(crate) fn brief(&self) -> String {
        let first = self.description.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        let mut letters = first.trim_end_matches('.').chars();
        letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
    }

    /// Partitions the results into successes and errors.
    pub(crate) fn results_and_errors(&self) -> (Vec<&Entry>, Vec<&Entry>) {
        let is_result = |(code, _): &&Entry| code == "VGASNET_OK" || code == "VGASNET_ERR_NOT_READY";
        self.results.iter().partition(is_result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_told_apart() {
        let text = "Does it.\n\nMore.\n\nFatal: a null pointer,\nor two.\n\n@param a first\n    of two\n@param b second\n@return it\n\
            @retval VGASNET_OK on success\n@see c, d\n";
        let expected = Docstring {
            description: "Does it.\n\nMore.".into(),
            fatal: Some("a null pointer,\nor two.".into()),
            parameters: vec![("a".into(), "first of two".into()), ("b".into(), "second".into())],
            returned: Some("it".into()),
            results: vec![("VGASNET_OK".into(), "on success".into())],
            see: vec!["c".into(), "d".into()],
        };
        assert_eq!(Docstring::of(text), expected);
        assert_eq!(expected.brief(), "does it");
    }

    #[test]
    fn a_sentence_alone_is_a_description() {
        assert_eq!(Docstring::of("Does it."), Docstring { description: "Does it.".into(), ..Docstring::default() });
    }
}
