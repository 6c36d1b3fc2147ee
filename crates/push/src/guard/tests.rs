use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn guard(allow: &[&str]) -> Guard {
    Guard::new(Policy { allow: allow.iter().map(|entry| entry.parse().unwrap()).collect(), allow_http: true })
}

const PASSES: Option<Kind> = None;

/// What becomes of an address at an attempt, by default.
#[rustfmt::skip]
const ADDRESSES: &[(&str, Option<Kind>)] = &[
    // The open internet.
    ("8.8.8.8", PASSES), ("1.1.1.1", PASSES), ("172.15.255.255", PASSES), ("172.32.0.0", PASSES),
    ("100.63.255.255", PASSES), ("100.128.0.0", PASSES), ("126.255.255.255", PASSES), ("128.0.0.0", PASSES),
    ("169.253.255.255", PASSES), ("192.0.1.0", PASSES), ("198.17.255.255", PASSES), ("198.20.0.0", PASSES),
    ("223.255.255.255", PASSES), ("168.63.129.15", PASSES), ("192.31.196.1", PASSES),
    ("2606:4700::1111", PASSES), ("2a00:1450:4001::1", PASSES), ("2001:4860:4860::8888", PASSES),
    ("2001:db7::1", PASSES), ("2001:db9::1", PASSES), ("2001:200::1", PASSES), ("3ffe::1", PASSES),
    // IPv4 inside.
    ("0.0.0.0", Some(Kind::Unspecified)), ("0.255.255.255", Some(Kind::Unspecified)),
    ("10.0.0.0", Some(Kind::Private)), ("10.255.255.255", Some(Kind::Private)),
    ("172.16.0.1", Some(Kind::Private)), ("172.31.255.255", Some(Kind::Private)), ("192.168.1.1", Some(Kind::Private)),
    ("100.64.0.0", Some(Kind::CarrierNat)), ("100.127.255.255", Some(Kind::CarrierNat)),
    ("127.0.0.1", Some(Kind::Loopback)), ("127.255.255.254", Some(Kind::Loopback)),
    ("169.254.0.1", Some(Kind::LinkLocal)), ("169.254.255.255", Some(Kind::LinkLocal)),
    ("192.0.0.8", Some(Kind::Reserved)), ("192.88.99.1", Some(Kind::Reserved)),
    ("192.0.2.1", Some(Kind::Documentation)), ("198.51.100.1", Some(Kind::Documentation)),
    ("203.0.113.255", Some(Kind::Documentation)),
    ("198.18.0.0", Some(Kind::Documentation)), ("198.19.255.255", Some(Kind::Documentation)),
    ("224.0.0.1", Some(Kind::Multicast)), ("239.255.255.255", Some(Kind::Multicast)),
    ("240.0.0.1", Some(Kind::Reserved)), ("255.255.255.255", Some(Kind::Reserved)),
    // Metadata services.
    ("169.254.169.254", Some(Kind::Metadata)), ("169.254.170.2", Some(Kind::Metadata)),
    ("100.100.100.200", Some(Kind::Metadata)), ("192.0.0.192", Some(Kind::Metadata)),
    ("168.63.129.16", Some(Kind::Metadata)), ("fd00:ec2::254", Some(Kind::Metadata)),
    ("fd20:ce::254", Some(Kind::Metadata)), ("::ffff:169.254.169.254", Some(Kind::Metadata)),
    ("64:ff9b::169.254.169.254", Some(Kind::Metadata)),
    // IPv6 inside.
    ("::", Some(Kind::Unspecified)), ("::1", Some(Kind::Loopback)),
    ("fc00::1", Some(Kind::Private)), ("fdff:ffff::1", Some(Kind::Private)), ("fec0::1", Some(Kind::Private)),
    ("fe80::1", Some(Kind::LinkLocal)), ("febf:ffff::1", Some(Kind::LinkLocal)),
    ("ff02::1", Some(Kind::Multicast)), ("ff0e::1", Some(Kind::Multicast)),
    ("2001:db8::1", Some(Kind::Documentation)), ("3fff:fff::1", Some(Kind::Documentation)),
    ("2001:2::1", Some(Kind::Documentation)),
    ("100::1", Some(Kind::Reserved)), ("5f00::1", Some(Kind::Reserved)), ("2001:10::1", Some(Kind::Reserved)),
    ("2001:1ff::1", Some(Kind::Reserved)), ("4000::1", Some(Kind::Reserved)), ("1fff::1", Some(Kind::Reserved)),
    // IPv4 in IPv6.
    ("::ffff:8.8.8.8", PASSES), ("::ffff:127.0.0.1", Some(Kind::Loopback)), ("::ffff:10.0.0.1", Some(Kind::Private)),
    ("::8.8.8.8", PASSES), ("::127.0.0.1", Some(Kind::Embedded)), ("::0.0.0.2", Some(Kind::Embedded)),
    ("64:ff9b::8.8.8.8", PASSES), ("64:ff9b::10.0.0.1", Some(Kind::Embedded)),
    ("64:ff9b::127.0.0.1", Some(Kind::Embedded)), ("64:ff9b:1::8.8.8.8", Some(Kind::Embedded)),
    ("64:ff9b:0:0:0:1:808:808", Some(Kind::Reserved)),
    ("2002:808:808::1", PASSES), ("2002:7f00:1::1", Some(Kind::Embedded)), ("2002:c0a8:101::1", Some(Kind::Embedded)),
    ("2002:a9fe:a9fe::", Some(Kind::Metadata)),
    // Teredo: the server 65.54.227.120, the client 8.8.8.8; then the client 10.0.0.1; then the server 10.0.0.1.
    ("2001:0:4136:e378:8000:63bf:f7f7:f7f7", PASSES),
    ("2001:0:4136:e378:8000:63bf:f5ff:fffe", Some(Kind::Embedded)),
    ("2001:0:a00:1:8000:63bf:f7f7:f7f7", Some(Kind::Embedded)),
    // ISATAP, and the translated form of SIIT.
    ("2606:4700::5efe:8.8.8.8", PASSES), ("2606:4700::5efe:10.0.0.1", Some(Kind::Embedded)),
    ("2606:4700::200:5efe:10.0.0.1", Some(Kind::Embedded)), ("::ffff:0:127.0.0.1", Some(Kind::Reserved)),
];

