"""azure-cli: `az storage queue`, `message`, `cors`, `logging` and `metrics`, one process a command as in a script."""

import suite
from az import BY_CONNECTION_STRING, CONFIGURATION, NOT_AUTHENTICATED, NOT_PERMITTED, az, in_an_hour, invoke, refused
from az_properties import properties_cases
from suite import equal

LONG = "3600"


class queue:
    """A queue that is removed again, with these messages."""

    def __init__(self, *texts):
        self.name, self.texts = suite.queue_name("azcli"), texts

    def __enter__(self):
        equal(az("queue", "create", "--name", self.name), {"created": True})
        for text in self.texts:
            put(self.name, text)
        return self.name

    def __exit__(self, *_):
        az("queue", "delete", "--name", self.name)


def put(name, text, *options, **more):
    return az("message", "put", "-q", name, "--content", text, *options, **more)


def peek(name, **more):
    return [one["content"] for one in az("message", "peek", "-q", name, "--num-messages", "32", **more)]


def get(name, *options, **more):
    return az("message", "get", "-q", name, "--visibility-timeout", LONG, *options, **more)


def queues_are_created_found_listed_and_deleted():
    name = suite.queue_name("azcli")
    equal(az("queue", "exists", "--name", name), {"exists": False})
    equal(az("queue", "create", "--name", name), {"created": True})
    try:
        equal(az("queue", "create", "--name", name), {"created": False})
        refused("already exists", "queue", "create", "--name", name, "--fail-on-exist")
        equal(az("queue", "exists", "--name", name), {"exists": True})
        assert name in [one["name"] for one in az("queue", "list")]
        equal([one["name"] for one in az("queue", "list", "--prefix", name)], [name])
    finally:
        equal(az("queue", "delete", "--name", name), {"deleted": True})
    equal(az("queue", "delete", "--name", name), {"deleted": False})
    equal(az("queue", "exists", "--name", name), {"exists": False})


def queues_are_listed_from_a_marker():
    with queue() as one, queue() as two:
        page = az("queue", "list", "--num-results", "1", "--show-next-marker")
        seen = []
        while True:
            marker = page.pop()["nextMarker"]
            seen += [item["name"] for item in page]
            if not marker:
                break
            page = az("queue", "list", "--num-results", "1", "--show-next-marker", "--marker", marker)
        assert {one, two} <= set(seen), seen
        equal(len(seen), len(set(seen)))


def metadata_is_set_shown_and_listed():
    with queue() as name:
        az("queue", "metadata", "update", "--name", name, "--metadata", "one=1", "two=a b")
        equal(az("queue", "metadata", "show", "--name", name), {"one": "1", "two": "a b"})
        listed = az("queue", "list", "--prefix", name, "--include-metadata")
        equal(listed[0]["metadata"], {"one": "1", "two": "a b"})
        az("queue", "metadata", "update", "--name", name)
        equal(az("queue", "metadata", "show", "--name", name) or {}, {})


def messages_are_put_peeked_got_and_deleted():
    with queue() as name:
        sent = put(name, "text")
        equal(peek(name), ["text"])
        [found] = get(name)
        equal((found["id"], found["content"], found["dequeueCount"]), (sent["id"], "text", 1))
        equal(peek(name), [])
        az("message", "delete", "-q", name, "--id", found["id"], "--pop-receipt", found["popReceipt"])
        refused("MessageNotFound", "message", "delete", "-q", name, "--id", found["id"], "--pop-receipt", found["popReceipt"])


def many_messages_come_in_order():
    with queue("a", "b", "c") as name:
        equal([one["content"] for one in get(name, "--num-messages", "2")], ["a", "b"])
        equal([one["content"] for one in get(name, "--num-messages", "32")], ["c"])


def odd_texts():
    texts = ["a<b> & 'c'", "Grüße 日本語 😀", "{\"json\": 1}", "  blanks  ", "line\nfeed"]
    with queue(*texts) as name:
        equal(peek(name), texts)


def an_update_changes_text_and_visibility():
    with queue("old") as name:
        [found] = get(name)
        updated = az("message", "update", "-q", name, "--id", found["id"], "--pop-receipt", found["popReceipt"], "--content", "new", "--visibility-timeout", "0")
        assert updated["popReceipt"] != found["popReceipt"], updated
        equal(peek(name), ["new"])
        stale = ["--id", found["id"], "--pop-receipt", found["popReceipt"], "--visibility-timeout", "0"]
        refused("MessageNotFound", "message", "update", "-q", name, "--content", "x", *stale)


def times_are_kept():
    with queue() as name:
        put(name, "hidden", "--visibility-timeout", LONG)
        equal(peek(name), [])
        sent = put(name, "for ever", "--time-to-live", "-1")
        assert sent["expirationTime"].startswith("9999"), sent
        refused("InvalidQueryParameterValue", "message", "put", "-q", name, "--content", "x", "--time-to-live", "5", "--visibility-timeout", "5")


