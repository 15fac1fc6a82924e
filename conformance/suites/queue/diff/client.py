"""Speaks to one server: signs, sends, and remembers the ids and receipts that this server gave.

A request is written once, with placeholders, and resolved for each side: names, ids and receipts differ between the two
servers while the request stays the same.
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import re
import urllib.parse
from dataclasses import dataclass, field

VERSION = "2021-12-02"
TIMEOUT_SECONDS = 30
MESSAGE = re.compile(r"<QueueMessage>(.*?)</QueueMessage>", re.S)


@dataclass
class Request:
    """One request, as it is generated: the same for both servers."""

    op: str  #: The operation; cases of the suite are grouped by it.
    cond: str  #: What is special about it. Together with `op` this is the signature of a difference.
    verb: str
    path: str  #: Below the account, percent-encoded, with placeholders: «Q» for the queue, «ID n» for a message.
    query: str = ""  #: Encoded, without the question mark; «RECEIPT n m» for the receipt m of message n.
    headers: list = field(default_factory=list)
    body: object = None  #: Text or bytes, or None.
    auth: str = "key"
    sas: dict = None  #: Fields of a SAS, signed for each side when `auth` is "sas".
    expect: object = None  #: (status, code) that the wire reference demands, where it does.
    writes: bool = False  #: Whether a success changes what later requests see.
    puts: int = None  #: The number of the message that a success makes.
    updates: int = None  #: The number of the message that a success gives another receipt.
    gets: bool = False  #: Whether the messages of the answer have new receipts.
    messages: object = None  #: What the model expects in the answer: [(number, text, dequeue count)].
    effect: object = None  #: Called when our server did it, to keep the model.


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def text(self):
        return self.body.decode("utf-8-sig", "replace")

    def code(self):
        found = re.search(r"<Code>([^<]*)<", self.text()) if self.status >= 400 else None
        return found[1] if found else (self.headers.get("x-ms-error-code") or "" if self.status >= 400 else "")

    def brief(self):
        return f"{self.status} {self.code()}".strip()


class Side:
    """One of the two servers."""

    def __init__(self, name, endpoint, account, key):
        self.name, self.endpoint, self.account, self.key = name, endpoint.rstrip("/"), account, key
        parts = urllib.parse.urlsplit(self.endpoint)
        self.host, self.root = parts.netloc, parts.path
        self.connection, self.sent = None, 0
        self.begin("")

    def begin(self, queue):
        """A fresh queue: nothing is known of its messages."""
        self.queue, self.ids, self.receipts = queue, {}, {}

    def resolve(self, text):
        if not isinstance(text, str):
            return text
        text = text.replace("«Q»", self.queue).replace("«ACCOUNT»", self.account)
        text = re.sub(r"«ID (\d+)»", lambda found: self.ids.get(int(found[1]), "none"), text)
        return re.sub(r"«RECEIPT (\d+) (-?\d+)»", lambda found: urllib.parse.quote(self.receipt(int(found[1]), int(found[2])), safe=""), text)

    def receipt(self, number, place):
        known = self.receipts.get(number) or ["none"]
        return known[max(place, -len(known)) if place < 0 else min(place, len(known) - 1)]

    def send(self, request):
        answer = self.exchange_again(request)
        if answer.status < 300:
            self.learn(request, answer)
        return answer

    def learn(self, request, answer):
        for message in MESSAGE.findall(answer.text()):
            fields = dict(re.findall(r"<(\w+)>([^<]*)<", message))
            if request.puts is not None:
                self.ids[request.puts] = fields["MessageId"]
                self.receipts[request.puts] = [fields["PopReceipt"]]
            elif request.gets and self.number(fields["MessageId"]) is not None:
                self.receipts[self.number(fields["MessageId"])].append(fields["PopReceipt"])
        if request.updates is not None:
            self.receipts[request.updates].append(answer.headers.get("x-ms-popreceipt", ""))

    def number(self, identity):
        return next((number for number, known in self.ids.items() if known == identity), None)

    def exchange_again(self, request):
        path, query = self.root + self.resolve(request.path), self.resolve(request.query)
        headers = [(name, self.resolve(value)) for name, value in request.headers]
        body = request.body.encode() if isinstance(request.body, str) else request.body
        if "x-ms-version" not in {name.lower() for name, _ in headers}:
            headers.append(("x-ms-version", VERSION))
        if body is not None and "content-type" not in {name.lower() for name, _ in headers}:
            headers.append(("Content-Type", "application/xml"))
        if body is not None or request.verb in ("POST", "PUT"):
            headers.append(("Content-Length", str(len(body or b""))))
        if request.auth == "sas":
            query = "&".join(part for part in (query, self.sign_sas(request.sas)) if part)
        headers += self.authorize(request, path, query, headers)
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
        dated = [] if flaw == "undated" else [("x-ms-date", rfc1123({"old": -16 * 60, "future": 16 * 60, "recent": -14 * 60}.get(flaw, 0)))]
        given = {name.lower(): value for name, value in headers + dated}
        own = "".join(f"{name}:{given[name].strip()}\n" for name in sorted(given) if name.startswith("x-ms-"))
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        resource = f"/{self.account}{path}"
        if scheme == "lite":
            comp = dict(pairs).get("comp")
            resource += f"?comp={comp}" if comp else ""
            text = f"{request.verb}\n{given.get('content-md5', '')}\n{given.get('content-type', '')}\n\n{own}{resource}"
        else:
            names = sorted({name.lower() for name, _ in pairs})
            resource += "".join(f"\n{name}:{','.join(sorted(value for other, value in pairs if other.lower() == name))}" for name in names)
            length = given.get("content-length", "")
            lines = [request.verb, "", "", "" if length == "0" else length, "", given.get("content-type", ""), "", "", "", "", "", ""]
            text = "\n".join(lines) + f"\n{own}{resource}"
        signature = base64.b64encode(b"\0" * 32).decode() if flaw == "wrong" else self.hmac(text)
        account = "nobody" if flaw == "stranger" else self.account
        return [("Authorization", f"{'SharedKeyLite' if scheme == 'lite' else 'SharedKey'} {account}:{signature}"), *dated]

    def hmac(self, text):
        return base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()).decode()

    def sign_sas(self, fields):
        """Signs account SAS fields (with `ss`) or queue SAS fields as sections 7.3 and 7.4 say."""
        fields = {name: self.resolve(value) for name, value in fields.items()}
        get = lambda name: fields.get(name, "")
        if "ss" in fields:
            names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] + (["ses"] if get("sv") >= "2020-12-06" else [])
            text = "".join(line + "\n" for line in [self.account, *map(get, names)])
        else:
            text = "\n".join([get("sp"), get("st"), get("se"), f"/queue/{self.account}/{fields.pop('queue')}", *map(get, ("si", "sip", "spr", "sv"))])
        if fields.pop("tamper", ""):
            text += "x"
        return urllib.parse.urlencode({**fields, "sig": self.hmac(text)}, quote_via=urllib.parse.quote)


def rfc1123(offset_seconds):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset_seconds)
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")
