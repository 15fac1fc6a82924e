//! The verb of a request, after tunnelling: some clients and proxies only speak `POST` and name the
//! real verb in `X-HTTP-Method`. Signatures use the verb on the request line, so the caller keeps
//! that one too.

use crate::error::Result;
use crate::error_code::ErrorCode;

/// What a request wants to do with its resource. `MERGE` and `PATCH` are the same verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Get,
    Head,
    Options,
    Post,
    Put,
    Merge,
    Delete,
}

impl Verb {
    /// Reads the method of a request line together with every `X-HTTP-Method` header of the
    /// request.
    ///
    /// # Errors
    /// 405 `UnsupportedHttpVerb`; 400 `XMethodNotUsingPost`, `XMethodIncorrectValue`,
    /// `XMethodIncorrectCount`.
    pub fn resolve<'a>(
        method: &str,
        x_http_methods: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        let verb = Self::parse(method).ok_or(ErrorCode::UnsupportedHttpVerb)?;
        let mut x_http_methods = x_http_methods.into_iter();
        let Some(tunnelled) = x_http_methods.next() else { return Ok(verb) };
        if x_http_methods.next().is_some() {
            return Err(ErrorCode::XMethodIncorrectCount.into());
        }
        if verb != Self::Post {
            return Err(ErrorCode::XMethodNotUsingPost.into());
        }
        match Self::parse(tunnelled.trim_ascii()) {
            Some(verb @ (Self::Merge | Self::Put | Self::Delete)) => Ok(verb),
            _ => Err(ErrorCode::XMethodIncorrectValue.into()),
        }
    }

    /// Reads the method of a request line alone. Methods are case-sensitive.
    pub fn parse(method: &str) -> Option<Self> {
        Some(match method {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "MERGE" | "PATCH" => Self::Merge,
            "DELETE" => Self::Delete,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_has_two_names_and_a_tunnel() {
        // Wire reference 1.5.
        for (method, tunnelled) in
            [("MERGE", None), ("PATCH", None), ("POST", Some("MERGE")), ("POST", Some("PATCH"))]
        {
            assert_eq!(Verb::resolve(method, tunnelled).unwrap(), Verb::Merge);
        }
        assert_eq!(Verb::resolve("POST", ["DELETE"]).unwrap(), Verb::Delete);
        assert_eq!(Verb::resolve("POST", ["PUT"]).unwrap(), Verb::Put);
        assert_eq!(Verb::resolve("POST", []).unwrap(), Verb::Post);
    }

    #[test]
    fn misuse_of_the_tunnel_has_its_own_codes() {
        let code = |method, tunnelled: &[&'static str]| {
            Verb::resolve(method, tunnelled.iter().copied()).unwrap_err().code()
        };
        assert_eq!(code("PUT", &["MERGE"]), ErrorCode::XMethodNotUsingPost);
        assert_eq!(code("POST", &["GET"]), ErrorCode::XMethodIncorrectValue);
        assert_eq!(code("POST", &["merge"]), ErrorCode::XMethodIncorrectValue);
        assert_eq!(code("POST", &["MERGE", "MERGE"]), ErrorCode::XMethodIncorrectCount);
        assert_eq!(code("TRACE", &[]), ErrorCode::UnsupportedHttpVerb);
    }
}
