"""Many tasks at once on the same entities."""

import asyncio

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError
from azure.data.tables import TableTransactionError

from clients import entity
from sdk import code_of, collect
from suite import equal

TASKS = 12
ROUNDS = 10


async def counters_under_optimistic_concurrency_lose_no_update(kit):
    table = await kit.new_table(entity(N=0))
    conflicts = 0

    async def count():
        nonlocal conflicts
        added = 0
        while added < ROUNDS:
            current = await table.get_entity("p", "r")
            current["N"] += 1
            try:
                await table.update_entity(current, mode="replace", match_condition=MatchConditions.IfNotModified)
                added += 1
            except ResourceModifiedError:
                conflicts += 1

    await asyncio.gather(*(count() for _ in range(TASKS)))
    equal((await table.get_entity("p", "r"))["N"], TASKS * ROUNDS)
    assert conflicts > 0, "the tasks never met, so the case shows nothing"


async def of_many_inserts_of_one_key_one_succeeds(kit):
    table = await kit.new_table()

    async def insert(number):
        try:
            await table.create_entity(entity(Winner=number))
            return number
        except ResourceExistsError:
            return None

    winners = [one for one in await asyncio.gather(*(insert(number) for number in range(TASKS))) if one is not None]
    equal(len(winners), 1)
    equal((await table.get_entity("p", "r"))["Winner"], winners[0])


async def deletes_under_an_old_etag_are_all_refused(kit):
    table = await kit.new_table(entity())
    found = await table.get_entity("p", "r")
    await table.upsert_entity(entity(V=1))

    async def delete(one):
        try:
            await table.delete_entity(one, match_condition=MatchConditions.IfNotModified)
        except ResourceModifiedError:
            return "refused"

    equal(set(await asyncio.gather(*(delete(found) for _ in range(TASKS)))), {"refused"})
    equal(len(await collect(table.list_entities())), 1)


async def transfers_between_entities_keep_the_sum(kit):
    table = await kit.new_table(*(entity(row=str(account), Balance=100) for account in range(4)))

    async def transfer(task):
        for turn in range(ROUNDS):
            source, target = str((task + turn) % 4), str((task + 2 * turn + 1) % 4)
            while source != target:
                one, other = await table.get_entity("p", source), await table.get_entity("p", target)
                operations = [
                    ("update", entity(row=source, Balance=one["Balance"] - 1), _unchanged(one)),
                    ("update", entity(row=target, Balance=other["Balance"] + 1), _unchanged(other)),
                ]
                try:
                    await table.submit_transaction(operations)
                    break
                except TableTransactionError as error:
                    equal(code_of(error), "UpdateConditionNotSatisfied")

    await asyncio.gather(*(transfer(task) for task in range(6)))
    balances = [one["Balance"] for one in await collect(table.list_entities())]
    equal(sum(balances), 400, f"balances {balances}")
    assert balances != [100] * 4, balances


def _unchanged(found):
    return {"etag": found.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
