//! Tokens of a queue: the one that the request addresses, for the token does not name it.

use super::access::{Access, QueueAccess};
use super::fields::SasFields;
use super::need::{Need, check_permissions};
use super::values::{Permissions, ResourceTypes, SasVersion};
use crate::error::Result;
use crate::error_code::ErrorCode;
use crate::service::Service;

impl QueueAccess {
    /// Whether an account token is for such resources, and which letters it needs.
    ///
    /// # Errors
    /// 403 `AuthorizationFailure` for what only the owner may do.
    pub(super) fn account_need(self, types: ResourceTypes) -> Result<(bool, Need)> {
        // The documentation says object, others ask for container.
        let object_or_container = types.object || types.container;
        Ok(match self {
            Self::ListQueues => (types.service, Need::all(Permissions::LIST)),
            Self::CreateQueue => (types.container, Need::CREATE_OR_WRITE),
            Self::DeleteQueue => (types.container, Need::all(Permissions::DELETE)),
            Self::GetMetadata => (types.container, Need::all(Permissions::READ)),
            Self::SetMetadata => (types.container, Need::all(Permissions::WRITE)),
            Self::Acl => return Err(ErrorCode::AuthorizationFailure.into()),
            Self::PutMessage => (types.object, Need::all(Permissions::ADD)),
            Self::GetMessages => (types.object, Need::all(Permissions::PROCESS)),
            Self::PeekMessages => (types.object, Need::all(Permissions::READ)),
            Self::UpdateMessage => (object_or_container, Need::all(Permissions::UPDATE)),
            Self::DeleteMessage => (object_or_container, Need::all(Permissions::PROCESS)),
            Self::ClearMessages => (object_or_container, Need::all(Permissions::DELETE)),
        })
    }

    /// What the token of a queue needs; `None` for what no such token can do.
    fn service_need(self) -> Option<Permissions> {
        Some(match self {
            Self::PeekMessages | Self::GetMetadata => Permissions::READ,
            Self::PutMessage => Permissions::ADD,
            Self::UpdateMessage => Permissions::UPDATE,
            Self::GetMessages | Self::DeleteMessage => Permissions::PROCESS,
            Self::ListQueues
            | Self::CreateQueue
            | Self::DeleteQueue
            | Self::SetMetadata
            | Self::Acl
            | Self::ClearMessages => return None,
        })
    }
}

/// Appends the string to sign. The last line has no newline.
pub(super) fn push_string_to_sign(
    out: &mut String,
    fields: &SasFields<'_>,
    account: &str,
    queue: &str,
    version: SasVersion,
) {
    version.push_service_start(out, fields, Service::Queue, account);
    out.push_str(queue);
    version.push_service_end(out, fields);
}

