"""The differential run: the same requests to Tavola and to Azurite, each difference looked up in a reviewed list.

Variables: DIFF_SEED (a number, or `random`; printed, so that a run can be repeated), DIFF_COUNT (requests), DIFF_VERBOSE
(print listed differences too). Without them the run is always the same one, so that a list entry which matches nothing
in it is stale.
"""

import collections
import html
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

from client import MESSAGE, Request, Side
from compare import differences
from generate import Scenario
from known_differences import Known

#: Long enough that messages pile up, short enough that a divergence costs little.
SCENARIO_REQUESTS = 40
DEFAULT_SEED = 2026
DEFAULT_COUNT = 3000


class Run:
    def __init__(self, sides, known, seed):
        self.sides, self.known, self.seed = sides, known, seed
        self.failures, self.counts, self.listed, self.queues = collections.OrderedDict(), collections.Counter(), collections.Counter(), 0

    def send_both(self, request):
        return [side.send(request) for side in self.sides]

    def scenario(self, rng):
        self.queues += 1
        for side in self.sides:
            side.begin(f"diff{self.seed % 100000:05d}n{self.queues}")
        self.send_both(Request("create", "setup", "PUT", "/«Q»"))
        scenario = Scenario(rng)
        for _ in range(SCENARIO_REQUESTS):
            request = scenario.next()
            answers = self.send_both(request)
            self.counts[request.op] += 1
            for kind, text in self.judge(request, answers):
                self.report(kind, text, request, answers)
            applied = [200 <= answer.status < 300 for answer in answers]
            if applied[0] and request.effect:
                request.effect()
            if request.op == "properties" and applied[0] != applied[1]:
                self.send_both(scenario.set_properties("none"))
            # The two hold different things from here on.
            if request.writes and applied[0] != applied[1] or applied[0] and self.order_differs(request, answers):
                break
        self.send_both(Request("delete", "cleanup", "DELETE", "/«Q»"))

    def order_differs(self, request, answers):
        if not request.gets:
            return False
        numbers = [[side.number(found) for found in re.findall(r"<MessageId>(.*?)<", answer.text())] for side, answer in zip(self.sides, answers)]
        return numbers[0] != numbers[1]

    def judge(self, request, answers):
        """The mistakes of our server by the reference, and the differences from Azurite that are not listed."""
        ours, out = answers[0], []
        if request.expect and (ours.status, ours.code()) != request.expect:
            # A HEAD has no body for its code to be in.
            out.append(("reference", f"answer is {ours.brief()!r}, wanted {request.expect}"))
        elif request.messages is not None and (mistake := self.wrong_messages(request, ours)):
            out.append(("reference", mistake))
        if mistake := wrong_error(ours):
            out.append(("reference", mistake))
        for difference in differences(request, self.sides, answers):
            entry = self.known.find(difference)
            if entry is None:
                out.append(("azurite", str(difference)))
            else:
                self.listed[entry["reason"]] += 1
                if os.environ.get("DIFF_VERBOSE"):
                    print("listed:", difference)
        return out

    def wrong_messages(self, request, answer):
        """How the messages of an answer differ from those of the model."""
        found = []
        for message in MESSAGE.findall(answer.text()):
            fields = dict(re.findall(r"<(\w+)>([^<]*)<", message))
            found.append((self.sides[0].number(fields["MessageId"]), html.unescape(fields.get("MessageText", "")), int(fields["DequeueCount"])))
        brief = lambda messages: [(number, text[:20], len(text), count) for number, text, count in messages]
        return "" if found == request.messages else f"messages are {brief(found)}, wanted {brief(request.messages)}"

    def report(self, kind, text, request, answers):
        signature = (request.op, kind, re.sub(r"\d{4,}|n\d+|\[\(.*\)\]", "#", text))
        if signature in self.failures:
            self.failures[signature]["times"] += 1
            return
        shown = [f"{side.resolve(request.verb)} {side.resolve(request.path)}?{side.resolve(request.query)}" for side in self.sides]
        self.failures[signature] = {"times": 1, "kind": kind, "text": text, "cond": request.cond, "answers": answers, "shown": shown, "body": request.body}


