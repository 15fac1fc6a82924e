"""The differential run of tables; see conformance/lib/differential.

One more variable: DIFF_REPRODUCED, how many failures to reproduce on a fresh table.
"""

import os
import re

import differential.run
import model
from client import Request, Side, message
from compare import differences
from differential.run import show_request
from generate import JSON, Scenario

#: Differences with one signature are reported once; so many signatures are reproduced before the rest is only counted.
REPRODUCED_MAX = int(os.environ.get("DIFF_REPRODUCED") or 60)


class TableRun(differential.run.Run):
    service, side, request, scenario = "table", Side, Request, Scenario
    differences = staticmethod(differences)
    properties_headers = [("Accept", "application/xml"), ("Content-Type", "application/xml")]
    default_count = 6000

    def begin(self):
        name = self.fresh_name()
        for side in self.sides:
            side.begin(name)
        self.send_both(Request("tables", "setup", "POST", "/Tables", headers=[("Content-Type", JSON)], body='{"TableName":"«T»"}'))

    def end(self):
        for suffix in ("", "x", "y", "Z"):
            self.send_both(Request("tables", "cleanup", "DELETE", f"/Tables('«T»{suffix}')"))

    def is_applied(self, answer):
        if answer.status == 202 and b"HTTP/1.1 " in answer.body:
            return not re.search(rb"^HTTP/1\.1 [45]", answer.body, re.M)
        return super().is_applied(answer)

    def has_diverged(self, scenario, request, answers):
        return scenario.spoiled

    def mistakes(self, request, answer):
        status, code = request.expect or (None, None)
        if (status and answer.status != status) or (code is not None and answer.code() != code):
            yield f"answer is {answer.brief()!r}, wanted {status} {code or ''}: {message(answer)}"
        elif request.check and (mistake := self.checked(request, answer)):
            yield mistake
        if mistake := model.check_error(answer):
            yield mistake

    def checked(self, request, answer):
        try:
            return request.check(answer, self.sides[0])
        except (ValueError, KeyError, TypeError) as error:
            return f"unreadable answer ({error!r})"

    def show(self, number, failure):
        """Prints what failed, with a reproduction."""
        if number >= REPRODUCED_MAX:
            return
        steps = self.reproduce(failure)
        if steps is None:
            print("  (needs more than the writes of its scenario; run again with the same seed)")
        elif not steps:
            print("  on a fresh table:")
        for step in steps or []:
            print("  first:\n" + show_request(step, self.sides[0]))
        super().show(number, failure)

    def reproduce(self, failure):
        """Drops each earlier request that is not needed for the same kind of failure on a fresh table."""
        steps, last = failure["history"][:-1], failure["request"]

        def still(subset):
            self.begin()
            for step in subset:
                self.send_both(step)
            answers = self.send_both(last)
            if failure["kind"] == "reference":
                found = answers[0].brief() == failure["answers"][0].brief() and any(kind == "reference" for kind, _ in self.judge(last, answers))
            else:
                found = any(text == failure["text"] for kind, text in self.judge(last, answers) if kind == "azurite")
            self.end()
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


if __name__ == "__main__":
    differential.run.main(TableRun)
