"""Indexes that let no two entities have the same values."""

import asyncio

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableTransactionError, UpdateMode

from clients import entity, row_keys
from sdk import collect, raises
from index_clients import Explained, Indexes, explain, whole
from suite import equal


async def the_second_of_a_value_is_refused(kit):
    table = await kit.new_table(entity(row="1", Email="a"), entity(row="2", Email="b"))
    indexes = Indexes(kit, table)
    equal((await indexes.build("ByEmail", "Email", Unique=True))["Unique"], True)
    for attempt in (
        lambda: table.create_entity(entity(row="3", Email="a")),
        lambda: table.upsert_entity(entity(row="3", Email="a")),
        lambda: table.upsert_entity(entity(row="2", Email="a")),
        lambda: table.update_entity(entity(row="2", Email="a"), mode=UpdateMode.MERGE),
        lambda: table.update_entity(entity(row="2", Email="a"), mode=UpdateMode.REPLACE),
        lambda: table.create_entity(entity("other", "1", Email="a")),
    ):
        with raises(HttpResponseError, "UniqueIndexViolation", 409) as refused:
            await attempt()
        assert "ByEmail" in str(refused.error), refused.error
    equal([dict(one) for one in await collect(table.list_entities())], [entity(row="1", Email="a"), entity(row="2", Email="b")])
    # Those without the property do not count, its own value is no obstacle, and what was given up is free.
    await table.create_entity(entity(row="4"))
    await table.create_entity(entity(row="5"))
    await table.upsert_entity(entity(row="1", Email="a", More=1))
    await table.delete_entity("p", "1")
    await table.create_entity(entity(row="3", Email="a"))
    equal(await explain(table, "Email eq 'a'"), (whole([await table.get_entity("p", "3")]), "index ByEmail ordered"))


async def transactions_exchange_values_and_name_the_change_that_violates(kit):
    table = await kit.new_table(*(entity(row=row, Email=email) for row, email in ("1a", "2b", "3c")))
    indexes = Indexes(kit, table)
    await indexes.build("ByEmail", "Email", Unique=True, Include="*")
    before = whole(await collect(table.list_entities()))
    create = lambda row, email: ("create", entity(row=row, Email=email))
    for operations, index in (
        ([create("4", "d"), create("5", "b")], 1),
        ([create("4", "d"), create("5", "e"), create("6", "d")], 2),
        ([("upsert", entity(row="1", Email="c"))], 0),
    ):
        with raises(TableTransactionError, "UniqueIndexViolation", 409) as refused:
            await table.submit_transaction(operations)
        equal(refused.error.index, index, "index of the failed operation")
        equal(whole(await collect(table.list_entities())), before)
    # Two may exchange their values, and one may follow another that leaves.
    await table.submit_transaction([("upsert", entity(row="1", Email="b")), ("upsert", entity(row="2", Email="a"))])
    await table.submit_transaction([("delete", entity(row="3")), ("create", entity(row="4", Email="c"))])
    equal([(one["RowKey"], one["Email"]) for one in await collect(table.list_entities())], [("1", "b"), ("2", "a"), ("4", "c")])
    equal(await indexes.verify("ByEmail"), "sound: 3 entries")


async def a_build_over_what_is_there_twice_fails(kit):
    table = await kit.new_table(entity(row="1", Email="twice"), entity(row="2", Email="twice"))
    indexes = Indexes(kit, table)
    await indexes.declare("ByEmail", "Email", Unique=True)
    found = await indexes.wait_for("ByEmail", "Failed")
    assert "Email" in found["Error"] and "twice" not in found["Error"], found
    query = Explained(table, "Email eq 'twice'")
    equal(len(await query.collect()), 2)
    equal(query.pages[0].get("index-not-used"), "ByEmail=failed")
    await table.create_entity(entity(row="3", Email="twice"))
    for row in "23":
        await table.delete_entity("p", row)
    await indexes.build("ByEmail", "Email", Unique=True)
    with raises(HttpResponseError, "UniqueIndexViolation", 409):
        await table.create_entity(entity(row="2", Email="twice"))


async def long_values_are_told_apart(kit):
    # Longer than what an index keeps of a value for its order.
    long = lambda end: "x" * 600 + end
    table = await kit.new_table(entity(row="1", V=long("a")), entity(row="2", V=long("b")))
    indexes = Indexes(kit, table)
    await indexes.build("ByValue", "V", Unique=True)
    await table.create_entity(entity(row="3", V=long("c")))
    with raises(HttpResponseError, "UniqueIndexViolation", 409):
        await table.create_entity(entity(row="4", V=long("a")))
    for row, end in ("1a", "2b", "3c"):
        found, used = await explain(table, f"V eq '{long(end)}'", hint="ByValue")
        equal([one["RowKey"] for one, _ in found], [row])
        assert used.startswith("index ByValue"), used


async def only_entities_in_the_index_count(kit):
    table = await kit.new_table(entity(row="1", Email="a", Active=True), entity(row="2", Email="a", Active=False))
    indexes = Indexes(kit, table)
    await indexes.build("ByEmail", "Email", Unique=True, Filter="Active eq true")
    await table.create_entity(entity(row="3", Email="a", Active=False))
    with raises(HttpResponseError, "UniqueIndexViolation", 409):
        await table.update_entity(entity(row="3", Active=True))
    await table.submit_transaction([("update", entity(row="3", Active=True)), ("update", entity(row="1", Active=False))])
    equal(await row_keys(table.query_entities("Email eq 'a' and Active eq true")), ["3"])
    equal(await indexes.verify("ByEmail"), "sound: 1 entries")


async def of_many_who_want_a_value_one_gets_it(kit):
    table = await kit.new_table()
    await Indexes(kit, table).build("ByEmail", "Email", Unique=True)

    async def claim(task, value):
        try:
            await table.create_entity(entity(f"p{task}", value, Email=value))
            return True
        except HttpResponseError as error:
            equal(error.status_code, 409)
            return False

    for value in ("a", "b", "c", "d"):
        won = await asyncio.gather(*(claim(task, value) for task in range(8)))
        equal(won.count(True), 1, value)
    equal(sorted(await row_keys(table.list_entities())), ["a", "b", "c", "d"])
