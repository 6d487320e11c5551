//! Disks with a cache: a crash may lose unsynced data, sector by sector.

use super::{World, home_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;

/// Bytes a disk writes atomically.
pub const SECTOR_BYTES: usize = 512;

/// A page, and a sector in it.
type Sector = (PageId, usize);

/// The disks of all homes, and their required contents. A home's file is the operating system's cached view.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disks {
    media: BTreeMap<Rank, Medium>,
    /// All writes to a sector, in order. Initially it is zeros.
    history: BTreeMap<Sector, Vec<Vec<u8>>>,
    /// The minimum length of the history surviving a crash.
    promised: BTreeMap<Sector, usize>,
    /// Whether a page's write-back has failed since this was last cleared.
    pub is_unwritten: bool,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Medium {
    sectors: BTreeMap<Sector, Vec<u8>>,
    /// Sectors that are newer in the file.
    unsynced: BTreeSet<Sector>,
    /// Sectors possibly lost by a failed sync and not written since.
    doubtful: BTreeSet<Sector>,
}

/// The length of each sector's history.
pub type Moment = BTreeMap<Sector, usize>;

impl Disks {
    /// The page has newer bytes, somewhere.
    pub fn note_newest(&mut self, page: PageId, changed: Range<usize>, bytes: &[u8]) {
        for at in sectors_of(changed) {
            let sector = &bytes[at * SECTOR_BYTES..(at + 1) * SECTOR_BYTES];
            self.history.entry((page, at)).or_default().push(sector.to_vec());
        }
    }

    /// The file has newer bytes.
    pub fn note_stored(&mut self, page: PageId, stored: Range<usize>) {
        let medium = self.media.entry(home_of(page)).or_default();
        for at in sectors_of(stored.clone()) {
            medium.unsynced.insert((page, at));
            if stored.len() >= SECTOR_BYTES {
                medium.doubtful.remove(&(page, at));
            }
        }
    }

    pub fn moment(&self) -> Moment {
        self.history.iter().map(|(sector, history)| (*sector, history.len())).collect()
    }

    /// All writes up to then survive crashes from now on.
    pub fn promise(&mut self, moment: Moment) {
        self.promised = moment;
    }
}

impl World {
    /// Makes the homes' disks lose unsynced data in a crash. Pages have whole sectors. Call before the first event.
    pub fn losing_unsynced(mut self) -> World {
        assert_eq!(self.shape.page_bytes, 2 * SECTOR_BYTES, "a store moves half a page in a step");
        self.disks = Some(Disks::default());
        self
    }

    /// Syncs a home's disk with its file. Returns whether the disk has all of it.
    pub fn sync_disk(&mut self, home: Rank) -> bool {
        let file = &self.nodes[home.index()].file;
        let medium = self.disks.as_mut().expect("disks lose").media.entry(home).or_default();
        for sector in std::mem::take(&mut medium.unsynced) {
            medium.sectors.insert(sector, of_file(file, sector));
        }
        medium.doubtful.is_empty()
    }

    /// A failing sync: the disk has some of the data, and the operating system considers all of it written.
    pub fn fail_sync(&mut self, home: Rank, random: &mut fastrand::Rng) {
        let file = &self.nodes[home.index()].file;
        let medium = self.disks.as_mut().expect("disks lose").media.entry(home).or_default();
        for sector in std::mem::take(&mut medium.unsynced) {
            if random.bool() {
                medium.sectors.insert(sector, of_file(file, sector));
            }
            medium.doubtful.insert(sector);
        }
    }

    /// Checks a crash now: each sector must have a value since the last successful sync.
    pub fn check_crash(&self, random: &mut fastrand::Rng) {
        let Some(disks) = &self.disks else { return };
        for (sector, history) in &disks.history {
            let home = home_of(sector.0);
            let medium = disks.media.get(&home);
            let is_newer = medium.is_some_and(|medium| medium.unsynced.contains(sector)) && random.bool();
            let left = if is_newer {
                of_file(&self.nodes[home.index()].file, *sector)
            } else {
                let there = medium.and_then(|medium| medium.sectors.get(sector));
                there.cloned().unwrap_or_else(|| vec![0; SECTOR_BYTES])
            };
            let promised = disks.promised.get(sector).copied().unwrap_or(0);
            let is_zeros = promised == 0 && left.iter().all(|byte| *byte == 0);
            let since = &history[promised.saturating_sub(1)..];
            assert!(is_zeros || since.contains(&left), "a crash loses what was synced of {sector:?}");
        }
    }
}

fn of_file(file: &BTreeMap<u32, Vec<u8>>, (page, at): Sector) -> Vec<u8> {
    file[&page.index][at * SECTOR_BYTES..(at + 1) * SECTOR_BYTES].to_vec()
}

fn sectors_of(bytes: Range<usize>) -> Range<usize> {
    bytes.start / SECTOR_BYTES..bytes.end.div_ceil(SECTOR_BYTES)
}
