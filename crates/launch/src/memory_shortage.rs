//! Detection of processes ended by the system for lack of memory, silently by SIGKILL.

use std::fs;

/// Number of such ends on the whole machine so far: for its memory, or for a cgroup's limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryShortage {
    ended: Option<u64>,
}

impl MemoryShortage {
    /// Starts counting now.
    pub(crate) fn since_now() -> MemoryShortage {
        MemoryShortage { ended: fs::read_to_string("/proc/vmstat").ok().as_deref().and_then(ended) }
    }

    /// Advice on a process killed since then, if the system has ended any.
    pub(crate) fn advice(self) -> Option<&'static str> {
        let before = self.ended?;
        (MemoryShortage::since_now().ended? > before).then_some(
            "the system has ended processes for want of memory meanwhile, see `dmesg`; lower VGASNET_POOL_SIZE, start fewer ranks, or raise \
             the limit of the cgroup",
        )
    }
}

/// Source: `vmstat_text` in Linux's mm/vmstat.c, since 4.13.
fn ended(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_has_ended_is_one_of_its_numbers() {
        assert_eq!(ended("pgfault 12\noom_kill 3\noom_kill_x 5\n"), Some(3));
        assert_eq!(ended("pgfault 12\n"), None);
        assert_eq!(MemoryShortage { ended: None }.advice(), None);
        assert_eq!(MemoryShortage { ended: Some(u64::MAX) }.advice(), None);
        let text = fs::read_to_string("/proc/vmstat").expect("every Linux has it");
        assert!(ended(&text).is_some(), "{text}");
    }
}
