"""Keys, account signatures and queue signatures: what each allows, and how the others are refused."""

import asyncio
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.queue import AccountSasPermissions, ResourceTypes, generate_account_sas, generate_queue_sas

import suite
from clients import LONG, peeked
from sdk import collect, raises
from suite import equal

HOUR = timedelta(hours=1)
WRONG_KEY = "d3Jvbmcga2V5"


def _now():
    return datetime.now(timezone.utc)


def _queue_sas(name, permission, **fields):
    fields = {"expiry": _now() + HOUR, **fields}
    return generate_queue_sas(suite.ACCOUNT, name, suite.KEY, permission=permission, **fields)


def _account_sas(permission, types="sco", **fields):
    fields = {"expiry": _now() + HOUR, **fields}
    return generate_account_sas(suite.ACCOUNT, suite.KEY, ResourceTypes.from_string(types), AccountSasPermissions.from_string(permission), **fields)


class _Scene:
    """A queue with a received message, and calls of every operation with another credential."""

    def __init__(self, kit, queue, message):
        self.kit, self.queue, self.message = kit, queue, message

    @classmethod
    async def make(cls, kit):
        queue = await kit.new_queue("one", "two")
        return cls(kit, queue, await queue.receive_message(visibility_timeout=LONG))

    def calls(self, sas):
        credential = AzureSasCredential(sas)
        client, service = self.kit.queue(self.queue.queue_name, credential), self.kit.service(credential)
        other = self.kit.name()
        return {
            "list": lambda: collect(service.list_queues(name_starts_with=self.queue.queue_name)),
            "get properties": service.get_service_properties,
            "create": lambda: service.create_queue(other),
            "get metadata": client.get_queue_properties,
            "set metadata": lambda: client.set_queue_metadata({"a": "b"}),
            "get policies": client.get_queue_access_policy,
            "set policies": lambda: client.set_queue_access_policy({}),
            "put": lambda: client.send_message("x"),
            "get": lambda: client.receive_message(visibility_timeout=LONG),
            "peek": lambda: peeked(client),
            "update": lambda: client.update_message(self.message.id, self.message.pop_receipt, visibility_timeout=LONG),
            "delete": lambda: client.delete_message(self.message.id, self.message.pop_receipt),
            "clear": client.clear_messages,
        }

    async def allowed(self, sas):
        """Names of the calls that succeed, and the codes of the others."""
        succeeded, codes = set(), {}
        for name, call in self.calls(sas).items():
            try:
                found = await call()
                succeeded.add(name)
                if name == "update":
                    self.message = found
            except ClientAuthenticationError as error:
                codes[name] = _code(error)
            except Exception as error:
                codes[name] = _code(error)
                # A refusal, or the receipt that was used up by an earlier call.
                assert getattr(error, "status_code", 0) in (403, 404), f"{name}: {error!r}"
                if error.status_code == 404:
                    succeeded.add(name)
                    codes.pop(name)
        return succeeded, codes


def _code(error):
    return getattr(error.error_code, "value", error.error_code)


async def queue_signatures_allow_what_their_letters_say(kit):
    letters = {"r": {"peek", "get metadata"}, "a": {"put"}, "u": {"update"}, "p": {"get", "delete"}}
    impossible = {"list", "get properties", "create", "set metadata", "get policies", "set policies", "clear"}
    for letter, expected in letters.items():
        scene = await _Scene.make(kit)
        succeeded, codes = await scene.allowed(_queue_sas(scene.queue.queue_name, letter))
        equal(succeeded, expected, f"allowed by {letter}")
        other = {name: code for name, code in codes.items() if name not in impossible and code != "AuthorizationPermissionMismatch"}
        equal(other, {}, f"codes with {letter}")
        assert all(codes[name] in ("AuthorizationFailure", "AuthenticationFailed") for name in impossible), codes


async def a_whole_queue_signature_serves_a_worker(kit):
    queue = await kit.new_queue()
    worker = kit.with_sas(queue.queue_name, _queue_sas(queue.queue_name, "raup"))
    await worker.send_message("m")
    equal(await peeked(worker), ["m"])
    message = await worker.receive_message(visibility_timeout=LONG)
    message = await worker.update_message(message, content="changed", visibility_timeout=LONG)
    await worker.delete_message(message)
    equal((await worker.get_queue_properties()).approximate_message_count, 0)


async def a_queue_signature_cannot_create_even_what_is_missing(kit):
    name = kit.name()
    with raises("AuthorizationFailure", 403):
        await kit.with_sas(name, _queue_sas(name, "raup")).create_queue()


async def a_queue_signature_is_for_its_queue(kit):
    one, other = await kit.new_queue("m"), await kit.new_queue("m")
    with raises("AuthenticationFailed", 403):
        await peeked(kit.with_sas(other.queue_name, _queue_sas(one.queue_name, "raup")))


