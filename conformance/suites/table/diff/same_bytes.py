"""Two binaries, before and after a change that must not be seen: the same requests, the same bytes in the answers.

usage: PYTHONPATH=conformance/lib same_bytes.py BEFORE AFTER [--count N] [--seed N]

The requests are those of the differential run: every operation, its conditions, its errors, in random scenarios. Status,
headers with their order, and bodies are compared; ids, dates, ETags and the port stand for themselves. Exit status 1 when
anything differs.
"""

import argparse
import collections
import random
import re
import signal
import subprocess
import sys
import tempfile

from client import Request, Side
from generate import JSON, Scenario

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SCENARIO_REQUESTS = 40
#: Differences shown in full; the rest is counted.
SHOWN_MAX = 20

CHANGING = [
    (re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), b"<id>"),
    (re.compile(rb"\d{4}-\d\d-\d\dT\d\d(?::|%3A)\d\d(?::|%3A)\d\d(?:\.\d{1,7})?Z"), b"<moment>"),
    (re.compile(rb"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"), b"<date>"),
    (re.compile(rb"127\.0\.0\.1:\d+"), b"<host>"),
]


class Server:
    """A binary, started on a free port with a folder of its own."""

    def __init__(self, binary):
        self.folder = tempfile.TemporaryDirectory()
        command = [binary, "serve", "--data", f"{self.folder.name}/data", "--tablePort", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            found = re.search(r"Table service is successfully listening at (\S+)", line)
            if found:
                self.side = Side(binary, f"{found.group(1)}/{ACCOUNT}", ACCOUNT, KEY)
                return
        raise SystemExit(f"{binary} did not start")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.folder.cleanup()


def steady(data):
    for pattern, stand_in in CHANGING:
        data = pattern.sub(stand_in, data)
    return data


def comparable(answer):
    """Everything of an answer that must be equal. The length of a body follows from the body, moments apart."""
    headers = [(name, steady(value.encode())) for name, value in answer.headers.items() if name != "content-length"]
    pages = [comparable(page) for page in (answer.pages or [])[1:]]
    return answer.status, headers, steady(answer.body), pages


def compare(sides, request, differences, counts):
    answers = [side.send(request) for side in sides]
    counts[request.op, answers[0].brief()] += 1
    before, after = (comparable(answer) for answer in answers)
    if before != after:
        differences.append((request, before, after))
    return answers


def run_scenario(sides, rng, number, differences, counts):
    for side in sides:
        side.begin(f"same{number}")
    setup = Request("tables", "setup", "POST", "/Tables", headers=[("Content-Type", JSON)], body='{"TableName":"«T»"}')
    compare(sides, setup, differences, counts)
    scenario = Scenario(rng)
    for _ in range(SCENARIO_REQUESTS):
        request = scenario.next()
        answers = compare(sides, request, differences, counts)
        if request.effect and request.writes and 200 <= answers[0].status < 300:
            request.effect()
        if scenario.spoiled:
            break


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("before")
    arguments.add_argument("after")
    arguments.add_argument("--count", type=int, default=6000)
    arguments.add_argument("--seed", type=int, default=2026)
    arguments = arguments.parse_args()
    servers = [Server(arguments.before), Server(arguments.after)]
    sides, differences, counts = [server.side for server in servers], [], collections.Counter()
    try:
        rng, number = random.Random(arguments.seed), 0
        while sum(counts.values()) < arguments.count:
            number += 1
            run_scenario(sides, random.Random(rng.randrange(1 << 62)), number, differences, counts)
    finally:
        for server in servers:
            server.stop()
    for request, before, after in differences[:SHOWN_MAX]:
        print(f"{request.op} | {request.cond} | {request.verb} {request.path}?{request.query}\n  before: {before}\n  after:  {after}")
    kinds = len(counts)
    print(f"{sum(counts.values())} requests, {kinds} kinds of operation and outcome, {len(differences)} answers differ, seed {arguments.seed}")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
