//! The operator's end of the socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;
use tokio::net::UnixStream;

use super::protocol::{
    ANSWER_BYTES_MAX, Answer, Operation, REQUEST_TIME_MAX, Request, Response, VERSION, read_line, version_of,
    write_line,
};
use super::socket::Place;

/// How long an operation may take: a purge of millions of tasks takes its time.
const OPERATION_TIME_MAX: Duration = Duration::from_secs(3600);

/// Why a server could not be asked.
#[derive(Debug, Error)]
pub enum AskError {
    /// There is no socket, or nobody behind it.
    #[error("nobody listens")]
    Nobody(#[source] io::Error),
    /// It is there, and says nothing.
    #[error("no answer came within {} s", .0.as_secs())]
    Silent(Duration),
    /// The connection failed.
    #[error("the connection failed")]
    Failed(#[source] io::Error),
    /// It is of another release.
    #[error("the server speaks version {found} to operators, and this command version {VERSION}")]
    OtherVersion {
        /// The server's version.
        found: u32,
    },
}

/// Asks whether a server answers for a folder.
///
/// # Errors
///
/// [`AskError`], within seconds.
pub async fn hello(directory: &Path) -> Result<(), AskError> {
    within(REQUEST_TIME_MAX, exchange(directory, Operation::Hello)).await.map(drop)
}

/// Asks the server of a folder.
///
/// # Errors
///
/// [`AskError`]; what was asked for may be done all the same.
pub async fn ask(directory: &Path, operation: Operation) -> Result<Answer, AskError> {
    within(OPERATION_TIME_MAX, exchange(directory, operation)).await
}

async fn within<T>(limit: Duration, asking: impl Future<Output = Result<T, AskError>>) -> Result<T, AskError> {
    tokio::time::timeout(limit, asking).await.unwrap_or(Err(AskError::Silent(limit)))
}

async fn exchange(directory: &Path, operation: Operation) -> Result<Answer, AskError> {
    let place = Place::of(directory).map_err(AskError::Failed)?;
    let mut stream = UnixStream::connect(place.path()).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::Nobody(error),
        _ => AskError::Failed(error),
    })?;
    write_line(&mut stream, &Request { version: VERSION, operation }).await.map_err(AskError::Failed)?;
    let line = read_line(&mut stream, ANSWER_BYTES_MAX).await.map_err(AskError::Failed)?;
    if let Some(found) = version_of(&line).filter(|version| *version != VERSION) {
        return Err(AskError::OtherVersion { found });
    }
    let response = serde_json::from_slice::<Response>(&line);
    response.map(|response| response.answer).map_err(|error| AskError::Failed(error.into()))
}
