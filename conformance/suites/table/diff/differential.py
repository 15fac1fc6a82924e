"""The differential run: the same requests to Tavola and to Azurite, each difference looked up in a reviewed list.

Variables: DIFF_SEED (a number, or `random`; printed, so that a run can be repeated), DIFF_COUNT (requests), DIFF_VERBOSE
(print listed differences too), DIFF_REPRODUCED (how many failures to reproduce). Without them the run is always the
same one, so that a list entry which matches nothing in it is stale.
"""

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

import model
from client import Request, Side
from compare import differences
from generate import JSON, Scenario
from known_differences import Known

#: Long enough that rows pile up for queries and batches, short enough that a divergence costs little.
SCENARIO_REQUESTS = 40
DEFAULT_SEED = 2026
DEFAULT_COUNT = 6000
#: Differences with one signature are reported once; so many signatures are reproduced before the rest is only counted.
REPRODUCED_MAX = int(os.environ.get("DIFF_REPRODUCED") or 60)


class Run:
    def __init__(self, sides, known, seed):
        self.sides, self.known, self.seed = sides, known, seed
        self.failures = collections.OrderedDict()
        self.counts = collections.Counter()
        self.listed = collections.Counter()
        self.tables = 0

    def fresh_table(self):
        self.tables += 1
        for side in self.sides:
            side.table = f"diff{self.seed % 100000:05d}n{self.tables}"
            side.etags = {}
        return self.send_both(Request("tables", "setup", "POST", "/Tables", headers=[("Content-Type", JSON)], body='{"TableName":"«T»"}'))

    def drop_tables(self):
        for suffix in ("", "x", "y", "Z"):
            self.send_both(Request("tables", "cleanup", "DELETE", f"/Tables('«T»{suffix}')"))

    def send_both(self, request):
        return [side.send(request) for side in self.sides]

    def judge(self, request, answers):
        """The mistakes of our server by the reference, and the differences from Azurite that are not listed."""
        ours, out = answers[0], []
        if request.expect:
            status, code = request.expect
            if (status and ours.status != status) or (code is not None and ours.code() != code):
                out.append(("reference", f"answer is {ours.brief()!r}, wanted {status} {code or ''}: {ours.message()}"))
        if request.check and not out:
            try:
                mistake = request.check(ours, self.sides[0])
            except (ValueError, KeyError, TypeError) as error:
                mistake = f"unreadable answer ({error!r})"
            if mistake:
                out.append(("reference", mistake))
        mistake = model.check_error(ours)
        if mistake:
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

    def scenario(self, rng):
        self.fresh_table()
        scenario, history = Scenario(rng), []
        for _ in range(SCENARIO_REQUESTS):
            request = scenario.next()
            answers = self.send_both(request)
            history.append(request)
            self.counts[request.op] += 1
            for kind, text in self.judge(request, answers):
                self.report(kind, text, request, answers, history)
            applied = [applied_by(answer) for answer in answers]
            if applied[0] and request.effect and request.writes:
                request.effect()
            if request.op == "properties" and applied[0] != applied[1]:
                back = scenario.properties_("none")
                self.send_both(back)
                back.effect()
            if scenario.spoiled or (request.writes and applied[0] != applied[1]):
                break
        self.drop_tables()

    def report(self, kind, text, request, answers, history):
        signature = (request.op, kind, re.sub(r"[0-9a-f-]{36}|\d{4,}|n\d+|\[\(.*\)\]|\(['\"].*?\)", "#", text))
        if signature in self.failures:
            self.failures[signature]["times"] += 1
            return
        self.failures[signature] = {"times": 1, "kind": kind, "text": text, "request": request, "answers": answers, "history": list(history),
                                    "resolved": [show_request(request, side) for side in self.sides], "cond": request.cond}

    def reproduce(self, failure):
        """Drops each earlier request that is not needed for the same kind of failure on a fresh table."""
        steps, last = failure["history"][:-1], failure["request"]

        def still(subset):
            self.fresh_table()
            for step in subset:
                self.send_both(step)
            answers = self.send_both(last)
            if failure["kind"] == "reference":
                result = answers[0].brief() == failure["answers"][0].brief() and self.judge(last, answers)
                found = any(kind == "reference" for kind, _ in result or [])
            else:
                found = any(d_text == failure["text"] for d_kind, d_text in self.judge(last, answers) if d_kind == "azurite")
            self.drop_tables()
            return found

        writes = [step for step in steps if step.writes]
        if still([]):
            return []
        if not still(writes):
            return None
        for step in list(writes):
            rest = [other for other in writes if other is not step]
            if len(writes) > 1 and still(rest):
                writes = rest
        return writes


