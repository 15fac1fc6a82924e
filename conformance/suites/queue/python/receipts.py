"""Pop receipts: which one works, and updates of text and visibility."""

import base64

from azure.core.exceptions import ResourceNotFoundError

from clients import LONG, contents, eventually, peeked, received
from sdk import raises
from suite import equal


async def _gone(call):
    with raises("MessageNotFound", 404, ResourceNotFoundError):
        await call


async def the_receipt_of_a_send_deletes(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("m")
    await queue.delete_message(sent.id, sent.pop_receipt)
    equal(await peeked(queue), [])


async def the_receipt_of_a_send_updates(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("m")
    updated = await queue.update_message(sent, content="changed", visibility_timeout=0)
    assert updated.pop_receipt != sent.pop_receipt
    found = await queue.receive_message()
    equal((found.id, found.content, found.dequeue_count), (sent.id, "changed", 1))


async def a_receipt_dies_with_the_next_receive(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("m")
    found = await queue.receive_message(visibility_timeout=LONG)
    await _gone(queue.delete_message(sent.id, sent.pop_receipt))
    await _gone(queue.update_message(sent.id, sent.pop_receipt, visibility_timeout=1))
    await queue.delete_message(found)


async def a_receipt_dies_with_the_next_update(kit):
    queue = await kit.new_queue("m")
    found = await queue.receive_message(visibility_timeout=LONG)
    updated = await queue.update_message(found, visibility_timeout=LONG)
    await _gone(queue.delete_message(found.id, found.pop_receipt))
    await _gone(queue.update_message(found.id, found.pop_receipt, visibility_timeout=1))
    await queue.delete_message(updated)


async def a_chain_of_updates_keeps_the_message(kit):
    queue = await kit.new_queue("0")
    message = await queue.receive_message(visibility_timeout=LONG)
    receipts = {message.pop_receipt}
    for number in range(1, 11):
        message = await queue.update_message(message, content=str(number), visibility_timeout=LONG)
        receipts.add(message.pop_receipt)
    equal(len(receipts), 11)
    message = await queue.update_message(message, content="last", visibility_timeout=0)
    found = await queue.receive_message()
    equal((found.content, found.dequeue_count, found.id), ("last", 2, message.id))
    equal((found.inserted_on, found.expires_on), (message.inserted_on, message.expires_on))


async def a_receipt_lives_on_when_the_message_is_visible_again(kit):
    queue = await kit.new_queue("m")
    message = await queue.receive_message(visibility_timeout=1)
    await eventually(queue.peek_messages, "the message is visible again")
    await queue.delete_message(message)
    equal(await peeked(queue), [])


async def an_update_to_zero_shows_the_message_at_once(kit):
    queue = await kit.new_queue("a", "b")
    message = await queue.receive_message(visibility_timeout=LONG)
    await queue.update_message(message, visibility_timeout=0)
    # Behind what was visible all along.
    equal(await peeked(queue), ["b", "a"])


async def an_update_prolongs_the_hiding(kit):
    queue = await kit.new_queue("m")
    message = await queue.receive_message(visibility_timeout=1)
    updated = await queue.update_message(message, visibility_timeout=LONG)
    assert updated.next_visible_on > message.next_visible_on
    await queue.send_message("behind", visibility_timeout=2)
    found = await eventually(lambda: queue.receive_message(visibility_timeout=LONG), "the later message is visible")
    equal(found.content, "behind")


async def an_update_by_id_without_text_keeps_it(kit):
    queue = await kit.new_queue("kept")
    message = await queue.receive_message(visibility_timeout=LONG)
    await queue.update_message(message.id, message.pop_receipt, visibility_timeout=0)
    equal(await peeked(queue), ["kept"])


async def receipts_of_one_batch_go_with_their_ids(kit):
    queue = await kit.new_queue("a", "b", "c")
    found = await received(queue, visibility_timeout=LONG)
    equal(len({message.pop_receipt for message in found}), 1)
    await queue.delete_message(found[1])
    await _gone(queue.delete_message(found[1]))
    await queue.delete_message(found[0])
    await queue.delete_message(found[2])
    equal((await queue.get_queue_properties()).approximate_message_count, 0)


async def another_messages_receipt_does_not_work(kit):
    queue = await kit.new_queue("a", "b")
    one, other = [await queue.receive_message(visibility_timeout=LONG) for _ in range(2)]
    await _gone(queue.delete_message(one.id, other.pop_receipt))
    await queue.delete_message(one)
    await queue.delete_message(other)


async def an_unknown_id_or_receipt_is_not_found(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("m")
    for message in ("00000000-0000-0000-0000-000000000000", "not-a-guid", "a b/c"):
        await _gone(queue.delete_message(message, sent.pop_receipt))
    for data in (b"", b"never issued", bytes(20), bytes(24), base64.b64decode(sent.pop_receipt) + b"x"):
        if data:
            await _gone(queue.delete_message(sent.id, base64.b64encode(data).decode()))
    await queue.delete_message(sent)


async def a_receipt_that_is_no_base64_is_a_wrong_parameter(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("m")
    for receipt in ("invalid", f"{sent.pop_receipt}Random", "a b="):
        for call in (lambda: queue.delete_message(sent.id, receipt), lambda: queue.update_message(sent.id, receipt, visibility_timeout=1)):
            with raises("InvalidQueryParameterValue", 400) as refused:
                await call()
            details = refused.error.additional_info
            equal((details["queryparametername"], details["queryparametervalue"]), ("popreceipt", receipt))
            equal(details["reason"], "Invalid pop receipt format")
    with raises("InvalidQueryParameterValue", 400):
        await queue.delete_message("00000000-0000-0000-0000-000000000000", "invalid")


async def a_receipt_does_not_survive_its_queue(kit):
    queue = await kit.new_queue("m")
    message = await queue.receive_message(visibility_timeout=LONG)
    await queue.delete_queue()
    with raises("QueueNotFound", 404):
        await queue.delete_message(message)
    await queue.create_queue()
    await _gone(queue.delete_message(message))


async def an_update_beyond_the_expiry_is_accepted(kit):
    queue = await kit.new_queue()
    sent = await queue.send_message("m", time_to_live=LONG)
    updated = await queue.update_message(sent, visibility_timeout=2 * LONG)
    assert updated.next_visible_on > sent.expires_on
    equal(contents(await received(queue)), [])
