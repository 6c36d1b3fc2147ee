//! A server that answers by script, byte for byte: what a client must survive.
//!
//! A closure looks at each request and says, in [`Step`]s, what is written and when. It reads HTTP/1.1 only; to a client that
//! begins with HTTP/2 the script may write whatever bytes it likes.
//!
//! - [`Script`] builds answers, right ones and wrong ones; `agent` what is valid A2A.
//! - [`CallFault`] and [`StreamFault`] are answers that a client has to refuse; [`Oddity`] are streams that it has to read, and
//!   [`Deleted`] are the ways in which servers say that a push config is gone.
//! - [`CardFault`] are cards that it has to refuse, [`INSIDE`] is where it must not go on a card's word.

mod agent;
mod cards;
mod faults;
mod floods;
mod oddities;
mod script;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::asked;
pub use crate::asked::Asked;
pub use agent::{
    CARD_PATH, CONTEXT_ID, REST_PATH, RPC_PATH, TASK_ID, card, is_rpc, item, operation, reply, rpc_error,
    status_update, task,
};
pub use cards::{CardFault, INSIDE, NOT_HTTP, card_at};
pub use faults::{CallFault, StreamFault};
pub use oddities::{Deleted, Oddity, items, named_state};
pub use script::{Gate, Script, Step};

type Answer = dyn Fn(&Asked) -> Script + Send + Sync;

/// A server on a free port, until it is dropped.
pub struct Hostile {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

struct Shared {
    answer: Box<Answer>,
    asked: Mutex<Vec<Asked>>,
    count: AtomicUsize,
    connections: AtomicUsize,
    written: AtomicU64,
}

impl fmt::Debug for Hostile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hostile").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Hostile {
    /// Answers each request as `answer` says. A script that neither closes nor stalls leaves the connection open for the
    /// next request.
    pub async fn start(answer: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let addr = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            asked: Mutex::default(),
            count: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            written: AtomicU64::new(0),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Self { addr, shared, _accepting: accepting }
    }

    /// The same behind a good card, which offers JSON-RPC at [`RPC_PATH`] and HTTP+JSON at [`REST_PATH`] of this server;
    /// `answer` is asked for everything else.
    pub async fn agent(answer: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Self {
        Self::agent_with(|_, _| {}, answer).await
    }

    /// The same with a card that `change` has changed, which gets the URL of this server too.
    pub async fn agent_with(
        change: impl Fn(&mut Value, &str) + Send + Sync + 'static,
        answer: impl Fn(&Asked) -> Script + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |asked| match asked.path() {
            CARD_PATH => {
                let url = asked.base();
                let mut card = card(&url);
                change(&mut card, &url);
                Script::json(200, &card)
            }
            _ => answer(asked),
        })
        .await
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its URL, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The URL of its card.
    #[must_use]
    pub fn card_url(&self) -> String {
        format!("http://{}{CARD_PATH}", self.addr)
    }

    /// The requests that came, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests came, those for the card too.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::Acquire)
    }

    /// How many connections came, those without a request too.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }

    /// How many bytes were taken by the sockets in all: an upper limit of what clients have read.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Acquire)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut serving = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.connections.fetch_add(1, Ordering::AcqRel);
        let shared = Arc::clone(&shared);
        serving.spawn(async move {
            let _ = stream.set_nodelay(true);
            // A client that goes away ends its connection, and nothing else.
            let _ = serve(BufReader::new(stream), &shared).await;
        });
        while serving.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: BufReader<TcpStream>, shared: &Shared) -> std::io::Result<()> {
    while let Some(mut asked) = asked::read(&mut stream).await? {
        asked.nth = shared.count.fetch_add(1, Ordering::AcqRel);
        shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
        for step in (shared.answer)(&asked).into_steps() {
            if !shared.play(&mut stream, step).await? {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl Shared {
    /// Does one step; false when it ends the connection.
    async fn play(&self, stream: &mut BufReader<TcpStream>, step: Step) -> std::io::Result<bool> {
        match step {
            Step::Write(bytes) => self.write(stream, &bytes).await?,
            Step::Drip(bytes) => {
                for byte in bytes {
                    self.write(stream, &[byte]).await?;
                    tokio::task::yield_now().await;
                }
            }
            Step::Flood { piece, times } => {
                for _ in 0..times {
                    self.write(stream, &piece).await?;
                }
            }
            Step::Pause(time) => tokio::time::sleep(time).await,
            Step::Wait(gate) => gate.passed().await,
            Step::Stall => {
                // Until the client has enough of it; what it still sends is read and forgotten.
                let mut bytes = vec![0; 4096];
                while stream.read(&mut bytes).await? > 0 {}
                return Ok(false);
            }
            Step::Close => return Ok(false),
            Step::Reset => {
                stream.get_mut().set_zero_linger()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn write(&self, stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> std::io::Result<()> {
        stream.write_all(bytes).await?;
        self.written.fetch_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX), Ordering::AcqRel);
        Ok(())
    }
}
