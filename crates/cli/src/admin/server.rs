//! The server's end of the socket.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::Engine;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::perform::perform;
use super::protocol::{
    Answer, Operation, REQUEST_BYTES_MAX, REQUEST_TIME_MAX, Request, Response, VERSION, read_line, version_of,
    write_line,
};
use super::socket::{FILE_NAME, Place};

/// How many operators are served at once; others wait.
const OPERATORS_MAX: usize = 8;
/// How long an operator may take to read an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// How long to wait when no connection can be taken, such as for want of files.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// Answers operators until it is closed. Dropping it removes the socket.
#[derive(Debug)]
pub struct AdminServer {
    path: PathBuf,
    closing: CancellationToken,
    tracker: TaskTracker,
}

impl AdminServer {
    /// Listens in the folder of a store. The caller holds the store: a socket that is there is left over.
    ///
    /// # Errors
    ///
    /// When the socket can't be made, or something else has its name.
    pub fn open(directory: &Path, engine: Engine) -> io::Result<Self> {
        let (path, place) = (directory.join(FILE_NAME), Place::of(directory)?);
        remove_socket(&path)?;
        let listener = UnixListener::bind(place.path())?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let server = Self { path, closing: CancellationToken::new(), tracker: TaskTracker::new() };
        server.tracker.spawn(accept(listener, engine, server.closing.clone(), server.tracker.clone()));
        Ok(server)
    }

    /// Answers nobody from now on, and waits until nobody is being answered any more. What was begun is left where it is:
    /// each step of an operation is whole.
    pub async fn close(self) {
        self.closing.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.closing.cancel();
        if let Err(error) = remove_socket(&self.path) {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove the operators' socket");
        }
    }
}

fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there and is no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

async fn accept(listener: UnixListener, engine: Engine, closing: CancellationToken, tracker: TaskTracker) {
    let seats = Arc::new(Semaphore::new(OPERATORS_MAX));
    let accepting = async {
        loop {
            let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "cannot take an operator's connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            let (engine, closing) = (engine.clone(), closing.clone());
            tracker.spawn(async move {
                tokio::select! {
                    () = closing.cancelled() => {}
                    served = serve(stream, &engine) => if let Err(error) = served {
                        tracing::debug!(error = &error as &dyn std::error::Error, "an operator left");
                    }
                }
                drop(seat);
            });
        }
    };
    tokio::select! {
        () = closing.cancelled() => {}
        () = accepting => {}
    }
}

async fn serve(mut stream: UnixStream, engine: &Engine) -> io::Result<()> {
    // The socket's mode says the same, but only from a moment after it was made.
    let user = stream.peer_cred()?.uid();
    if user != 0 && user != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let line = tokio::time::timeout(REQUEST_TIME_MAX, read_line(&mut stream, REQUEST_BYTES_MAX)).await??;
    let answer = match read(&line) {
        Ok(operation) => {
            if operation != Operation::Hello {
                tracing::info!(?operation, "an operator asks");
            }
            perform(engine, operation).await
        }
        Err(refused) => refused,
    };
    let response = Response { version: VERSION, answer };
    tokio::time::timeout(ANSWER_TIME_MAX, write_line(&mut stream, &response)).await?
}

fn read(line: &[u8]) -> Result<Operation, Answer> {
    let refused = |message: String| Answer::Refused { message, hint: None };
    match version_of(line) {
        Some(VERSION) => {}
        Some(other) => return Err(refused(format!("the server speaks version {VERSION} to operators, not {other}"))),
        None => return Err(refused("the request has no version".to_owned())),
    }
    let request = serde_json::from_slice::<Request>(line);
    request.map(|request| request.operation).map_err(|error| refused(format!("the request is not valid: {error}")))
}