def wrong_error(answer):
    """What is wrong with the form of an error."""
    if answer.status < 400 or not answer.body:
        return ""
    if not re.search(r"^<\?xml version=\"1.0\" encoding=\"utf-8\"\?><Error><Code>\w+</Code><Message>[^<]+\nRequestId:[-0-9a-f]{36}\nTime:[-0-9T:.]+Z</Message>", answer.text()):
        return f"the error is not formed as it should be: {answer.text()[:200]}"
    if answer.headers.get("x-ms-error-code") != answer.code():
        return f"x-ms-error-code is {answer.headers.get('x-ms-error-code')}, the code {answer.code()}"
    return ""


def start_azurite(command):
    """Starts Azurite and gives the process and its endpoint. It cannot say which port it chose, so we choose."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([*command, "--queuePort", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"http://127.0.0.1:{port}"
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("Azurite did not start")


def main():
    seed = os.environ.get("DIFF_SEED") or str(DEFAULT_SEED)
    seed = random.SystemRandom().randrange(1_000_000) if seed == "random" else int(seed)
    count = int(os.environ.get("DIFF_COUNT") or DEFAULT_COUNT)
    account, key = os.environ["TAVOLA_ACCOUNT"], os.environ["TAVOLA_KEY"]
    print(f"DIFF_SEED={seed} DIFF_COUNT={count}", flush=True)
    azurite, endpoint = start_azurite(sys.argv[1:])
    ours, theirs = Side("tavola", os.environ["TAVOLA_ENDPOINT"], account, key), Side("azurite", f"{endpoint}/{account}", account, key)
    known = Known(os.path.join(os.path.dirname(os.path.abspath(__file__)), "known-differences.toml"))
    run, properties = Run([ours, theirs], known, seed), Request("properties", "keep", "GET", "/", "restype=service&comp=properties")
    kept, started = ours.send(properties), time.monotonic()
    try:
        rng = random.Random(seed)
        run.send_both(Scenario(rng).set_properties("none"))  # New accounts differ; from here on both have the same rules.
        while sum(run.counts.values()) < count:
            run.scenario(random.Random(rng.randrange(1 << 62)))
    finally:
        ours.send(Request("properties", "restore", "PUT", "/", "restype=service&comp=properties", body=kept.body))
        result("the service properties are as they were before", ours.send(properties).body == kept.body, "")
        azurite.send_signal(signal.SIGTERM)
        azurite.wait(10)
    report(run)
    stale = known.stale()
    for entry in stale:
        print(f"stale: no difference matched {entry.get('operation', '*')} | {entry.get('condition', '*')} | {entry.get('field', '*')} ({entry['reason']})")
    is_full = (seed, count) == (DEFAULT_SEED, DEFAULT_COUNT)
    result("the list of known differences has no stale entry", not (stale and is_full), f"{len(stale)} entries never matched" if stale else "")
    print(f"{sum(run.counts.values())} requests compared in {time.monotonic() - started:.1f} s, {sum(run.listed.values())} listed differences, "
          f"{len(run.failures)} unlisted or wrong, seed {seed}")


def report(run):
    """Prints each failure, and writes two cases for each operation."""
    for (op, _, _), failure in run.failures.items():
        print(f"\n=== {failure['kind']} | {op} | {failure['cond']} | seen {failure['times']} times\n  {failure['text']}")
        print(f"    {failure['shown'][0]}\n    {str(failure['body'])[:300]}")
        for side, answer in zip(run.sides, failure["answers"]):
            print(f"  {side.name}: {answer.brief()} {json.dumps(answer.headers)}\n    {answer.text()[:600]}")
    for op in sorted(run.counts):
        mine = [failure for (other, _, _), failure in run.failures.items() if other == op]
        for kind, name in (("reference", "answers as the wire reference says"), ("azurite", "differs from Azurite only as listed")):
            wrong = [failure for failure in mine if failure["kind"] == kind]
            result(f"{op}: {name}", not wrong, "; ".join(f"{failure['cond']}: {failure['text']}" for failure in wrong)[:2000])


def result(case, ok, detail):
    with open(os.environ["TAVOLA_RESULTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"case": case, "ok": ok, "detail": detail}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
