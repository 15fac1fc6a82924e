"""Indexes that are declared by writing entities, and used by the same queries as before."""

import asyncio
from datetime import datetime, timedelta, timezone

from azure.core import MatchConditions
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, TableSasPermissions, TableTransactionError, UpdateMode, generate_table_sas

import suite
from clients import entity
from sdk import CREDENTIAL, collect, next_page, raises
from index_clients import Explained, Indexes, all_pages, customer_table, customers, explain, fill, whole
from suite import equal


async def declared_by_an_insert_and_built(kit):
    table, indexes = await customer_table(kit)
    equal(await indexes.names(), [])
    await indexes.declare("ByTown", "Town")
    seen, found = [], None
    while found is None or found["State"] != "Readable":
        found = await indexes.get("ByTown")
        assert found["State"] in ("Building", "Readable"), found
        seen.append(found["Progress"].value)
    equal(seen, sorted(seen), "progress, as it was seen")
    equal(found["Progress"], EntityProperty(210, EdmType.INT64))
    equal(found["Entries"].value, 210 - 20, "entries: entities without a town are not in the index")
    equal(found["Distinct"].value, 6, "towns")
    assert 0.1 < found["LargestShare"] < 0.3, found
    assert found["Bytes"].value > 0, found
    definition = {name: found[name] for name in ("Keys", "Include", "Filter", "Unique", "BrowseAs", "Error", "Note")}
    equal(definition, {"Keys": "Town", "Include": "", "Filter": "", "Unique": False, "BrowseAs": "", "Error": "", "Note": ""})
    equal(await indexes.names(), ["ByTown"])


async def the_table_of_indexes_always_exists(kit):
    # On Azure the same code makes a plain table.
    service = kit.service()
    await service.create_table_if_not_exists("TavolaIndexes")
    with raises(ResourceExistsError, "TableAlreadyExists", 409):
        await service.create_table("tavolaindexes")
    with raises(HttpResponseError, "InsufficientAccountPermissions", 403):
        await service.delete_table("TavolaIndexes")
    table, indexes = await customer_table(kit, 1)
    await indexes.declare("ByTown", "Town")
    assert "TavolaIndexes" in [one.name for one in await collect(service.list_tables())]


# Filters over customers, and how the index by Town and LastName finds them; None where it is of no use.
FILTERS = {
    "Town eq 'Redmond' and LastName eq 'Smith'": "ordered",
    "LastName eq 'Smith' and 'Redmond' eq Town": "ordered",
    "Town eq 'Zürich' and LastName eq 'Howard' and Age lt 30": "ordered",
    "Town eq 'Redmond' and LastName eq 'Smith' and PartitionKey ge 'shard1'": "ordered",
    "Town eq 'Redmond' and (LastName eq 'Smith' or LastName eq 'Brown')": "merged",
    "Town eq 'Nowhere' and LastName eq 'Smith'": "ordered",
    "Town eq 'Redmond'": "sorted",
    "Town eq 'Redmond' and LastName ge 'R' and LastName lt 'T'": "sorted",
    "Town ge 'B' and Town lt 'C'": "sorted",
    "Town eq 'Redmond' and not (LastName eq 'Smith')": "sorted",
    "LastName eq 'Smith'": None,
    "not (Town eq 'Redmond')": None,
    "PartitionKey eq 'shard1' and RowKey eq '0100'": None,
    "PartitionKey eq 'shard1'": None,
    "Age ge 30 or Town eq 'Redmond'": None,
}


async def the_same_filter_finds_the_same_entities(kit):
    table, indexes = await customer_table(kit)
    before = {}
    for filter in FILTERS:
        before[filter], used = await explain(table, filter)
        assert "index" not in used, f"{filter}: {used}"
    await indexes.build("ByTownAndName", "Town,LastName")
    for filter, use in FILTERS.items():
        found, used = await explain(table, filter)
        equal(found, before[filter], filter)
        equal(used if "ByTownAndName" in used else None, use and f"index ByTownAndName {use}", filter)
    uses = (await indexes.get("ByTownAndName"))["Uses"].value
    assert uses >= sum(use is not None for use in FILTERS.values()), uses
    await indexes.drop("ByTownAndName")
    for filter in FILTERS:
        found, used = await explain(table, filter)
        equal(found, before[filter], f"{filter}, after the index was dropped")
        assert "ByTownAndName" not in used, f"{filter}: {used}"


