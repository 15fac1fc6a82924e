//! What the client wants to read: metadata level, echo of what it wrote, protocol version.
//!
//! JSON is the only format. Where the service would fall back to Atom because `Accept` is missing
//! or `*/*`, and then refuse it, this answers JSON with minimal metadata: no client relies on the
//! refusal. Only operations that return a body negotiate; the others, and `$batch` itself, ignore
//! `Accept` (the legacy Node client posts its JSON batches with `Accept:
//! application/atom+xml,application/xml`).

use crate::error::Result;
use crate::error_code::ErrorCode;

/// How much OData control information the client wants beside the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetadataLevel {
    None,
    #[default]
    Minimal,
    Full,
}

impl MetadataLevel {
    /// Chooses the level from `$format`, which wins, and `Accept`.
    ///
    /// # Errors
    /// 415 `AtomFormatNotSupported`, `JsonVerboseFormatNotSupported` or `MediaTypeNotSupported`.
    pub fn negotiate(format: Option<&str>, accept: Option<&str>) -> Result<Self> {
        match format.or(accept).map(str::trim_ascii) {
            None | Some("") => Ok(Self::Minimal),
            // What nearly every client sends, for speed alone.
            Some("application/json;odata=nometadata") => Ok(Self::None),
            Some("application/json;odata=minimalmetadata") => Ok(Self::Minimal),
            Some("application/json;odata=fullmetadata") => Ok(Self::Full),
            Some(ranges) => choose(ranges),
        }
    }

    /// The level of an error body, for which there is no refusal.
    pub fn for_errors(format: Option<&str>, accept: Option<&str>) -> Self {
        Self::negotiate(format, accept).unwrap_or_default()
    }

    /// The value of `Content-Type` for a body at this level.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// What one media range asks for, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Offer {
    Unknown,
    Atom,
    Verbose,
    Wildcard,
    Json,
    Level,
}

fn choose(ranges: &str) -> Result<MetadataLevel> {
    let mut best = (Offer::Unknown, MetadataLevel::Minimal);
    for range in ranges.split(',') {
        let offer = read_range(range);
        if offer.0 > best.0 {
            best = offer;
        }
    }
    match best.0 {
        Offer::Level | Offer::Json | Offer::Wildcard => Ok(best.1),
        Offer::Verbose => Err(ErrorCode::JsonVerboseFormatNotSupported.into()),
        Offer::Atom => Err(ErrorCode::AtomFormatNotSupported.into()),
        Offer::Unknown => Err(ErrorCode::MediaTypeNotSupported.into()),
    }
}

fn read_range(range: &str) -> (Offer, MetadataLevel) {
    let mut parameters = range.split(';').map(str::trim_ascii);
    let media_type = parameters.next().unwrap_or_default();
    let is = |name: &str| media_type.eq_ignore_ascii_case(name);
    let offer = if is("application/json") || is("json") {
        Offer::Json
    } else if is("*/*") || is("application/*") {
        Offer::Wildcard
    } else if is("application/atom+xml") || is("application/xml") || is("atom") || is("text/xml") {
        Offer::Atom
    } else {
        Offer::Unknown
    };
    if offer != Offer::Json {
        return (offer, MetadataLevel::Minimal);
    }
    let level = parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim_ascii().eq_ignore_ascii_case("odata"))
        .map(|(_, value)| value.trim_ascii().trim_matches('"'));
    let Some(level) = level else { return (offer, MetadataLevel::Minimal) };
    if level.eq_ignore_ascii_case("nometadata") {
        (Offer::Level, MetadataLevel::None)
    } else if level.eq_ignore_ascii_case("minimalmetadata") {
        (Offer::Level, MetadataLevel::Minimal)
    } else if level.eq_ignore_ascii_case("fullmetadata") {
        (Offer::Level, MetadataLevel::Full)
    } else if level.eq_ignore_ascii_case("verbose") {
        (Offer::Verbose, MetadataLevel::Minimal)
    } else {
        (Offer::Unknown, MetadataLevel::Minimal)
    }
}

/// The media type of a header value, without parameters and blanks.
pub(crate) fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim_ascii()
}

/// True if a header value has this media type, whatever its parameters.
pub fn is_media_type(value: &str, expected: &str) -> bool {
    media_type(value).eq_ignore_ascii_case(expected)
}

/// Whether an insert or a table creation answers with what it stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preference {
    ReturnContent,
    ReturnNoContent,
}

