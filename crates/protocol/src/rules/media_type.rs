//! Media types as agent cards and requests name them.

/// Whether `media_type` is one of those that `pattern` stands for.
///
/// A pattern is a media type or has a wildcard: `text/plain`, `text/*`, `*/*` (also `*`). Case and
/// parameters (`; charset=utf-8`) make no difference on either side.
#[must_use]
pub fn media_type_matches(pattern: &str, media_type: &str) -> bool {
    let (pattern, media_type) = (essence(pattern), essence(media_type));
    if matches!(pattern, "*/*" | "*") {
        return true;
    }
    match (pattern.strip_suffix("/*"), media_type.split_once('/')) {
        (Some(wanted), Some((given, _))) => wanted.eq_ignore_ascii_case(given.trim_end()),
        (Some(_), None) => false,
        (None, _) => pattern.eq_ignore_ascii_case(media_type),
    }
}

/// The media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_case_and_parameters() {
        #[rustfmt::skip]
        let cases = [
            ("text/plain",              "text/plain",                true),
            ("text/plain",              "TEXT/Plain; charset=utf-8", true),
            ("Text/plain; format=flowed", "text/plain",              true),
            ("text/plain",              "text/html",                 false),
            ("text/*",                  "text/html",                 true),
            ("TEXT/*",                  "text/html",                 true),
            ("text/*",                  "texture/html",              false),
            ("text/*",                  "text",                      false),
            ("*/*",                     "image/png",                 true),
            ("*/*; q=0.5",              "image/png",                 true),
            ("*",                       "image/png",                 true),
            ("application/json",        "application/a2a+json",      false),
            ("",                        "text/plain",                false),
        ];
        for (pattern, media_type, wanted) in cases {
            assert_eq!(media_type_matches(pattern, media_type), wanted, "{pattern} {media_type}");
        }
    }
}
