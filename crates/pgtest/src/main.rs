//! Starts a private PostgreSQL cluster for a run of tests.
//!
//! ```text
//! longhaul-pgtest COMMAND...   runs the command with LONGHAUL_TEST_POSTGRES set, and ends with its exit code
//! longhaul-pgtest              prints the address, and ends when its standard input does
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::process::{Command, ExitCode};

use longhaul_pgtest::{Cluster, Options, Server};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let cluster = Cluster::start(Options::default())?;
    if let Some(program) = arguments.next() {
        let status = Command::new(program).args(arguments).env(Server::VARIABLE, cluster.address()).status()?;
        return Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from));
    }
    println!("{}", cluster.address());
    io::stdout().flush()?;
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(ExitCode::SUCCESS)
}
