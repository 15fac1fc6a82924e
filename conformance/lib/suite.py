"""What the Python suites share: where the server is, how cases are named, run and reported.

A case is a function whose name says what holds. It fails by raising. Its name in the results is `module.function`, so
that the compatibility table can link to it.
"""

import importlib.metadata
import itertools
import json
import os
import time
import traceback
import urllib.request
import uuid

ENDPOINT = os.environ["TAVOLA_ENDPOINT"]
ACCOUNT = os.environ["TAVOLA_ACCOUNT"]
KEY = os.environ["TAVOLA_KEY"]
CONNECTION_STRING = os.environ["TAVOLA_CONNECTION_STRING"]
ON_DEVELOPMENT_PORT = os.environ["TAVOLA_ON_DEVELOPMENT_PORT"] == "1"

_run = uuid.uuid4().hex[:8]
_numbers = itertools.count(1)


def table_name(prefix="t"):
    """A table name that no other suite and no other run uses."""
    return f"{prefix}{_run}{next(_numbers)}"


def queue_name(prefix="q"):
    return table_name(prefix)


def report_client(package):
    append({"client": package, "version": importlib.metadata.version(package)})


def report(case, error=None):
    detail = "".join(traceback.format_exception(error))[-4000:] if error else ""
    append({"case": case, "ok": error is None, "detail": detail})
    print(f"{'ok    ' if error is None else 'FAILED'} {case}", flush=True)
    if error:
        print(detail, flush=True)


def run_cases(cases, theme=""):
    """Runs plain functions, each with names of its own to make tables or queues under."""
    for function in cases:
        started, error = time.monotonic(), None
        try:
            function()
        except Exception as raised:
            error = raised
        report(theme + function.__name__, error)
        print(f"       {time.monotonic() - started:.2f} s", flush=True)


def restart_server():
    """Kills the server with SIGKILL and starts it again; returns once it listens."""
    request = urllib.request.Request(os.environ["TAVOLA_CONTROL"] + "/restart", method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def equal(actual, expected, what=""):
    assert actual == expected, f"{what or 'value'}: got {actual!r:.500}, expected {expected!r:.500}"


def append(record):
    """Writes a line into the results."""
    with open(os.environ["TAVOLA_RESULTS"], "a") as results:
        results.write(json.dumps(record) + "\n")
