use longhaul_store::StoreError;
use rusqlite::ErrorCode;

/// What goes wrong below the trait: SQLite's error, or one that has its meaning already.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Fault {
    /// Says what the fault means to who asked for `action`.
    pub(crate) fn into_store(self, action: &'static str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlite(error) if is_damage(&error) => {
                StoreError::corrupt(format!("the database, found while trying to {action}: {error}"))
            }
            Self::Sqlite(error) => StoreError::unavailable(action, error),
        }
    }

    /// Whether one commit alone can be the cause, so that its neighbours deserve another try.
    pub(crate) fn may_be_one_commit(&self) -> bool {
        match self {
            Self::Store(_) => true,
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(code) => matches!(
                    code,
                    ErrorCode::ConstraintViolation
                        | ErrorCode::TooBig
                        | ErrorCode::OutOfMemory
                        | ErrorCode::TypeMismatch
                ),
                None => true,
            },
        }
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..) => true,
        other => matches!(other.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)),
    }
}
