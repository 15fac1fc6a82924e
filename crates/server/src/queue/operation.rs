//! The operations of the queue service: the table of them, which one a request is, and what each needs.

use std::borrow::Cow;

use tavola_wire::auth::sas::{self, QueueAccess};
use tavola_wire::queue::body::BODY_BYTES_MAX;
use tavola_wire::queue::parameters::{invalid, is_peek};
use tavola_wire::queue::{QueueName, ResourcePath};
use tavola_wire::uri::QueryString;
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, StorageError};

use crate::auth::permit::Access;
use crate::error::Result;
use crate::operations::operations;
use crate::request::body::BodyLimit;

const BODY: BodyLimit = BodyLimit::Whole(BODY_BYTES_MAX);

operations! {
    /// An operation of the queue service and what it addresses.
    #[derive(Clone, Debug)]
    pub(crate) enum QueueOperation<'a> as QueueOperationKind {
        ListQueues                        => Read, BODY;
        GetServiceProperties              => Read, BODY;
        SetServiceProperties              => Write, BODY;
        GetServiceStats                   => Read, BODY;
        CreateQueue(QueueName<'a>)        => Write, BODY;
        DeleteQueue(QueueName<'a>)        => Write, BODY;
        GetQueueMetadata(QueueName<'a>)   => Read, BODY;
        SetQueueMetadata(QueueName<'a>)   => Write, BODY;
        GetQueueAcl(QueueName<'a>)        => Read, BODY;
        SetQueueAcl(QueueName<'a>)        => Write, BODY;
        PutMessage(QueueName<'a>)         => Write, BODY;
        GetMessages(QueueName<'a>)        => Write, BODY;
        PeekMessages(QueueName<'a>)       => Read, BODY;
        ClearMessages(QueueName<'a>)      => Write, BODY;
        UpdateMessage(MessageAddress<'a>) => Write, BODY;
        DeleteMessage(MessageAddress<'a>) => Write, BODY;
    }
}

/// One message, as a URL names it.
#[derive(Clone, Debug)]
pub(crate) struct MessageAddress<'a> {
    pub queue: QueueName<'a>,
    /// Whatever the client wrote.
    pub id: Cow<'a, str>,
}

/// The operation that a verb on a resource is.
///
/// # Errors
/// 400 for a query that does not go with the resource, 405 for a verb that does not.
pub(super) fn route<'a>(
    verb: Verb,
    resource: ResourcePath<'a>,
    query: &QueryString<'_>,
) -> Result<QueueOperation<'a>> {
    let (restype, comp) = (given(query, "restype")?, given(query, "comp")?);
    match resource {
        ResourcePath::Service => service_operation(verb, restype, comp),
        ResourcePath::Queue(name) => {
            refuse("restype", restype)?;
            queue_operation(verb, name, comp)
        }
        ResourcePath::Messages(name) => {
            refuse("restype", restype)?;
            refuse("comp", comp)?;
            match verb {
                Verb::Post => Ok(QueueOperation::PutMessage(name)),
                Verb::Get if is_peek(query) => Ok(QueueOperation::PeekMessages(name)),
                Verb::Get => Ok(QueueOperation::GetMessages(name)),
                // Also with a receipt: whoever forgets the id clears the queue, as on the live service.
                Verb::Delete => Ok(QueueOperation::ClearMessages(name)),
                _ => Err(unsupported_verb()),
            }
        }
        ResourcePath::Message(queue, id) => {
            refuse("restype", restype)?;
            refuse("comp", comp)?;
            let address = MessageAddress { queue, id };
            match verb {
                Verb::Put => Ok(QueueOperation::UpdateMessage(address)),
                Verb::Delete => Ok(QueueOperation::DeleteMessage(address)),
                _ => Err(unsupported_verb()),
            }
        }
    }
}

/// What a parameter says that chooses the operation; without a value it says nothing.
///
/// # Errors
/// 400 `InvalidQueryParameterValue` if it says two things: the one that would not count may be what was meant.
fn given<'q>(query: &'q QueryString<'_>, name: &'static str) -> Result<Option<&'q str>> {
    let is_given =
        |(other, value): &(&str, &str)| other.eq_ignore_ascii_case(name) && !value.is_empty();
    let mut values = query.iter().filter(is_given).map(|(_, value)| value);
    let first = values.next();
    match values.find(|other| Some(*other) != first) {
        None => Ok(first),
        Some(other) => Err(invalid(name, other, UNKNOWN)),
    }
}

/// Refuses a parameter that means nothing for a resource: it asks for another operation than the one that would be done.
fn refuse(name: &'static str, value: Option<&str>) -> Result<()> {
    value.map_or(Ok(()), |value| Err(invalid(name, value, UNKNOWN)))
}

fn service_operation<'a>(
    verb: Verb,
    restype: Option<&str>,
    comp: Option<&str>,
) -> Result<QueueOperation<'a>> {
    match (restype, comp, verb) {
        (None, Some("list"), Verb::Get) => Ok(QueueOperation::ListQueues),
        (Some("service"), Some("properties"), Verb::Get) => {
            Ok(QueueOperation::GetServiceProperties)
        }
        (Some("service"), Some("properties"), Verb::Put) => {
            Ok(QueueOperation::SetServiceProperties)
        }
        (Some("service"), Some("stats"), Verb::Get) => Ok(QueueOperation::GetServiceStats),
        // There are no keys to delegate.
        (Some("service"), Some("userdelegationkey"), Verb::Post) => {
            Err(ErrorCode::NotImplemented.into())
        }
        (None, Some("list") | None, _)
        | (Some("service"), Some("properties" | "stats" | "userdelegationkey"), _) => {
            Err(unsupported_verb())
        }
        (Some("service"), comp, _) => Err(unknown_comp(comp.unwrap_or_default())),
        (Some(restype), ..) => Err(invalid("restype", restype, UNKNOWN)),
        (None, Some(comp), _) => Err(unknown_comp(comp)),
    }
}

fn queue_operation<'a>(
    verb: Verb,
    name: QueueName<'a>,
    comp: Option<&str>,
) -> Result<QueueOperation<'a>> {
    match (comp, verb) {
        (None, Verb::Put) => Ok(QueueOperation::CreateQueue(name)),
        (None, Verb::Delete) => Ok(QueueOperation::DeleteQueue(name)),
        (Some("metadata"), Verb::Get | Verb::Head) => Ok(QueueOperation::GetQueueMetadata(name)),
        (Some("metadata"), Verb::Put) => Ok(QueueOperation::SetQueueMetadata(name)),
        (Some("acl"), Verb::Get | Verb::Head) => Ok(QueueOperation::GetQueueAcl(name)),
        (Some("acl"), Verb::Put) => Ok(QueueOperation::SetQueueAcl(name)),
        (None | Some("metadata" | "acl"), _) => Err(unsupported_verb()),
        (Some(comp), _) => Err(unknown_comp(comp)),
    }
}

const UNKNOWN: &str = "Invalid query parameter value.";

fn unknown_comp(comp: &str) -> StorageError {
    invalid("comp", comp, UNKNOWN)
}

/// In the words of queues, which differ from those of tables.
pub(super) fn unsupported_verb() -> StorageError {
    let words = "The resource doesn't support specified Http Verb.";
    StorageError::with_detail(ErrorCode::UnsupportedHttpVerb, words)
}

/// What an operation needs.
pub(super) fn access(operation: &QueueOperation<'_>) -> Access<'static> {
    Access::To(sas::Access::Queue(match operation {
        QueueOperation::GetServiceProperties => {
            return Access::To(sas::Access::GetServiceProperties);
        }
        QueueOperation::SetServiceProperties => {
            return Access::To(sas::Access::SetServiceProperties);
        }
        QueueOperation::GetServiceStats => return Access::To(sas::Access::GetServiceStats),
        QueueOperation::ListQueues => QueueAccess::ListQueues,
        QueueOperation::CreateQueue(_) => QueueAccess::CreateQueue,
        QueueOperation::DeleteQueue(_) => QueueAccess::DeleteQueue,
        QueueOperation::GetQueueMetadata(_) => QueueAccess::GetMetadata,
        QueueOperation::SetQueueMetadata(_) => QueueAccess::SetMetadata,
        QueueOperation::GetQueueAcl(_) | QueueOperation::SetQueueAcl(_) => QueueAccess::Acl,
        QueueOperation::PutMessage(_) => QueueAccess::PutMessage,
        QueueOperation::GetMessages(_) => QueueAccess::GetMessages,
        QueueOperation::PeekMessages(_) => QueueAccess::PeekMessages,
        QueueOperation::ClearMessages(_) => QueueAccess::ClearMessages,
        QueueOperation::UpdateMessage(_) => QueueAccess::UpdateMessage,
        QueueOperation::DeleteMessage(_) => QueueAccess::DeleteMessage,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(method: &str, path: &str, query: &str) -> String {
        let routed = Verb::resolve(method, None).and_then(|verb| {
            let query = QueryString::parse(query)?;
            route(verb, ResourcePath::parse(path)?, &query)
        });
        match routed {
            Ok(operation) => QueueOperation::SPECS[operation.index()].name.to_owned(),
            Err(error) => format!("{} {}", error.status(), error.code().as_str()),
        }
    }

    #[test]
    fn every_operation_has_its_route() {
        for (method, path, query, expected) in [
            ("GET", "/", "comp=list", "ListQueues"),
            ("GET", "", "Comp=list&prefix=a", "ListQueues"),
            ("GET", "/", "restype=service&comp=properties", "GetServiceProperties"),
            ("PUT", "/", "restype=service&comp=properties", "SetServiceProperties"),
            ("GET", "/", "restype=service&comp=stats", "GetServiceStats"),
            ("PUT", "/abc", "", "CreateQueue"),
            ("PUT", "/abc", "comp=", "CreateQueue"),
            ("DELETE", "/abc", "timeout=30", "DeleteQueue"),
            ("GET", "/abc", "comp=metadata", "GetQueueMetadata"),
            ("HEAD", "/abc", "comp=metadata", "GetQueueMetadata"),
            ("PUT", "/abc", "comp=metadata", "SetQueueMetadata"),
            ("GET", "/abc", "comp=acl", "GetQueueAcl"),
            ("HEAD", "/abc", "comp=acl", "GetQueueAcl"),
            ("PUT", "/abc", "comp=acl", "SetQueueAcl"),
            ("POST", "/abc/messages", "", "PutMessage"),
            ("GET", "/abc/messages", "", "GetMessages"),
            ("GET", "/abc/messages", "peekonly=false", "GetMessages"),
            ("GET", "/abc/messages", "PeekOnly=true", "PeekMessages"),
            ("DELETE", "/abc/messages", "", "ClearMessages"),
            ("DELETE", "/abc/messages", "popreceipt=AAAA", "ClearMessages"),
            ("PUT", "/abc/messages/1", "popreceipt=AAAA&visibilitytimeout=0", "UpdateMessage"),
            ("DELETE", "/abc/messages/1", "popreceipt=AAAA", "DeleteMessage"),
        ] {
            assert_eq!(name(method, path, query), expected, "{method} {path} {query}");
        }
    }

    #[test]
    fn everything_else_is_told() {
        for (method, path, query, expected) in [
            ("GET", "/abc", "", "405 UnsupportedHttpVerb"),
            ("POST", "/abc", "", "405 UnsupportedHttpVerb"),
            ("PUT", "/abc/messages", "", "405 UnsupportedHttpVerb"),
            ("GET", "/abc/messages/1", "", "405 UnsupportedHttpVerb"),
            ("PUT", "/", "comp=list", "405 UnsupportedHttpVerb"),
            ("GET", "/", "", "405 UnsupportedHttpVerb"),
            ("GET", "/", "comp=other", "400 InvalidQueryParameterValue"),
            ("GET", "/", "restype=account&comp=properties", "400 InvalidQueryParameterValue"),
            ("PUT", "/abc", "comp=other", "400 InvalidQueryParameterValue"),
            ("POST", "/", "restype=service&comp=userdelegationkey", "501 NotImplemented"),
            ("GET", "/", "restype=service&comp=list", "400 InvalidQueryParameterValue"),
            ("GET", "/", "comp=list&comp=properties", "400 InvalidQueryParameterValue"),
            ("PUT", "/abc", "restype=queue", "400 InvalidQueryParameterValue"),
            ("GET", "/abc/other", "", "400 InvalidUri"),
            ("PUT", "/Abc", "", "400 InvalidResourceName"),
        ] {
            assert_eq!(name(method, path, query), expected, "{method} {path} {query}");
        }
    }

    /// Nothing is deleted, cleared or claimed by a request that asks for something else.
    #[test]
    fn comp_and_restype_are_refused_where_they_mean_nothing() {
        let refused = "400 InvalidQueryParameterValue";
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE"] {
            for path in ["/abc", "/abc/messages", "/abc/messages/1"] {
                for query in [
                    "restype=container",
                    "RESTYPE=service&comp=properties",
                    "restype=queue&comp=metadata",
                    "comp=list",
                    "comp=&Comp=other",
                    "comp=metadata&comp=acl",
                ] {
                    assert_eq!(name(method, path, query), refused, "{method} {path}?{query}");
                }
            }
            for path in ["/abc/messages", "/abc/messages/1"] {
                for query in ["comp=metadata", "comp=acl", "popreceipt=AAAA&comp=metadata"] {
                    assert_eq!(name(method, path, query), refused, "{method} {path}?{query}");
                }
            }
        }
        // Said twice is said once, and an empty one says nothing.
        assert_eq!(name("PUT", "/abc", "comp=metadata&COMP=metadata"), "SetQueueMetadata");
        assert_eq!(name("DELETE", "/abc/messages", "comp=&restype="), "ClearMessages");
    }
}
