//! Where the socket is.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// The socket's name in the folder of the store.
pub const FILE_NAME: &str = "admin.sock";

/// How long the path of a socket may be on all systems, in bytes.
const PATH_BYTES_MAX: usize = 100;

/// A way to the socket that is short enough for the system.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Kept open as long as the path leads through it.
    _directory: Option<File>,
}

impl Place {
    /// The socket in a folder.
    ///
    /// # Errors
    ///
    /// When the folder's name is long and the folder can't be opened.
    pub fn of(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE_NAME);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Self { path, _directory: None });
        }
        let directory = File::open(directory)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{FILE_NAME}", directory.as_raw_fd()));
        Ok(Self { path, _directory: Some(directory) })
    }

    /// A path that leads there, as long as this lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
