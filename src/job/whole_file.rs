//! A file that is replaced whole or stays as it is.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// An open file, and where it goes when it is complete: from its temporary name to its own.
struct Replacement {
    file: File,
    names: Option<(PathBuf, PathBuf)>,
}

/// Has `write` write what the file at `path` is to have.
///
/// # Errors
/// There is no way to write it. Then the file is as it was, unless only the file itself can be written: a device, or a file in
/// a directory that takes no other.
pub(super) fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let Replacement { mut file, names } = begin(path)?;
    let Some((temporary, place)) = names else {
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        return write(&mut file);
    };
    // Some file systems tell only then that they are full.
    let written = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, place));
    if written.is_err() {
        // What is left of it is told of by the error before.
        let _ = fs::remove_file(temporary);
    }
    written
}

/// Whether the file can be written, as far as can be known before.
///
/// # Errors
/// It cannot.
pub(super) fn try_path(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        // To open it would wait for a reader.
        return Ok(());
    }
    begin(path)?.names.map_or(Ok(()), |(temporary, _)| fs::remove_file(temporary))
}

fn begin(path: &Path) -> io::Result<Replacement> {
    // A link stays.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let found = fs::metadata(&place).ok();
    if found.as_ref().is_none_or(fs::Metadata::is_file) {
        let mut temporary = OsString::from(&place);
        temporary.push(format!(".{}.tmp", std::process::id()));
        match File::create_new(&temporary) {
            Ok(file) => return Ok(Replacement { file, names: Some((temporary.into(), place)) }),
            Err(error) if found.is_none() => return Err(error),
            Err(_) => {}
        }
    }
    OpenOptions::new().write(true).open(place).map(|file| Replacement { file, names: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let dir = std::env::temp_dir().join(format!("vgasnet-whole-file-{}", std::process::id()));
        fs::create_dir(&dir).expect("a directory");
        let (path, link) = (dir.join("file"), dir.join("link"));
        let files = || fs::read_dir(&dir).expect("a directory").count();
        try_path(&path).expect("it can be written");
        assert_eq!(files(), 0);
        replace(&path, |file| file.write_all(b"first")).expect("it can be written");
        let full = |file: &mut File| file.write_all(b"sec").and_then(|()| Err(io::ErrorKind::StorageFull.into()));
        assert!(replace(&path, full).is_err());
        assert_eq!((fs::read(&path).expect("a file"), files()), (b"first".to_vec(), 1));
        std::os::unix::fs::symlink("file", &link).expect("a link");
        replace(&link, |file| file.write_all(b"2nd")).expect("it can be written");
        assert_eq!((fs::read(&path).expect("a file"), files()), (b"2nd".to_vec(), 2));
        assert!(try_path(&dir.join("none").join("file")).is_err() && try_path(&dir).is_err());
        assert!(try_path(Path::new("/dev/null")).is_ok());
        assert!(replace(Path::new("/dev/full"), |file| file.write_all(b"more")).is_err());
        fs::remove_dir_all(dir).expect("a directory of ours");
    }
}
