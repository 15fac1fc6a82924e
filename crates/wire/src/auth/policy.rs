//! Stored access policies: what a token may leave to the service to know, so that it can be changed and revoked.
//!
//! How policies look as XML is said in [`crate::xml::acl`]; how a token refers to one, in [`crate::auth::sas`].

use super::sas::{Permissions, refused};
use crate::error::Result;
use crate::refusal::RefusalReason;
use crate::ticks::Ticks;

/// A named policy that tokens can refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIdentifier {
    pub id: String,
    /// `None` when the identifier was set without a policy, or with an empty one.
    pub access_policy: Option<AccessPolicy>,
}

/// What a policy fixes; the rest is for the token to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    pub start: Option<Ticks>,
    pub expiry: Option<Ticks>,
    pub permission: Option<Permissions>,
}

impl AccessPolicy {
    /// The policy of this id.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` when there is none.
    pub(super) fn find(id: &str, policies: &[SignedIdentifier]) -> Result<Self> {
        match policies.iter().find(|policy| policy.id == id) {
            Some(policy) => Ok(policy.access_policy.clone().unwrap_or_default()),
            None => Err(refused(RefusalReason::Policy, "si names no stored access policy")),
        }
    }

    /// What a token says together with what its policy says: each stands in one of them.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` for what stands in both.
    pub(super) fn joined(&self, policy: &Self) -> Result<Self> {
        Ok(Self {
            start: either(self.start, policy.start, "a start")?,
            expiry: either(self.expiry, policy.expiry, "an expiry")?,
            permission: either(self.permission, policy.permission, "a permission")?,
        })
    }
}

fn either<T>(token: Option<T>, policy: Option<T>, name: &'static str) -> Result<Option<T>> {
    match (token, policy) {
        (Some(_), Some(_)) => {
            Err(refused(RefusalReason::Policy, format!("both token and policy have {name}")))
        }
        (token, policy) => Ok(token.or(policy)),
    }
}
