//! Public keys as JSON (RFC 7517, RFC 7518 §6, RFC 8037).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use thiserror::Error;

use super::algorithm::{Algorithm, KeyMaterial};
use super::json::{excerpt, read_strict};

/// The members of a JWK that only a private or a shared key has.
const SECRET_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The least and the most bits of an RSA modulus.
const RSA_BITS_MIN: usize = 2048;
const RSA_BITS_MAX: usize = 8192;

/// The most bits of an RSA exponent.
const RSA_EXPONENT_BITS_MAX: usize = 33;

/// A public key that verifies signatures.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Jwk {
    kid: Option<String>,
    alg: Option<Algorithm>,
    material: KeyMaterial,
}

/// Why a key is not used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum JwkError {
    /// It is no JSON object.
    #[error("the key is not a JSON object")]
    NotAnObject,
    /// A member is missing, of the wrong type, or its value is impossible.
    #[error("member {member:?} of the key {problem}")]
    Member {
        /// The member.
        member: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// It holds a private or a shared key, which has no place here and must be taken for known to others.
    #[error("the key holds secret member {member:?}: give the public key alone")]
    Secret {
        /// The member.
        member: &'static str,
    },
    /// It is of a kind that no supported algorithm has.
    #[error("the kind of key is not supported: {kind:?}")]
    Kind {
        /// Its `kty` or `crv`.
        kind: String,
    },
    /// It is not meant for signatures.
    #[error("the key is not for verifying signatures: its {member:?} is {value:?}")]
    Use {
        /// `use` or `key_ops`.
        member: &'static str,
        /// What it says.
        value: String,
    },
    /// It is meant for an algorithm that is not supported, or not one of its kind.
    #[error("the key is for algorithm {alg:?}, which is refused for a key of kind {kind}")]
    Algorithm {
        /// Its `alg`.
        alg: String,
        /// Its kind.
        kind: &'static str,
    },
    /// It is an RSA key of a size that is not accepted.
    #[error("the RSA key has {bits} bits; {RSA_BITS_MIN} to {RSA_BITS_MAX} are accepted")]
    RsaBits {
        /// The bits of its modulus.
        bits: usize,
    },
}

impl Jwk {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// [`JwkError`] when it is no public key that verifies signatures with a supported [`Algorithm`]. Whether a point lies on
    /// its curve is left to the cryptography: a key whose point doesn't verifies nothing.
    pub fn from_json(key: &Value) -> Result<Self, JwkError> {
        let key = key.as_object().ok_or(JwkError::NotAnObject)?;
        if let Some(member) = SECRET_MEMBERS.into_iter().find(|member| key.contains_key(*member)) {
            return Err(JwkError::Secret { member });
        }
        check_use(key)?;
        let material = material(key)?;
        let alg = match text(key, "alg")? {
            None => None,
            Some(name) => Some(
                Algorithm::from_name(name)
                    .filter(|alg| material.fits(*alg))
                    .ok_or_else(|| JwkError::Algorithm { alg: excerpt(name), kind: material.kind() })?,
            ),
        };
        Ok(Self { kid: text(key, "kid")?.map(str::to_owned), alg, material })
    }

    /// The key's id, if it has one.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// The one algorithm that the key is for, if it says so.
    #[must_use]
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.alg
    }

    /// Which kind of key it is, such as `EC P-256`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.material.kind()
    }

    /// Whether the key may be used with this algorithm.
    #[must_use]
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        self.material.fits(algorithm) && self.alg.is_none_or(|own| own == algorithm)
    }

    /// Whether `signature` is one of `message` by this key and algorithm.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        self.fits(algorithm) && self.material.verifies(algorithm, message, signature)
    }
}

/// A set of keys. Holds those that can be used, and says of the others why not.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JwkSet {
    keys: Vec<Jwk>,
    refused: Vec<RefusedKey>,
}

/// A key of a set that is not used.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RefusedKey {
    /// Its place in the set, from 0.
    pub index: usize,
    /// Its id, if it has one.
    pub kid: Option<String>,
    /// Why it is not used.
    pub error: JwkError,
}

/// Why a text is no set of keys.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum JwkSetError {
    /// It is larger than [`JwkSet::BYTES_MAX`].
    #[error("the key set is larger than {} bytes", JwkSet::BYTES_MAX)]
    TooLarge,
    /// It is not JSON, or has a member twice.
    #[error("the key set is not JSON: {problem}")]
    NotJson {
        /// What is wrong, and where.
        problem: String,
    },
    /// It is JSON, but neither a set (an object with the list `keys`) nor one key.
    #[error("the key set has no list \"keys\"")]
    NoKeys,
    /// It has more keys than [`JwkSet::KEYS_MAX`].
    #[error("the key set has {keys} keys; at most {} are accepted", JwkSet::KEYS_MAX)]
    TooManyKeys {
        /// How many it has.
        keys: usize,
    },
}

impl JwkSet {
    /// How large the text of a set may be, in bytes.
    pub const BYTES_MAX: usize = 256 * 1024;
    /// How many keys a set may have.
    pub const KEYS_MAX: usize = 100;

