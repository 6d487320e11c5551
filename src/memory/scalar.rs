//! Numbers in frames, which other processes may write while they are read.

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use std::sync::atomic::Ordering;

/// Numbers that are read as a whole, wherever they lie.
pub trait Scalar: Copy {
    /// Reads the number at `from` with one instruction where there is one, while others may write it.
    ///
    /// # Safety
    /// The bytes are mapped, and Rust code has no reference to them. They are only accessed by copies as this one, by other
    /// processes and by the system.
    unsafe fn read(from: *const u8) -> Self;
}

macro_rules! scalars {
    ($($type:ty, $register:ident, $template:literal;)*) => {$(
        impl Scalar for $type {
            #[inline(always)]
            unsafe fn read(from: *const u8) -> $type {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                {
                    let value: $type;
                    // SAFETY: the bytes are mapped. To Rust, assembly is as foreign as a process that shares the memory, so
                    // that a race with another write gives some bytes and nothing worse. One that is not atomic is seen by
                    // the version of the page, or is a race between the client's own operations.
                    unsafe {
                        std::arch::asm!($template, out($register) value, in(reg) from,
                            options(nostack, preserves_flags, readonly));
                    }
                    value
                }
                #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                {
                    let mut bytes = [0; size_of::<$type>()];
                    for (at, byte) in bytes.iter_mut().enumerate() {
                        // SAFETY: the bytes are mapped, and a byte is always aligned for an atomic access.
                        let shared = unsafe { std::sync::atomic::AtomicU8::from_ptr(from.add(at).cast_mut()) };
                        *byte = shared.load(Ordering::Relaxed);
                    }
                    <$type>::from_ne_bytes(bytes)
                }
            }
        }
    )*};
}

scalars! {
    u8, reg_byte, "mov {0}, byte ptr [{1}]";
    u16, reg, "mov {0:x}, word ptr [{1}]";
    u32, reg, "mov {0:e}, dword ptr [{1}]";
    u64, reg, "mov {0}, qword ptr [{1}]";
}