async def a_query_without_the_question_is_told_nothing(kit):
    table, indexes = await customer_table(kit, 20)
    await indexes.build("ByTown", "Town")
    told = []
    query = table.query_entities("Town eq 'Redmond'", raw_response_hook=lambda answer: told.extend(answer.http_response.headers))
    await collect(query)
    assert told and not [name for name in told if "tavola" in name.lower()], told


async def pages_are_the_same(kit):
    table, indexes = await customer_table(kit)
    filters = ["Town eq 'Redmond'", "Town ge 'C' and Town lt 'S'", "Town eq 'Boston' or Town eq 'Seattle'", "Town eq 'Nowhere'"]
    pages = lambda filter, size: all_pages(table.query_entities(filter, results_per_page=size))
    before = {(filter, size): await pages(filter, size) for filter in filters for size in (1, 7, 1000)}
    for include in ("", "*"):
        await indexes.build("ByTown", "Town", Include=include)
        for (filter, size), expected in before.items():
            found = await pages(filter, size)
            equal(sum(found, []), sum(expected, []), f"{filter} in pages of {size}")
            # A scan may need a last page to see that there is nothing more.
            full = lambda all: [len(page) for page in all if page]
            equal(full(found), full(expected), f"sizes of pages of {size}")


async def a_token_goes_on_over_declaring_and_dropping(kit):
    table, indexes = await customer_table(kit)
    query = lambda: table.query_entities("Town eq 'Redmond'", results_per_page=4)
    expected = whole(await collect(query()))
    found, token, step = [], None, 0
    while step == 0 or token:
        page, token = await next_page(query().by_page(continuation_token=token))
        found += whole(page)
        step += 1
        if step % 2:
            await indexes.build("ByTown", "Town")
        else:
            await indexes.drop("ByTown")
    assert step > 4, step
    equal(found, expected)


async def three_forms_of_include(kit):
    table, indexes = await customer_table(kit)
    filter, some = "Town eq 'Redmond'", ["RowKey", "LastName", "Age"]
    before, before_selected = [await explain(table, filter, select=select) for select in (None, some)]
    for include, used, used_selected in (
        ("", "index ByTown ordered", "index ByTown ordered"),
        ("LastName,Age", "index ByTown ordered", "index ByTown ordered covering"),
        ("*", "index ByTown ordered covering", "index ByTown ordered covering"),
    ):
        equal((await indexes.build("ByTown", "Town", Include=include))["Include"], include)
        equal(await explain(table, filter), (before[0], used), f"Include '{include}'")
        equal(await explain(table, filter, select=some), (before_selected[0], used_selected), f"Include '{include}', select")
    # Copies follow their entities.
    await table.update_entity(entity(*_keys(before[0][0]), Age=99), mode=UpdateMode.MERGE)
    found, used = await explain(table, filter)
    equal((found[0][0]["Age"], used), (99, "index ByTown ordered covering"))


def _keys(one):
    return one[0]["PartitionKey"], one[0]["RowKey"]


async def a_local_index_serves_one_partition(kit):
    table, indexes = await customer_table(kit)
    filter = "PartitionKey eq 'shard1' and Email eq 'c100@example.com'"
    before, _ = await explain(table, filter)
    await indexes.build("InShard", "PartitionKey,Email")
    equal(await explain(table, filter), (before, "index InShard ordered"))
    equal([_keys(one) for one in before], [("shard1", "0100")])
    # The partition of another one is not found by it.
    equal((await explain(table, "PartitionKey eq 'shard2' and Email eq 'c100@example.com'"))[0], [])


async def entities_without_the_property_are_kept_when_asked_for(kit):
    table, indexes = await customer_table(kit)
    filter = "not (Town gt '')"
    before, _ = await explain(table, filter)
    equal(len(before), 20)
    await indexes.build("ByTown", "Town")
    query = Explained(table, filter)
    equal(whole(await query.collect()), before)
    equal(query.pages[0].get("index-not-used"), "ByTown=skip-missing")
    found = await indexes.build("ByTown", "Town?")
    equal((found["Keys"], found["Entries"].value), ("Town?", 210))
    found, used = await explain(table, filter)
    equal(found, before)
    assert used.startswith("index ByTown"), used
    found = await indexes.build("ByName", "Town,LastName!")
    assert found["Entries"].value < 190, found


