use super::*;

use proptest::prelude::*;

fn candidates(text: &str) -> Vec<String> {
    text.parse::<CardReference>().unwrap().candidates()
}

fn file(text: &str) -> Option<String> {
    text.parse::<CardReference>().unwrap().file().map(|path| path.display().to_string())
}

#[test]
fn an_origin_has_its_card_at_the_well_known_path() {
    #[rustfmt::skip]
    let cases = [
        ("agent.example.com",           "https://agent.example.com"),
        ("agent.example.com/",          "https://agent.example.com"),
        (" agent.example.com\n",        "https://agent.example.com"),
        ("agent.example.com:8443",      "https://agent.example.com:8443"),
        ("agent",                       "https://agent"),
        ("localhost",                   "http://localhost"),
        ("localhost:4100",              "http://localhost:4100"),
        ("a.localhost:4100",            "http://a.localhost:4100"),
        ("127.0.0.1:4100",              "http://127.0.0.1:4100"),
        ("[::1]:4100",                  "http://[::1]:4100"),
        ("::1",                         "http://[::1]"),
        ("10.0.0.5:4100",               "https://10.0.0.5:4100"),
        ("http://agent.example.com",    "http://agent.example.com"),
        ("HTTPS://Agent.Example.COM/#x", "https://agent.example.com"),
        ("https://agent.example.com:443", "https://agent.example.com"),
    ];
    for (text, origin) in cases {
        let wanted = [format!("{origin}{WELL_KNOWN_PATH}"), format!("{origin}{WELL_KNOWN_PATH_OLD}")];
        assert_eq!(candidates(text), wanted, "{text}");
    }
}

#[test]
fn any_other_url_is_the_card_and_then_a_prefix() {
    let one = "https://a.example/agents/one";
    let below = [one.to_owned(), format!("{one}{WELL_KNOWN_PATH}"), format!("{one}{WELL_KNOWN_PATH_OLD}")];
    assert_eq!(candidates(one), below);
    assert_eq!(candidates("https://a.example/agents/one/")[1..], below[1..]);
    assert_eq!(candidates("localhost:4100/agents/one")[0], "http://localhost:4100/agents/one");
    for whole in
        ["https://a.example/card.json", "https://a.example/.well-known/agent-card.json", "https://a.example/?id=7"]
    {
        assert_eq!(candidates(whole), [whole]);
    }
}

#[test]
fn a_path_is_a_file() {
    for path in
        ["/etc/card.json", "./card", "../card.json", "card.json", "cards/one", "agent.example.com/one", r"C:\card"]
    {
        assert_eq!(file(path).as_deref(), Some(path));
        assert!(candidates(path).is_empty());
    }
    assert_eq!(file("file:///tmp/a%20card.json").as_deref(), Some("/tmp/a card.json"));
    assert_eq!(file("agent.example.com"), None);
}

#[test]
fn what_names_no_card_is_refused_with_a_reason() {
    #[rustfmt::skip]
    let cases = [
        ("",                              "is empty"),
        ("ftp://a.example",               "http or https"),
        ("grpc://a.example:443",          "http or https"),
        ("https://",                      "must name a host"),
        ("https://a b",                   "no spaces"),
        ("two words",                     "no spaces"),
        ("file://card.json",              "file:///"),
        ("a.example:99999",               "no URL"),
        ("mailto:me",                     "no URL"),
        ("https://me@a.example",          "no user or password"),
        ("me:secret@a.example",           "no user or password"),
    ];
    for (text, problem) in cases {
        let error = text.parse::<CardReference>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,40}") {
        if let Ok(reference) = text.parse::<CardReference>() {
            for candidate in reference.candidates() {
                prop_assert!(Target::parse(&candidate).is_ok(), "{}", candidate);
            }
        }
    }

    #[test]
    fn what_looks_like_a_url_is_one_or_none(text in "(https?://)?[a-z0-9.:@/\\[\\]%?#-]{0,30}") {
        let _ = text.parse::<CardReference>().map(|reference| reference.candidates());
    }
}
