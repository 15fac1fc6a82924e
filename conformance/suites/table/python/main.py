"""azure-data-tables, synchronous and asynchronous: every case of every module below, once with each."""

import asyncio
import inspect
import logging

import suite
from clients import Kit

import access
import concurrency
import connecting
import entities
import index_values
import index_views
import indexes
import keys
import paging
import queries
import restarts
import service
import tables
import transactions
import types_
import unique_indexes
import workload

MODULES = [
    tables, entities, types_, keys, queries, paging, transactions, concurrency, indexes, unique_indexes,
    index_views, index_values, workload, access, service, connecting, restarts,
]
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
    suite.report_client("azure-data-tables")
    asyncio.run(main())
