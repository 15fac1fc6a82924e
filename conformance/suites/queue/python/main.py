"""azure-storage-queue, synchronous and asynchronous: every case of every module below, once with each."""

import asyncio
import inspect
import logging

import suite
from clients import Kit

import access
import concurrency
import connecting
import encodings_
import messages
import policies
import queues
import receipts
import restarts
import service
import texts

MODULES = [queues, messages, receipts, texts, encodings_, concurrency, policies, access, service, connecting, restarts]
CASE_SECONDS_MAX = 120


def cases(module):
    """The public coroutines that a module defines itself, in the order they are written."""
    return [
        function
        for name, function in vars(module).items()
        if inspect.iscoroutinefunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    ]


async def run(function, kind):
    kit, error = Kit(kind), None
    try:
        await asyncio.wait_for(function(kit), CASE_SECONDS_MAX)
    except Exception as raised:
        error = raised
    try:
        await kit.clean()
    except Exception as raised:
        error = error or raised
    suite.report(f"{function.__module__}.{function.__name__} ({kind})", error)


async def main():
    for module in MODULES:
        for function in cases(module):
            for kind in ("sync", "async"):
                await run(function, kind)


if __name__ == "__main__":
    logging.getLogger("azure").setLevel(logging.ERROR)
    suite.report_client("azure-storage-queue")
    asyncio.run(main())
