use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::OpenError;

/// The right to be the only instance on a folder. Ends when it is dropped, and with the process however that ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Makes the folder if need be, and takes its lock.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let files = |action: &'static str, path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Files { action, path, source }
        };
        if !directory.is_dir() {
            std::fs::create_dir_all(directory).map_err(files("make the folder", directory))?;
            sync_parent(directory).map_err(files("sync the parent of", directory))?;
        }
        let path = directory.join("longhaul.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(files("open the lock file", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(&mut file, directory)),
            Err(TryLockError::Error(source)) => return Err(OpenError::Files { action: "lock", path, source }),
        }
        write_pid(&mut file).map_err(files("write the lock file", &path))?;
        Ok(Self { _file: file })
    }
}

fn held(file: &mut File, directory: &Path) -> OpenError {
    let mut text = String::new();
    let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
    OpenError::Held { pid, path: directory.to_owned() }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

/// A folder that was just made is kept only once its parent is synced.
fn sync_parent(directory: &Path) -> std::io::Result<()> {
    match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
