//! The folder of one cluster, and the watchdog that removes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::installation::{Account, Installation};
use crate::options::Durability;
use crate::process;

/// What initdb or pg_basebackup may take on a machine that is busy with other tests.
const PROGRAM_DURATION_MAX: Duration = Duration::from_secs(60);

/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";

/// How much of it has to be free: a cluster with some databases and its log of writes has 300 MB, and tests run several.
const MEMORY_BYTES_MIN: u64 = 2 << 30;

/// How much of a log an error shows.
const TAIL_BYTES_MAX: u64 = 4096;

/// How often a name is made up before giving up: another cluster has it with a chance of one in 2^64.
const NAME_TRIES: u32 = 4;

/// A temporary folder, removed with every process that works in it when this value is dropped or its process ends.
#[derive(Debug)]
pub struct Home {
    folder: PathBuf,
    watchdog: Child,
}

impl Home {
    /// Makes the folder, owned by whom the server runs as, and starts its watchdog.
    pub fn create(installation: &Installation, durability: Durability) -> Result<Self, Error> {
        let folder = make_folder(&parent(durability), installation.account)?;
        let mut command = Command::new("/bin/sh");
        process::isolate(&mut command, installation.account);
        command.args(["-c", include_str!("watchdog.sh"), "watchdog"]).arg(&folder).current_dir("/");
        // It outlives us for a moment and must not hold open what we print to.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(watchdog) => Ok(Self { folder, watchdog }),
            Err(source) => {
                let _ = fs::remove_dir(&folder);
                Err(Error::Machine { action: "start", path: "/bin/sh".into(), source })
            }
        }
    }

    /// Where the cluster's data is.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder itself, where the server's socket is too.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The log that all programs of this cluster append to, and where it ends now.
    pub fn log(&self) -> Result<(File, u64), Error> {
        let path = self.log_path();
        let open = || -> io::Result<(File, u64)> {
            let log = OpenOptions::new().create(true).append(true).open(&path)?;
            let end = log.metadata()?.len();
            Ok((log, end))
        };
        open().map_err(|source| Error::Machine { action: "open", path: path.clone(), source })
    }

    /// The end of what the log has behind `start`.
    pub fn log_tail(&self, start: u64) -> String {
        let read = || -> io::Result<String> {
            let mut log = File::open(self.log_path())?;
            let end = log.metadata()?.len();
            log.seek(SeekFrom::Start(start.max(end.saturating_sub(TAIL_BYTES_MAX))))?;
            let mut tail = Vec::new();
            log.read_to_end(&mut tail)?;
            Ok(String::from_utf8_lossy(&tail).into_owned())
        };
        read().unwrap_or_else(|error| format!("(cannot be read: {error})"))
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Replaces a file of the data folder.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.data().join(name);
        fs::write(&path, text).map_err(|source| Error::Machine { action: "write", path, source })
    }

    /// Runs one of PostgreSQL's programs in the folder to its end.
    pub fn run(&self, installation: &Installation, program: &'static str, arguments: &[&str]) -> Result<(), Error> {
        let (log, start) = self.log()?;
        let mut child = self.spawn(installation.command(program, &self.folder).args(arguments), log)?;
        let waiting = |source| Error::Machine { action: "wait for", path: program.into(), source };
        match process::poll(PROGRAM_DURATION_MAX, || child.try_wait()).map_err(waiting)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Error::Failed { program, outcome: status.to_string(), log: self.log_tail(start) }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::TimedOut {
                    program,
                    expected: "end",
                    limit: PROGRAM_DURATION_MAX,
                    log: self.log_tail(start),
                })
            }
        }
    }

    /// Starts a program whose output goes to `log`.
    pub fn spawn(&self, command: &mut Command, log: File) -> Result<Child, Error> {
        let path = PathBuf::from(command.get_program());
        let mut start = || -> io::Result<Child> {
            let errors = log.try_clone()?;
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(errors).spawn()
        };
        start().map_err(|source| Error::Machine { action: "start", path, source })
    }

    /// Ends every process in the folder and removes it. The script limits itself to about ten seconds.
    pub fn close(&mut self) {
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
        // The watchdog may lack the right to remove the folder itself, and somebody may have killed it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.close();
    }
}

/// Where the folder is made: in memory, where there is enough of it and nothing has to reach a disk. A database is made
/// of 300 files, which takes 6 ms in memory; on ext4 it takes 60 ms, and 250 ms soon after another one was dropped,
/// because its inodes are not used again at once and have to be passed by.
fn parent(durability: Durability) -> PathBuf {
    let free = rustix::fs::statvfs(MEMORY).map(|memory| memory.f_bavail.saturating_mul(memory.f_frsize));
    match durability {
        Durability::Unsynced if free.is_ok_and(|bytes| bytes >= MEMORY_BYTES_MIN) => MEMORY.into(),
        Durability::Unsynced | Durability::Synced => std::env::temp_dir(),
    }
}

fn make_folder(parent: &Path, account: Option<Account>) -> Result<PathBuf, Error> {
    // The processes in the folder are told by its path, as the kernel spells it.
    let parent =
        parent.canonicalize().map_err(|source| Error::Machine { action: "find", path: parent.to_owned(), source })?;
    let mut tries = 0;
    loop {
        let folder = parent.join(format!("longhaul-pg-{:016x}", random()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => {
                if let Some(Account { user, group }) = account
                    && let Err(source) = chown(&folder, Some(user), Some(group))
                {
                    let _ = fs::remove_dir(&folder);
                    return Err(Error::Machine { action: "give away", path: folder, source });
                }
                return Ok(folder);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < NAME_TRIES => tries += 1,
            Err(source) => return Err(Error::Machine { action: "create", path: folder, source }),
        }
    }
}

/// A number that no other process draws.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
