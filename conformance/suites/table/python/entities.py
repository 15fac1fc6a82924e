"""Entities: insert, read, update, merge, upsert, delete, and the conditions on them."""

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import TableEntity, UpdateMode

from clients import entity
from sdk import collect, raises
from suite import equal


async def an_inserted_entity_is_read_back(kit):
    table = await kit.new_table()
    answer = await table.create_entity(entity(Name="Anna", Age=30))
    found = await table.get_entity("p", "r")
    equal(dict(found), entity(Name="Anna", Age=30))
    equal(found.metadata["etag"], answer["etag"])


async def the_etag_is_the_timestamp(kit):
    table = await kit.new_table(entity())
    found = await table.get_entity("p", "r")
    stamp = found.metadata["timestamp"].tables_service_value
    equal(found.metadata["etag"], "W/\"datetime'" + stamp.replace(":", "%3A") + "'\"")


async def inserting_twice_is_a_conflict(kit):
    table = await kit.new_table(entity(V=1))
    with raises(ResourceExistsError, "EntityAlreadyExists", 409):
        await table.create_entity(entity(V=2))
    equal((await table.get_entity("p", "r"))["V"], 1)


async def a_missing_entity_is_not_found(kit):
    table = await kit.new_table()
    with raises(ResourceNotFoundError, "ResourceNotFound", 404):
        await table.get_entity("p", "nothing")


async def an_insert_without_a_key_is_refused(kit):
    table = await kit.new_table()
    with raises(ValueError) as refused:
        await table.create_entity({"RowKey": "r"})
    assert "PartitionKey must be present" in str(refused.error)
    with raises(ValueError) as refused:
        await table.create_entity({"PartitionKey": "p"})
    assert "RowKey must be present" in str(refused.error)


async def replace_drops_what_is_not_sent(kit):
    table = await kit.new_table(entity(A=1, B=2))
    await table.update_entity(entity(B=3), mode=UpdateMode.REPLACE)
    equal(dict(await table.get_entity("p", "r")), entity(B=3))


async def merge_keeps_what_is_not_sent(kit):
    table = await kit.new_table(entity(A=1, B=2))
    await table.update_entity(entity(B=3), mode=UpdateMode.MERGE)
    equal(dict(await table.get_entity("p", "r")), entity(A=1, B=3))


async def merge_changes_the_type_of_a_property(kit):
    table = await kit.new_table(entity(A=1))
    await table.update_entity(entity(A="text"), mode=UpdateMode.MERGE)
    equal((await table.get_entity("p", "r"))["A"], "text")


async def update_of_a_missing_entity_is_not_found(kit):
    table = await kit.new_table()
    for mode in (UpdateMode.REPLACE, UpdateMode.MERGE):
        with raises(ResourceNotFoundError, "ResourceNotFound", 404):
            await table.update_entity(entity(), mode=mode)


async def upsert_inserts_and_then_replaces(kit):
    table = await kit.new_table()
    await table.upsert_entity(entity(A=1, B=2), mode=UpdateMode.REPLACE)
    await table.upsert_entity(entity(B=3), mode=UpdateMode.REPLACE)
    equal(dict(await table.get_entity("p", "r")), entity(B=3))


async def upsert_inserts_and_then_merges(kit):
    table = await kit.new_table()
    await table.upsert_entity(entity(A=1, B=2), mode=UpdateMode.MERGE)
    await table.upsert_entity(entity(B=3), mode=UpdateMode.MERGE)
    equal(dict(await table.get_entity("p", "r")), entity(A=1, B=3))


async def deleting_an_entity_twice_is_no_error(kit):
    table = await kit.new_table(entity())
    await table.delete_entity("p", "r")
    await table.delete_entity("p", "r")
    equal(await collect(table.list_entities()), [])


async def delete_takes_the_entity_itself(kit):
    table = await kit.new_table(entity(), entity(row="kept"))
    await table.delete_entity(await table.get_entity("p", "r"))
    equal([one["RowKey"] for one in await collect(table.list_entities())], ["kept"])


async def every_write_changes_the_etag(kit):
    table = await kit.new_table()
    etags = [(await table.create_entity(entity(V=0)))["etag"]]
    for value in range(1, 20):
        mode = UpdateMode.MERGE if value % 2 else UpdateMode.REPLACE
        etags.append((await table.upsert_entity(entity(V=0), mode=mode))["etag"])
    equal(len(set(etags)), 20, "distinct etags")
    assert all(etag.startswith("W/\"datetime'") for etag in etags), etags
    equal((await table.get_entity("p", "r")).metadata["etag"], etags[-1])


async def an_update_with_the_current_etag_succeeds_and_with_an_old_one_fails(kit):
    table = await kit.new_table(entity(V=1))
    old = await table.get_entity("p", "r")
    for mode in (UpdateMode.REPLACE, UpdateMode.MERGE):
        current = await table.get_entity("p", "r")
        current["V"] += 1
        await table.update_entity(current, mode=mode, match_condition=MatchConditions.IfNotModified)
        with raises(ResourceModifiedError, "UpdateConditionNotSatisfied", 412):
            await table.update_entity(old, mode=mode, match_condition=MatchConditions.IfNotModified)
    equal((await table.get_entity("p", "r"))["V"], 3)


