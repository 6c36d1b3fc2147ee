//! No credential is ever written where diagnostics go (§12.1).

use longhaul_tests::hostile::{Script, rpc_error, task};
use longhaul_tests::{Hostile, Server, Store};
use serde_json::Value;

use crate::agents::{api_key, bearer, operations, require_scheme, with_card, with_task};
use crate::cli::Cli;

const SECRET: &str = "hunter2s3cret";

const LOUD: [&[&str]; 4] = [
    &["--debug"],
    &["--debug", "--verbose"],
    &["--debug", "--verbose", "-o", "json"],
    &["--debug", "-o", "json", "--stream"],
];

#[tokio::test]
async fn a2acli_auth_004_debug_shows_no_credential_wherever_it_is_carried() {
    let schemes: [(Value, &str); 4] = [
        (bearer(), "A2ACLI_BEARER"),
        (api_key("header", "X-Agent-Key"), "A2ACLI_API_KEY"),
        (api_key("query", "agent_key"), "A2ACLI_API_KEY"),
        (api_key("cookie", "agent_key"), "A2ACLI_API_KEY"),
    ];
    for (scheme, variable) in schemes {
        for binding in ["jsonrpc", "http+json"] {
            let declared = scheme.clone();
            let agent = with_card(move |card, _| require_scheme(card, "it", declared.clone())).await;
            let cli = Cli::of(&agent.url()).with(variable, SECRET).with("A2ACLI_TRANSPORT", binding);
            for loud in LOUD {
                let done = cli.run(&[&["send", "hello"], loud].concat()).await;
                assert!(!done.exits(0).all().contains(SECRET), "{}", done.told());
                assert!(done.stderr.contains("hello"), "the rest is shown\n{}", done.told());
            }
            let carried = operations(&agent).iter().all(|asked| String::from_utf8_lossy(&asked.bytes).contains(SECRET));
            assert!(carried, "it was sent, though");
        }
    }
}

#[tokio::test]
async fn a2acli_auth_004_service_parameters_are_as_secret() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    let param = format!("x-session:{SECRET}");
    let cli = Cli::of(&agent.url());
    for loud in LOUD {
        let done = cli.run(&[&["send", "hello", "--svc-param", &param], loud].concat()).await;
        assert!(!done.exits(0).all().contains(SECRET), "{}", done.told());
    }
    assert!(operations(&agent).iter().all(|asked| asked.header("x-session") == Some(SECRET)));
    // Over gRPC it is metadata.
    let server = Server::start(Store::Memory).await;
    let cli = Cli::of(&format!("http://{}", server.addr())).with("A2ACLI_BEARER", SECRET);
    let done = cli.run(&["send", "hello", "--svc-param", &param, "--transport", "grpc", "--debug", "--verbose"]).await;
    assert!(!done.exits(0).all().contains(SECRET) && done.stderr.contains("hello"), "{}", done.told());
}

#[tokio::test]
async fn a2acli_auth_004_an_agent_that_repeats_a_credential_does_not_get_it_shown() {
    let echoing = Hostile::agent_with(
        |card, _| require_scheme(card, "it", bearer()),
        |asked| {
            let seen = asked.header("authorization").unwrap_or_default();
            let body = rpc_error(asked, -32001, &format!("no task for {seen}"));
            Script::whole(200, &[("Content-Type", "application/json"), ("X-Seen", seen)], body.to_string())
        },
    )
    .await;
    let cli = Cli::of(&echoing.url()).with("A2ACLI_BEARER", SECRET);
    for loud in LOUD {
        let done = cli.run(&[&["task", "get", "x"], loud].concat()).await;
        assert!(!done.exits(1).stderr.contains(SECRET), "{}", done.told());
    }
}

#[tokio::test]
async fn a2acli_auth_004_no_error_and_no_setting_shows_a_credential() {
    let nobody = format!("http://{}", longhaul_tests::server::free_addr());
    let cli = Cli::of(&nobody)
        .with("A2ACLI_BEARER", SECRET)
        .with("A2ACLI_API_KEY", SECRET)
        .with("A2ACLI_SVC_PARAM", &format!("x-a:{SECRET}"));
    for args in [
        &["send", "hello"][..],
        &["send", "hello", "-o", "json"],
        &["send", "hello", "--debug", "--insecure"],
        &["send", "hello", "--no-such-flag"],
        &["config", "show"],
        &["config", "show", "-o", "json", "--verbose", "--debug"],
        &["send", "--help"],
    ] {
        let done = cli.run(args).await;
        assert!(!done.all().contains(SECRET), "{}", done.told());
    }
    // A value that is no header is refused without being repeated.
    for (flag, value) in [
        ("--bearer", format!("{SECRET}\n")),
        ("--svc-param", format!("x:{SECRET}\u{7f}")),
        ("--svc-param", SECRET.to_owned()),
    ] {
        let done = Cli::of(&nobody).run(&["send", "hello", flag, &value]).await;
        assert!(!done.all().contains(SECRET), "{}", done.told());
    }
}
