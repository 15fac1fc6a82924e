"""Turns the events of `go test -json` into cases: one for each test that has no tests below it."""

import collections
import json
import os
import sys

outcome, output = {}, collections.defaultdict(str)
with open(sys.argv[1], encoding="utf-8") as events:
    for line in events:
        event = json.loads(line)
        name = event.get("Test")
        if event["Action"] == "output":
            output[name] += event["Output"]
        elif event["Action"] in ("pass", "fail", "skip") and name:
            outcome[name] = event["Action"]
leaves = [name for name in outcome if not any(other.startswith(name + "/") for other in outcome)]
with open(os.environ["TAVOLA_RESULTS"], "a", encoding="utf-8") as results:
    if not leaves:
        detail = (output[None] + open(sys.argv[2], encoding="utf-8").read())[-1500:]
        results.write(json.dumps({"case": "dapr: the conformance tests run", "ok": False, "detail": detail}) + "\n")
    for name in leaves:
        if outcome[name] == "skip":
            continue
        ok = outcome[name] == "pass"
        case = "dapr: " + name.partition("/")[2].replace("_", " ")
        results.write(json.dumps({"case": case, "ok": ok, "detail": "" if ok else output[name][-1500:]}) + "\n")
        print("ok" if ok else "FAILED", "", case)
