//! How much the storage may have at a time of what nobody waits for.
//!
//! What the disk has begun it finishes, so a page that an operation misses waits for that. Where such pages come now and then,
//! the storage has little else at a time. Where none has come for a while, as in a program that reads in order, it has as
//! much as keeps the disk busy.

/// Bytes where pages have been missed lately; two pages at least, so that the disk has always the next.
const LEAST_BYTES: usize = 512 << 10;

/// Bytes where none has been; four pages at least.
const MOST_BYTES: usize = 4 << 20;

/// So many bytes are moved without a miss until there may be more.
const CALM_BYTES: usize = 16 << 20;

/// Requests of which nobody waits for any part: others find room in the storage.
const REQUESTS_MAX: usize = 8;

/// What the storage has of operations that nobody waits for, in pages and requests.
#[derive(Debug)]
pub(super) struct Background {
    least: usize,
    most: usize,
    calm: usize,
    /// Pages to be moved until there may be more.
    until_calm: usize,
    pages: usize,
    requests: usize,
}

impl Background {
    pub fn new(page_bytes: usize) -> Background {
        Background {
            least: (LEAST_BYTES / page_bytes).clamp(2, REQUESTS_MAX),
            most: (MOST_BYTES / page_bytes).max(4),
            calm: (CALM_BYTES / page_bytes).max(4),
            until_calm: 0,
            pages: 0,
            requests: 0,
        }
    }

    /// Pages that the storage may have besides those that it has.
    pub fn left(&self) -> usize {
        let most = if self.until_calm == 0 { self.most } else { self.least };
        if self.requests < REQUESTS_MAX { most.saturating_sub(self.pages) } else { 0 }
    }

    /// The storage has got a page, with a request of its own if it `leads`.
    pub fn on_begun(&mut self, leads: bool) {
        self.pages += 1;
        self.requests += usize::from(leads);
    }

    /// The storage has it no more, or somebody waits for it by now.
    pub fn on_ended(&mut self, led: bool) {
        self.pages -= 1;
        self.requests -= usize::from(led);
        self.until_calm = self.until_calm.saturating_sub(1);
    }

    /// An operation waits for a page that nobody has asked for ahead.
    pub fn on_missed(&mut self) {
        self.until_calm = self.calm;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_less_for_a_while_after_a_miss() {
        let mut background = Background::new(64 << 10);
        assert_eq!(background.left(), 64);
        background.on_missed();
        assert_eq!(background.left(), 8);
        (0..8).for_each(|page| background.on_begun(page == 0));
        assert_eq!(background.left(), 0);
        (0..8).for_each(|page| background.on_ended(page == 0));
        for _ in 8..256 {
            assert_eq!(background.left(), 8);
            background.on_begun(true);
            background.on_ended(true);
        }
        assert_eq!(background.left(), 64);
    }

    #[test]
    fn pages_of_the_default_size_keep_a_disk_busy() {
        let mut background = Background::new(4 << 20);
        assert_eq!(background.left(), 4);
        background.on_missed();
        assert_eq!(background.left(), 2);
    }

    #[test]
    fn small_requests_leave_room_to_others() {
        let mut background = Background::new(4096);
        (0..REQUESTS_MAX).for_each(|_| background.on_begun(true));
        assert_eq!(background.left(), 0);
    }
}
