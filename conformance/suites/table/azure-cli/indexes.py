"""Indexes, declared, waited for, used, browsed and dropped by `az storage entity`."""

import time

import suite
from az import az, refused
from commands import insert, query, rows, show, table
from suite import equal

DEFINITIONS = "TavolaIndexes"
POLL_SECONDS = 0.1
TOWNS = ["Redmond", "Seattle", "Boston"]
NAMES = ["Smith", "Jones"]


def declare(name, index, *pairs, if_exists="replace"):
    insert(DEFINITIONS, *pairs, partition=name, row=index, if_exists=if_exists)


def build(name, index, *pairs):
    """Declares an index, or another definition for it, and waits until it can be used."""
    declare(name, index, *pairs)
    while True:
        found = show(DEFINITIONS, index, name)
        if found["State"] == "Readable":
            return found
        equal(found["State"], "Building", str(found))
        time.sleep(POLL_SECONDS)


def declared(name):
    """The names of a table's indexes."""
    return rows(query(DEFINITIONS, "--filter", f"PartitionKey eq '{name}'"))


def drop(name, index):
    az("entity", "delete", "-t", DEFINITIONS, "--partition-key", name, "--row-key", index)


def number(value):
    """A number of 64 bits, which the CLI prints with its type."""
    return int(value["value"])


def fill(name):
    for at in range(6):
        properties = f"Town={TOWNS[at % 3]}", f"LastName={NAMES[at // 3]}", f"Age={at * 10 + 1}"
        insert(name, *properties, row=str(at), partition="ab"[at % 2])


def found(name, *options):
    """All that a query finds."""
    return query(name, *options)["items"]


def _insert(name, *pairs, if_exists="replace"):
    """The words of a command that is expected to fail."""
    return "entity", "insert", "-t", name, "-e", *pairs, "--if-exists", if_exists


def declared_waited_for_used_and_dropped():
    with table() as name:
        fill(name)
        filters = [
            "Town eq 'Redmond'", "Town eq 'Redmond' and LastName eq 'Jones'", "Town ge 'R' and Town lt 'T'", "LastName eq 'Smith'",
        ]
        before = {filter: found(name, "--filter", filter) for filter in filters}
        equal(rows({"items": before["Town eq 'Redmond'"]}), ["0", "3"])
        equal(declared(name), [])
        index = build(name, "ByTown", "Keys=Town,LastName")
        equal((index["Keys"], index["Include"], number(index["Progress"]), number(index["Entries"])), ("Town,LastName", "", 6, 6))
        equal(declared(name), ["ByTown"])
        for filter in filters:
            equal(found(name, "--filter", filter), before[filter], filter)
        assert number(show(DEFINITIONS, "ByTown", name)["Uses"]) >= 3
        assert DEFINITIONS in [one["name"] for one in az("table", "list")]
        drop(name, "ByTown")
        equal(declared(name), [])
        refused("ResourceNotFound", "entity", "show", "-t", DEFINITIONS, "--partition-key", name, "--row-key", "ByTown")
        for filter in filters:
            equal(found(name, "--filter", filter), before[filter], f"{filter}, after the index was dropped")


def pages_go_on_over_an_index():
    with table() as name:
        for at in range(7):
            insert(name, "Town=Redmond" if at % 3 else "Town=Boston", row=str(at))
        build(name, "ByTown", "Keys=Town", "Include=*")
        seen, answer = [], query(name, "--filter", "Town eq 'Redmond'", "--num-results", "2")
        while True:
            seen += rows(answer)
            marker = answer["nextMarker"]
            if not marker:
                break
            answer = query(
                name, "--filter", "Town eq 'Redmond'", "--num-results", "2", "--marker",
                f"nextpartitionkey={marker['nextpartitionkey']}", f"nextrowkey={marker['nextrowkey']}",
            )
        equal(seen, ["1", "2", "4", "5"])


def browsed_in_its_own_order():
    with table() as name:
        fill(name)
        view = suite.table_name("azview")
        equal(build(name, "ByTown", "Keys=Town,LastName", f"BrowseAs={view}")["BrowseAs"], view)
        items = found(view)
        equal([(one["PartitionKey"], one["RowKey"]) for one in items], [
            ("Boston", "Jones|b|5"), ("Boston", "Smith|a|2"), ("Redmond", "Jones|b|3"), ("Redmond", "Smith|a|0"),
            ("Seattle", "Jones|a|4"), ("Seattle", "Smith|b|1"),
        ])
        origins = [(one["OriginPartitionKey"], one["OriginRowKey"], one["Age"]) for one in items[:2]]
        equal(origins, [("b", "5", 51), ("a", "2", 21)])
        equal(show(view, "Smith|a|0", "Redmond")["Age"], 1)
        equal(rows(query(view, "--filter", "PartitionKey eq 'Redmond'")), ["Jones|b|3", "Smith|a|0"])
        first = query(view, "--num-results", "4")
        marker = first["nextMarker"]
        second = query(
            view, "--num-results", "4", "--marker", f"nextpartitionkey={marker['nextpartitionkey']}",
            f"nextrowkey={marker['nextrowkey']}",
        )
        equal(first["items"] + second["items"], items)
        refused("InsufficientAccountPermissions", *_insert(view, "PartitionKey=p", "RowKey=r"))
        assert view in [one["name"] for one in az("table", "list")]
        # Deleting it removes the name, not the index.
        equal(az("table", "delete", "--name", view), {"deleted": True})
        refused("TableNotFound", "entity", "query", "-t", view)
        equal(show(DEFINITIONS, "ByTown", name)["State"], "Readable")


