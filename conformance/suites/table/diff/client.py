"""How the table service is spoken to, and what a side remembers: the ETags that its server gave.

Placeholders: «T» for the table, «TU» for its name in upper case, «BASE» for the URL of the account, «ETAG pk|rk».
"""

import json
import re
import urllib.parse
from dataclasses import dataclass

import differential.side

VERSION = "2019-02-02"
#: An ETag that no row has.
STALE = "W/\"datetime'2001-01-01T00%3A00%3A00.0000001Z'\""
PAGES_MAX = 200


@dataclass
class Request(differential.side.Request):
    etag_key: tuple = None  #: The row whose ETag the answer carries.
    follow: bool = False  #: Whether continuation is followed to the end.
    check: object = None  #: Called with the answer of our server; gives a text when it is wrong.


class Side(differential.side.Side):
    def begin(self, table):
        """A fresh table: no ETag is known of its rows."""
        self.table, self.etags = table, {}

    def resolve(self, text):
        if not isinstance(text, str):
            return text
        text = text.replace("«T»", self.table).replace("«TU»", self.table.upper()).replace("«BASE»", self.endpoint).replace("«ACCOUNT»", self.account)
        return re.sub(r"«ETAG ([^»]*)»", lambda found: self.etags.get(found[1], STALE), text)

    def send(self, request):
        """Sends a request and gives the answer, with all further pages when it asks for them."""
        answer = self.send_once(request, "")
        if request.etag_key and answer.status < 300 and answer.header("etag"):
            self.etags["|".join(request.etag_key)] = answer.header("etag")
        if request.op == "batch" and answer.status == 202:
            self.learn_batch(request, answer)
        if request.follow and answer.status == 200:
            answer.pages = [answer]
            while len(answer.pages) < PAGES_MAX and (again := continuation(answer.pages[-1])):
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
        query = "&".join(part for part in (self.resolve(request.query), more) if part)
        headers = [(name, self.resolve(value)) for name, value in request.headers]
        body = self.resolve(request.body)
        if isinstance(body, str):
            body = body.encode("utf-8", "surrogatepass")
        names = {name.lower() for name, _ in headers}
        defaults = [("x-ms-version", VERSION), ("DataServiceVersion", "3.0"), ("Accept", "application/json;odata=minimalmetadata")]
        headers += [(name, value) for name, value in defaults if name.lower() not in names]
        if body is not None or request.verb in ("POST", "PUT", "PATCH", "MERGE"):
            headers.append(("Content-Length", str(len(body or b""))))
        return self.deliver(request, self.root + self.resolve(request.path), query, headers, body)

    def string_to_sign(self, scheme, verb, path, query, headers, date):
        comp = urllib.parse.parse_qs(query).get("comp", [""])[0]
        resource = f"/{self.account}{path}" + (f"?comp={comp}" if comp else "")
        if scheme == "lite":
            return f"{date}\n{resource}"
        return f"{verb}\n{headers.get('content-md5', '')}\n{headers.get('content-type', '')}\n{date}\n{resource}"

    def sas_to_sign(self, fields):
        get = lambda name: fields.get(name, "")
        resource = f"/table/{self.account}/{get('tn').lower()}"
        return "\n".join([*map(get, ("sp", "st", "se")), resource, *map(get, ("si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"))])


def continuation(answer):
    names = ("NextPartitionKey", "NextRowKey", "NextTableName")
    found = [(name, answer.header("x-ms-continuation-" + name)) for name in names]
    return "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, value in found if value)


def message(answer):
    """The text of an error."""
    text = answer.body.decode("utf-8", "replace")
    try:
        text = json.loads(text)["odata.error"]["message"]["value"]
    except (ValueError, KeyError, TypeError):
        found = re.search(r"<(?:\w+:)?[mM]essage[^>]*>([^<]*)<", text)
        text = found.group(1) if found else ""
    return re.sub(r"\s*RequestId:.*", "", text, flags=re.S)
