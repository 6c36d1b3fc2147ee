//! `auth login` (§12.2), against an authorization server that is the agent's own host.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use longhaul_tests::hostile::{Asked, CARD_PATH, Script, card, task};
use longhaul_tests::{Hostile, PATIENCE, until};
use serde_json::json;

use crate::agents::{operations, require_scheme, with_task};
use crate::cli::Cli;

const CLIENT: [&str; 4] = ["auth", "login", "--client-id", "the-client"];
const SECRET: &str = "cl1entSecret";

/// Where OpenID Connect says what there is.
const OPEN_ID: &str = "/.well-known/openid-configuration";

/// How often the token endpoint says that nobody has entered the code yet.
const PENDING: usize = 2;

/// A member of a form.
fn form(asked: &Asked, name: &str) -> Option<String> {
    let body = String::from_utf8_lossy(&asked.body).into_owned();
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).next();
    value.map(|value| value.replace("%3A", ":").replace("%2D", "-").replace("%5F", "_"))
}

/// An agent that wants tokens of this flow, and gives them out itself. Each is good for so many seconds.
async fn agent(flow: &'static str, good_for: u64, refusal: Option<&'static str>) -> Hostile {
    let asked_for = std::sync::atomic::AtomicUsize::new(0);
    let given = std::sync::atomic::AtomicUsize::new(0);
    Hostile::start(move |asked| {
        let url = asked.base();
        let token = |kind: &str| {
            let nth = given.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut token = json!({"access_token": format!("tok{kind}{nth}"), "token_type": "Bearer", "expires_in": good_for});
            if kind != "Cc" {
                token["refresh_token"] = format!("ref{nth}").into();
            }
            Script::json(200, &token)
        };
        let refused = |error: &str| Script::json(400, &json!({"error": error}));
        match asked.path() {
            CARD_PATH => {
                let mut card = card(&url);
                let base = json!({"tokenUrl": format!("{url}/token"), "scopes": {"tasks": "to work"}});
                let mut device = base.clone();
                device["deviceAuthorizationUrl"] = format!("{url}/device").into();
                let scheme = match flow {
                    "deviceCode" => json!({"oauth2SecurityScheme": {"flows": {"deviceCode": device}}}),
                    "clientCredentials" => json!({"oauth2SecurityScheme": {"flows": {"clientCredentials": base}}}),
                    _ => json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": format!("{url}{OPEN_ID}")}}),
                };
                require_scheme(&mut card, "login", scheme);
                Script::json(200, &card)
            }
            OPEN_ID => Script::json(
                200,
                &json!({"issuer": url, "token_endpoint": format!("{url}/token"),
                    "device_authorization_endpoint": format!("{url}/device"), "jwks_uri": format!("{url}/keys"),
                    "authorization_endpoint": format!("{url}/authorize"), "response_types_supported": ["code"],
                    "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]}),
            ),
            "/device" => Script::json(
                200,
                &json!({"device_code": "d3viceCode", "user_code": "WDJB-MJHT", "verification_uri": format!("{url}/activate"),
                    "expires_in": 60, "interval": 1}),
            ),
            "/token" => match (form(asked, "grant_type").unwrap_or_default().as_str(), refusal) {
                (_, Some(error)) => refused(error),
                ("urn:ietf:params:oauth:grant-type:device_code", None) => {
                    match asked_for.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                        nth if nth < PENDING => refused("authorization_pending"),
                        _ => token("Device"),
                    }
                }
                ("client_credentials", None) => token("Cc"),
                ("refresh_token", None) => token("Refreshed"),
                _ => refused("unsupported_grant_type"),
            },
            path if path.starts_with("/rpc") || path.starts_with("/rest") => {
                match asked.header("authorization").is_some_and(|value| value.starts_with("Bearer tok")) {
                    true => with_task(asked, &task("TASK_STATE_COMPLETED")),
                    false => Script::whole(401, &[("WWW-Authenticate", "Bearer")], ""),
                }
            }
            _ => Script::whole(404, &[], ""),
        }
    })
    .await
}

/// The requests of the token endpoint.
fn token_requests(agent: &Hostile) -> Vec<Asked> {
    agent.asked().into_iter().filter(|asked| asked.path() == "/token").collect()
}

fn authorization(agent: &Hostile) -> String {
    operations(agent).last().and_then(|asked| asked.header("authorization")).unwrap_or_default().to_owned()
}

/// The files of a home that hold this.
fn files_with(cli: &Cli, word: &str) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(word);
    cli.files().into_iter().filter(holds).collect()
}