def numbers_are_browsed_as_numbers():
    with table() as name:
        for age in (100, 20, 3):
            insert(name, f"Age={age}", row=str(age))
        view = suite.table_name("azview")
        build(name, "ByAge", "Keys=Age", "Include=*", f"BrowseAs={view}")
        equal([one["PartitionKey"] for one in found(view)], ["~i3", "~i20", "~i100"])


def a_partial_index_and_a_list_of_copies():
    with table() as name:
        fill(name)
        filter = ["--filter", "Town eq 'Redmond' and Age ge 20", "--select", "RowKey", "LastName"]
        before = found(name, *filter)
        index = build(name, "Elderly", "Keys=Town", "Include=LastName,Age", "Filter=Age ge 20")
        equal((index["Include"], index["Filter"], number(index["Entries"])), ("LastName,Age", "Age ge 20", 4))
        equal(found(name, *filter), before)
        equal([one["RowKey"] for one in before], ["3"])


def a_unique_index_refuses_the_second():
    with table() as name:
        insert(name, "Email=a", row="1")
        unique = ("Unique=true", "Unique@odata.type=Edm.Boolean")
        equal(build(name, "ByEmail", "Keys=Email", *unique)["Unique"], True)
        second = ["entity", "insert", "-t", name, "-e", "PartitionKey=q", "RowKey=2", "Email=a", "--if-exists"]
        # What the CLI says, in these words alone, for every 409 of an insert.
        refused("The specified entity already exists", *second, "fail")
        refused("UniqueIndexViolation", *second, "merge")
        refused("UniqueIndexViolation", *second, "replace")
        insert(name, "Email=b", row="2")
        refused("UniqueIndexViolation", "entity", "merge", "-t", name, "-e", "PartitionKey=p", "RowKey=2", "Email=a")
        equal(rows(query(name, "--filter", "Email eq 'a'")), ["1"])


def a_definition_is_merged_and_replaced():
    with table() as name:
        fill(name)
        build(name, "Main", "Keys=Town")
        az("entity", "merge", "-t", DEFINITIONS, "-e", f"PartitionKey={name}", "RowKey=Main", "Include=LastName")
        merged = show(DEFINITIONS, "Main", name)
        equal((merged["Keys"], merged["Include"]), ("Town", "LastName"))
        replaced = build(name, "Main", "Keys=Age")
        equal((replaced["Keys"], replaced["Include"]), ("Age", ""))
        equal(rows(query(name, "--filter", "Age ge 20 and Age lt 40")), ["2", "3"])
        equal(declared(name), ["Main"])
        again = _insert(DEFINITIONS, f"PartitionKey={name}", "RowKey=Main", "Keys=Age", if_exists="fail")
        refused("already exists", *again)


def what_is_no_index_is_refused():
    attempt = lambda name, *pairs: _insert(DEFINITIONS, f"PartitionKey={name}", "RowKey=Wrong", *pairs)
    with table() as name:
        for pairs in (("Keys=A,B,C,D,E",), ("Keys=A,,B",), ("Keys=A", "Inculde=B"), ("Keys=A", "Filter=B eq"), ("Keys=A:Int31",)):
            refused("InvalidInput", *attempt(name, *pairs))
        refused("PropertiesNeedValue", *attempt(name, "Include=A"))
        refused("TableAlreadyExists", *attempt(name, "Keys=A", f"BrowseAs={name}"))
        equal(declared(name), [])
        for number in range(16):
            declare(name, f"Index{number}", "Keys=A")
        refused("at most 16 indexes", *attempt(name, "Keys=A"))
    equal(declared(name), [])
    refused("TableNotFound", *attempt(name, "Keys=A"))
    refused("TableNotFound", *attempt(suite.table_name("none"), "Keys=A"))


def advice_and_hot_partitions_are_read():
    with table() as name:
        insert(name, partition="hot")
        # One request in eight is looked at, at random.
        for _ in range(200):
            show(name, partition="hot")
            hot = query("TavolaHotPartitions", "--filter", f"PartitionKey eq '{name}'")
            if hot["items"]:
                break
        equal(rows(hot), ["hot"])
        assert hot["items"][0]["RequestsPerSecond"] > 0, hot
        equal(query("TavolaAdvice", "--filter", f"PartitionKey eq '{name}'")["items"], [])
    for own in ("TavolaAdvice", "TavolaHotPartitions"):
        refused("InsufficientAccountPermissions", *_insert(own, "PartitionKey=p", "RowKey=r"))
        assert own not in [one["name"] for one in az("table", "list")]


CASES = [
    declared_waited_for_used_and_dropped,
    pages_go_on_over_an_index,
    browsed_in_its_own_order,
    numbers_are_browsed_as_numbers,
    a_partial_index_and_a_list_of_copies,
    a_unique_index_refuses_the_second,
    a_definition_is_merged_and_replaced,
    what_is_no_index_is_refused,
    advice_and_hot_partitions_are_read,
]
