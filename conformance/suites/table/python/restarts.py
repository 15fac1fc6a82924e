"""The server killed and started again under its clients."""

import asyncio

from azure.core import MatchConditions
from azure.data.tables import TableAccessPolicy, UpdateMode

import suite
from clients import entity
from sdk import collect, next_page
from suite import equal

RETRIES = {"retry_total": 20, "retry_connect": 20, "retry_read": 20, "retry_backoff_factor": 0.05, "retry_backoff_max": 1}


async def what_was_acknowledged_survives_a_kill(kit):
    table = await kit.new_table(**RETRIES)
    await table.submit_transaction([("create", entity(row=f"{at:03}", V=at)) for at in range(50)])
    await table.upsert_entity(entity(row="last", V=b"\0\xff"))
    await table.delete_entity("p", "007")
    await table.set_table_access_policy({"id": TableAccessPolicy(permission="r")})
    before = [(dict(one), one.metadata["etag"]) for one in await collect(table.list_entities())]
    equal(len(before), 50)
    await asyncio.to_thread(suite.restart_server)
    after = [(dict(one), one.metadata["etag"]) for one in await collect(table.list_entities())]
    equal(after, before)
    equal(list(await table.get_table_access_policy()), ["id"])


async def clients_retry_through_a_restart_and_lose_nothing(kit):
    table = await kit.new_table(**RETRIES)
    acknowledged, restarted = [], False

    async def write(task):
        number = 0
        while not restarted or number < 20:
            await table.upsert_entity(entity(f"p{task}", f"{number:06}", N=number), mode=UpdateMode.REPLACE)
            acknowledged.append((f"p{task}", f"{number:06}"))
            number += 1

    async def read():
        while not restarted:
            await collect(table.query_entities("PartitionKey eq 'p0'", results_per_page=10))

    async def restart():
        nonlocal restarted
        for _ in range(2):
            await asyncio.sleep(0.2)
            await asyncio.to_thread(suite.restart_server)
        restarted = True

    await asyncio.gather(restart(), read(), *(write(task) for task in range(4)))
    stored = {(one["PartitionKey"], one["RowKey"]) for one in await collect(table.list_entities())}
    missing = [pair for pair in acknowledged if pair not in stored]
    equal(missing, [], "acknowledged and lost")
    assert len(acknowledged) >= 80, len(acknowledged)


async def a_token_is_good_after_a_restart(kit):
    table = await kit.new_table(**RETRIES)
    await table.submit_transaction([("create", entity(row=f"{at:03}")) for at in range(20)])
    first, token = await next_page(table.list_entities(results_per_page=8).by_page())
    await asyncio.to_thread(suite.restart_server)
    pages = table.list_entities(results_per_page=100).by_page(continuation_token=token)
    rest, token = await next_page(pages)
    equal([one["RowKey"] for one in first + rest], [f"{at:03}" for at in range(20)])
    equal(token, None)


async def an_etag_is_good_after_a_restart_and_the_next_one_is_newer(kit):
    table = await kit.new_table(entity(V=1), **RETRIES)
    found = await table.get_entity("p", "r")
    await asyncio.to_thread(suite.restart_server)
    found["V"] = 2
    answer = await table.update_entity(found, mode=UpdateMode.REPLACE, match_condition=MatchConditions.IfNotModified)
    assert answer["etag"] > found.metadata["etag"], (answer, found.metadata)


async def a_transaction_in_flight_is_there_whole_or_not_at_all(kit):
    table = await kit.new_table(retry_total=0)
    finished = False

    async def write():
        number = 0
        while not finished:
            number += 1
            try:
                await table.submit_transaction([("upsert", entity(f"p{number}", f"{at}")) for at in range(20)])
            except Exception:
                await asyncio.sleep(0.05)

    async def restart():
        nonlocal finished
        for _ in range(3):
            await asyncio.sleep(0.1)
            await asyncio.to_thread(suite.restart_server)
        finished = True

    await asyncio.gather(write(), restart())
    counts = {}
    for one in await collect(table.list_entities()):
        counts[one["PartitionKey"]] = counts.get(one["PartitionKey"], 0) + 1
    assert counts, "nothing was written"
    equal(set(counts.values()), {20}, "rows per transaction")
