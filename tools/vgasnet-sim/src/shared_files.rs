//! Access patterns of Liao, Coloma, Choudhary and Ward (IJHPCA 2007) to a shared file, as in `vgasnet-bench files`. The
//! file's pages have homes round robin.

use crate::program::{Asked, Data, Program, Step};

/// Bytes read, modified and written at a time by a rank.
const WINDOW_BYTES: u64 = 512 << 10;

/// Windows of a rank.
const WINDOWS: u32 = 4;

/// A row of BT-IO: 16 points.
const ROW_BYTES: u64 = 640;

/// Rows of a rank.
const ROWS: u64 = 64;

/// A FLASH I/O variable on a rank: 80 blocks of 8 x 8 x 8 cells.
const VARIABLE_BYTES: u64 = 80 * 512 * 8;

/// Number of variables.
const VARIABLES: u64 = 8;

/// A pattern of access to a shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shared {
    /// Each rank reads and writes a window, then moves to a window just written by another rank. A barrier follows each
    /// step.
    SlidingWindow,
    /// Ranks write rows round robin, as in BT-IO's `simple`.
    Rows,
    /// Each rank writes its part of a variable. A barrier follows each variable.
    Checkpoint,
}

impl Shared {
    /// Bytes of the file for this number of ranks.
    pub fn bytes(self, ranks: u32) -> u64 {
        let each = match self {
            Shared::SlidingWindow => WINDOW_BYTES,
            Shared::Rows => ROWS * ROW_BYTES,
            Shared::Checkpoint => VARIABLES * VARIABLE_BYTES,
        };
        u64::from(ranks) * each
    }

    /// Bytes read and written by a rank.
    pub fn moved_bytes(self) -> u64 {
        match self {
            Shared::SlidingWindow => 2 * u64::from(WINDOWS) * WINDOW_BYTES,
            Shared::Rows | Shared::Checkpoint => self.bytes(1),
        }
    }

    /// The accesses of a rank.
    pub fn program(self, data: Data, rank: u32, ranks: u32) -> Program {
        let (of_all, own) = (u64::from(ranks), u64::from(rank));
        let put = move |start, len| pieces(data, start, len, true);
        match self {
            Shared::SlidingWindow => Box::new((0..WINDOWS).flat_map(move |step| {
                let start = u64::from((rank + step) % ranks) * WINDOW_BYTES;
                let get = pieces(data, start, WINDOW_BYTES, false);
                get.chain(put(start, WINDOW_BYTES)).chain([Step::Barrier])
            })),
            Shared::Rows => Box::new((0..ROWS).flat_map(move |row| put((row * of_all + own) * ROW_BYTES, ROW_BYTES))),
            Shared::Checkpoint => Box::new((0..VARIABLES).flat_map(move |variable| {
                let start = (variable * of_all + own) * VARIABLE_BYTES;
                put(start, VARIABLE_BYTES).chain([Step::Barrier])
            })),
        }
    }
}

/// Accesses to a byte range of a file, each within one page. Pages have homes round robin.
fn pieces(data: Data, start: u64, len: u64, is_put: bool) -> impl Iterator<Item = Step> {
    let (page_bytes, homes) = (data.page_bytes as u64, u64::from(data.homes));
    let end = start + len;
    (start / page_bytes..end.div_ceil(page_bytes)).map(move |page| {
        let from = start.max(page * page_bytes);
        let to = end.min((page + 1) * page_bytes);
        Step::Access(Asked {
            home: (page % homes) as u32,
            page: (page / homes) as u32,
            offset_bytes: (from % page_bytes) as usize,
            len_bytes: (to - from) as usize,
            is_put,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_write_each_byte_once_in_its_page() {
        let data = Data { homes: 3, pages_each: 40, page_bytes: 256 << 10 };
        for shared in [Shared::Rows, Shared::Checkpoint] {
            let mut written = vec![0_u8; shared.bytes(3) as usize];
            for rank in 0..3 {
                let mut moved = 0;
                for step in shared.program(data, rank, 3) {
                    let Step::Access(Asked { home, page, offset_bytes, len_bytes, is_put }) = step else { continue };
                    assert!(is_put && offset_bytes + len_bytes <= data.page_bytes && page < data.pages_each);
                    let start = (page as usize * 3 + home as usize) * data.page_bytes + offset_bytes;
                    written[start..start + len_bytes].iter_mut().for_each(|times| *times += 1);
                    moved += len_bytes as u64;
                }
                assert_eq!(moved, shared.moved_bytes());
            }
            assert!(written.iter().all(|times| *times == 1));
        }
    }

    #[test]
    fn a_window_goes_from_rank_to_rank() {
        let data = Data { homes: 2, pages_each: 4, page_bytes: 256 << 10 };
        let accesses = |rank| {
            let program = Shared::SlidingWindow.program(data, rank, 2);
            program
                .filter_map(|step| if let Step::Access(asked) = step { Some(asked) } else { None })
                .collect::<Vec<_>>()
        };
        let [first, second] = [accesses(0), accesses(1)];
        assert_eq!(first.iter().map(|asked| asked.len_bytes as u64).sum::<u64>(), Shared::SlidingWindow.moved_bytes());
        // Each step reads two pages, and writes them.
        let place = |asked: &Asked| (asked.home, asked.page, asked.is_put);
        assert_eq!(
            first[4..8].iter().map(place).collect::<Vec<_>>(),
            second[..4].iter().map(place).collect::<Vec<_>>()
        );
    }
}
