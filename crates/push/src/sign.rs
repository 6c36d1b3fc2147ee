//! Signatures over id, time and body, by the [Standard Webhooks](https://www.standardwebhooks.com) scheme.
//!
//! The signed text is `id.timestamp.body`, the signature `v1,` and the HMAC-SHA256 of it in base64. A header holds several,
//! divided by spaces, while a secret is being replaced.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use longhaul_protocol::Timestamp;
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;
use zeroize::Zeroizing;

/// What a signing secret begins with.
const PREFIX: &str = "whsec_";
/// The version of a signature by a secret that both sides hold.
const VERSION: &str = "v1,";
/// The shortest and the longest secret of the scheme, in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How many signatures of one request are looked at.
const SIGNATURES_MAX: usize = 16;
/// How far a request's time may be from now by default, either way.
pub const TOLERANCE: Duration = Duration::from_secs(300);

/// A secret of sender and receiver, written `whsec_` and 24 to 64 bytes in base64.
#[derive(Clone)]
pub struct SigningSecret(Zeroizing<Vec<u8>>);

/// Says that a text is no [`SigningSecret`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("must be whsec_ and 24 to 64 bytes in base64 (hint: echo whsec_$(head -c 32 /dev/urandom | base64))")]
pub struct InvalidSecret;

/// Why a request is not taken as the sender's.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum SignatureRefused {
    /// An id that could be mistaken for another part of what is signed, or none.
    #[error("the id is empty, or holds a full stop or what is no visible ASCII")]
    Id,
    /// The time is no number of seconds.
    #[error("the timestamp is no number of seconds since 1970")]
    Timestamp,
    /// The time is too long ago: it may be a request that was sent before.
    #[error("the timestamp is too old")]
    TooOld,
    /// The time is too far ahead.
    #[error("the timestamp is in the future")]
    TooNew,
    /// No signature is by a secret that is known.
    #[error("no signature fits")]
    Signature,
}

/// The three headers of a signed request.
#[derive(Clone, Copy, Debug)]
pub struct SignedHeaders<'a> {
    /// `Webhook-Id`: the same over all attempts.
    pub id: &'a str,
    /// `Webhook-Timestamp`: seconds since 1970.
    pub timestamp: &'a str,
    /// `Webhook-Signature`.
    pub signature: &'a str,
}

impl SigningSecret {
    /// Signs: `v1,<base64>`.
    ///
    /// `id` must hold no full stop, else it could be mistaken for another part of the text; [`verify`] refuses it.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let sum = self.sum(id, &seconds.to_string(), body);
        format!("{VERSION}{}", STANDARD.encode(sum))
    }

    fn sum(&self, id: &str, timestamp: &str, body: &[u8]) -> [u8; 32] {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length");
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl FromStr for SigningSecret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| InvalidSecret)?);
        if SECRET_BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(InvalidSecret) }
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningSecret(..)")
    }
}

/// The value of `Webhook-Signature`: one signature by each secret, so that a receiver may hold either.
#[must_use]
pub fn sign_all(secrets: &[SigningSecret], id: &str, seconds: i64, body: &[u8]) -> String {
    secrets.iter().map(|secret| secret.sign(id, seconds, body)).collect::<Vec<_>>().join(" ")
}

/// Checks that a request was signed with one of `secrets`, not longer than `tolerance` ago ([`TOLERANCE`]) nor that far ahead.
///
/// Who wants to see each delivery once also remembers its id for as long as `tolerance`.
///
/// # Errors
///
/// [`SignatureRefused`] when it is not.
pub fn verify(
    secrets: &[SigningSecret],
    headers: SignedHeaders<'_>,
    body: &[u8],
    now: Timestamp,
    tolerance: Duration,
) -> Result<(), SignatureRefused> {
    if !is_signable_id(headers.id) {
        return Err(SignatureRefused::Id);
    }
    if !headers.timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SignatureRefused::Timestamp);
    }
    let seconds: i64 = headers.timestamp.parse().map_err(|_| SignatureRefused::Timestamp)?;
    let tolerance = i64::try_from(tolerance.as_secs()).unwrap_or(i64::MAX);
    let age = now.seconds().saturating_sub(seconds);
    if age > tolerance {
        return Err(SignatureRefused::TooOld);
    }
    if age < tolerance.saturating_neg() {
        return Err(SignatureRefused::TooNew);
    }
    let mut fits = Choice::from(0);
    for secret in secrets {
        let wanted = secret.sum(headers.id, headers.timestamp, body);
        for given in headers.signature.split(' ').filter_map(|given| given.strip_prefix(VERSION)).take(SIGNATURES_MAX) {
            let given = STANDARD.decode(given).unwrap_or_default();
            fits |= given.ct_eq(wanted.as_slice());
        }
    }
    if bool::from(fits) { Ok(()) } else { Err(SignatureRefused::Signature) }
}

