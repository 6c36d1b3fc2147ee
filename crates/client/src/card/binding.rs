//! The bindings that the protocol itself defines.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A binding that this client speaks (A2A §9 to §11).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP (§9).
    JsonRpc,
    /// HTTP with JSON, the REST form (§11).
    HttpJson,
    /// gRPC (§10).
    Grpc,
}

/// A name that is none of the three.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is no binding that this client speaks (hint: JSONRPC, HTTP+JSON or GRPC)")]
pub struct UnknownBinding(String);

impl Binding {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// The name that cards use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wire_name())
    }
}

impl FromStr for Binding {
    type Err = UnknownBinding;

    /// Reads the name that cards use, and what people write for it: case, `-`, `_`, `+` and spaces make no difference, `rest`
    /// and `http` are HTTP+JSON.
    fn from_str(text: &str) -> Result<Self, UnknownBinding> {
        let letters = text.chars().filter(|c| !matches!(c, '-' | '_' | '+' | ' '));
        match letters.map(|c| c.to_ascii_lowercase()).collect::<String>().as_str() {
            "jsonrpc" | "jsonrpc2.0" => Ok(Self::JsonRpc),
            "httpjson" | "rest" | "http" => Ok(Self::HttpJson),
            "grpc" => Ok(Self::Grpc),
            _ => Err(UnknownBinding(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_has_many_spellings() {
        #[rustfmt::skip]
        let cases = [
            (Binding::JsonRpc,  ["JSONRPC", "jsonrpc", "json-rpc", "JSON_RPC", "JSON-RPC"]),
            (Binding::HttpJson, ["HTTP+JSON", "http+json", "http-json", "rest", "REST"]),
            (Binding::Grpc,     ["GRPC", "grpc", "gRPC", "g-rpc", "Grpc"]),
        ];
        for (binding, spellings) in cases {
            for spelling in spellings {
                assert_eq!(spelling.parse(), Ok(binding));
            }
        }
        for text in ["", "soap", "https://grpc", "JSONRPC "] {
            assert_eq!(text.parse::<Binding>().is_ok(), text == "JSONRPC ", "{text:?}");
        }
    }

    #[test]
    fn the_name_of_each_binding_reads_back() {
        for binding in Binding::ALL {
            assert_eq!(binding.wire_name().parse(), Ok(binding));
        }
    }
}
