"""Queues: create, delete, list, metadata, names."""

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

import suite
from sdk import collect, next_page, raises
from suite import equal


async def a_queue_is_created_found_and_deleted(kit):
    queue = kit.queue(kit.name())
    with raises("QueueNotFound", 404, ResourceNotFoundError):
        await queue.get_queue_properties()
    await queue.create_queue()
    found = await queue.get_queue_properties()
    equal((found.name, found.metadata, found.approximate_message_count), (queue.queue_name, {}, 0))
    await queue.delete_queue()
    with raises("QueueNotFound", 404, ResourceNotFoundError):
        await queue.get_queue_properties()


async def the_service_client_creates_and_deletes(kit):
    service, name = kit.service(), kit.name()
    queue = await service.create_queue(name, metadata={"owner": "one"})
    equal(queue.queue_name, name)
    await service.delete_queue(name)
    with raises("QueueNotFound", 404, ResourceNotFoundError):
        await service.delete_queue(name)


async def creating_it_again_says_that_it_exists(kit):
    # The client takes the 204 for the same metadata, and the 409 for other metadata, for the same thing.
    queue = await kit.new_queue()
    with raises("QueueAlreadyExists", None, ResourceExistsError):
        await queue.create_queue()
    with raises("QueueAlreadyExists", 409, ResourceExistsError):
        await queue.create_queue(metadata={"other": "one"})


async def creating_it_again_changes_nothing(kit):
    queue = kit.queue(kit.name())
    await queue.create_queue(metadata={"kept": "1"})
    await queue.send_message("kept")
    for metadata in ({"kept": "1"}, {"kept": "2"}, None):
        with raises("QueueAlreadyExists"):
            await queue.create_queue(metadata=metadata)
    found = await queue.get_queue_properties()
    equal((found.metadata, found.approximate_message_count), ({"kept": "1"}, 1))


async def a_deleted_name_is_free_and_the_new_queue_is_empty(kit):
    queue = await kit.new_queue("old")
    await queue.set_queue_metadata({"old": "1"})
    await queue.delete_queue()
    await queue.create_queue()
    found = await queue.get_queue_properties()
    equal((found.metadata, found.approximate_message_count), ({}, 0))
    equal(await queue.receive_message(), None)


async def every_operation_on_a_missing_queue_says_so(kit):
    queue = kit.queue(suite.queue_name("py-missing-"))
    receipt = "AgAAAAMAAAAAAAAAAKSnkIyg2QE="
    calls = [
        queue.delete_queue, queue.get_queue_properties, lambda: queue.set_queue_metadata({"a": "b"}), queue.get_queue_access_policy,
        lambda: queue.set_queue_access_policy({}), lambda: queue.send_message("x"), lambda: queue.receive_message(),
        lambda: queue.peek_messages(), queue.clear_messages, lambda: queue.delete_message("0b34b2d6-0a2b-4fb5-8a37-1b7d5ee3b2f1", receipt),
        lambda: queue.update_message("0b34b2d6-0a2b-4fb5-8a37-1b7d5ee3b2f1", receipt, visibility_timeout=1),
    ]
    for call in calls:
        with raises("QueueNotFound", 404, ResourceNotFoundError):
            await call()


async def metadata_comes_back(kit):
    queue = kit.queue(kit.name())
    sent = {"Capital": "letter", "foo": "va@lue with blanks", "UPPER": "1=2;3", "under_score": "~!"}
    await queue.create_queue(metadata=sent)
    equal((await queue.get_queue_properties()).metadata, sent)


async def metadata_is_replaced_as_a_whole_and_cleared(kit):
    queue = await kit.new_queue()
    await queue.set_queue_metadata({"one": "1", "two": "2"})
    await queue.set_queue_metadata({"three": "3"})
    equal((await queue.get_queue_properties()).metadata, {"three": "3"})
    await queue.set_queue_metadata()
    equal((await queue.get_queue_properties()).metadata, {})


async def metadata_names_are_identifiers(kit):
    queue = await kit.new_queue()
    for name in ("invalid-meta", "12345", "metadata!"):
        with raises("InvalidMetadata", 400):
            await queue.set_queue_metadata({name: "value"})
    await queue.set_queue_metadata({"_fine1": "value"})
    equal((await queue.get_queue_properties()).metadata, {"_fine1": "value"})


