//! What `sslmode` and its certificates do, against servers that ask for them.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use longhaul_pgtest::{Cluster, Options};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use super::*;

/// Of X.509 version 1, as `openssl x509 -req` makes without extensions, until the year 2126; rcgen makes none.
const OLD_CERTIFICATE: &str = include_str!("tests/version_1.pem");
const OLD_KEY: &str = include_str!("tests/version_1.key");

/// Who may come: the first line that fits decides.
const ACCESS: &str = "\
host all postgres 127.0.0.1/32 trust
hostssl all secured 127.0.0.1/32 trust
hostnossl all plain 127.0.0.1/32 trust
hostssl all certified 127.0.0.1/32 cert
hostssl all password 127.0.0.1/32 scram-sha-256
";

const ROLES: &str = "CREATE ROLE secured LOGIN; CREATE ROLE plain LOGIN; CREATE ROLE certified LOGIN;
    CREATE ROLE password LOGIN PASSWORD 'secret'";

/// A server with certificates, and a folder with those that its clients need.
struct Secured {
    cluster: Cluster,
    folder: PathBuf,
}

impl Drop for Secured {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str, names: &[&str]) -> Authority {
    let mut params = params(name, names);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn params(name: &str, names: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Secured {
    /// One whose certificate is for `db.example` and 127.0.0.1, by an authority of its own.
    fn start() -> Self {
        let cluster = Cluster::start(Options::default()).unwrap();
        let folder = env::temp_dir().join(format!("longhaul-tls-{:016x}", rand::random::<u64>()));
        fs::create_dir(&folder).unwrap();
        let secured = Self { cluster, folder };
        let ours = authority("ours", &[]);
        let (key, client_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let server = params("server", &["db.example", "127.0.0.1"]).signed_by(&key, &ours).unwrap();
        let client = params("certified", &[]).signed_by(&client_key, &ours).unwrap();
        secured.keep("ours.pem", &ours.as_ref().pem());
        secured.keep("other.pem", &authority("other", &[]).as_ref().pem());
        secured.keep("client.pem", &client.pem());
        secured.keep("client.key", &client_key.serialize_pem());
        secured.cluster.execute("postgres", ROLES).unwrap();
        secured.write("pg_hba.conf", ACCESS);
        secured.write("authority.crt", &ours.as_ref().pem());
        secured.cluster.execute("postgres", "ALTER SYSTEM SET ssl_ca_file = 'authority.crt'").unwrap();
        secured.show("server", &server.pem(), &key.serialize_pem());
        secured
    }

    fn keep(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    /// Writes a file in the server's data.
    fn write(&self, name: &str, text: &str) {
        let copy = format!(
            "COPY (SELECT regexp_split_to_table(trim($${text}$$), '\\n')) TO PROGRAM 'umask 077; cat > {name}.new; mv {name}.new {name}'"
        );
        self.cluster.execute("postgres", &copy).unwrap();
    }

    /// Has the server show another certificate, and waits until it does.
    fn show(&self, name: &str, certificate: &str, key: &str) {
        self.write(&format!("{name}.crt"), certificate);
        self.write(&format!("{name}.key"), key);
        for setting in ["ssl_cert_file = '{name}.crt'", "ssl_key_file = '{name}.key'", "ssl = on"] {
            let setting = format!("ALTER SYSTEM SET {}", setting.replace("{name}", name));
            self.cluster.execute("postgres", &setting).unwrap();
        }
        self.cluster.execute("postgres", "SELECT pg_reload_conf()").unwrap();
        let shown =
            format!("SELECT 1 WHERE current_setting('ssl_cert_file') = '{name}.crt' AND current_setting('ssl') = 'on'");
        let mut looks = 0..100_000;
        while self.cluster.query("postgres", &shown).unwrap().is_empty() {
            assert!(looks.next().is_some(), "{}", self.cluster.log_tail());
        }
    }

    /// Connects, and answers whether by TLS, or what was said against it.
    async fn connect(&self, role: &str, host: &str, params: &str) -> Result<bool, String> {
        let params = params.replace("DIR", self.folder.to_str().unwrap());
        let port = self.cluster.port();
        let url = format!("postgres://{role}@{host}:{port}/postgres?hostaddr=127.0.0.1{params}");
        let config = PostgresConfig { url, connect_timeout: Duration::from_secs(20), ..PostgresConfig::default() };
        let connector = Connector::new(&config).map_err(|error| chain(&error))?;
        let client = connector.connect(&TaskTracker::new(), |_| {}).await.map_err(|fault| chain(&fault))?;
        let row = client.query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).await;
        Ok(row.map_err(|error| chain(&error))?.get(0))
    }

    async fn check(&self, cases: &[(&str, &str, &str, Result<bool, &str>)]) {
        for (role, host, params, expected) in cases {
            let outcome = self.connect(role, host, params).await;
            let fits = match (&outcome, expected) {
                (Ok(outcome), Ok(expected)) => outcome == expected,
                (Err(said), Err(expected)) => said.contains(expected),
                _ => false,
            };
            assert!(fits, "{role} {host} {params}: {outcome:?}, not {expected:?}");
        }
    }
}

fn chain(error: &dyn StdError) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

const ROOT: &str = "&sslrootcert=DIR/ours.pem";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[rustfmt::skip]
async fn a_server_proves_as_much_as_sslmode_asks() {
    let full = format!("&sslmode=verify-full{ROOT}");
    let (ca, require) = (format!("&sslmode=verify-ca{ROOT}"), format!("&sslmode=require{ROOT}"));
    Secured::start().check(&[
        ("secured", "db.example",   "",                       Ok(true)),
        ("secured", "db.example",   "&sslmode=prefer",        Ok(true)),
        ("secured", "db.example",   "&sslmode=require",       Ok(true)),
        ("secured", "else.example", "&sslmode=require",       Ok(true)),
        ("secured", "db.example",   "&sslmode=disable",       Err("no encryption (sslmode is disable")),
        ("secured", "db.example",   &full,                    Ok(true)),
        ("secured", "127.0.0.1",    &full,                    Ok(true)),
        ("secured", "else.example", &full,                    Err("by a name that is among its subject alternative names")),
        ("secured", "127.0.0.2",    &full,                    Err("by a name that is among its subject alternative names")),
        ("secured", "else.example", &ca,                      Ok(true)),
        // An authority that is named is asked, whatever the mode.
        ("secured", "else.example", &require,                 Ok(true)),
        ("secured", "db.example",   "&sslmode=require&sslrootcert=DIR/other.pem",     Err("sslrootcert=FILE")),
        ("secured", "db.example",   "&sslmode=verify-ca&sslrootcert=DIR/other.pem",   Err("sslrootcert=FILE")),
        ("secured", "db.example",   "&sslmode=verify-full&sslrootcert=DIR/other.pem", Err("sslrootcert=FILE")),
        ("secured", "db.example",   "&sslmode=verify-full",                           Err("sslrootcert")),
        // What is preferred is not asked for.
        ("plain",   "db.example",   "",                       Ok(false)),
        ("plain",   "db.example",   "&sslmode=disable",       Ok(false)),
        ("plain",   "db.example",   "&sslmode=require",       Err("no pg_hba.conf entry")),
        ("postgres", "db.example",  "&sslrootcert=DIR/other.pem", Ok(false)),
    ]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_proves_itself_by_a_certificate_or_a_password_bound_to_the_channel() {
    let client = format!("&sslmode=verify-full{ROOT}&sslcert=DIR/client.pem&sslkey=DIR/client.key");
    let bound = format!("&sslmode=verify-full{ROOT}&channel_binding=require");
    let (certified, password) = ("certified", "password:secret");
    Secured::start()
        .check(&[
            (certified, "db.example", &client, Ok(true)),
            (certified, "db.example", "&sslmode=require", Err("name one by sslcert=FILE and sslkey=FILE")),
            (password, "db.example", &bound, Ok(true)),
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_that_servers_make_for_themselves_will_do() {
    let secured = Secured::start();
    // What `openssl req -x509` makes is an authority too.
    let own = authority("own", &["db.example"]);
    secured.keep("own.pem", &own.as_ref().pem());
    secured.show("own", &own.as_ref().pem(), &own.key().serialize_pem());
    let full = "&sslmode=verify-full&sslrootcert=DIR/own.pem";
    secured
        .check(&[
            ("secured", "db.example", "&sslmode=require", Ok(true)),
            ("secured", "db.example", full, Ok(true)),
            ("secured", "else.example", full, Err("subject alternative names")),
            ("secured", "db.example", &format!("&sslmode=verify-full{ROOT}"), Err("the server and TLS")),
        ])
        .await;
    secured.show("old", OLD_CERTIFICATE, OLD_KEY);
    secured
        .check(&[
            ("secured", "db.example", "&sslmode=require", Ok(true)),
            ("secured", "db.example", &format!("&sslmode=verify-ca{ROOT}"), Err("the server and TLS")),
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_refused_where_it_is_required() {
    let fresh = longhaul_pgtest::Database::fresh().unwrap();
    let connect = async |params| {
        let config = PostgresConfig { url: format!("{}{params}", fresh.url()), ..PostgresConfig::default() };
        Connector::new(&config).unwrap().connect(&TaskTracker::new(), |_| {}).await.map(drop).map_err(|e| chain(&e))
    };
    assert_eq!(connect("").await, Ok(()));
    assert_eq!(connect("?sslmode=prefer").await, Ok(()));
    let refused = connect("?sslmode=require").await.unwrap_err();
    assert!(refused.contains("turn on ssl in the server, or set sslmode=prefer"), "{refused}");
}

#[test]
fn an_address_that_cannot_be_meant_is_refused_with_the_parameters_name() {
    #[rustfmt::skip]
    let cases = [
        ("sslmode=allow",                                "sslmode is \"allow\": it must be disable, prefer, require"),
        ("sslrootcert=system&sslmode=require",           "needs sslmode=verify-full"),
        ("sslmode=verify-ca&sslrootcert=/no/such.pem",   "sslrootcert=/no/such.pem cannot be read"),
        ("sslmode=require&sslcert=/c.pem",               "sslkey is missing"),
        ("sslmode=require&sslkey=/k.pem",                "sslcert is missing"),
        ("sslcert=/no/such.pem&sslkey=/k.pem",           "sslcert=/no/such.pem cannot be read"),
        ("sslmode=verify-full&sslrootcert=/dev/null",    "sslrootcert=/dev/null holds no certificate"),
        ("sslfoo=1",                                     "sslfoo"),
        ("port=x",                                       "port"),
    ];
    for (params, expected) in cases {
        let url = format!("postgres://user:secret@localhost/db?{params}");
        let error = Connector::new(&PostgresConfig { url, ..PostgresConfig::default() }).unwrap_err();
        let said = chain(&error);
        assert!(said.contains(expected) && !said.contains("secret"), "{params}: {said}");
    }
}

#[test]
fn a_place_has_hosts_and_no_secrets() {
    #[rustfmt::skip]
    let cases = [
        ("postgres://u:secret@a:1,b:2/d?sslmode=require", "d at a:1,b:2"),
        ("postgres:///d",                                 "d at localhost:5432"),
        ("postgres:///d?hostaddr=10.0.0.1&port=7",        "d at 10.0.0.1:7"),
        ("host=/run/postgresql user=u password=secret",   "u at /run/postgresql:5432"),
    ];
    for (url, place) in cases {
        let config = PostgresConfig { url: url.to_owned(), ..PostgresConfig::default() };
        assert_eq!(Connector::new(&config).unwrap().place(), place, "{url}");
    }
}