#[test]
fn each_address_is_of_its_kind() {
    let guard = Guard::new(Policy::default());
    for (address, expected) in ADDRESSES {
        let address: IpAddr = address.parse().unwrap();
        let found = guard.check_address(address, "hooks.example.com").err().map(|refused| refused.kind);
        assert_eq!(found, *expected, "{address}");
    }
    assert!(ADDRESSES.len() >= 60);
}

/// What a URL is read as, with `http` let in.
#[rustfmt::skip]
const URLS: &[(&str, Result<&str, Verdict>)] = &[
    ("https://example.com/hook", Ok("https example.com:443 example.com /hook")),
    ("HTTPS://EXAMPLE.com", Ok("https example.com:443 example.com /")),
    ("http://example.com", Ok("http example.com:80 example.com /")),
    ("https://example.com:443/a?b=c#d", Ok("https example.com:443 example.com /a?b=c")),
    ("https://example.com:8443/a b", Err(Verdict::Characters)),
    ("https://example.com:8443/%20/../é", Ok("https example.com:8443 example.com:8443 /%C3%A9")),
    ("https://example.com./", Ok("https example.com:443 example.com /")),
    ("https://a_b.example.com/", Ok("https a_b.example.com:443 a_b.example.com /")),
    ("https://bücher.example/", Ok("https xn--bcher-kva.example:443 xn--bcher-kva.example /")),
    ("https://ＥＸＡＭＰＬＥ.com/", Ok("https example.com:443 example.com /")),
    ("https://example。com/", Ok("https example.com:443 example.com /")),
    ("https://ex%61mple.com/", Ok("https example.com:443 example.com /")),
    ("https://8.8.8.8/", Ok("https 8.8.8.8:443 8.8.8.8 /")),
    ("https://134744072/", Ok("https 8.8.8.8:443 8.8.8.8 /")),
    ("https://[2606:4700:0::1111]:444/", Err(Verdict::Port)),
    ("https://[2606:4700:0::1111]:4444/", Ok("https 2606:4700::1111:4444 [2606:4700::1111]:4444 /")),
    // Loopback and others, in each spelling of IPv4.
    ("https://127.0.0.1/", Err(Verdict::Inside)),
    ("https://127.1/", Err(Verdict::Inside)),
    ("https://127.0.1/", Err(Verdict::Inside)),
    ("https://2130706433/", Err(Verdict::Inside)),
    ("https://0x7f000001/", Err(Verdict::Inside)),
    ("https://0X7F.1/", Err(Verdict::Inside)),
    ("https://0x7f.0x0.0x0.0x1/", Err(Verdict::Inside)),
    ("https://017700000001/", Err(Verdict::Inside)),
    ("https://0177.0.0.01/", Err(Verdict::Inside)),
    ("https://127.0.0.1./", Err(Verdict::Inside)),
    ("https://2130706433./", Err(Verdict::Inside)),
    ("https://0/", Err(Verdict::Inside)),
    ("https://0x/", Err(Verdict::Inside)),
    ("https://①②⑦.⓪.⓪.①/", Err(Verdict::Inside)),
    ("https://１２７.０.０.１/", Err(Verdict::Inside)),
    ("https://127。0。0。1/", Err(Verdict::Inside)),
    ("https://%31%32%37.0.0.1/", Err(Verdict::Inside)),
    ("https://10.1/", Err(Verdict::Inside)),
    ("https://192.168.257/", Err(Verdict::Inside)),
    ("https://169.254.169.254/latest/meta-data/", Err(Verdict::Inside)),
    ("https://2852039166/", Err(Verdict::Inside)),
    ("https://0xa9fea9fe/", Err(Verdict::Inside)),
    ("https://100.64.1.1/", Err(Verdict::Inside)),
    ("https://4294967296/", Err(Verdict::Host)),
    ("https://256.0.0.1/", Err(Verdict::Host)),
    ("https://1.2.3.4.5/", Err(Verdict::Host)),
    ("https://127.0.0.0x1g/", Ok("https 127.0.0.0x1g:443 127.0.0.0x1g /")),
    // And of IPv6.
    ("https://[::1]/", Err(Verdict::Inside)),
    ("https://[0:0:0:0:0:0:0:1]/", Err(Verdict::Inside)),
    ("https://[::]/", Err(Verdict::Inside)),
    ("https://[::ffff:127.0.0.1]/", Err(Verdict::Inside)),
    ("https://[::FFFF:7f00:1]/", Err(Verdict::Inside)),
    ("https://[::127.0.0.1]/", Err(Verdict::Inside)),
    ("https://[64:ff9b::7f00:1]/", Err(Verdict::Inside)),
    ("https://[2002:7f00:1::]/", Err(Verdict::Inside)),
    ("https://[fd00:ec2::254]/", Err(Verdict::Inside)),
    ("https://[fe80::1%25eth0]/", Err(Verdict::Host)),
    ("https://[fe80::1%eth0]/", Err(Verdict::Host)),
    ("https://[::1/", Err(Verdict::Host)),
    ("https://::1/", Err(Verdict::Host)),
    // Names that are loopback by their meaning.
    ("https://localhost/", Err(Verdict::Inside)),
    ("https://LOCALHOST./", Err(Verdict::Inside)),
    ("https://ⓛocalhost/", Err(Verdict::Inside)),
    ("https://hooks.localhost:8443/", Err(Verdict::Inside)),
    ("https://notlocalhost.example/", Ok("https notlocalhost.example:443 notlocalhost.example /")),
    // Schemes.
    ("file:///etc/passwd", Err(Verdict::Scheme)),
    ("ftp://example.com/", Err(Verdict::Scheme)),
    ("gopher://example.com/", Err(Verdict::Scheme)),
    ("unix:///run/docker.sock", Err(Verdict::Scheme)),
    ("javascript:alert(1)", Err(Verdict::Scheme)),
    ("https:example.com", Err(Verdict::Scheme)),
    ("https:/example.com", Err(Verdict::Scheme)),
    ("//example.com/", Err(Verdict::Scheme)),
    ("example.com", Err(Verdict::Scheme)),
    ("", Err(Verdict::Scheme)),
    ("https:///example.com/", Err(Verdict::Host)),
    ("https://", Err(Verdict::Host)),
    ("https://?x", Err(Verdict::Host)),
    ("https://.example.com/", Err(Verdict::Host)),
    ("https://example..com/", Err(Verdict::Host)),
    ("https://exa!mple.com/", Err(Verdict::Host)),
    // Users, and what is mistaken for the end of the host.
    ("https://user@example.com/", Err(Verdict::User)),
    ("https://user:secret@example.com/", Err(Verdict::User)),
    ("https://@example.com/", Err(Verdict::User)),
    ("https://:@example.com/", Err(Verdict::User)),
    ("https://example.com@127.0.0.1/", Err(Verdict::User)),
    ("https://example.com%40127.0.0.1/", Err(Verdict::Host)),
    ("https://example.com\\@127.0.0.1/", Err(Verdict::Characters)),
    ("https://127.0.0.1\\.example.com/", Err(Verdict::Characters)),
    ("https://example.com/@user", Ok("https example.com:443 example.com /@user")),
    ("https://127.0.0.1#@example.com/", Err(Verdict::Inside)),
    ("https://127.0.0.1?@example.com/", Err(Verdict::Inside)),
    // Characters that readers drop or that end a line.
    (" https://example.com/", Err(Verdict::Characters)),
    ("https://example.com/\r\nX-Evil: 1", Err(Verdict::Characters)),
    ("https://exa\tmple.com/", Err(Verdict::Characters)),
    ("https://example.com/\u{0}", Err(Verdict::Characters)),
    ("https://example.com/\u{2028}", Err(Verdict::Characters)),
    ("https://127.0.0.1%0d%0a/", Err(Verdict::Host)),
    ("https://example.com%00.evil.example/", Err(Verdict::Host)),
    // Ports.
    ("https://example.com:0/", Err(Verdict::Port)),
    ("https://example.com:22/", Err(Verdict::Port)),
    ("https://example.com:25/", Err(Verdict::Port)),
    ("https://example.com:6379/", Err(Verdict::Port)),
    ("https://example.com:65536/", Err(Verdict::Other)),
    ("https://example.com:-1/", Err(Verdict::Other)),
    ("https://example.com:80/", Ok("https example.com:80 example.com:80 /")),
    ("https://example.com:/", Ok("https example.com:443 example.com /")),
];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Scheme,
    Characters,
    User,
    Host,
    Port,
    Inside,
    Other,
}

