//! A proxy whose connections fail in a way that is chosen for each request.

use std::fmt;
use std::io::Result;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::frames::Frames;
use crate::asked::{self, Asked};

/// How long the answer to a repeated request is read, to be forgotten.
const REPEAT_MAX: Duration = Duration::from_secs(60);
/// How much is passed on at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// What goes wrong with one request of HTTP/1.1 and its answer, or with one connection of HTTP/2.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LinkFault {
    /// Nothing.
    #[default]
    None,
    /// After so many bytes of the answer, its head too, the connection is closed. In HTTP/2: of all that the server sent.
    CutAfter(u64),
    /// Each byte of the answer is written alone.
    SingleBytes,
    /// The connection is closed when nothing came from either side for so long.
    IdleCut(Duration),
    /// The request is sent a second time, over a connection of its own, and that answer is dropped. HTTP/1.1 only: a
    /// connection of HTTP/2 is closed at once.
    Repeated,
    /// The request arrives, and the connection is closed before the first byte of the answer. In HTTP/2: of the first
    /// answer, when it comes.
    LostAnswer,
    /// The request is read and does not arrive; the connection is closed.
    LostRequest,
}

type Decide = dyn Fn(&Asked) -> LinkFault + Send + Sync;

/// Passes on what comes to its port. Dropping it cuts everything.
///
/// It listens before it knows where to pass on to, so that a card can name its address: see [`FaultProxy::aim`].
pub struct FaultProxy {
    addr: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

struct Shared {
    decide: Box<Decide>,
    asked: AtomicUsize,
    faults: AtomicUsize,
    /// Not the whole of this, so that a repeated request does not keep it alive.
    repeats: Arc<AtomicUsize>,
    repeating: Mutex<JoinSet<()>>,
    passed: AtomicU64,
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FaultProxy").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl FaultProxy {
    /// Listens. `decide` is asked about each request of HTTP/1.1, whichever connection it came over, and about each
    /// connection of HTTP/2, with [`Asked::is_http2`] and nothing else known; [`Asked::nth`] counts both.
    pub async fn start(decide: impl Fn(&Asked) -> LinkFault + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let addr = listener.local_addr().expect("a bound socket has an address");
        let (target, aimed) = watch::channel(None);
        let shared = Arc::new(Shared {
            decide: Box::new(decide),
            asked: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
            repeats: Arc::default(),
            repeating: Mutex::default(),
            passed: AtomicU64::new(0),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, aimed, Arc::clone(&shared)));
        Self { addr, target, shared, _accepting: accepting }
    }

    /// Listens, and passes on to `target`.
    pub async fn before(target: SocketAddr, decide: impl Fn(&Asked) -> LinkFault + Send + Sync + 'static) -> Self {
        let proxy = Self::start(decide).await;
        proxy.aim(target);
        proxy
    }

    /// Passes on to `target` from now on; what came before has waited for it.
    pub fn aim(&self, target: SocketAddr) {
        self.target.send_replace(Some(target));
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many requests of HTTP/1.1 and connections of HTTP/2 came.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::Acquire)
    }

    /// How often something was cut or lost.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.shared.faults.load(Ordering::Acquire)
    }

    /// How many repeated requests were answered, or refused, by the target.
    #[must_use]
    pub fn repeats(&self) -> usize {
        self.shared.repeats.load(Ordering::Acquire)
    }

    /// How many bytes of answers were passed on.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.shared.passed.load(Ordering::Acquire)
    }
}

async fn accept(listener: TcpListener, aimed: watch::Receiver<Option<SocketAddr>>, shared: Arc<Shared>) {
    let mut links = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        let (mut aimed, shared) = (aimed.clone(), Arc::clone(&shared));
        links.spawn(async move {
            let target = aimed.wait_for(Option::is_some).await.ok().and_then(|target| *target);
            if let Some(target) = target {
                // A connection that fails is closed, and nothing else.
                let _ = link(near, target, &shared).await;
            }
        });
        while links.try_join_next().is_some() {}
    }
}

/// What the two directions of one connection know of each other.
struct Link<'a> {
    shared: &'a Shared,
    target: SocketAddr,
    now: Mutex<Now>,
    /// When a byte came last, from either side.
    heard: watch::Sender<Instant>,
}

#[derive(Debug, Default)]
struct Now {
    fault: LinkFault,
    /// How much of the answer was passed on.
    passed: u64,
    /// Follows the answers of HTTP/2.
    frames: Option<Frames>,
}