    /// Reads a set, or a single key as a set of one. A key that can't be used does no harm to the others (RFC 7517 §5): see
    /// [`refused`](Self::refused).
    ///
    /// # Errors
    ///
    /// [`JwkSetError`] when the text is too large, has too many keys, or is no set.
    pub fn parse(text: &[u8]) -> Result<Self, JwkSetError> {
        if text.len() > Self::BYTES_MAX {
            return Err(JwkSetError::TooLarge);
        }
        let set = read_strict(text).map_err(|problem| JwkSetError::NotJson { problem })?;
        let keys = match (set.get("keys"), set.get("kty")) {
            (Some(Value::Array(keys)), _) => keys.as_slice(),
            (None, Some(_)) => std::slice::from_ref(&set),
            _ => return Err(JwkSetError::NoKeys),
        };
        if keys.len() > Self::KEYS_MAX {
            return Err(JwkSetError::TooManyKeys { keys: keys.len() });
        }
        Ok(keys.iter().enumerate().fold(Self::default(), Self::with))
    }

    fn with(mut self, (index, key): (usize, &Value)) -> Self {
        match Jwk::from_json(key) {
            Ok(key) => self.keys.push(key),
            Err(error) => {
                let kid = key.get("kid").and_then(Value::as_str).map(str::to_owned);
                self.refused.push(RefusedKey { index, kid, error });
            }
        }
        self
    }

    /// The keys that can be used, in the order of the set.
    #[must_use]
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// The keys that can't be used, in the order of the set.
    #[must_use]
    pub fn refused(&self) -> &[RefusedKey] {
        &self.refused
    }
}

impl From<Jwk> for JwkSet {
    fn from(key: Jwk) -> Self {
        Self { keys: vec![key], refused: Vec::new() }
    }
}

fn member(member: &'static str, problem: &str) -> JwkError {
    JwkError::Member { member, problem: problem.to_owned() }
}

fn text<'a>(key: &'a Map<String, Value>, name: &'static str) -> Result<Option<&'a str>, JwkError> {
    match key.get(name) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or_else(|| member(name, "is not a string")),
    }
}

fn needed<'a>(key: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, JwkError> {
    text(key, name)?.ok_or_else(|| member(name, "is missing"))
}

fn bytes(key: &Map<String, Value>, name: &'static str) -> Result<Vec<u8>, JwkError> {
    URL_SAFE_NO_PAD.decode(needed(key, name)?).map_err(|_| member(name, "is not base64url without padding"))
}

fn check_use(key: &Map<String, Value>) -> Result<(), JwkError> {
    if let Some(purpose) = text(key, "use")?.filter(|purpose| *purpose != "sig") {
        return Err(JwkError::Use { member: "use", value: excerpt(purpose) });
    }
    let Some(operations) = key.get("key_ops") else { return Ok(()) };
    let operations = operations.as_array().ok_or_else(|| member("key_ops", "is not a list"))?;
    if operations.iter().any(|operation| operation == "verify") {
        return Ok(());
    }
    Err(JwkError::Use {
        member: "key_ops",
        value: excerpt(&operations.iter().map(Value::to_string).collect::<String>()),
    })
}

fn material(key: &Map<String, Value>) -> Result<KeyMaterial, JwkError> {
    let kty = needed(key, "kty")?;
    let curve = || needed(key, "crv");
    match kty {
        "RSA" => rsa(key),
        "EC" => match curve()? {
            "P-256" => point::<32>(key).map(KeyMaterial::P256),
            "P-384" => point::<48>(key).map(KeyMaterial::P384),
            other => Err(JwkError::Kind { kind: excerpt(other) }),
        },
        "OKP" => match curve()? {
            "Ed25519" => sized::<32>(key, "x").map(KeyMaterial::Ed25519),
            other => Err(JwkError::Kind { kind: excerpt(other) }),
        },
        other => Err(JwkError::Kind { kind: excerpt(other) }),
    }
}

fn sized<const BYTES: usize>(key: &Map<String, Value>, name: &'static str) -> Result<Vec<u8>, JwkError> {
    let value = bytes(key, name)?;
    if value.len() == BYTES {
        return Ok(value);
    }
    Err(member(name, &format!("has {} bytes instead of {BYTES}", value.len())))
}

/// An uncompressed point (SEC 1 §2.3.3).
fn point<const BYTES: usize>(key: &Map<String, Value>) -> Result<Vec<u8>, JwkError> {
    let mut point = vec![4];
    point.extend(sized::<BYTES>(key, "x")?);
    point.extend(sized::<BYTES>(key, "y")?);
    Ok(point)
}

fn rsa(key: &Map<String, Value>) -> Result<KeyMaterial, JwkError> {
    let number = |name| bytes(key, name).map(|bytes| bytes.into_iter().skip_while(|byte| *byte == 0).collect());
    let (n, e): (Vec<u8>, Vec<u8>) = (number("n")?, number("e")?);
    let bits = bits(&n);
    if !(RSA_BITS_MIN..=RSA_BITS_MAX).contains(&bits) {
        return Err(JwkError::RsaBits { bits });
    }
    let is_odd = |number: &[u8]| number.last().is_some_and(|byte| byte % 2 == 1);
    if !is_odd(&n) {
        return Err(member("n", "is an even number"));
    }
    if !is_odd(&e) || e == [1] || self::bits(&e) > RSA_EXPONENT_BITS_MAX {
        return Err(member("e", "is no odd number from 3 to 33 bits"));
    }
    Ok(KeyMaterial::Rsa { n, e })
}

/// The bits of a big-endian number without leading zeros.
fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}
