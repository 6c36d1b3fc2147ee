//! Processes: as whom and with what they start, how long they are waited for, and how they are ended.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::installation::Account;

/// How often a condition is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(3);

/// Starts `command` as `account`, in a process group of its own, and with nothing of our environment that PostgreSQL or
/// the C library would heed (`PGPORT`, `LC_ALL`, a preloaded clock).
pub fn isolate(command: &mut Command, account: Option<Account>) {
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C").process_group(0);
    if let Some(account) = account {
        // Our further groups are dropped too: std does so when root becomes another user.
        command.gid(account.group).uid(account.user);
    }
}

/// Looks at `condition` until it has a value, at most for `limit`.
///
/// # Errors
///
/// The condition's own. `Ok(None)` is the limit.
#[expect(clippy::disallowed_methods, reason = "the end of a foreign process can only be waited for in real time")]
pub fn poll<T, E>(limit: Duration, mut condition: impl FnMut() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    let begun = Instant::now();
    loop {
        if let Some(value) = condition()? {
            return Ok(Some(value));
        }
        if begun.elapsed() > limit {
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Sends `signal` to a child that we have not reaped yet, so that its id cannot be another's.
pub fn signal(child: &Child, signal: Signal) {
    // A child that has ended already needs no signal.
    let _ = rustix::process::kill_process(Pid::from_child(child), signal);
}

/// Kills every process that works in `folder`, and returns how many there were.
pub fn kill_all_in(folder: &Path) -> usize {
    let workers = workers(folder);
    for worker in &workers {
        // It may have ended since.
        let _ = rustix::process::kill_process(*worker, Signal::KILL);
    }
    workers.len()
}

/// The processes that work in `folder`, as the server's all do. One that has ended and was not reaped works nowhere.
fn workers(folder: &Path) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|works_in| works_in == folder))
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}