fn verdict(refused: &UrlRefused) -> Verdict {
    match refused {
        UrlRefused::Scheme | UrlRefused::Http => Verdict::Scheme,
        UrlRefused::Characters => Verdict::Characters,
        UrlRefused::UserInfo => Verdict::User,
        UrlRefused::Host => Verdict::Host,
        UrlRefused::Port(_) => Verdict::Port,
        UrlRefused::Address(_) => Verdict::Inside,
        UrlRefused::TooLong | UrlRefused::Syntax => Verdict::Other,
    }
}

fn shown(target: &Target) -> String {
    let scheme = if target.is_tls() { "https" } else { "http" };
    let (host, port) = (target.host_name(), target.port());
    format!("{scheme} {host}:{port} {} {}", target.authority(), target.path_and_query())
}

#[test]
fn each_url_is_read_or_refused_for_its_reason() {
    let guard = guard(&[]);
    let differ: Vec<_> = URLS
        .iter()
        .map(|(url, expected)| {
            let found = guard.check_url(url).map(|target| shown(&target)).map_err(|refused| verdict(&refused));
            (url, found, expected.map(str::to_owned))
        })
        .filter(|(_, found, expected)| found != expected)
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn http_is_refused_unless_the_setting_lets_it_in() {
    let refused = Guard::new(Policy::default()).check_url("http://example.com/").unwrap_err();
    assert_eq!(refused.to_string(), "must begin with https:// (hint: the setting push.allow_http lets http in)");
    guard(&[]).check_url("http://example.com/").unwrap();
}

#[test]
fn a_refusal_names_the_address_and_the_next_step() {
    let refused = guard(&[]).check_url("https://0x7f.1/").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "must be reachable from the internet: host 127.0.0.1 in url has the address 127.0.0.1, which is loopback \
         (hint: an operator can list the host or its network in push.allow)"
    );
}

