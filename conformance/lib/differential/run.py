"""The run: scenarios of random requests to both servers, what is wrong or not listed in their answers, and the cases."""

import collections
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

import suite

from .known import Known

#: Long enough that things pile up for later requests, short enough that a divergence costs little.
SCENARIO_REQUESTS = 40
DEFAULT_SEED = 2026


class Run:
    """A run of one service, which says what is sent, what is wrong and what may differ."""

    service = None  #: As in `--tablePort`.
    side = None  #: The class of its servers.
    request = None  #: The class of its requests.
    scenario = None  #: The class that makes up requests: `next`, and `set_properties` for the service's own.
    differences = None  #: The function that finds everything that differs between the answers of both sides.
    #: The headers with which its properties are read and written.
    properties_headers = []
    default_count = 3000

    def __init__(self, sides, known, seed):
        self.sides, self.known, self.seed = sides, known, seed
        self.failures, self.counts, self.listed = collections.OrderedDict(), collections.Counter(), collections.Counter()
        self.begun = 0

    def begin(self):
        """A fresh table, queue or the like on both sides; its name is the same."""
        raise NotImplementedError

    def end(self):
        """Removes what a scenario has made."""
        raise NotImplementedError

    def mistakes(self, request, answer):
        """What is wrong with our own answer by the reference."""
        raise NotImplementedError

    def is_applied(self, answer):
        """Whether the server did what it was asked for."""
        return 200 <= answer.status < 300

    def has_diverged(self, scenario, request, answers):
        """Whether the two hold different things from here on, though both did what they were asked for, or neither."""
        return False

    def fresh_name(self):
        self.begun += 1
        return f"diff{self.seed % 100000:05d}n{self.begun}"

    def send_both(self, request):
        return [side.send(request) for side in self.sides]

    def play(self, rng):
        """One scenario: random requests until it is long enough, or the two servers hold different things."""
        self.begin()
        scenario, history = self.scenario(rng), []
        for _ in range(SCENARIO_REQUESTS):
            request = scenario.next()
            answers = self.send_both(request)
            history.append(request)
            self.counts[request.op] += 1
            for kind, text in self.judge(request, answers):
                self.note(kind, text, request, answers, history)
            applied = [self.is_applied(answer) for answer in answers]
            if applied[0] and request.effect and request.writes:
                request.effect()
            if request.op == "properties" and applied[0] != applied[1]:
                self.reset_properties(scenario)
            if self.has_diverged(scenario, request, answers) or (request.writes and applied[0] != applied[1]):
                break
        self.end()

    def reset_properties(self, scenario):
        request = scenario.set_properties("none")
        self.send_both(request)
        if request.effect:
            request.effect()

    def judge(self, request, answers):
        """The mistakes of our server by the reference, and the differences from Azurite that are not listed."""
        out = [("reference", mistake) for mistake in self.mistakes(request, answers[0])]
        for difference in self.differences(request, self.sides, answers):
            entry = self.known.find(difference)
            if entry is None:
                out.append(("azurite", str(difference)))
            else:
                self.listed[entry["reason"]] += 1
                if os.environ.get("DIFF_VERBOSE"):
                    print("listed:", difference)
        return out

    def note(self, kind, text, request, answers, history):
        """Keeps the first failure of its signature, and counts the others."""
        signature = (request.op, kind, re.sub(r"[0-9a-f-]{36}|\d{4,}|n\d+|\[\(.*\)\]|\(['\"].*?\)", "#", text))
        if signature in self.failures:
            self.failures[signature]["times"] += 1
            return
        self.failures[signature] = {"times": 1, "kind": kind, "text": text, "request": request, "answers": answers, "history": list(history),
                                    "resolved": [show_request(request, side) for side in self.sides], "cond": request.cond}

    def show(self, number, failure):
        """Prints what failed."""
        print(failure["resolved"][0])
        for side, answer in zip(self.sides, failure["answers"]):
            print(f"  {side.name}:\n{show_answer(answer)}")

    def report(self):
        """Prints each failure, and writes two cases for each operation."""
        for number, (signature, failure) in enumerate(self.failures.items()):
            print(f"\n=== {failure['kind']} | {signature[0]} | {failure['cond']} | seen {failure['times']} times\n  {failure['text']}")
            self.show(number, failure)
        for op in sorted(self.counts):
            mine = [failure for (other, _, _), failure in self.failures.items() if other == op]
            for kind, name in (("reference", "answers as the wire reference says"), ("azurite", "differs from Azurite only as listed")):
                wrong = [failure for failure in mine if failure["kind"] == kind]
                result(f"{op}: {name}", not wrong, "; ".join(f"{failure['cond']}: {failure['text']}" for failure in wrong)[:2000])


