"""One face for the synchronous and the asynchronous client, so that each case is written once.

Cases await everything. For the synchronous client `Threaded` runs each call in a thread, which also gives the
cases on concurrency real concurrency.
"""

import asyncio
import json

import azure.data.tables
import azure.data.tables.aio
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError

import suite

CREDENTIAL = AzureNamedKeyCredential(suite.ACCOUNT, suite.KEY)


class Threaded:
    """A synchronous client whose calls are awaited."""

    # What the asynchronous client does not make one await either.
    PLAIN = {"query_entities", "list_entities", "query_tables", "list_tables"}

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        attribute = getattr(self.client, name)
        if not callable(attribute) or name in self.PLAIN:
            return attribute
        if name == "get_table_client":
            return lambda table: Threaded(attribute(table))
        return lambda *args, **kwargs: asyncio.to_thread(attribute, *args, **kwargs)


class Kit:
    """What a case is given: clients of one kind, and tables that are removed after the case."""

    def __init__(self, kind):
        self.kind = kind
        self.module = azure.data.tables if kind == "sync" else azure.data.tables.aio
        self.opened = []
        self.tables = []

    def _keep(self, client):
        self.opened.append(client)
        return Threaded(client) if self.kind == "sync" else client

    def service(self, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self._keep(self.module.TableServiceClient(endpoint, credential=credential, **options))

    def service_from(self, connection_string, **options):
        return self._keep(self.module.TableServiceClient.from_connection_string(connection_string, **options))

    def table(self, name, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self._keep(
            self.module.TableClient(endpoint, table_name=name, credential=credential, **options)
        )

    def table_from(self, connection_string, name):
        return self._keep(self.module.TableClient.from_connection_string(connection_string, name))

    def table_from_url(self, url, **options):
        return self._keep(self.module.TableClient.from_table_url(url, **options))

    def with_sas(self, name, sas):
        return self.table(name, credential=AzureSasCredential(sas))

    def name(self):
        """A table name; the table of that name is removed after the case, if it is there."""
        name = suite.table_name("py" + self.kind)
        self.tables.append(name)
        return name

    async def new_table(self, *entities, **options):
        """A client for a fresh table that holds these entities."""
        client = self.table(self.name(), **options)
        await client.create_table()
        for entity in entities:
            await client.create_entity(entity)
        return client

    async def clean(self):
        service = self.service()
        for name in self.tables:
            await service.delete_table(name)
        for client in self.opened:
            if self.kind == "sync":
                client.close()
            else:
                await client.close()


def entity(partition="p", row="r", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def rows(many, count, start=0, **properties):
    return [entity(many, f"{number:04}", **properties) for number in range(start, start + count)]


async def collect(paged):
    """All items of a paged answer."""
    if hasattr(paged, "__aiter__"):
        return [item async for item in paged]
    return await asyncio.to_thread(list, paged)


async def row_keys(paged):
    return [item["RowKey"] for item in await collect(paged)]


async def next_page(pages):
    """The items of the next page, and the token to go on with."""
    if hasattr(pages, "__anext__"):
        page = [item async for item in await pages.__anext__()]
    else:
        page = await asyncio.to_thread(lambda: list(next(pages)))
    return page, pages.continuation_token


class raises:
    """Expects an error of this type and code, and keeps it in `error`."""

    def __init__(self, kind=HttpResponseError, code=None, status=None):
        self.kind, self.code, self.status, self.error = kind, code, status, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        expected = f"{self.kind.__name__} {self.code or ''}"
        assert error is not None, f"no error, expected {expected}"
        if not isinstance(error, self.kind):
            return False
        self.error = error
        if self.code:
            suite.equal(code_of(error), self.code, f"error code of {error!r:.300}")
        if self.status:
            suite.equal(error.status_code, self.status, "status")
        return True


def code_of(error):
    """The error code as the SDK has it: on the error, or (inserts) only in the answer that it carries."""
    code = getattr(error, "error_code", None)
    if code is None and getattr(error, "error", None) is not None:
        code = error.error.code
    if code is None:
        code = json.loads(error.response.text())["odata.error"]["code"]
    return getattr(code, "value", code)
