"""Finds where two bodies differ: JSON by value, order and type, multipart part by part."""

import re
from dataclasses import dataclass


@dataclass
class Difference:
    """One difference between the answer of the live service and ours."""

    #: What differs: "status", "header missing", "json value".
    aspect: str
    #: The header, or the place in the body.
    where: str
    live: object
    here: object
    operation: str = ""
    file: str = ""
    #: The place of the exchange in its file, and its request.
    index: int = 0
    request: str = ""

    def __str__(self):
        return (f"[{self.index}] {self.operation}: {self.aspect} {self.where}\n  {self.request[:300]}\n"
                f"  live: {str(self.live)[:500]}\n  here: {str(self.here)[:500]}")


def without_ids(message):
    """An error's text without request id and time."""
    return re.sub(r"\r?\nRequestId:[^\n]*\r?\nTime:[^\n<]*", "", message)


def json_differences(live, here, where, are_same):
    """Everything in which two JSON values differ; `are_same(where, live, here)` decides on values that are not equal."""
    if type(live) is not type(here):
        yield Difference("json type", where, live, here)
    elif isinstance(live, dict):
        yield from _object_differences(live, here, where)
        for name in live:
            if name in here:
                yield from json_differences(live[name], here[name], f"{where}.{name}", are_same)
    elif isinstance(live, list):
        if len(live) != len(here):
            yield Difference("json array length", where, len(live), len(here))
            return
        for place, (one, other) in enumerate(zip(live, here)):
            yield from json_differences(one, other, f"{where}[{place}]", are_same)
    elif live != here and not are_same(where, live, here):
        yield Difference("json value", where, live, here)


def _object_differences(live, here, where):
    """What two objects differ in besides their values."""
    for name in live.keys() - here.keys():
        yield Difference("json member missing", f"{where}.{name}", live[name], None)
    for name in here.keys() - live.keys():
        yield Difference("json member extra", f"{where}.{name}", None, here[name])
    if live.keys() == here.keys() and list(live) != list(here):
        yield Difference("property order", where, list(live), list(here))


def multipart(data, boundary):
    """[(headers, text)] of a multipart body, and what is wrong with its frame."""
    text, mark = data.decode("utf-8", "replace"), "--" + boundary
    if not text.startswith(mark):
        return [], "does not start with its boundary"
    if mark + "--" not in text:
        return [], "no closing boundary"
    parts = []
    for piece in text.split(mark + "--")[0].split(mark + "\r\n")[1:]:
        head, _, rest = piece.partition("\r\n\r\n")
        parts.append((_fields(head.split("\r\n")), rest.removesuffix("\r\n")))
    return parts, ""


@dataclass
class Part:
    """The answer to one operation of a batch."""

    status: str
    headers: list
    body: str


def batch_answers(data, boundary):
    """The parts of a batch's answer, and the shape of its frame."""
    outer, wrong = multipart(data, boundary)
    shape, answers = [wrong], []
    for headers, rest in outer:
        inner = re.search(r"boundary=(\S+)", dict(headers).get("Content-Type", ""))
        shape.append("changeset" if inner else "single")
        for _, text in multipart(rest.encode(), inner[1])[0] if inner else [(headers, rest)]:
            head, _, body = text.partition("\r\n\r\n")
            status, *lines = head.split("\r\n")
            answers.append(Part(status, _fields(lines), body))
    return answers, shape


def batch_targets(data):
    """The addresses of the operations in the request of a batch."""
    return re.findall(r"^(?:GET|POST|PUT|PATCH|MERGE|DELETE) (\S.*?) HTTP/1.1\r?$", data.decode("utf-8", "replace"), re.M)


def _fields(lines):
    return [tuple(line.partition(": ")[::2]) for line in lines]
