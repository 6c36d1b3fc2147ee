use super::*;

use Interfaces::{Any, Public, SameHost, SameOrigin};

fn policy(interfaces: Interfaces) -> OriginPolicy {
    OriginPolicy { interfaces, ..OriginPolicy::default() }
}

fn is_permitted(interfaces: Interfaces, card: &CardOrigin, url: &str) -> bool {
    policy(interfaces).check_url(url, card).is_ok()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn each_policy_says_where_a_card_may_lead() {
    #[rustfmt::skip]
    let cases = [
        // the card                    names                              SameOrigin SameHost Public Any
        ("https://a.example/card",     "https://a.example/rpc",           [true,  true,  true,  true]),
        ("https://a.example/card",     "https://A.EXAMPLE.:443/rpc",      [true,  true,  true,  true]),
        ("https://a.example/card",     "https://a.example:8443/rpc",      [false, true,  true,  true]),
        ("https://a.example/card",     "https://b.example/rpc",           [false, false, true,  true]),
        ("https://a.example/card",     "https://8.8.8.8/rpc",             [false, false, true,  true]),
        ("https://a.example/card",     "http://a.example/rpc",            [false, false, false, true]),
        ("https://a.example/card",     "http://b.example/rpc",            [false, false, false, true]),
        ("https://a.example/card",     "https://127.0.0.1/rpc",           [false, false, false, true]),
        ("https://a.example/card",     "https://127.1/rpc",               [false, false, false, true]),
        ("https://a.example/card",     "https://[::ffff:127.0.0.1]/rpc",  [false, false, false, true]),
        ("https://a.example/card",     "https://localhost/rpc",           [false, false, false, true]),
        ("https://a.example/card",     "https://10.1.2.3/rpc",            [false, false, false, true]),
        ("https://a.example/card",     "https://[fd00::1]/rpc",           [false, false, false, true]),
        ("https://a.example/card",     "https://169.254.169.254/rpc",     [false, false, false, false]),
        ("https://a.example/card",     "https://me@a.example/rpc",        [false, false, false, false]),
        ("http://a.example/card",      "http://a.example/rpc",            [true,  true,  true,  true]),
        ("http://a.example/card",      "https://a.example/rpc",           [false, true,  true,  true]),
        ("http://a.example/card",      "http://b.example/rpc",            [false, false, false, true]),
        ("http://10.0.0.5:4100",       "http://10.0.0.5:4100/rpc",        [true,  true,  true,  true]),
        ("http://10.0.0.5:4100",       "http://10.0.0.5:50051",           [false, true,  true,  true]),
        ("http://10.0.0.5:4100",       "http://10.0.0.6:4100",            [false, false, false, true]),
        ("http://10.0.0.5:4100",       "http://127.0.0.1:4100",           [false, false, false, true]),
        ("http://localhost:4100",      "http://127.0.0.1:4100/rpc",       [true,  true,  true,  true]),
        ("http://localhost:4100",      "http://0.0.0.0:4100/rpc",         [true,  true,  true,  true]),
        ("http://127.0.0.1:4100",      "http://[::1]:4200/rpc",           [false, true,  true,  true]),
        ("http://127.0.0.1:4100",      "https://b.example/rpc",           [false, false, true,  true]),
        ("https://localhost:4100",     "http://localhost:4200/rpc",       [false, true,  true,  true]),
        ("http://169.254.169.254/",    "http://169.254.169.254/",         [false, false, false, false]),
    ];
    for (card, url, wanted) in cases {
        let card = CardOrigin::url(card).unwrap();
        let permitted = [SameOrigin, SameHost, Public, Any].map(|interfaces| is_permitted(interfaces, &card, url));
        assert_eq!(permitted, wanted, "{card:?} {url}");
    }
}

#[test]
fn a_card_of_the_caller_may_name_all_but_metadata_services() {
    for interfaces in [SameOrigin, SameHost, Public, Any] {
        for url in ["http://127.0.0.1:1", "http://10.0.0.1", "https://a.example"] {
            let permit = policy(interfaces).check_url(url, &CardOrigin::caller());
            assert_eq!(permit, Ok(Permit { reach: Reach::ANYWHERE, credentials: Credentials::Sent }));
        }
        assert!(!is_permitted(interfaces, &CardOrigin::caller(), "http://169.254.169.254/"));
    }
}

#[test]
fn credentials_go_to_another_host_only_if_the_policy_says_so() {
    let card = CardOrigin::url("https://a.example").unwrap();
    let given = |policy: OriginPolicy, url| policy.check_url(url, &card).unwrap().credentials;
    let trusting = OriginPolicy { credentials: CredentialsTo::Interface, ..OriginPolicy::default() };
    let (own, other) = ("https://a.example:8443", "https://b.example");
    assert_eq!(given(OriginPolicy::default(), own), Credentials::Sent);
    assert_eq!(given(OriginPolicy::default(), other), Credentials::Withheld);
    assert_eq!(given(policy(Any), other), Credentials::Withheld);
    assert_eq!(given(trusting, other), Credentials::Sent);
    assert_eq!(given(OriginPolicy::ANY, other), Credentials::Sent);
}

#[test]
fn a_name_leads_no_further_inside_than_the_card_was() {
    let (public, private, loopback, metadata) = ("93.184.215.14", "10.0.0.5", "127.0.0.1", "169.254.169.254");
    #[rustfmt::skip]
    let cases = [
        // the card        it came from     calls              public private loopback
        ("a.example",      Some(public),    "a.example",       [true, false, false]),
        ("a.example",      None,            "a.example",       [true, false, false]),
        ("a.example",      Some(private),   "a.example",       [true, true,  false]),
        ("a.example",      Some(loopback),  "a.example",       [true, true,  true]),
        ("a.example",      Some(private),   "b.example",       [true, false, false]),
        ("a.example",      Some(loopback),  "b.example",       [true, false, false]),
        ("localhost:4100", None,            "localhost:4200",  [true, true,  true]),
        ("10.0.0.5",       None,            "10.0.0.5",        [true, true,  false]),
        // What is written counts, not what a proxy or a test claims to have connected to.
        ("localhost",      Some(public),    "localhost",       [true, true,  true]),
    ];
    for (card, from, url, wanted) in cases {
        let mut origin = CardOrigin::url(&format!("https://{card}")).unwrap();
        if let Some(from) = from {
            origin = origin.at(address(from));
        }
        let reach = OriginPolicy::default().check_url(&format!("https://{url}"), &origin).unwrap().reach;
        let reached = [public, private, loopback].map(|text| reach.check_address(address(text)).is_ok());
        assert_eq!(reached, wanted, "{card} at {from:?} calls {url}");
        assert!(reach.check_address(address(metadata)).is_err());
    }
}

#[test]
fn a_spelling_of_an_inside_address_is_one() {
    for inside in ["::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1", "0.0.0.0", "::"] {
        assert!(Reach::INTERNET.check_address(address(inside)).is_err(), "{inside}");
        assert!(Reach(Zone::Network).check_address(address(inside)).is_err(), "{inside}");
        assert!(Reach::ANYWHERE.check_address(address(inside)).is_ok(), "{inside}");
    }
    let refused = Reach::INTERNET.check_address(address("::ffff:10.0.0.1")).unwrap_err();
    assert_eq!(refused.to_string(), "the address 10.0.0.1 is private, where this card may not lead");
}

#[test]
fn a_card_from_no_url_has_no_origin() {
    for (url, problem) in
        [("/card.json", "absolute"), ("https://me:secret@a.example", "no user"), ("https://", "name a host")]
    {
        let error = CardOrigin::url(url).unwrap_err().to_string();
        assert!(error.contains(problem) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_redirect_to_another_host_does_not_lead_the_credentials_there() {
    let credentials = |named: &str, policy: OriginPolicy| {
        let origin = CardOrigin::url("https://b.example/card").unwrap().redirected_from(named).unwrap();
        policy.check_url("https://b.example/rpc", &origin).unwrap().credentials
    };
    assert_eq!(credentials("https://a.example/card", OriginPolicy::default()), Credentials::Withheld);
    assert_eq!(credentials("https://b.example/old", OriginPolicy::default()), Credentials::Sent);
    assert_eq!(credentials("https://a.example/card", OriginPolicy::ANY), Credentials::Sent);
}