#[tokio::test]
async fn a2acli_auth_005_a_code_is_shown_and_waited_for() {
    let agent = agent("deviceCode", 3600, None).await;
    let cli = Cli::of(&agent.url());
    cli.run(&["send", "hello"]).await.exits(4);
    let started = tokio::time::Instant::now();
    let done = cli.run(&CLIENT).await;
    done.exits(0);
    for word in ["WDJB-MJHT", &format!("{}/activate", agent.url())] {
        assert!(done.all().contains(word), "{word}\n{}", done.told());
    }
    // RFC 8628: not more often than the interval says.
    let asked = token_requests(&agent);
    assert_eq!(asked.len(), PENDING + 1);
    assert!(started.elapsed().as_secs() >= u64::try_from(PENDING).unwrap());
    for request in &asked {
        assert_eq!(form(request, "device_code").as_deref(), Some("d3viceCode"));
        assert_eq!(form(request, "client_id").as_deref(), Some("the-client"));
    }
    cli.run(&["send", "hello"]).await.exits(0);
    assert_eq!(authorization(&agent), "Bearer tokDevice0");
}

#[tokio::test]
async fn a2acli_auth_005_a_refusal_ends_it() {
    for refusal in ["access_denied", "expired_token", "invalid_client"] {
        let agent = agent("deviceCode", 3600, Some(refusal)).await;
        let cli = Cli::of(&agent.url());
        let done = cli.run(&[&CLIENT[..], &["-o", "json"]].concat()).await;
        assert!([1, 4].contains(&done.code), "{}", done.told());
        done.error();
        assert!(files_with(&cli, "tok").is_empty());
    }
}

#[tokio::test]
async fn a2acli_auth_006_the_clients_own_credentials_get_a_token() {
    let agent = agent("clientCredentials", 3600, None).await;
    let cli = Cli::of(&agent.url()).with("A2ACLI_CLIENT_SECRET", SECRET);
    let done = cli.run(&[&CLIENT[..], &["--debug"]].concat()).await;
    assert!(!done.exits(0).all().contains(SECRET) && !done.all().contains("tokCc"), "{}", done.told());
    let asked = token_requests(&agent);
    assert_eq!((asked.len(), form(&asked[0], "grant_type").as_deref()), (1, Some("client_credentials")));
    // RFC 6749 §2.3.1: by HTTP Basic, or in the form; never in the URL.
    let basic = asked[0].header("authorization") == Some("Basic dGhlLWNsaWVudDpjbDFlbnRTZWNyZXQ=");
    let encoded = asked[0].header("authorization") == Some("Basic dGhlJTJEY2xpZW50OmNsMWVudFNlY3JldA==");
    assert!(basic || encoded || form(&asked[0], "client_secret").as_deref() == Some(SECRET), "{:?}", asked[0].headers);
    assert_eq!(asked[0].target, "/token");
    for args in [&["send", "hello"][..], &["task", "list"], &["send", "hello", "--transport", "http+json"]] {
        cli.run(args).await.exits(0);
        assert_eq!(authorization(&agent), "Bearer tokCc0", "{args:?}");
    }
}

#[tokio::test]
async fn a2acli_auth_006_a_refusal_is_no_login() {
    let agent = agent("clientCredentials", 3600, Some("invalid_client")).await;
    let cli = Cli::of(&agent.url()).with("A2ACLI_CLIENT_SECRET", SECRET);
    let done = cli.run(&[&CLIENT[..], &["-o", "json"]].concat()).await;
    assert!([1, 4].contains(&done.code) && !done.all().contains(SECRET), "{}", done.told());
    done.error();
    cli.run(&["send", "hello"]).await.exits(4);
}