async def a_partial_index_serves_filters_that_imply_it(kit):
    table, indexes = await customer_table(kit)
    asked = {
        "Town eq 'Redmond' and Age ge 50": "index Elderly ordered partial",
        "Town eq 'Redmond' and Age gt 55": "index Elderly ordered partial",
        "Town eq 'Redmond' and Age ge 40": None,
        "Town eq 'Redmond'": None,
    }
    before = {filter: (await explain(table, filter))[0] for filter in asked}
    found = await indexes.build("Elderly", "Town", Filter="Age ge 50")
    equal(found["Filter"], "Age ge 50")
    assert 0 < found["Entries"].value < 60, found
    for filter, expected in asked.items():
        query = Explained(table, filter)
        equal(whole(await query.collect()), before[filter], filter)
        equal(query.used() if "Elderly" in query.used() else None, expected, filter)
        equal(query.pages[0].get("index-not-used"), None if expected else "Elderly=partial", filter)
    # Entities come into it and leave it.
    expected = len(before["Town eq 'Redmond' and Age ge 50"])
    for age, change in ((50, 1), (49, 0), (51, 1)):
        await table.upsert_entity(entity("new", "new", Town="Redmond", Age=age))
        equal(len((await explain(table, "Town eq 'Redmond' and Age ge 50"))[0]), expected + change, f"age {age}")


async def an_index_follows_every_write(kit):
    table, indexes = await customer_table(kit, 60)
    await indexes.build("ByTown", "Town")
    await indexes.build("Copies", "Town", Include="*")
    in_bern = lambda hint: explain(table, "Town eq 'Bern'", hint=hint)

    async def finds(*expected):
        for hint in ("ByTown", "Copies", "none"):
            found, used = await in_bern(hint)
            equal([one[0]["RowKey"] for one in found], list(expected), f"found with {used}")
            equal(found, (await in_bern("none"))[0], used)

    await finds()
    await table.create_entity(entity("b", "1", Town="Bern"))
    await table.upsert_entity(entity("a", "2", Town="Bern"))
    await finds("2", "1")
    await table.update_entity(entity("b", "1", Town="Basel"), mode=UpdateMode.MERGE)
    await table.update_entity(entity("shard0", "0000", Town="Bern"), mode=UpdateMode.MERGE)
    await finds("2", "0000")
    await table.update_entity(entity("a", "2", Other=1), mode=UpdateMode.REPLACE)
    await finds("0000")
    await table.submit_transaction([
        ("create", entity("b", "3", Town="Bern")), ("upsert", entity("b", "1", Town="Bern")),
        ("upsert", entity("b", "4", Town="Basel")),
    ])
    await finds("1", "3", "0000")
    await table.submit_transaction([("delete", entity("b", "3")), ("update", entity("b", "4", Town="Bern"))])
    await table.delete_entity("shard0", "0000")
    await finds("1", "4")
    for name in ("ByTown", "Copies"):
        assert (await indexes.verify(name)).startswith("sound: "), name


async def writers_go_on_while_it_is_built(kit):
    table, indexes = await customer_table(kit, 2000)

    async def write(task):
        for number in range(task, 2000, 97):
            keys = f"shard{number * 3 // 2000}", f"{number:04}"
            if number % 3:
                await table.upsert_entity(entity(*keys, Town="Moved"))
            else:
                await table.delete_entity(*keys)
            await table.upsert_entity(entity("late", f"{number:04}", Town="Late"))

    await indexes.declare("ByTown", "Town")
    await asyncio.gather(*(write(task) for task in range(4)))
    await indexes.wait_for("ByTown")
    for town in ("Moved", "Late", "Redmond"):
        expected, _ = await explain(table, f"Town eq '{town}'", hint="none")
        found, used = await explain(table, f"Town eq '{town}'", hint="ByTown")
        equal((found, used), (expected, "index ByTown ordered"))
        assert found, town
    assert (await indexes.verify("ByTown")).startswith("sound: ")


async def a_hint_names_the_index_or_none(kit):
    table, indexes = await customer_table(kit)
    await indexes.build("ByTown", "Town")
    await indexes.build("ByName", "LastName")
    filter = "Town eq 'Redmond' and LastName eq 'Smith'"
    answers = {hint: await explain(table, filter, hint=hint) for hint in ("none", "ByTown", "ByName", "NoSuchIndex")}
    for hint, (found, used) in answers.items():
        equal(found, answers["none"][0], hint)
        equal(used, f"index {hint} ordered" if hint.startswith("By") else "table scan", hint)


