"""Entity group transactions: what succeeds, and each way to fail with its code and index."""

import asyncio

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    EdmType, EntityProperty, RequestTooLargeError, TableTransactionError, TransactionOperation, UpdateMode,
)

import clients
from clients import entity, row_keys
from sdk import collect, raises
from suite import equal


async def _fails(table, operations, code, index, status=400):
    """Submits and expects this failure, and that nothing was applied."""
    before = [dict(one) for one in await collect(table.list_entities())]
    with raises(TableTransactionError, code, status) as failed:
        await table.submit_transaction(operations)
    equal(failed.error.index, index, "index of the failed operation")
    equal([dict(one) for one in await collect(table.list_entities())], before, "content after the failure")


async def every_kind_of_operation_in_one_transaction(kit):
    table = await kit.new_table(
        entity(row="delete"), entity(row="merge", A=1), entity(row="replace", A=1), entity(row="upsertmerge", A=1),
        entity(row="upsertreplace", A=1),
    )
    answers = await table.submit_transaction([
        (TransactionOperation.CREATE, entity(row="create", B=2)),
        (TransactionOperation.DELETE, entity(row="delete")),
        (TransactionOperation.UPDATE, entity(row="merge", B=2), {"mode": UpdateMode.MERGE}),
        (TransactionOperation.UPDATE, entity(row="replace", B=2), {"mode": UpdateMode.REPLACE}),
        (TransactionOperation.UPSERT, entity(row="upsertmerge", B=2), {"mode": UpdateMode.MERGE}),
        (TransactionOperation.UPSERT, entity(row="upsertreplace", B=2), {"mode": UpdateMode.REPLACE}),
        (TransactionOperation.UPSERT, entity(row="upsertnew", B=2)),
    ])
    equal(len(answers), 7)
    found = {one["RowKey"]: one for one in await collect(table.list_entities())}
    equal(
        {row: {name: one[name] for name in ("A", "B") if name in one} for row, one in found.items()},
        {
            "create": {"B": 2}, "merge": {"A": 1, "B": 2}, "replace": {"B": 2}, "upsertmerge": {"A": 1, "B": 2},
            "upsertreplace": {"B": 2}, "upsertnew": {"B": 2},
        },
    )
    for at, row in ((0, "create"), (2, "merge"), (3, "replace"), (4, "upsertmerge"), (5, "upsertreplace")):
        equal(answers[at]["etag"], found[row].metadata["etag"], f"etag of {row}")
    assert "etag" not in answers[1], answers[1]


async def types_come_back_from_a_transaction(kit):
    table, big = await kit.new_table(), EntityProperty(2**62, EdmType.INT64)
    whole = entity(Text="ü😀\r\n--changeset", Data=b"\0\xff", Big=big, Ratio=5.0, Truth=True, Empty="")
    await table.submit_transaction([("create", whole)])
    found = await table.get_entity("p", "r")
    equal(dict(found), whole)
    equal(type(found["Ratio"]), float)


async def a_hundred_operations_are_accepted(kit):
    table = await kit.new_table()
    answers = await table.submit_transaction([("create", one) for one in clients.rows("p", 100)])
    equal(len(answers), 100)
    equal(await row_keys(table.list_entities()), [f"{number:04}" for number in range(100)])


async def more_than_a_hundred_operations_are_refused(kit):
    table = await kit.new_table()
    await _fails(table, [("create", one) for one in clients.rows("p", 101)], "InvalidInput", 99)


async def an_insert_of_what_exists_fails_at_its_index(kit):
    table = await kit.new_table(entity(row="0003"))
    await _fails(table, [("create", one) for one in clients.rows("p", 6)], "EntityAlreadyExists", 3, 409)


async def an_update_of_what_is_missing_fails_at_its_index(kit):
    table = await kit.new_table(entity(row="a"))
    for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
        operations = [("upsert", entity(row="a", V=1)), ("update", entity(row="missing"), {"mode": mode})]
        await _fails(table, operations, "ResourceNotFound", 1, 404)


async def a_delete_of_what_is_missing_fails_at_its_index(kit):
    table = await kit.new_table(entity(row="a"))
    operations = [("delete", entity(row="a")), ("create", entity(row="b")), ("delete", entity(row="missing"))]
    await _fails(table, operations, "ResourceNotFound", 2, 404)


