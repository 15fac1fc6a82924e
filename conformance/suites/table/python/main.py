"""azure-data-tables, synchronous and asynchronous: every case of every module below, once with each."""

import suite
from clients import Kit
from sdk import run_modules

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

if __name__ == "__main__":
    suite.report_client("azure-data-tables")
    run_modules(MODULES, Kit)