async def a_delete_with_an_old_etag_fails_and_with_the_current_one_succeeds(kit):
    table = await kit.new_table(entity(V=1))
    old = await table.get_entity("p", "r")
    await table.upsert_entity(entity(V=2))
    with raises(ResourceModifiedError, "UpdateConditionNotSatisfied", 412):
        await table.delete_entity(old, match_condition=MatchConditions.IfNotModified)
    current = await table.get_entity("p", "r")
    equal(current["V"], 2)
    await table.delete_entity(current, match_condition=MatchConditions.IfNotModified)
    equal(await collect(table.list_entities()), [])


async def an_etag_made_from_the_timestamp_alone_is_accepted(kit):
    table = await kit.new_table(entity(V=1))
    bare = {"Accept": "application/json;odata=nometadata"}
    found = await table.get_entity("p", "r", headers=bare)
    found["V"] = 2
    await table.update_entity(found, match_condition=MatchConditions.IfNotModified)
    equal((await table.get_entity("p", "r"))["V"], 2)


async def an_update_with_an_etag_of_a_missing_entity_is_not_found(kit):
    table = await kit.new_table(entity())
    found = await table.get_entity("p", "r")
    await table.delete_entity(found)
    with raises(ResourceNotFoundError, "ResourceNotFound", 404):
        await table.update_entity(found, match_condition=MatchConditions.IfNotModified)


async def a_fetched_entity_can_be_written_back_whole(kit):
    table = await kit.new_table(entity(A=1, Text="x"))
    found = await table.get_entity("p", "r")
    assert isinstance(found, TableEntity)
    found["A"] = 2
    await table.update_entity(found, mode=UpdateMode.REPLACE)
    equal(dict(await table.get_entity("p", "r")), entity(A=2, Text="x"))


async def a_property_of_value_none_is_not_stored(kit):
    table = await kit.new_table(entity(A=None, B=1))
    equal(dict(await table.get_entity("p", "r")), entity(B=1))


async def select_returns_only_what_is_named(kit):
    table = await kit.new_table(entity(A=1, B=2, C=3))
    equal(dict(await table.get_entity("p", "r", select=["A", "C"])), {"A": 1, "C": 3})
    equal(dict(await table.get_entity("p", "r", select="PartitionKey,B")), {"PartitionKey": "p", "B": 2})


async def select_of_a_missing_property_is_none(kit):
    table = await kit.new_table(entity(A=1))
    equal(dict(await table.get_entity("p", "r", select=["A", "Missing"])), {"A": 1, "Missing": None})


async def full_metadata_names_type_id_and_link(kit):
    table = await kit.new_table(entity(A=1))
    full = {"Accept": "application/json;odata=fullmetadata"}
    metadata = (await table.get_entity("p", "r", headers=full)).metadata
    equal(metadata["type"], f"{table.account_name}.{table.table_name}")
    equal(metadata["editLink"], f"{table.table_name}(PartitionKey='p',RowKey='r')")
    assert metadata["id"].endswith("/" + metadata["editLink"]), metadata


async def properties_that_differ_in_case_live_side_by_side(kit):
    table = await kit.new_table(entity(Value=1, value=2, VALUE=3))
    equal(dict(await table.get_entity("p", "r")), entity(Value=1, value=2, VALUE=3))


async def an_entity_of_252_properties_is_stored_and_of_253_refused(kit):
    table = await kit.new_table()
    properties = {f"P{number}": number for number in range(252)}
    await table.create_entity(entity(**properties))
    equal(dict(await table.get_entity("p", "r")), entity(**properties))
    with raises(code="TooManyProperties", status=400):
        await table.upsert_entity(entity(row="more", OneMore=1, **properties))


async def a_merge_cannot_grow_an_entity_past_252_properties(kit):
    table = await kit.new_table(entity(**{f"P{number}": number for number in range(252)}))
    with raises(code="TooManyProperties", status=400):
        await table.update_entity(entity(OneMore=1), mode=UpdateMode.MERGE)


async def a_property_name_of_255_characters_is_stored_and_of_256_refused(kit):
    table = await kit.new_table(entity(**{"n" * 255: 1}))
    equal((await table.get_entity("p", "r"))["n" * 255], 1)
    with raises(code="PropertyNameTooLong", status=400):
        await table.upsert_entity(entity(**{"n" * 256: 1}))


async def property_names_follow_the_rules_of_identifiers(kit):
    table = await kit.new_table(entity(**{"_x": 1, "Größe": 2, "名前": 3}))
    equal(dict(await table.get_entity("p", "r")), entity(**{"_x": 1, "Größe": 2, "名前": 3}))
    with raises(code="PropertyNameInvalid", status=400):
        await table.upsert_entity(entity(**{"123": 1}))


async def an_entity_over_one_mebibyte_is_refused(kit):
    table = await kit.new_table()
    fits = {f"P{number}": bytes(65_536) for number in range(15)}
    await table.create_entity(entity(row="fits", **fits))
    equal(dict(await table.get_entity("p", "fits")), entity(row="fits", **fits))
    with raises(code="EntityTooLarge", status=400):
        await table.create_entity(entity(**fits, P15=bytes(65_536), P16=bytes(65_536)))
