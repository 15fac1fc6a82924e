"""Indexes that are read as tables, by the name in `BrowseAs`."""

from datetime import datetime, timedelta, timezone

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, TableAccessPolicy, TableTransactionError, UpdateMode, generate_table_sas

from clients import entity
from sdk import CREDENTIAL, collect, raises
from index_clients import Explained, Indexes, all_pages, customer_table, explain, whole
from suite import equal

PEOPLE = [
    ("a", "0003", {"Town": "Redmond", "LastName": "Smith"}),
    ("a", "0001", {"Town": "Seattle", "LastName": "Brown"}),
    ("b", "0002", {"Town": "Redmond", "LastName": "Smith"}),
    ("b", "0004", {"Town": "Redmond", "LastName": "Adams", "Age": 7, "Photo": b"\0\xff"}),
    ("b", "0005", {"Town": "Boston", "LastName": "O|Neil/~"}),
    ("c", "6", {"Town": "Boston"}),
    ("c", "7", {"LastName": "Nobody"}),
]
IN_ORDER = [
    ("Boston", "~-|c|6"),
    ("Boston", "O~7CNeil~2F~7E|b|0005"),
    ("Redmond", "Adams|b|0004"),
    ("Redmond", "Smith|a|0003"),
    ("Redmond", "Smith|b|0002"),
    ("Seattle", "Brown|a|0001"),
]


async def _people(kit, **more):
    """A table of people, its indexes, and a client of the view by town and name."""
    table = await kit.new_table(*(entity(partition, row, **properties) for partition, row, properties in PEOPLE))
    indexes, name = Indexes(kit, table), kit.name()
    equal((await indexes.build("ByTown", "Town,LastName", BrowseAs=name, **more))["BrowseAs"], name)
    return table, indexes, kit.table(name)


def _keys(entities):
    return [(one["PartitionKey"], one["RowKey"]) for one in entities]


async def whole_entities_in_the_order_of_the_index(kit):
    for include in ("", "LastName", "*"):
        table, _, view = await _people(kit, Include=include)
        found = await collect(view.list_entities())
        equal(_keys(found), IN_ORDER, f"Include '{include}'")
        for one in found:
            origin = await table.get_entity(one["OriginPartitionKey"], one["OriginRowKey"])
            expected = {**origin, "PartitionKey": one["PartitionKey"], "RowKey": one["RowKey"]}
            equal({name: value for name, value in one.items() if not name.startswith("Origin")}, expected)
            equal(one.metadata["timestamp"], origin.metadata["timestamp"])


async def pages_go_on_in_the_order_of_the_index(kit):
    _, _, view = await _people(kit)
    for size in (1, 2, 5, 6, 7):
        pages = await all_pages(view.list_entities(results_per_page=size))
        expected = [IN_ORDER[at:at + size] for at in range(0, 6, size)]
        equal([_keys(one for one, _ in page) for page in pages], expected, f"pages of {size}")


async def many_pages_of_a_large_view(kit):
    table, indexes = await customer_table(kit, 2400)
    name = kit.name()
    await indexes.build("ByAge", "Age,Email", BrowseAs=name)
    pages = await all_pages(kit.table(name).list_entities())
    equal([len(page) for page in pages], [1000, 1000, 400])
    found = [(one["Age"], one["Email"]) for page in pages for one, _ in page]
    equal(found, sorted((one["Age"], one["Email"]) for one in await collect(table.list_entities())))


async def keys_and_other_properties_are_filtered(kit):
    _, _, view = await _people(kit)
    for filter, expected in (
        ("PartitionKey eq 'Redmond'", IN_ORDER[2:5]),
        ("PartitionKey eq 'Redmond' and RowKey ge 'Smith|' and RowKey lt 'Smith}'", IN_ORDER[3:5]),
        ("PartitionKey eq 'Redmond' and RowKey eq 'Adams|b|0004'", IN_ORDER[2:3]),
        ("PartitionKey gt 'Boston' and PartitionKey lt 'S'", IN_ORDER[2:5]),
        ("LastName eq 'Brown'", IN_ORDER[5:]),
        ("OriginPartitionKey eq 'b'", [IN_ORDER[1], IN_ORDER[2], IN_ORDER[4]]),
        ("Age eq 7", IN_ORDER[2:3]),
        ("PartitionKey eq 'Nowhere'", []),
        ("Nothing eq 1", []),
    ):
        equal(_keys(await collect(view.query_entities(filter))), expected, filter)
    query = Explained(view, "PartitionKey eq 'Redmond'")
    await query.collect()
    equal(query.used(), "index ByTown browsed")
    some = await collect(view.query_entities("PartitionKey eq 'Seattle'", select=["LastName", "OriginRowKey"]))
    equal([dict(one) for one in some], [{"LastName": "Brown", "OriginRowKey": "0001"}])


