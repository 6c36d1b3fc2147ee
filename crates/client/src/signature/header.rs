//! A signature of a card as it stands there, and what its protected header asks for (RFC 7515 §4).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::json::{excerpt, read_strict};
use super::report::Reason;

/// How large a protected header may be, in bytes of its JSON.
pub const HEADER_BYTES_MAX: usize = 8 * 1024;

/// How large a signature may be, in bytes: that of the largest RSA key.
pub const SIGNATURE_BYTES_MAX: usize = 1024;

/// A signature whose protected header could be read. Nothing of it is trusted yet.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    /// The protected header as it is signed.
    pub(super) protected: &'a str,
    pub(super) signature: Vec<u8>,
    members: Map<String, Value>,
    unprotected: Option<&'a Map<String, Value>>,
}

/// A protected header whose demands can all be met.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<&'a str>,
    pub(super) jku: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    pub(super) fn open(entry: &'a Value) -> Result<Self, Reason> {
        let entry = entry.as_object().ok_or_else(|| malformed("it is not an object"))?;
        let (protected, header) = decoded(entry, "protected", HEADER_BYTES_MAX)?;
        let header =
            read_strict(&header).map_err(|problem| malformed(format!("\"protected\" is not JSON: {problem}")))?;
        let Value::Object(members) = header else { return Err(malformed("\"protected\" is not an object")) };
        let (_, signature) = decoded(entry, "signature", SIGNATURE_BYTES_MAX)?;
        let unprotected = match entry.get("header") {
            None | Some(Value::Null) => None,
            Some(header) => Some(header.as_object().ok_or_else(|| malformed("\"header\" is not an object"))?),
        };
        Ok(Self { protected, signature, members, unprotected })
    }

    /// A member that is a string, if it is one; for the report.
    pub(super) fn said(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    /// # Errors
    ///
    /// The reason when the header asks for what is refused, or can't be what it says.
    pub(super) fn header(&self) -> Result<Header<'_>, Reason> {
        self.check_unprotected()?;
        if self.members.contains_key("crit") {
            return Err(Reason::Refused { member: "crit" });
        }
        if self.members.get("b64").is_some_and(|b64| *b64 != Value::Bool(true)) {
            return Err(Reason::Refused { member: "b64" });
        }
        let name = self.text("alg")?.ok_or_else(|| malformed("the protected header has no \"alg\""))?;
        let algorithm = Algorithm::from_name(name).ok_or_else(|| Reason::AlgorithmRefused { alg: excerpt(name) })?;
        Ok(Header { algorithm, kid: self.text("kid")?, jku: self.text("jku")? })
    }

    /// RFC 7515 §4 and §4.1.11: no name in both headers, and `crit` in the protected one alone. RFC 7797 says the same of `b64`.
    fn check_unprotected(&self) -> Result<(), Reason> {
        let Some(unprotected) = self.unprotected else { return Ok(()) };
        for member in ["crit", "b64"] {
            if unprotected.contains_key(member) {
                return Err(Reason::Refused { member });
            }
        }
        match unprotected.keys().find(|name| self.members.contains_key(*name)) {
            Some(name) => Err(malformed(format!("both headers have member {:?}", excerpt(name)))),
            None => Ok(()),
        }
    }

    fn text(&self, name: &'static str) -> Result<Option<&str>, Reason> {
        match self.members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(malformed(format!("member {name:?} of the protected header is not a string"))),
        }
    }
}

fn malformed(problem: impl Into<String>) -> Reason {
    Reason::Malformed { problem: problem.into() }
}

/// A member in base64url: as it stands there, and decoded.
fn decoded<'a>(entry: &'a Map<String, Value>, name: &str, bytes_max: usize) -> Result<(&'a str, Vec<u8>), Reason> {
    let text = entry.get(name).and_then(Value::as_str).ok_or_else(|| malformed(format!("{name:?} is not a string")))?;
    // Without padding, n bytes take n * 4 / 3 characters, rounded up.
    if text.len() > (bytes_max * 4).div_ceil(3) {
        return Err(malformed(format!("{name:?} is larger than {bytes_max} bytes")));
    }
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(bytes) => Ok((text, bytes)),
        Err(_) => Err(malformed(format!("{name:?} is not base64url without padding"))),
    }
}
