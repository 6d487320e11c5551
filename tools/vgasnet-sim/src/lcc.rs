//! Accesses of the example `lcc`, clustering coefficients of a graph: for each of its vertices a rank gets the
//! neighbour lists of the neighbours.
//!
//! As in an R-MAT graph, a small number of vertices have many neighbours and are neighbours of many others. All
//! properties of a vertex follow from its number, so no rank stores the graph.

use crate::program::{Asked, Data, Program, Step};

/// Vertices per rank with computed coefficients.
const VERTICES: u64 = 24;

/// Neighbours of most vertices, and the maximum.
const NEIGHBOURS_LEAST: u64 = 4;
const NEIGHBOURS_MOST: u64 = 1024;

/// A neighbour is a number of 4 bytes. All vertices have the same room.
const NUMBER_BYTES: u64 = 4;
const ROOM_BYTES: u64 = NEIGHBOURS_MOST * NUMBER_BYTES;

/// Bytes of the graph for this number of ranks.
pub fn bytes(ranks: u32) -> u64 {
    vertices(ranks) * ROOM_BYTES
}

/// Bytes fetched by a rank.
pub fn moved_bytes(rank: u32, ranks: u32) -> u64 {
    let all = vertices(ranks);
    gets(rank, ranks).map(|vertex| neighbours(vertex, all) * NUMBER_BYTES).sum()
}

/// The accesses of a rank.
pub fn program(data: Data, rank: u32, ranks: u32) -> Program {
    let all = vertices(ranks);
    let in_page = data.page_bytes as u64 / ROOM_BYTES;
    Box::new(gets(rank, ranks).map(move |vertex| {
        let (home, place) = (vertex % u64::from(ranks), vertex / u64::from(ranks));
        Step::Access(Asked {
            home: home as u32,
            page: (place / in_page) as u32,
            offset_bytes: (place % in_page * ROOM_BYTES) as usize,
            len_bytes: (neighbours(vertex, all) * NUMBER_BYTES) as usize,
            is_put: false,
        })
    }))
}

fn vertices(ranks: u32) -> u64 {
    u64::from(ranks) * VERTICES
}

/// The number of neighbours of a vertex, in a graph of `all` vertices. Low numbers have many.
fn neighbours(vertex: u64, all: u64) -> u64 {
    let share = (all as f64 / (vertex + 1) as f64).sqrt();
    ((NEIGHBOURS_LEAST as f64 * share) as u64).clamp(NEIGHBOURS_LEAST, NEIGHBOURS_MOST)
}

/// The vertices with neighbour lists fetched by a rank, in order.
fn gets(rank: u32, ranks: u32) -> impl Iterator<Item = u64> {
    let all = vertices(ranks);
    (0..VERTICES).flat_map(move |nth| {
        let vertex = nth * u64::from(ranks) + u64::from(rank);
        let mut random = fastrand::Rng::with_seed(vertex);
        // At most 64 neighbours of a vertex are visited, otherwise one rank would have most of the work.
        (0..neighbours(vertex, all).min(64)).map(move |_| {
            let drawn = random.f64();
            ((drawn * drawn * all as f64) as u64).min(all - 1)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_lie_in_their_pages_and_few_vertices_are_asked_for_often() {
        let data = Data { homes: 8, pages_each: 1, page_bytes: 4 << 20 };
        let mut first = 0;
        for rank in 0..8 {
            let mut moved = 0;
            for step in program(data, rank, 8) {
                let Step::Access(Asked { home, page, offset_bytes, len_bytes, is_put }) = step else {
                    panic!("{step:?}")
                };
                assert!(
                    !is_put && home < 8 && page == 0 && offset_bytes + len_bytes <= (VERTICES * ROOM_BYTES) as usize
                );
                first += u64::from(offset_bytes == 0);
                moved += len_bytes as u64;
            }
            assert_eq!(moved, moved_bytes(rank, 8));
        }
        let gets = (0..8).map(|rank| gets(rank, 8).count() as u64).sum::<u64>();
        assert!(first * VERTICES > 3 * gets, "{first} of {gets} are for the first vertex of a rank");
    }
}
