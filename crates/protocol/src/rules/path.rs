//! The path from a request to one of its members, on the stack: nothing is allocated unless a rule
//! is broken.

use std::fmt;

/// Where a value is inside a message, as JSON names and indices: `message.parts[0]`.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// The message itself.
    Root,
    /// A member of the object at a path; an empty name is that object itself.
    Member(&'a Path<'a>, &'static str),
    /// An item of the list at a path.
    Item(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The path to a member of the object at this path, by its JSON name.
    #[must_use]
    pub fn member(&'a self, json_name: &'static str) -> Path<'a> {
        Path::Member(self, json_name)
    }

    /// The path to an item of the list at this path.
    #[must_use]
    pub fn item(&'a self, index: usize) -> Path<'a> {
        Path::Item(self, index)
    }

    fn is_root(&self) -> bool {
        match self {
            Self::Root => true,
            Self::Member(parent, "") => parent.is_root(),
            Self::Member(..) | Self::Item(..) => false,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, "") => write!(f, "{parent}"),
            Self::Member(parent, name) if parent.is_root() => f.write_str(name),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
