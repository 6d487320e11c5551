//! Bound on the storage's background I/O, for which no operation waits.
//!
//! A miss waits for the I/O already in flight at the disk. With occasional misses the bound is small. Without recent
//! misses, as in a sequential scan, it is large enough to keep the disk busy.

/// Bound in bytes after a recent miss; at least two pages, so that the disk always has a next request.
const LEAST_BYTES: usize = 512 << 10;

/// Bound in bytes without a recent miss; at least four pages.
const MOST_BYTES: usize = 4 << 20;

/// Bytes moved without a miss before the bound rises.
const CALM_BYTES: usize = 16 << 20;

/// Maximum number of background requests. It leaves request slots for operations.
const REQUESTS_MAX: usize = 8;

/// The storage's background I/O in flight, in pages and requests.
#[derive(Debug)]
pub(super) struct Background {
    least: usize,
    most: usize,
    calm: usize,
    /// Pages to move until the bound rises.
    until_calm: usize,
    pages: usize,
    requests: usize,
}

impl Background {
    pub fn new(page_bytes: usize) -> Background {
        assert!(page_bytes > 0, "a page has bytes");
        Background {
            least: (LEAST_BYTES / page_bytes).clamp(2, REQUESTS_MAX),
            most: (MOST_BYTES / page_bytes).max(4),
            calm: (CALM_BYTES / page_bytes).max(4),
            until_calm: 0,
            pages: 0,
            requests: 0,
        }
    }

    /// Pages that may still be started.
    pub fn left(&self) -> usize {
        debug_assert!(self.least <= self.most, "the bound falls after a miss");
        debug_assert!(self.until_calm <= self.calm, "a miss counts until so many pages have moved");
        let most = if self.until_calm == 0 { self.most } else { self.least };
        if self.requests < REQUESTS_MAX { most.saturating_sub(self.pages) } else { 0 }
    }

    /// A page has been started. It has a request of its own if it `leads`.
    pub fn on_begun(&mut self, leads: bool) {
        self.pages += 1;
        self.requests += usize::from(leads);
        debug_assert!(self.requests <= self.pages, "each request has a page");
    }

    /// A page has completed, or an operation has begun to wait for it.
    pub fn on_ended(&mut self, led: bool) {
        assert!(self.pages > 0 && self.requests >= usize::from(led), "the page was in flight in the background");
        self.pages -= 1;
        self.requests -= usize::from(led);
        self.until_calm = self.until_calm.saturating_sub(1);
        debug_assert!(self.requests <= self.pages, "each request has a page");
    }

    /// An operation waits for a page that was not read ahead.
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