impl Now {
    /// How many of these bytes of an answer are passed on, and whether the connection ends behind them.
    fn admit(&mut self, bytes: &[u8]) -> (usize, bool) {
        let (kept, ends) = match (self.fault, &mut self.frames) {
            (LinkFault::CutAfter(limit), _) => {
                let left = usize::try_from(limit.saturating_sub(self.passed)).unwrap_or(usize::MAX);
                (left.min(bytes.len()), left <= bytes.len())
            }
            (LinkFault::LostAnswer, None) => (0, true),
            (LinkFault::LostAnswer, Some(frames)) => match frames.answer_begins(bytes) {
                Some(begin) => (begin, true),
                None => (bytes.len(), false),
            },
            _ => (bytes.len(), false),
        };
        self.passed += kept as u64;
        (kept, ends)
    }
}

async fn link(near: TcpStream, target: SocketAddr, shared: &Shared) -> Result<()> {
    let far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let link = Link { shared, target, now: Mutex::default(), heard: watch::Sender::new(Instant::now()) };
    let faulty = tokio::select! {
        faulty = link.there(BufReader::new(near_read), far_write) => faulty?,
        faulty = link.back(far_read, near_write) => faulty?,
        () = link.idle() => true,
    };
    if faulty {
        shared.faults.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

impl Link<'_> {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self) {
        self.heard.send_replace(Instant::now());
    }

    /// Passes requests on, and decides about each. True when a fault ended it.
    async fn there(&self, mut near: BufReader<OwnedReadHalf>, mut far: OwnedWriteHalf) -> Result<bool> {
        while let Some(mut asked) = asked::read(&mut near).await? {
            asked.nth = self.shared.asked.fetch_add(1, Ordering::AcqRel);
            let fault = (self.shared.decide)(&asked);
            *self.now() = Now { fault, passed: 0, frames: asked.is_http2().then(Frames::default) };
            self.hear();
            match fault {
                LinkFault::LostRequest => return Ok(true),
                LinkFault::Repeated if asked.is_http2() => return Ok(true),
                _ => far.write_all(&asked.bytes).await?,
            }
            if asked.is_http2() {
                self.rest(near, far).await?;
                return Ok(false);
            }
            if fault == LinkFault::Repeated {
                self.shared.repeat(self.target, asked.bytes);
            }
        }
        Ok(false)
    }

    /// Passes on what the client sends, to its end.
    async fn rest(&self, mut near: BufReader<OwnedReadHalf>, mut far: OwnedWriteHalf) -> Result<()> {
        let mut bytes = vec![0; BUFFER_BYTES];
        loop {
            let read = near.read(&mut bytes).await?;
            if read == 0 {
                return Ok(());
            }
            self.hear();
            far.write_all(&bytes[..read]).await?;
        }
    }

    /// Passes answers on. True when a fault ended it.
    async fn back(&self, mut far: OwnedReadHalf, mut near: OwnedWriteHalf) -> Result<bool> {
        let mut bytes = vec![0; BUFFER_BYTES];
        loop {
            let read = far.read(&mut bytes).await?;
            if read == 0 {
                return Ok(false);
            }
            self.hear();
            let (kept, ends) = self.now().admit(&bytes[..read]);
            let kept = &bytes[..kept];
            let single = self.now().fault == LinkFault::SingleBytes;
            for piece in kept.chunks(if single { 1 } else { BUFFER_BYTES }) {
                near.write_all(piece).await?;
                self.shared.passed.fetch_add(piece.len() as u64, Ordering::AcqRel);
                tokio::task::yield_now().await;
            }
            if ends {
                return Ok(true);
            }
        }
    }

    /// Returns when nothing was heard for too long.
    async fn idle(&self) {
        let mut heard = self.heard.subscribe();
        loop {
            let last = *heard.borrow_and_update();
            let fault = self.now().fault;
            let LinkFault::IdleCut(limit) = fault else {
                // The sender is the link's own, so it is still there.
                let _ = heard.changed().await;
                continue;
            };
            if timeout_at(last + limit, heard.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl Shared {
    /// Sends the same bytes over a connection of its own; what is answered is read and forgotten.
    fn repeat(&self, target: SocketAddr, bytes: Vec<u8>) {
        let repeats = Arc::clone(&self.repeats);
        let again = async move {
            let mut stream = TcpStream::connect(target).await?;
            stream.write_all(&bytes).await?;
            let mut answer = vec![0; BUFFER_BYTES];
            if stream.read(&mut answer).await? > 0 {
                repeats.fetch_add(1, Ordering::AcqRel);
            }
            while stream.read(&mut answer).await? > 0 {}
            Result::Ok(())
        };
        let mut repeating = self.repeating.lock().unwrap_or_else(PoisonError::into_inner);
        repeating.spawn(async move {
            // A kept connection is not closed by the server, so somebody has to.
            let _ = timeout(REPEAT_MAX, again).await;
        });
    }
}
