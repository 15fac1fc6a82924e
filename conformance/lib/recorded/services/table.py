"""Tables: names and keys in the path, JSON, batches, and settings in XML."""

import base64
import json
import re
import urllib.parse
from dataclasses import dataclass, field
from email.utils import formatdate

from .. import signing
from ..compare import Difference, batch_answers, batch_targets, json_differences, without_ids
from ..learned import DATE, GUID, TABLE_ETAG, TIME
from .service import Service, mark_difference, recorded_text, section_differences, sections, xml_differences, xml_text

#: A time in an ETag or a Timestamp, which are two forms of one value.
MOMENT = re.compile(r"\d{4}-.*?Z")
CONTINUATION = r"1!\d+![A-Za-z0-9*_-]*"


@dataclass
class Memory:
    """What a test made: other tables and settings in an answer are those of the recorded account."""

    tables: set = field(default_factory=set)
    sections: set = field(default_factory=set)


class Table(Service):
    name = "table"
    shared_key, token = staticmethod(signing.shared_key_of_tables), staticmethod(signing.table_token)
    header_forms = {
        **Service.header_forms, "etag": TABLE_ETAG, "x-ms-continuation-nextpartitionkey": CONTINUATION,
        "x-ms-continuation-nextrowkey": CONTINUATION, "x-ms-continuation-nexttablename": CONTINUATION,
    }

    def memory(self):
        return Memory()

    def remember(self, session, request, status):
        if status >= 300:
            return
        if request.method == "POST" and request.path == "/Tables":
            session.memory.tables.add(json.loads(request.body)["TableName"].lower())
        if request.method == "PUT" and "comp=properties" in request.query:
            session.memory.sections |= sections(request.body.decode())

    def operation(self, request, headers):
        query, path = dict(signing.parameters(request.query)), request.path
        method = headers.get("x-http-method", request.method)
        return _operation(method, path, query, headers) + (" SAS" if "sig" in query else "")

    def scope(self, request):
        """Table and keys of the entity that a request is about."""
        found = entity_of(request.path)
        if found or not request.body.startswith(b"{"):
            return found
        try:
            value = json.loads(request.body)
        except ValueError:
            return None
        table = urllib.parse.unquote(request.path).strip("/").rstrip("()").lower()
        return table, value.get("PartitionKey"), value.get("RowKey")

    def body(self, session, entry):
        if entry.body.startswith(b"--"):
            return batch_now(session, entry.body.decode())
        if entry.body.startswith(b"<"):
            return super().body(session, entry)
        return session.learned.apply(entry.body.decode()).encode()

    def learn_header(self, session, name, live, here, scope):
        if name == "etag":
            return session.learned.same_or_new(moment(live), moment(here), scope)
        return super().learn_header(session, name, live, here, scope)

    def settle(self, session, difference):
        """A token that names another test's table, perhaps one still being deleted, says nothing about paging."""
        if difference.where == "x-ms-continuation-nexttablename" and difference.live:
            text = difference.live.split("!")[2].translate(str.maketrans("-_*", "=/+"))
            if base64.b64decode(text).decode().split("\1")[0].lower() not in session.memory.tables:
                difference.aspect = "foreign tables"

    def body_differences(self, session, entry, request, headers, data):
        live, kind = entry.answer, entry.answer_type()
        if live in (None, ""):
            if data:
                yield Difference("body present", "$", None, data[:300].decode("utf-8", "replace"))
        elif not data:
            yield Difference("body missing", "$", live, None)
        elif kind.startswith("multipart/"):
            yield from self.batch_differences(session, live, request, headers.get("content-type", ""), data)
        elif "xml" in kind:
            yield from self.xml_body_differences(session, recorded_text(live), data.decode("utf-8", "replace"))
        else:
            yield from self.json_body_differences(session, live, data, request.scope)

    def json_body_differences(self, session, live, data, scope, where="$"):
        try:
            here = json.loads(data)
        except ValueError:
            yield Difference("body is not JSON", where, live, data[:200].decode("utf-8", "replace"))
            return
        rows = live.get("value")
        if foreign := foreign_tables(session, rows):
            yield Difference("foreign tables", where, foreign, here)
            return

        def scope_of(place):
            number = re.search(r"\.value\[(\d+)\]", place)
            row = rows[int(number[1])] if number and isinstance(rows, list) else live
            if isinstance(row, dict) and {"PartitionKey", "RowKey"} <= row.keys():
                return (scope[0] if scope else ""), row["PartitionKey"], row["RowKey"]
            return scope

        are_same = lambda place, one, other: self.are_same(session, place, one, other, scope_of)
        for found in json_differences(live, here, where, are_same):
            if found.where.endswith(".message.value"):
                found.aspect, found.live, found.here = "error message", without_ids(found.live), without_ids(found.here)
            elif found.where.endswith("odata.error.code"):
                found.aspect = "error code"
            yield found

    def are_same(self, session, where, live, here, scope_of):
        """Whether two values are the same up to what is new on every answer, which is learned."""
        if not isinstance(live, str):
            return False
        for name, form in ((".Timestamp", TIME), (".odata.etag", TABLE_ETAG)):
            if where.endswith(name):
                are_formed = re.fullmatch(form, here) and re.fullmatch(form, live)
                return bool(are_formed) and session.learned.same_or_new(moment(live), moment(here), scope_of(where))
        if where.endswith(".message.value"):
            return session.to_here(without_ids(live)) == without_ids(here) and ("RequestId:" in live) == ("RequestId:" in here)
        return session.learned.apply(session.to_here(live)) == here

    def xml_body_differences(self, session, live, here):
        yield from mark_difference(live, here)
        live, here = xml_text(session.learned.apply(session.to_here(live))), xml_text(here)
        live, here = yield from section_differences(live, here, session.memory.sections)
        live, here = (re.sub(rf"<LastSyncTime>({DATE})?<", "<LastSyncTime><", text) for text in (live, here))
        yield from xml_differences(live, here)

    def batch_differences(self, session, live, request, content_type, data):
        boundary = re.search(r'^multipart/.*boundary="?([^";]+)', content_type)
        if not boundary:
            yield Difference("body is not multipart", "$", "multipart", data[:300].decode("utf-8", "replace"))
            return
        recorded = session.to_here(base64.b64decode(live).decode() if isinstance(live, str) else "".join(live))
        ours, our_shape = batch_answers(data, boundary[1])
        theirs, their_shape = batch_answers(recorded.encode(), recorded[2:recorded.index("\r\n")])
        if their_shape != our_shape:
            yield Difference("batch frame", "$", their_shape, our_shape)
        if len(theirs) != len(ours):
            yield Difference("batch parts", "$", [part.status for part in theirs], [part.status for part in ours])
            return
        targets = batch_targets(request.body)
        found = []
        for number, (one, other) in enumerate(zip(theirs, ours)):
            target = targets[number] if number < len(targets) else ""
            found += self.part_differences(session, one, other, f"part[{number}]", target)
        yield from found
        texts = [blank(recorded), blank(data.decode("utf-8", "replace"))]
        if texts[0] != texts[1] and not found:
            yield Difference("batch text", "$", *texts)

    def part_differences(self, session, live, here, where, target):
        """The answers to one operation of a batch."""
        headers = dict(here.headers)
        scope = entity_of(urllib.parse.urlsplit(dict(live.headers).get("Location", "")).path) or entity_of(urllib.parse.urlsplit(target).path)
        if live.status != here.status:
            yield Difference("batch part status", where, live.status, here.status)
        names = [[name for name, _ in part.headers] for part in (live, here)]
        if names[0] != names[1]:
            yield Difference("batch part headers", where, *names)
        for name, value in live.headers:
            if name not in headers:
                continue
            is_etag = name == "ETag" and re.fullmatch(TABLE_ETAG, headers[name])
            if not (session.learned.same_or_new(moment(value), moment(headers[name]), scope) if is_etag else value == headers[name]):
                yield Difference("batch part header", f"{where}.{name}", value, headers[name])
        if not live.body.strip().startswith("{"):
            if live.body != here.body:
                yield Difference("batch part body", where, live.body, here.body)
            return
        for found in self.json_body_differences(session, json.loads(live.body), here.body.encode(), scope, where):
            if found.aspect == "error message":
                found.aspect = "batch index added" if found.here == f"0:{found.live}" else "batch message"
            yield found


