//! Signs cards, for tests alone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use longhaul_client::signature::{JwkSet, TrustStore};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Map, Value, json};

pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key pair with a name.
pub struct Signer {
    pair: Pair,
    pub kid: &'static str,
}

enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(Box<RsaKeyPair>),
}

impl Signer {
    pub fn es256(kid: &'static str) -> Self {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap().serialize_der();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &SystemRandom::new()).unwrap();
        Self { pair: Pair::Es256(pair), kid }
    }

    pub fn ed_dsa(kid: &'static str) -> Self {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().serialize_der();
        Self { pair: Pair::EdDsa(Ed25519KeyPair::from_pkcs8(&key).unwrap()), kid }
    }

    /// Neither ring nor rcgen with ring makes RSA keys: this one was made for these tests and is used nowhere else.
    pub fn rs256(kid: &'static str) -> Self {
        let key = include_bytes!("../data/rsa2048-of-tests.pk8.der");
        Self { pair: Pair::Rs256(Box::new(RsaKeyPair::from_pkcs8(key).unwrap())), kid }
    }

    pub fn alg(&self) -> &'static str {
        match self.pair {
            Pair::Es256(_) => "ES256",
            Pair::EdDsa(_) => "EdDSA",
            Pair::Rs256(_) => "RS256",
        }
    }

    pub fn jwk(&self) -> Value {
        match &self.pair {
            Pair::Es256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": base64url(x), "y": base64url(y), "kid": self.kid })
            }
            Pair::EdDsa(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key()), "kid": self.kid })
            }
            Pair::Rs256(pair) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({ "kty": "RSA", "n": base64url(&public.n), "e": base64url(&public.e), "kid": self.kid })
            }
        }
    }

    pub fn set(&self) -> JwkSet {
        set_of(&[self.jwk()])
    }

    pub fn trusted(&self) -> TrustStore {
        let mut trust = TrustStore::default();
        trust.trust(self.set());
        trust
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.pair {
            Pair::Es256(pair) => pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Pair::EdDsa(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).unwrap();
                signature
            }
        }
    }

    pub fn header(&self) -> Value {
        json!({ "alg": self.alg(), "kid": self.kid, "typ": "JOSE" })
    }

    /// An entry of `signatures` over the canonical text of `payload`, with a protected header of this text.
    pub fn entry_with_header_text(&self, payload: &Value, header: &str) -> Value {
        let protected = base64url(header);
        let payload = base64url(serde_json_canonicalizer::to_vec(payload).unwrap());
        let signature = self.sign(format!("{protected}.{payload}").as_bytes());
        json!({ "protected": protected, "signature": base64url(signature) })
    }

    pub fn entry_with_header(&self, payload: &Value, header: &Value) -> Value {
        self.entry_with_header_text(payload, &header.to_string())
    }

    pub fn entry(&self, payload: &Value) -> Value {
        self.entry_with_header(payload, &self.header())
    }
}

pub fn set_of(keys: &[Value]) -> JwkSet {
    JwkSet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

/// The card with these signatures.
pub fn with_signatures(card: &Value, signatures: &[Value]) -> Value {
    let mut members: Map<String, Value> = card.as_object().unwrap().clone();
    members.insert("signatures".to_owned(), signatures.into());
    Value::Object(members)
}

/// A value with one member more.
pub fn with(value: &Value, name: &str, member: Value) -> Value {
    let mut members = value.as_object().unwrap().clone();
    members.insert(name.to_owned(), member);
    Value::Object(members)
}

/// A card without a member whose meaning is that of none.
pub fn plain_card() -> Value {
    json!({
        "name": "n", "description": "d", "version": "1", "capabilities": { "streaming": true },
        "supportedInterfaces": [{ "url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "d", "tags": ["t"] }],
    })
}
