use std::time::Duration;

use longhaul_client::card::ProtocolVersion;

use super::*;

fn whom() -> String {
    "http://agent/".to_owned()
}

fn cause() -> longhaul_client::Cause {
    "refused".into()
}

fn connect() -> ClientError {
    ClientError::Connect { whom: whom(), source: cause() }
}

fn unauthorized_error() -> ClientError {
    ClientError::Unauthorized { whom: whom(), message: "who are you".to_owned(), challenge: None }
}

fn http(status: u16) -> ClientError {
    ClientError::Http { whom: whom(), status, excerpt: String::new(), retry_after: None }
}

fn card_not_found(source: impl Into<longhaul_client::Cause>) -> ClientError {
    CardError::NotFound { place: whom(), source: source.into() }.into()
}

#[track_caller]
fn check(error: ClientError, code: &str, exit: u8) {
    let failure = Failure::of(&error, Credentials::Given);
    assert_eq!((failure.code, failure.exit.code()), (code, exit), "{error:?}");
}

#[test]
fn each_error_of_the_client_has_its_code_and_its_exit() {
    check(connect(), "A2ACLI_ERR_UNREACHABLE", 3);
    check(ClientError::Broken { whom: whom(), source: cause() }, "A2ACLI_ERR_UNREACHABLE", 3);
    check(ClientError::Timeout { whom: whom(), after: Duration::from_secs(1) }, "A2ACLI_ERR_TIMEOUT", 5);
    check(unauthorized_error(), "A2ACLI_ERR_AUTH_FAILED", 4);
    check(http(503), "A2ACLI_ERR_UNREACHABLE", 3);
    check(http(418), "LONGHAUL_ERR_NOT_A2A", 1);
    check(ClientError::InvalidAnswer { whom: whom(), what: "no JSON".to_owned() }, "InvalidAgentResponseError", 1);
    check(ClientError::TooLarge { whom: whom(), what: "an answer", bytes_max: 1 }, "LONGHAUL_ERR_ANSWER_TOO_LARGE", 1);
    check(ClientError::NotOffered { what: "streaming" }, "UnsupportedOperationError", 1);
    check(ClientError::NotOffered { what: "push notifications" }, "PushNotificationNotSupportedError", 1);
    check(ClientError::Invalid { field: "--x".to_owned(), problem: "is wrong".to_owned() }, "A2ACLI_ERR_USAGE", 2);
    check(ClientError::Forbidden { what: "another origin".to_owned() }, "LONGHAUL_ERR_FORBIDDEN", 1);
    check(ClientError::Credential { scheme: "s".to_owned(), source: cause() }, "A2ACLI_ERR_AUTH_FAILED", 4);
    check(ClientError::Setup { action: "read the roots".to_owned(), source: cause() }, "A2ACLI_ERR_INTERNAL", 1);
    let (reference, problem) = ("::".to_owned(), "is nothing".to_owned());
    check(CardError::Reference { reference, problem }.into(), "A2ACLI_ERR_CARD_NOT_FOUND", 3);
    check(CardError::Invalid { place: whom(), problem: "x".to_owned() }.into(), "A2ACLI_ERR_CARD_INVALID", 1);
    let none = |allow| CardError::NoInterface { reasons: vec!["x".to_owned()], allow };
    check(none(None).into(), "LONGHAUL_ERR_NO_INTERFACE", 1);
    check(none(Some(ProtocolVersion::V0_3)).into(), "LONGHAUL_ERR_NO_INTERFACE", 1);
    let failure = Failure::of(&none(Some(ProtocolVersion::V0_3)).into(), Credentials::Absent);
    assert!(failure.hint.is_some_and(|hint| hint.contains("--a2a-version 0.3")));
    check(card_not_found("nothing there"), "A2ACLI_ERR_CARD_NOT_FOUND", 3);
    check(card_not_found(http(404)), "A2ACLI_ERR_CARD_NOT_FOUND", 3);
    check(card_not_found(connect()), "A2ACLI_ERR_UNREACHABLE", 3);
    check(card_not_found(unauthorized_error()), "A2ACLI_ERR_AUTH_FAILED", 4);
}

#[test]
fn who_gave_no_credentials_is_told_so() {
    for error in [unauthorized_error(), card_not_found(unauthorized_error())] {
        let failure = Failure::of(&error, Credentials::Absent);
        assert_eq!((failure.code, failure.exit), ("A2ACLI_ERR_CREDENTIALS_MISSING", Exit::Unauthenticated));
    }
}

#[test]
fn an_error_of_the_agent_keeps_its_name_and_its_number() {
    for code in ErrorCode::ALL {
        let failure = Failure::of_agent(error_name(*code), Some(*code), "that is why", -32001);
        assert_eq!((failure.code, failure.exit), (error_name(*code), Exit::Failed));
        assert_eq!((failure.message.as_str(), failure.a2a_code), ("that is why", Some(-32001)));
        assert!(failure.hint.is_some() && !failure.code.starts_with("A2ACLI_ERR_"));
    }
    let silent = Failure::of_agent("UnknownError", None, "", -32099);
    assert_eq!((silent.message.as_str(), silent.a2a_code), ("the agent gave no reason", Some(-32099)));
}

#[test]
fn the_envelope_is_one_line_with_all_its_members() {
    let failure = Failure::usage("--x \u{9b}31m is wrong").hint("leave it out");
    let envelope = failure.envelope();
    assert_eq!(
        envelope,
        "{\"error\":{\"code\":\"A2ACLI_ERR_USAGE\",\"message\":\"--x \\u009b31m is wrong\",\"hint\":\"leave it out\",\
         \"a2aCode\":null}}\n"
    );
    let bare = Failure::local(LocalCode::Timeout, "too late").envelope();
    assert!(bare.contains("\"hint\":null"), "{bare}");
}

#[test]
fn what_is_told_to_people_has_causes_and_no_control_characters() {
    let error = ClientError::Connect { whom: "http://a\u{1b}[2J/".to_owned(), source: cause() };
    let text = Failure::of(&error, Credentials::Absent).text();
    assert_eq!(
        text,
        "longhaul: cannot connect to http://a\\u{1b}[2J/: refused (A2ACLI_ERR_UNREACHABLE)\n\
         hint: check that the agent runs, and the reference given with --agent-card\n"
    );
}

#[test]
fn the_names_of_the_contract_are_its_own() {
    let contract: Vec<(&str, u8)> = LocalCode::ALL
        .iter()
        .filter(|code| code.name().starts_with("A2ACLI_ERR_"))
        .map(|code| (code.name(), code.exit().code()))
        .collect();
    let wanted = [
        ("A2ACLI_ERR_USAGE", 2),
        ("A2ACLI_ERR_CARD_NOT_FOUND", 3),
        ("A2ACLI_ERR_CARD_INVALID", 1),
        ("A2ACLI_ERR_UNREACHABLE", 3),
        ("A2ACLI_ERR_CREDENTIALS_MISSING", 4),
        ("A2ACLI_ERR_AUTH_FAILED", 4),
        ("A2ACLI_ERR_TIMEOUT", 5),
        ("A2ACLI_ERR_INTERNAL", 1),
    ];
    assert_eq!(contract, wanted);
}

#[test]
fn every_code_and_every_exit_is_on_the_page() {
    let page = include_str!("../../../../../docs/cli.md");
    for code in LocalCode::ALL {
        let is_the_contracts = code.name().starts_with("A2ACLI_");
        assert!(is_the_contracts || page.contains(&format!("| `{}` |", code.name())), "{}", code.name());
        assert!(page.contains(&format!("| {} |", code.exit().code())), "{}", code.exit().code());
    }
}
