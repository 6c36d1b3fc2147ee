//! What the user says.

use longhaul_client::new_id;
use longhaul_protocol::Role;
use longhaul_protocol::wire::{Message, Part};

/// A message of the user's with an id of its own, in a context and to a task where these are not empty.
pub fn of_user(context_id: &str, task_id: &str, parts: Vec<Part>) -> Message {
    Message {
        message_id: new_id(),
        context_id: context_id.to_owned(),
        task_id: task_id.to_owned(),
        role: Role::User.into(),
        parts,
        ..Message::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_the_users_and_has_an_id_of_its_own() {
        let said = || of_user("c", "t", vec![Part::text("hello")]);
        let (one, other) = (said(), said());
        assert_ne!(one.message_id, other.message_id);
        assert_eq!((one.context_id.as_str(), one.task_id.as_str(), one.parts.len()), ("c", "t", 1));
        assert_eq!(one.role, Role::User.into());
    }
}
