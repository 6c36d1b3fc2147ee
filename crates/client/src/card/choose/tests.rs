use super::*;

use proptest::prelude::*;

/// Interfaces as `binding version url`, in the card's order.
fn card(interfaces: &[&str]) -> AgentCard {
    let interface = |text: &&str| {
        let mut words = text.split(' ').map(str::to_owned);
        AgentInterface {
            protocol_binding: words.next().unwrap(),
            protocol_version: words.next().unwrap(),
            url: words.next().unwrap(),
            tenant: words.next().unwrap_or_default(),
        }
    };
    AgentCard { supported_interfaces: interfaces.iter().map(interface).collect(), ..AgentCard::default() }
}

fn preference(bindings: &str, versions: &str) -> Preference {
    Preference {
        bindings: bindings.split_whitespace().map(|binding| binding.parse().unwrap()).collect(),
        versions: versions.split_whitespace().map(|version| version.parse().unwrap()).collect(),
    }
}

fn chosen(interfaces: &[&str], preference: &Preference) -> Result<Chosen, CardError> {
    let origin = CardOrigin::url("https://a.example/.well-known/agent-card.json").unwrap();
    choose(&card(interfaces), preference, &OriginPolicy::default(), &origin)
}

fn refused(interfaces: &[&str], preference: &Preference) -> Vec<String> {
    match chosen(interfaces, preference).unwrap_err() {
        CardError::NoInterface { reasons, .. } => reasons,
        other => panic!("{other}"),
    }
}

const J: &str = "JSONRPC 1.0 https://a.example/j";
const H: &str = "HTTP+JSON 1.0 https://a.example/h";
const G: &str = "GRPC 1.0 a.example:443";
const OLD: &str = "JSONRPC 0.3 https://a.example/old";
const X: &str = "SOAP 1.0 https://a.example/x";

#[test]
fn the_first_interface_that_is_preferred_or_comes_first_is_taken() {
    #[rustfmt::skip]
    let cases: &[(&[&str], &str, &str, usize, &str)] = &[
        // the card            bindings      versions   index, version
        (&[J, H, G],           "",           "1.0",     0, "1.0"),
        (&[H, J],              "",           "1.0",     0, "1.0"),
        (&[X, G],              "",           "1.0",     1, "1.0"),
        (&[J, H, G],           "grpc",       "1.0",     2, "1.0"),
        (&[J, H],              "grpc rest",  "1.0",     1, "1.0"),
        (&[J],                 "grpc",       "1.0",     0, "1.0"),
        // An older version only when it is allowed, and when there is nothing else.
        (&[OLD, J],            "",           "1.0",     1, "1.0"),
        (&[OLD, J],            "",           "0.3 1.0", 1, "1.0"),
        (&[OLD, H],            "jsonrpc",    "0.3 1.0", 1, "1.0"),
        (&[OLD],               "",           "0.3 1.0", 0, "0.3"),
        // Of one binding the highest version that both speak.
        (&[J, "JSONRPC 1.1 https://a.example/k"],    "", "1.0 1.1", 1, "1.1"),
        (&[H, "JSONRPC 1.1 https://a.example/k"],    "", "1.0 1.1", 0, "1.0"),
        (&["JSONRPC 1.2 https://a.example/k", J],    "", "1.0",     0, "1.0"),
        (&["JSONRPC 1.2 https://a.example/k", J],    "", "1.0 1.1", 0, "1.1"),
        (&["JSONRPC 2.0 https://a.example/k", J],    "", "1.0",     1, "1.0"),
        (&["JSONRPC 1.0.1 https://a.example/k", J],  "", "1.0",     0, "1.0"),
        (&["jsonrpc 1.0 https://a.example/k", H],    "", "1.0",     0, "1.0"),
        (&["JSONRPC  https://a.example/k"],          "", "0.3",     0, "0.3"),
    ];
    for (interfaces, bindings, versions, index, version) in cases {
        let chosen = chosen(interfaces, &preference(bindings, versions)).unwrap();
        assert_eq!(
            (chosen.index, chosen.version.to_string().as_str()),
            (*index, *version),
            "{interfaces:?} {bindings}"
        );
    }
}

#[test]
fn url_and_tenant_are_those_of_the_interface() {
    let chosen = chosen(&["HTTP+JSON 1.0 https://a.example/base/ Tenant/7"], &Preference::default()).unwrap();
    assert_eq!((chosen.url.as_str(), chosen.tenant.as_str()), ("https://a.example/base/", "Tenant/7"));
    assert_eq!((chosen.binding, chosen.credentials), (Binding::HttpJson, Credentials::Sent));
}

#[test]
fn the_address_of_a_grpc_server_becomes_a_url() {
    #[rustfmt::skip]
    let cases = [
        // The card                     declared                      called
        ("https://a.example",           "a.example:443",              "https://a.example/"),
        ("https://a.example",           "a.example:50051",            "https://a.example:50051/"),
        ("https://a.example",           "dns:///a.example:50051",     "https://a.example:50051/"),
        ("https://a.example",           "grpcs://a.example:50051",    "https://a.example:50051/"),
        ("https://a.example",           "https://a.example/a2a",      "https://a.example/a2a"),
        ("https://a.example",           "b.example",                  "https://b.example/"),
        ("http://a.example",            "a.example:50051",            "http://a.example:50051/"),
        ("http://a.example",            "a.example:443",              "http://a.example:443/"),
        ("http://a.example",            "b.example:50051",            "https://b.example:50051/"),
        ("http://localhost:4100",       "127.0.0.1:4100",             "http://127.0.0.1:4100/"),
        ("http://[::1]:4100",           "[::1]:4100",                 "http://[::1]:4100/"),
        ("http://[::1]:4100",           "grpc://localhost:4100",      "http://localhost:4100/"),
        ("",                            "127.0.0.1:4100",             "http://127.0.0.1:4100/"),
        ("",                            "[::1]:50051",                "http://[::1]:50051/"),
        ("",                            "localhost:50051",            "http://localhost:50051/"),
        ("",                            "agent.example:443",          "https://agent.example/"),
        ("",                            "http://h:1/",                "http://h:1/"),
        ("",                            "grpcs://h:1",                "https://h:1/"),
        ("",                            "10.0.0.1:4100",              "https://10.0.0.1:4100/"),
    ];
    for (from, declared, called) in cases {
        let origin = if from.is_empty() { CardOrigin::caller() } else { CardOrigin::url(from).unwrap() };
        let card = card(&[&format!("GRPC 1.0 {declared}")]);
        let chosen = choose(&card, &Preference::default(), &OriginPolicy::default(), &origin);
        assert_eq!(chosen.unwrap().url, called, "{declared} from {from}");
    }
}

