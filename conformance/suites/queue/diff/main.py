"""The differential run of queues; see conformance/lib/differential."""

import html
import re

import differential.run
from client import MESSAGE, Request, Side
from compare import differences
from generate import Scenario


class QueueRun(differential.run.Run):
    service, side, request, scenario = "queue", Side, Request, Scenario
    differences = staticmethod(differences)

    def begin(self):
        name = self.fresh_name()
        for side in self.sides:
            side.begin(name)
        self.send_both(Request("create", "setup", "PUT", "/«Q»"))

    def end(self):
        self.send_both(Request("delete", "cleanup", "DELETE", "/«Q»"))

    def has_diverged(self, scenario, request, answers):
        if not request.gets or not self.is_applied(answers[0]):
            return False
        numbers = [[side.number(found) for found in re.findall(r"<MessageId>(.*?)<", answer.text())] for side, answer in zip(self.sides, answers)]
        return numbers[0] != numbers[1]

    def mistakes(self, request, answer):
        if request.expect and (answer.status, answer.code()) != request.expect:
            yield f"answer is {answer.brief()!r}, wanted {request.expect}"
        elif request.messages is not None and (mistake := self.wrong_messages(request, answer)):
            yield mistake
        if mistake := wrong_error(answer):
            yield mistake

    def wrong_messages(self, request, answer):
        """How the messages of an answer differ from those of the model."""
        found = []
        for message in MESSAGE.findall(answer.text()):
            fields = dict(re.findall(r"<(\w+)>([^<]*)<", message))
            found.append((self.sides[0].number(fields["MessageId"]), html.unescape(fields.get("MessageText", "")), int(fields["DequeueCount"])))
        brief = lambda messages: [(number, text[:20], len(text), count) for number, text, count in messages]
        return "" if found == request.messages else f"messages are {brief(found)}, wanted {brief(request.messages)}"


def wrong_error(answer):
    """What is wrong with the form of an error. A HEAD has no body for its code to be in."""
    if answer.status < 400 or not answer.body:
        return ""
    if not re.search(r"^<\?xml version=\"1.0\" encoding=\"utf-8\"\?><Error><Code>\w+</Code><Message>[^<]+\nRequestId:[-0-9a-f]{36}\nTime:[-0-9T:.]+Z</Message>", answer.text()):
        return f"the error is not formed as it should be: {answer.text()[:200]}"
    if answer.headers.get("x-ms-error-code") != answer.code():
        return f"x-ms-error-code is {answer.headers.get('x-ms-error-code')}, the code {answer.code()}"
    return ""


if __name__ == "__main__":
    differential.run.main(QueueRun)
