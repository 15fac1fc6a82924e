"""Speaks to one server: signs, sends, and gives the answer.

A request is written once, with placeholders, and resolved for each side: names, and what a server gives out, differ between
the two while the request stays the same.
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import re
import urllib.parse
from dataclasses import dataclass, field

TIMEOUT_SECONDS = 30
#: How far the date of a signature is off, in seconds, by what is wrong with it.
DATES = {"old": -16 * 60, "future": 16 * 60, "recent": -14 * 60}
WRONG_SIGNATURE = base64.b64encode(b"\0" * 32).decode()


@dataclass
class Request:
    """One request, as it is generated: the same for both servers."""

    op: str  #: The operation; cases of the suite are grouped by it.
    cond: str  #: What is special about it. Together with `op` this is the signature of a difference.
    verb: str
    path: str  #: Below the account, percent-encoded, with placeholders.
    query: str = ""  #: Encoded, without the question mark.
    headers: list = field(default_factory=list)
    body: object = None  #: Text with placeholders, or bytes, or None.
    auth: str = "key"
    sas: dict = None  #: Fields of a SAS, signed for each side when `auth` is "sas".
    expect: object = None  #: (status, code) that the wire reference demands, where it does.
    writes: bool = False  #: Whether a success changes what later requests see.
    effect: object = None  #: Called when our server did it, to keep the model.


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes
    pages: list = None  #: The answers to all pages when continuation was followed.

    def header(self, name):
        return self.headers.get(name.lower())

    def text(self):
        return self.body.decode("utf-8-sig", "replace")

    def code(self):
        if self.status < 400:
            return ""
        # With a mark before it JSON is none.
        text = self.body.decode("utf-8", "replace")
        try:
            return json.loads(text)["odata.error"]["code"]
        except (ValueError, KeyError, TypeError):
            found = re.search(r"<(?:\w+:)?[cC]ode>([^<]*)<", text)
            return found[1] if found else (self.header("x-ms-error-code") or "")

    def brief(self):
        return f"{self.status} {self.code()}".strip()


class Side:
    """One of the two servers. A service says how it resolves placeholders, and what of a request it signs."""

    def __init__(self, name, endpoint, account, key):
        self.name, self.endpoint, self.account, self.key = name, endpoint.rstrip("/"), account, key
        parts = urllib.parse.urlsplit(self.endpoint)
        self.host, self.root = parts.netloc, parts.path
        self.connection, self.sent = None, 0
        self.begin("")

    def begin(self, name):
        """A fresh table, queue or the like, of which nothing is known yet."""
        raise NotImplementedError

    def resolve(self, text):
        """Puts what this side has in the place of placeholders."""
        raise NotImplementedError

    def string_to_sign(self, scheme, verb, path, query, headers, date):
        """What SharedKey ("key") or SharedKeyLite ("lite") signs. Of `headers` the names are in lower case."""
        raise NotImplementedError

    def sas_to_sign(self, fields):
        """What the SAS of a table, a queue or the like signs; takes fields out that the token does not have."""
        raise NotImplementedError

    def deliver(self, request, path, query, headers, body):
        """Signs and sends, a second time if the connection broke."""
        headers = headers + self.authorize(request, path, query, headers)
        if request.auth == "sas":
            query = "&".join(part for part in (query, self.sign_sas(request.sas)) if part)
        target = path + ("?" + query if query else "")
        for attempt in (1, 2):
            try:
                return self.exchange(request.verb, target, headers, body)
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt == 2:
                    return Answer(0, {}, b"connection broke")

    def exchange(self, verb, target, headers, body):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.host, timeout=TIMEOUT_SECONDS)
        connection = self.connection
        connection.putrequest(verb, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", self.host)
        for name, value in headers:
            connection.putheader(name, value.encode("utf-8"))
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        self.sent += 1
        got = {}
        for name, value in response.getheaders():
            got[name.lower()] = value if name.lower() not in got else got[name.lower()] + ", " + value
        if response.will_close:
            connection.close()
            self.connection = None
        return Answer(response.status, got, content)

    def authorize(self, request, path, query, headers):
        """The headers of SharedKey and SharedKeyLite, right or wrong in the way that `auth` names."""
        kind = request.auth
        if kind in ("none", "sas"):
            return []
        if kind.startswith("raw:"):
            return [("x-ms-date", rfc1123(0)), ("Authorization", kind[4:])]
        scheme, _, flaw = kind.partition("-")
        date = rfc1123(DATES.get(flaw, 0))
        dated = {"undated": [], "dateheader": [("Date", date)]}.get(flaw, [("x-ms-date", date)])
        given = {name.lower(): value for name, value in headers + dated}
        signature = self.hmac(self.string_to_sign(scheme, request.verb, path, query, given, date))
        name = "SharedKeyLite" if scheme == "lite" else "SharedKey"
        account = "nobody" if flaw == "stranger" else self.account
        return [("Authorization", f"{name} {account}:{WRONG_SIGNATURE if flaw == 'wrong' else signature}"), *dated]

    def hmac(self, text):
        return base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()).decode()

    def sign_sas(self, fields):
        """Signs the fields of an account SAS (those with `ss`) or of one of the service."""
        fields = {name: self.resolve(value) for name, value in fields.items()}
        if "ss" in fields:
            names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] + (["ses"] if fields.get("sv", "") >= "2020-12-06" else [])
            text = "".join(line + "\n" for line in [self.account, *(fields.get(name, "") for name in names)])
        else:
            text = self.sas_to_sign(fields)
        if fields.pop("tamper", ""):
            text += "x"
        return urllib.parse.urlencode({**fields, "sig": self.hmac(text)}, quote_via=urllib.parse.quote)


def rfc1123(offset_seconds):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset_seconds)
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")
