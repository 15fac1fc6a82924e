"""azure-cli: `az storage table`, `entity`, `cors`, `logging` and `metrics`, one process a command as in a script."""

import json

import indexes
import suite
from az import BY_CONNECTION_STRING, CONFIGURATION, NOT_AUTHENTICATED, NOT_PERMITTED, az, in_an_hour, invoke, refused
from az_properties import properties_cases
from commands import insert, query, rows, show, table
from suite import equal


def tables_are_created_found_listed_and_deleted():
    name = suite.table_name("azcli")
    equal(az("table", "exists", "--name", name), {"exists": False})
    equal(az("table", "create", "--name", name), {"created": True})
    try:
        az("table", "create", "--name", name)
        refused("TableAlreadyExists", "table", "create", "--name", name, "--fail-on-exist")
        equal(az("table", "exists", "--name", name), {"exists": True})
        assert name in [one["name"] for one in az("table", "list")]
    finally:
        equal(az("table", "delete", "--name", name), {"deleted": True})
    equal(az("table", "delete", "--name", name), {"deleted": False})
    equal(az("table", "exists", "--name", name), {"exists": False})


def tables_are_listed_from_a_marker():
    with table() as one, table() as two:
        page = az("table", "list", "--num-results", "1", "--show-next-marker")
        seen = []
        while True:
            marker = page.pop()["nextMarker"]
            equal(len(page), 1)
            seen += [item["name"] for item in page]
            if not marker:
                break
            page = az("table", "list", "--num-results", "1", "--show-next-marker", "--marker", marker)
        assert {one, two} <= set(seen), seen
        equal(len(seen), len(set(seen)))


def insert_fails_merges_or_replaces_what_exists():
    with table() as name:
        assert insert(name, "A=1")["etag"].startswith("W/")
        refused("already exists", "entity", "insert", "-t", name, "-e", "PartitionKey=p", "RowKey=r", "--if-exists", "fail")
        insert(name, "B=2", if_exists="merge")
        found = show(name)
        equal((found["A"], found["B"]), (1, 2))
        insert(name, "C=3", if_exists="replace")
        found = show(name)
        equal(found["C"], 3)
        assert "A" not in found and "B" not in found, found


def merge_and_replace_what_exists():
    with table() as name:
        insert(name, "A=1", "B=1")
        az("entity", "merge", "-t", name, "-e", "PartitionKey=p", "RowKey=r", "B=2")
        found = show(name)
        equal((found["A"], found["B"]), (1, 2))
        az("entity", "replace", "-t", name, "-e", "PartitionKey=p", "RowKey=r", "C=3")
        found = show(name)
        equal(found["C"], 3)
        assert "A" not in found, found
        refused("ResourceNotFound", "entity", "merge", "-t", name, "-e", "PartitionKey=p", "RowKey=other", "C=3")


def conditions_by_etag():
    with table() as name:
        old = insert(name, "V=1")["etag"]
        current = insert(name, "V=2", if_exists="merge")["etag"]
        update = ["-t", name, "-e", "PartitionKey=p", "RowKey=r", "V=3", "--if-match"]
        refused("UpdateConditionNotSatisfied", "entity", "merge", *update, old)
        refused("UpdateConditionNotSatisfied", "entity", "replace", *update, old)
        delete = ["entity", "delete", "-t", name, "--partition-key", "p", "--row-key", "r", "--if-match"]
        refused("UpdateConditionNotSatisfied", *delete, old)
        equal(show(name)["V"], 2)
        az(*delete, current)
        refused("ResourceNotFound", "entity", "show", "-t", name, "--partition-key", "p", "--row-key", "r")


