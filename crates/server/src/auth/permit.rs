//! Who asks, and leave to do what they ask for.
//!
//! A [`Permit`] is made by [`Identity::authorize`] alone and every operation takes one, so that an operation that forgot
//! to ask does not compile. It carries what was granted: queries are narrowed to the key range of a signature, and
//! writes are held to it.

use tavola_wire::ErrorCode;
use tavola_wire::auth::sas::{self, EntityOperation, Grant, KeyRangeLimit};

use crate::error::Result;

/// Who asks.
#[derive(Debug)]
pub(crate) enum Identity {
    /// The holder of an account key may do everything.
    Owner,
    /// The holder of a shared access signature may do what it grants.
    Sas(Grant),
    /// The holder of a bearer token may do what its roles grant.
    Bearer(Grant),
}

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access<'a> {
    To(sas::Access<'a>),
    /// Nothing by itself: each part of a batch asks for a permit of its own.
    OfEachPart,
}

/// Leave to run one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permit<'a> {
    identity: &'a Identity,
    /// What is done to entities, for the questions that need their keys.
    entity_operation: Option<EntityOperation>,
}

impl Identity {
    /// Leave for what an operation needs, as far as it does not depend on keys.
    ///
    /// # Errors
    /// 403 for what is not granted; 404 where the live service says that there is no such thing.
    pub(crate) fn authorize(&self, access: Access<'_>) -> Result<Permit<'_>> {
        let mut permit = Permit { identity: self, entity_operation: None };
        let Access::To(access) = access else { return Ok(permit) };
        match self {
            Self::Owner => {}
            // The live service does not know access policies to bearers of tokens.
            Self::Bearer(_) if access == sas::Access::TableAcl => {
                return Err(ErrorCode::ResourceNotFound.into());
            }
            Self::Sas(grant) | Self::Bearer(grant) => grant.allows(access)?,
        }
        if let sas::Access::Entity { operation, .. } = access {
            permit.entity_operation = Some(operation);
        }
        Ok(permit)
    }
}

impl<'a> Permit<'a> {
    /// A permit for one part of a batch.
    pub(crate) fn for_part(&self, access: Access<'_>) -> Result<Permit<'a>> {
        self.identity.authorize(access)
    }

    /// Whether it reaches this entity.
    ///
    /// # Errors
    /// 404 `ResourceNotFound` for reads, 403 `AuthorizationFailure` for writes.
    pub(crate) fn check_key(&self, partition_key: &str, row_key: &str) -> Result<()> {
        match (self.identity, self.entity_operation) {
            (Identity::Owner | Identity::Bearer(_), _) => Ok(()),
            (Identity::Sas(grant), Some(operation)) => {
                grant.allows_key(operation, partition_key, row_key)
            }
            // Asked for something else than entities: whoever asks now has made a mistake.
            (Identity::Sas(_), None) => Err(ErrorCode::AuthorizationFailure.into()),
        }
    }

    /// Whether the holder of an account key asks.
    pub(crate) fn is_of_owner(&self) -> bool {
        matches!(self.identity, Identity::Owner)
    }

    /// The keys that queries are narrowed to.
    pub(crate) fn key_range(&self) -> Option<&'a KeyRangeLimit> {
        match self.identity {
            Identity::Owner | Identity::Bearer(_) => None,
            Identity::Sas(grant) => grant.key_range(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::auth::sas::{KeyBound, Permissions, ResourceTypes};

    use super::*;

    fn entity(operation: EntityOperation) -> Access<'static> {
        Access::To(sas::Access::Entity { table: "people", operation })
    }

    fn signature_for(permissions: Permissions, partition: &str) -> Identity {
        let bound = || Some(KeyBound { partition_key: partition.into(), row_key: None });
        let range = KeyRangeLimit { start: bound(), end: bound() };
        Identity::Sas(Grant::Table { table: "people".into(), permissions, range })
    }

    #[test]
    fn there_is_no_permit_for_what_is_not_granted() {
        let reader = signature_for(Permissions::READ, "Sales");
        assert!(reader.authorize(entity(EntityOperation::Get)).is_ok());
        for access in
            [entity(EntityOperation::Insert), Access::To(sas::Access::SetServiceProperties)]
        {
            assert_eq!(reader.authorize(access).err().map(|error| error.status()), Some(403));
        }
    }

    /// A batch as such needs nothing, which is leave for none of its parts.
    #[test]
    fn each_part_of_a_batch_asks_for_itself() {
        let reader = signature_for(Permissions::READ, "Sales");
        let batch = reader.authorize(Access::OfEachPart).unwrap();
        assert!(batch.for_part(entity(EntityOperation::Insert)).is_err());
        assert!(batch.check_key("Sales", "1").is_err());
        let part = batch.for_part(entity(EntityOperation::Get)).unwrap();
        assert!(part.check_key("Sales", "1").is_ok());
        assert!(part.check_key("Marketing", "1").is_err());
    }

    #[test]
    fn policies_are_not_there_for_bearers() {
        let permissions = Permissions::READ | Permissions::WRITE | Permissions::LIST;
        let grant = Grant::Account { resource_types: ResourceTypes::ALL, permissions };
        let access = Access::To(sas::Access::TableAcl);
        let refused = Identity::Bearer(grant).authorize(access).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ResourceNotFound);
        assert!(Identity::Owner.authorize(access).is_ok());
    }
}
