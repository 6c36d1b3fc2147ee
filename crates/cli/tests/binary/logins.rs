//! `auth`: a login by a code or by the client's own secret, what is kept of it, and how it is forgotten.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::support::{end_of, folder, longhaul};

/// What must be in no output.
const SECRETS: [&str; 3] = ["t0ken", "r3fresh", "s3cret"];

/// An agent that wants tokens of this flow and gives them out; its tasks end at once.
fn agent(flow: &'static str) -> Scripted {
    let urls = match flow {
        "deviceCode" => {
            json!({"deviceAuthorizationUrl": "http://127.0.0.1:PORT/device", "tokenUrl": "http://127.0.0.1:PORT/token", "scopes": {"tasks": "to work"}})
        }
        _ => json!({"tokenUrl": "http://127.0.0.1:PORT/token", "scopes": {"tasks": "to work"}}),
    };
    let card = json!({
        "securitySchemes": {"login": {"oauth2SecurityScheme": {"flows": {flow: urls}}}},
        "securityRequirements": [{"schemes": {"login": {"list": ["tasks"]}}}],
    });
    Scripted::guarded(card, move |head, method, params, nth| match method {
        "/device" => Ok(
            json!({"device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": "https://login.example/activate",
            "expires_in": 60, "interval": 1}),
        ),
        "/token" if params["client_id"] == "stranger" => {
            Err(json!({"error": "invalid_client", "error_description": "nobody knows it"}))
        }
        "/token" if flow == "deviceCode" && nth == 0 => Err(json!({"error": "authorization_pending"})),
        "/token" => {
            Ok(json!({"access_token": "t0ken", "refresh_token": "r3fresh", "token_type": "Bearer", "expires_in": 3600}))
        }
        _ if head.to_ascii_lowercase().contains("authorization: bearer t0ken") => {
            Ok(json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}))
        }
        _ => Err(Value::Null),
    })
}

struct Person {
    home: PathBuf,
}

impl Person {
    fn new() -> Self {
        Self { home: folder() }
    }

    #[track_caller]
    fn runs(&self, agent: &Scripted, line: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
        let url = agent.url();
        let mut command = longhaul(&[line, &["-a", &url]].concat());
        command.env("HOME", &self.home).envs(variables.iter().copied());
        let (code, stdout, stderr) = end_of(&mut command);
        for secret in SECRETS {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{secret} in\n{stdout}{stderr}");
        }
        (code, stdout, stderr)
    }

    fn file(&self) -> PathBuf {
        Path::new(&self.home).join(".config/a2a-cli/tokens.json")
    }
}

#[test]
fn a_refused_call_names_the_login_that_helps_and_the_login_helps() {
    let (agent, person) = (agent("deviceCode"), Person::new());
    let (code, _, stderr) = person.runs(&agent, &["send", "hello"], &[]);
    assert!(code == 4 && stderr.contains("A2ACLI_ERR_CREDENTIALS_MISSING"), "{stderr}");
    let hint = format!("hint: log in with: longhaul auth login --client-id ID --agent-card {}\n", agent.url());
    assert!(stderr.ends_with(&hint), "{stderr}");
    let (code, stdout, stderr) = person.runs(&agent, &["auth", "login", "--client-id", "me", "--debug"], &[]);
    assert_eq!(code, 0, "{stderr}");
    for shown in ["Open: https://login.example/activate\n", "Code: WDJB-MJHT\n", "logging in to 127.0.0.1:"] {
        assert!(stderr.contains(shown) && !stdout.contains(shown), "{shown} is not in\n{stderr}");
    }
    assert!(stdout.contains("Flow: device-code\nClient: me\nScopes: tasks\n"), "{stdout}");
    assert_eq!(agent.asked("/device")[0].params, json!({"client_id": "me", "scope": "tasks"}));
    assert_eq!(std::fs::metadata(person.file()).expect("it is kept").permissions().mode() & 0o777, 0o600);
    let (code, stdout, stderr) = person.runs(&agent, &["send", "hello", "--debug"], &[]);
    assert!(code == 0 && stdout.contains("  hi\n"), "{stderr}");
}