async def metadata_beyond_8_kib_is_refused(kit):
    queue = await kit.new_queue()
    await queue.set_queue_metadata({"a": "x" * 8000})
    with raises("MetadataTooLarge", 400):
        await queue.set_queue_metadata({"a": "x" * 4100, "b": "y" * 4100})
    equal(len((await queue.get_queue_properties()).metadata["a"]), 8000)


async def setting_metadata_leaves_messages_alone(kit):
    queue = await kit.new_queue("m")
    await queue.set_queue_metadata({"one": "1"})
    equal([message.content for message in await queue.peek_messages()], ["m"])


async def wrong_names_are_refused(kit):
    service = kit.service()
    for name in ("ab", "a" * 64):
        with raises("OutOfRangeInput", 400):
            await service.create_queue(name)
    for name in ("a_b", "-ab", "ab-", "a--b", "Abc", "啊齄丂狛狜", "a.b", "{queue}"):
        with raises("InvalidResourceName", 400):
            await service.create_queue(name)


async def names_at_the_limits_are_accepted(kit):
    service = kit.service()
    for name in (suite.queue_name("q")[-3:], f"{suite.queue_name('0-')}".ljust(63, "z"), suite.queue_name("9")):
        kit.queues.append(name)
        await service.create_queue(name)
        equal((await service.get_queue_client(name).get_queue_properties()).name, name)


async def queues_are_listed_by_prefix_in_order(kit):
    prefix = suite.queue_name("py-list-")
    service, names = kit.service(), [f"{prefix}-{end}" for end in ("c", "a", "b10", "b9", "0")]
    kit.queues += names
    for name in names:
        await service.create_queue(name)
    found = await collect(service.list_queues(name_starts_with=f"{prefix}-"))
    equal([one.name for one in found], sorted(names))
    equal([one.name for one in await collect(service.list_queues(name_starts_with=f"{prefix}-b"))], sorted(names)[2:4])
    equal(await collect(service.list_queues(name_starts_with=prefix.upper())), [])
    assert set(names) <= {one.name for one in await collect(service.list_queues())}


async def metadata_is_listed_when_asked_for(kit):
    prefix = suite.queue_name("py-meta-")
    service = kit.service()
    kit.queues += [f"{prefix}-a", f"{prefix}-b"]
    sent = {"foo": "bar", "meta": "a<b & c>", "Capital": "letter", "UPPER": "case"}
    await service.create_queue(f"{prefix}-a", metadata=sent)
    await service.create_queue(f"{prefix}-b")
    found = await collect(service.list_queues(name_starts_with=prefix, include_metadata=True))
    equal([one.metadata or {} for one in found], [sent, {}])
    found = await collect(service.list_queues(name_starts_with=prefix))
    equal([one.metadata for one in found], [None, None])


async def a_list_goes_on_from_its_marker(kit):
    prefix = suite.queue_name("py-pages-")
    service, names = kit.service(), [f"{prefix}-{number}" for number in range(7)]
    kit.queues += names
    # Out of order, so that a marker by age would skip some.
    for name in names[3:] + names[:3]:
        await service.create_queue(name)
    pages = service.list_queues(name_starts_with=prefix, results_per_page=3).by_page()
    seen = []
    for size in (3, 3, 1):
        page, token = await next_page(pages)
        equal(len(page), size)
        seen += [one.name for one in page]
    equal((seen, token or None), (names, None))


async def a_marker_is_good_when_its_queue_is_gone(kit):
    prefix = suite.queue_name("py-gone-")
    service, names = kit.service(), [f"{prefix}-{number}" for number in range(4)]
    kit.queues += names
    for name in names:
        await service.create_queue(name)
    first, token = await next_page(service.list_queues(name_starts_with=prefix, results_per_page=2).by_page())
    equal([one.name for one in first], names[:2])
    await service.delete_queue(names[2])
    pages = service.list_queues(name_starts_with=prefix, results_per_page=2).by_page(continuation_token=token)
    rest, _ = await next_page(pages)
    equal([one.name for one in rest], names[3:])


async def a_marker_of_another_form_is_refused(kit):
    pages = kit.service().list_queues(results_per_page=1).by_page(continuation_token="garbage")
    with raises("OutOfRangeInput", 400):
        await next_page(pages)
