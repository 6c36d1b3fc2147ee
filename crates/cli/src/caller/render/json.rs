//! JSON for programs, one document a line: the protocol's own (appendix B of the contract), and ours.

use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::to_json;
use serde_json::Value;

use super::clean;

/// The ProtoJSON of a message on one line.
pub fn document<T: ProtoJson>(message: &T) -> String {
    let json = to_json(message);
    clean::json(String::from_utf8_lossy(&json).into_owned()) + "\n"
}

/// Any other value on one line.
pub fn value(value: &Value) -> String {
    clean::json(value.to_string()) + "\n"
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::{from_json, wire};

    use super::*;

    #[test]
    fn a_document_is_one_line_and_reads_back_the_same() {
        let part = wire::Part::text("one\ntwo \u{9b}31m\u{2028}");
        let json = document(&part);
        assert_eq!(json.matches('\n').count(), 1);
        assert!(!json.trim_end().chars().any(char::is_control));
        assert_eq!(from_json::<wire::Part>(json.as_bytes()).unwrap(), part);
    }
}
