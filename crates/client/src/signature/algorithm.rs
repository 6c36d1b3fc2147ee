//! The algorithms that sign cards (RFC 7518 §3.1, RFC 8037).

use std::fmt;

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// A signature algorithm that a card's signature may name in `alg`. All others are refused: `none`, the HMAC algorithms, whose
/// key both sides would have to share, and those that nobody needs here.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA PKCS #1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS #1 v1.5 with SHA-512.
    Rs512,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// RSA-PSS with SHA-384.
    Ps384,
    /// RSA-PSS with SHA-512.
    Ps512,
    /// Ed25519; RFC 9864 calls it `Ed25519` and RFC 8037 `EdDSA`.
    EdDsa,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
    ];

    /// The name in `alg`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of this name, which is case-sensitive; none if it is one that is refused.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "Ed25519" => Some(Self::EdDsa),
            _ => Self::ALL.into_iter().find(|algorithm| algorithm.name() == name),
        }
    }

    /// The modulus' and exponent's way to verify with this algorithm, if it is one of RSA's.
    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A public key, as the cryptography wants it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum KeyMaterial {
    /// A point on P-256, uncompressed.
    P256(Vec<u8>),
    /// A point on P-384, uncompressed.
    P384(Vec<u8>),
    /// A key of Ed25519.
    Ed25519(Vec<u8>),
    /// Modulus and exponent, big-endian without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

impl KeyMaterial {
    /// Which kind of key it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::P256(_) => "EC P-256",
            Self::P384(_) => "EC P-384",
            Self::Ed25519(_) => "OKP Ed25519",
            Self::Rsa { .. } => "RSA",
        }
    }

    /// Whether this kind of key is one of the algorithm's.
    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::P256(_) => algorithm == Algorithm::Es256,
            Self::P384(_) => algorithm == Algorithm::Es384,
            Self::Ed25519(_) => algorithm == Algorithm::EdDsa,
            Self::Rsa { .. } => algorithm.rsa().is_some(),
        }
    }

    /// Whether `signature` is one of `message` by this key. False where the algorithm is not one of the key's kind.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let plain = |with: &'static dyn VerificationAlgorithm, key: &[u8]| {
            self.fits(algorithm) && UnparsedPublicKey::new(with, key).verify(message, signature).is_ok()
        };
        match self {
            Self::P256(point) => plain(&ECDSA_P256_SHA256_FIXED, point),
            Self::P384(point) => plain(&ECDSA_P384_SHA384_FIXED, point),
            Self::Ed25519(key) => plain(&ED25519, key),
            Self::Rsa { n, e } => algorithm
                .rsa()
                .is_some_and(|with| RsaPublicKeyComponents { n, e }.verify(with, message, signature).is_ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_to_the_letter_and_all_others_refused() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_name("Ed25519"), Some(Algorithm::EdDsa));
        for other in
            ["none", "None", "", "HS256", "HS384", "HS512", "ES512", "ES256K", "es256", "Ed448", "RS1", "ES256 "]
        {
            assert_eq!(Algorithm::from_name(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_key_is_used_for_the_algorithms_of_its_kind_alone() {
        let keys = [
            (KeyMaterial::P256(vec![]), "ES256"),
            (KeyMaterial::P384(vec![]), "ES384"),
            (KeyMaterial::Ed25519(vec![]), "EdDSA"),
            (KeyMaterial::Rsa { n: vec![], e: vec![] }, "RS256 RS384 RS512 PS256 PS384 PS512"),
        ];
        for (key, names) in keys {
            for algorithm in Algorithm::ALL {
                assert_eq!(key.fits(algorithm), names.split(' ').any(|name| name == algorithm.name()), "{algorithm}");
                assert!(!key.verifies(algorithm, b"m", b"s"));
            }
        }
    }
}