impl Preference {
    /// Reads the value of `Prefer`. Preferences that are not known are ignored, as RFC 7240 wants.
    pub fn parse(value: &str) -> Option<Self> {
        value.split(',').map(str::trim_ascii).find_map(|preference| {
            if preference.eq_ignore_ascii_case("return-no-content") {
                Some(Self::ReturnNoContent)
            } else if preference.eq_ignore_ascii_case("return-content") {
                Some(Self::ReturnContent)
            } else {
                None
            }
        })
    }

    /// The value of `Preference-Applied`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReturnContent => "return-content",
            Self::ReturnNoContent => "return-no-content",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accept(value: &str) -> Result<MetadataLevel> {
        MetadataLevel::negotiate(None, Some(value))
    }

    #[test]
    fn levels_that_clients_ask_for() {
        // Wire reference 2.3.
        for (value, level) in [
            ("application/json;odata=nometadata", MetadataLevel::None),
            ("application/json; odata=minimalmetadata", MetadataLevel::Minimal),
            ("application/json ; odata = fullmetadata", MetadataLevel::Full),
            ("Application/JSON;OData=FullMetadata;q=0.9", MetadataLevel::Full),
            ("application/json", MetadataLevel::Minimal),
            ("application/json, application/json; odata=minimalmetadata", MetadataLevel::Minimal),
            ("application/json, application/json;odata=nometadata", MetadataLevel::None),
            ("application/atom+xml,application/json;odata=fullmetadata", MetadataLevel::Full),
            ("*/*", MetadataLevel::Minimal),
            ("text/html, */*;q=0.8", MetadataLevel::Minimal),
            ("", MetadataLevel::Minimal),
        ] {
            assert_eq!(accept(value).unwrap(), level, "{value}");
        }
        assert_eq!(MetadataLevel::negotiate(None, None).unwrap(), MetadataLevel::Minimal);
    }

    #[test]
    fn format_wins_over_accept() {
        let negotiate = MetadataLevel::negotiate;
        let full = Some("application/json;odata=fullmetadata");
        assert_eq!(negotiate(full, Some("application/atom+xml")).unwrap(), MetadataLevel::Full);
        assert_eq!(negotiate(Some("json"), None).unwrap(), MetadataLevel::Minimal);
        assert!(negotiate(Some("atom"), full).is_err());
    }

    #[test]
    fn formats_that_are_not_served() {
        for (value, code, message) in [
            (
                "application/atom+xml,application/xml",
                ErrorCode::AtomFormatNotSupported,
                "Atom format is not supported.",
            ),
            (
                "application/json;odata=verbose",
                ErrorCode::JsonVerboseFormatNotSupported,
                "JSON verbose format is not supported.",
            ),
            (
                "multipart/mixed",
                ErrorCode::MediaTypeNotSupported,
                "None of the provided media types are supported",
            ),
            (
                "application/json;odata=other",
                ErrorCode::MediaTypeNotSupported,
                "None of the provided media types are supported",
            ),
        ] {
            let error = accept(value).unwrap_err();
            assert_eq!((error.code(), error.status()), (code, 415), "{value}");
            assert_eq!(error.message(), message, "{value}");
        }
        let level = MetadataLevel::for_errors(None, Some("application/atom+xml"));
        assert_eq!(level, MetadataLevel::Minimal);
    }

    #[test]
    fn content_types_have_no_blanks() {
        assert_eq!(
            MetadataLevel::Minimal.content_type(),
            "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
        );
    }

    #[test]
    fn media_types_compare_without_parameters() {
        for value in
            ["application/json", "application/json; charset=utf-8", "Application/Json;type=entry"]
        {
            assert!(is_media_type(value, "application/json"), "{value}");
        }
        assert!(!is_media_type("application/jsonx", "application/json"));
        assert!(!is_media_type("", "application/json"));
    }

    #[test]
    fn preferences() {
        assert_eq!(Preference::parse("return-no-content"), Some(Preference::ReturnNoContent));
        assert_eq!(Preference::parse("wait=5, Return-Content"), Some(Preference::ReturnContent));
        assert_eq!(Preference::parse("return=minimal"), None);
        assert_eq!(Preference::ReturnContent.as_str(), "return-content");
    }

    proptest! {
        #[test]
        fn headers_never_panic(text in any::<String>()) {
            let _ = accept(&text);
            let _ = Preference::parse(&text);
            let _ = media_type(&text);
        }
    }
}
