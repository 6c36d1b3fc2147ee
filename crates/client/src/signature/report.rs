//! What a verification found out.

use std::fmt;

use thiserror::Error;
use url::Url;

use super::algorithm::Algorithm;
use super::canonical::Form;
use super::json::excerpt;
use super::jwk::JwkError;

/// What is known about the signatures of a card.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[must_use = "a card whose report nobody reads was not verified"]
pub struct Report {
    /// The signatures that were looked at, in the order of the card.
    pub signatures: Vec<SignatureReport>,
    /// How many more the card has, beyond [`SIGNATURES_MAX`](super::SIGNATURES_MAX).
    pub not_looked_at: usize,
    /// Why there was no looking at signatures, where the card is none or its `signatures` is no list.
    pub problem: Option<String>,
}

/// What is known about one signature. What it says of itself is the word of whoever wrote it, until it is verified.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SignatureReport {
    /// The `kid` in its protected header.
    pub kid: Option<String>,
    /// The `alg` in its protected header.
    pub alg: Option<String>,
    /// The `jku` in its protected header, followed or not.
    pub jku: Option<String>,
    /// How it stands.
    pub finding: Finding,
}

/// How one signature stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Finding {
    /// It fits, by a key that is trusted.
    Verified {
        /// The `kid` of the key, if it has one.
        kid: Option<String>,
        /// The algorithm.
        alg: Algorithm,
        /// Why the key is trusted.
        by: By,
        /// What of the card is covered.
        form: Form,
        /// Paths of members of the card that the signature doesn't cover, at most 16; always empty for
        /// [`Form::Specification`]. Others could have added or changed them.
        uncovered: Vec<String>,
    },
    /// Whether it fits can't be told, or not as strictly as asked for.
    Unverifiable {
        /// Why.
        reason: Reason,
    },
    /// The key that it names is known, and the signature doesn't fit: the card or the signature was changed, or somebody else
    /// made it.
    Wrong {
        /// The `kid`.
        kid: String,
        /// The algorithm.
        alg: Algorithm,
    },
}

/// Why a key is trusted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum By {
    /// It is in the [`TrustStore`](super::TrustStore).
    TrustStore,
    /// It is in the key set at this URL, which the allow-list has.
    Jku(Url),
}

/// Why it can't be told whether a signature fits.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// It is no signature as the protocol describes it.
    #[error("malformed: {problem}")]
    Malformed {
        /// What is wrong.
        problem: String,
    },
    /// Its algorithm is none that is accepted.
    #[error("algorithm {alg:?} is refused")]
    AlgorithmRefused {
        /// The `alg`.
        alg: String,
    },
    /// Its header asks for an extension of JWS.
    #[error("header parameter {member:?} is refused")]
    Refused {
        /// `crit` or `b64`.
        member: &'static str,
    },
    /// The card has no canonical form.
    #[error("{problem}")]
    Card {
        /// Why.
        problem: String,
    },
    /// No trusted key has its `kid`, and it names no key set.
    #[error("no trusted key {}", named(kid.as_deref()))]
    KeyUnknown {
        /// The `kid`.
        kid: Option<String>,
    },
    /// The trusted keys that it may mean are for other algorithms.
    #[error("the trusted key {} is of kind {kind} and not for algorithm {alg}", named(kid.as_deref()))]
    KeyMisfit {
        /// The `kid` of the signature.
        kid: Option<String>,
        /// The kind of the first such key.
        kind: &'static str,
        /// The algorithm of the signature.
        alg: Algorithm,
    },
    /// The key that it means can't be used.
    #[error("the key {kid:?} can't be used: {error}")]
    KeyRefused {
        /// The `kid`.
        kid: String,
        /// Why.
        error: JwkError,
    },
    /// It names no key that is known, and none of the keys that it could mean fits.
    #[error("none of {keys} keys that it may mean fits")]
    NoneFits {
        /// How many were tried.
        keys: usize,
    },
    /// No trusted key has its `kid`, and the key set that it names is not on the allow-list.
    #[error("no trusted key, and the key set at {jku:?} is not allowed")]
    JkuNotAllowed {
        /// The `jku`.
        jku: String,
    },
    /// The key set that it names is allowed and was not fetched.
    #[error("the key set at {jku} was not fetched")]
    JkuNotFetched {
        /// The `jku`.
        jku: Url,
    },
    /// The key set that it names could not be had.
    #[error("the key set at {jku} could not be had: {problem}")]
    JkuFailed {
        /// The `jku`.
        jku: Url,
        /// Why.
        problem: String,
    },
    /// It fits by a trusted key, in a form that the verifier doesn't accept.
    #[error("it fits only in form {}, which does not cover: {}", form.as_str(), uncovered.join(", "))]
    FormRefused {
        /// The form.
        form: Form,
        /// What a signature in this form doesn't cover, as in [`Finding::Verified`].
        uncovered: Vec<String>,
    },
}

fn named(kid: Option<&str>) -> String {
    kid.map_or_else(|| "for a signature without kid".to_owned(), |kid| format!("{:?}", excerpt(kid)))
}

/// How the card stands as a whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Overall {
    /// At least one signature fits, by a trusted key.
    Verified,
    /// It carries signatures, and of none of them can be told whether it fits.
    Unverifiable,
    /// It carries no signature. Somebody may have taken it away.
    Absent,
    /// No signature fits, and of at least one the key is known.
    Wrong,
}

impl Report {
    /// How the card stands: one signature that fits is enough, else one that is wrong counts more than those that can't be
    /// verified. The module says why.
    #[must_use]
    pub fn overall(&self) -> Overall {
        let has = |wanted: fn(&Finding) -> bool| self.signatures.iter().any(|signature| wanted(&signature.finding));
        if has(|finding| matches!(finding, Finding::Verified { .. })) {
            Overall::Verified
        } else if has(|finding| matches!(finding, Finding::Wrong { .. })) {
            Overall::Wrong
        } else if self.signatures.is_empty() && self.problem.is_none() {
            Overall::Absent
        } else {
            Overall::Unverifiable
        }
    }
}

impl Overall {
    /// The word for it, for output that programs read.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverifiable => "unverifiable",
            Self::Absent => "absent",
            Self::Wrong => "wrong",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verified { kid, alg, by, form, uncovered } => {
                write!(f, "verified ({alg}) by ")?;
                match kid {
                    Some(kid) => write!(f, "key {kid:?} ")?,
                    None => f.write_str("a key without kid ")?,
                }
                match by {
                    By::TrustStore => f.write_str("of the trust store")?,
                    By::Jku(url) => write!(f, "of {url}")?,
                }
                write!(f, ", form {}", form.as_str())?;
                if uncovered.is_empty() { Ok(()) } else { write!(f, ", not covered: {}", uncovered.join(", ")) }
            }
            Self::Unverifiable { reason } => write!(f, "unverifiable: {reason}"),
            Self::Wrong { kid, alg } => write!(f, "wrong: does not fit key {kid:?} ({alg})"),
        }
    }
}
