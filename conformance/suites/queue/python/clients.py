"""One face for the synchronous and the asynchronous client, so that each case is written once.

Cases await everything. For the synchronous client `Threaded` runs each call in a thread, which also gives the
cases on concurrency real concurrency.
"""

import asyncio
import time
import urllib.parse

import azure.storage.queue
import azure.storage.queue.aio
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

import suite

CREDENTIAL = AzureNamedKeyCredential(suite.ACCOUNT, suite.KEY)
#: A message that has to be hidden is hidden for this long, whatever the machine does meanwhile.
LONG = 3600
#: How long to wait for what has to happen within a second or two.
WAIT_SECONDS_MAX = 40


class Threaded:
    """A synchronous client whose calls are awaited."""

    # What the asynchronous client does not make one await either.
    PLAIN = {"receive_messages", "list_queues"}

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        attribute = getattr(self.client, name)
        if not callable(attribute) or name in self.PLAIN:
            return attribute
        if name == "get_queue_client":
            return lambda *args, **kwargs: Threaded(attribute(*args, **kwargs))
        return lambda *args, **kwargs: asyncio.to_thread(attribute, *args, **kwargs)


class Kit:
    """What a case is given: clients of one kind, and queues that are removed after the case."""

    def __init__(self, kind):
        self.kind = kind
        self.module = azure.storage.queue if kind == "sync" else azure.storage.queue.aio
        self.opened = []
        self.queues = []

    def _keep(self, client):
        self.opened.append(client)
        return Threaded(client) if self.kind == "sync" else client

    def service(self, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self._keep(self.module.QueueServiceClient(endpoint, credential=credential, **options))

    def service_from(self, connection_string, **options):
        return self._keep(self.module.QueueServiceClient.from_connection_string(connection_string, **options))

    def queue(self, name, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self._keep(self.module.QueueClient(endpoint, queue_name=name, credential=credential, **options))

    def queue_from(self, connection_string, name):
        return self._keep(self.module.QueueClient.from_connection_string(connection_string, name))

    def queue_from_url(self, url, **options):
        return self._keep(self.module.QueueClient.from_queue_url(url, **options))

    def with_sas(self, name, sas, **options):
        return self.queue(name, credential=AzureSasCredential(sas), **options)

    def name(self):
        """A queue name; the queue of that name is removed after the case, if it is there."""
        name = suite.queue_name(f"py-{self.kind}-")
        self.queues.append(name)
        return name

    async def new_queue(self, *texts, **options):
        """A client for a fresh queue that holds these messages."""
        client = self.queue(self.name(), **options)
        await client.create_queue()
        for text in texts:
            await client.send_message(text)
        return client

    async def clean(self):
        service = self.service()
        for name in self.queues:
            try:
                await service.delete_queue(name)
            except ResourceNotFoundError:
                pass
        for client in self.opened:
            if self.kind == "sync":
                client.close()
            else:
                await client.close()


def secondary():
    """Host and path of the secondary endpoint, as clients want it."""
    return urllib.parse.urlsplit(suite.ENDPOINT).netloc + f"/{suite.ACCOUNT}-secondary"


async def collect(paged):
    """All items of a paged answer."""
    if hasattr(paged, "__aiter__"):
        return [item async for item in paged]
    return await asyncio.to_thread(list, paged)


async def received(queue, **options):
    """All messages that can be received now."""
    return await collect(queue.receive_messages(messages_per_page=32, **options))


async def peeked(queue, count=32):
    return [message.content for message in await queue.peek_messages(max_messages=count)]


def contents(messages):
    return [message.content for message in messages]


async def next_page(pages):
    """The items of the next page, and the token to go on with."""
    if hasattr(pages, "__anext__"):
        page = [item async for item in await pages.__anext__()]
    else:
        page = await asyncio.to_thread(lambda: list(next(pages)))
    return page, pages.continuation_token


async def eventually(attempt, what):
    """Repeats `attempt` until it gives something that counts as true, and returns that."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        if found := await attempt():
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"not within {WAIT_SECONDS_MAX} seconds: {what}")


class raises:
    """Expects an error of this type and code, and keeps it in `error`."""

    def __init__(self, code=None, status=None, kind=HttpResponseError):
        self.kind, self.code, self.status, self.error = kind, code, status, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        assert error is not None, f"no error, expected {self.kind} {self.code or ''}"
        if not isinstance(error, self.kind):
            return False
        self.error = error
        if self.code:
            suite.equal(code_of(error), self.code, f"error code of {error!r:.300}")
        if self.status:
            suite.equal(error.status_code, self.status, "status")
        return True


def code_of(error):
    code = getattr(error, "error_code", None)
    return getattr(code, "value", code)
