//! Ranks with several images: a rank collects bytes from its images before a collective, and delivers bytes to them
//! after it.
//!
//! The collective itself runs among ranks, each of which counts as many images as the rank with the most has. If this
//! layout differs from the images', the bytes go through memory of the collective's own:
//!
//! | collective | source | destination |
//! | --- | --- | --- |
//! | broadcast | the root's | the first image's, copied to the others |
//! | scatter | the root's; its own if ranks have different numbers of images | its own |
//! | gather | its own | the root's, or its own, as for scatter |
//! | gather_all | its own | the first image's, copied to the others; or its own, as for scatter |
//! | exchange | its own | its own |
//! | reduce | the image's; its own if there are several | the root's |
//! | reduce to all | as for reduce | as for broadcast |

use super::drive::Bases;
use std::ops::Range;
use std::sync::Arc;
use vgasnet_engine::request::CompletionId;
use vgasnet_protocol::collectives::plan::{CollectiveKind, Shape};
use vgasnet_settings::UserError;

/// Number of images of each rank. Images are numbered rank by rank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The first image of each rank, and the number of all images.
    starts: Box<[u32]>,
    /// The most images of any rank.
    most: u32,
}

/// An image's part in a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub source: usize,
    pub destination: usize,
    pub completion: CompletionId,
}

/// A collective in which a rank takes part for its images.
#[derive(Debug)]
pub(super) struct Together {
    pub layout: Arc<Layout>,
    pub rank: u32,
    pub kind: CollectiveKind,
    /// The root's image.
    pub root: u32,
    /// Bytes from one image to one other.
    pub block_bytes: usize,
    /// The part of each image of this rank, in their order.
    pub parts: Box<[Part]>,
}

impl Layout {
    /// A layout with these numbers of images.
    ///
    /// # Errors
    /// A rank has no image, or there are too many images in all.
    pub fn new(counts: &[u32]) -> Result<Layout, UserError> {
        let mut starts = vec![0_u32];
        for (rank, count) in counts.iter().enumerate() {
            if *count == 0 {
                return Err(UserError::new(format!("rank {rank} has 0 images; each rank has at least 1")));
            }
            let end = starts[rank].checked_add(*count).filter(|end| *end <= i32::MAX as u32);
            starts.push(end.ok_or_else(|| {
                UserError::new(format!("rank {rank} has {count} images; a job has at most {} of them", i32::MAX))
            })?);
        }
        Ok(Layout { starts: starts.into(), most: counts.iter().copied().max().unwrap_or(1) })
    }

    /// Whether every rank is one image.
    pub fn is_plain(&self) -> bool {
        self.most == 1
    }

    /// Number of images.
    pub fn images(&self) -> u32 {
        self.starts[self.ranks() as usize]
    }

    fn ranks(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The images of a rank.
    pub fn of(&self, rank: u32) -> Range<u32> {
        self.starts[rank as usize]..self.starts[rank as usize + 1]
    }

    /// The rank of an image.
    pub fn rank_of(&self, image: u32) -> u32 {
        self.starts.partition_point(|start| *start <= image) as u32 - 1
    }

    fn is_even(&self) -> bool {
        u64::from(self.images()) == u64::from(self.most) * u64::from(self.ranks())
    }

    /// The ranks' collective for a collective of images. `None` if its blocks are too large to count.
    pub fn shape_of_ranks(&self, of_images: Shape, rank: u32) -> Option<Shape> {
        let most = self.most as usize;
        let times = match of_images.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::ReduceToAll => 1,
            CollectiveKind::Scatter | CollectiveKind::Gather | CollectiveKind::GatherAll => most,
            CollectiveKind::Exchange => most.checked_mul(most)?,
        };
        let block_bytes = of_images.block_bytes.checked_mul(times)?;
        Some(Shape { me: rank, ranks: self.ranks(), root: self.rank_of(of_images.root), block_bytes, ..of_images })
    }
}

impl Together {
    fn most(&self) -> usize {
        self.layout.most as usize
    }

    /// Bytes of the blocks of one rank.
    fn rank_bytes(&self) -> usize {
        self.most() * self.block_bytes
    }

    /// Bytes of the blocks of all ranks.
    fn all_bytes(&self) -> usize {
        self.layout.ranks() as usize * self.rank_bytes()
    }

    /// The root's part, if it is an image of this rank.
    fn root_part(&self) -> Option<&Part> {
        let own = self.layout.of(self.rank);
        own.contains(&self.root).then(|| &self.parts[(self.root - own.start) as usize])
    }

    /// Bytes of the collective's own memory: for the source, and for the destination.
    pub fn own_bytes(&self) -> (usize, usize) {
        use CollectiveKind::*;
        let of_root = if self.root_part().is_some() { self.all_bytes() } else { 0 };
        let if_uneven = |bytes| if self.layout.is_even() { 0 } else { bytes };
        match self.kind {
            Broadcast => (0, 0),
            Scatter => (if_uneven(of_root), self.rank_bytes()),
            Gather => (self.rank_bytes(), if_uneven(of_root)),
            GatherAll => (self.rank_bytes(), if_uneven(self.all_bytes())),
            Exchange => (self.most() * self.all_bytes(), self.most() * self.all_bytes()),
            Reduce | ReduceToAll => (if self.parts.len() > 1 { self.block_bytes } else { 0 }, 0),
        }
    }