def clear_removes_all():
    with queue("a", "b") as name:
        get(name)
        az("message", "clear", "-q", name)
        equal(peek(name), [])


def a_missing_queue_is_named():
    name = suite.queue_name("azcli")
    refused("QueueNotFound", "message", "peek", "-q", name)
    refused("QueueNotFound", "message", "put", "-q", name, "--content", "x")


def a_wrong_name_is_refused():
    refused("InvalidResourceName", "queue", "create", "--name", "Wrong_Name")


def policies_are_created_updated_shown_listed_and_deleted():
    with queue() as name:
        policy = lambda verb, *more: az("queue", "policy", verb, "-q", name, *more)
        equal(policy("list"), {})
        policy("create", "-n", "reader", "--permissions", "r", "--expiry", "2031-01-01T00:00:00Z")
        policy("create", "-n", "writer", "--permissions", "aup", "--start", "2021-01-01T00:00:00Z")
        equal(set(policy("list")), {"reader", "writer"})
        shown = policy("show", "-n", "reader")
        equal(shown["permission"], "r")
        assert shown["expiry"].startswith("2031-01-01T00:00:00"), shown
        policy("update", "-n", "reader", "--permissions", "rp")
        equal(policy("show", "-n", "reader")["permission"], "rp")
        policy("delete", "-n", "reader")
        equal(set(policy("list")), {"writer"})


def _signature(name, *options):
    return az("queue", "generate-sas", "--name", name, *options)


def _with(sas):
    return ("--queue-endpoint", suite.ENDPOINT, "--sas-token", sas)


def a_generated_signature_allows_what_it_names():
    with queue("m") as name:
        reader = _with(_signature(name, "--permissions", "r", "--expiry", in_an_hour()))
        equal(peek(name, credentials=reader), ["m"])
        refused(NOT_PERMITTED, "message", "put", "-q", name, "--content", "x", credentials=reader)
        worker = _with(_signature(name, "--permissions", "aup", "--expiry", in_an_hour()))
        put(name, "x", credentials=worker)
        equal(len(get(name, "--num-messages", "32", credentials=worker)), 2)
        refused(NOT_PERMITTED, "message", "peek", "-q", name, credentials=worker)
        expired = _with(_signature(name, "--permissions", "r", "--expiry", "2021-01-01T00:00Z"))
        refused(NOT_AUTHENTICATED, "message", "peek", "-q", name, credentials=expired)


def a_generated_signature_of_a_policy_is_revoked_with_it():
    with queue("m") as name:
        az("queue", "policy", "create", "-q", name, "-n", "id", "--permissions", "r", "--expiry", "2031-01-01T00:00:00Z")
        reader = _with(_signature(name, "--policy-name", "id"))
        equal(peek(name, credentials=reader), ["m"])
        az("queue", "policy", "delete", "-q", name, "-n", "id")
        refused(NOT_AUTHENTICATED, "message", "peek", "-q", name, credentials=reader)


def an_account_signature():
    with queue("m") as name:
        sas = az("account", "generate-sas", "--permissions", "rl", "--resource-types", "so", "--services", "q", "--expiry", in_an_hour())
        equal(peek(name, credentials=_with(sas)), ["m"])
        refused(NOT_PERMITTED, "message", "clear", "-q", name, credentials=_with(sas))


def an_account_key_with_an_endpoint():
    with queue("m") as name:
        named = ("--account-name", suite.ACCOUNT, "--account-key", suite.KEY, "--queue-endpoint", suite.ENDPOINT)
        equal(peek(name, credentials=named), ["m"])


def the_secondary_answers_with_statistics():
    string = f"{suite.CONNECTION_STRING}QueueSecondaryEndpoint={suite.ENDPOINT.removeprefix('http://')}-secondary;"
    equal(az("queue", "stats", credentials=("--connection-string", string))["geoReplication"]["status"], "live")


CASES = [
    queues_are_created_found_listed_and_deleted,
    queues_are_listed_from_a_marker,
    metadata_is_set_shown_and_listed,
    messages_are_put_peeked_got_and_deleted,
    many_messages_come_in_order,
    odd_texts,
    an_update_changes_text_and_visibility,
    times_are_kept,
    clear_removes_all,
    a_missing_queue_is_named,
    a_wrong_name_is_refused,
    policies_are_created_updated_shown_listed_and_deleted,
    a_generated_signature_allows_what_it_names,
    a_generated_signature_of_a_policy_is_revoked_with_it,
    an_account_signature,
    an_account_key_with_an_endpoint,
    *properties_cases("queue"),
    the_secondary_answers_with_statistics,
]

if __name__ == "__main__":
    suite.report_client("azure-cli")
    suite.report_client("azure-storage-queue")
    invoke("queue", "exists", "--name", "warmup", *BY_CONNECTION_STRING)
    suite.run_cases(CASES)
    CONFIGURATION.cleanup()
