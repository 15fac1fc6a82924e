"""cloud-mappings: dictionaries kept in a table, used as its README shows."""

import json
import os
import sys
import threading
import traceback
import uuid

from azure.data.tables import TableServiceClient
from cloudmappings import AzureTableStorage
from cloudmappings.errors import KeySyncError, ValueSizeError
from cloudmappings.serialisers.core import none

CONNECTION = os.environ["TAVOLA_CONNECTION_STRING"]
TABLE = "appsmap" + uuid.uuid4().hex[:12]


def mapping(**options):
    return AzureTableStorage(table_name=TABLE, connection_string=CONNECTION).create_mapping(**options)


def values_come_back():
    cm = mapping()
    for key, value in {"int": 1000, "text": "日本 😀", "list": [1, None, {"a": b"\0\xff"}], "empty": b"", "o'brien": 1, "a b": 2, "100%": 3, "x/y#z?": 4, "plus+": 5}.items():
        cm[key] = value
        assert cm[key] == value, (key, cm[key])
    assert set(cm) == {"int", "text", "list", "empty", "o'brien", "a b", "100%", "x/y#z?", "plus+"}, set(cm)
    assert len(cm) == 9 and "int" in cm and "nothing" not in cm


def items_and_deletion():
    cm = mapping()
    del cm["int"]
    assert "int" not in cm
    try:
        cm["int"]
        raise AssertionError("a deleted key was found")
    except KeyError:
        pass
    assert dict(cm.items())["text"] == "日本 😀"


def another_process_sees_it():
    cm, again = mapping(), mapping()
    cm["shared"] = "first"
    again.sync_with_cloud()
    assert again["shared"] == "first"


def a_stale_write_is_refused():
    one, two = mapping(), mapping()
    one["contested"] = 0
    two.sync_with_cloud()
    one["contested"] = 1
    for stale in (lambda: two.__setitem__("contested", 2), lambda: two.__getitem__("contested"), lambda: two.__delitem__("contested")):
        try:
            stale()
            raise AssertionError("a stale ETag was accepted")
        except KeySyncError:
            pass
    two.sync_with_cloud()
    two["contested"] = 2
    assert two["contested"] == 2


def two_creators_of_a_key():
    one, two = mapping(), mapping()
    one["created"] = 1
    try:
        two["created"] = 2
        raise AssertionError("a key was created twice")
    except KeySyncError:
        pass


def values_of_many_chunks():
    cm = mapping(serialisation=none())
    data = os.urandom(700_000)
    cm["large"] = data
    assert cm["large"] == data


def values_over_one_mebibyte():
    cm = mapping(serialisation=none())
    try:
        cm["too large"] = os.urandom(1_100_000)
        raise AssertionError("an entity over 1 MiB was stored")
    except ValueSizeError:
        pass


def many_keys_by_prefix():
    cm = mapping()
    for number in range(60):
        cm[f"prefix{number:03}"] = number
    fresh = mapping()
    fresh.sync_with_cloud("prefix")
    assert sorted(key for key in fresh if key.startswith("prefix")) == [f"prefix{n:03}" for n in range(60)]


def counting_in_threads():
    mapping()["counter"] = 0
    lost = []

    def count():
        cm = mapping()
        for _ in range(10):
            while True:
                try:
                    cm.sync_with_cloud("counter")
                    cm["counter"] = cm["counter"] + 1
                    break
                except KeySyncError:
                    lost.append(1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert mapping()["counter"] == 40, mapping()["counter"]


def main():
    service = TableServiceClient.from_connection_string(CONNECTION)
    service.create_table(TABLE)
    cases = [values_come_back, items_and_deletion, another_process_sees_it, a_stale_write_is_refused, two_creators_of_a_key, values_of_many_chunks, values_over_one_mebibyte,
             many_keys_by_prefix, counting_in_threads]
    for case in cases:
        name, detail = "cloud-mappings: " + case.__name__.replace("_", " "), ""
        try:
            case()
        except Exception:  # pylint: disable=broad-except
            detail = traceback.format_exc()[-1800:]
        with open(os.environ["TAVOLA_RESULTS"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"case": name, "ok": not detail, "detail": detail}) + "\n")
        print(f"{'FAILED' if detail else 'ok'}  {name}  {detail}")
    service.delete_table(TABLE)


if __name__ == "__main__":
    sys.exit(main())
