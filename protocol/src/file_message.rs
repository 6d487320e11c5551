//! Questions of one rank to another about a file that both have open, and their answers, as bytes.

use crate::wire::take;
use crate::{Space, layout_as_in_memory};
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// First byte of these messages.
pub const TAG_FILE: u8 = 43;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum FileAsk {
    /// The end of what the receiver has written.
    End,
    /// That the receiver, as a home, writes all blocks that it has of the file.
    Flush,
    /// That the receiver, the first member of the file's team, adds to the file's shared pointer, and says what it was.
    Take,
}

/// A question, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileMessage {
    /// [`TAG_FILE`].
    pub tag: u8,
    /// Whether it answers.
    pub is_answer: bool,
    /// What is asked.
    pub ask: FileAsk,
    /// Of an answer: why it could not be done, as an error number; 0 if it could.
    pub cause: u8,
    /// Names the question among those of its sender.
    pub id: u32,
    /// The file.
    pub space: Space,
    /// Zero.
    pub padding: u32,
    /// Of an answer to [`FileAsk::End`]: that, in bytes. Of [`FileAsk::Take`]: how much is added; of its answer: what the pointer was.
    pub value: u64,
}

layout_as_in_memory!(FileAsk, FileMessage);

impl FileMessage {
    /// Reads a message; `None` if it is none.
    pub fn read(mut bytes: &[u8]) -> Option<FileMessage> {
        let message: FileMessage = take(&mut bytes)?;
        (bytes.is_empty() && message.tag == TAG_FILE).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_and_others_are_none() {
        let (ask, space) = (FileAsk::Flush, Space::of_file(4));
        let message =
            FileMessage { tag: TAG_FILE, is_answer: true, ask, cause: 28, id: 3, space, padding: 0, value: 1 << 40 };
        let bytes = message.as_bytes();
        assert_eq!(FileMessage::read(bytes), Some(message));
        assert!((0..bytes.len()).all(|end| FileMessage::read(&bytes[..end]).is_none()));
        let other = [&[TAG_FILE + 1], &bytes[1..]].concat();
        assert_eq!(FileMessage::read(&other), None);
    }
}