#[test]
fn urls_and_names_have_their_longest() {
    let guard = guard(&[]);
    let url = |length: usize| format!("https://example.com/{}", "a".repeat(length - 20));
    guard.check_url(&url(URL_BYTES_MAX)).unwrap();
    assert_eq!(guard.check_url(&url(URL_BYTES_MAX + 1)), Err(UrlRefused::TooLong));
    assert_eq!(guard.check_url(&format!("https://{}.com/", "a".repeat(64))), Err(UrlRefused::Host));
    assert_eq!(guard.check_url(&format!("https://{}com/", "abcdefg.".repeat(32))), Err(UrlRefused::Host));
}

#[test]
fn a_listed_network_lets_its_addresses_in_and_no_others() {
    let guard = guard(&["127.0.0.0/8", "fd00::/8", "10.1.2.3"]);
    for url in [
        "http://127.9.9.9:22/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fd00::1]/",
        "http://10.1.2.3/",
        "http://localhost:8080/",
    ] {
        guard.check_url(url).unwrap();
    }
    for url in ["http://10.1.2.4/", "http://[fc00::1]/", "http://[64:ff9b::7f00:1]/", "http://127.0.0.1:0/"] {
        guard.check_url(url).unwrap_err();
    }
    guard.check_address("127.0.0.1".parse().unwrap(), "any.example").unwrap();
}

