"""The ways to name the service: connection strings, URLs, host names, versions."""

import socket
import unittest.mock
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

from azure.data.tables import (
    AccountSasPermissions, ResourceTypes, TableSasPermissions, UpdateMode, generate_account_sas, generate_table_sas,
)

import suite
from clients import entity
from sdk import CREDENTIAL, collect
from suite import ACCOUNT, ENDPOINT, KEY, equal

PORT = urlsplit(ENDPOINT).port


async def _works(kit, connection_string):
    """Makes a table, writes, reads and lists through clients made from this connection string."""
    service, name = kit.service_from(connection_string), kit.name()
    await service.create_table(name)
    table = kit.table_from(connection_string, name)
    await table.create_entity(entity(V=1))
    await table.update_entity(entity(W=2), mode=UpdateMode.MERGE)
    await table.submit_transaction([("upsert", entity(row="2", V=3)), ("update", entity(X=4))])
    equal(dict(await table.get_entity("p", "r")), entity(V=1, W=2, X=4))
    equal(len(await collect(table.query_entities("PartitionKey eq 'p'"))), 2)
    assert name in [one.name for one in await collect(service.list_tables())]
    return service


def _account_sas():
    return generate_account_sas(
        CREDENTIAL, ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions.from_string("rwdlacu"), datetime.now(timezone.utc) + timedelta(hours=1),
    )


async def a_connection_string_with_endpoint_and_key(kit):
    await _works(kit, suite.CONNECTION_STRING)


async def a_connection_string_in_another_order_and_case_and_without_protocol(kit):
    await _works(kit, f"tableendpoint={ENDPOINT};AccountKey={KEY};accountname={ACCOUNT}")


async def a_connection_string_with_a_trailing_slash(kit):
    await _works(kit, f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={ENDPOINT}/;")


async def a_connection_string_that_names_the_secondary(kit):
    service = await _works(
        kit,
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={ENDPOINT};"
        f"TableSecondaryEndpoint={ENDPOINT}-secondary;",
    )
    equal(service.account_name, ACCOUNT)


async def a_connection_string_with_a_signature(kit):
    await _works(kit, f"TableEndpoint={ENDPOINT};SharedAccessSignature={_account_sas()}")


async def a_connection_string_with_an_endpoint_suffix(kit):
    # The client asks for the host devstoreaccount1.table.localhost; not every resolver knows names under localhost.
    resolve = socket.getaddrinfo

    def local(host, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        return resolve("127.0.0.1" if name and name.endswith(".localhost") else host, *args, **kwargs)

    with unittest.mock.patch("socket.getaddrinfo", local):
        await _works(
            kit,
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};EndpointSuffix=localhost:{PORT}",
        )


if suite.ON_DEVELOPMENT_PORT:

    async def use_development_storage(kit):
        await _works(kit, "UseDevelopmentStorage=true")


async def localhost_where_the_client_tunnels_merges_through_post(kit):
    # The client takes localhost on any port but 10002 for Cosmos. On 10002 it must be told, to show the same.
    with (
        unittest.mock.patch("azure.data.tables._base_client._is_cosmos_endpoint", lambda url: True),
        unittest.mock.patch("azure.data.tables.aio._base_client_async._is_cosmos_endpoint", lambda url: True, create=True),
    ):
        endpoint = ENDPOINT.replace("127.0.0.1", "localhost")
        await _works(kit, f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={endpoint};")


async def a_url_that_carries_a_signature(kit):
    # Without a transaction: with this form the client sends those with no credentials at all.
    name = kit.name()
    service = kit.service(endpoint=f"{ENDPOINT}?{_account_sas()}", credential=None)
    await service.create_table(name)
    table = kit.table(name, endpoint=f"{ENDPOINT}?{_account_sas()}", credential=None)
    await table.create_entity(entity(V=1))
    await table.update_entity(entity(V=2))
    equal([one["V"] for one in await collect(table.query_entities("V eq 2"))], [2])


async def a_client_made_from_the_url_of_a_table(kit):
    table = await kit.new_table(entity(V=1))
    client = kit.table_from_url(f"{ENDPOINT}/{table.table_name}", credential=CREDENTIAL)
    equal(client.table_name, table.table_name)
    equal((await client.get_entity("p", "r"))["V"], 1)
    sas = generate_table_sas(
        CREDENTIAL, table.table_name, permission=TableSasPermissions(read=True),
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    )
    client = kit.table_from_url(f"{ENDPOINT}/{table.table_name}?{sas}")
    equal((await client.get_entity("p", "r"))["V"], 1)


async def a_table_client_of_the_service_client(kit):
    service, name = kit.service(), kit.name()
    table = service.get_table_client(name)
    await table.create_table()
    await table.create_entity(entity(V=1))
    equal((await table.get_entity("p", "r"))["V"], 1)


async def each_version_that_the_client_offers(kit):
    for version in ("2019-02-02", "2019-07-07", "2020-12-06"):
        table = await kit.new_table(entity(V=1), api_version=version)
        seen = {}
        await table.get_entity("p", "r", raw_response_hook=lambda answer: seen.update(answer.http_response.headers))
        equal({name.lower(): value for name, value in seen.items()}["x-ms-version"], version)


