use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use longhaul_engine::Engine;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, JoinHandle};

use crate::link::Link;

/// One engine on a runtime of its own: it dies with the runtime, as a process does, and stands still when nobody runs it.
#[derive(Debug)]
pub(crate) struct Instance {
    pub number: u64,
    pub engine: Engine,
    pub link: Arc<Link>,
    pub paused_until: Option<i64>,
    /// Set when it was told to stop.
    pub stopping: Option<JoinHandle<()>>,
    pub callers: Vec<(usize, AbortHandle)>,
    runtime: Runtime,
    idle: Arc<Idle>,
}

/// Tells when nothing on a runtime can go on by itself.
#[derive(Debug, Default)]
struct Idle {
    is: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Idle {
    fn arrived(&self) {
        self.is.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Instance {
    /// Starts an engine that `make` makes.
    pub fn start(number: u64, link: Arc<Link>, engine: Engine) -> Self {
        let idle = Arc::new(Idle::default());
        let arrives = Arc::clone(&idle);
        // Without timers and without a network: whatever would use them panics.
        let runtime = Builder::new_current_thread().on_thread_park(move || arrives.arrived()).build();
        let runtime = runtime.unwrap_or_else(|error| unreachable!("a runtime without drivers can be built: {error}"));
        let instance =
            Self { number, engine, link, paused_until: None, stopping: None, callers: Vec::new(), runtime, idle };
        let engine = instance.engine.clone();
        instance.spawn(async move {
            // A store that can't be reached is tried again, as whoever starts a server does.
            while engine.start().await.is_err() {
                crate::store::give_way().await;
            }
        });
        instance
    }

    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.spawn(future)
    }

    /// Runs until nothing can go on by itself.
    pub fn run(&self) {
        self.idle.is.store(false, Ordering::SeqCst);
        self.runtime.block_on(std::future::poll_fn(|context| {
            if self.idle.is.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            *self.idle.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
            Poll::Pending
        }));
    }

    pub fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }
}
