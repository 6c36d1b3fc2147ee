//! What these tests ask again and again.

use std::time::Duration;

use longhaul_pgtest::Database;
use longhaul_tests::receiver::SIGNING;
use longhaul_tests::task::{id_of, say_and_leave};
use longhaul_tests::{Client, Launch, Operation, Server, Store};
use serde_json::Value;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Attempts that are over soon, and are made again soon.
pub const IMPATIENT: &str = "\
[push]
timeout = \"2s\"
delay_min = \"50ms\"
delay_max = \"100ms\"
";

/// A server on SQLite, that may send to this machine.
pub fn on_sqlite(config: &str) -> (Launch, Option<Database>) {
    (pushing(Launch::sqlite(config)), None)
}

/// The same on a PostgreSQL database of its own.
pub fn on_postgres(config: &str) -> (Launch, Option<Database>) {
    let database = Database::fresh().unwrap();
    let store = Store::Postgres(database.url().to_owned());
    (pushing(Launch { config: config.to_owned(), ..Launch::new(store) }), Some(database))
}

/// What may send to this machine, with keys.
pub fn pushing(launch: Launch) -> Launch {
    let env = [
        ("LONGHAUL_PUSH_ALLOW", "127.0.0.0/8"),
        ("LONGHAUL_PUSH_ALLOW_HTTP", "true"),
        ("LONGHAUL_PUSH_SIGNING_SECRET", SIGNING),
        ("LONGHAUL_PUSH_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
    ];
    Launch { env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(), ..launch }
}

/// Starts it. The database is dropped after the server.
pub async fn start((launch, database): (Launch, Option<Database>)) -> (Server, Option<Database>) {
    (Server::launch(launch).await, database)
}

/// Sends a message with a config, and answers with the id of its task at once.
pub async fn send(client: &mut Client, text: &str, config: Value) -> String {
    let mut params = say_and_leave(text);
    params["configuration"]["taskPushNotificationConfig"] = config;
    id_of(&client.ask(Operation::SendMessage, params).await)
}