async def rows_are_found_by_their_keys_and_follow_their_entities(kit):
    table, _, view = await _people(kit)
    equal((await view.get_entity("Redmond", "Adams|b|0004"))["Photo"], b"\0\xff")
    await table.update_entity(entity("b", "0004", Town="Austin"), mode=UpdateMode.MERGE)
    with raises(ResourceNotFoundError, "ResourceNotFound", 404):
        await view.get_entity("Redmond", "Adams|b|0004")
    equal((await view.get_entity("Austin", "Adams|b|0004"))["Age"], 7)
    equal(_keys(await collect(view.list_entities()))[0], ("Austin", "Adams|b|0004"))
    await table.delete_entity("b", "0004")
    equal(_keys(await collect(view.list_entities())), IN_ORDER[:2] + IN_ORDER[3:])


async def rows_with_long_keys_are_found_by_them(kit):
    # The keys of a view are longer than those of any entity may be.
    partition, row = "P" * 512, "R" * 512
    table = await kit.new_table(entity(partition, row, A="A" * 512, B="B" * 512))
    name = kit.name()
    await Indexes(kit, table).build("ByBoth", "A,B", BrowseAs=name)
    view = kit.table(name)
    keys = ("A" * 512, "|".join(["B" * 512, partition, row]))
    equal(_keys(await collect(view.list_entities())), [keys])
    filter, parameters = "PartitionKey eq @partition and RowKey eq @row", {"partition": keys[0], "row": keys[1]}
    equal(_keys(await collect(view.query_entities(filter, parameters=parameters))), [keys])
    equal((await view.get_entity(*keys))["OriginRowKey"], row)


async def a_view_is_read_as_soon_as_it_is_declared(kit):
    table, indexes = await customer_table(kit, 2000)
    name = kit.name()
    await indexes.declare("ByEmail", "Email", BrowseAs=name)
    # While the index is built the answer is 503, which clients try again.
    found = [one["Email"] for one in await collect(kit.table(name).list_entities())]
    equal(found, sorted(one["Email"] for one in await collect(table.list_entities())))


async def a_view_has_stored_policies(kit):
    _, indexes, view = await _people(kit)
    await view.set_table_access_policy({"reader": TableAccessPolicy(permission="r", start=_hours(-1), expiry=_hours(1))})
    equal(list(await view.get_table_access_policy()), ["reader"])
    reader = kit.with_sas(view.table_name, generate_table_sas(CREDENTIAL, view.table_name, policy_id="reader"))
    equal(_keys(await collect(reader.list_entities())), IN_ORDER)
    # They stay when the index gets another definition.
    await indexes.build("ByTown", "Town,LastName", Include="*", BrowseAs=view.table_name)
    equal(_keys(await collect(reader.list_entities())), IN_ORDER)
    await view.set_table_access_policy({})
    with raises(HttpResponseError, status=403):
        await collect(reader.list_entities())


def _hours(count):
    return datetime.now(timezone.utc) + timedelta(hours=count)


async def nothing_is_written_into_a_view(kit):
    table, indexes, view = await _people(kit)
    before = whole(await collect(view.list_entities()))
    one = lambda: entity("Redmond", "Adams|b|0004", Age=8)
    for attempt in (
        lambda: view.create_entity(entity("Bern", "new")),
        lambda: view.upsert_entity(one()),
        lambda: view.upsert_entity(one(), mode=UpdateMode.REPLACE),
        lambda: view.update_entity(one()),
        lambda: view.update_entity(one(), mode=UpdateMode.REPLACE),
        lambda: view.delete_entity("Redmond", "Adams|b|0004"),
    ):
        with raises(HttpResponseError, "InsufficientAccountPermissions", 403):
            await attempt()
    with raises(TableTransactionError, "InsufficientAccountPermissions", 403):
        await view.submit_transaction([("create", entity("Bern", "new"))])
    equal(whole(await collect(view.list_entities())), before)
    with raises(HttpResponseError, "InvalidInput", 400):
        await indexes.definitions.create_entity(entity(view.table_name, "ByAge", Keys="Age"))


