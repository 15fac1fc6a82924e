"""The clients of queues, and what cases do with them again and again."""

import asyncio
import time
import urllib.parse

import azure.storage.queue
import azure.storage.queue.aio
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import ResourceNotFoundError

import sdk
import suite
from sdk import CREDENTIAL, collect

#: A message that has to be hidden is hidden for this long, whatever the machine does meanwhile.
LONG = 3600
#: How long to wait for what has to happen within a second or two.
WAIT_SECONDS_MAX = 40


class Kit(sdk.Kit):
    """What a case is given: clients of one kind, and queues that are removed after the case."""

    def __init__(self, kind):
        super().__init__(kind, azure.storage.queue, azure.storage.queue.aio)
        self.queues = []

    def service(self, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self.keep(self.module.QueueServiceClient(endpoint, credential=credential, **options))

    def service_from(self, connection_string, **options):
        return self.keep(self.module.QueueServiceClient.from_connection_string(connection_string, **options))

    def queue(self, name, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self.keep(self.module.QueueClient(endpoint, queue_name=name, credential=credential, **options))

    def queue_from(self, connection_string, name):
        return self.keep(self.module.QueueClient.from_connection_string(connection_string, name))

    def queue_from_url(self, url, **options):
        return self.keep(self.module.QueueClient.from_queue_url(url, **options))

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
        await super().clean()


def secondary():
    """Host and path of the secondary endpoint, as clients want it."""
    return urllib.parse.urlsplit(suite.ENDPOINT).netloc + f"/{suite.ACCOUNT}-secondary"


async def received(queue, **options):
    """All messages that can be received now."""
    return await collect(queue.receive_messages(messages_per_page=32, **options))


async def peeked(queue, count=32):
    return [message.content for message in await queue.peek_messages(max_messages=count)]


def contents(messages):
    return [message.content for message in messages]


async def eventually(attempt, what):
    """Repeats `attempt` until it gives something that counts as true, and returns that."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        if found := await attempt():
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"not within {WAIT_SECONDS_MAX} seconds: {what}")