async def two_indexes_serve_one_filter(kit):
    table = await kit.new_table()
    await fill(table, (entity(row=f"{number:04}", A=str(number % 20), B=str(number % 21)) for number in range(2000)))
    both, either = "A eq '1' and B eq '1'", "A eq '1' or B eq '1'"
    before = [(await explain(table, filter))[0] for filter in (both, either)]
    indexes = Indexes(kit, table)
    await indexes.build("ByA", "A")
    await indexes.build("ByB", "B")
    for filter, expected, use in zip((both, either), before, ("intersected", "merged")):
        found, used = await explain(table, filter)
        equal(found, expected, filter)
        assert "ByA" in used and "ByB" in used and used.endswith(use), used


async def a_definition_is_replaced_merged_and_written_back(kit):
    table, indexes = await customer_table(kit)
    filter = "Town eq 'Redmond' and LastName eq 'Smith'"
    expected, _ = await explain(table, filter)
    await indexes.build("Main", "Town")
    # What was read can be written back, and changes nothing, whatever the server says in it.
    read = await indexes.get("Main")
    await indexes.definitions.upsert_entity(read, mode=UpdateMode.REPLACE)
    equal((await indexes.get("Main"))["State"], "Readable")
    await indexes.definitions.upsert_entity(entity(table.table_name, "Main", Include="Email"), mode=UpdateMode.MERGE)
    # The definition before answers until the new one is built.
    equal(await explain(table, filter), (expected, "index Main ordered"))
    found = await indexes.wait_for("Main")
    equal((found["Keys"], found["Include"]), ("Town", "Email"))
    found = await indexes.build("Main", "Town,LastName")
    equal((found["Keys"], found["Include"], found["Note"]), ("Town,LastName", "", ""))
    equal(await explain(table, filter), (expected, "index Main ordered"))
    equal(await indexes.names(), ["Main"])


async def a_definition_that_fails_leaves_the_one_before(kit):
    table = await kit.new_table(*(entity(row=row, Town=town) for row, town in (("1", "Bern"), ("2", "Bern"), ("3", "Basel"))))
    indexes, view = Indexes(kit, table), kit.name()
    await indexes.build("ByTown", "Town", BrowseAs=view)
    before = await explain(table, "Town eq 'Bern'"), whole(await collect(kit.table(view).list_entities()))
    await indexes.definitions.update_entity(entity(table.table_name, "ByTown", Unique=True))
    found = await indexes.wait_for("ByTown", "Failed")
    assert found["Error"] and found["Note"], found
    equal((await explain(table, "Town eq 'Bern'"), whole(await collect(kit.table(view).list_entities()))), before)
    await table.create_entity(entity(row="4", Town="Bern"))
    await indexes.definitions.update_entity(entity(table.table_name, "ByTown", Unique=False))
    found = await indexes.wait_for("ByTown")
    equal((found["Error"], found["Note"]), ("", ""))
    equal(len((await explain(table, "Town eq 'Bern'"))[0]), 3)


async def conditions_count_for_definitions(kit):
    table, indexes = await customer_table(kit, 5)
    old = await indexes.build("Main", "Town")
    with raises(ResourceExistsError, "EntityAlreadyExists", 409):
        await indexes.declare("Main", "Town")
    await indexes.build("Main", "Town,Age")
    current = await indexes.get("Main")
    condition = {"match_condition": MatchConditions.IfNotModified}
    by_age = entity(table.table_name, "Main", Keys="Age")
    with raises(HttpResponseError, "UpdateConditionNotSatisfied", 412):
        await indexes.definitions.update_entity(by_age, etag=old.metadata["etag"], **condition)
    with raises(HttpResponseError, "UpdateConditionNotSatisfied", 412):
        await indexes.definitions.delete_entity(old, etag=old.metadata["etag"], **condition)
    equal((await indexes.get("Main"))["Keys"], "Town,Age")
    await indexes.definitions.delete_entity(current, etag=current.metadata["etag"], **condition)
    equal(await indexes.names(), [])
    with raises(ResourceNotFoundError, "ResourceNotFound", 404):
        await indexes.definitions.update_entity(by_age)


