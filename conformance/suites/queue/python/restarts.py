"""The server killed and started again under its clients."""

import asyncio
import collections

from azure.storage.queue import AccessPolicy

import suite
from clients import LONG, contents, peeked, received
from suite import equal

RETRIES = {"retry_total": 20, "retry_connect": 20, "retry_read": 20, "initial_backoff": 0.1, "increment_base": 1.1}


async def what_was_acknowledged_survives_a_kill(kit):
    queue = kit.queue(kit.name(), **RETRIES)
    await queue.create_queue(metadata={"kept": "1"})
    for number in range(20):
        await queue.send_message(f"{number:02}" + "x" * 1000 * number)
    await queue.set_queue_access_policy({"id": AccessPolicy(permission="r")})
    claimed = await queue.receive_message(visibility_timeout=LONG)
    deleted = await queue.receive_message(visibility_timeout=LONG)
    await queue.delete_message(deleted)
    before = await queue.peek_messages(max_messages=32)
    await asyncio.to_thread(suite.restart_server)
    after = await queue.peek_messages(max_messages=32)
    fields = lambda one: (one.id, one.content, one.dequeue_count, one.inserted_on, one.expires_on)
    equal([fields(one) for one in after], [fields(one) for one in before])
    found = await queue.get_queue_properties()
    equal((found.metadata, found.approximate_message_count), ({"kept": "1"}, 19))
    equal(list(await queue.get_queue_access_policy()), ["id"])
    # The claim and its receipt are as durable as the message.
    updated = await queue.update_message(claimed, visibility_timeout=LONG)
    await queue.delete_message(updated)


async def a_clear_and_a_delete_survive_a_kill(kit):
    cleared, deleted = await kit.new_queue("a", "b", **RETRIES), await kit.new_queue("c", **RETRIES)
    await cleared.clear_messages()
    await deleted.delete_queue()
    await asyncio.to_thread(suite.restart_server)
    equal(await peeked(cleared), [])
    await deleted.create_queue()
    equal(await peeked(deleted), [])


async def clients_retry_through_restarts_and_lose_nothing(kit):
    queue = await kit.new_queue(**RETRIES)
    acknowledged, deleted, restarted = [], [], False

    async def produce(task):
        number = 0
        while not restarted or number < 10:
            await queue.send_message(f"{task}-{number}")
            acknowledged.append(f"{task}-{number}")
            number += 1

    async def consume():
        while not restarted:
            if message := await queue.receive_message(visibility_timeout=LONG):
                try:
                    await queue.delete_message(message)
                except Exception as error:
                    # The answer to the first attempt may have been lost with the server.
                    equal(getattr(error, "status_code", None), 404)
                deleted.append(message.content)

    async def restart():
        nonlocal restarted
        for _ in range(2):
            await asyncio.sleep(0.3)
            await asyncio.to_thread(suite.restart_server)
        restarted = True

    await asyncio.gather(restart(), *(produce(task) for task in range(3)), *(consume() for _ in range(2)))
    # A claim whose answer was lost with the server hides its message: it is among those that are counted.
    left = contents(await received(queue, visibility_timeout=LONG))
    hidden = (await queue.get_queue_properties()).approximate_message_count - len(left)
    missing = collections.Counter(acknowledged) - collections.Counter(deleted + left)
    assert sum(missing.values()) <= hidden, f"lost: {missing}, hidden {hidden}"
    equal([text for text in left if text in deleted and acknowledged.count(text) == 1 and left.count(text) + deleted.count(text) > 2], [])
    assert len(acknowledged) >= 30, len(acknowledged)
