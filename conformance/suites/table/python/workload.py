"""What the server learns from its queries: `TavolaAdvice` and `TavolaHotPartitions`, read like any table."""

from datetime import datetime, timedelta, timezone

from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import EdmType, TableSasPermissions, TableTransactionError, generate_table_sas

from clients import entity
from sdk import CREDENTIAL, collect, raises
from index_clients import all_pages, customer_table, explain
from suite import equal

SYSTEM_TABLES = ("TavolaAdvice", "TavolaHotPartitions")


async def _advice(kit, table, action="create"):
    found = kit.table("TavolaAdvice").query_entities(
        "PartitionKey eq @table and Action eq @action", parameters={"table": table.table_name, "action": action}
    )
    return await collect(found)


async def an_index_is_advised_declared_and_used(kit):
    table, indexes = await customer_table(kit, 300)
    equal(await _advice(kit, table), [])
    filter = lambda number: f"Email eq 'c{number}@example.com'"
    before = [(await explain(table, filter(number)))[0] for number in range(12)]
    advised = await _advice(kit, table)
    equal([one["RowKey"] for one in advised], ["create-ByEmail"])
    equal([advised[0][name] for name in ("Name", "Keys", "Include")], ["ByEmail", "Email", ""])
    one = await kit.table("TavolaAdvice").get_entity(table.table_name, "create-ByEmail")
    equal(one["Shapes"], "Email eq <String>")
    equal((one["Executions"].edm_type, one["Executions"].value), (EdmType.INT64, 12))
    equal((one["RowsExamined"].value, one["RowsReturned"].value), (12 * 300, 12))
    assert one["GainSeconds"] > 0 and "example" not in str(dict(one)), one
    await indexes.build(one["Name"], one["Keys"], Include=one["Include"])
    equal(await _advice(kit, table), [])
    for number, expected in enumerate(before):
        equal(await explain(table, filter(number)), (expected, "index ByEmail ordered"))


async def advice_is_filtered_selected_and_paged(kit):
    table, _ = await customer_table(kit, 300)
    for number in range(12):
        await collect(table.query_entities(f"Email eq 'c{number}@example.com'"))
        await collect(table.query_entities(f"Age eq {number} and LastName eq 'Nobody{number}'"))
    advice, own = kit.table("TavolaAdvice"), f"PartitionKey eq '{table.table_name}'"
    pages = await all_pages(advice.query_entities(own, results_per_page=1, select=["RowKey", "Keys"]))
    found = [one for page in pages for one, _ in page]
    equal([set(one) for one in found], [{"RowKey", "Keys"}] * 2)
    assert all(len(page) <= 1 for page in pages), pages
    costly = await collect(advice.query_entities(f"{own} and RowsExamined gt 1000L"))
    equal([one["Keys"] for one in costly], [one["Keys"] for one in found])
    with raises(ResourceNotFoundError, "ResourceNotFound", 404):
        await advice.get_entity(table.table_name, "create-Other")
    # What is about a table goes with it.
    await table.delete_table()
    equal(await collect(advice.query_entities(own)), [])


async def a_hot_partition_is_found(kit):
    table = await kit.new_table(entity("hot", "1", Text="x" * 100), entity("cold", "1"))
    for _ in range(400):
        await table.get_entity("hot", "1")
    hot = kit.table("TavolaHotPartitions")
    one = await hot.get_entity(table.table_name, "hot")
    assert one["Rank"] >= 1 and 0 < one["Share"] <= 1 and one["RequestsPerSecond"] > 0 and one["Error"] >= 0, one
    assert one["BytesPerSecond"] > one["RequestsPerSecond"], one
    own = await collect(hot.query_entities("PartitionKey eq @table", parameters={"table": table.table_name}))
    equal(own[-1]["RowKey"], "hot")
    equal(len(await collect(hot.query_entities("Rank eq 1"))), 1)


async def both_are_read_only_and_not_listed(kit):
    service = kit.service()
    names = [one.name for one in await collect(service.list_tables())]
    for name in SYSTEM_TABLES:
        assert name not in names, names
        with raises(ResourceExistsError, "TableAlreadyExists", 409):
            await service.create_table(name)
        table = kit.table(name)
        for attempt in (
            lambda: table.create_entity(entity()), lambda: table.upsert_entity(entity()),
            lambda: table.delete_entity("p", "r"), lambda: service.delete_table(name),
        ):
            with raises(HttpResponseError, "InsufficientAccountPermissions", 403):
                await attempt()
        with raises(TableTransactionError, "InsufficientAccountPermissions", 403):
            await table.submit_transaction([("create", entity())])


async def partition_keys_are_for_the_owner_alone(kit):
    expiry = datetime.now(timezone.utc) + timedelta(hours=1)
    for name in SYSTEM_TABLES:
        sas = generate_table_sas(CREDENTIAL, name, permission=TableSasPermissions(read=True), expiry=expiry)
        reader = kit.table(name, credential=AzureSasCredential(sas))
        if name == "TavolaAdvice":
            await collect(reader.list_entities())
            continue
        with raises(HttpResponseError, "AuthorizationFailure", 403):
            await collect(reader.list_entities())
