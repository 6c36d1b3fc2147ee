use std::path::Path;

use super::file::all_keys;
use super::*;

fn read(text: &str) -> Result<Settings, ConfigError> {
    Settings::layered(Some(&Source::parse("longhaul.toml", text)?), &Layer::default(), &Layer::default())
}

fn environment(variables: &[(&str, &str)]) -> Layer {
    Layer::of_environment(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn flags(given: &[(&'static str, &str)]) -> Layer {
    Layer::of(|flag, _| given.iter().find(|(known, _)| *known == flag).map(|(_, value)| (flag, (*value).to_owned())))
}

const WHOLE: &str = r#"
[server]
listen = "0.0.0.0:80"
versions = ["0.3"]
drafts_path = "/drafts"
public_url = "https://agent.example"
prefix = "/agents/one"
keep_alive = "5s"
body_bytes_max = 1048576
streams_max = 7
header_timeout = "3s"
drain_timeout = "0s"
card_max_age = "1h"
metrics = true
[store]
kind = "memory"
data = "/var/lib/longhaul"
synchronous = "normal"
[store.postgres]
schema = "agents"
writers = 4
readers = 16
connect_timeout = "3s"
statement_timeout = "1m"
notify = false
migrate = false
password_file = "/run/secrets/password"
[agent]
exec_jsonl = "python3 agent.py"
working_dir = "/srv"
env_pass = ["PATH"]
worker_name = "ada-1"
workers_max = 3
attempts_max = 1
backoff_min = "2s"
backoff_max = "90s"
lease_duration = "300ms"
turn_duration_max = "2h"
inactivity_max = "5m"
backlog_max = 9
checkpoint_bytes_max = 4096
cancel_grace = "1500ms"
accept_timeout = "1s"
dedup = "always"
dedup_window = "48h"
[push]
enabled = false
allow = ["127.0.0.0/8", "hooks.internal", "fd00::/8"]
allow_http = true
key_file = "/run/secrets/push.key"
signing_secret_file = "/run/secrets/signing"
timeout = "3s"
give_up_after = "2h"
delay_min = "100ms"
delay_max = "1m"
configs_max = 3
in_flight_max = 9
host_max = 2
answer_bytes_max = 1024
roots_file = "/etc/ca.pem"
[card]
name = "Ada"
description = "Computes"
version = "2.0"
documentation_url = "https://agent.example/docs"
icon_url = "https://agent.example/icon"
input_modes = ["text/*"]
output_modes = ["*/*"]
streaming = false
push_notifications = false
grpc = false
provider = { organization = "Engines", url = "https://engines.example" }
[[card.skills]]
id = "add"
name = "Add"
description = "Adds"
tags = ["sum"]
examples = ["1 + 1"]
input_modes = ["image/png"]
output_modes = ["text/plain"]
[[card.extensions]]
uri = "urn:example:x"
description = "X"
required = true
params = { depth = 3, names = ["a"], inner = { flag = false } }
[retention]
completed = "1h"
failed = "never"
canceled = "0s"
rejected = "30d"
stale_after = "12h"
compact_after = "5m"
housekeeping_interval = "10s"
[log]
level = "warn,longhaul_engine=debug"
format = "json"
"#;

#[test]
fn later_layers_win() {
    let file = Source::parse(
        "longhaul.toml",
        "server.listen = '127.0.0.1:1'\nstore.data = 'from-file'\nlog.level = 'warn'\nagent.exec = 'cat'",
    )
    .expect("it is read");
    let environment =
        environment(&[("LONGHAUL_LISTEN", "127.0.0.1:2"), ("LONGHAUL_DATA", "from-env"), ("LONGHAUL_STORE", "")]);
    let flags = flags(&[("--listen", "127.0.0.1:3"), ("--exec-jsonl", "agent")]);
    let settings = Settings::layered(Some(&file), &environment, &flags).expect("all is well");
    assert_eq!(settings.server.listen, "127.0.0.1:3");
    assert_eq!(settings.store.data, Path::new("from-env"));
    assert_eq!(settings.store.kind, StoreKind::Sqlite);
    assert_eq!(settings.log.level, "warn");
    assert_eq!(settings.agent.command, Some(AgentCommand::ExecJsonl("agent".to_owned())));
}

#[test]
fn an_empty_file_gives_the_defaults() {
    assert_eq!(read("").expect("it is read"), Settings::default());
}

#[test]
fn what_is_printed_reads_the_same() {
    let folder = "\"memory\"\ndata = \"/var/lib/longhaul\"\nsynchronous = \"normal\"";
    let database = WHOLE.replace(folder, "\"postgres://ada@db/tasks?x=y\"");
    for text in ["", WHOLE, &database] {
        let settings = read(text).expect("it is read");
        assert_eq!(read(&settings.to_toml()).expect("it is read"), settings);
    }
    assert_ne!(read(WHOLE).expect("it is read"), Settings::default());
}

#[test]
fn values_of_variables_are_not_printed() {
    let settings = read("[agent.env]\nTOKEN = 'hunter2'").expect("it is read");
    assert_eq!(settings.agent.env["TOKEN"], "hunter2");
    assert!(settings.to_toml().contains("TOKEN") && !settings.to_toml().contains("hunter2"));
}

#[test]
fn the_password_of_a_database_is_not_printed() {
    let settings = read("store.kind = 'postgres://ada:hunter2@db/tasks'").expect("it is read");
    let printed = settings.to_toml();
    assert!(printed.contains("kind = \"postgres://ada:***@db/tasks\"") && !printed.contains("hunter2"), "{printed}");
    assert!(!format!("{settings:?}").contains("hunter2"));
    assert!(read(&printed).expect_err("it is no password").hint.contains("write the password"));
}

#[test]
fn settings_of_a_folder_are_refused_beside_a_database_wherever_they_are_said() {
    let (url, none) = ("postgres://db/tasks", Layer::default());
    let file = |text| Source::parse("longhaul.toml", text).expect("it is read");
    let told = |file: &Source, environment: &Layer, flags: &Layer| {
        let error = Settings::layered(Some(file), environment, flags).expect_err("they do not go together");
        assert!(error.hint.starts_with("leave it out"));
        error.to_string()
    };
    let wrong = "names the folder of a SQLite file, but tasks are kept in PostgreSQL";
    let (database, data) = (file("store.kind = 'postgres://db/tasks'"), file("store.data = 'x'"));
    assert_eq!(told(&database, &none, &flags(&[("--data", "x")])), format!("--data: {wrong}"));
    assert_eq!(told(&database, &environment(&[("LONGHAUL_DATA", "x")]), &none), format!("LONGHAUL_DATA: {wrong}"));
    assert_eq!(told(&data, &none, &flags(&[("--store", url)])), format!("longhaul.toml: store.data: {wrong}"));
    let (normal, by_variable) = (file("store.synchronous = 'normal'"), environment(&[("LONGHAUL_STORE", url)]));
    assert!(told(&normal, &by_variable, &none).starts_with("store.synchronous: is \"normal\""));
    // What says the same as the default means nothing by it.
    let full = file("store.synchronous = 'full'");
    assert!(Settings::layered(Some(&full), &none, &flags(&[("--store", url)])).is_ok());
    // The highest layer says which store it is.
    let folder = Settings::layered(Some(&database), &none, &flags(&[("--store", "sqlite"), ("--data", "x")]));
    assert_eq!(folder.expect("it is one").store.kind, StoreKind::Sqlite);
}

#[test]
fn the_environment_says_where_pushes_may_go_and_holds_their_secrets() {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let signing = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let environment = environment(&[
        ("LONGHAUL_PUSH_ALLOW", "127.0.0.0/8, hooks.internal"),
        ("LONGHAUL_PUSH_ALLOW_HTTP", "true"),
        ("LONGHAUL_PUSH_KEY", key),
        ("LONGHAUL_PUSH_SIGNING_SECRET", signing),
    ]);
    let file =
        Source::parse("longhaul.toml", "push.key_file = 'elsewhere'\npush.allow = ['10.0.0.0/8']").expect("it is read");
    let settings = Settings::layered(Some(&file), &environment, &Layer::default()).expect("all is well");
    let push = &settings.push;
    assert_eq!(push.allow.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.0/8", "hooks.internal"]);
    assert!(push.allow_http);
    let keys = push.key.as_ref().expect("there is one").keys().expect("it is one");
    assert_eq!(keys.current_id(), key.parse::<longhaul_push::seal::Key>().expect("it is one").id());
    assert_eq!(push.signing_secret.as_ref().expect("there is one").signing_secrets().expect("it is one").len(), 1);
    for shown in [settings.to_toml(), format!("{settings:?}"), format!("{environment:?}")] {
        assert!(!shown.contains(key) && !shown.contains(signing) && !shown.contains("whsec_"), "{shown}");
    }
    // The file is not what holds, so it is not printed as if it did.
    assert!(!settings.to_toml().contains("key_file"));
}

#[test]
fn several_keys_and_secrets_are_taken_while_they_are_replaced() {
    let (new, old) = ("hGVyZSBhcmUgdGhpcnR5IHR3byBieXRlcyBvZiBrZXk=", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    let secrets = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let both = format!("{new},{old}");
    let settings = |key: &str, signing: &str| {
        let said = environment(&[("LONGHAUL_PUSH_KEY", key), ("LONGHAUL_PUSH_SIGNING_SECRET", signing)]);
        Settings::layered(None, &said, &Layer::default()).expect("it is read").push
    };
    let push = settings(&both, secrets);
    let keys = push.key.expect("there is one").keys().expect("they are keys");
    let before = settings(old, secrets).key.expect("there is one").keys().expect("it is one");
    assert!(keys.knows(&before.fingerprint()) && keys.current_id() != before.current_id());
    assert_eq!(push.signing_secret.expect("there are").signing_secrets().expect("they are").len(), 2);

    for place in ["LONGHAUL_PUSH_KEY", "LONGHAUL_PUSH_SIGNING_SECRET"] {
        let said = environment(&[(place, "hunter2")]);
        let error = Settings::layered(None, &said, &Layer::default()).expect_err("it is none");
        assert!(error.place == place && !format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(error.hint.contains("base64"), "{error:?}");
    }
}

#[test]
fn a_secret_beside_a_file_of_them_is_refused_in_one_layer() {
    let both = environment(&[("LONGHAUL_PUSH_KEY", "hunter2"), ("LONGHAUL_PUSH_KEY_FILE", "x")]);
    let error = Settings::layered(None, &both, &Layer::default()).expect_err("one is enough");
    assert_eq!(error.to_string(), "LONGHAUL_PUSH_KEY_FILE: is set although LONGHAUL_PUSH_KEY is");
    let flag = environment(&[("LONGHAUL_PUSH_ALLOW_HTTP", "yes")]);
    let error = Settings::layered(None, &flag, &Layer::default()).expect_err("it is no flag");
    assert!(error.to_string().starts_with("LONGHAUL_PUSH_ALLOW_HTTP: is \"yes\", and must be one of true, false"));
    let layered = Settings::layered(
        None,
        &Layer::default(),
        &flags(&[("--push-allow", "localhost"), ("--push-allow-http", "true")]),
    );
    let push = layered.expect("it is read").push;
    assert!(push.allow_http && push.allow.len() == 1);
}

#[test]
fn the_card_says_that_pushes_are_sent_when_they_are_and_nobody_says_otherwise() {
    let says = |settings: &Settings, push| {
        settings.card.to_card(ServedAgent::Demo, push).capabilities.expect("it has them").push_notifications
    };
    let (default, silent) = (Settings::default(), read("card.push_notifications = false").expect("it is read"));
    assert_eq!((says(&default, PushOffer::Sent), says(&default, PushOffer::Off)), (Some(true), Some(false)));
    assert_eq!((says(&silent, PushOffer::Sent), says(&silent, PushOffer::Off)), (Some(false), Some(false)));
}

#[test]
fn a_worker_is_named_after_its_machine_unless_it_is_told_another_name() {
    let config = read("agent.worker_name = 'ada-1'").expect("it is read").engine(ServedAgent::Demo);
    assert_eq!(config.worker_name, "ada-1");
    let name = Settings::default().engine(ServedAgent::Demo).worker_name;
    assert!(name.is_empty() || super::layer::check_worker_name(&name).is_ok(), "{name}");
    let layered = Settings::layered(None, &environment(&[("LONGHAUL_WORKER_NAME", "ada-2")]), &Layer::default());
    assert_eq!(layered.expect("it is read").agent.worker_name.as_deref(), Some("ada-2"));
}

#[test]
fn unknown_keys_are_refused_and_the_nearest_is_named() {
    #[rustfmt::skip]
    let cases = [
        ("server.lisen = 'x'", "longhaul.toml: there is no key server.lisen", "did you mean server.listen?"),
        ("listen = 'x'", "longhaul.toml: there is no key listen", "did you mean server.listen?"),
        ("[sever]", "longhaul.toml: there is no key sever", "did you mean server?"),
        ("agent.exec-jsonl = 'x'", "longhaul.toml: there is no key agent.exec-jsonl", "did you mean agent.exec_jsonl?"),
        ("server.workers_max = 3", "longhaul.toml: there is no key server.workers_max", "did you mean agent.workers_max?"),
        ("[[card.skills]]\nid='a'\nname='b'\ndescription='c'\ntag=['d']", "longhaul.toml: there is no key card.skills[0].tag", "did you mean card.skills.tags?"),
        ("qqq = 1", "longhaul.toml: there is no key qqq", "docs/config.md lists all keys"),
    ];
    for (text, message, hint) in cases {
        let error = read(text).expect_err(text);
        assert_eq!(error.to_string(), message);
        assert!(error.hint.contains(hint), "{text}: {}", error.hint);
    }
}

#[test]
fn wrong_values_name_key_value_and_what_is_allowed() {
    #[rustfmt::skip]
    let cases = [
        ("server.listen = 4100", "server.listen is 4100, and must be a text"),
        ("server.listen = ':4100'", "server.listen is \":4100\", and must be an address and a port"),
        ("server.public_url = 'agent.example'", "server.public_url is \"agent.example\", and must be http:// or https://"),
        ("server.public_url = 'http://u:p@agent.example'", "must be http:// or https://"),
        ("server.versions = []", "server.versions is [], and must name one of 1.0 and 0.3 or both"),
        ("server.versions = ['1.0', '2.0']", "server.versions is [\"1.0\", \"2.0\"], and must name one of"),
        ("server.drafts_path = '/v1'", "server.drafts_path is \"/v1\", and must be empty, or one name"),
        ("server.drafts_path = '/a/b'", "server.drafts_path is \"/a/b\", and must be empty, or one name"),
        ("server.metrics = 1", "server.metrics is"),
        ("server.prefix = 'x/'", "server.prefix is \"x/\", and must be empty, or a path"),
        ("server.keep_alive = 15", "server.keep_alive is 15, and must be a duration between 1s and 5m"),
        ("server.keep_alive = '2h'", "server.keep_alive is \"2h\", and must be a duration between 1s and 5m"),
        ("server.body_bytes_max = 5", "server.body_bytes_max is 5, and must be a whole number between 1024 and 1073741824"),
        ("agent.attempts_max = -1", "agent.attempts_max is -1, and must be a whole number between 1 and 100"),
        ("agent.attempts_max = '3'", "agent.attempts_max is \"3\", and must be a whole number"),
        ("agent.lease_duration = '200ms'", "agent.lease_duration is \"200ms\", and must be a duration between 300ms and 1h"),
        ("agent.backoff_min = '2m'", "agent.backoff_min is 2m, which is more than agent.backoff_max, 1m"),
        ("agent.inactivity_max = 'never'", "agent.inactivity_max is \"never\", and must be \"off\", or a duration between 1s and 365d"),
        ("agent.backlog_max = 0", "agent.backlog_max is 0, and must be a whole number between 1 and"),
        ("agent.checkpoint_bytes_max = '1M'", "must be a whole number"),
        ("retention.failed = 'off'", "retention.failed is \"off\", and must be \"never\", or a duration between 0s and 3650d"),
        ("retention.stale_after = '1ms'", "retention.stale_after is \"1ms\", and must be \"off\", or a duration between 1s"),
        ("retention.compact_after = '59s'", "retention.compact_after is \"59s\", and must be \"never\", or a duration between 1m and 3650d"),
        ("retention.housekeeping_interval = 60", "retention.housekeeping_interval is 60, and must be a duration between 1s and 24h"),
        ("store.kind = 'sqlit'", "is \"sqlit\", and must be one of sqlite, memory, postgres://"),
        ("store.kind = 'postgres//ada:hunter2@db'", "names no store that is known here, and must be one of"),
        ("store.kind = 'host=db password=hunter2'", "names no store that is known here, and must be one of"),
        ("store.kind = 'postgres://ada:hun/ter2@db'", "is not the address of a database"),
        ("store.postgres.schema = 'pg_x'", "store.postgres.schema is \"pg_x\", and must be the name of a schema"),
        ("store.postgres.writers = 17", "store.postgres.writers is 17, and must be a whole number between 1 and 16"),
        ("store.postgres.readers = 0", "store.postgres.readers is 0, and must be a whole number between 1 and 256"),
        ("store.postgres.connect_timeout = '2m'", "must be a duration between 100ms and 1m"),
        ("store.postgres.statement_timeout = '0s'", "must be a duration between 100ms and 10m"),
        ("store.postgres.notify = 'off'", "store.postgres.notify is \"off\", and must be true or false"),
        ("store.postgres.password_file = ''", "must be the name of a file"),
        ("agent.worker_name = 'a b'", "agent.worker_name is \"a b\", and must be 1 to 64 letters"),
        ("store.synchronous = 'off'", "must be one of full, normal"),
        ("agent.dedup = true", "agent.dedup is true, and must be a text"),
        ("agent.exec = 'a'\nagent.exec_jsonl = 'b'", "must be absent beside agent.exec"),
        ("agent.exec = ' '", "must be a command line"),
        ("push.enabled = 'yes'", "push.enabled is \"yes\", and must be true or false"),
        ("push.allow = '127.0.0.0/8'", "push.allow is \"127.0.0.0/8\", and must be a list of texts"),
        ("push.allow = ['127.0.0.1/8']", "an address in a network"),
        ("push.allow = ['*.internal']", "is no host name, address or network"),
        ("push.key = 'hunter2'", "there is no key push.key"),
        ("push.key_file = ''", "push.key_file is \"\", and must be the name of a file"),
        ("push.timeout = '0s'", "push.timeout is \"0s\", and must be a duration between 100ms and 2m"),
        ("push.give_up_after = '60d'", "must be a duration between 1s and 30d"),
        ("push.delay_min = '20m'", "push.delay_min is 20m, which is more than push.delay_max, 15m"),
        ("push.configs_max = 0", "push.configs_max is 0, and must be a whole number between 1 and 1000"),
        ("card.push_notifications = 1", "card.push_notifications is 1, and must be true or false"),
        ("card.streaming = 'no'", "card.streaming is \"no\", and must be true or false"),
        ("card.input_modes = 'text/plain'", "card.input_modes is \"text/plain\", and must be a list of texts"),
        ("card.input_modes = ['text']", "card.input_modes holds \"text\""),
        ("card.name = ''", "card.name is \"\", and must be not empty"),
        ("card.skills = 1", "card.skills is 1, and must be a list of tables"),
        ("[[card.skills]]\nid = 'a'", "card.skills[0].name is missing"),
        ("[card.provider]\nurl = 'x'", "card.provider.organization is missing"),
        ("log.level = 'loud'", "log.level is \"loud\", and must be error, warn, info"),
        ("server = 1", "server is 1, and must be a table"),
        ("server.listen = ", "is not TOML"),
    ];
    for (text, wanted) in cases {
        let error = read(text).expect_err(text);
        assert!(error.message.contains(wanted), "{text}: {error}");
        assert!(error.place.starts_with("longhaul.toml") && !error.to_string().contains("ter2"), "{text}: {error}");
        assert!(!error.hint.is_empty(), "{text}");
    }
}

#[test]
fn flags_and_variables_are_named_when_they_are_wrong() {
    let told = |layer: Layer| Settings::layered(None, &Layer::default(), &layer).expect_err("it is wrong").to_string();
    assert!(told(flags(&[("--listen", "x")])).starts_with("--listen: is \"x\""));
    assert!(told(environment(&[("LONGHAUL_STORE", "file")])).contains("LONGHAUL_STORE: is \"file\""));
    assert!(
        told(flags(&[("--exec", "a"), ("--exec-jsonl", "b")]))
            .contains("--exec-jsonl: cannot be used together with --exec")
    );
    assert_eq!(
        Settings::layered(None, &environment(&[("RUST_LOG", "no_such_crate")]), &Layer::default())
            .expect("ours alone counts")
            .log
            .level,
        "info"
    );
}

#[test]
fn every_key_is_in_the_reference() {
    let reference = include_str!("../../../../docs/config.md");
    for key in all_keys() {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", &key));
        let tables = [
            "server",
            "store",
            "store.postgres",
            "agent",
            "retention",
            "push",
            "card",
            "log",
            "card.provider",
            "card.skills",
            "card.extensions",
        ];
        let heading = reference.contains(&format!("[{key}]"));
        let row = reference.contains(&format!("| `{name}` |")) && reference.contains(&format!("[{section}]"));
        assert!(if tables.contains(&&*key) { heading } else { row }, "docs/config.md lacks {key}");
    }
}

#[test]
fn a_card_made_of_defaults_lacks_nothing() {
    for served in [ServedAgent::Exec("tr a-z A-Z"), ServedAgent::ExecJsonl("TOKEN=x python3 a.py"), ServedAgent::Demo] {
        let card = CardSettings::default().to_card(served, PushOffer::Off);
        let filled = [
            &card.name,
            &card.description,
            &card.version,
            &card.skills[0].id,
            &card.skills[0].name,
            &card.skills[0].description,
        ];
        assert!(filled.iter().all(|text| !text.is_empty()), "{card:?}");
        assert!(
            !card.default_input_modes.is_empty()
                && !card.default_output_modes.is_empty()
                && !card.skills[0].tags.is_empty()
        );
    }
    assert_eq!(CardSettings::default().to_card(ServedAgent::Exec("/usr/bin/tr a-z A-Z"), PushOffer::Off).name, "tr");
    assert_eq!(
        CardSettings::default().to_card(ServedAgent::ExecJsonl("TOKEN=x python3 a.py"), PushOffer::Off).name,
        "python3"
    );
}

#[test]
fn the_card_says_what_the_file_says() {
    let settings = read(WHOLE).expect("it is read");
    let served = ServedAgent::ExecJsonl("x");
    let card = settings.card.to_card(served, PushOffer::Off);
    assert_eq!((card.name.as_str(), card.version.as_str()), ("Ada", "2.0"));
    let capabilities = card.capabilities.expect("it has them");
    assert_eq!((capabilities.streaming, capabilities.extensions.len()), (Some(false), 4));
    let params = capabilities.extensions[3].params.clone().expect("it has them");
    assert_eq!(
        serde_json::Value::Object(params),
        serde_json::json!({"depth": 3, "names": ["a"], "inner": {"flag": false}})
    );
    let engine = settings.engine(served);
    assert_eq!(engine.input_modes, ["text/*", "image/png"]);
    assert_eq!((engine.workers_max, engine.attempts_max), (3, 1));
    assert_eq!(Settings::default().engine(served).workers_max, 64);
}

#[test]
fn the_engine_is_told_of_leases_and_retention() {
    let seconds = Duration::from_secs;
    let config = read(WHOLE).expect("it is read").engine(ServedAgent::ExecJsonl("x"));
    assert_eq!((config.backoff_min, config.backoff_max), (seconds(2), seconds(90)));
    assert_eq!(config.lease_duration, Duration::from_millis(300));
    assert_eq!((config.turn_duration_max, config.inactivity_max), (seconds(7200), Some(seconds(300))));
    assert_eq!((config.backlog_max, config.checkpoint_bytes_max), (9, 4096));
    assert_eq!((config.stale_after, config.housekeeping_interval), (Some(seconds(12 * 3600)), seconds(10)));
    assert_eq!(config.compact_after, Some(seconds(300)));
    assert_eq!((config.push_configs_max, config.push_in_flight_max, config.push_host_max), (3, 9, 2));
    let kept = [Some(seconds(3600)), None, Some(Duration::ZERO), Some(seconds(30 * 24 * 3600))];
    assert_eq!(config.retention.by_state().map(|(_, kept_for)| kept_for), kept);

    let off = read(
        "agent.inactivity_max = 'off'\nretention.stale_after = 'off'\nretention.rejected = 'never'\nretention.compact_after = 'never'",
    );
    let config = off.expect("it is read").engine(ServedAgent::Demo);
    assert_eq!((config.inactivity_max, config.stale_after, config.retention.rejected), (None, None, None));
    assert_eq!(config.compact_after, None);
    let default = read("").expect("it is read").engine(ServedAgent::Demo);
    assert_eq!(default.compact_after, Some(seconds(3600)));
}