async def its_name_is_taken_and_given_up(kit):
    table, indexes, view = await _people(kit)
    service, name = kit.service(), view.table_name
    with raises(ResourceExistsError, "TableAlreadyExists", 409):
        await service.create_table(name.upper())
    assert name in [one.name for one in await collect(service.list_tables())]
    other = await kit.new_table()
    for taken in (other.table_name, table.table_name, "TavolaAdvice"):
        with raises(HttpResponseError, "TableAlreadyExists", 409):
            await indexes.declare("Other", "Town", BrowseAs=taken)
    with raises(HttpResponseError, "InvalidResourceName", 400):
        await indexes.declare("Other", "Town", BrowseAs="no-name")
    # Deleting it removes the name, not the index.
    await service.delete_table(name)
    with raises(ResourceNotFoundError, "TableNotFound", 404):
        await collect(view.list_entities())
    found = await indexes.get("ByTown")
    equal((found["BrowseAs"], found["State"]), ("", "Readable"))
    equal((await explain(table, "Town eq 'Seattle' and LastName eq 'Brown'"))[1], "index ByTown ordered")
    await service.create_table(name)
    with raises(HttpResponseError, "TableAlreadyExists", 409):
        await indexes.build("ByTown", "Town,LastName", BrowseAs=name)
    await service.delete_table(name)
    # It goes with the index, and with the table.
    await indexes.build("ByTown", "Town,LastName", BrowseAs=name)
    equal(len(await collect(view.list_entities())), 6)
    await indexes.drop("ByTown")
    with raises(ResourceNotFoundError, "TableNotFound", 404):
        await collect(view.list_entities())
    await indexes.build("ByTown", "Town,LastName", BrowseAs=name)
    await service.delete_table(table.table_name)
    with raises(ResourceNotFoundError, "TableNotFound", 404):
        await collect(view.list_entities())


async def two_indexes_do_not_have_one_view(kit):
    _, indexes, view = await _people(kit)
    other = Indexes(kit, await kit.new_table())
    for owner in (other, indexes):
        for name in (view.table_name, view.table_name.upper()):
            with raises(HttpResponseError, "TableAlreadyExists", 409):
                await owner.declare("Other", "LastName", BrowseAs=name)
    equal(_keys(await collect(view.list_entities())), IN_ORDER)


async def a_view_of_every_type_has_its_marks(kit):
    date = lambda text: EntityProperty(text, EdmType.DATETIME)
    values = [
        b"\x01\xab", False, True, date("2020-02-29T12:30:00.0000001Z"), date("2026-11-16T00:00:00Z"), -1.5, 0.5,
        EntityProperty("c9da6455-213d-42c9-9a79-3e9149a57833", EdmType.GUID), -1, 3, 20, 100,
        EntityProperty(-(2**40), EdmType.INT64), EntityProperty(5, EdmType.INT64), "", "a b", "ä", "😀",
    ]
    marks = [
        "~x01ab", "~bfalse", "~btrue", "~t2020-02-29T12:30:00.0000001Z", "~t2026-11-16T00:00:00Z", "~d-1.5", "~d0.5",
        "~gc9da6455-213d-42c9-9a79-3e9149a57833", "~i-1", "~i3", "~i20", "~i100", "~l-1099511627776", "~l5", "", "a b", "ä", "😀",
    ]
    shuffled = [(at * 7) % len(values) for at in range(len(values))]
    table = await kit.new_table(*(entity("p", f"{at:02}", V=values[at]) for at in shuffled))
    name = kit.name()
    await Indexes(kit, table).build("ByV", "V", BrowseAs=name)
    view = kit.table(name)
    equal(_keys(await collect(view.list_entities())), [(mark, f"p|{at:02}") for at, mark in enumerate(marks)])
    for at, mark in enumerate(marks):
        found = await view.get_entity(mark, f"p|{at:02}")
        equal(found["V"], (await table.get_entity("p", f"{at:02}"))["V"], mark)
        equal(_keys(await collect(view.query_entities("PartitionKey eq @key", parameters={"key": mark}))), [(mark, f"p|{at:02}")])