async def definitions_are_listed_and_dropped(kit):
    table, indexes = await customer_table(kit, 30)
    other, indexes_of_other = await customer_table(kit, 3)
    for name, keys in (("ByTown", "Town"), ("ByAge", "Age"), ("ByBoth", "Town,Age")):
        await indexes.declare(name, keys)
    await indexes_of_other.declare("ByTown", "Town")
    equal(await indexes.names(), ["ByAge", "ByBoth", "ByTown"])
    equal(await indexes_of_other.names(), ["ByTown"])
    keys = {one["RowKey"]: one["Keys"] for one in await collect(indexes.definitions.query_entities(
        "PartitionKey eq @table and RowKey gt 'ByA'", parameters={"table": table.table_name}, select=["RowKey", "Keys"],
    ))}
    equal(keys, {"ByAge": "Age", "ByBoth": "Town,Age", "ByTown": "Town"})
    pages = await all_pages(indexes.definitions.query_entities(f"PartitionKey eq '{table.table_name}'", results_per_page=2))
    equal([[one[0]["RowKey"] for one in page] for page in pages], [["ByAge", "ByBoth"], ["ByTown"]])
    await indexes.wait_for("ByBoth")
    await indexes.drop("ByAge")
    equal(await indexes.names(), ["ByBoth", "ByTown"])
    with raises(ResourceNotFoundError, "ResourceNotFound", 404):
        await indexes.get("ByAge")
    await indexes.drop("ByAge")
    await indexes.build("ByAge", "Age")


async def a_transaction_declares_several_or_none(kit):
    table, indexes = await customer_table(kit, 30)
    one = lambda name, keys: ("create", entity(table.table_name, name, Keys=keys))
    with raises(TableTransactionError, "InvalidInput", 400) as refused:
        await indexes.definitions.submit_transaction([one("ByTown", "Town"), one("Wrong", "Town,,")])
    equal(refused.error.index, 1)
    equal(await indexes.names(), [])
    await indexes.definitions.submit_transaction([one("ByTown", "Town"), one("ByAge", "Age")])
    for name in ("ByTown", "ByAge"):
        await indexes.wait_for(name)
    await indexes.definitions.submit_transaction([
        ("delete", entity(table.table_name, "ByAge")), ("upsert", entity(table.table_name, "ByTown", Keys="Town,Age")),
    ])
    equal(await indexes.names(), ["ByTown"])
    equal((await indexes.wait_for("ByTown"))["Keys"], "Town,Age")


async def what_is_no_index_is_refused(kit):
    table, indexes = await customer_table(kit, 1)
    for definition in (
        {"Keys": ""}, {"Keys": "A,B,C,D,E"}, {"Keys": "A,,B"}, {"Keys": "A,A"}, {"Keys": "A B"}, {"Keys": "A:Int31"}, {"Keys": 7},
        {"Keys": "A", "Inculde": "B"}, {"Keys": "A", "Unique": "yes"}, {"Keys": "A", "Include": "PartitionKey"},
        {"Keys": "A", "Include": ",".join(f"N{number}" for number in range(21))}, {"Keys": "A", "Filter": "B eq"},
        {"Keys": "A", "Filter": "B eq 1 or C eq 2"}, {"Keys": "A", "Filter": "Timestamp gt datetime'2020-01-01T00:00:00Z'"},
        {"Keys": "A", "Filter": " and ".join(f"B ne {number}" for number in range(9))},
    ):
        with raises(HttpResponseError, "InvalidInput", 400):
            await indexes.definitions.create_entity(entity(table.table_name, "Wrong", **definition))
    with raises(HttpResponseError, "PropertiesNeedValue", 400):
        await indexes.definitions.create_entity(entity(table.table_name, "Wrong", Include="A"))
    with raises(HttpResponseError, "InvalidResourceName", 400):
        await indexes.declare("no-name", "A")
    equal(await indexes.names(), [])


async def a_missing_or_dropped_table_has_no_indexes(kit):
    table, indexes = await customer_table(kit, 30)
    with raises(ResourceNotFoundError, "TableNotFound", 404):
        await indexes.definitions.create_entity(entity(suite.table_name("none"), "ByA", Keys="A"))
    with raises(HttpResponseError, "InvalidInput", 400) as refused:
        await indexes.definitions.create_entity(entity(table.table_name.upper(), "ByA", Keys="A"))
    assert table.table_name in str(refused.error), refused.error
    await indexes.build("ByTown", "Town")
    await table.delete_table()
    equal(await indexes.names(), [])
    with raises(ResourceNotFoundError):
        await indexes.get("ByTown")
    with raises(ResourceNotFoundError, "TableNotFound", 404):
        await indexes.declare("ByTown", "Town")
    # A table of that name is a new one.
    await table.create_table()
    await fill(table, customers(30))
    equal(await indexes.names(), [])
    assert "index" not in (await explain(table, "Town eq 'Redmond'"))[1]


