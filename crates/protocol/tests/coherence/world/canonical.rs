//! Canonical states: equivalent states are made equal, so that an exploration visits each once.

use super::{Flight, Word, World};
use vgasnet_protocol::coherence::{CoherenceBody, CoherenceMessage, CopyVersion, FrameId, PageId, ToCache, ToHome};
use vgasnet_protocol::{Rank, Space};

impl World {
    /// The same state with versions renumbered, and bytes reduced to whether they are the newest. An endless run has
    /// finitely many such states.
    pub fn canonical(&self) -> World {
        let mut world = self.clone();
        for home in (0..self.shape.ranks).map(Rank) {
            let mut seen: Vec<u64> = world.versions_of(home).into_iter().map(|version| version.number()).collect();
            seen.sort_unstable();
            seen.dedup();
            for version in world.versions_of(home) {
                let number = 1 + seen.binary_search(&version.number()).expect("it was just collected") as u64;
                let renumbered = CopyVersion(number);
                *version = if version.is_guest() { renumbered.of_guest() } else { renumbered };
            }
        }
        world.abstract_bytes();
        world.flights.sort_unstable();
        world
    }

    /// Pages become all 0 (never written) or all 1 (the newest bytes); an older byte becomes 0xEE.
    fn abstract_bytes(&mut self) {
        let model = std::mem::take(&mut self.model);
        let zeros = vec![0; self.shape.page_bytes];
        let newest = |page: &PageId| model.get(page).unwrap_or(&zeros);
        let value = |page: &PageId| u8::from(newest(page) != &zeros);
        let abstract_page = |page: Option<PageId>, bytes: &mut Vec<u8>| {
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = page.filter(|page| *byte == newest(page)[at]).map_or(0xEE, |page| value(&page));
            }
        };
        for (at, node) in self.nodes.iter_mut().enumerate() {
            for frame in 0..self.shape.frames {
                let page = node.protocol.cache.page_in(FrameId(frame));
                abstract_page(page, &mut node.frames[frame as usize]);
            }
            for index in 0..self.shape.pages {
                let bytes = node.file.entry(index).or_insert_with(|| zeros.clone());
                abstract_page(Some(PageId::of_segment(Rank(at as u32), index)), bytes);
            }
            node.words.retain(|_, word| *word != Word::default());
        }
        self.model = self.pages().map(|page| (page, vec![value(&page); self.shape.page_bytes])).collect();
    }

    fn versions_of(&mut self, home: Rank) -> Vec<&mut CopyVersion> {
        let mut all = Vec::new();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if at == home.index() {
                all.extend(node.protocol.home.versions_mut());
            }
            let cached = node.protocol.cache.versions_mut();
            all.extend(
                cached
                    .into_iter()
                    .filter(|(page, _)| page.space == Space::of_segment(home))
                    .map(|(_, version)| version),
            );
        }
        for flight in &mut self.flights {
            match flight {
                Flight::Message { message, .. } if message.page.space == Space::of_segment(home) => {
                    all.extend(version_of(message))
                }
                Flight::Transfer { outgoing, .. } if outgoing.page.space == Space::of_segment(home) => {
                    all.push(&mut outgoing.forward.version)
                }
                _ => {}
            }
        }
        all
    }
}

fn version_of(message: &mut CoherenceMessage) -> Option<&mut CopyVersion> {
    match &mut message.body {
        CoherenceBody::Home(
            ToHome::Read { .. } | ToHome::Write { copy: None, .. } | ToHome::Hurry | ToHome::Overwrite { .. },
        )
        | CoherenceBody::Cache(ToCache::Unread | ToCache::Unreadable { .. }) => None,
        CoherenceBody::Home(
            ToHome::Write { copy: Some(version), .. }
            | ToHome::Done { version }
            | ToHome::Nack { version }
            | ToHome::Acknowledge { version, .. }
            | ToHome::Evict { copy: version, .. }
            | ToHome::Forget { copy: version }
            | ToHome::Decline { version },
        ) => Some(version),
        CoherenceBody::Cache(ToCache::Forward(forward)) => Some(&mut forward.version),
        CoherenceBody::Cache(
            ToCache::Invalidate { version }
            | ToCache::Relay { version, .. }
            | ToCache::Acknowledge { version, .. }
            | ToCache::Grant { version }
            | ToCache::Data { version, .. }
            | ToCache::Evicted { copy: version }
            | ToCache::Unwritten { copy: version, .. }
            | ToCache::Recall { copy: version }
            | ToCache::Fetch { version, .. },
        ) => Some(version),
    }
}
