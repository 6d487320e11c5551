//! How much an entry was used, and what it is worth.

/// Heat of one use.
const USE: u32 = 1 << 16;

/// How much an entry was used, as a number that each use raises and that halves with time, and when that was noted. Time is counted in
/// gets that missed: while all hit, nothing has to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    level: u32,
    noted_at: u32,
}

/// The time, and how long it takes until heat has halved: 2 to the power of so much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Gets that missed so far; wraps.
    pub now: u32,
    /// The logarithm of the half-life.
    pub half_life_log2: u32,
}

impl Heat {
    /// What it is after one use.
    #[inline]
    pub fn used(self, clock: Clock) -> Heat {
        let halvings = clock.now.wrapping_sub(self.noted_at) >> clock.half_life_log2;
        let left = self.level.checked_shr(halvings).unwrap_or(0);
        // Time that is no whole half-life stays to be counted.
        let noted_at = if left == 0 { clock.now } else { self.noted_at.wrapping_add(halvings << clock.half_life_log2) };
        Heat { level: left.saturating_add(USE), noted_at }
    }

    /// What it is at a time, 1 for one use just now.
    pub fn at(self, clock: Clock) -> f32 {
        let age = clock.now.wrapping_sub(self.noted_at);
        let halvings = age >> clock.half_life_log2;
        let rest = (age - (halvings << clock.half_life_log2)) as f32 / (1u64 << clock.half_life_log2) as f32;
        let scale = if halvings < 100 { 1.0 / (1u128 << halvings) as f32 } else { 0.0 };
        self.level as f32 / USE as f32 * scale * (1.0 - rest / 2.0)
    }

    /// What it would be without one use.
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