#[test]
fn each_interface_that_cannot_be_used_has_its_reason() {
    #[rustfmt::skip]
    let cases = [
        (X,                                                "does not speak the binding \"SOAP\""),
        (OLD,                                              "speaks 0.3, which is not allowed"),
        ("JSONRPC next https://a.example",                 "\"next\" is no version"),
        ("JSONRPC 1.0 /rpc",                               "its URL must be an absolute http or https URL"),
        ("JSONRPC 1.0 a.example:443",                      "its URL must be an absolute http or https URL"),
        ("JSONRPC 1.0 https://u:p@a.example",              "name no user"),
        ("GRPC 1.0 unix:///run/agent",                     "its URL must be"),
        ("HTTP+JSON 1.0 https://a.example/?x=1",           "has a query"),
        ("JSONRPC 1.0 http://a.example",                   "without TLS"),
        ("JSONRPC 1.0 https://127.0.0.1",                  "loopback"),
        ("JSONRPC 1.0 https://169.254.169.254",            "a metadata service"),
    ];
    for (interface, problem) in cases {
        let reasons = refused(&[interface], &Preference::default());
        assert!(reasons[0].starts_with("interface 1 (") && reasons[0].contains(problem), "{interface}: {reasons:?}");
    }
    assert_eq!(refused(&[], &Preference::default()), ["the card names none"]);
}

#[test]
fn no_older_version_is_spoken_silently() {
    let reasons = refused(&[OLD, "GRPC 0.2.6 a.example:443"], &Preference::default());
    assert_eq!(reasons.last().unwrap(), "the agent speaks 0.2, 0.3, and 1.0 is allowed (hint: allow 0.3)");
    // Here a version is not what is wrong.
    assert_eq!(refused(&[OLD, X], &Preference::default()).len(), 2);
}

#[test]
fn a_card_with_very_many_interfaces_gives_few_reasons() {
    let reasons = refused(&vec![X; 1000], &Preference::default());
    assert_eq!((reasons.len(), reasons[REASONS_MAX].as_str()), (REASONS_MAX + 1, "and 984 more"));
}

#[test]
fn a_reason_repeats_no_control_characters_and_little_of_a_long_text() {
    let reasons = refused(&[&format!("\u{1b}[31m{} 1.0 u", "x".repeat(5000))], &Preference::default());
    assert!(!reasons[0].contains('\u{1b}') && reasons[0].len() < 1000, "{}", reasons[0]);
}

proptest! {
    #[test]
    fn what_is_chosen_is_allowed(
        all in prop::collection::vec(
            ("(JSONRPC|GRPC|HTTP\\+JSON|x)", "(1\\.[012]|0\\.3|)", "(https?://)?(a\\.example|127\\.0\\.0\\.1|b\\.example)(:[1-9]{1,4})?(/x)?"),
            0..5,
        ),
        legacy in any::<bool>(),
    ) {
        let texts: Vec<String> = all.iter().map(|(binding, version, url)| format!("{binding} {version} {url}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let preference = preference("grpc", if legacy { "1.0 0.3" } else { "1.0" });
        if let Ok(chosen) = chosen(&texts, &preference) {
            prop_assert!(preference.versions.contains(&chosen.version));
            prop_assert!(chosen.url.starts_with("https://") && !chosen.url.contains("127.0.0.1"), "{}", chosen.url);
            let is_other_host = chosen.url.contains("b.example");
            prop_assert_eq!(chosen.credentials == Credentials::Withheld, is_other_host);
        }
    }

    #[test]
    fn no_interface_breaks_the_choice(binding in "\\PC{0,8}", version in "\\PC{0,8}", url in "\\PC{0,30}") {
        let interface = AgentInterface { url, protocol_binding: binding, tenant: String::new(), protocol_version: version };
        let card = AgentCard { supported_interfaces: vec![interface], ..AgentCard::default() };
        let _ = choose(&card, &Preference::default(), &OriginPolicy::ANY, &CardOrigin::caller());
    }
}

#[test]
fn error_names_the_version_to_allow_if_this_client_speaks_it() {
    let allow = |interface: &str| match chosen(&[interface], &preference("", "1.0")) {
        Err(CardError::NoInterface { allow, .. }) => allow,
        other => panic!("{other:?}"),
    };
    assert_eq!(allow(OLD), Some(ProtocolVersion::V0_3));
    assert_eq!(allow("JSONRPC 0.2.5 https://a.example/old"), None);
    assert_eq!(allow(X), None);
}

#[test]
fn draft_before_0_3_is_not_spoken_even_if_it_is_allowed() {
    let reasons = refused(&["JSONRPC 0.2.5 https://a.example/old"], &preference("", "0.2"));
    assert!(reasons[0].contains("this client does not speak 0.2"), "{reasons:?}");
}
