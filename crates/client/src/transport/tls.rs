//! TLS as the configuration asks for it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::{Identity, TransportConfig, Verification};
use crate::error::{Cause, ClientError};

/// The protocols that are offered are the connector's business.
pub(super) fn client_config(config: &TransportConfig) -> Result<ClientConfig, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| setup("set up TLS".to_owned(), error))?;
    let builder = match config.verification {
        Verification::Full => builder.with_root_certificates(roots(config.extra_roots.as_deref())?),
        Verification::Off => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified { provider })),
    };
    match &config.identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = read_identity(identity)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                setup(format!("use the client certificate {}", identity.certificates.display()), error)
            })
        }
    }
}

fn setup(action: String, source: impl Into<Cause>) -> ClientError {
    ClientError::Setup { action, source: source.into() }
}

fn roots(extra: Option<&Path>) -> Result<Arc<RootCertStore>, ClientError> {
    let Some(path) = extra else { return Ok(of_the_system()) };
    let mut roots = RootCertStore::clone(&of_the_system());
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| setup(format!("trust {}", path.display()), error))?;
    }
    Ok(Arc::new(roots))
}

/// The system's authorities, read once in a process: that costs far more than the rest of a transport.
fn of_the_system() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    ROOTS.get_or_init(read).clone()
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let action = || format!("read {} as a PEM file of certificates", path.display());
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| setup(action(), error))?.collect();
    match found {
        Ok(found) if found.is_empty() => Err(setup(action(), "it holds none")),
        Ok(found) => Ok(found),
        Err(error) => Err(setup(action(), error)),
    }
}

fn read_identity(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ClientError> {
    let key = PrivateKeyDer::from_pem_file(&identity.key)
        .map_err(|error| setup(format!("read {} as a private key", identity.key.display()), error))?;
    Ok((certificates(&identity.certificates)?, key))
}

/// Takes any certificate. Signatures of the handshake are checked, as TLS would not work otherwise.
#[derive(Debug)]
struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
