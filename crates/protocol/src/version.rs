//! The protocol version, equal on all ranks of a job.

/// The sources defining messages and their handling.
const SOURCES: [&[u8]; 42] = [
    include_bytes!("active_message.rs"),
    include_bytes!("barrier.rs"),
    include_bytes!("byte_message.rs"),
    include_bytes!("coherence/mod.rs"),
    include_bytes!("coherence/copy_version.rs"),
    include_bytes!("coherence/message.rs"),
    include_bytes!("coherence/relay.rs"),
    include_bytes!("coherence/share.rs"),
    include_bytes!("coherence/cache/mod.rs"),
    include_bytes!("coherence/cache/failures.rs"),
    include_bytes!("coherence/cache/page.rs"),
    include_bytes!("coherence/cache/write_backs.rs"),
    include_bytes!("coherence/home/mod.rs"),
    include_bytes!("coherence/home/entry.rs"),
    include_bytes!("coherence/home/failures.rs"),
    include_bytes!("coherence/home/home_files.rs"),
    include_bytes!("coherence/home/request.rs"),
    include_bytes!("coherence/home/sources.rs"),
    include_bytes!("collectives/action.rs"),
    include_bytes!("collectives/machine.rs"),
    include_bytes!("collectives/message.rs"),
    include_bytes!("collectives/team.rs"),
    include_bytes!("collectives/in_flight.rs"),
    include_bytes!("collectives/plan/mod.rs"),
    include_bytes!("collectives/plan/everyone.rs"),
    include_bytes!("collectives/plan/reduce.rs"),
    include_bytes!("collectives/plan/rooted.rs"),
    include_bytes!("file_locks/mod.rs"),
    include_bytes!("file_locks/client.rs"),
    include_bytes!("file_locks/home.rs"),
    include_bytes!("file_locks/index.rs"),
    include_bytes!("file_locks/message.rs"),
    include_bytes!("file_locks/range.rs"),
    include_bytes!("file_message.rs"),
    include_bytes!("guests.rs"),
    include_bytes!("loan.rs"),
    include_bytes!("page_id.rs"),
    include_bytes!("rank.rs"),
    include_bytes!("rank_state.rs"),
    include_bytes!("spaces/mod.rs"),
    include_bytes!("wire.rs"),
    include_bytes!("writes.rs"),
];

/// Identifies the protocol of this build: a hash of vgasnet's version and of the sources defining messages and answers.
/// Ranks with another number are refused at init. A rank of the other byte order reads a different number.
pub const PROTOCOL_VERSION: u64 = hash_sources();

const fn hash_sources() -> u64 {
    let mut hash = hash(0xcbf2_9ce4_8422_2325, env!("CARGO_PKG_VERSION").as_bytes());
    let mut at = 0;
    while at < SOURCES.len() {
        hash = self::hash(hash, SOURCES[at]);
        at += 1;
    }
    hash
}

/// FNV-1a with words of 8 bytes, so that compilers evaluate it quickly.
#[allow(long_running_const_eval)]
const fn hash(mut hash: u64, mut bytes: &[u8]) -> u64 {
    while let Some((word, tail)) = bytes.split_first_chunk() {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x100_0000_01b3);
        // The multiplication moves bits up only.
        hash ^= hash >> 32;
        bytes = tail;
    }
    while let [byte, tail @ ..] = bytes {
        hash = (hash ^ *byte as u64).wrapping_mul(0x100_0000_01b3);
        bytes = tail;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// The sources below a directory.
    fn sources_below(dir: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let entries =
            std::fs::read_dir(dir).expect("a directory of this crate").map(|entry| entry.expect("an entry").path());
        let below = |path: std::path::PathBuf| {
            if path.is_dir() {
                sources_below(&path)
            } else {
                vec![(path.clone(), std::fs::read(path).expect("a source"))]
            }
        };
        entries.flat_map(below).collect()
    }

    /// What has a form in messages is part of the version: ranks of other forms are refused at init.
    #[test]
    #[cfg_attr(miri, ignore = "reads files")]
    fn every_source_with_a_layout_counts() {
        let all = sources_below(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
        let has_layout = |source: &[u8]| {
            let text = str::from_utf8(source).expect("sources are text");
            ["impl Layout for", "messages! {"].iter().any(|form| text.contains(form))
        };
        let forms: Vec<_> =
            all.iter().filter(|(path, source)| !path.ends_with("version.rs") && has_layout(source)).collect();
        let missing: Vec<_> =
            forms.iter().filter(|(_, source)| !SOURCES.contains(&&**source)).map(|(path, _)| path).collect();
        assert!(forms.len() >= 10 && missing.is_empty(), "{} forms; not in SOURCES: {missing:?}", forms.len());
    }

    #[test]
    fn every_byte_counts() {
        let texts: [&[u8]; 6] = [b"", b"a", b"b", b"12345678", b"12345679", b"123456789"];
        let hashes = texts.map(|text| hash(1, text));
        for (at, one) in hashes.iter().enumerate() {
            assert!(hashes[at + 1..].iter().all(|other| one != other), "{:?}", texts[at]);
        }
        assert_ne!(hash(1, b"ab"), hash(2, b"ab"));
        assert_ne!(PROTOCOL_VERSION, 0);
    }
}
