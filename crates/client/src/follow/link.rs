//! What is being asked of the agent, and what is asked next.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use longhaul_protocol::wire;
use tokio::time::{Instant, timeout_at};

use crate::binding::stream::{RawItem, RawStream};
use crate::error::ClientError;
use crate::transport::Deadline;

/// An answer that is waited for. It is kept, so that whoever drops the future of one event does not begin anew with the next.
///
/// The lock is never taken: what can only be reached through `&mut` may be shared, whatever the future is made of.
pub(super) struct Pending<T>(Mutex<Boxed<T>>);

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;

impl<T> Pending<T> {
    pub fn new(answer: impl Future<Output = Result<T, ClientError>> + Send + 'static) -> Self {
        Self(Mutex::new(Box::pin(answer)))
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(context)
    }
}

/// How the follower stands with the agent.
pub(super) enum Link {
    /// Nothing is asked before this moment.
    Due {
        /// What is asked then.
        ask: Ask,
        /// When.
        at: Instant,
    },
    /// A stream is being opened.
    Opening(Pending<RawStream>),
    /// A stream is open.
    Open(Box<Open>),
    /// One is open, and is not read on until it is known whether what came over it is new.
    Checking(Box<Checking>),
    /// The task is asked for; why not a stream of it.
    Asking(Pending<wire::Task>, NoStream),
    /// The message is being sent to an agent without streams.
    Sending(Pending<wire::SendMessageResponse>),
    /// There is nothing more.
    Ended,
}

impl Link {
    pub fn due(ask: Ask) -> Self {
        Self::Due { ask, at: Instant::now() }
    }

    /// It is asked after this wait.
    pub fn after(wait: Duration, ask: Ask) -> Self {
        Self::Due { ask, at: Deadline::after(wait).at }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Due { ask, at } => f.debug_struct("Due").field("ask", ask).field("at", at).finish(),
            Self::Opening(_) => f.write_str("Opening"),
            Self::Open(open) => f.debug_tuple("Open").field(open).finish(),
            Self::Checking(checking) => f.debug_tuple("Checking").field(&checking.held).finish(),
            Self::Asking(_, why) => f.debug_tuple("Asking").field(why).finish(),
            Self::Sending(_) => f.write_str("Sending"),
            Self::Ended => f.write_str("Ended"),
        }
    }
}

/// An open stream.
#[derive(Debug)]
pub(super) struct Open {
    pub raw: RawStream,
    /// How many items came.
    pub items: u64,
    pub since: Instant,
}

/// An item that is held back, and the question whether it is new.
pub(super) struct Checking {
    pub open: Box<Open>,
    pub held: RawItem,
    pub asking: Pending<wire::Task>,
}

/// What came over an open stream.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once, and never kept")]
pub(super) enum Next {
    Item {
        item: RawItem,
        is_first: bool,
    },
    Broken {
        error: ClientError,
        items: u64,
        since: Instant,
    },
    Closed {
        items: u64,
    },
    /// Nothing, until the moment that was given.
    Silent,
}

impl Open {
    /// Waits for what comes next, until this moment if there is one.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses nothing.
    pub async fn next(&mut self, until: Option<Instant>) -> Next {
        let next = match until {
            Some(until) => timeout_at(until, self.raw.next()).await,
            None => Ok(self.raw.next().await),
        };
        match next {
            Err(_) => Next::Silent,
            Ok(Some(Ok(item))) => {
                self.items = self.items.saturating_add(1);
                Next::Item { item, is_first: self.items == 1 }
            }
            Ok(Some(Err(error))) => Next::Broken { error, items: self.items, since: self.since },
            Ok(None) => Next::Closed { items: self.items },
        }
    }
}

/// What is asked of the agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ask {
    /// A stream: of the message while it is not sent, else of the task.
    Stream,
    /// The message's answer, or the task; why not a stream.
    Task(NoStream),
}

/// Why there is no stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoStream {
    /// The agent has none that helps.
    Never,
    /// It refused one while the task stood like this.
    While(Option<wire::TaskState>),
    /// It ended one without a word.
    Silent,
    /// None could be opened, or nothing came over it: perhaps something in between lets none pass.
    Unreachable,
    /// There was one, and the task is compared with what it brought before its last event is handed on.
    Compared,
}