#[test]
fn a_listed_host_may_be_inside_under_its_name_alone() {
    let guard = guard(&["hooks.Internal.", "bücher.internal"]);
    let inside = "10.0.0.1".parse().unwrap();
    for host in ["hooks.internal", "HOOKS.internal.", "xn--bcher-kva.internal"] {
        guard.check_address(inside, host).unwrap();
    }
    for host in ["a.hooks.internal", "internal", "hooks.internal.example", "10.0.0.1"] {
        guard.check_address(inside, host).unwrap_err();
    }
    guard.check_url("http://hooks.internal:22/").unwrap();
    self::guard(&["localhost"]).check_url("http://localhost:1234/").unwrap();
}

#[test]
fn metadata_services_are_let_in_by_their_very_address_only() {
    let metadata = "169.254.169.254".parse().unwrap();
    for entry in ["0.0.0.0/0", "169.254.0.0/16", "metadata.internal"] {
        guard(&[entry]).check_address(metadata, "metadata.internal").unwrap_err();
    }
    guard(&["169.254.169.254"]).check_address(metadata, "metadata.internal").unwrap();
    let azure = guard(&[]).check_address("168.63.129.16".parse().unwrap(), "x").unwrap_err();
    assert_eq!(azure.kind, Kind::Metadata);
}

