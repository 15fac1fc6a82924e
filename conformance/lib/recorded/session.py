"""One file against one account: sends each request as of now, compares the answer, and learns what it gave out."""

import datetime
import http.client
import json
import re
import urllib.parse
from email.utils import formatdate, parsedate_to_datetime

from . import signing
from .compare import Difference
from .learned import GUID, Learned
from .recordings import lower

#: Names that the recordings put in place of the account's.
FAKE_ACCOUNTS = {"fakename", "fakeendpoint", "faketableaccount", "storagename", "fake_table_account"}
PATH_SAFE = "%/:@!$&'()*+,;=~-._"
QUERY_SAFE = PATH_SAFE + "?"
#: Written anew with every request.
REPLACED_HEADERS = {"authorization", "host", "content-length", "date", "x-ms-date"}
#: Sent as they were.
KEPT_HEADERS = {"user-agent", "accept", "x-ms-client-request-id"}
ANSWER_SECONDS_MAX = 60


class Session:
    def __init__(self, service, address, account, key):
        self.service, self.address, self.account, self.key = service, address, account, key
        self.learned, self.names, self.connection = Learned(), set(FAKE_ACCOUNTS), None
        #: What the service remembers of the test, such as the tables that it made.
        self.memory = service.memory()

    def close(self):
        if self.connection:
            self.connection.close()

    def exchange(self, entry, headers_cut):
        """Replays one entry; returns the operation, the request as text, and the differences."""
        request = self.request(entry)
        status, headers, data = self.send(request)
        differences = list(self.compare(entry, request, headers_cut, status, headers, data))
        for difference in differences:
            self.service.settle(self, difference)
        self.service.remember(self, request, status)
        return request.operation, f"{request.method} {request.target()}", differences

    def request(self, entry):
        """The request as it is sent now: earlier answers, addresses, times and signatures replaced."""
        parts = urllib.parse.urlsplit(entry.uri.replace("#", "%23"))
        name, secondary = re.match(r"^(.*?)(-secondary)?\.", parts.netloc).groups()
        self.names.add(name)
        request = Request(entry.method, urllib.parse.quote(parts.path or "/", safe=PATH_SAFE),
                          urllib.parse.quote(parts.query, safe=QUERY_SAFE), dict(entry.headers), entry.body, bool(secondary))
        request.scope = self.service.scope(request)
        request.operation = self.service.operation(request, lower(entry.headers))
        request.query = self.learned.apply(request.query, request.scope)
        request.path = self.service.path(self, request)
        recorded_date = lower(entry.headers).get("x-ms-date")
        for name, value in request.headers.items():
            if name.lower() not in KEPT_HEADERS:
                request.headers[name] = self.header(name.lower(), value, request.scope, recorded_date)
        request.body = self.service.body(self, entry)
        name_boundary(request)
        is_refused = entry.status == 403 and "AuthenticationFailed" in json.dumps(entry.answer)
        self.authorize(request, signing.WRONG_KEY if is_refused else self.key)
        return request

    def header(self, name, value, scope, recorded_date):
        text = self.learned.apply(self.to_here(value), scope)
        if name.endswith("modified-since") and text == value and recorded_date:
            now = datetime.datetime.now(datetime.timezone.utc)
            moved = parsedate_to_datetime(value) - parsedate_to_datetime(recorded_date) + now
            return formatdate(moved.timestamp(), usegmt=True)
        if name == "x-ms-copy-source" and "sig=" in text:
            source = urllib.parse.urlsplit(text)
            query = signing.token_now(source.query, self.account, self.key, source.path, self.service.token)
            return source._replace(query=query).geturl()
        return text

    def authorize(self, request, key):
        """Dates of now and a signature: in the query if one was there, else in the headers."""
        now = formatdate(usegmt=True)
        sent = {name: value for name, value in request.headers.items() if name.lower() not in REPLACED_HEADERS}
        sent["x-ms-date"] = now
        if "Date" in request.headers:
            sent["Date"] = now
        if request.body or request.method in ("PUT", "POST", "PATCH", "MERGE") or "Content-Length" in request.headers:
            sent["Content-Length"] = str(len(request.body))
        request.headers = sent
        if "sig=" in request.query:
            request.query = signing.token_now(request.query, self.account, key, request.path, self.service.token)
            return
        text = self.service.shared_key(request.method, request.path, request.query, lower(sent), self.account)
        sent["Authorization"] = f"SharedKey {self.account}:{signing.sign(key, text)}"

    def send(self, request):
        """Status, headers by names in lower case, and body of the answer."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.address, timeout=ANSWER_SECONDS_MAX)
        self.connection.putrequest(request.method, request.target(), skip_host=True, skip_accept_encoding=True)
        self.connection.putheader("Host", self.host(request.is_secondary))
        for name, value in request.headers.items():
            self.connection.putheader(name, value.encode())
        self.connection.endheaders(request.body or None)
        answer = self.connection.getresponse()
        data, headers = answer.read(), {}
        for name, value in answer.getheaders():
            headers.setdefault(name.lower(), []).append(value)
        return answer.status, lower(headers), data

    def host(self, is_secondary=False):
        """The recordings address accounts by host names, and so does the replay."""
        return f"{self.account}{'-secondary' if is_secondary else ''}.{self.service.name}.core.windows.net"

    def to_here(self, text):
        """Recorded text with the address and the account of the recorded service replaced."""
        pattern = rf"https?://[a-z0-9]+?(-secondary)?\.{self.service.name}\.core\.windows\.net(:443)?"
        text = re.sub(pattern, lambda found: f"http://{self.host(bool(found[1]))}", text)
        for name in self.names:
            text = re.sub(rf"\b{name}\b", self.account, text)
        return text

    def compare(self, entry, request, headers_cut, status, headers, data):
        if status != entry.status:
            yield Difference("status", "", f"{entry.status} {brief(entry.answer)}", f"{status} {brief(data.decode('utf-8', 'replace'))}")
            return
        for name in sorted(entry.answer_headers.keys() | headers.keys()):
            if name not in self.service.ignored_headers:
                yield from self.compare_header(name, entry, headers, headers_cut, request.scope)
        if entry.method != "HEAD":
            yield from self.service.body_differences(self, entry, request, headers, data)

    def compare_header(self, name, entry, headers, headers_cut, scope):
        live, here = entry.answer_headers.get(name), headers.get(name)
        if live is None:
            if name not in headers_cut:
                yield Difference("header extra", name, None, here)
        elif here is None:
            yield Difference("header missing", name, live, None)
        elif name in self.service.header_forms:
            if not re.fullmatch(self.service.header_forms[name], here):
                yield Difference("header form", name, live, here)
            elif not self.service.learn_header(self, name, live, here, scope):
                yield Difference("header value", f"{name} (not the one given out before)", live, here)
        elif plain(name, self.learned.apply(self.to_here(live))) != plain(name, here):
            yield Difference("header value", name, self.to_here(live), here)


class Request:
    """What is sent."""

    def __init__(self, method, path, query, headers, body, is_secondary):
        self.method, self.path, self.query, self.headers, self.body = method, path, query, headers, body
        self.is_secondary, self.scope, self.operation = is_secondary, None, ""

    def target(self):
        return self.path + (f"?{self.query}" if self.query else "")


def name_boundary(request):
    """Some recordings blanked the boundary in the header only."""
    if not request.body.startswith(b"--"):
        return
    boundary = request.body[2:request.body.index(b"\r\n")].decode()
    for name, value in request.headers.items():
        if name.lower() == "content-type" and value.startswith("multipart/"):
            request.headers[name] = re.sub(r'boundary="?[^";]+"?', f"boundary={boundary}", value)


def plain(name, value):
    """A header's value without the spaces and the boundaries of a content type."""
    return re.sub(r";\s+", ";", re.sub(GUID, "<guid>", value)) if name == "content-type" else value


def brief(body):
    """The beginning of an answer's body, without what is new every time."""
    text = body if isinstance(body, str) else "".join(body) if isinstance(body, list) else json.dumps(body)
    return re.sub(r"(\\n|\n)RequestId:.*?Time:[0-9T:.Z-]*", "", text)[:300]
