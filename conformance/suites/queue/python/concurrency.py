"""Many producers and consumers at once on one queue."""

import asyncio
import collections

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from clients import LONG, peeked, received
from sdk import code_of
from suite import equal

CONSUMERS = 12
MESSAGES = 240


async def no_message_is_handed_out_twice(kit):
    queue = await kit.new_queue()
    await asyncio.gather(*(queue.send_message(str(number)) for number in range(MESSAGES)))
    taken = collections.Counter()

    async def consume(size):
        while found := [message async for message in _batch(queue, size)]:
            taken.update(message.content for message in found)

    await asyncio.gather(*(consume(1 + task % 8) for task in range(CONSUMERS)))
    equal([text for text, times in taken.items() if times > 1], [], "handed out twice")
    equal(len(taken), MESSAGES, "messages handed out")


async def _batch(queue, size):
    """One answer to Get Messages."""
    pages = queue.receive_messages(messages_per_page=size, visibility_timeout=LONG, max_messages=size)
    if hasattr(pages, "__aiter__"):
        async for message in pages:
            yield message
    else:
        for message in await asyncio.to_thread(list, pages):
            yield message


async def producers_and_consumers_lose_nothing(kit):
    queue = await kit.new_queue()
    taken, producing = [], True

    async def produce(task):
        for number in range(20):
            await queue.send_message(f"{task}-{number}")

    async def consume():
        while True:
            was_producing = producing
            message = await queue.receive_message(visibility_timeout=LONG)
            if message:
                taken.append(message.content)
                await queue.delete_message(message)
            elif not was_producing:
                return

    consumers = [asyncio.create_task(consume()) for _ in range(6)]
    await asyncio.gather(*(produce(task) for task in range(6)))
    producing = False
    await asyncio.gather(*consumers)
    equal(sorted(taken), sorted(f"{task}-{number}" for task in range(6) for number in range(20)))
    equal((await queue.get_queue_properties()).approximate_message_count, 0)


async def one_producer_is_heard_in_order(kit):
    queue = await kit.new_queue()

    async def noise(task):
        for number in range(20):
            await queue.send_message(f"{task}-{number:02}")

    await asyncio.gather(*(noise(task) for task in range(6)))
    texts = [message.content for message in await received(queue, visibility_timeout=LONG)]
    for task in range(6):
        equal([text for text in texts if text.startswith(f"{task}-")], [f"{task}-{number:02}" for number in range(20)])


async def of_many_deletes_with_one_receipt_one_succeeds(kit):
    queue = await kit.new_queue("m")
    message = await queue.receive_message(visibility_timeout=LONG)

    async def delete():
        try:
            await queue.delete_message(message)
            return "deleted"
        except ResourceNotFoundError as error:
            return code_of(error)

    outcomes = collections.Counter(await asyncio.gather(*(delete() for _ in range(CONSUMERS))))
    equal(outcomes, {"deleted": 1, "MessageNotFound": CONSUMERS - 1})


async def of_many_updates_with_one_receipt_one_succeeds(kit):
    queue = await kit.new_queue("m")
    message = await queue.receive_message(visibility_timeout=LONG)

    async def update(number):
        try:
            await queue.update_message(message.id, message.pop_receipt, content=str(number), visibility_timeout=0)
            return number
        except ResourceNotFoundError:
            return None

    winners = [number for number in await asyncio.gather(*map(update, range(CONSUMERS))) if number is not None]
    equal(len(winners), 1)
    equal(await peeked(queue), [str(winners[0])])


async def of_many_creates_one_is_the_first(kit):
    name = kit.name()

    async def create():
        try:
            await kit.queue(name).create_queue()
            return "created"
        except ResourceExistsError:
            return "exists"

    outcomes = collections.Counter(await asyncio.gather(*(create() for _ in range(CONSUMERS))))
    equal(outcomes, {"created": 1, "exists": CONSUMERS - 1})


async def what_is_sent_after_a_clear_stays(kit):
    queue = await kit.new_queue()
    for round_ in range(5):
        await asyncio.gather(*(queue.send_message(f"old {number}") for number in range(8)), queue.clear_messages())
        await queue.clear_messages()
        await queue.send_message(f"new {round_}")
        equal(await peeked(queue), [f"new {round_}"])