def _operation(method, path, query, headers):
    if query.get("comp") == "acl":
        return f"{method} ACL"
    if query.get("comp") in ("properties", "stats"):
        return f"{method} service {query['comp']}"
    if path == "/$batch":
        return "batch"
    if path.startswith("/Tables"):
        get = "Get Table" if "('" in path else "Query Tables"
        return {"GET": get, "POST": "Create Table", "DELETE": "Delete Table"}.get(method, method)
    if "PartitionKey=" in path:
        upsert = "" if "if-match" in headers else "Insert Or "
        merge = upsert + "Merge"
        return {"GET": "Get Entity", "PUT": upsert + "Replace", "PATCH": merge, "MERGE": merge, "DELETE": "Delete Entity"}.get(method, method)
    return {"GET": "Query Entities", "POST": "Insert Entity"}.get(method, f"{method} table")


def entity_of(path):
    """Table and keys that a path names, decoded; None for other paths."""
    found = re.match(r".*?/([^/(]+)\(PartitionKey='(.*)',RowKey='(.*)'\)$", urllib.parse.unquote(path))
    return (found[1].lower(), found[2].replace("''", "'"), found[3].replace("''", "'")) if found else None


def moment(value):
    """The time in an ETag or a Timestamp."""
    found = MOMENT.search(urllib.parse.unquote(value))
    return found[0] if found else value


def foreign_tables(session, rows):
    """The names in a list of tables, if the test did not make all of them."""
    is_list = isinstance(rows, list) and rows and all(isinstance(row, dict) and row.keys() == {"TableName"} for row in rows)
    names = [row["TableName"] for row in rows] if is_list else []
    return names if any(name.lower() not in session.memory.tables for name in names) else None


def batch_now(session, text):
    """The body of a batch, with addresses, dates and ETags of now."""
    lines, scope = [], None
    for line in text.split("\r\n"):
        if operation := re.match(r"^(?:GET|POST|PUT|PATCH|MERGE|DELETE) (.*) HTTP/1.1$", line):
            line = session.to_here(line)
            scope = entity_of(urllib.parse.urlsplit(session.to_here(operation[1])).path)
        elif line.startswith("If-Match: "):
            line = session.learned.apply(line, scope)
        elif date := re.match(r"(?:x-ms-date|Date): ", line):
            line = date[0] + formatdate(usegmt=True)
        elif line.startswith("{"):
            line = session.learned.apply(line)
            set_length(lines, len(line.encode()))
        lines.append(line)
    return "\r\n".join(lines).encode()


def set_length(lines, length):
    """Writes the length of a body into the head before it, if that names one."""
    head = len(lines) - 1
    while head >= 0 and not lines[head].startswith(("--", "{")):
        if lines[head].startswith("Content-Length: "):
            lines[head] = f"Content-Length: {length}"
        head -= 1


def blank(text):
    """The text of a batch's answer without bodies and what is new every time: order, line ends and spaces remain."""
    text = re.sub(r"\{.*\}", "{}", text)
    return re.sub(GUID, "<guid>", re.sub(r"\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A[\d.]+Z", "<time>", text))
