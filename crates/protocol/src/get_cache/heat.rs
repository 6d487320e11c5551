//! Use frequency of entries.

/// Heat of one use.
const USE: u32 = 1 << 16;

/// Frequency of use: raised by each use, halving with time, as of `noted_at`. Time counts missing gets: while all gets
/// hit, nothing needs eviction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    level: u32,
    noted_at: u32,
}

/// The time, and the half-life of heat: 2 to the power of `half_life_log2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Missing gets so far; wraps.
    pub now: u32,
    /// The logarithm of the half-life.
    pub half_life_log2: u32,
}

impl Heat {
    /// Heat after one use.
    #[inline]
    pub fn used(self, clock: Clock) -> Heat {
        debug_assert!(clock.half_life_log2 < u32::BITS, "the half-life is less than a round of the clock");
        let halvings = clock.now.wrapping_sub(self.noted_at) >> clock.half_life_log2;
        let left = self.level.checked_shr(halvings).unwrap_or(0);
        // A remainder of less than a half-life is carried over.
        let noted_at = if left == 0 { clock.now } else { self.noted_at.wrapping_add(halvings << clock.half_life_log2) };
        Heat { level: left.saturating_add(USE), noted_at }
    }

    /// Heat at a time, in uses; 1 for one use just now.
    pub fn at(self, clock: Clock) -> f32 {
        debug_assert!(clock.half_life_log2 < u32::BITS, "the half-life is less than a round of the clock");
        let age = clock.now.wrapping_sub(self.noted_at);
        let halvings = age >> clock.half_life_log2;
        let fraction = (age - (halvings << clock.half_life_log2)) as f32 / (1u64 << clock.half_life_log2) as f32;
        let scale = if halvings < 100 { 1.0 / (1u128 << halvings) as f32 } else { 0.0 };
        self.level as f32 / USE as f32 * scale * (1.0 - fraction / 2.0)
    }

    /// Heat with one use removed.
    pub fn without_one(self) -> Heat {
        Heat { level: self.level.saturating_sub(USE), ..self }
    }

    /// As one word.
    #[inline]
    pub fn to_bits(self) -> u64 {
        u64::from(self.level) << 32 | u64::from(self.noted_at)
    }

    /// From one word.
    #[inline]
    pub fn from_bits(bits: u64) -> Heat {
        Heat { level: (bits >> 32) as u32, noted_at: bits as u32 }
    }
}
