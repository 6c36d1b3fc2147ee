//! Where instances keep their tasks, and how calls of it are made.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use longhaul_store::{MemoryStore, Store, StoreError};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::panics;

type Opening = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send>>;

/// Where the instances of one run keep their tasks.
pub struct Stores {
    open: Box<dyn Fn() -> Opening + Send + Sync>,
    calls: Calls,
    runtime: Option<Runtime>,
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Stores {
    /// One store in memory, which all instances share. Each call is made at once, so that a seed gives the same run.
    #[must_use]
    pub fn in_memory() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let open = move || Box::pin(std::future::ready(Arc::clone(&store))) as Opening;
        Self { open: Box::new(open), calls: Calls::AtOnce, runtime: None }
    }

    /// A store for each instance, opened by `open`, over an empty place outside of this process that they share. Calls take as
    /// long as they take, on a thread of their own, and the simulation's time stands still until all of them are answered. What
    /// is made first of calls that are made at the same time is not for the seed to say.
    ///
    /// The stores have to believe their callers about the time.
    ///
    /// # Panics
    ///
    /// When there can be no runtime.
    #[must_use]
    pub fn outside<O>(open: impl Fn() -> O + Send + Sync + 'static) -> Self
    where
        O: Future<Output = Arc<dyn Store>> + Send + 'static,
    {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("stores").enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| unreachable!("a runtime can be built: {error}"));
        let calls = Calls::Outside { runtime: runtime.handle().clone(), flights: Arc::default() };
        Self { open: Box::new(move || Box::pin(open()) as Opening), calls, runtime: Some(runtime) }
    }

    /// A store for one more instance.
    pub(crate) fn open(&self) -> Arc<dyn Store> {
        self.calls.wait((self.open)())
    }

    /// Whether calls can be under way at the same time.
    pub(crate) fn are_outside(&self) -> bool {
        self.runtime.is_some()
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// How many panics the stores' own thread has seen.
    pub(crate) fn panics(&self) -> u64 {
        let Some(runtime) = &self.runtime else { return 0 };
        runtime.block_on(runtime.spawn(async { panics::count() })).unwrap_or(1)
    }
}

/// How calls of the stores are made.
#[derive(Clone, Debug)]
pub(crate) enum Calls {
    /// By whoever makes them: all of the memory store's are ready at once.
    AtOnce,
    /// On a runtime of their own.
    Outside { runtime: Handle, flights: Arc<Flights> },
}

impl Calls {
    /// Makes a call. It is given up when nobody waits for it any more.
    pub async fn make<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
    {
        match self {
            Self::AtOnce => call.await,
            Self::Outside { runtime, flights } => {
                let (answer, calling) = begin(runtime, flights, call);
                let _gives_up = GivesUp(calling);
                answer.await.unwrap_or_else(|_| Err(unanswered()))
            }
        }
    }

    /// Makes a call that goes on when nobody waits for it any more.
    pub async fn finish<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
    {
        match self {
            Self::AtOnce => call.await,
            Self::Outside { runtime, flights } => {
                let (answer, _) = begin(runtime, flights, call);
                answer.await.unwrap_or_else(|_| Err(unanswered()))
            }
        }
    }

    /// Makes a call for which nobody waits.
    pub fn detach(&self, call: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::AtOnce => at_once(call),
            Self::Outside { runtime, flights } => drop(begin(runtime, flights, call)),
        }
    }

    /// Makes a call and waits for it, as only the world may, which runs on no runtime.
    pub fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        match self {
            Self::AtOnce => at_once(call),
            Self::Outside { runtime, .. } => runtime.block_on(call),
        }
    }

    /// Whether calls are under way that nobody has waited for.
    pub fn are_under_way(&self) -> bool {
        match self {
            Self::AtOnce => false,
            Self::Outside { flights, .. } => flights.state().under_way > 0,
        }
    }

    /// How many calls were answered.
    pub fn landed(&self) -> u64 {
        match self {
            Self::AtOnce => 0,
            Self::Outside { flights, .. } => flights.state().landed,
        }
    }

    /// Waits until more calls than so many were answered; no longer when none is under way.
    pub fn wait_beyond(&self, landed: u64) -> Landing {
        match self {
            Self::AtOnce => Landing::NoneUnderWay,
            Self::Outside { flights, .. } => flights.wait_beyond(landed),
        }
    }
}

/// What came of waiting for calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Landing {
    Answered,
    NoneUnderWay,
    /// The store does not answer.
    Stuck,
}

/// How long a real store may take for the slowest call.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Counts the calls that are under way.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    state: Mutex<State>,
    landing: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: u64,
    landed: u64,
}

impl Flights {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_beyond(&self, landed: u64) -> Landing {
        let waits = |state: &mut State| state.landed <= landed && state.under_way > 0;
        let waited = self.landing.wait_timeout_while(self.state(), CALL_MAX, waits);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.landed > landed {
            true => Landing::Answered,
            false if timeout.timed_out() => Landing::Stuck,
            false => Landing::NoneUnderWay,
        }
    }
}

/// A call that is under way until this is dropped.
struct Flight(Arc<Flights>);

impl Flight {
    fn begin(flights: &Arc<Flights>) -> Self {
        flights.state().under_way += 1;
        Self(Arc::clone(flights))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way -= 1;
        state.landed += 1;
        drop(state);
        self.0.landing.notify_all();
    }
}

struct GivesUp(AbortHandle);

impl Drop for GivesUp {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn begin<T: Send + 'static>(
    runtime: &Handle,
    flights: &Arc<Flights>,
    call: impl Future<Output = T> + Send + 'static,
) -> (oneshot::Receiver<T>, AbortHandle) {
    let (tell, answer) = oneshot::channel();
    let flight = Flight::begin(flights);
    let calling = runtime.spawn(async move {
        // Lands after whoever waits was woken: so the world, which runs instances until nothing has landed, runs it again.
        let _flight = flight;
        let answered = call.await;
        // Who waited may have gone.
        drop(tell.send(answered));
    });
    (answer, calling.abort_handle())
}

fn unanswered() -> StoreError {
    StoreError::unavailable("call the store", "the call ended without an answer")
}

/// The output of a future that is ready at once, as all of the memory store's are.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the memory store waits for nothing"),
    }
}
