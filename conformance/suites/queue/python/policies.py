"""Stored access policies."""

from datetime import datetime, timedelta, timezone

from azure.storage.queue import AccessPolicy, QueueSasPermissions, generate_queue_sas

import suite
from clients import peeked
from sdk import raises
from suite import equal

START = datetime(2021, 1, 6, 1, 3, 17, tzinfo=timezone.utc)
FUTURE = datetime(2099, 1, 1, tzinfo=timezone.utc)


async def a_queue_has_none_at_first(kit):
    queue = await kit.new_queue()
    equal(await queue.get_queue_access_policy(), {})


async def policies_come_back(kit):
    queue = await kit.new_queue()
    await queue.set_queue_access_policy({
        "whole": AccessPolicy(permission=QueueSasPermissions(read=True, add=True, update=True, process=True), start=START, expiry=FUTURE),
        "part": AccessPolicy(permission="p"),
        "empty": None,
    })
    found = await queue.get_queue_access_policy()
    equal(set(found), {"whole", "part", "empty"})
    whole = found["whole"]
    equal((whole.permission, str(whole.start)[:19].replace(" ", "T"), str(whole.expiry)[:19].replace(" ", "T")), ("raup", "2021-01-06T01:03:17", "2099-01-01T00:00:00"))
    equal((found["part"].permission, found["part"].start or None, found["part"].expiry or None), ("p", None, None))


async def policies_are_replaced_and_cleared(kit):
    queue = await kit.new_queue("m")
    await queue.set_queue_access_policy({"a": AccessPolicy(permission="r"), "b": AccessPolicy(permission="a")})
    await queue.set_queue_access_policy({"c": AccessPolicy(permission="u")})
    equal(set(await queue.get_queue_access_policy()), {"c"})
    await queue.set_queue_access_policy({})
    equal(await queue.get_queue_access_policy(), {})
    equal(await peeked(queue), ["m"])


async def five_policies_are_the_most(kit):
    queue = await kit.new_queue()
    five = {f"id{number}": AccessPolicy(permission="r") for number in range(5)}
    await queue.set_queue_access_policy(five)
    with raises("InvalidXmlDocument", 400):
        await queue.set_queue_access_policy({**five, "sixth": AccessPolicy(permission="r")})
    equal(set(await queue.get_queue_access_policy()), set(five))


async def letters_of_other_services_are_refused(kit):
    queue = await kit.new_queue()
    with raises("InvalidXmlDocument", 400):
        await queue.set_queue_access_policy({"id": AccessPolicy(permission="rwdl")})


async def long_ids_are_refused(kit):
    queue = await kit.new_queue()
    await queue.set_queue_access_policy({"i" * 64: AccessPolicy(permission="r")})
    with raises("InvalidXmlDocument", 400):
        await queue.set_queue_access_policy({"i" * 65: AccessPolicy(permission="r")})


async def a_signature_by_policy_works_until_the_policy_is_gone(kit):
    queue = await kit.new_queue("m")
    await queue.set_queue_access_policy({"reader": AccessPolicy(permission="r", start=START, expiry=FUTURE)})
    sas = generate_queue_sas(suite.ACCOUNT, queue.queue_name, suite.KEY, policy_id="reader")
    reader = kit.with_sas(queue.queue_name, sas)
    equal(await peeked(reader), ["m"])
    with raises("AuthorizationPermissionMismatch", 403):
        await reader.send_message("x")
    await queue.set_queue_access_policy({"reader": AccessPolicy(permission="a", expiry=FUTURE)})
    await reader.send_message("x")
    with raises("AuthorizationPermissionMismatch", 403):
        await peeked(reader)
    await queue.set_queue_access_policy({})
    with raises("AuthenticationFailed", 403):
        await reader.send_message("y")


async def a_policy_may_leave_fields_to_the_signature(kit):
    queue = await kit.new_queue("m")
    await queue.set_queue_access_policy({"open": AccessPolicy(permission="r")})
    in_an_hour = datetime.now(timezone.utc) + timedelta(hours=1)
    sas = generate_queue_sas(suite.ACCOUNT, queue.queue_name, suite.KEY, policy_id="open", expiry=in_an_hour)
    equal(await peeked(kit.with_sas(queue.queue_name, sas)), ["m"])
    await queue.set_queue_access_policy({"open": AccessPolicy(expiry=in_an_hour)})
    sas = generate_queue_sas(suite.ACCOUNT, queue.queue_name, suite.KEY, permission="r", policy_id="open")
    equal(await peeked(kit.with_sas(queue.queue_name, sas)), ["m"])


async def an_expired_policy_allows_nothing(kit):
    queue = await kit.new_queue("m")
    await queue.set_queue_access_policy({"old": AccessPolicy(permission="r", expiry=START)})
    sas = generate_queue_sas(suite.ACCOUNT, queue.queue_name, suite.KEY, policy_id="old")
    with raises("AuthenticationFailed", 403):
        await peeked(kit.with_sas(queue.queue_name, sas))


async def policies_go_with_their_queue(kit):
    queue = await kit.new_queue()
    await queue.set_queue_access_policy({"reader": AccessPolicy(permission="r", expiry=FUTURE)})
    await queue.delete_queue()
    await queue.create_queue()
    equal(await queue.get_queue_access_policy(), {})