def types_come_back():
    with table() as name:
        insert(
            name, "Text=hello", "Number=5", "Truth=true", "Truth@odata.type=Edm.Boolean", "Big=9223372036854775807",
            "Big@odata.type=Edm.Int64", "When=2020-02-29T12:30:15Z", "When@odata.type=Edm.DateTime",
            "Id=c9da6455-213d-42c9-9a79-3e9149a57833", "Id@odata.type=Edm.Guid", "Ratio=0.5",
            "Ratio@odata.type=Edm.Double", "Digits=007", "Digits@odata.type=Edm.String",
        )
        found = show(name)
        equal((found["Text"], found["Number"], found["Digits"]), ("hello", 5, "007"))
        assert found["Truth"] in (True, "true"), found
        assert "9223372036854775807" in json.dumps(found["Big"]), found
        assert found["When"].startswith("2020-02-29T12:30:15"), found
        assert "c9da6455-213d-42c9-9a79-3e9149a57833" in json.dumps(found["Id"]), found
        equal(found["Ratio"], 0.5)


def typed_properties_answer_typed_filters():
    with table() as name:
        insert(name, "Big=10", "Big@odata.type=Edm.Int64", "When=2020-01-01T00:00:00Z", "When@odata.type=Edm.DateTime")
        insert(name, "Big=9", "Big@odata.type=Edm.Int64", row="s")
        equal(rows(query(name, "--filter", "Big gt 9L")), ["r"])
        equal(rows(query(name, "--filter", "When eq datetime'2020-01-01T00:00:00Z'")), ["r"])


def query_by_filter_and_select():
    with table() as name:
        for row in range(3):
            insert(name, f"N={row}", "Name=it's", row=str(row))
        equal(rows(query(name)), ["0", "1", "2"])
        equal(rows(query(name, "--filter", "N ge 1 and Name eq 'it''s'")), ["1", "2"])
        answer = query(name, "--filter", "N eq 2", "--select", "N", "Missing")
        equal([(one["N"], one.get("Missing"), "Name" in one) for one in answer["items"]], [(2, None, False)])
        refused("InvalidInput", "entity", "query", "-t", name, "--filter", "aaa bbb ccc")


def query_goes_on_from_its_marker():
    with table() as name:
        for row in range(5):
            insert(name, row=str(row))
        found, answer = [], query(name, "--num-results", "2")
        while True:
            found += rows(answer)
            marker = answer["nextMarker"]
            if not marker:
                break
            equal(len(answer["items"]), 2)
            answer = query(
                name, "--num-results", "2", "--marker", f"nextpartitionkey={marker['nextpartitionkey']}",
                f"nextrowkey={marker['nextrowkey']}",
            )
        equal(found, ["0", "1", "2", "3", "4"])


def deleted_entities_are_gone():
    with table() as name:
        insert(name)
        az("entity", "delete", "-t", name, "--partition-key", "p", "--row-key", "r")
        equal(query(name)["items"], [])
        az("entity", "delete", "-t", name, "--partition-key", "p", "--row-key", "r")


def odd_keys():
    with table() as name:
        for key in ("it's", "100%", "a b", "a+b", "ü中😀"):
            insert(name, "V=1", row=key, partition=key)
            equal(show(name, key, key)["V"], 1, key)
            az("entity", "delete", "-t", name, "--partition-key", key, "--row-key", key)
        equal(query(name)["items"], [])


def a_missing_table_is_named():
    name = suite.table_name("azcli")
    refused("TableNotFound", "entity", "query", "-t", name)
    refused("TableNotFound", "entity", "insert", "-t", name, "-e", "PartitionKey=p", "RowKey=r", "--if-exists", "merge")


def policies_are_created_updated_shown_listed_and_deleted():
    with table() as name:
        policy = lambda verb, *more: az("table", "policy", verb, "-t", name, *more)
        equal(policy("list"), {})
        policy("create", "-n", "reader", "--permissions", "r", "--expiry", "2031-01-01T00:00:00Z")
        policy("create", "-n", "writer", "--permissions", "au", "--start", "2021-01-01T00:00:00Z")
        equal(set(policy("list")), {"reader", "writer"})
        shown = policy("show", "-n", "reader")
        equal(shown["permission"], "r")
        assert shown["expiry"].startswith("2031-01-01T00:00:00"), shown
        policy("update", "-n", "reader", "--permissions", "raud")
        equal(policy("show", "-n", "reader")["permission"], "raud")
        policy("delete", "-n", "reader")
        equal(set(policy("list")), {"writer"})


