//! How a connection is secured, with libpq's parameters and their meaning.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use thiserror::Error;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::TlsParams;

/// Names PostgreSQL to a server that speaks more than one protocol.
const ALPN: &[u8] = b"postgresql";

/// Why a connection can't be secured as the address asks.
#[derive(Debug, Error)]
pub(super) enum TlsError {
    #[error("sslmode is {0:?}: it must be disable, prefer, require, verify-ca or verify-full")]
    Mode(String),
    #[error(
        "sslrootcert=system needs sslmode=verify-full: anyone gets a certificate of a public authority, for another name"
    )]
    WeakSystem,
    #[error("{parameter}={} cannot be read: it must name a PEM file", path.display())]
    File { parameter: &'static str, path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{parameter}={} holds no {wanted} in PEM form", path.display())]
    Empty { parameter: &'static str, path: PathBuf, wanted: &'static str },
    #[error(
        "this machine has no certificates of authorities: install them (ca-certificates), or name a file by sslrootcert"
    )]
    NoSystemRoots,
    #[error("sslcert and sslkey belong together: {0} is missing")]
    Half(&'static str),
    #[error("TLS cannot be set up with sslrootcert, sslcert and sslkey as they are")]
    Setup(#[source] rustls::Error),
}

/// What `sslmode` may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    /// By default `prefer`, as for libpq; `verify-full` with the system's authorities.
    fn of(params: &TlsParams) -> Result<Self, TlsError> {
        let system = params.sslrootcert.as_deref() == Some("system");
        let mode = match params.sslmode.as_deref() {
            None if system => Self::VerifyFull,
            None | Some("prefer") => Self::Prefer,
            Some("disable") => Self::Disable,
            Some("require") => Self::Require,
            Some("verify-ca") => Self::VerifyCa,
            Some("verify-full") => Self::VerifyFull,
            Some(other) => return Err(TlsError::Mode(other.to_owned())),
        };
        if system && mode != Self::VerifyFull { Err(TlsError::WeakSystem) } else { Ok(mode) }
    }

    /// As the driver understands it, which leaves it to us to verify.
    pub(super) fn of_driver(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }

    /// What a server must prove. With authorities at hand their word is asked for, whatever the mode.
    fn proof(self, params: &TlsParams) -> Proof {
        match self {
            Self::VerifyFull => Proof::Name,
            Self::VerifyCa => Proof::Chain,
            Self::Disable | Self::Prefer | Self::Require if params.sslrootcert.is_some() => Proof::Chain,
            Self::Disable | Self::Prefer | Self::Require => Proof::None,
        }
    }
}

/// How connections are secured.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) mode: Mode,
    pub(super) make: MakeRustlsConnect,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Tls {
    pub(super) fn new(params: &TlsParams) -> Result<Self, TlsError> {
        let mode = Mode::of(params)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(mode.proof(params), params, provider.clone())?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match client_certificate(params)? {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(TlsError::Setup)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { mode, make: MakeRustlsConnect::new(config) })
    }
}

type ClientCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_certificate(params: &TlsParams) -> Result<Option<ClientCertificate>, TlsError> {
    let (cert, key) = match (&params.sslcert, &params.sslkey) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, Path::new(key)),
        (Some(_), None) => return Err(TlsError::Half("sslkey")),
        (None, Some(_)) => return Err(TlsError::Half("sslcert")),
    };
    let chain = certificates("sslcert", Path::new(cert))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            TlsError::Empty { parameter: "sslkey", path: key.to_owned(), wanted: "private key without a password" }
        }
        other => TlsError::File { parameter: "sslkey", path: key.to_owned(), source: other.into() },
    })?;
    Ok(Some((chain, key)))
}

fn certificates(parameter: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error: rustls::pki_types::pem::Error| TlsError::File {
        parameter,
        path: path.to_owned(),
        source: error.into(),
    };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() {
        return Err(TlsError::Empty { parameter, path: path.to_owned(), wanted: "certificate" });
    }
    Ok(found)
}

/// What a server has to prove by its certificate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Proof {
    /// Nothing: who listens on the way learns nothing, who stands in it is not noticed.
    None,
    /// That an authority that is trusted signed it.
    Chain,
    /// That, and that it is for the name by which the server is called.
    Name,
}

/// Looks at the server's certificate as far as `sslmode` asks for it.
#[derive(Debug)]
struct Verifier {
    proof: Proof,
    roots: RootCertStore,
    /// What `sslrootcert` holds. A certificate that signed itself is its own authority, and both at once is more than rustls
    /// takes: one that is named there is trusted as it is.
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(proof: Proof, params: &TlsParams, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let mut verifier = Self { proof, roots: RootCertStore::empty(), named: Vec::new(), provider };
        match params.sslrootcert.as_deref() {
            _ if proof == Proof::None => {}
            None | Some("system") => {
                verifier.roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if verifier.roots.is_empty() {
                    return Err(TlsError::NoSystemRoots);
                }
            }
            Some(file) => {
                let path = Path::new(file);
                verifier.named = certificates("sslrootcert", path)?;
                for root in &verifier.named {
                    verifier.roots.add(root.clone()).map_err(|error| TlsError::File {
                        parameter: "sslrootcert",
                        path: path.to_owned(),
                        source: error.into(),
                    })?;
                }
            }
        }
        Ok(verifier)
    }

    /// Whether nothing is to be proven by a certificate that is too old a form (X.509 v1, which `openssl x509 -req` makes) to be
    /// read. A signature by it would prove nothing either.
    fn is_beyond_reading(&self, certificate: &CertificateDer<'_>) -> bool {
        self.proof == Proof::None && ParsedCertificate::try_from(certificate).is_err()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.proof == Proof::None {
            return Ok(ServerCertVerified::assertion());
        }
        let parsed = ParsedCertificate::try_from(certificate)?;
        if !self.named.contains(certificate) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        }
        if self.proof == Proof::Name {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.is_beyond_reading(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.is_beyond_reading(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
