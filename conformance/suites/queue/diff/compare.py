"""Finds what differs between two answers, up to what may differ."""

import re
import xml.etree.ElementTree as ElementTree

from differential.known import Difference

#: Headers that clients read. Others (Server, Date, Connection, request ids) say nothing about the protocol.
HEADERS = ["content-type", "x-ms-version", "x-ms-client-request-id", "x-ms-error-code", "cache-control", "x-ms-approximate-messages-count",
           "x-ms-popreceipt", "x-ms-time-next-visible", "vary", "www-authenticate", "access-control-allow-origin", "access-control-allow-methods",
           "access-control-allow-headers", "access-control-max-age", "access-control-expose-headers", "access-control-allow-credentials"]
DATE = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT")


def differences(request, sides, answers):
    """Everything that differs between the answers of our server and of Azurite to one request."""
    make = lambda field, ours, theirs: Difference(request.op, request.cond, field, ours, theirs)
    ours, theirs = answers
    if ours.brief() != theirs.brief():
        return [make("answer", ours.brief(), theirs.brief())]
    out = []
    names = HEADERS + sorted({name for answer in answers for name in answer.headers if name.startswith("x-ms-meta-")})
    for name in names:
        values = [normal_header(name, answer) for answer in answers]
        if values[0] != values[1]:
            out.append(make("header " + re.sub(r"-meta-.*", "-meta", name), *values))
    marks = ["a mark" if answer.body.startswith(b"\xef\xbb\xbf") else "no mark" for answer in answers]
    if any(answer.body for answer in answers) and marks[0] != marks[1]:
        out.append(make("body begins with", *marks))
    bodies = [normal_body(answer, side) for answer, side in zip(answers, sides)]
    out += [make("body " + path, one, other) for path, one, other in body_differences("", *bodies)]
    return list(dict.fromkeys(out))


def normal_header(name, answer):
    value = answer.headers.get(name)
    if value is None:
        return "absent"
    if name == "x-ms-popreceipt":
        return "a receipt"
    if name == "access-control-expose-headers":
        return ",".join(sorted(part.strip().lower() for part in value.split(",")))
    return "a date" if DATE.fullmatch(value) else value


def normal_body(answer, side):
    """[tag, text, children] with what differs by nature replaced; None where there is no body."""
    text = answer.text()
    if not text:
        return None
    try:
        return normal_xml(ElementTree.fromstring(text.encode()), side, answer.status >= 400)
    except ElementTree.ParseError:
        return ["not XML", text[:200], []]


def normal_xml(element, side, is_error):
    text, tag = element.text or "", element.tag
    if tag == "MessageId":
        text = f"message {side.number(text)}"
    elif tag == "PopReceipt":
        text = "a receipt"
    elif tag == "Message":
        text = re.sub(r"\s*RequestId:.*", "", text, flags=re.S)
    elif tag == "NextMarker":
        text = "a marker" if text else ""
    elif DATE.fullmatch(text):
        text = "a date"
    attributes = [f"{name}={value.replace(side.endpoint, 'BASE')}" for name, value in element.attrib.items()]
    # An indented document has blanks between its elements; those in a text are content.
    children = [normal_xml(child, side, is_error) for child in element]
    return [tag, " ".join(attributes) + ("" if children and not text.strip() else text), children]


def body_differences(path, left, right):
    """Places at which two bodies differ."""
    if left is None or right is None:
        if left is not right:
            yield path or "$", "absent" if left is None else "present", "absent" if right is None else "present"
        return
    here = f"{path}/{left[0]}"
    if left[0] != right[0]:
        yield path or "$", left[0], right[0]
        return
    if left[1] != right[1]:
        yield here, left[1][:200], right[1][:200]
    tags = [[child[0] for child in node[2]] for node in (left, right)]
    if tags[0] != tags[1]:
        yield here + " has", ",".join(tags[0]), ",".join(tags[1])
        return
    for one, other in zip(left[2], right[2]):
        yield from body_differences(here, one, other)