pub(super) fn allows(granted: Permissions, access: Access<'_>) -> Result<()> {
    let need = match access {
        Access::Queue(access) => access.service_need(),
        _ => None,
    };
    check_permissions(granted, Need::all(need.ok_or(ErrorCode::AuthorizationFailure)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fields::tests::{borrow, decode};
    use super::super::{
        Addressed, Grant, IpRange, Protocols, QueueSasSpec, RequestOrigin, SasToken,
    };
    use super::*;
    use crate::auth::key::AccountKey;
    use crate::auth::key::tests::dev_key;
    use crate::auth::policy::{AccessPolicy, SignedIdentifier};
    use crate::ticks::Ticks;

    const ACCOUNT: &str = "devstoreaccount1";
    const SERVICE: &str = "sv=2025-01-05&st=2026-11-16T11%3A00%3A00Z&se=2026-11-16T13%3A00%3A00Z&spr=https%2Chttp&sp=raup&sig=k31BvUinNT1YYtDRnF99KWC04Q5ACEaBJj%2FAydmYjyU%3D";
    const POLICY: &str =
        "sv=2025-01-05&si=readers&sig=TjDCicp2UP9VIIxhjj3%2FUQdMWjUuAQJNQ3eVDLyAgTw%3D";
    const ACCOUNT_SAS: &str = "sv=2025-01-05&ss=q&srt=o&sp=rap&se=2026-11-16T13%3A00%3A00Z&spr=https%2Chttp&sig=ycpyUnNBDd5dXSDFMBC97AEVjmcEevCc7Ee9LHysCAE%3D";

    const ALL: [QueueAccess; 12] = [
        QueueAccess::ListQueues,
        QueueAccess::CreateQueue,
        QueueAccess::DeleteQueue,
        QueueAccess::GetMetadata,
        QueueAccess::SetMetadata,
        QueueAccess::Acl,
        QueueAccess::PutMessage,
        QueueAccess::GetMessages,
        QueueAccess::PeekMessages,
        QueueAccess::UpdateMessage,
        QueueAccess::DeleteMessage,
        QueueAccess::ClearMessages,
    ];

    fn ticks(text: &str) -> Ticks {
        Ticks::parse_iso(text).unwrap()
    }

    fn grant(queue: &str, query: &str, policies: &[SignedIdentifier]) -> Result<Grant> {
        let pairs = decode(query);
        let token = SasToken::parse(Addressed::Queue(queue.into()), borrow(&pairs))?.unwrap();
        let now = ticks("2026-11-16T12:00:00Z");
        let origin = RequestOrigin { now, client: [10, 0, 0, 1].into(), https: true };
        token.verify(ACCOUNT, &[dev_key()])?.grant(&origin, policies)
    }

    fn code<T>(result: Result<T>) -> Option<ErrorCode> {
        result.err().map(|error| error.code())
    }

    /// Which is what lets a connection go on with the token of its last request.
    #[test]
    fn a_token_of_a_queue_is_for_that_queue_and_one_of_the_account_for_all() {
        let is_for = |query: &str, first: &str, then: Addressed<'_>| {
            let pairs = decode(query);
            let token = SasToken::parse(Addressed::Queue(first.into()), borrow(&pairs)).unwrap();
            token.unwrap().verify(ACCOUNT, &[dev_key()]).unwrap().is_for(&then)
        };
        assert!(is_for(SERVICE, "orders", Addressed::Queue("orders".into())));
        assert!(!is_for(SERVICE, "orders", Addressed::Queue("order".into())));
        assert!(!is_for(SERVICE, "orders", Addressed::Queue("".into())));
        assert!(!is_for(SERVICE, "orders", Addressed::Table));
        assert!(is_for(ACCOUNT_SAS, "orders", Addressed::Queue("others".into())));
        assert!(is_for(ACCOUNT_SAS, "orders", Addressed::Queue("".into())));
        assert!(!is_for(ACCOUNT_SAS, "orders", Addressed::Table));
    }

    /// The vectors of the reference for queues, section 12.
    #[test]
    fn vectors() {
        let granted = grant("orders", SERVICE, &[]).unwrap();
        let all = Permissions::parse_queue("raup").unwrap();
        assert_eq!(granted, Grant::Queue { permissions: all });
        let create = granted.allows(Access::Queue(QueueAccess::CreateQueue));
        assert_eq!(code(create), Some(ErrorCode::AuthorizationFailure));

        let policy = AccessPolicy {
            start: Some(ticks("2026-11-16T11:00:00Z")),
            expiry: Some(ticks("2026-11-17T00:00:00Z")),
            permission: Permissions::parse_queue("r"),
        };
        let readers = SignedIdentifier { id: "readers".into(), access_policy: Some(policy) };
        let granted = grant("orders", POLICY, std::slice::from_ref(&readers)).unwrap();
        granted.allows(Access::Queue(QueueAccess::PeekMessages)).unwrap();
        let put = granted.allows(Access::Queue(QueueAccess::PutMessage));
        assert_eq!(code(put), Some(ErrorCode::AuthorizationPermissionMismatch));
        let failed = Some(ErrorCode::AuthenticationFailed);
        assert_eq!(code(grant("orders", POLICY, &[])), failed);

        let granted = grant("orders", ACCOUNT_SAS, &[]).unwrap();
        granted.allows(Access::Queue(QueueAccess::GetMessages)).unwrap();
        // Another queue, no queue at all; the account's token has none.
        for queue in ["orders2", "Orders", ""] {
            assert_eq!(code(grant(queue, SERVICE, &[])), failed, "{queue}");
            assert_eq!(
                code(grant(queue, POLICY, std::slice::from_ref(&readers))),
                failed,
                "{queue}"
            );
            grant(queue, ACCOUNT_SAS, &[]).unwrap();
        }
    }

    #[test]
    fn a_token_of_another_service_is_refused() {
        let pairs = decode(ACCOUNT_SAS);
        let token = SasToken::parse(Addressed::Table, borrow(&pairs)).unwrap().unwrap();
        let now = ticks("2026-11-16T12:00:00Z");
        let origin = RequestOrigin { now, client: [10, 0, 0, 1].into(), https: true };
        let refusal = token.verify(ACCOUNT, &[dev_key()]).unwrap().grant(&origin, &[]);
        assert_eq!(code(refusal), Some(ErrorCode::AuthorizationServiceMismatch));
        // Without a table it is no token of tables, and for queues it needs none.
        let pairs = decode(SERVICE);
        let refusal = SasToken::parse(Addressed::Table, borrow(&pairs)).map(drop);
        assert_eq!(code(refusal), Some(ErrorCode::AuthenticationFailed));
    }

    #[test]
    fn strings_to_sign() {
        let string = |version: &str| {
            let pairs = decode("sp=P&st=S&se=E&si=I&sip=A&spr=R&tn=no&sr=no&spk=no&ses=no");
            let mut fields = SasFields::from_pairs(Service::Queue, borrow(&pairs));
            fields.set(super::super::fields::Field::Version, version.to_owned());
            let mut string = String::new();
            let version = SasVersion::parse(version).unwrap();
            push_string_to_sign(&mut string, &fields, "acct", "q", version);
            string
        };
        assert_eq!(string("2025-01-05"), "P\nS\nE\n/queue/acct/q\nI\nA\nR\n2025-01-05");
        assert_eq!(string("2015-04-05"), "P\nS\nE\n/queue/acct/q\nI\nA\nR\n2015-04-05");
        assert_eq!(string("2015-02-21"), "P\nS\nE\n/queue/acct/q\nI\n2015-02-21");
        assert_eq!(string("2012-02-12"), "P\nS\nE\n/acct/q\nI\n2012-02-12");
    }

    /// The tables of the reference for queues, sections 7.3 and 7.4: operation, resource types, letters of an account
    /// token, letter of a queue token.
    #[test]
    fn operations_and_their_letters() {
        let rows = [
            (QueueAccess::ListQueues, "s", "l", ""),
            (QueueAccess::CreateQueue, "c", "cw", ""),
            (QueueAccess::DeleteQueue, "c", "d", ""),
            (QueueAccess::GetMetadata, "c", "r", "r"),
            (QueueAccess::SetMetadata, "c", "w", ""),
            (QueueAccess::Acl, "", "", ""),
            (QueueAccess::PutMessage, "o", "a", "a"),
            (QueueAccess::GetMessages, "o", "p", "p"),
            (QueueAccess::PeekMessages, "o", "r", "r"),
            (QueueAccess::UpdateMessage, "oc", "u", "u"),
            (QueueAccess::DeleteMessage, "oc", "p", "p"),
            (QueueAccess::ClearMessages, "oc", "d", ""),
        ];
        assert_eq!(rows.map(|row| row.0), ALL);
        for (access, types, account_letters, letter) in rows {
            for one_type in ["s", "c", "o"] {
                for one_letter in "rwdlacup".chars() {
                    let resource_types = ResourceTypes::parse(one_type).unwrap();
                    let permissions = Permissions::parse_account(&one_letter.to_string()).unwrap();
                    let granted = Grant::Account { resource_types, permissions };
                    let expected = if types.is_empty() {
                        Some(ErrorCode::AuthorizationFailure)
                    } else if !types.contains(one_type) {
                        Some(ErrorCode::AuthorizationResourceTypeMismatch)
                    } else if !account_letters.contains(one_letter) {
                        Some(ErrorCode::AuthorizationPermissionMismatch)
                    } else {
                        None
                    };
                    let answer = code(granted.allows(Access::Queue(access)));
                    assert_eq!(answer, expected, "{access:?} {one_type} {one_letter}");
                }
            }
            for one_letter in ["r", "a", "u", "p"] {
                let permissions = Permissions::parse_queue(one_letter).unwrap();
                let expected = match letter {
                    "" => Some(ErrorCode::AuthorizationFailure),
                    letter if letter == one_letter => None,
                    _ => Some(ErrorCode::AuthorizationPermissionMismatch),
                };
                let answer = Grant::Queue { permissions }.allows(Access::Queue(access));
                assert_eq!(code(answer), expected, "{access:?} {one_letter}");
            }
        }
        let properties = Grant::Queue { permissions: Permissions::parse_queue("raup").unwrap() };
        let refusal = properties.allows(Access::GetServiceProperties);
        assert_eq!(code(refusal), Some(ErrorCode::AuthorizationFailure));
    }

    prop_compose! {
        fn any_spec()(
            version in prop::sample::select(vec!["2015-04-05", "2019-02-02", "2025-01-05"]),
            queue in "[a-z0-9-]{3,9}",
            letters in prop::sample::subsequence(vec!['r', 'a', 'u', 'p'], 1..=4),
            start in any::<bool>(),
            https in any::<bool>(),
            address in any::<bool>(),
        ) -> QueueSasSpec {
            let letters: String = letters.into_iter().collect();
            let permissions = Permissions::parse_queue(&letters).unwrap();
            QueueSasSpec {
                version: SasVersion::parse(version).unwrap(),
                start: start.then(|| ticks("2026-11-01T01:02:03Z")),
                protocols: https.then_some(Protocols::HttpsOnly),
                ip_range: IpRange::parse("10.0.0.0-10.0.0.9").filter(|_| address),
                ..QueueSasSpec::new(queue, permissions, ticks("2030-01-01"))
            }
        }
    }

    proptest! {
        #[test]
        fn a_token_round_trips_and_resists(spec in any_spec(), at in 0usize..40, with in "[0-9]") {
            let query = spec.sign(ACCOUNT, &dev_key());
            let expected = Grant::Queue { permissions: spec.permissions.unwrap() };
            prop_assert_eq!(grant(&spec.queue, &query, &[]).unwrap(), expected);
            let failed = Some(ErrorCode::AuthenticationFailed);
            prop_assert_eq!(code(grant(&format!("{}x", spec.queue), &query, &[])), failed);
            let forged = spec.sign(ACCOUNT, &AccountKey::from_bytes(b"k"));
            prop_assert_eq!(code(grant(&spec.queue, &forged, &[])), failed);
            let pairs = decode(&query);
            for index in 0..pairs.len() {
                let print = |pairs: &[(String, String)]| {
                    SasFields::from_pairs(Service::Queue, borrow(pairs)).to_query()
                };
                let mut changed = pairs.clone();
                let value = &mut changed[index].1;
                let at = at % value.len();
                let other = if value[at..].starts_with(&with) { "~" } else { &with };
                value.replace_range(at..=at, other);
                prop_assert_eq!(code(grant(&spec.queue, &print(&changed), &[])), failed);
                if pairs[index].0 != "sig" {
                    let mut dropped = pairs.clone();
                    dropped.remove(index);
                    prop_assert_eq!(code(grant(&spec.queue, &print(&dropped), &[])), failed);
                }
            }
            for added in ["st=2020-01-01", "si=a", "sip=10.0.0.1", "spr=https"] {
                let name = added.split('=').next().unwrap();
                if !pairs.iter().any(|(known, _)| known == name) {
                    let more = format!("{query}&{added}");
                    prop_assert_eq!(code(grant(&spec.queue, &more, &[])), failed, "{}", more);
                }
            }
        }
    }
}