#[tokio::test]
async fn a2acli_auth_007_tokens_are_kept_where_nobody_else_reads() {
    let agent = agent("deviceCode", 3600, None).await;
    let cli = Cli::of(&agent.url());
    let done = cli.run(&CLIENT).await;
    let secrets = ["tokDevice0", "ref0", "d3viceCode"];
    assert!(!secrets.iter().any(|secret| done.exits(0).all().contains(secret)), "{}", done.told());
    let files = files_with(&cli, "tokDevice0");
    assert_eq!(files.len(), 1, "it is kept in one place: {files:?}");
    assert!(files[0].starts_with(cli.home()), "{files:?}");
    let mode = std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{} {mode:o}", files[0].display());
    // Whoever asks is told of it, and not what it is.
    for args in [&["config", "show"][..], &["send", "hello", "--debug", "--verbose"]] {
        let done = cli.run(args).await;
        assert!(!secrets.iter().any(|secret| done.exits(0).all().contains(secret)), "{}", done.told());
    }
    // And can take it away.
    std::fs::remove_file(&files[0]).unwrap();
    cli.run(&["send", "hello"]).await.exits(4);
}

#[tokio::test]
async fn a2acli_auth_007_a_token_goes_to_its_agent_only_and_a_flag_is_stronger() {
    let (ours, other) = (agent("deviceCode", 3600, None).await, agent("deviceCode", 3600, None).await);
    let cli = Cli::new();
    cli.run(&[&CLIENT[..], &["-a", &ours.url()]].concat()).await.exits(0);
    cli.run(&["send", "hello", "-a", &other.url(), "-o", "json"]).await.fails(4, "A2ACLI_ERR_CREDENTIALS_MISSING");
    assert_eq!(authorization(&other), "");
    cli.run(&["send", "hello", "-a", &ours.url(), "--bearer", "tokOfTheFlag"]).await.exits(0);
    assert_eq!(authorization(&ours), "Bearer tokOfTheFlag");
    cli.run(&["send", "hello", "-a", &ours.url()]).await.exits(0);
    assert_eq!(authorization(&ours), "Bearer tokDevice0");
}

#[tokio::test]
async fn a2acli_auth_007_a_token_that_runs_out_is_renewed() {
    let agent = agent("deviceCode", 1, None).await;
    let cli = Cli::of(&agent.url());
    cli.run(&CLIENT).await.exits(0);
    until(PATIENCE, "the token is renewed", async || {
        cli.run(&["send", "hello"]).await.exits(0);
        authorization(&agent).starts_with("Bearer tokRefreshed").then_some(())
    })
    .await;
    let renewed = token_requests(&agent).into_iter().find(|asked| form(asked, "refresh_token").is_some());
    assert_eq!(form(&renewed.unwrap(), "refresh_token").as_deref(), Some("ref0"));
    let files = files_with(&cli, "tokRefreshed");
    let mode = std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777;
    assert_eq!((files.len(), mode), (1, 0o600));
}

#[tokio::test]
async fn a2acli_auth_010_open_id_connect_says_where_to_log_in() {
    let agent = agent("openId", 3600, None).await;
    let cli = Cli::of(&agent.url());
    cli.run(&["send", "hello"]).await.exits(4);
    let done = cli.run(&CLIENT).await;
    assert!(done.exits(0).all().contains("WDJB-MJHT"), "{}", done.told());
    assert!(agent.asked().iter().any(|asked| asked.path() == OPEN_ID));
    cli.run(&["send", "hello"]).await.exits(0);
    assert_eq!(authorization(&agent), "Bearer tokDevice0");
    // A token that was got elsewhere goes the same way.
    cli.run(&["send", "hello", "--bearer", "tokOfElsewhere"]).await.exits(0);
    assert_eq!(authorization(&agent), "Bearer tokOfElsewhere");
}
