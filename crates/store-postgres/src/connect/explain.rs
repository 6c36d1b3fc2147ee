//! What a connection that was not made is worth saying about it.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, Error as RustlsError};
use tokio_postgres::error::SqlState;

use super::tls::Mode;

/// Whether another attempt without TLS may do better: what `prefer` is for.
pub(super) fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    refuses_access(error) || rustls_error(error).is_some()
}

/// Says what is wrong and what can be done about it, if that has to do with how the connection is secured.
pub(super) fn explained(error: &tokio_postgres::Error, mode: Mode) -> Option<String> {
    if let Some(cause) = rustls_error(error) {
        return Some(format!("the server and TLS do not go together: {cause}{}", next_step(cause)));
    }
    let cause = error.source()?.to_string();
    if mode == Mode::Disable && refuses_access(error) {
        return Some(format!(
            "{cause} (sslmode is disable: where the server asks for encryption, set sslmode=require)"
        ));
    }
    if refuses_access(error) && cause.contains("client certificate") {
        return Some(format!("{cause}: name one by sslcert=FILE and sslkey=FILE"));
    }
    // The driver says no more of it.
    (cause == "server does not support TLS")
        .then(|| format!("{cause}: turn on ssl in the server, or set sslmode=prefer to do without"))
}

/// Whether the server's list of who may come from where has no place for this one.
fn refuses_access(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

fn next_step(cause: &RustlsError) -> &'static str {
    match cause {
        RustlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => ": connect by a name that is among its subject alternative names, or set sslmode=verify-ca",
        RustlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
            ": name the certificate of its authority by sslrootcert=FILE"
        }
        RustlsError::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            ": the server needs a new one"
        }
        RustlsError::AlertReceived(AlertDescription::CertificateRequired | AlertDescription::UnknownCA) => {
            ": the server asks for a certificate of the client: name one by sslcert=FILE and sslkey=FILE"
        }
        _ => "",
    }
}

/// What rustls had to say, where that is the cause.
fn rustls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a RustlsError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error leaves out itself from the chain of its sources.
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = within.and_then(|inner| inner.downcast_ref()) {
            return Some(found);
        }
        cause = error.source();
    }
    None
}
