"""Finds what differs between two answers, up to what may differ."""

import json
import re
import xml.etree.ElementTree as ElementTree

from differential.known import Difference

#: Headers that clients read. Others (Server, Date, Connection, request ids) say nothing about the protocol.
HEADERS = ["etag", "location", "dataserviceid", "preference-applied", "content-type", "x-ms-version", "x-ms-client-request-id", "cache-control",
           "x-content-type-options", "www-authenticate", "vary", "access-control-allow-origin", "access-control-allow-methods", "access-control-allow-headers",
           "access-control-max-age", "access-control-expose-headers", "access-control-allow-credentials"]


def differences(request, sides, answers):
    """Everything that differs between the answers of our server and of Azurite to one request."""
    ours, theirs = answers
    make = lambda field, a, b: Difference(request.op, request.cond, field, a, b)
    if ours.brief() != theirs.brief():
        return [make("answer", ours.brief(), theirs.brief())]
    out = []
    for name in HEADERS:
        values = [normal_header(name, answer, side) for answer, side in zip(answers, sides)]
        if values[0] != values[1]:
            out.append(make("header " + name, *values))
    pages = [[normal_body(page, side, request) for page in (answer.pages or [answer])] for answer, side in zip(answers, sides)]
    if len(pages[0]) != len(pages[1]):
        out.append(make("pages", str(len(pages[0])), str(len(pages[1]))))
    bodies = [join_pages(side_pages) for side_pages in pages]
    out += [make("body " + path, a, b) for path, a, b in body_differences("", *bodies)]
    return list(dict.fromkeys(out))


def normal_header(name, answer, side):
    value = answer.header(name)
    if value is None:
        return "absent"
    if name == "etag":
        return "an etag" if value.startswith("W/\"datetime'") else value
    if name == "content-type":
        return re.sub(r"boundary=(\w+?)_[-\w]+", r"boundary=\1", value.replace(" ", "").lower())
    if name == "access-control-expose-headers":
        return ",".join(sorted(part.strip().lower() for part in value.split(",")))
    return value.replace(side.endpoint, "BASE").replace(side.table, "TABLE")


def normal_body(answer, side, request):
    """The body as nested dicts and lists, with what differs by nature replaced."""
    text = answer.body.decode("utf-8-sig", "replace")
    kind = (answer.header("content-type") or "").split(";")[0].strip()
    if kind == "multipart/mixed":
        return {"parts": [normal_part(part, side) for part in re.split(r"^(?=HTTP/1\.1 )", text, flags=re.M)[1:]]}
    if answer.status >= 400:
        return {}
    if text[:1] in "{[" and text:
        return normal_json(json.loads(text), side)
    if text.lstrip()[:1] == "<":
        return normal_xml(ElementTree.fromstring(text.encode()))
    return {"text": text} if text else {}


def normal_part(text, side):
    head, _, body = text.replace("\r\n", "\n").partition("\n\n")
    lines = head.split("\n")
    headers = dict((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:]))
    part = {"status": lines[0].split()[1]}
    for name in ("location", "dataserviceid", "preference-applied", "etag", "content-id"):
        if name in headers:
            part[name] = "an etag" if name == "etag" else headers[name].replace(side.endpoint, "BASE").replace(side.table, "TABLE")
    found = re.search(r"^\{.*\}", body, re.M | re.S)
    if found:
        try:
            document = json.loads(found.group(0))
        except ValueError:
            return {**part, "body": "not JSON"}
        if "odata.error" in document:
            part["code"] = document["odata.error"]["code"]
            index = re.match(r"(\d+):", document["odata.error"]["message"]["value"])
            part["index"] = index.group(1) if index else "none"
        else:
            part["body"] = normal_json(document, side)
    return part


def normal_json(value, side, name=""):
    if isinstance(value, dict):
        return {key: normal_json(item, side, key) for key, item in value.items()}
    if isinstance(value, list):
        return [normal_json(item, side) for item in value]
    if name == "odata.etag":
        return "an etag"
    if name == "Timestamp" and isinstance(value, str):
        return "a time"
    if isinstance(value, str) and name.startswith("odata.") or name == "TableName":
        return value.replace(side.endpoint, "BASE").replace(side.table, "TABLE")
    return value


def normal_xml(element):
    children = sorted((normal_xml(child) for child in element), key=lambda child: (child["tag"], json.dumps(child)))
    return {"tag": re.sub(r"\{.*\}", "", element.tag), "text": re.sub(r"^\w{3}, \d\d .* GMT$", "a date", (element.text or "").strip()), "children": children}


def join_pages(pages):
    first = pages[0]
    if isinstance(first, dict) and "value" in first:
        return {**first, "value": [row for page in pages for row in (page.get("value", []) if isinstance(page, dict) else [])]}
    return first


def body_differences(path, left, right):
    """Paths at which two normalised bodies differ; positions in lists and numbers of properties are left out of them."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(set(left) | set(right)):
            name = re.sub(r"^([A-Z])[12](?=$|@)", r"\1", key)
            here = f"{path}.{name}" if path else name
            if key not in left:
                yield here, "absent", brief(right[key])
            elif key not in right:
                yield here, brief(left[key]), "absent"
            else:
                yield from body_differences(here, left[key], right[key])
    elif isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            yield path, f"{len(left)} items", f"{len(right)} items"
            return
        for a, b in zip(left, right):
            yield from body_differences(path + "[]", a, b)
    elif type(left) is not type(right) or left != right:
        yield path, brief(left), brief(right)


def brief(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 400 else text[:400] + "..."
