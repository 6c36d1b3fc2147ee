//! Cards that a client has to refuse, and where a card may point that a client must not go.

use serde_json::{Value, json};

use super::agent::card;
use super::{Asked, Script, Step, floods};

/// URLs that lead inside, each in a form that has fooled a check before. A client does not connect to any of them on a
/// card's word.
#[rustfmt::skip]
pub const INSIDE: &[&str] = &[
    "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00:ec2::254]/latest/meta-data/",
    "http://127.0.0.1:1/", "http://127.1:1/", "http://2130706433:1/", "http://0x7f000001:1/", "http://0177.0.0.1:1/",
    "http://localhost:1/", "http://localhost.:1/", "http://LOCALHOST:1/", "http://[::1]:1/",
    "http://[::ffff:127.0.0.1]:1/", "http://[::ffff:169.254.169.254]/", "http://[64:ff9b::7f00:1]:1/",
    "http://0.0.0.0:1/", "http://0:1/", "http://[::]:1/", "http://10.0.0.1/", "http://172.16.0.1/",
    "http://192.168.0.1/", "http://100.64.0.1/", "http://[fd00::1]/", "http://agent.example.com@127.0.0.1:1/",
];

/// URLs that no A2A interface has.
#[rustfmt::skip]
pub const NOT_HTTP: &[&str] = &[
    "file:///etc/passwd", "ftp://127.0.0.1/a", "gopher://127.0.0.1:1/_x", "javascript:alert(1)", "data:,x", "/rpc",
    "rpc", "", "http://", "http:///rpc", "http://a b/", "http://127.0.0.1:99999/",
];

/// A good card with one interface, JSON-RPC at this URL.
#[must_use]
pub fn card_at(url: &str) -> Value {
    let mut card = card("");
    card["supportedInterfaces"] = json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    card
}

/// What is wrong with a card. Each is a clear error at the client, in bounded time and memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CardFault {
    /// There is none.
    NotFound,
    /// A page for people.
    Html,
    /// No JSON.
    NotJson,
    /// JSON, and no object.
    NotAnObject,
    /// It ends within.
    Half,
    /// 1 GB.
    Huge,
    /// 1 GB, without a length.
    HugeChunked,
    /// 10,000 arrays in each other, in a member that nobody knows.
    DeepNesting,
    /// A byte that no UTF-8 has.
    InvalidUtf8,
    /// No interfaces, in none of the forms.
    NoInterfaces,
    /// Only a binding that nobody knows.
    UnknownBinding,
    /// Only a version that nobody speaks.
    UnknownVersion,
    /// An interface is a number.
    WrongTypes,
    /// A redirect to itself.
    RedirectLoop,
    /// A redirect to the cloud's metadata service.
    RedirectInside,
    /// It never comes.
    NeverComes,
    /// 401, and how to sign in.
    Unauthorized,
}

impl CardFault {
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: &[Self] = &[
        Self::NotFound, Self::Html, Self::NotJson, Self::NotAnObject, Self::Half, Self::Huge, Self::HugeChunked,
        Self::DeepNesting, Self::InvalidUtf8, Self::NoInterfaces, Self::UnknownBinding, Self::UnknownVersion,
        Self::WrongTypes, Self::RedirectLoop, Self::RedirectInside, Self::NeverComes, Self::Unauthorized,
    ];

    /// The answer to a request for the card.
    #[must_use]
    pub fn script(self, asked: &Asked) -> Script {
        let base = asked.base();
        let good = card(&base);
        let ok = |body: &[u8]| Script::whole(200, &[("Content-Type", "application/json")], body);
        let redirect = |to: &str| Script::whole(302, &[("Location", to)], "");
        match self {
            Self::NotFound => Script::whole(404, &[("Content-Type", "text/plain")], "Not Found"),
            Self::Html => Script::whole(200, &[("Content-Type", "text/html")], "<html><body>Welcome</body></html>"),
            Self::NotJson => ok(b"All is well!"),
            Self::NotAnObject => ok(format!("[{good}]").as_bytes()),
            Self::Half => {
                let text = good.to_string();
                ok(&text.as_bytes()[..text.len() / 2])
            }
            Self::Huge => floods::huge_json(),
            Self::HugeChunked => floods::huge_json_in_chunks(),
            Self::DeepNesting => {
                ok(good.to_string().replacen('{', &format!(r#"{{"x":{},"#, floods::nested()), 1).as_bytes())
            }
            Self::InvalidUtf8 => {
                let text = good.to_string();
                let (before, after) = text.split_once("Hostile").unwrap_or_default();
                ok(&[before.as_bytes(), &[0xff], after.as_bytes()].concat())
            }
            Self::NoInterfaces | Self::UnknownBinding | Self::UnknownVersion | Self::WrongTypes => {
                Script::json(200, &self.interfaces(good, &base))
            }
            Self::RedirectLoop => redirect(&asked.target),
            Self::RedirectInside => redirect("http://169.254.169.254/latest/meta-data/"),
            Self::NeverComes => Script::new().then(Step::Stall),
            Self::Unauthorized => Script::whole(401, &[("WWW-Authenticate", r#"Bearer realm="cards""#)], ""),
        }
    }

    fn interfaces(self, mut card: Value, base: &str) -> Value {
        card["supportedInterfaces"] = match self {
            Self::UnknownBinding => {
                json!([{"url": base, "protocolBinding": "CARRIER-PIGEON", "protocolVersion": "1.0"}])
            }
            Self::UnknownVersion => json!([{"url": base, "protocolBinding": "JSONRPC", "protocolVersion": "7.3"}]),
            Self::WrongTypes => json!([17]),
            _ => json!([]),
        };
        card
    }
}