async def a_table_has_sixteen_indexes_and_three_copies(kit):
    table, indexes = await customer_table(kit, 5)
    for number in range(16):
        await indexes.declare(f"Index{number}", "Town", Include="*" if number < 3 else "")
    with raises(HttpResponseError, "InvalidInput", 400) as refused:
        await indexes.declare("Index16", "Town")
    assert "at most 16 indexes" in str(refused.error), refused.error
    with raises(HttpResponseError, "InvalidInput", 400) as refused:
        await indexes.definitions.update_entity(entity(table.table_name, "Index9", Include="*"))
    assert "at most 3 indexes that include all" in str(refused.error), refused.error
    equal(len(await indexes.names()), 16)
    await indexes.drop("Index9")
    await indexes.declare("Index16", "Town")


async def indexes_are_there_after_a_crash(kit):
    table, indexes = await customer_table(kit)
    view = kit.name()
    await indexes.build("ByTown", "Town,LastName", Include="Age", Filter="Age ge 5", BrowseAs=view)
    filter = "Town eq 'Redmond' and LastName eq 'Smith' and Age gt 5"
    before = await explain(table, filter)
    browsed = whole(await collect(kit.table(view).list_entities()))
    await fill(table, (entity("more", f"{number:04}", Town="Bern", Age=number) for number in range(1000)))
    await indexes.declare("ByAge", "Age")
    suite.restart_server()
    equal(await explain(table, filter), before)
    equal(whole(await collect(kit.table(view).query_entities("PartitionKey ne 'Bern'"))), browsed)
    # What was being built is built.
    await indexes.wait_for("ByAge")
    for name in ("ByTown", "ByAge"):
        assert (await indexes.verify(name)).startswith("sound: "), name
    await table.create_entity(entity("later", "1", Town="Redmond", LastName="Smith", Age=50))
    equal(len((await explain(table, filter))[0]), len(before[0]) + 1)


def _sas(name, permission, **range):
    expiry = datetime.now(timezone.utc) + timedelta(hours=1)
    permission = TableSasPermissions.from_string(permission)
    return AzureSasCredential(generate_table_sas(CREDENTIAL, name, permission=permission, expiry=expiry, **range))


async def signatures_declare_and_are_held_to_their_range(kit):
    table, owner = await customer_table(kit)
    declaring = Indexes(kit, table, credential=_sas("TavolaIndexes", "raud"))
    view = kit.name()
    await declaring.build("ByTown", "Town", BrowseAs=view)
    reading = Indexes(kit, table, credential=_sas("TavolaIndexes", "r"))
    equal(await reading.names(), ["ByTown"])
    of_the_table = Indexes(kit, table, credential=_sas(table.table_name, "raud"))
    for attempt in (lambda: reading.declare("Other", "Town"), lambda: reading.drop("ByTown"), of_the_table.names):
        with raises(HttpResponseError, status=403):
            await attempt()
    reader = kit.table(table.table_name, credential=_sas(table.table_name, "r"))
    equal(await explain(reader, "Town eq 'Redmond'"), await explain(table, "Town eq 'Redmond'"))
    # One who may see a part of the table is told of no index, whose counts would speak of the rest.
    within = dict(start_pk="shard1", start_rk="", end_pk="shard1", end_rk="~")
    ranged = kit.table(table.table_name, credential=_sas(table.table_name, "r", **within))
    query = Explained(ranged, "Town eq 'Redmond'")
    found = whole(await query.collect())
    equal(found, (await explain(table, "Town eq 'Redmond' and PartitionKey eq 'shard1'"))[0])
    assert found and not [name for name in query.pages[0] if name.startswith("index")], query.pages
    # The view has a name of its own.
    with raises(HttpResponseError, status=403):
        await collect(kit.table(view, credential=_sas(table.table_name, "r")).list_entities())
    equal(len(await collect(kit.table(view, credential=_sas(view, "r")).list_entities())), 190)
    await declaring.drop("ByTown")
    equal(await owner.names(), [])
