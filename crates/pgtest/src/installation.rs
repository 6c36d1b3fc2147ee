//! Where PostgreSQL is installed, and as whom it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process;

/// The oldest version that Longhaul supports.
const VERSION_MIN: u32 = 15;

/// Debian's folder of versions.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Whom PostgreSQL runs as when we are root.
const USER: &str = "postgres";

/// A user and its group.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    pub user: u32,
    pub group: u32,
}

/// An installed PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Installation {
    programs: PathBuf,
    /// Whom to run as, when not as ourselves.
    pub account: Option<Account>,
}

impl Installation {
    pub fn find() -> Result<Self, Error> {
        let mut too_old = Vec::new();
        for folder in candidates() {
            match version(&folder) {
                Some(version) if version >= VERSION_MIN => {
                    return Ok(Self { programs: folder, account: account()? });
                }
                Some(version) => too_old.push(format!("{} has version {version}", folder.display())),
                None => {}
            }
        }
        let looked = match too_old.as_slice() {
            [] => format!("looked for with pg_config, in {DEBIAN} and in PATH"),
            found => found.join(", "),
        };
        Err(Error::NotInstalled { wanted: VERSION_MIN, looked })
    }

    /// A command that runs one of PostgreSQL's programs in `folder`, as the right user, in a process group of its own:
    /// an interrupt from the keyboard is for us and ends the cluster in order.
    pub fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.programs.join(program));
        process::isolate(&mut command, self.account);
        command.current_dir(folder);
        command
    }
}

/// The folders that may hold the server, best first.
fn candidates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    // The development package for clients has it too, without any server in the folder that it names.
    if let Some(folder) = output(Command::new("pg_config").arg("--bindir")) {
        found.push(PathBuf::from(folder));
    }
    let mut versions: Vec<u32> = fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    found.extend(versions.iter().map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin")));
    found.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    found
}

/// The major version of the server in `folder`, if there is one.
fn version(folder: &Path) -> Option<u32> {
    if !folder.join("initdb").is_file() {
        return None;
    }
    major(&output(Command::new(folder.join("postgres")).arg("--version"))?)
}

/// Reads `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, and `17beta1` as 17.
fn major(line: &str) -> Option<u32> {
    let version = line.strip_prefix("postgres (PostgreSQL) ")?;
    let digits = version.bytes().take_while(u8::is_ascii_digit).count();
    version.get(..digits)?.parse().ok()
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn account() -> Result<Option<Account>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    account_in(&users).map(Some).ok_or(Error::NoUser { name: USER })
}

fn account_in(users: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != USER {
            return None;
        }
        let user = fields.nth(1)?.parse().ok()?;
        Some(Account { user, group: fields.next()?.parse().ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_debian_and_others_write_it() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(major("postgres (PostgreSQL) 9.6.24"), Some(9));
        assert_eq!(major("postgres (EnterpriseDB) 15"), None);
    }

    #[test]
    fn the_user_is_found_among_others() {
        let users = "root:x:0:0:root:/root:/bin/sh\nnotpostgres:x:1:1::/:\npostgres:x:112:118:,,,:/var/lib/postgresql:/bin/sh\n";
        let account = account_in(users).unwrap();
        assert_eq!((account.user, account.group), (112, 118));
        assert!(account_in("root:x:0:0:root:/root:/bin/sh\n").is_none());
    }
}