#[test]
fn entries_of_the_list_are_read_strictly() {
    let shown = |text: &str| text.parse::<Allow>().map(|allow| allow.to_string()).map_err(|error| error.to_string());
    assert_eq!(shown(" Hooks.Internal. ").unwrap(), "hooks.internal");
    assert_eq!(shown("10.1.2.3").unwrap(), "10.1.2.3/32");
    assert_eq!(shown("[fd00::1]").unwrap(), "fd00::1/128");
    assert_eq!(shown("::ffff:10.0.0.0/104").unwrap(), "10.0.0.0/8");
    assert_eq!(shown("0.0.0.0/0").unwrap(), "0.0.0.0/0");
    assert!(shown("10.1.2.3/8").unwrap_err().ends_with("(hint: write 10.0.0.0/8)"));
    for text in
        ["", ".", "*", "*.internal", "127.1", "0x7f000001", "a b", "https://a", "a:80", "10.0.0.0/", "10.0.0.0/33"]
    {
        shown(text).unwrap_err();
    }
    for text in ["fd00::/129", "10.0.0.0/-1", "a/8", "10.0.0.0/8/8", "::ffff:0:0/95"] {
        shown(text).unwrap_err();
    }
}

/// One part of an address, in the radix that `style` picks.
fn part(value: u32, style: u8) -> String {
    match style % 4 {
        0 => format!("{value}"),
        1 => format!("{value:#x}"),
        2 => format!("0{value:o}"),
        _ => format!("0X000{value:X}"),
    }
}

/// An address in 1 to 4 parts, the last of which holds the rest.
fn spell(address: u32, parts: u8, styles: [u8; 4]) -> String {
    let leading = usize::from(parts % 4);
    let [a, b, c, _] = address.to_be_bytes();
    let mut texts: Vec<_> =
        [a, b, c].iter().zip(styles).take(leading).map(|(byte, style)| part((*byte).into(), style)).collect();
    let rest = address & u32::MAX.checked_shr(8 * u32::from(parts % 4)).unwrap();
    texts.push(part(rest, styles[3]));
    texts.join(".")
}

proptest! {
    #[test]
    fn every_spelling_of_an_address_is_judged_as_the_address(
        address: u32, inside in 0..ADDRESSES.len(), of_table: bool, parts: u8, styles: [u8; 4], dot: bool
    ) {
        let of_table = of_table.then(|| ADDRESSES[inside].0.parse::<Ipv4Addr>().ok()).flatten();
        let address = of_table.unwrap_or(Ipv4Addr::from_bits(address));
        let spelled = spell(address.to_bits(), parts, styles);
        let found = guard(&[]).check_url(&format!("https://{spelled}{}/", if dot { "." } else { "" }));
        match guard(&[]).check_address(address.into(), "") {
            Ok(()) => prop_assert_eq!(found.unwrap().host().clone(), Host::Address(address.into())),
            Err(refused) => {
                let expected = AddressRefused { host: address.to_string(), ..refused };
                prop_assert_eq!(found, Err(UrlRefused::Address(expected)));
            }
        }
    }

    #[test]
    fn whatever_passes_has_a_host_that_passes_and_is_read_the_same_again(text in "(http|https)://([a-z0-9.éＡ。①-]{1,12}|\\[[0-9a-f:.]{2,16}\\])(:[0-9]{1,5})?([/?#][a-zé@%:/?#]{0,8})?") {
        if let Ok(target) = guard(&[]).check_url(&text) {
            if let Host::Address(address) = target.host() {
                prop_assert!(guard(&[]).check_address(*address, target.host_name()).is_ok());
            }
            let scheme = if target.is_tls() { "https" } else { "http" };
            let again = format!("{scheme}://{}{}", target.authority(), target.path_and_query());
            let read = again.parse::<http::Uri>().unwrap();
            prop_assert_eq!(read.host().unwrap().trim_matches(['[', ']']), target.host_name());
            prop_assert_eq!(shown(&guard(&[]).check_url(&again).unwrap()), shown(&target));
        }
    }
}