    /// The addresses of the ranks' collective, except in memory of its own.
    pub fn bases(&self) -> Bases {
        let of_root = |address: fn(&Part) -> usize| self.root_part().map_or(0, address);
        let source = match self.kind {
            CollectiveKind::Reduce | CollectiveKind::ReduceToAll => self.parts[0].source,
            _ => of_root(|part| part.source),
        };
        let destination = match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::GatherAll | CollectiveKind::ReduceToAll => {
                self.parts[0].destination
            }
            _ => of_root(|part| part.destination),
        };
        Bases { source, destination, scratch: 0 }
    }

    /// Copies the images' input to the source of the ranks. Each copy is from, to, and bytes. Reductions use their
    /// function instead.
    pub fn collect(&self, bases: &Bases, copy: &mut dyn FnMut(usize, usize, usize)) {
        let (block, layout) = (self.block_bytes, &self.layout);
        match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::ReduceToAll => {}
            CollectiveKind::Scatter => {
                let root = self.root_part().filter(|_| !layout.is_even());
                for (rank, part) in (0..layout.ranks()).flat_map(|rank| root.map(|part| (rank, part))) {
                    let images = layout.of(rank);
                    let to = bases.source + rank as usize * self.rank_bytes();
                    copy(part.source + images.start as usize * block, to, images.len() * block);
                }
            }
            CollectiveKind::Gather | CollectiveKind::GatherAll => {
                for (nth, part) in self.parts.iter().enumerate() {
                    copy(part.source, bases.source + nth * block, block);
                }
            }
            CollectiveKind::Exchange => {
                for ((nth, part), rank) in self.parts.iter().enumerate().flat_map(|of| self.with_ranks(of)) {
                    let images = layout.of(rank);
                    let to = bases.source + (rank as usize * self.most() + nth) * self.rank_bytes();
                    copy(part.source + images.start as usize * block, to, images.len() * block);
                }
            }
        }
    }

    fn with_ranks<T: Copy>(&self, of: T) -> impl Iterator<Item = (T, u32)> {
        (0..self.layout.ranks()).map(move |rank| (of, rank))
    }

    /// Copies the ranks' result to the images, as [`Together::collect`].
    pub fn deliver(&self, bases: &Bases, copy: &mut dyn FnMut(usize, usize, usize)) {
        let block = self.block_bytes;
        match self.kind {
            CollectiveKind::Reduce => {}
            CollectiveKind::Broadcast | CollectiveKind::ReduceToAll => {
                self.parts[1..].iter().for_each(|part| copy(bases.destination, part.destination, block));
            }
            CollectiveKind::Scatter => {
                for (nth, part) in self.parts.iter().enumerate() {
                    copy(bases.destination + nth * block, part.destination, block);
                }
            }
            CollectiveKind::Gather => self.root_part().into_iter().for_each(|part| self.unpack(part, bases, copy)),
            CollectiveKind::GatherAll if self.layout.is_even() => {
                let all_bytes = self.all_bytes();
                self.parts[1..].iter().for_each(|part| copy(bases.destination, part.destination, all_bytes));
            }
            CollectiveKind::GatherAll => self.parts.iter().for_each(|part| self.unpack(part, bases, copy)),
            CollectiveKind::Exchange => {
                for ((nth, part), rank) in self.parts.iter().enumerate().flat_map(|of| self.with_ranks(of)) {
                    let of_rank = bases.destination + rank as usize * self.most() * self.rank_bytes();
                    for (at, image) in self.layout.of(rank).enumerate() {
                        let from = of_rank + at * self.rank_bytes() + nth * block;
                        copy(from, part.destination + image as usize * block, block);
                    }
                }
            }
        }
    }

    /// Copies the blocks of all ranks without their padding.
    fn unpack(&self, part: &Part, bases: &Bases, copy: &mut dyn FnMut(usize, usize, usize)) {
        for rank in (0..self.layout.ranks()).filter(|_| !self.layout.is_even()) {
            let images = self.layout.of(rank);
            let to = part.destination + images.start as usize * self.block_bytes;
            copy(bases.destination + rank as usize * self.rank_bytes(), to, images.len() * self.block_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_numbered_rank_by_rank() {
        let layout = Layout::new(&[2, 1, 3]).expect("a layout");
        assert_eq!((layout.images(), layout.of(1), layout.of(2)), (6, 2..3, 3..6));
        assert_eq!((0..6).map(|image| layout.rank_of(image)).collect::<Vec<_>>(), [0, 0, 1, 2, 2, 2]);
        assert!(!layout.is_plain() && !layout.is_even());
        assert!(Layout::new(&[2, 2]).expect("a layout").is_even() && Layout::new(&[1, 1]).expect("one").is_plain());
    }

    #[test]
    fn every_rank_has_an_image_and_there_is_a_number_for_each() {
        assert!(Layout::new(&[1, 0]).expect_err("none").to_string().contains("rank 1 has 0 images"));
        assert!(
            Layout::new(&[1, u32::MAX]).expect_err("too many").to_string().contains("rank 1 has 4294967295 images")
        );
        assert!(Layout::new(&[1 << 30, 1 << 30]).expect_err("too many").to_string().contains("at most 2147483647"));
    }

    #[test]
    fn blocks_that_are_too_large_have_no_shape() {
        let layout = Layout::new(&[1 << 20, 1]).expect("a layout");
        let shape = |kind, block_bytes| Shape {
            kind,
            me: 0,
            ranks: 1 + (1 << 20),
            root: 1 << 20,
            block_bytes,
            element_bytes: 1,
        };
        let of_ranks = layout.shape_of_ranks(shape(CollectiveKind::Gather, 8), 1).expect("it fits");
        assert_eq!((of_ranks.me, of_ranks.ranks, of_ranks.root, of_ranks.block_bytes), (1, 2, 1, 8 << 20));
        assert_eq!(layout.shape_of_ranks(shape(CollectiveKind::Exchange, 1 << 30), 0), None);
    }
}
