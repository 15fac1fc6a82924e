"""The Celery application that the worker and the cases share."""

import os

from celery import Celery

app = Celery("conformance", broker=f"azurestoragequeues://{os.environ['TAVOLA_KEY']}@{os.environ['TAVOLA_ENDPOINT']}")
app.conf.update(
    broker_transport_options={"queue_name_prefix": os.environ["CELERY_PREFIX"], "polling_interval": 0.2},
    task_default_queue="celery",
    # The broker is what is tried here: the results go to a folder.
    result_backend=f"file://{os.environ['CELERY_RESULTS']}",
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    task_acks_late=False,
    worker_prefetch_multiplier=1,
)


@app.task
def add(one, other):
    return one + other


@app.task
def echo(value):
    return value


@app.task(bind=True, max_retries=3, default_retry_delay=0.2)
def fails_twice(self):
    if self.request.retries < 2:
        raise self.retry()
    return self.request.retries


@app.task
def note(folder, number):
    """Leaves a file for every run, so that a task that ran twice is seen."""
    for attempt in range(100):
        try:
            with open(f"{folder}/{number}.{attempt}", "x"):
                return number
        except FileExistsError:
            continue
