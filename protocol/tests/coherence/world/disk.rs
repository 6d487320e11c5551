//! Disks with a cache: what was not synced may vanish from them in a crash, sector by sector.

use super::{World, home_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;

/// A disk writes so many bytes whole, or not.
pub const SECTOR_BYTES: usize = 512;

/// A page, and a sector in it.
type Sector = (PageId, usize);

/// The disks of all homes, and what they have to have. A home's file is what its operating system has cached.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disks {
    media: BTreeMap<Rank, Medium>,
    /// Everything that was ever written to a sector, in order. It was zeros before.
    history: BTreeMap<Sector, Vec<Vec<u8>>>,
    /// How much of that history a crash leaves at least.
    promised: BTreeMap<Sector, usize>,
    /// Some page could not be written back since this was last cleared.
    pub is_unwritten: bool,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Medium {
    sectors: BTreeMap<Sector, Vec<u8>>,
    /// Sectors that are newer in the file.
    unsynced: BTreeSet<Sector>,
    /// Sectors that a failed sync may have lost, and that were not written again.
    doubtful: BTreeSet<Sector>,
}

/// How far the history of each sector has come.
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

    /// Whatever was written up to then survives crashes from now on.
    pub fn promise(&mut self, moment: Moment) {
        self.promised = moment;
    }
}

impl World {
    /// The same world, whose homes' disks lose what is not synced. Pages have whole sectors. Nothing has happened yet.
    pub fn losing_unsynced(mut self) -> World {
        assert_eq!(self.shape.page_bytes, 2 * SECTOR_BYTES, "a store moves half a page in a step");
        self.disks = Some(Disks::default());
        self
    }

    /// A home has its disk take what its file has. Returns whether the disk has all of that.
    pub fn sync_disk(&mut self, home: Rank) -> bool {
        let file = &self.nodes[home.index()].file;
        let medium = self.disks.as_mut().expect("disks lose").media.entry(home).or_default();
        for sector in std::mem::take(&mut medium.unsynced) {
            medium.sectors.insert(sector, of_file(file, sector));
        }
        medium.doubtful.is_empty()
    }

    /// The same fails: some of it is there, and the operating system takes all for written.
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

    /// After a crash now each sector is as it was at some time since the last sync that succeeded.
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
