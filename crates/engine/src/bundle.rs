//! Bundles of coherence messages to one rank: a tag, then each message preceded by its length.

/// First byte of a bundle of coherence messages.
pub(super) const TAG_BUNDLE: u8 = 30;

/// The messages in a conduit message: the contents of a bundle, or the message itself.
pub fn messages_in(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_bundle = bytes.first() == Some(&TAG_BUNDLE);
    let (one, several) = if is_bundle { (None, Some(unbundle(bytes))) } else { (Some(bytes), None) };
    one.into_iter().chain(several.into_iter().flatten())
}

/// The messages of a bundle.
pub(super) fn unbundle(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut remaining = bytes.get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (len_bytes, behind) = remaining.split_first()?;
        // A message cut short decodes as empty, which is malformed.
        let (message, behind) = behind.split_at_checked(usize::from(*len_bytes)).unwrap_or_default();
        remaining = behind;
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_has_its_messages_and_none_that_is_cut_short() {
        fn assert_parts(bytes: &[u8], expected: &[&[u8]]) {
            assert_eq!(unbundle(bytes).collect::<Vec<_>>(), expected);
        }
        assert_parts(&[TAG_BUNDLE, 2, 7, 8, 1, 9], &[&[7, 8], &[9]]);
        assert_parts(&[TAG_BUNDLE, 2, 7], &[&[]]);
        assert_parts(&[TAG_BUNDLE, 0, 3], &[&[], &[]]);
        assert_parts(&[TAG_BUNDLE], &[]);
        assert_parts(&[], &[]);
    }
}
