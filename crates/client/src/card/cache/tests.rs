use super::*;

use proptest::prelude::*;

/// Sun, 06 Nov 1994 08:49:37 GMT.
const NOW_SECONDS: i64 = 784_111_777;

fn at(seconds_after: i64) -> Timestamp {
    Timestamp::from_unix_millis((NOW_SECONDS + seconds_after) * 1000)
}

/// Headers as lines.
fn headers(lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn cached(lines: &[&str]) -> Option<Cached> {
    let document = CardDocument::parse(br#"{"name":"n","supportedInterfaces":[]}"#, "here").unwrap();
    Cached::new(Arc::new(document), CardOrigin::caller(), &headers(lines), at(0))
}

#[test]
fn how_long_a_card_is_fresh() {
    const DAY: u64 = 24 * 60 * 60;
    #[rustfmt::skip]
    let cases: &[(&[&str], u64)] = &[
        (&[],                                                                    60),
        (&["etag: \"a\""],                                                       60),
        (&["cache-control: max-age=300"],                                        300),
        (&["cache-control: public, Max-Age=\"300\""],                            300),
        (&["cache-control: max-age=300", "cache-control: max-age=200"],          200),
        (&["cache-control: max-age=300", "age: 100"],                            200),
        (&["cache-control: max-age=300", "age: 400"],                            0),
        (&["cache-control: max-age=300", "date: Sun, 06 Nov 1994 08:49:07 GMT"], 270),
        (&["cache-control: max-age=300", "date: Sun, 06 Nov 1994 08:49:07 GMT", "age: 31"], 269),
        // The server's clock is ahead.
        (&["cache-control: max-age=300", "date: Sun, 06 Nov 1994 09:49:37 GMT"], 300),
        (&["cache-control: max-age=0"],                                          0),
        (&["cache-control: max-age=soon"],                                       0),
        (&["cache-control: max-age=-5"],                                         0),
        (&["cache-control: max-age"],                                            0),
        (&["cache-control: max-age=99999999999999999999999"],                    DAY),
        (&["cache-control: max-age=18446744073709551615"],                       DAY),
        (&["cache-control: s-maxage=300"],                                       60),
        (&["cache-control: no-cache, max-age=300"],                              0),
        (&["cache-control: no-cache=\"set-cookie, x\", max-age=300"],            0),
        (&["cache-control: max-age=300, private, must-revalidate, \"odd"],       300),
        (&["pragma: no-cache"],                                                  0),
        (&["pragma: no-cache", "cache-control: max-age=300"],                    300),
        (&["vary: *", "cache-control: max-age=300"],                             0),
        (&["vary: accept, authorization", "cache-control: max-age=300"],         300),
        (&["expires: Sun, 06 Nov 1994 08:50:37 GMT"],                            60),
        (&["expires: Sun, 06 Nov 1994 08:50:37 GMT", "date: Sun, 06 Nov 1994 08:49:27 GMT"], 60),
        (&["expires: Sun, 06 Nov 1994 08:00:00 GMT"],                            0),
        (&["expires: 0"],                                                        0),
        (&["expires: 0", "cache-control: max-age=300"],                          300),
    ];
    for (lines, seconds) in cases {
        let freshness = Freshness::of(&headers(lines), at(0));
        assert_eq!(freshness, Freshness::For(Duration::from_secs(*seconds)), "{lines:?}");
    }
}

#[test]
fn what_is_not_to_be_stored_is_not() {
    for line in ["cache-control: no-store", "cache-control: max-age=300, NO-STORE"] {
        assert_eq!(Freshness::of(&headers(&[line]), at(0)), Freshness::NotStored);
        assert!(cached(&[line]).is_none());
    }
}

#[test]
fn a_card_is_fresh_until_its_time_has_come() {
    let cached = cached(&["cache-control: max-age=300", "x-other: 1"]).unwrap();
    assert_eq!(cached.fresh_until(), at(300));
    assert!(cached.is_fresh(at(299)) && !cached.is_fresh(at(300)));
    assert!(cached.conditional_headers().is_empty());
}

#[test]
fn it_is_asked_for_again_by_what_is_known() {
    let date = "Sun, 06 Nov 1994 08:00:00 GMT";
    let cached = cached(&["etag: W/\"7\"", &format!("last-modified: {date}")]).unwrap();
    let wanted = headers(&["if-none-match: W/\"7\"", &format!("if-modified-since: {date}")]);
    assert_eq!(cached.conditional_headers(), wanted);
}

#[test]
fn a_304_makes_it_fresh_again_by_its_own_headers() {
    let old = cached(&["cache-control: max-age=300", "etag: \"7\"", "age: 290", "date: Sun, 06 Nov 1994 08:44:47 GMT"])
        .unwrap();
    assert_eq!(old.fresh_until(), at(10));

    // What it does not say stays as it was, but how old the answer is.
    let again = old.after_304(&headers(&["etag: \"7\""]), at(1000)).unwrap();
    assert_eq!(again.fresh_until(), at(1300));
    assert_eq!(again.etag().unwrap(), "\"7\"");

    let shorter = again.after_304(&headers(&["cache-control: max-age=20"]), at(2000)).unwrap();
    assert_eq!(shorter.fresh_until(), at(2020));
    // The same tag, once weak.
    assert!(shorter.after_304(&headers(&["etag: W/\"7\""]), at(0)).is_some());
    assert!(Arc::ptr_eq(old.document(), shorter.document()));
}

#[test]
fn a_304_about_another_card_is_none() {
    let old = cached(&["etag: \"7\""]).unwrap();
    assert!(old.after_304(&headers(&["etag: \"8\""]), at(0)).is_none());
    assert!(old.after_304(&headers(&["cache-control: no-store"]), at(0)).is_none());
}

#[test]
fn the_card_not_asked_for_longest_makes_room() {
    let cache = CardCache::default();
    let cached = Arc::new(cached(&[]).unwrap());
    let url = |index: usize| format!("https://a{index}.example");
    for index in 0..CARDS_MAX {
        cache.put(&url(index), Arc::clone(&cached));
    }
    assert!(cache.get(&url(0)).is_some());
    cache.put(&url(1), Arc::clone(&cached));
    cache.put(&url(CARDS_MAX), Arc::clone(&cached));
    let is_kept = |index| cache.get(&url(index)).is_some();
    assert!(is_kept(0) && is_kept(1) && !is_kept(2) && is_kept(3) && is_kept(CARDS_MAX));
    cache.remove(&url(0));
    assert!(!is_kept(0));
}

proptest! {
    #[test]
    fn no_header_breaks_the_cache(
        lines in prop::collection::vec(
            ("(cache-control|expires|date|age|vary|etag|last-modified|pragma)", "[ -~]{0,20}|(max-age|no-cache)=[\"0-9]{0,30}"),
            0..6,
        ),
        now in any::<i64>(),
        bytes in prop::collection::vec(32_u8.., 0..10),
    ) {
        let now = Timestamp::from_unix_millis(now);
        let mut all = HeaderMap::new();
        for (name, value) in &lines {
            all.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            all.append(CACHE_CONTROL, value);
        }
        if let Freshness::For(lifetime) = Freshness::of(&all, now) {
            prop_assert!(lifetime <= FRESH_MAX);
        }
        if let Some(again) = cached(&["etag: \"7\""]).unwrap().after_304(&all, now) {
            let _ = again.conditional_headers();
            prop_assert!(!again.is_fresh(again.fresh_until()));
        }
    }
}
