"""Celery with its broker in queues: kombu's azurestoragequeues transport, a worker in a process of its own."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time

import suite
from suite import equal

FOLDER = tempfile.TemporaryDirectory(prefix="tavola-celery-")
PREFIX = suite.queue_name("celery") + "-"
os.environ.update(CELERY_PREFIX=PREFIX, CELERY_RESULTS=os.path.join(FOLDER.name, "results"))
os.mkdir(os.environ["CELERY_RESULTS"])

from azure.storage.queue import QueueServiceClient
from kombu import Connection

import tasks

SECONDS = 60
SERVICE = QueueServiceClient.from_connection_string(suite.CONNECTION_STRING)


@contextlib.contextmanager
def worker(queues="celery", processes=2):
    """A worker, until the end of the block."""
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-Q", queues, "--concurrency", str(processes), "--without-gossip", "--without-mingle",
               "--without-heartbeat", "--loglevel", "INFO"]
    process = subprocess.Popen(command, stdout=sys.stdout, stderr=sys.stderr, env=os.environ)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def a_task_is_run():
    with worker():
        equal(tasks.add.delay(2, 3).get(timeout=SECONDS), 5)


def arguments_come_as_they_were():
    values = ["a<b> & 'c'", "Grüße 日本語 😀", " \n\t ", {"nested": [1, 2.5, None, True]}, "x" * 20_000]
    with worker():
        results = [tasks.echo.delay(value) for value in values]
        equal([result.get(timeout=SECONDS) for result in results], values)


def tasks_wait_for_a_worker():
    results = [tasks.add.delay(number, 1) for number in range(5)]
    counted = SERVICE.get_queue_client(f"{PREFIX}celery").get_queue_properties().approximate_message_count
    equal(counted, 5)
    with worker():
        equal([result.get(timeout=SECONDS) for result in results], [1, 2, 3, 4, 5])


def a_task_is_retried():
    with worker():
        equal(tasks.fails_twice.delay().get(timeout=SECONDS), 2)


def many_tasks_are_each_run_once_by_two_workers():
    with tempfile.TemporaryDirectory() as folder, worker(), worker():
        results = [tasks.note.delay(folder, number) for number in range(60)]
        equal([result.get(timeout=SECONDS) for result in results], list(range(60)))
        equal(sorted(os.listdir(folder)), sorted(f"{number}.0" for number in range(60)))


def queues_of_other_names_are_served():
    with worker("other.queue_name"):
        equal(tasks.add.apply_async((1, 1), queue="other.queue_name").get(timeout=SECONDS), 2)
    names = [queue.name for queue in SERVICE.list_queues(name_starts_with=PREFIX)]
    assert f"{PREFIX}other-queue-name" in names, names


def a_worker_goes_on_after_the_server_was_killed():
    with worker():
        equal(tasks.add.delay(1, 1).get(timeout=SECONDS), 2)
        suite.restart_server()
        equal(tasks.add.delay(2, 2).get(timeout=SECONDS), 4)


def kombu_sends_receives_measures_and_purges():
    with Connection(tasks.app.conf.broker_url, transport_options={"queue_name_prefix": PREFIX}) as connection:
        queue = connection.SimpleQueue("simple")
        for number in range(3):
            queue.put({"number": number})
        equal(queue.qsize(), 3)
        message = queue.get(timeout=SECONDS)
        equal(message.payload, {"number": 0})
        message.ack()
        equal(queue.qsize(), 2)
        with_prefix = SERVICE.get_queue_client(f"{PREFIX}simple")
        with_prefix.clear_messages()
        equal(queue.qsize(), 0)
        queue.close()


CASES = [
    kombu_sends_receives_measures_and_purges,
    a_task_is_run,
    arguments_come_as_they_were,
    tasks_wait_for_a_worker,
    a_task_is_retried,
    many_tasks_are_each_run_once_by_two_workers,
    queues_of_other_names_are_served,
    a_worker_goes_on_after_the_server_was_killed,
]

if __name__ == "__main__":
    for client in ("celery", "kombu", "azure-storage-queue"):
        suite.report_client(client)
    try:
        suite.run_cases(CASES, "celery: ")
    finally:
        for queue in SERVICE.list_queues(name_starts_with=PREFIX):
            SERVICE.delete_queue(queue)
        FOLDER.cleanup()
