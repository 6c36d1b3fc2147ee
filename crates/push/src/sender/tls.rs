use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// Why connections can't be secured as the configuration asks.
#[derive(Debug, Error)]
pub enum TlsSetupError {
    /// The file of authorities can't be read.
    #[error("cannot read {} as a PEM file of authorities", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file of authorities holds none.
    #[error("{} holds no certificate in PEM form", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The library does not take the set of ciphers.
    #[error("cannot set up TLS")]
    Setup(#[source] rustls::Error),
}

/// Trusts the system's authorities and those of a file, and asks for HTTP/1.1. Answers how many authorities there are.
pub(super) fn client_config(extra: Option<&Path>) -> Result<(Arc<ClientConfig>, usize), TlsSetupError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra {
        add_file(&mut roots, path)?;
    }
    let count = roots.len();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsSetupError::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Arc::new(config), count))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TlsSetupError> {
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| TlsSetupError::File { path: path.to_owned(), source };
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.into()))? {
        let certificate = certificate.map_err(|error| failed(error.into()))?;
        roots.add(certificate).map_err(|error| failed(error.into()))?;
    }
    if roots.len() == before { Err(TlsSetupError::Empty { path: path.to_owned() }) } else { Ok(()) }
}
