"""azure-storage-queue 2.1.0: the last Python client of queues of the old generation.

It asks for version 2018-03-28, makes a queue only if it is missing by reading the answer's status, and signs with the
header order of its time.
"""

import logging
import warnings
from datetime import datetime, timedelta, timezone

warnings.simplefilter("ignore")

from azure.common import AzureConflictHttpError, AzureHttpError, AzureMissingResourceHttpError
from azure.storage.common.models import AccessPolicy, AccountPermissions, CorsRule, Logging, Metrics, ResourceTypes, RetentionPolicy
from azure.storage.common.retry import no_retry
from azure.storage.queue import QueueMessageFormat, QueuePermissions, QueueService

import suite
from suite import equal

LONG = 3600


def connect(connection_string=suite.CONNECTION_STRING, **options):
    service = QueueService(connection_string=connection_string, **options)
    service.retry = no_retry
    return service


service = connect()


class queue:
    """A queue that is removed again, with these messages."""

    def __init__(self, *texts):
        self.name, self.texts = suite.queue_name("pylegacy"), texts

    def __enter__(self):
        service.create_queue(self.name, fail_on_exist=True)
        for text in self.texts:
            service.put_message(self.name, text)
        return self.name

    def __exit__(self, *_):
        service.delete_queue(self.name)


def peek(name, using=service):
    return [message.content for message in using.peek_messages(name, num_messages=32)]


def refused(kind, status, code, call, *args, **kwargs):
    """Expects this error, with the code in the text, which is where this client keeps it."""
    try:
        call(*args, **kwargs)
    except kind as error:
        equal(error.status_code, status, f"status of {error}")
        assert code in f"{error} {getattr(error, 'error_code', '')}", error
        return error
    raise AssertionError(f"not refused, expected {code}")


def a_queue_is_created_found_listed_and_deleted():
    name = suite.queue_name("pylegacy")
    equal(service.exists(name), False)
    equal(service.create_queue(name), True)
    try:
        equal(service.create_queue(name), False)
        refused(AzureConflictHttpError, 409, "QueueAlreadyExists", service.create_queue, name, metadata={"a": "1"}, fail_on_exist=True)
        equal(service.exists(name), True)
        equal([one.name for one in service.list_queues(prefix=name)], [name])
    finally:
        equal(service.delete_queue(name), True)
    equal(service.delete_queue(name), False)


def queues_are_listed_in_pages_with_metadata():
    prefix = suite.queue_name("pylegacy")
    names = [f"{prefix}-{end}" for end in "cab"]
    for name in names:
        service.create_queue(name, metadata={"end": name[-1]})
    try:
        first = service.list_queues(prefix=prefix, num_results=2, include_metadata=True)
        rest = service.list_queues(prefix=prefix, include_metadata=True, marker=first.next_marker)
        found = [(one.name, one.metadata) for one in [*first, *rest]]
        equal(found, [(name, {"end": name[-1]}) for name in sorted(names)])
    finally:
        for name in names:
            service.delete_queue(name)


def metadata_comes_back_with_the_count():
    with queue("a", "b") as name:
        service.set_queue_metadata(name, {"one": "1", "two": "a b"})
        found = service.get_queue_metadata(name)
        equal((dict(found), int(found.approximate_message_count)), ({"one": "1", "two": "a b"}, 2))


def messages_are_put_peeked_got_and_deleted():
    with queue() as name:
        sent = service.put_message(name, "text")
        equal(peek(name), ["text"])
        [found] = service.get_messages(name, visibility_timeout=LONG)
        equal((found.id, found.content, int(found.dequeue_count)), (sent.id, "text", 1))
        equal(peek(name), [])
        service.delete_message(name, found.id, found.pop_receipt)
        refused(AzureMissingResourceHttpError, 404, "MessageNotFound", service.delete_message, name, found.id, found.pop_receipt)


def many_messages_come_in_order():
    with queue(*"abcd") as name:
        equal([one.content for one in service.get_messages(name, num_messages=3, visibility_timeout=LONG)], ["a", "b", "c"])
        equal([one.content for one in service.get_messages(name, num_messages=32)], ["d"])


def texts_come_back():
    # The client's default is to escape what is XML.
    texts = ["plain", "a<b> & 'c' \"d\"", "Grüße 日本語 😀", "  blanks  ", "line\nfeed\t", "&lt;"]
    with queue(*texts) as name:
        equal(peek(name), texts)


def encoded_texts_come_back():
    encoding = connect()
    encoding.encode_function, encoding.decode_function = QueueMessageFormat.text_base64encode, QueueMessageFormat.text_base64decode
    with queue() as name:
        encoding.put_message(name, "a\0b")
        equal(peek(name, encoding), ["a\0b"])
        equal(peek(name), ["YQBi"])


def an_update_changes_text_and_visibility():
    with queue("old") as name:
        [found] = service.get_messages(name, visibility_timeout=LONG)
        updated = service.update_message(name, found.id, found.pop_receipt, 0, "new")
        assert updated.pop_receipt != found.pop_receipt
        equal(peek(name), ["new"])
        refused(AzureMissingResourceHttpError, 404, "MessageNotFound", service.update_message, name, found.id, found.pop_receipt, 0)