async def an_old_etag_fails_at_its_index(kit):
    table = await kit.new_table(entity(row="a"), entity(row="b"))
    old = await table.get_entity("p", "b")
    await table.upsert_entity(entity(row="b", V=1))
    condition = {"etag": old.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    for operation in (
        ("update", entity(row="b", V=2), condition),
        ("update", entity(row="b", V=2), {**condition, "mode": UpdateMode.REPLACE}),
        ("delete", old, condition),
    ):
        await _fails(table, [("upsert", entity(row="a", V=1)), operation], "UpdateConditionNotSatisfied", 1, 412)


async def current_etags_let_a_transaction_pass(kit):
    table = await kit.new_table(entity(row="a"), entity(row="b"))
    found = await collect(table.list_entities())
    await table.submit_transaction([
        ("update", entity(row="a", V=1),
         {"etag": found[0].metadata["etag"], "match_condition": MatchConditions.IfNotModified}),
        ("delete", found[1], {"match_condition": MatchConditions.IfNotModified}),
    ])
    equal([dict(one) for one in await collect(table.list_entities())], [entity(row="a", V=1)])


async def the_same_row_twice_is_refused(kit):
    table = await kit.new_table()
    operations = [("upsert", entity(row=row)) for row in ("a", "b", "a")]
    await _fails(table, operations, "InvalidDuplicateRow", 2)


async def a_missing_table_is_named(kit):
    table = kit.table(kit.name())
    with raises(TableTransactionError, "TableNotFound", 404) as failed:
        await table.submit_transaction([("upsert", entity(row="a")), ("upsert", entity(row="b"))])
    equal(failed.error.index, 0)


async def a_bad_table_name_is_named(kit):
    with raises(ValueError) as refused:
        await kit.table("my-table").submit_transaction([("upsert", entity())])
    assert "alphanumeric" in str(refused.error), refused.error


async def a_value_too_large_fails_at_its_index(kit):
    table = await kit.new_table()
    operations = [("create", entity(row="a")), ("create", entity(row="b", Text="x" * 32_769))]
    await _fails(table, operations, "PropertyValueTooLarge", 1)


async def a_bad_property_name_fails_at_its_index(kit):
    table = await kit.new_table()
    operations = [("create", entity(row="a")), ("create", entity(row="b", **{"123": 1}))]
    await _fails(table, operations, "PropertyNameInvalid", 1)


async def too_many_properties_fail_at_their_index(kit):
    table = await kit.new_table()
    many = {f"P{number}": number for number in range(253)}
    await _fails(table, [("create", entity(row="a")), ("upsert", entity(row="b", **many))], "TooManyProperties", 1)


async def a_forbidden_key_fails_at_its_index(kit):
    table = await kit.new_table()
    operations = [("create", entity(row="a")), ("create", entity(row="b#c"))]
    await _fails(table, operations, "OutOfRangeInput", 1)


async def an_entity_too_large_fails_at_its_index(kit):
    table = await kit.new_table()
    large = {f"P{number}": bytes(65_536) for number in range(17)}
    await _fails(table, [("create", entity(row="a")), ("create", entity(row="b", **large))], "EntityTooLarge", 1)


async def a_body_over_four_mebibytes_is_refused(kit):
    table = await kit.new_table()
    operations = [("create", entity(row=f"{at:03}", Data=bytes(65_536))) for at in range(50)]
    with raises(RequestTooLargeError, "RequestBodyTooLarge", 413):
        await table.submit_transaction(operations)
    equal(await collect(table.list_entities()), [])


async def a_body_just_below_four_mebibytes_is_accepted(kit):
    table = await kit.new_table()
    operations = [("create", entity(row=f"{at:03}", Data=bytes(65_000))) for at in range(46)]
    equal(len(await table.submit_transaction(operations)), 46)
    equal(len(await collect(table.list_entities(select="RowKey"))), 46)


async def an_empty_transaction_is_answered_with_nothing(kit):
    table = await kit.new_table()
    equal(await table.submit_transaction([]), [])


async def two_partitions_are_refused_by_client_and_server(kit):
    table = await kit.new_table()
    operations = [("create", entity("p", "a")), ("create", entity("q", "b"))]
    with raises(ValueError):
        await table.submit_transaction(operations)

    def unchecked(self, one):
        pass

    checked = _batch_class()._verify_partition_key
    _batch_class()._verify_partition_key = unchecked
    try:
        await _fails(table, operations, "CommandsInBatchActOnDifferentPartitions", 1)
    finally:
        _batch_class()._verify_partition_key = checked


def _batch_class():
    from azure.data.tables._table_batch import TableBatchOperations

    return TableBatchOperations


async def readers_never_see_half_a_transaction(kit):
    table = await kit.new_table(*(entity(row=str(row), V=0) for row in range(10)))
    done = False

    async def write():
        nonlocal done
        for value in range(1, 31):
            await table.submit_transaction([("upsert", entity(row=str(row), V=value)) for row in range(10)])
        done = True

    async def read():
        reads = 0
        while not done:
            values = {one["V"] for one in await collect(table.query_entities("PartitionKey eq 'p'"))}
            equal(len(values), 1, f"values seen at once: {values}")
            reads += 1
        return reads

    _, *reads = await asyncio.gather(write(), read(), read())
    assert all(count > 0 for count in reads), reads


async def a_rewound_transaction_can_be_sent_again(kit):
    table = await kit.new_table(entity(row="0001"))
    operations = [("create", one) for one in clients.rows("p", 3)]
    with raises(HttpResponseError, "EntityAlreadyExists", 409):
        await table.submit_transaction(operations)
    await table.delete_entity("p", "0001")
    equal(len(await table.submit_transaction(operations)), 3)
