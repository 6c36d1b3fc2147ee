use longhaul_store::StoreError;
use thiserror::Error;
use tokio_postgres::error::SqlState;

/// Why a step in the database came to nothing.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    /// The database, or the way to it, failed.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
    /// It took too long.
    #[error("the database did not answer within {0:?}")]
    TooLong(std::time::Duration),
    /// No connection could be had.
    #[error("no connection to the database: {0}")]
    NoConnection(String),
    /// The server and the address do not agree on how connections are secured.
    #[error("{0}")]
    Insecure(String),
    /// What was read breaks an invariant.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is to be done about a fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Remedy {
    /// Nothing was made, and the same step may succeed at once: it collided with another.
    Again,
    /// The session is of no use any more. Whether the step was made is known by how far it came.
    Reconnect,
    /// One commit of several may be what the database can't take.
    Alone,
    /// It will not get better by trying.
    GiveUp,
}

impl Fault {
    pub(crate) fn remedy(&self) -> Remedy {
        let error = match self {
            Self::Database(error) => error,
            Self::TooLong(_) | Self::NoConnection(_) | Self::Insecure(_) => return Remedy::Reconnect,
            Self::Store(_) => return Remedy::GiveUp,
        };
        let Some(state) = error.code() else { return Remedy::Reconnect };
        let class = state.code().get(..2).unwrap_or_default();
        if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(state) {
            return Remedy::Again;
        }
        // Lost connections; a server that starts or goes down; a primary that became a standby.
        if class == "08" || class == "57" && *state != SqlState::QUERY_CANCELED {
            return Remedy::Reconnect;
        }
        if *state == SqlState::READ_ONLY_SQL_TRANSACTION {
            return Remedy::Reconnect;
        }
        // A key that is taken, text or a size that does not fit.
        if ["22", "23", "54"].contains(&class) {
            return Remedy::Alone;
        }
        Remedy::GiveUp
    }

    /// Whether a connection was refused for who asked or for what: waiting would not help.
    pub(crate) fn is_refusal(&self) -> bool {
        let Self::Database(error) = self else { return matches!(self, Self::Insecure(_)) };
        match error.code().map(SqlState::code) {
            // Who it is, the database's name, the right to connect to it.
            Some(code) => code.starts_with("28") || ["3D000", "42501"].contains(&code),
            // A password that was asked for and not given, a proof that the server did not give: the driver has no other sign.
            None => ["invalid configuration", "authentication error"].contains(&error.to_string().as_str()),
        }
    }

    /// Whether a transaction may have been made of which the end was sent, and this came back. What the database refuses it has
    /// undone; but one that goes down, or cuts a session off, may have made it before.
    pub(crate) fn leaves_open(&self) -> bool {
        let Self::Database(error) = self else { return !matches!(self, Self::Store(_)) };
        let Some(state) = error.code() else { return true };
        let class = state.code().get(..2).unwrap_or_default();
        class == "08" || class == "57" && *state != SqlState::QUERY_CANCELED
    }

    /// Whether a key was taken already.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Database(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// The fault with its causes, for many who wait.
    pub(crate) fn told(&self) -> String {
        let mut told = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            told = format!("{told}: {error}");
            cause = error.source();
        }
        told
    }

    pub(crate) fn into_store(self, action: &'static str) -> StoreError {
        match self {
            Self::Store(error) => error,
            other => StoreError::unavailable(action, other),
        }
    }
}
