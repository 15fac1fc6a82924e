"""The Azure SDKs for Python in a suite: one face for the synchronous and the asynchronous client.

Each case is a coroutine that awaits everything, and is run once with each. For the synchronous client `Threaded` runs each
call in a thread, which also gives the cases on concurrency real concurrency.
"""

import asyncio
import inspect
import json
import logging

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError

import suite

CREDENTIAL = AzureNamedKeyCredential(suite.ACCOUNT, suite.KEY)
CASE_SECONDS_MAX = 120


class Threaded:
    """A synchronous client whose calls are awaited."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        attribute = getattr(self.client, name)
        # What the asynchronous client does not make one await either: pages, which are asked for when they are read.
        if not callable(attribute) or name.startswith(("list_", "query_", "receive_messages")):
            return attribute
        if name.startswith("get_") and name.endswith("_client"):
            return lambda *args, **kwargs: Threaded(attribute(*args, **kwargs))
        return lambda *args, **kwargs: asyncio.to_thread(attribute, *args, **kwargs)


class Kit:
    """What a case is given: clients of one kind, which are closed after the case."""

    def __init__(self, kind, sync_module, async_module):
        self.kind = kind
        self.module = sync_module if kind == "sync" else async_module
        self.opened = []

    def keep(self, client):
        self.opened.append(client)
        return Threaded(client) if self.kind == "sync" else client

    async def clean(self):
        for client in self.opened:
            if self.kind == "sync":
                client.close()
            else:
                await client.close()


def run_modules(modules, kit):
    """Runs the cases of modules, each with a kit of either kind."""
    logging.getLogger("azure").setLevel(logging.ERROR)
    asyncio.run(_run_modules(modules, kit))


async def _run_modules(modules, kit):
    for module in modules:
        for function in _cases(module):
            for kind in ("sync", "async"):
                await _run(function, kit(kind))


def _cases(module):
    """The public coroutines that a module defines itself, in the order they are written."""
    return [
        function
        for name, function in vars(module).items()
        if inspect.iscoroutinefunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    ]


async def _run(function, kit):
    error = None
    try:
        await asyncio.wait_for(function(kit), CASE_SECONDS_MAX)
    except Exception as raised:
        error = raised
    try:
        await kit.clean()
    except Exception as raised:
        error = error or raised
    suite.report(f"{function.__module__}.{function.__name__} ({kit.kind})", error)


async def collect(paged):
    """All items of a paged answer."""
    if hasattr(paged, "__aiter__"):
        return [item async for item in paged]
    return await asyncio.to_thread(list, paged)


async def next_page(pages):
    """The items of the next page, and the token to go on with."""
    if hasattr(pages, "__anext__"):
        page = [item async for item in await pages.__anext__()]
    else:
        page = await asyncio.to_thread(lambda: list(next(pages)))
    return page, pages.continuation_token


class raises:
    """Expects an error, and keeps it in `error`. Of what is expected a text is its code, a number its status."""

    def __init__(self, *expected, kind=HttpResponseError, code=None, status=None):
        self.kind, self.code, self.status, self.error = kind, code, status, None
        for one in expected:
            if isinstance(one, str):
                self.code = one
            elif isinstance(one, int):
                self.status = one
            else:
                self.kind = one

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
    """The error code as the SDK has it: on the error, or (inserts of entities) only in the answer that it carries."""
    code = getattr(error, "error_code", None)
    if code is None and getattr(error, "error", None) is not None:
        code = error.error.code
    if code is None:
        code = json.loads(error.response.text())["odata.error"]["code"]
    return getattr(code, "value", code)