async def account_signatures_allow_what_their_letters_say(kit):
    letters = {
        "r": {"peek", "get metadata", "get properties"}, "w": {"create", "set metadata"}, "d": {"clear"}, "l": {"list"},
        "a": {"put"}, "c": {"create"}, "u": {"update"}, "p": {"get", "delete"},
    }
    for letter, expected in letters.items():
        scene = await _Scene.make(kit)
        succeeded, codes = await scene.allowed(_account_sas(letter))
        equal(succeeded, expected, f"allowed by {letter}")
        wrong = {name: code for name, code in codes.items() if name not in ("get policies", "set policies") and code != "AuthorizationPermissionMismatch"}
        equal(wrong, {}, f"codes with {letter}")


async def account_signatures_are_limited_to_their_resource_types(kit):
    types = {
        "s": {"list", "get properties"},
        "c": {"create", "get metadata", "set metadata"},
        "o": {"put", "get", "peek", "update", "delete", "clear"},
    }
    # Update, Delete and Clear are of objects by the documentation and of containers in practice: both are accepted.
    either = {"update", "delete", "clear"}
    for letter, expected in types.items():
        scene = await _Scene.make(kit)
        succeeded, codes = await scene.allowed(_account_sas("rwdlacup", letter))
        equal(succeeded - (either if letter == "c" else set()), expected, f"allowed by {letter}")
        wrong = {name: code for name, code in codes.items() if name not in ("get policies", "set policies") and code != "AuthorizationResourceTypeMismatch"}
        equal(wrong, {}, f"codes with {letter}")


async def an_account_signature_deletes_queues(kit):
    queue = await kit.new_queue()
    with raises("AuthorizationPermissionMismatch", 403):
        await kit.with_sas(queue.queue_name, _account_sas("rwlacup")).delete_queue()
    await kit.with_sas(queue.queue_name, _account_sas("d")).delete_queue()


async def signatures_end_and_begin(kit):
    queue = await kit.new_queue("m")
    name = queue.queue_name
    for sas in (_queue_sas(name, "r", expiry=_now() - HOUR), _queue_sas(name, "r", start=_now() + HOUR, expiry=_now() + 2 * HOUR),
                _account_sas("r", expiry=_now() - HOUR), _account_sas("r", start=_now() + HOUR, expiry=_now() + 2 * HOUR)):
        with raises("AuthenticationFailed", 403):
            await peeked(kit.with_sas(name, sas))
    for sas in (_queue_sas(name, "r", start=_now() - HOUR), _account_sas("r", start=_now() - HOUR)):
        equal(await peeked(kit.with_sas(name, sas)), ["m"])


async def signatures_are_limited_to_addresses_and_protocols(kit):
    queue = await kit.new_queue("m")
    name = queue.queue_name
    for sas in (_queue_sas(name, "r", ip="127.0.0.1"), _account_sas("r", ip="127.0.0.0-127.0.0.9"), _queue_sas(name, "r", protocol="https,http")):
        equal(await peeked(kit.with_sas(name, sas)), ["m"])
    for sas in (_queue_sas(name, "r", ip="10.0.0.1"), _account_sas("r", ip="10.0.0.1-10.0.0.9")):
        with raises("AuthorizationSourceIPMismatch", 403):
            await peeked(kit.with_sas(name, sas))
    for sas in (_queue_sas(name, "r", protocol="https"), _account_sas("r", protocol="https")):
        with raises("AuthorizationProtocolMismatch", 403):
            await peeked(kit.with_sas(name, sas))


async def a_changed_signature_is_refused(kit):
    queue = await kit.new_queue("m")
    name = queue.queue_name
    for sas in (_queue_sas(name, "r"), _account_sas("r")):
        with raises("AuthenticationFailed", 403):
            await peeked(kit.with_sas(name, sas.replace("sp=r", "sp=rp")))


async def a_wrong_key_is_refused(kit):
    queue = await kit.new_queue("m")
    stranger = kit.queue(queue.queue_name, AzureNamedKeyCredential(suite.ACCOUNT, WRONG_KEY))
    with raises("AuthenticationFailed", 403):
        await peeked(stranger)
    with raises("AuthenticationFailed", 403):
        await stranger.delete_queue()


async def the_key_may_be_given_as_a_dictionary(kit):
    queue = await kit.new_queue("m")
    equal(await peeked(kit.queue(queue.queue_name, {"account_name": suite.ACCOUNT, "account_key": suite.KEY})), ["m"])


async def no_credentials_are_refused(kit):
    queue = await kit.new_queue("m")
    try:
        await asyncio.to_thread(urllib.request.urlopen, f"{suite.ENDPOINT}/{queue.queue_name}/messages?peekonly=true")
        raise AssertionError("not refused")
    except urllib.error.HTTPError as refused:
        equal((refused.code, refused.headers["x-ms-error-code"]), (401, "NoAuthenticationInformation"))