def applied_by(answer):
    if answer.status == 202 and b"HTTP/1.1 " in answer.body:
        return not re.search(rb"^HTTP/1\.1 [45]", answer.body, re.M)
    return 200 <= answer.status < 300


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
    text = answer.body.decode("utf-8", "replace")
    return "    " + answer.brief() + " " + json.dumps(answer.headers) + "\n    " + (text[:1200] + (" ..." if len(text) > 1200 else ""))


def start_azurite(command):
    """Starts Azurite and gives the process and its endpoint. It cannot say which port it chose, so we choose."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([*command, "--tablePort", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
    ours = Side("tavola", os.environ["TAVOLA_ENDPOINT"], account, key)
    theirs = Side("azurite", f"{endpoint}/{account}", account, key)
    known = Known(os.path.join(os.path.dirname(os.path.abspath(__file__)), "known-differences.toml"))
    run = Run([ours, theirs], known, seed)
    properties = Request("properties", "keep", "GET", "/", "restype=service&comp=properties", headers=[("Accept", "application/xml")])
    kept = ours.send(properties)
    started = time.monotonic()
    try:
        rng = random.Random(seed)
        begin = Scenario(rng).properties_("none")  # New accounts differ; from here on both have the same rules.
        run.send_both(begin)
        begin.effect()
        while sum(run.counts.values()) < count:
            run.scenario(random.Random(rng.randrange(1 << 62)))
        listed = sum(run.listed.values())
        stale = known.stale()
        compared = sum(run.counts.values())
        seconds = time.monotonic() - started
        report(run, known)
    finally:
        ours.send(Request("properties", "restore", "PUT", "/", "restype=service&comp=properties", headers=[("Content-Type", "application/xml")], body=kept.body))
        result("the service properties are as they were before", ours.send(properties).body == kept.body, "")
        azurite.send_signal(signal.SIGTERM)
        azurite.wait(10)
    full = (seed, count) == (DEFAULT_SEED, DEFAULT_COUNT)
    for entry in stale:
        print(f"stale: no difference matched {entry.get('operation', '*')} | {entry.get('condition', '*')} | {entry.get('field', '*')} ({entry['reason']})")
    result("the list of known differences has no stale entry", not (stale and full), f"{len(stale)} entries never matched" if stale else "")
    print(f"{compared} requests compared in {seconds:.1f} s ({ours.sent} sent to tavola, {theirs.sent} to azurite), {listed} listed differences, "
          f"{len(run.failures)} unlisted or wrong, seed {seed}")


def report(run, known):
    """Prints each failure with a reproduction, and writes one case for each operation."""
    for number, (signature, failure) in enumerate(run.failures.items()):
        print(f"\n=== {failure['kind']} | {signature[0]} | {failure['cond']} | seen {failure['times']} times\n  {failure['text']}")
        if number >= REPRODUCED_MAX:
            continue
        steps = run.reproduce(failure)
        if steps is None:
            print("  (needs more than the writes of its scenario; run again with the same seed)")
        elif not steps:
            print("  on a fresh table:")
        for step in steps or []:
            print("  first:\n" + show_request(step, run.sides[0]))
        print(failure["resolved"][0])
        for side, answer in zip(run.sides, failure["answers"]):
            print(f"  {side.name}:\n{show_answer(answer)}")
    for op in sorted(run.counts):
        mine = [f for (o, _, _), f in run.failures.items() if o == op]
        for kind, name in (("reference", "answers as the wire reference says"), ("azurite", "differs from Azurite only as listed")):
            wrong = [f for f in mine if f["kind"] == kind]
            result(f"{op}: {name}", not wrong, "; ".join(f"{f['cond']}: {f['text']}" for f in wrong)[:2000])


def result(case, ok, detail):
    with open(os.environ["TAVOLA_RESULTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"case": case, "ok": ok, "detail": detail}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