def show_request(request, side):
    target = side.resolve(request.path) + ("?" + side.resolve(request.query) if request.query else "")
    lines = [f"{request.verb} {target}    ({request.auth}{' ' + json.dumps(request.sas) if request.sas else ''})"]
    lines += [f"{name}: {side.resolve(value)}" for name, value in request.headers]
    body = side.resolve(request.body)
    if body:
        shown = body if isinstance(body, str) else repr(body)
        lines += ["", shown if len(shown) < 1500 else shown[:700] + f" ... {len(shown)} characters"]
    return "\n".join("    " + line for line in "\n".join(lines).splitlines())


def show_answer(answer):
    text = answer.text()
    return "    " + answer.brief() + " " + json.dumps(answer.headers) + "\n    " + (text[:1200] + (" ..." if len(text) > 1200 else ""))


def start_azurite(command, service):
    """Starts Azurite and gives the process and its endpoint. It cannot say which port it chose, so we choose."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([*command, f"--{service}Port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"http://127.0.0.1:{port}"
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("Azurite did not start")


def main(kind):
    """A run of this kind, with the program of Azurite and its arguments on the command line. The list lies beside the suite's program."""
    seed = os.environ.get("DIFF_SEED") or str(DEFAULT_SEED)
    seed = random.SystemRandom().randrange(1_000_000) if seed == "random" else int(seed)
    count = int(os.environ.get("DIFF_COUNT") or kind.default_count)
    print(f"DIFF_SEED={seed} DIFF_COUNT={count}", flush=True)
    azurite, endpoint = start_azurite(sys.argv[1:], kind.service)
    ours = kind.side("tavola", suite.ENDPOINT, suite.ACCOUNT, suite.KEY)
    theirs = kind.side("azurite", f"{endpoint}/{suite.ACCOUNT}", suite.ACCOUNT, suite.KEY)
    known = Known(os.path.join(os.path.dirname(sys.argv[0]), "known-differences.toml"))
    run = kind([ours, theirs], known, seed)
    properties = lambda verb, **more: kind.request("properties", "keep", verb, "/", "restype=service&comp=properties", headers=kind.properties_headers, **more)
    kept, started = ours.send(properties("GET")), time.monotonic()
    try:
        rng = random.Random(seed)
        run.reset_properties(kind.scenario(rng))  # New accounts differ; from here on both have the same rules.
        while sum(run.counts.values()) < count:
            run.play(random.Random(rng.randrange(1 << 62)))
        compared, listed, stale = sum(run.counts.values()), sum(run.listed.values()), known.stale()
        seconds = time.monotonic() - started
        run.report()
    finally:
        ours.send(properties("PUT", body=kept.body))
        result("the service properties are as they were before", ours.send(properties("GET")).body == kept.body, "")
        azurite.send_signal(signal.SIGTERM)
        azurite.wait(10)
    for entry in stale:
        print(f"stale: no difference matched {entry.get('operation', '*')} | {entry.get('condition', '*')} | {entry.get('field', '*')} ({entry['reason']})")
    is_full = (seed, count) == (DEFAULT_SEED, kind.default_count)
    result("the list of known differences has no stale entry", not (stale and is_full), f"{len(stale)} entries never matched" if stale else "")
    print(f"{compared} requests compared in {seconds:.1f} s ({ours.sent} sent to tavola, {theirs.sent} to azurite), {listed} listed differences, "
          f"{len(run.failures)} unlisted or wrong, seed {seed}")


def result(case, ok, detail):
    suite.append({"case": case, "ok": ok, "detail": detail})
