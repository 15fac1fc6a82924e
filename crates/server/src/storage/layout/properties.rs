//! Service properties: `S . account id`, then a byte for the service, which tables do without.
//!
//! The value is a version byte and the XML document of Get Service Properties.

use bytes::{BufMut, Bytes, BytesMut};
use tavola_wire::Service;
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};

use super::{AccountId, Family, Key, KeyError, prefix};

const VERSION: u8 = 1;

pub(super) fn encode_key(account: AccountId, service: Service) -> Bytes {
    let mut key = prefix(Family::Properties, account.0, 1);
    match service {
        Service::Table => {}
        Service::Queue => key.put_u8(b'q'),
        Service::Blob => key.put_u8(b'b'),
    }
    key.freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    let service = match rest {
        [] => Service::Table,
        b"q" => Service::Queue,
        b"b" => Service::Blob,
        _ => return Err(KeyError("its key goes on after the account")),
    };
    Ok(Key::Properties { account: AccountId(id), service })
}

pub(crate) fn encode(properties: &ServiceProperties) -> Bytes {
    let document = properties.to_xml();
    let mut value = BytesMut::with_capacity(1 + document.len());
    value.put_u8(VERSION);
    value.put_slice(document.as_bytes());
    value.freeze()
}

/// Reads back what [`encode`] wrote; `None` if the bytes cannot have come from it.
pub(crate) fn decode(stored: &[u8]) -> Option<ServiceProperties> {
    let (&VERSION, document) = stored.split_first()? else { return None };
    let update = ServicePropertiesUpdate::parse(document).ok()?;
    Some(update.apply(&ServiceProperties::default()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tavola_wire::xml::service_properties::{CorsRule, Logging, Metrics, RetentionPolicy};

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    fn retention() -> impl Strategy<Value = RetentionPolicy> {
        prop::option::of(1..=365u16).prop_map(|days| RetentionPolicy { days })
    }

    fn metrics() -> impl Strategy<Value = Metrics> {
        let parts = (any::<Option<bool>>(), retention());
        parts.prop_map(|(include_apis, retention)| Metrics { include_apis, retention })
    }

    fn rule() -> impl Strategy<Value = CorsRule> {
        let origins = prop::collection::vec("[a-z]{1,8}", 1..3);
        let headers = || prop::collection::vec("[a-z]{1,8}", 0..3);
        let parts = (origins, 0..3600u32, headers(), headers());
        parts.prop_map(|(allowed_origins, max_age_seconds, exposed_headers, allowed_headers)| {
            CorsRule {
                allowed_origins,
                allowed_methods: vec!["GET".into(), "MERGE".into()],
                max_age_seconds,
                exposed_headers,
                allowed_headers,
            }
        })
    }

    fn any_properties() -> impl Strategy<Value = ServiceProperties> {
        let logging = (any::<[bool; 3]>(), retention());
        let logging = logging.prop_map(|([read, write, delete], retention)| Logging {
            read,
            write,
            delete,
            retention,
        });
        let rules = prop::collection::vec(rule(), 0..=5);
        (logging, metrics(), metrics(), rules).prop_map(
            |(logging, hour_metrics, minute_metrics, cors)| ServiceProperties {
                logging,
                hour_metrics,
                minute_metrics,
                cors,
            },
        )
    }

    proptest! {
        #[test]
        fn keys_are_read_back(account: u64) {
            for service in [Service::Blob, Service::Queue, Service::Table] {
                assert_key_round_trips(&Key::Properties { account: AccountId(account), service });
            }
        }

        #[test]
        fn properties_are_read_back(properties in any_properties()) {
            prop_assert_eq!(decode(&encode(&properties)), Some(properties));
        }
    }

    #[test]
    fn the_key_of_tables_ends_with_the_account() {
        assert_eq!(&encode_key(AccountId(7), Service::Table)[..], b"S\0\0\0\0\0\0\0\x07");
    }

    #[test]
    fn what_nobody_wrote_is_not_read() {
        let expected = Err(KeyError("its key goes on after the account"));
        assert_eq!(decode_key(1, b"t"), expected);
        assert_eq!(decode_key(1, b"qq"), expected);
        let mut value = encode(&ServiceProperties::default()).to_vec();
        value[0] = 2;
        assert_eq!(decode(&value), None);
        assert_eq!(decode(b"\x01<Other />"), None);
        assert_eq!(decode(b""), None);
    }
}
