//! A rank as its launcher knows it, and how messages name ranks.

use std::rc::Rc;

use vgasnet_protocol::RankState;

/// The current state of a rank, as known to its launcher.
#[derive(Clone, Debug)]
pub(crate) struct RankView {
    /// Its process; 0 if unknown.
    pub(crate) pid: u32,
    /// Its host, if not this one.
    pub(crate) host: Option<Rc<str>>,
    /// Its progress.
    pub(crate) state: RankState,
    /// Its reason to fail, if reported: its network has failed, possibly because of others' ends.
    pub(crate) why: Option<Rc<str>>,
    /// Advice to the user, if it was killed during a memory shortage.
    pub(crate) shortage: Option<&'static str>,
    /// Whether it has not ended.
    pub(crate) is_running: bool,
}

impl RankView {
    /// The process, for messages.
    pub(crate) fn name(&self) -> String {
        match &self.host {
            Some(host) => format!("pid {} on {host}", self.pid),
            None => format!("pid {}", self.pid),
        }
    }
}

/// `rank 2` or `ranks 2, 3`, and the number of further ones.
pub(crate) fn name_ranks(ranks: &[usize]) -> String {
    const SHOWN_MAX: usize = 16;
    let shown: Vec<_> = ranks.iter().take(SHOWN_MAX).map(usize::to_string).collect();
    let more = ranks.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("rank{} {}{more}", if ranks.len() == 1 { "" } else { "s" }, shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranks_are_cut_short() {
        assert_eq!(name_ranks(&[3]), "rank 3");
        assert_eq!(name_ranks(&[2, 3]), "ranks 2, 3");
        let many: Vec<_> = (0..20).collect();
        assert_eq!(name_ranks(&many), "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more");
    }
}
