"""Speaks to one server: signs, sends, and remembers the ETags that this server gave.

A request is written once, with placeholders, and resolved for each side: a table name, the base URL and ETags differ
(or may differ) between the two servers while the request stays the same.
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

VERSION = "2019-02-02"
#: Where the answer of a batch or a page says nothing new, one connection serves some thousands of requests.
TIMEOUT_SECONDS = 30


@dataclass
class Request:
    """One request, as it is generated: the same for both servers."""

    op: str  #: The operation; cases of the suite are grouped by it.
    cond: str  #: What is special about it. Together with `op` this is the signature of a difference.
    verb: str
    path: str  #: Below the account, percent-encoded, with the placeholder «T» for the table.
    query: str = ""  #: Encoded, without the question mark.
    headers: list = field(default_factory=list)
    body: object = None  #: Text with placeholders, or bytes, or None.
    auth: str = "key"
    sas: dict = None  #: Fields of a SAS, signed for each side when `auth` is "sas".
    expect: object = None  #: (status, code) that the wire reference demands, where it does.
    writes: bool = False  #: Whether a success changes what later requests see.
    etag_key: tuple = None  #: The row whose ETag the answer carries.
    follow: bool = False  #: Whether continuation is followed to the end.
    ordered: bool = True
    check: object = None  #: Called with the answer of our server; gives a text when it is wrong.
    effect: object = None  #: Called when our server did it, to keep the model.


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes
    pages: list = None  #: The answers to all pages when continuation was followed.

    def header(self, name):
        return self.headers.get(name.lower())

    def code(self):
        text = self.body.decode("utf-8", "replace")
        if self.status < 400:
            return ""
        try:
            return json.loads(text)["odata.error"]["code"]
        except (ValueError, KeyError, TypeError):
            found = re.search(r"<(?:\w+:)?[cC]ode>([^<]*)<", text)
            return found.group(1) if found else (self.header("x-ms-error-code") or "")

    def message(self):
        text = self.body.decode("utf-8", "replace")
        try:
            text = json.loads(text)["odata.error"]["message"]["value"]
        except (ValueError, KeyError, TypeError):
            found = re.search(r"<(?:\w+:)?[mM]essage[^>]*>([^<]*)<", text)
            text = found.group(1) if found else ""
        return re.sub(r"\s*RequestId:.*", "", text, flags=re.S)

    def brief(self):
        return f"{self.status} {self.code()}".strip()


class Side:
    """One of the two servers."""

    def __init__(self, name, endpoint, account, key):
        self.name, self.endpoint, self.account, self.key = name, endpoint.rstrip("/"), account, key
        parts = urllib.parse.urlsplit(self.endpoint)
        self.host, self.root = parts.netloc, parts.path
        self.connection = None
        self.etags = {}
        self.table = ""
        self.sent = 0

    def resolve(self, text):
        """Puts this side's table, base URL and ETags in the place of their placeholders."""
        if not isinstance(text, str):
            return text
        text = text.replace("«T»", self.table).replace("«TU»", self.table.upper()).replace("«BASE»", self.endpoint).replace("«ACCOUNT»", self.account)
        return re.sub(r"«ETAG ([^»]*)»", lambda m: self.etag(m.group(1)), text)

    def etag(self, key):
        return self.etags.get(key, "W/\"datetime'2001-01-01T00%3A00%3A00.0000001Z'\"")

    def send(self, request):
        """Sends a request and gives the answer, with all further pages when it asks for them."""
        answer = self.send_once(request, "")
        if request.etag_key and answer.status < 300 and answer.header("etag"):
            self.etags["|".join(request.etag_key)] = answer.header("etag")
        if request.op == "batch" and answer.status == 202:
            self.learn_batch(request, answer)
        if request.follow and answer.status == 200:
            answer.pages = [answer]
            while len(answer.pages) < 200:
                again = continuation(answer.pages[-1])
                if not again:
                    break
                answer.pages.append(self.send_once(request, again))
        return answer

    def learn_batch(self, request, answer):
        etags = re.findall(r"^HTTP/1.1 2\d\d.*?(?=^--changesetresponse_)", answer.body.decode("utf-8", "replace"), re.S | re.M)
        if request.etag_key and len(etags) == len(request.etag_key):
            for row, part in zip(request.etag_key, etags):
                found = re.search(r"^ETag: (.*?)\r?$", part, re.M | re.I)
                if found:
                    self.etags["|".join(row)] = found.group(1)

    def send_once(self, request, more):
        path = self.root + self.resolve(request.path)
        query = "&".join(part for part in (self.resolve(request.query), more) if part)
        headers = [(name, self.resolve(value)) for name, value in request.headers]
        body = self.resolve(request.body)
        if isinstance(body, str):
            body = body.encode("utf-8", "surrogatepass")
        names = {name.lower() for name, _ in headers}
        if "x-ms-version" not in names:
            headers.append(("x-ms-version", VERSION))
        if "dataserviceversion" not in names:
            headers.append(("DataServiceVersion", "3.0"))
        if "accept" not in names:
            headers.append(("Accept", "application/json;odata=minimalmetadata"))
        headers += self.authorize(request, path, query, headers)
        if request.auth == "sas":
            signed = self.sign_sas(request.sas)
            query = "&".join(part for part in (query, signed) if part)
        target = path + ("?" + query if query else "")
        for attempt in (1, 2):
            try:
                return self.exchange(request.verb, target, headers, body)
            except (http.client.HTTPException, ConnectionError, OSError):
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
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        elif verb in ("POST", "PUT", "PATCH", "MERGE"):
            connection.putheader("Content-Length", "0")
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
        offset = {"old": -16 * 60, "future": 16 * 60, "recent": -14 * 60}.get(flaw, 0)
        date = rfc1123(offset)
        given = {name.lower(): value for name, value in headers}
        comp = urllib.parse.parse_qs(query).get("comp", [""])[0]
        resource = "/" + self.account + path + (f"?comp={comp}" if comp else "")
        if scheme == "lite":
            text = f"{date}\n{resource}"
        else:
            text = f"{request.verb}\n{given.get('content-md5', '')}\n{given.get('content-type', '')}\n{date}\n{resource}"
        signature = self.hmac(text)
        if flaw == "wrong":
            signature = base64.b64encode(b"\0" * 32).decode()
        account = "nobody" if flaw == "stranger" else self.account
        name = "SharedKeyLite" if scheme == "lite" else "SharedKey"
        out = [("Authorization", f"{name} {account}:{signature}")]
        if flaw == "dateheader":
            out.append(("Date", date))
        elif flaw != "undated":
            out.append(("x-ms-date", date))
        return out

    def hmac(self, text):
        key = base64.b64decode(self.key)
        return base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()

    def sign_sas(self, fields):
        """Signs account SAS fields (with `ss`) or table SAS fields (with `tn`) as section 10.5 says."""
        fields = {name: self.resolve(value) for name, value in fields.items() if not name.startswith("_")}
        get = lambda name: fields.get(name, "")
        if "ss" in fields:
            names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
            lines = [self.account] + [get(name) for name in names] + ([get("ses")] if get("sv") >= "2020-12-06" else [])
            text = "".join(line + "\n" for line in lines)
        else:
            resource = f"/table/{self.account}/{get('tn').lower()}"
            text = "\n".join([get("sp"), get("st"), get("se"), resource]
                             + [get(name) for name in ("si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")])
        if fields.pop("tamper", ""):
            text += "x"
        fields["sig"] = self.hmac(text)
        return urllib.parse.urlencode(fields, quote_via=urllib.parse.quote)


def continuation(answer):
    names = ("NextPartitionKey", "NextRowKey", "NextTableName")
    found = [(name, answer.header("x-ms-continuation-" + name)) for name in names]
    return "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, value in found if value)


def rfc1123(offset_seconds):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset_seconds)
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")
