use std::fmt;
use std::sync::Arc;

/// Names a process that runs turns, and no other before or after it: a host that starts again is another worker, so that it
/// never takes a lease of its former self for its own. Empty: nobody.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WorkerId(Option<Arc<str>>);

impl WorkerId {
    /// A worker of this name; nobody when it is empty.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self((!name.is_empty()).then_some(name))
    }

    /// The name; empty for nobody.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether nobody is meant.
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