#[test]
fn logins_are_listed_and_forgotten() {
    let (agent, other, person) = (agent("clientCredentials"), agent("clientCredentials"), Person::new());
    let secret = [("A2ACLI_CLIENT_ID", "me"), ("A2ACLI_CLIENT_SECRET", "s3cret")];
    for agent in [&agent, &other] {
        let (code, _, stderr) =
            person.runs(agent, &["auth", "login", "--scope", "one two", "--scope", "three"], &secret);
        assert_eq!(code, 0, "{stderr}");
    }
    let asked = agent.asked("/token").remove(0);
    assert_eq!(asked.params, json!({"grant_type": "client_credentials", "scope": "one+three+two"}));
    assert!(asked.head.contains("Basic "), "{}", asked.head);
    let logins = |person: &Person| {
        let (code, stdout, _) = person.runs(&agent, &["auth", "status", "-o", "json"], &[]);
        assert_eq!(code, 0);
        serde_json::from_str::<Value>(&stdout).expect("it is JSON")["logins"].as_array().expect("it is a list").clone()
    };
    let known = logins(&person);
    assert_eq!(known.len(), 2);
    assert_eq!((&known[0]["flow"], &known[0]["isExpired"]), (&json!("client-credentials"), &json!(false)));
    let (_, stdout, _) = person.runs(&agent, &["auth", "status"], &[("A2ACLI_BEARER", "t0ken")]);
    assert!(stdout.contains("Logins: 2\n") && stdout.contains("Stronger: "), "{stdout}");
    let (code, stdout, _) = person.runs(&agent, &["auth", "logout"], &[]);
    assert_eq!(code, 0);
    assert!(stdout.ends_with("Removed: 1\n"), "{stdout}");
    assert_eq!(person.runs(&agent, &["send", "hello"], &[]).0, 4);
    assert_eq!(person.runs(&other, &["send", "hello"], &[]).0, 0);
    assert_eq!(person.runs(&agent, &["auth", "logout", "--all"], &[]).0, 0);
    assert_eq!(logins(&person), [] as [Value; 0]);
}

#[test]
fn an_agent_that_is_gone_can_still_be_logged_out_of() {
    let (agent, person) = (agent("clientCredentials"), Person::new());
    let secret = [("A2ACLI_CLIENT_ID", "me"), ("A2ACLI_CLIENT_SECRET", "s3cret")];
    assert_eq!(person.runs(&agent, &["auth", "login"], &secret).0, 0);
    let kept = std::fs::read_to_string(person.file()).expect("it is kept");
    // Nobody listens at port 1.
    std::fs::write(person.file(), kept.replace(&agent.url(), "http://127.0.0.1:1")).expect("it is ours");
    let mut command = longhaul(&["auth", "logout", "-a", "http://127.0.0.1:1"]);
    let (code, stdout, stderr) = end_of(command.env("HOME", &person.home));
    assert!(code == 0 && stdout.ends_with("Removed: 1\n"), "{stdout}{stderr}");
}

#[test]
fn what_is_missing_for_a_login_is_named() {
    let person = Person::new();
    let own = agent("clientCredentials");
    let (code, _, stderr) = person.runs(&own, &["auth", "login"], &[]);
    assert!(code == 2 && stderr.contains("--client-id ID, or A2ACLI_CLIENT_ID"), "{stderr}");
    let (code, _, stderr) = person.runs(&own, &["auth", "login", "--client-id", "me"], &[]);
    assert!(code == 2 && stderr.contains("A2ACLI_CLIENT_SECRET"), "{stderr}");
    let (code, _, stderr) = person.runs(&own, &["auth", "login", "--client-id", "me", "--flow", "device-code"], &[]);
    assert!(code == 2 && stderr.contains("--token-url and --device-url"), "{stderr}");
    let (code, _, stderr) = person.runs(&own, &["auth", "login", "--client-id", "me", "--scheme", "none"], &[]);
    assert!(code == 2 && stderr.contains("it has \"login\""), "{stderr}");
    let open = Scripted::new(json!({}), |_, _, _| Err(Value::Null));
    let (code, _, stderr) = person.runs(&open, &["auth", "login", "--client-id", "me"], &[]);
    assert!(code == 2 && stderr.contains("it has none at all"), "{stderr}");
    assert!(!person.file().exists());
}

#[test]
fn a_refusal_is_told_in_the_servers_words_and_keeps_nothing() {
    let (agent, person) = (agent("deviceCode"), Person::new());
    let (code, stdout, _) = person.runs(&agent, &["auth", "login", "--client-id", "stranger", "-o", "json"], &[]);
    let envelope: Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!((code, &envelope["error"]["code"]), (4, &json!("A2ACLI_ERR_AUTH_FAILED")));
    let message = envelope["error"]["message"].as_str().expect("it is text");
    assert!(message.contains("invalid_client: nobody knows it"), "{message}");
    assert!(!person.file().exists());
}
