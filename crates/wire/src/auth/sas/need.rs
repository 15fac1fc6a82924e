//! The letters that an operation needs of a token.

use super::values::Permissions;
use crate::error::Result;
use crate::error_code::ErrorCode;

/// The letters that an operation needs: all of one set, or all of another.
#[derive(Clone, Copy)]
pub(super) struct Need(Permissions, Permissions);

impl Need {
    pub(super) const CREATE_OR_WRITE: Self = Self(Permissions::CREATE, Permissions::WRITE);
    pub(super) const WRITE_OR_DELETE: Self = Self(Permissions::WRITE, Permissions::DELETE);

    pub(super) fn all(permissions: Permissions) -> Self {
        Self(permissions, permissions)
    }

    pub(super) fn either(one: Permissions, other: Permissions) -> Self {
        Self(one, other)
    }
}

pub(super) fn check_permissions(granted: Permissions, Need(one, other): Need) -> Result<()> {
    if granted.contains(one) || granted.contains(other) {
        Ok(())
    } else {
        Err(ErrorCode::AuthorizationPermissionMismatch.into())
    }
}
