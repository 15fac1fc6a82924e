//! Why a request was refused: one word for the operator who looks for the mistake, in log and metrics.
//!
//! Clients are told a code, and strangers learn nothing more from it. Most codes say the reason as well; of those that
//! stand for several, whoever makes the error says which one it is.

use crate::error_code::ErrorCode;

/// Declares the closed set of reasons, each with its word in logs and metrics.
macro_rules! refusal_reasons {
    ($($(#[$doc:meta])* $reason:ident $word:literal)*) => {
        /// Why a request was refused by who sent it, not by what it asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum RefusalReason { $($(#[$doc])* $reason),* }

        impl RefusalReason {
            /// Every reason, in the order of their numbers (`reason as usize`).
            pub const ALL: &[RefusalReason] = &[$(RefusalReason::$reason),*];

            /// The word in logs and metrics.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$reason => $word),* }
            }
        }
    };
}

refusal_reasons! {
    /// Neither a header nor a signature in the URL.
    NoCredentials "no_credentials"
    /// A header, a date or a field of a token that cannot be read.
    MalformedCredentials "malformed_credentials"
    /// The address names an account that is not served.
    UnknownAccount "unknown_account"
    /// The credentials are for another account than the address names.
    AccountMismatch "account_mismatch"
    /// No key of the account, or of the token's issuer, made this signature.
    WrongKey "wrong_key"
    /// The date of a signed request is too far from the server's clock.
    ClockSkew "clock_skew"
    Expired "expired"
    NotYetValid "not_yet_valid"
    /// A stored access policy that is not there, or that says what the token says as well.
    Policy "policy"
    /// The token is for encrypted connections alone.
    Protocol "protocol"
    /// The token is for other addresses.
    Address "address"
    /// The token is for other services.
    ServiceMismatch "service"
    /// The token is for other kinds of resources.
    ResourceType "resource_type"
    /// The token is for another table, queue or blob.
    OtherResource "other_resource"
    /// The letter for this operation is not in the token, or not in the roles of its bearer.
    Permission "permission"
    /// The keys of the entity are outside of the token's range.
    KeyRange "key_range"
    /// No token allows this operation: it takes the account's key.
    OwnerOnly "owner_only"
    /// Bearer tokens are not configured.
    BearerNotConfigured "bearer_not_configured"
    /// The bearer token is of another issuer or for another audience.
    BearerClaims "bearer_claims"
    /// A write to the secondary.
    Secondary "secondary"
    AccountDisabled "account_disabled"
    /// No cross-origin rule of the account fits.
    Cors "cors"
}

impl RefusalReason {
    /// What a code says of the reason by itself; `None` for codes that refuse nobody.
    pub fn of_code(code: ErrorCode) -> Option<Self> {
        Some(match code {
            ErrorCode::NoAuthenticationInformation => Self::NoCredentials,
            ErrorCode::InvalidAuthenticationInfo => Self::MalformedCredentials,
            ErrorCode::AuthenticationFailed => Self::WrongKey,
            ErrorCode::AuthorizationFailure => Self::OwnerOnly,
            ErrorCode::AuthorizationPermissionMismatch => Self::Permission,
            ErrorCode::AuthorizationResourceTypeMismatch => Self::ResourceType,
            ErrorCode::AuthorizationServiceMismatch => Self::ServiceMismatch,
            ErrorCode::AuthorizationProtocolMismatch => Self::Protocol,
            ErrorCode::AuthorizationSourceIPMismatch => Self::Address,
            ErrorCode::InsufficientAccountPermissions => Self::Secondary,
            ErrorCode::AccountIsDisabled => Self::AccountDisabled,
            ErrorCode::CorsPreflightFailure => Self::Cors,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn words_differ_and_numbers_are_positions() {
        let words: HashSet<_> = RefusalReason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), RefusalReason::ALL.len());
        for (at, reason) in RefusalReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, at);
        }
    }

    /// Whatever refuses a caller has a reason, also in codes that come later.
    #[test]
    fn every_code_of_a_refusal_has_a_reason() {
        for code in ErrorCode::ALL {
            let refuses = matches!(code.status(), 401 | 403);
            let has_reason = RefusalReason::of_code(*code).is_some();
            assert!(has_reason || !refuses, "{code:?}");
        }
    }
}
