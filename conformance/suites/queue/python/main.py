"""azure-storage-queue, synchronous and asynchronous: every case of every module below, once with each."""

import suite
from clients import Kit
from sdk import run_modules

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

if __name__ == "__main__":
    suite.report_client("azure-storage-queue")
    run_modules(MODULES, Kit)
