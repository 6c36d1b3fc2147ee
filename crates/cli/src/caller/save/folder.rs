//! The folder that files go to. Each is made anew in it; none is followed, opened, or written over.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use crate::caller::failure::{Failure, LocalCode};

/// How many names are tried for one file.
const NAMES_MAX: usize = 10_000;

/// An open folder. What happens to its path afterwards changes nothing.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Folder {
    /// Opens a folder, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] when there is something else, or the folder can't be made.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::usage(format!("cannot use the folder {}: {error}", path.display()))
                .hint("name a folder that files can be written to")
        };
        std::fs::create_dir_all(path).map_err(refused)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = openat(CWD, path, flags, Mode::empty()).map_err(|error| refused(error.into()))?;
        Ok(Self { path: path.to_owned(), descriptor })
    }

    /// Writes a new file. Where one of that name is, or a link, a number goes behind the name. A file that can't be written
    /// whole is removed.
    ///
    /// # Errors
    ///
    /// [`Failure`] says which file, and why.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let refused = |name: &str, error: io::Error| {
            Failure::local(LocalCode::Internal, format!("cannot write {}: {error}", self.path.join(name).display()))
        };
        for number in 1..=NAMES_MAX {
            let name = numbered(name, number);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_bits_truncate(0o644);
            let mut file = match openat(&self.descriptor, name.as_str(), flags, mode) {
                Ok(descriptor) => File::from(descriptor),
                Err(Errno::EXIST | Errno::LOOP) => continue,
                Err(error) => return Err(refused(&name, error.into())),
            };
            if let Err(error) = file.write_all(bytes) {
                let _ = unlinkat(&self.descriptor, name.as_str(), AtFlags::empty());
                return Err(refused(&name, error));
            }
            return Ok(self.path.join(name));
        }
        Err(refused(name, io::Error::other(format!("{NAMES_MAX} files have that name already"))))
    }
}

fn numbered(name: &str, number: usize) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, extension))) => format!("{stem}-{number}.{extension}"),
        (_, None) => format!("{name}-{number}"),
    }
}
