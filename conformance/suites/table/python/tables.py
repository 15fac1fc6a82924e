"""Tables: create, list, delete, names."""

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from clients import entity
from sdk import collect, next_page, raises
from suite import equal


async def a_created_table_is_listed_and_a_deleted_one_is_not(kit):
    service, name = kit.service(), kit.name()
    created = await service.create_table(name)
    equal(created.table_name, name)
    assert name in [table.name for table in await collect(service.list_tables())]
    await service.delete_table(name)
    assert name not in [table.name for table in await collect(service.list_tables())]


async def create_table_answers_with_the_name(kit):
    name = kit.name()
    item = await kit.table(name).create_table()
    equal(item.name, name)


async def creating_a_table_twice_is_a_conflict(kit):
    table = await kit.new_table()
    with raises(ResourceExistsError, "TableAlreadyExists", 409):
        await table.create_table()


async def a_name_that_differs_only_in_case_is_the_same_table(kit):
    table = await kit.new_table(entity(V=1))
    with raises(ResourceExistsError, "TableAlreadyExists", 409):
        await kit.table(table.table_name.upper()).create_table()
    equal((await kit.table(table.table_name.upper()).get_entity("p", "r"))["V"], 1)


async def create_if_not_exists_keeps_what_is_there(kit):
    service, name = kit.service(), kit.name()
    await service.create_table_if_not_exists(name)
    await kit.table(name).create_entity(entity(V=1))
    await service.create_table_if_not_exists(name)
    equal((await kit.table(name).get_entity("p", "r"))["V"], 1)


async def deleting_a_table_twice_is_no_error(kit):
    table = await kit.new_table()
    await table.delete_table()
    await table.delete_table()
    with raises(ResourceNotFoundError, "TableNotFound", 404):
        await table.get_entity("p", "r")


async def a_table_deleted_and_created_again_is_empty(kit):
    table = await kit.new_table(entity(V=1))
    await table.delete_table()
    await table.create_table()
    equal(await collect(table.list_entities()), [])


async def tables_are_found_by_name(kit):
    service, name = kit.service(), kit.name()
    await service.create_table(name)
    found = await collect(service.query_tables("TableName eq @name", parameters={"name": name}))
    equal([table.name for table in found], [name])
    found = await collect(service.query_tables(f"TableName eq '{name}x'"))
    equal(found, [])


async def tables_are_found_by_range_in_order(kit):
    service = kit.service()
    names = [kit.name() for _ in range(3)]
    for name in reversed(names):
        await service.create_table(name)
    found = await collect(service.query_tables(f"TableName ge '{min(names)}' and TableName le '{max(names)}'"))
    equal([table.name for table in found], sorted(names))


async def the_list_of_tables_is_paged(kit):
    service = kit.service()
    names = [kit.name() for _ in range(5)]
    for name in names:
        await service.create_table(name)
    query = f"TableName ge '{min(names)}' and TableName le '{max(names)}'"
    pages = service.query_tables(query, results_per_page=2).by_page()
    first, token = await next_page(pages)
    equal(len(first), 2)
    assert token
    resumed = service.query_tables(query, results_per_page=2).by_page(continuation_token=token)
    second, _ = await next_page(resumed)
    third, token = await next_page(resumed)
    equal([table.name for table in first + second + third], sorted(names))
    equal(token, None)


async def a_table_name_with_bad_characters_is_refused(kit):
    for name in ("my-table", "1table", "my_table"):
        with raises(ValueError) as refused:
            await kit.table(name).create_table()
        assert "alphanumeric" in str(refused.error), refused.error


async def a_table_name_of_wrong_length_is_refused(kit):
    for name in ("ab", "a" * 64):
        with raises(ValueError) as refused:
            await kit.table(name).create_table()
        assert "3-63" in str(refused.error), refused.error


async def the_longest_and_the_shortest_table_name_work(kit):
    for name in ("z" + kit.name()[-2:], kit.name().ljust(63, "x")):
        kit.tables.append(name)
        table = kit.table(name)
        await table.delete_table()
        await table.create_table()
        await table.create_entity(entity())
        equal(len(await collect(table.list_entities())), 1)


async def the_reserved_name_tables_is_refused(kit):
    with raises(code="InvalidInput", status=400):
        await kit.table("tables").create_table()


async def entity_calls_on_a_missing_table_say_so(kit):
    table = kit.table(kit.name())
    for call in (
        lambda: table.create_entity(entity()),
        lambda: table.upsert_entity(entity()),
        lambda: table.update_entity(entity()),
        lambda: table.get_entity("p", "r"),
        lambda: collect(table.list_entities()),
        lambda: table.get_table_access_policy(),
    ):
        with raises(ResourceNotFoundError, "TableNotFound", 404):
            await call()


async def an_answer_carries_the_identifiers_of_request_and_version(kit):
    table = await kit.new_table()
    seen = {}
    await table.upsert_entity(
        entity(), request_id="conformance",
        raw_response_hook=lambda answer: seen.update(answer.http_response.headers),
    )
    seen = {name.lower(): value for name, value in seen.items()}
    equal(seen["x-ms-version"], table.api_version)
    equal(seen["x-ms-client-request-id"], "conformance")
    assert len(seen["x-ms-request-id"]) == 36, seen
    assert "etag" in seen and "date" in seen, seen