/// Whether an id can be signed: visible ASCII without a full stop.
pub(crate) fn is_signable_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const SECONDS: i64 = 1_614_265_330;

    fn secret(text: &str) -> SigningSecret {
        text.parse().unwrap()
    }

    fn known() -> SigningSecret {
        secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    }

    fn other() -> SigningSecret {
        secret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
    }

    fn check(secrets: &[SigningSecret], signature: &str, now: i64) -> Result<(), SignatureRefused> {
        let timestamp = SECONDS.to_string();
        let headers = SignedHeaders { id: ID, timestamp: &timestamp, signature };
        verify(secrets, headers, BODY, Timestamp::from_unix_millis(now * 1000), TOLERANCE)
    }

    /// The example that the scheme's own libraries are tested with.
    #[test]
    fn the_signature_is_that_of_the_scheme() {
        assert_eq!(known().sign(ID, SECONDS, BODY), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn either_of_two_secrets_is_enough_on_either_side() {
        let both = [known(), other()];
        let signature = sign_all(&both, ID, SECONDS, BODY);
        assert_eq!(check(&[other()], &signature, SECONDS), Ok(()));
        assert_eq!(check(&both, &known().sign(ID, SECONDS, BODY), SECONDS), Ok(()));
    }

    #[test]
    fn a_wrong_secret_a_cut_signature_and_another_version_are_refused() {
        let signature = known().sign(ID, SECONDS, BODY);
        let cut = format!("v1,{}", STANDARD.encode([0; 31]));
        let refused = Err(SignatureRefused::Signature);
        assert_eq!(check(&[other()], &signature, SECONDS), refused);
        assert_eq!(check(&[known()], &cut, SECONDS), refused);
        assert_eq!(check(&[known()], "", SECONDS), refused);
        assert_eq!(check(&[known()], &signature.replace("v1,", "v2,"), SECONDS), refused);
        assert_eq!(check(&[], &signature, SECONDS), refused);
    }

    #[test]
    fn a_changed_body_id_or_time_is_refused() {
        let signature = known().sign(ID, SECONDS, BODY);
        let timestamp = SECONDS.to_string();
        let good = SignedHeaders { id: ID, timestamp: &timestamp, signature: &signature };
        let now = Timestamp::from_unix_millis(SECONDS * 1000);
        let refused = |headers, body| verify(&[known()], headers, body, now, TOLERANCE).unwrap_err();
        assert_eq!(refused(good, b"{}"), SignatureRefused::Signature);
        assert_eq!(refused(SignedHeaders { id: "msg_2", ..good }, BODY), SignatureRefused::Signature);
        assert_eq!(refused(SignedHeaders { timestamp: "1614265331", ..good }, BODY), SignatureRefused::Signature);
        assert_eq!(refused(SignedHeaders { timestamp: "+1614265330", ..good }, BODY), SignatureRefused::Timestamp);
        assert_eq!(refused(SignedHeaders { timestamp: "", ..good }, BODY), SignatureRefused::Timestamp);
        assert_eq!(refused(SignedHeaders { id: "a.1614265330", ..good }, BODY), SignatureRefused::Id);
    }

    #[test]
    fn the_replay_window_ends_on_both_sides() {
        let signature = known().sign(ID, SECONDS, BODY);
        let at = |offset| check(&[known()], &signature, SECONDS + offset);
        assert_eq!((at(300), at(301)), (Ok(()), Err(SignatureRefused::TooOld)));
        assert_eq!((at(-300), at(-301)), (Ok(()), Err(SignatureRefused::TooNew)));
    }

    #[test]
    fn secrets_are_read_strictly_and_never_printed() {
        for text in ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!!"] {
            assert_eq!(text.parse::<SigningSecret>().unwrap_err(), InvalidSecret, "{text}");
        }
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        assert_eq!(long.parse::<SigningSecret>().unwrap_err(), InvalidSecret);
        assert_eq!(format!("{:?}", known()), "SigningSecret(..)");
    }
}
