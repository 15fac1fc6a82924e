"""Messages: send, receive, peek, delete, clear, and the times they live and hide."""

from datetime import timedelta

from azure.core.exceptions import ResourceNotFoundError

from clients import LONG, contents, eventually, peeked, received
from sdk import collect, raises
from suite import equal

DAY = 24 * 60 * 60
WEEK = 7 * DAY


async def a_sent_message_tells_id_times_and_receipt(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("text")
    assert sent.id and sent.pop_receipt, vars(sent)
    equal(sent.expires_on - sent.inserted_on, timedelta(days=7))
    equal(sent.next_visible_on, sent.inserted_on)
    equal(sent.content, "text")


async def a_received_message_is_the_sent_one(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("text", time_to_live=LONG)
    found = await queue.receive_message(visibility_timeout=LONG)
    equal((found.id, found.content, found.dequeue_count), (sent.id, "text", 1))
    equal((found.inserted_on, found.expires_on), (sent.inserted_on, sent.expires_on))
    assert found.next_visible_on - found.inserted_on >= timedelta(seconds=LONG), vars(found)
    assert found.pop_receipt != sent.pop_receipt


async def an_empty_queue_gives_nothing(kit):
    queue = await kit.new_queue()
    equal(await queue.receive_message(), None)
    equal(await received(queue), [])
    equal(await queue.peek_messages(max_messages=32), [])


async def messages_come_in_the_order_they_were_sent(kit):
    texts = [f"{number:03}" for number in range(50)]
    queue = await kit.new_queue(*texts)
    equal(contents(await received(queue, visibility_timeout=LONG)), texts)


async def one_at_a_time_is_the_same_order(kit):
    texts = ["one", "two", "three", "four"]
    queue = await kit.new_queue(*texts)
    found = [await queue.receive_message(visibility_timeout=LONG) for _ in texts]
    equal(contents(found), texts)
    equal(await queue.receive_message(), None)


async def a_page_holds_at_most_what_was_asked_for(kit):
    queue = await kit.new_queue(*"abcdefg")
    pages = queue.receive_messages(messages_per_page=3, visibility_timeout=LONG, max_messages=5)
    equal(contents([message async for message in pages] if kit.kind == "async" else list(pages)), list("abcde"))
    equal(contents(await received(queue)), ["f", "g"])


async def numbers_of_messages_beyond_the_limits_are_refused(kit):
    queue = await kit.new_queue("m")
    # For a peek the client itself refuses them.
    for count in (33, 1000):
        with raises("OutOfRangeQueryParameterValue", 400) as refused:
            await collect(queue.receive_messages(messages_per_page=count))
        equal(refused.error.additional_info["minimumallowed"], "1")
        equal(refused.error.additional_info["maximumallowed"], "32")
        equal(refused.error.additional_info["queryparametername"], "numofmessages")
    equal(len(await queue.peek_messages(max_messages=32)), 1)


async def peek_changes_nothing(kit):
    queue = await kit.new_queue("a", "b", "c")
    for _ in range(2):
        found = await queue.peek_messages(max_messages=2)
        equal([(one.content, one.dequeue_count, one.pop_receipt, one.next_visible_on) for one in found], [("a", 0, None, None), ("b", 0, None, None)])
    equal(contents(await received(queue, visibility_timeout=LONG)), ["a", "b", "c"])


async def peek_shows_one_without_a_number(kit):
    queue = await kit.new_queue("a", "b")
    equal([one.content for one in await queue.peek_messages()], ["a"])


async def what_is_received_is_hidden_from_all(kit):
    queue = await kit.new_queue("a", "b")
    await queue.receive_message(visibility_timeout=LONG)
    equal(await peeked(queue), ["b"])
    equal(contents(await received(queue, visibility_timeout=LONG)), ["b"])
    equal(await received(queue), [])


async def a_hidden_message_comes_back_and_is_counted(kit):
    queue = await kit.new_queue("m")
    first = await queue.receive_message(visibility_timeout=1)
    second = await eventually(lambda: queue.receive_message(visibility_timeout=1), "the message is visible again")
    equal((second.id, second.dequeue_count), (first.id, 2))
    assert second.pop_receipt != first.pop_receipt
    peek = await eventually(queue.peek_messages, "it is visible once more")
    equal(peek[0].dequeue_count, 2)


async def a_message_sent_hidden_appears_later(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("later", visibility_timeout=LONG)
    equal(sent.next_visible_on - sent.inserted_on, timedelta(seconds=LONG))
    soon = await queue.send_message("soon", visibility_timeout=1)
    found = await eventually(lambda: queue.receive_message(visibility_timeout=LONG), "the message is visible")
    equal(found.id, soon.id)
    equal(await queue.receive_message(), None)


async def a_delayed_message_stands_behind_those_that_were_visible(kit):
    queue = await kit.new_queue()
    await queue.send_message("delayed", visibility_timeout=1)
    await queue.send_message("at once")
    await eventually(lambda: _both(queue), "both are visible")
    equal(await peeked(queue), ["at once", "delayed"])


async def _both(queue):
    return len(await peeked(queue)) == 2


async def an_expired_message_is_gone(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("short", time_to_live=1)
    equal(sent.expires_on - sent.inserted_on, timedelta(seconds=1))
    await queue.send_message("long")
    await eventually(lambda: _only(queue, ["long"]), "the message expired")
    with raises("MessageNotFound", 404, ResourceNotFoundError):
        await queue.delete_message(sent)
    equal(contents(await received(queue)), ["long"])


async def _only(queue, texts):
    return await peeked(queue) == texts


async def a_message_may_live_for_ever(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("for ever", time_to_live=-1)
    equal(sent.expires_on.year, 9999)
    equal((await queue.receive_message()).expires_on, sent.expires_on)


async def a_message_may_live_for_decades(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("long", time_to_live=2**30)
    equal(sent.expires_on - sent.inserted_on, timedelta(seconds=2**30))


async def times_to_live_beyond_the_limits_are_refused(kit):
    queue = await kit.new_queue()
    for seconds in (0, -2):
        with raises("InvalidQueryParameterValue", 400) as refused:
            await queue.send_message("m", time_to_live=seconds)
        equal(refused.error.additional_info["queryparametername"], "messagettl")
    equal(await peeked(queue), [])


async def a_message_cannot_hide_as_long_as_it_lives(kit):
    queue = await kit.new_queue()
    with raises("InvalidQueryParameterValue", 400) as refused:
        await queue.send_message("m", time_to_live=10, visibility_timeout=10)
    details = refused.error.additional_info
    equal((details["queryparametername"], details["queryparametervalue"]), ("visibilitytimeout", "10"))
    equal(details["reason"], "messagettl must be greater than visibilitytimeout")
    await queue.send_message("m", time_to_live=11, visibility_timeout=10)
    await queue.send_message("m", time_to_live=-1, visibility_timeout=WEEK)


async def visibility_timeouts_beyond_the_limits_are_refused(kit):
    queue = await kit.new_queue("m")
    for seconds, least in ((-1, "0"), (WEEK + 1, "0")):
        with raises("OutOfRangeQueryParameterValue", 400) as refused:
            await queue.send_message("m", visibility_timeout=seconds, time_to_live=-1)
        equal(refused.error.additional_info["minimumallowed"], least)
        equal(refused.error.additional_info["maximumallowed"], str(WEEK))
    for seconds in (0, -1, WEEK + 1):
        with raises("OutOfRangeQueryParameterValue", 400) as refused:
            await received(queue, visibility_timeout=seconds)
        equal(refused.error.additional_info["minimumallowed"], "1")
    message = await queue.receive_message(visibility_timeout=WEEK)
    for seconds in (-1, WEEK + 1):
        with raises("OutOfRangeQueryParameterValue", 400):
            await queue.update_message(message, visibility_timeout=seconds)


async def a_deleted_message_is_gone(kit):
    queue = await kit.new_queue("a", "b")
    message = await queue.receive_message(visibility_timeout=LONG)
    await queue.delete_message(message)
    equal((await queue.get_queue_properties()).approximate_message_count, 1)
    with raises("MessageNotFound", 404, ResourceNotFoundError):
        await queue.delete_message(message)
    equal(contents(await received(queue)), ["b"])


async def the_count_is_of_visible_and_hidden_ones(kit):
    queue = await kit.new_queue("a", "b", "c")
    count = lambda: queue.get_queue_properties()
    equal((await count()).approximate_message_count, 3)
    message = await queue.receive_message(visibility_timeout=LONG)
    equal((await count()).approximate_message_count, 3)
    await queue.delete_message(message)
    equal((await count()).approximate_message_count, 2)
    await queue.send_message("d", visibility_timeout=LONG)
    equal((await count()).approximate_message_count, 3)
    await queue.clear_messages()
    equal((await count()).approximate_message_count, 0)


async def clear_removes_visible_and_hidden_ones(kit):
    queue = await kit.new_queue("a", "b")
    hidden = await queue.receive_message(visibility_timeout=LONG)
    await queue.send_message("c", visibility_timeout=LONG)
    await queue.clear_messages()
    equal(await received(queue), [])
    with raises("MessageNotFound", 404, ResourceNotFoundError):
        await queue.delete_message(hidden)
    await queue.send_message("new")
    equal(contents(await received(queue)), ["new"])
    await queue.clear_messages()
    await queue.clear_messages()


async def a_hundred_messages_are_received_in_batches_and_deleted(kit):
    queue = await kit.new_queue(*(str(number) for number in range(100)))
    found = await received(queue, visibility_timeout=LONG)
    equal(contents(found), [str(number) for number in range(100)])
    equal(len({message.id for message in found}), 100)
    for message in found:
        await queue.delete_message(message)
    equal((await queue.get_queue_properties()).approximate_message_count, 0)
