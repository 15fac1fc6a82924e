"""Keys that clients must escape, and keys that the service refuses."""

from azure.core.exceptions import HttpResponseError

from clients import entity, row_keys
from sdk import collect, raises
from suite import equal

ODD = [
    "", " ", "  two blanks  ", "O'Brien", "''", "'", '"', "100%", "%20", "%2F", "%", "a+b", "a b", "a&b=c", "a;b:c,d",
    "(x)", "[x]{y}", "@", "$batch", "~!*.-_", "<tag>", "|", "^`", "ключ", "键", "é", "e\u0301", "😀", "Tables()",
    "PartitionKey='x',RowKey='y'", "..", ".", "\u00a0", "\uffff", "x" * 512,
]


async def odd_keys_work_in_every_operation(kit):
    table = await kit.new_table()
    for key in ODD:
        try:
            await table.create_entity(entity(key, key, V=1))
            equal((await table.get_entity(key, key))["V"], 1)
            await table.update_entity(entity(key, key, W=2), mode="merge")
            await table.update_entity(entity(key, key, V=3), mode="replace")
            equal(dict(await table.get_entity(key, key)), entity(key, key, V=3))
            await table.upsert_entity(entity(key, key, W=4), mode="merge")
            found = await collect(
                table.query_entities("PartitionKey eq @k and RowKey eq @k", parameters={"k": key})
            )
            equal([dict(one) for one in found], [entity(key, key, V=3, W=4)])
            await table.delete_entity(key, key)
            equal(await collect(table.list_entities()), [])
        except (AssertionError, HttpResponseError) as error:
            raise AssertionError(f"key {key!r}: {error}") from error


async def odd_keys_work_in_transactions(kit):
    table = await kit.new_table()
    for key in ODD:
        other = "other" + key[5:]
        try:
            await table.submit_transaction([
                ("create", entity(key, key, V=1)), ("upsert", entity(key, other, V=2)),
            ])
            await table.submit_transaction([
                ("update", entity(key, key, V=5)), ("delete", entity(key, other)),
            ])
            equal([dict(one) for one in await collect(table.list_entities())], [entity(key, key, V=5)])
            await table.submit_transaction([("delete", entity(key, key))])
        except (AssertionError, HttpResponseError) as error:
            raise AssertionError(f"key {key!r}: {error}") from error


async def odd_keys_are_distinct_and_in_order_of_utf16(kit):
    table = await kit.new_table(*(entity("p", key) for key in ODD))
    expected = sorted(ODD, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    equal(await row_keys(table.list_entities()), expected)


async def keys_with_forbidden_characters_are_refused(kit):
    table = await kit.new_table()
    for key in ("a/b", "a\\b", "a#b", "a?b", "a\tb", "a\nb", "a\x00b", "a\x1fb", "a\x7fb", "a\x9fb"):
        for wrong in (entity(key, "r"), entity("p", key)):
            with raises(code="OutOfRangeInput", status=400):
                await table.create_entity(wrong)
    equal(await collect(table.list_entities()), [])


async def keys_with_forbidden_characters_are_refused_in_urls(kit):
    table = await kit.new_table()
    for key in ("a/b", "a\\b"):
        with raises(code="InvalidInput", status=400):
            await table.upsert_entity(entity(key, "r"))
        with raises(code="InvalidInput", status=400):
            await table.get_entity(key, "r")
    for key in ("a#b", "a?b"):
        with raises(code="OutOfRangeInput", status=400):
            await table.upsert_entity(entity(key, "r"))
        with raises(code="ResourceNotFound", status=404):
            await table.get_entity(key, "r")


async def a_key_of_512_units_is_stored_and_a_longer_one_refused(kit):
    table = await kit.new_table(entity("p" * 512, "😀" * 256))
    equal(len(await collect(table.list_entities())), 1)
    with raises(code="PropertyValueTooLarge", status=400):
        await table.create_entity(entity("p" * 513, "r"))
    with raises(code="PropertyValueTooLarge", status=400):
        await table.create_entity(entity("p", "😀" * 256 + "x"))


async def keys_are_case_sensitive(kit):
    table = await kit.new_table(entity("p", "a", V=1), entity("p", "A", V=2), entity("P", "a", V=3))
    equal((await table.get_entity("p", "A"))["V"], 2)
    equal([one["V"] for one in await collect(table.list_entities())], [3, 2, 1])


async def keys_that_are_no_strings_are_refused(kit):
    table = await kit.new_table()
    with raises(code="InvalidInput", status=400):
        await table.create_entity(entity(1, "r"))
    with raises(code="InvalidInput", status=400):
        await table.create_entity(entity("p", True))
