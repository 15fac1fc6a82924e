"""The ways to the server: connection strings, URLs, host style, versions of the protocol."""

import socket
import urllib.parse
from datetime import datetime, timedelta, timezone

from azure.storage.queue import generate_queue_sas

import suite
from clients import peeked, secondary
from sdk import collect
from suite import equal


async def by_connection_string(kit):
    queue = await kit.new_queue("m")
    equal(await peeked(kit.queue_from(suite.CONNECTION_STRING, queue.queue_name)), ["m"])
    found = await collect(kit.service_from(suite.CONNECTION_STRING).list_queues(name_starts_with=queue.queue_name))
    equal([one.name for one in found], [queue.queue_name])


async def by_connection_string_with_a_signature(kit):
    queue = await kit.new_queue("m")
    sas = generate_queue_sas(suite.ACCOUNT, queue.queue_name, suite.KEY, permission="r", expiry=datetime.now(timezone.utc) + timedelta(hours=1))
    equal(await peeked(kit.queue_from(f"QueueEndpoint={suite.ENDPOINT};SharedAccessSignature={sas}", queue.queue_name)), ["m"])


async def by_connection_string_with_a_secondary(kit):
    string = f"{suite.CONNECTION_STRING}QueueSecondaryEndpoint={secondary()};"
    stats = await kit.service_from(string).get_service_stats()
    equal(stats["geo_replication"]["status"], "live")


async def by_development_storage(kit):
    if suite.ON_DEVELOPMENT_PORT:
        queue = await kit.new_queue("m")
        equal(await peeked(kit.queue_from("UseDevelopmentStorage=true", queue.queue_name)), ["m"])


async def by_url(kit):
    queue = await kit.new_queue("m")
    sas = generate_queue_sas(suite.ACCOUNT, queue.queue_name, suite.KEY, permission="r", expiry=datetime.now(timezone.utc) + timedelta(hours=1))
    equal(await peeked(kit.queue_from_url(f"{suite.ENDPOINT}/{queue.queue_name}?{sas}")), ["m"])


async def by_host_name(kit):
    """The account in the host name; `localhost` stands for everything below it where the system says so."""
    host = f"{suite.ACCOUNT}.queue.localhost"
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return
    queue = await kit.new_queue("m")
    endpoint = f"http://{host}:{urllib.parse.urlsplit(suite.ENDPOINT).port}"
    equal(await peeked(kit.queue(queue.queue_name, endpoint=endpoint)), ["m"])


async def every_version_of_the_client_is_served(kit):
    queue = await kit.new_queue("m")
    for version in ("2019-02-02", "2019-07-07", "2020-10-02", "2021-12-02", "2024-05-04", "2025-07-05", "2026-10-06"):
        client = kit.queue(queue.queue_name, api_version=version)
        seen = []
        await client.peek_messages(raw_response_hook=lambda answer: seen.append(answer.http_response.headers))
        equal(seen[0]["x-ms-version"], version)


async def answers_name_the_request(kit):
    queue = await kit.new_queue("m")
    seen = []
    await queue.peek_messages(client_request_id="my-request", raw_response_hook=lambda answer: seen.append(answer.http_response.headers))
    equal(seen[0]["x-ms-client-request-id"], "my-request")
    equal(seen[0]["Content-Type"], "application/xml")
    equal(seen[0]["Cache-Control"], "no-cache")
    assert seen[0]["Date"] and len(seen[0]["x-ms-request-id"]) == 36, seen[0]
