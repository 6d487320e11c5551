//! The message about frames lent to the homes of their pages.

use crate::messages;
use crate::wire::{self, Encoded, Malformed};

messages! {
    /// From a lender to the home of a page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LoanMessage {
        /// The lender wants the frame back.
        34 => AskedBack {
            /// The page in the receiver's segment the frame was lent for.
            index: u32,
        },
    }
}

impl LoanMessage {
    /// The first byte of every such message, and of no other.
    pub const TAG: u8 = 34;

    /// The message as bytes.
    pub fn encode(&self) -> Encoded {
        wire::encode(self)
    }

    /// Reads the bytes of [`LoanMessage::encode`].
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<LoanMessage, Malformed> {
        wire::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_decode() {
        let message = LoanMessage::AskedBack { index: 513 };
        let bytes = message.encode();
        assert_eq!((LoanMessage::decode(&bytes), bytes[0], bytes.len()), (Ok(message), LoanMessage::TAG, 5));
        let others = [&bytes[..4], &[LoanMessage::TAG; 6], &[1, 0, 0, 0, 0], &[]];
        assert_eq!(others.map(LoanMessage::decode), [Err(Malformed); 4]);
    }
}