def _signature(name, *options):
    return az("table", "generate-sas", "--name", name, *options)


def _with(sas):
    return ("--table-endpoint", suite.ENDPOINT, "--sas-token", sas)


def a_generated_signature_allows_what_it_names():
    with table() as name:
        insert(name, "V=1")
        reader = _with(_signature(name, "--permissions", "r", "--expiry", in_an_hour()))
        equal(show(name, credentials=reader)["V"], 1)
        equal(rows(query(name, credentials=reader)), ["r"])
        change = ["entity", "insert", "-t", name, "-e", "PartitionKey=p", "RowKey=new", "--if-exists", "merge"]
        refused(NOT_PERMITTED, *change, credentials=reader)
        writer = _with(_signature(name, "--permissions", "au", "--expiry", in_an_hour()))
        az(*change, credentials=writer)
        refused(NOT_PERMITTED, "entity", "query", "-t", name, credentials=writer)
        expired = _with(_signature(name, "--permissions", "r", "--expiry", "2021-01-01T00:00Z"))
        refused(NOT_AUTHENTICATED, "entity", "query", "-t", name, credentials=expired)


def a_generated_signature_is_held_to_its_range():
    with table() as name:
        for partition in "abc":
            insert(name, partition=partition)
        ranged = _with(_signature(
            name, "--permissions", "r", "--expiry", in_an_hour(), "--start-pk", "b", "--start-rk", "", "--end-pk", "b",
            "--end-rk", "z",
        ))
        equal([one["PartitionKey"] for one in query(name, credentials=ranged)["items"]], ["b"])


def a_generated_signature_of_a_policy_is_revoked_with_it():
    with table() as name:
        insert(name, "V=1")
        az("table", "policy", "create", "-t", name, "-n", "id", "--permissions", "r", "--expiry", "2031-01-01T00:00:00Z")
        reader = _with(_signature(name, "--policy-name", "id"))
        equal(show(name, credentials=reader)["V"], 1)
        az("table", "policy", "delete", "-t", name, "-n", "id")
        refused(NOT_AUTHENTICATED, "entity", "query", "-t", name, credentials=reader)


def a_connection_string_with_a_signature():
    with table() as name:
        insert(name, "V=1")
        sas = _signature(name, "--permissions", "r", "--expiry", in_an_hour())
        string = ("--connection-string", f"TableEndpoint={suite.ENDPOINT};SharedAccessSignature={sas}")
        equal(show(name, credentials=string)["V"], 1)


def an_account_key_with_an_endpoint():
    with table() as name:
        insert(name, "V=1")
        named = (
            "--account-name", suite.ACCOUNT, "--account-key", suite.KEY, "--table-endpoint", suite.ENDPOINT,
        )
        equal(show(name, credentials=named)["V"], 1)


def the_secondary_answers_with_statistics():
    equal(az("table", "stats")["geoReplication"]["status"], "live")


CASES = [
    tables_are_created_found_listed_and_deleted,
    tables_are_listed_from_a_marker,
    insert_fails_merges_or_replaces_what_exists,
    merge_and_replace_what_exists,
    conditions_by_etag,
    types_come_back,
    typed_properties_answer_typed_filters,
    query_by_filter_and_select,
    query_goes_on_from_its_marker,
    deleted_entities_are_gone,
    odd_keys,
    a_missing_table_is_named,
    policies_are_created_updated_shown_listed_and_deleted,
    a_generated_signature_allows_what_it_names,
    a_generated_signature_is_held_to_its_range,
    a_generated_signature_of_a_policy_is_revoked_with_it,
    a_connection_string_with_a_signature,
    an_account_key_with_an_endpoint,
    *properties_cases("table"),
    the_secondary_answers_with_statistics,
]

if __name__ == "__main__":
    suite.report_client("azure-cli")
    suite.report_client("azure-data-tables")
    invoke("table", "exists", "--name", "warmup", *BY_CONNECTION_STRING)
    suite.run_cases(CASES)
    suite.run_cases(indexes.CASES, "indexes.")
    CONFIGURATION.cleanup()
