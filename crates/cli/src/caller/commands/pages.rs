//! Lists that an agent gives page by page.

use crate::caller::failure::{Failure, LocalCode};

/// The page that follows the one that was asked for; none behind the last.
///
/// # Errors
///
/// [`LocalCode::NotA2a`] when that is the same page: there would be no end.
pub fn following(asked: &str, next: &str) -> Result<Option<String>, Failure> {
    if next.is_empty() {
        return Ok(None);
    }
    if next == asked {
        return Err(Failure::local(LocalCode::NotA2a, "the agent says that a page is followed by itself"));
    }
    Ok(Some(next.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_end_or_go_on() {
        assert_eq!(following("", "").unwrap(), None);
        assert_eq!(following("a", "").unwrap(), None);
        assert_eq!(following("", "a").unwrap().as_deref(), Some("a"));
        assert_eq!(following("a", "b").unwrap().as_deref(), Some("b"));
        assert_eq!(following("a", "a").unwrap_err().code, LocalCode::NotA2a.name());
    }
}