def times_are_kept():
    with queue() as name:
        service.put_message(name, "hidden", visibility_timeout=LONG, time_to_live=2 * LONG)
        equal(peek(name), [])
        sent = service.put_message(name, "for ever", time_to_live=-1)
        equal(sent.expiration_time.year, 9999)
        refused(AzureHttpError, 400, "InvalidQueryParameterValue", service.put_message, name, "x", visibility_timeout=5, time_to_live=5)


def clear_removes_all():
    with queue("a", "b") as name:
        service.clear_messages(name)
        equal(peek(name), [])


def a_missing_queue_is_named():
    name = suite.queue_name("pylegacy")
    refused(AzureMissingResourceHttpError, 404, "QueueNotFound", service.put_message, name, "x")
    refused(AzureMissingResourceHttpError, 404, "QueueNotFound", service.peek_messages, name)


def a_text_that_is_too_large_is_refused():
    with queue() as name:
        service.put_message(name, "x" * 65536)
        refused(AzureHttpError, 413, "RequestBodyTooLarge", service.put_message, name, "x" * 65537)


def policies_come_back_and_are_cleared():
    with queue() as name:
        service.set_queue_acl(name, {"reader": AccessPolicy(permission=QueuePermissions.READ, expiry="2099-01-01T00:00:00Z")})
        found = service.get_queue_acl(name)
        equal((list(found), found["reader"].permission), (["reader"], "r"))
        service.set_queue_acl(name)
        equal(dict(service.get_queue_acl(name)), {})


def _in_an_hour():
    return datetime.now(timezone.utc) + timedelta(hours=1)


def _with(sas):
    return connect(f"QueueEndpoint={suite.ENDPOINT};SharedAccessSignature={sas}")


def a_queue_signature_allows_what_it_names():
    with queue("m") as name:
        reader = _with(service.generate_queue_shared_access_signature(name, QueuePermissions.READ, _in_an_hour()))
        equal(peek(name, reader), ["m"])
        refused(AzureHttpError, 403, "AuthorizationPermissionMismatch", reader.put_message, name, "x")
        worker = _with(service.generate_queue_shared_access_signature(name, QueuePermissions.PROCESS + QueuePermissions.ADD, _in_an_hour()))
        worker.put_message(name, "x")
        equal(len(worker.get_messages(name, num_messages=32)), 2)


def a_queue_signature_of_a_policy_is_revoked_with_it():
    with queue("m") as name:
        service.set_queue_acl(name, {"reader": AccessPolicy(permission=QueuePermissions.READ, expiry="2099-01-01T00:00:00Z")})
        reader = _with(service.generate_queue_shared_access_signature(name, id="reader"))
        equal(peek(name, reader), ["m"])
        service.set_queue_acl(name)
        refused(AzureHttpError, 403, "AuthenticationFailed", reader.peek_messages, name)


def an_account_signature_reads_and_does_not_write():
    with queue("m") as name:
        sas = service.generate_account_shared_access_signature(ResourceTypes.OBJECT, AccountPermissions.READ, _in_an_hour())
        reader = _with(sas)
        equal(peek(name, reader), ["m"])
        refused(AzureHttpError, 403, "AuthorizationPermissionMismatch", reader.put_message, name, "x")


def a_wrong_key_is_refused():
    wrong = connect(suite.CONNECTION_STRING.replace(suite.KEY, "d3Jvbmc="))
    refused(AzureHttpError, 403, "AuthenticationFailed", wrong.list_queues)


def service_properties_come_back():
    before = service.get_queue_service_properties()
    try:
        kept = RetentionPolicy(enabled=True, days=5)
        service.set_queue_service_properties(
            logging=Logging(read=True, write=False, delete=True, retention_policy=kept), hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=kept),
            cors=[CorsRule(["https://a.example"], ["GET", "PUT"], max_age_in_seconds=60)],
        )
        found = service.get_queue_service_properties()
        equal((found.logging.read, found.logging.delete, found.hour_metrics.retention_policy.days, len(found.cors)), (True, True, 5, 1))
    finally:
        service.set_queue_service_properties(before.logging, before.hour_metrics, before.minute_metrics, before.cors)


def the_secondary_answers_with_statistics():
    secondary = connect(f"{suite.CONNECTION_STRING}QueueSecondaryEndpoint={suite.ENDPOINT}-secondary")
    equal(secondary.get_queue_service_stats().geo_replication.status, "live")


def the_emulator_is_found_at_its_own_address():
    with queue("m") as name:
        equal(peek(name, QueueService(is_emulated=True)), ["m"])


CASES = [
    a_queue_is_created_found_listed_and_deleted,
    queues_are_listed_in_pages_with_metadata,
    metadata_comes_back_with_the_count,
    messages_are_put_peeked_got_and_deleted,
    many_messages_come_in_order,
    texts_come_back,
    encoded_texts_come_back,
    an_update_changes_text_and_visibility,
    times_are_kept,
    clear_removes_all,
    a_missing_queue_is_named,
    a_text_that_is_too_large_is_refused,
    policies_come_back_and_are_cleared,
    a_queue_signature_allows_what_it_names,
    a_queue_signature_of_a_policy_is_revoked_with_it,
    an_account_signature_reads_and_does_not_write,
    a_wrong_key_is_refused,
    service_properties_come_back,
    the_secondary_answers_with_statistics,
]
if suite.ON_DEVELOPMENT_PORT:
    CASES.append(the_emulator_is_found_at_its_own_address)

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    suite.report_client("azure-storage-queue")
    suite.run_cases(CASES)
