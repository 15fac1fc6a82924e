"""Makes the requests: a seeded choice among all operations, with what the wire reference expects of each.

A scenario works on one fresh queue and keeps a model of its messages. Nothing depends on time: a message is hidden for
an hour or not at all. `Scenario.next` gives the next request, chosen by weight among the families below. Where the
reference fixes the answer, the request says so (`expect`, `messages`), so that both servers being wrong in the same way
is noticed too.
"""

import urllib.parse
from dataclasses import dataclass
from xml.sax.saxutils import escape

from client import Request

HOUR = 3600
WEEK = 7 * 24 * HOUR
PAST, FUTURE = "2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
HEAD = '<?xml version="1.0" encoding="utf-8"?>'
TEXTS = ["plain", "", " ", "  both ends  ", "a<b> & 'c' \"d\"", "&lt;&amp;", "Grüße 日本語 😀", "\ttab\nline\n", "]]>", "x" * 1000, "x" * 65536, "SGVsbG8="]
BAD_NAMES = [("ab", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput"), ("a_b", "InvalidResourceName"), ("-abc", "InvalidResourceName"),
             ("abc-", "InvalidResourceName"), ("a--b", "InvalidResourceName"), ("Abc", "InvalidResourceName"), ("a.b", "InvalidResourceName")]
BAD_BODIES = [("no body", None), ("empty body", ""), ("no XML", "text"), ("not closed", "<QueueMessage><MessageText>x</QueueMessage>"),
              ("no text", "<QueueMessage></QueueMessage>"), ("another root", "<Other><MessageText>x</MessageText></Other>"),
              ("forbidden character", "<QueueMessage><MessageText>a\x01b</MessageText></QueueMessage>"),
              ("forbidden reference", "<QueueMessage><MessageText>a&#1;b</MessageText></QueueMessage>")]
OTHER_BODIES = [("single quotes", "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>m</MessageText></QueueMessage>", "m"),
                ("standalone", '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><QueueMessage><MessageText>&quot;m&apos;</MessageText></QueueMessage>', "\"m'"),
                ("mark", "\ufeff<QueueMessage><MessageText>m</MessageText></QueueMessage>", "m"),
                ("indented", "<QueueMessage>\r\n  <MessageText>m</MessageText>\r\n</QueueMessage>", "m"),
                ("CDATA", "<QueueMessage><MessageText><![CDATA[a<b]]></MessageText></QueueMessage>", "a<b"),
                ("references", "<QueueMessage><MessageText>&#65;&#x42;</MessageText></QueueMessage>", "AB"),
                ("unknown sibling", "<QueueMessage><Other>x</Other><MessageText>m</MessageText></QueueMessage>", "m")]
#: What an account SAS needs: resource types, letters.
ACCOUNT = {"list": ("s", "l"), "get metadata": ("c", "r"), "set metadata": ("c", "w"), "put": ("o", "a"), "get": ("o", "p"), "peek": ("o", "r"),
           "clear": ("oc", "d"), "properties": ("s", "r")}
QUEUE = {"get metadata": "r", "put": "a", "get": "p", "peek": "r"}
CORS = ("<Cors><CorsRule><AllowedOrigins>https://a.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders>"
        "<ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors>")


@dataclass
class Message:
    number: int
    text: str
    count: int = 0
    #: The place among the visible ones; None for one that is hidden.
    place: int = None
    receipts: int = 1


class Scenario:
    """Requests to one queue, with a model of what the queue holds."""

    FAMILIES = [("put", 22), ("get", 12), ("peek", 12), ("update", 12), ("delete_message", 10), ("stale", 6), ("bad_receipt", 5), ("clear", 2), ("bad_put", 10),
                ("bad_body", 6), ("other_body", 5), ("bad_get", 6), ("bad_update", 5), ("metadata", 6), ("bad_metadata", 4), ("create", 5), ("bad_name", 4),
                ("missing_queue", 6), ("list", 6), ("bad_list", 4), ("acl", 5), ("bad_acl", 4), ("auth", 6), ("account_sas", 10), ("queue_sas", 10), ("properties", 3),
                ("bad_properties", 3), ("preflight", 4), ("stats", 2), ("verb", 3), ("header", 4)]

    def __init__(self, rng):
        self.rng, self.messages, self.numbered, self.placed = rng, [], 0, 0
        self.meta, self.policies = {}, set()

    def next(self):
        name = self.rng.choices([family for family, _ in self.FAMILIES], [weight for _, weight in self.FAMILIES])[0]
        return getattr(self, name)() or self.put()

    def pick(self, options):
        return self.rng.choice(list(options))

    def visible(self):
        return sorted((message for message in self.messages if message.place is not None), key=lambda message: message.place)

    def place(self):
        self.placed += 1
        return self.placed

    # ---- messages ---------------------------------------------------------------------------------------------------

    def put(self):
        return self.put_text(self.pick(TEXTS), "")

    def put_text(self, text, cond, body=None):
        number, hidden = self.numbered, self.rng.random() < 0.2
        self.numbered += 1
        query = [f"visibilitytimeout={HOUR}"] if hidden else self.pick([[], ["visibilitytimeout=0"]])
        query += self.pick([[], [f"messagettl={2 * HOUR}"], ["messagettl=-1"], [f"messagettl={2**31 - 1}"]])
        self.rng.shuffle(query)

        def effect():
            self.messages.append(Message(number, text, place=None if hidden else self.place()))

        return Request("put", cond, "POST", "/«Q»/messages", "&".join(query), body=body or f"{HEAD}<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>",
                       expect=(201, ""), writes=True, puts=number, effect=effect)

    def other_body(self):
        cond, body, text = self.pick(OTHER_BODIES)
        return self.put_text(text, cond, body)

    def get(self):
        many = self.pick([None, 1, 2, 5, 32])
        found = self.visible()[:many or 1]

        def effect():
            for message in found:
                message.place, message.count, message.receipts = None, message.count + 1, message.receipts + 1

        query = f"visibilitytimeout={self.pick([HOUR, WEEK])}" + (f"&numofmessages={many}" if many else "")
        return Request("get", "", "GET", "/«Q»/messages", query, expect=(200, ""), writes=True, gets=True, effect=effect,
                       messages=[(message.number, message.text, message.count + 1) for message in found])

    def peek(self):
        many = self.pick([None, 1, 3, 32])
        query = "peekonly=true" + (f"&numofmessages={many}" if many else "")
        return Request("peek", "", "GET", "/«Q»/messages", query, expect=(200, ""),
                       messages=[(message.number, message.text, message.count) for message in self.visible()[:many or 1]])

    def update(self):
        if not self.messages:
            return None
        message, shown, text = self.pick(self.messages), self.rng.random() < 0.5, self.pick([None, "changed", "", "ü<&>"])

        def effect():
            message.place, message.receipts = self.place() if shown else None, message.receipts + 1
            message.text = message.text if text is None else text

        body = None if text is None else f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>"
        return Request("update", "no body" if text is None else "", "PUT", f"/«Q»/messages/«ID {message.number}»",
                       f"popreceipt=«RECEIPT {message.number} -1»&visibilitytimeout={0 if shown else HOUR}", body=body, expect=(204, ""), writes=True,
                       updates=message.number, effect=effect)

    def delete_message(self):
        if not self.messages:
            return None
        message = self.pick(self.messages)
        return Request("delete message", "", "DELETE", f"/«Q»/messages/«ID {message.number}»", f"popreceipt=«RECEIPT {message.number} -1»",
                       expect=(204, ""), writes=True, effect=lambda: self.messages.remove(message))

    def stale(self):
        moved = [message for message in self.messages if message.receipts > 1]
        if not moved:
            return None
        message, place = self.pick(moved), self.pick([0, -2])
        if self.rng.random() < 0.5:
            return Request("delete message", "stale receipt", "DELETE", f"/«Q»/messages/«ID {message.number}»", f"popreceipt=«RECEIPT {message.number} {place}»",
                           expect=(404, "MessageNotFound"))
        return Request("update", "stale receipt", "PUT", f"/«Q»/messages/«ID {message.number}»", f"popreceipt=«RECEIPT {message.number} {place}»&visibilitytimeout=1",
                       expect=(404, "MessageNotFound"))

    def bad_receipt(self):
        if not self.messages:
            return None
        message = self.pick(self.messages)
        cond, identity, receipt, expect = self.pick([
            ("malformed receipt", f"«ID {message.number}»", "invalid", (400, "InvalidQueryParameterValue")),
            ("never issued receipt", f"«ID {message.number}»", urllib.parse.quote("AgAAAAMAAAAAAAAAAKSnkIyg2QE=", safe=""), (404, "MessageNotFound")),
            ("unknown id", "00000000-0000-0000-0000-000000000000", f"«RECEIPT {message.number} -1»", (404, "MessageNotFound")),
            ("id that is none", "abc", f"«RECEIPT {message.number} -1»", (404, "MessageNotFound")),
        ])
        return Request("delete message", cond, "DELETE", f"/«Q»/messages/{identity}", f"popreceipt={receipt}", expect=expect)

    def clear(self):
        return Request("clear", "", "DELETE", "/«Q»/messages", self.pick(["", "popreceipt=forgotten"]), expect=(204, ""), writes=True, effect=self.messages.clear)

    def bad_put(self):
        cond, query, expect = self.pick([
            ("ttl 0", "messagettl=0", (400, "InvalidQueryParameterValue")), ("ttl -2", "messagettl=-2", (400, "InvalidQueryParameterValue")),
            ("visibility -1", "visibilitytimeout=-1", (400, "OutOfRangeQueryParameterValue")),
            ("visibility above a week", f"visibilitytimeout={WEEK + 1}&messagettl=-1", (400, "OutOfRangeQueryParameterValue")),
            ("visibility = ttl", "visibilitytimeout=10&messagettl=10", (400, "InvalidQueryParameterValue")),
            ("visibility > ttl", "visibilitytimeout=11&messagettl=10", (400, "InvalidQueryParameterValue")),
            ("visibility not a number", "visibilitytimeout=x", (400, "InvalidQueryParameterValue")),
        ])
        return Request("put", cond, "POST", "/«Q»/messages", query, body="<QueueMessage><MessageText>m</MessageText></QueueMessage>", expect=expect, writes=True)

    def bad_body(self):
        if self.rng.random() < 0.2:
            return Request("put", "too large", "POST", "/«Q»/messages", body=f"<QueueMessage><MessageText>{'x' * 65537}</MessageText></QueueMessage>",
                           expect=(413, "RequestBodyTooLarge"))
        cond, body = self.pick(BAD_BODIES)
        return Request("put", cond, "POST", "/«Q»/messages", body=body, expect=(400, "InvalidXmlDocument"), writes=True)

    def bad_get(self):
        cond, query, code = self.pick([
            ("0 messages", "numofmessages=0", "OutOfRangeQueryParameterValue"), ("33 messages", "numofmessages=33", "OutOfRangeQueryParameterValue"),
            ("-1 messages", "numofmessages=-1", "OutOfRangeQueryParameterValue"), ("visibility 0", "visibilitytimeout=0", "OutOfRangeQueryParameterValue"),
            ("visibility above a week", f"visibilitytimeout={WEEK + 1}", "OutOfRangeQueryParameterValue"),
            ("number not a number", "numofmessages=x", "InvalidQueryParameterValue"), ("peek 33", "peekonly=true&numofmessages=33", "OutOfRangeQueryParameterValue"),
        ])
        return Request("get", cond, "GET", "/«Q»/messages", query, expect=(400, code))

    def bad_update(self):
        if not self.messages:
            return None
        number = self.pick(self.messages).number
        cond, query, code = self.pick([
            ("visibility -1", f"popreceipt=«RECEIPT {number} -1»&visibilitytimeout=-1", "OutOfRangeQueryParameterValue"),
            ("visibility above a week", f"popreceipt=«RECEIPT {number} -1»&visibilitytimeout={WEEK + 1}", "OutOfRangeQueryParameterValue"),
            ("no receipt", "visibilitytimeout=1", "MissingRequiredQueryParameter"),
        ])
        return Request("update", cond, "PUT", f"/«Q»/messages/«ID {number}»", query, expect=(400, code))

    # ---- queues -----------------------------------------------------------------------------------------------------

    def metadata(self):
        kind = self.pick(["get", "head", "set", "set", "clear"])
        if kind in ("get", "head"):
            return self.get_metadata(kind.upper())
        return self.set_metadata({} if kind == "clear" else {name: self.pick(["1", "a b", "x=y;z"]) for name in self.rng.sample(["One", "two", "_three"], 2)})

    def get_metadata(self, verb="GET"):
        return Request("metadata", verb.lower(), verb, "/«Q»", "comp=metadata", expect=(200, ""))

    def set_metadata(self, meta):
        def effect():
            self.meta = meta

        headers = [(f"x-ms-meta-{name}", value) for name, value in meta.items()]
        return Request("metadata", "set" if meta else "clear", "PUT", "/«Q»", "comp=metadata", headers=headers, expect=(204, ""), writes=True, effect=effect)

    def bad_metadata(self):
        cond, name, value, code = self.pick([("dash", "in-valid", "x", "InvalidMetadata"), ("digit", "1st", "x", "InvalidMetadata"),
                                             ("too large", "a", "x" * 9000, "MetadataTooLarge")])
        return Request("metadata", cond, "PUT", "/«Q»", "comp=metadata", headers=[(f"x-ms-meta-{name}", value)], expect=(400, code), writes=True)

    def create(self):
        same = self.rng.random() < 0.5
        meta = self.meta if same else {**self.meta, "other": "1"}
        headers = [(f"x-ms-meta-{name}", value) for name, value in meta.items()]
        return Request("create", "again" if same else "again, other metadata", "PUT", "/«Q»", headers=headers, expect=(204, "") if same else (409, "QueueAlreadyExists"))

    def bad_name(self):
        name, code = self.pick(BAD_NAMES)
        return Request("create", f"name {name[:5]}", "PUT", f"/{name}", expect=(400, code))

    def missing_queue(self):
        cond, verb, path, query, body = self.pick([
            ("delete", "DELETE", "", "", None), ("get metadata", "GET", "", "comp=metadata", None), ("set metadata", "PUT", "", "comp=metadata", None),
            ("get acl", "GET", "", "comp=acl", None), ("put", "POST", "/messages", "", "<QueueMessage><MessageText>m</MessageText></QueueMessage>"),
            ("get", "GET", "/messages", "", None), ("peek", "GET", "/messages", "peekonly=true", None), ("clear", "DELETE", "/messages", "", None),
            ("delete message", "DELETE", "/messages/00000000-0000-0000-0000-000000000000", "popreceipt=AgAAAAMAAAAAAAAAAKSnkIyg2QE%3D", None),
        ])
        return Request("missing queue", cond, verb, f"/«Q»-missing{path}", query, body=body, expect=(404, "QueueNotFound"))

    def list(self):
        query = self.pick(["", "&include=metadata", "&maxresults=5000", "&maxresults=1"])
        return Request("list", query.strip("&"), "GET", self.pick(["", "/"]), f"comp=list&prefix=«Q»{query}", expect=(200, ""))

    def bad_list(self):
        cond, query, code = self.pick([("maxresults 0", "maxresults=0", "OutOfRangeQueryParameterValue"), ("maxresults -1", "maxresults=-1", "OutOfRangeQueryParameterValue"),
                                       ("marker", "marker=garbage", "OutOfRangeInput"), ("include", "include=nothing", "InvalidQueryParameterValue")])
        return Request("list", cond, "GET", "/", f"comp=list&{query}", expect=(400, code))

    def acl(self):
        if self.rng.random() < 0.4:
            return Request("acl", "get", "GET", "/«Q»", "comp=acl", expect=(200, ""))
        kind = self.pick(["policy", "two", "empty", "no body"])
        one = f"<SignedIdentifier><Id>reader</Id><AccessPolicy><Start>{PAST}</Start><Expiry>{FUTURE}</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>"
        two = f"<SignedIdentifier><Id>all</Id><AccessPolicy><Start>{PAST}</Start><Expiry>{FUTURE}</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier>"
        bodies = {"policy": one, "two": one + two, "empty": ""}
        body = None if kind == "no body" else f"{HEAD}<SignedIdentifiers>{bodies[kind]}</SignedIdentifiers>"

        def effect():
            self.policies = {"policy": {"reader"}, "two": {"reader", "all"}}.get(kind, set())

        return Request("acl", f"set {kind}", "PUT", "/«Q»", "comp=acl", body=body, expect=(204, ""), writes=True, effect=effect)

    def bad_acl(self):
        row = "<SignedIdentifier><Id>{}</Id><AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry><Permission>{}</Permission></AccessPolicy></SignedIdentifier>"
        cond, rows = self.pick([("six", "".join(row.format(number, "r") for number in range(6))), ("letters", row.format("id", "rwdl")), ("long id", row.format("i" * 65, "r"))])
        return Request("acl", cond, "PUT", "/«Q»", "comp=acl", body=f"<SignedIdentifiers>{rows}</SignedIdentifiers>", expect=(400, "InvalidXmlDocument"), writes=True)

    # ---- access -----------------------------------------------------------------------------------------------------

    def operation(self, name):
        """A request of this kind, for a signature to be tried on."""
        if name == "list":
            return Request("list", "", "GET", "/", "comp=list&prefix=«Q»", expect=(200, ""))
        if name == "properties":
            return Request("properties", "get", "GET", "/", "restype=service&comp=properties", expect=(200, ""))
        return {"get metadata": self.get_metadata, "set metadata": lambda: self.set_metadata({"by": "sas"}), "put": lambda: self.put_text("m", ""), "get": self.get,
                "peek": self.peek, "clear": self.clear}[name]()

    def auth(self):
        kind, expect = self.pick([
            ("key", (200, "")), ("lite", (200, "")), ("key-recent", (200, "")), ("none", (401, "NoAuthenticationInformation")), ("key-wrong", (403, "AuthenticationFailed")),
            ("lite-wrong", (403, "AuthenticationFailed")), ("key-old", (403, "AuthenticationFailed")), ("key-stranger", (403, "AuthenticationFailed")),
            ("raw:Nonsense", (400, "InvalidAuthenticationInfo")), ("raw:SharedKey nocolon", (400, "InvalidAuthenticationInfo")),
        ])
        return Request("auth", kind, "GET", "/«Q»/messages", "peekonly=true", auth=kind, expect=expect)

    def account_sas(self):
        name = self.pick(ACCOUNT)
        types, letters = ACCOUNT[name]
        fields = {"sv": "2021-12-02", "ss": "q", "srt": "sco", "sp": "rwdlacup", "se": FUTURE}
        flaw, code = self.pick([("", ""), ("letter", "AuthorizationPermissionMismatch"), ("type", "AuthorizationResourceTypeMismatch"), ("service", "AuthorizationServiceMismatch"),
                                ("expired", "AuthenticationFailed"), ("tampered", "AuthenticationFailed"), ("address", "AuthorizationSourceIPMismatch"),
                                ("protocol", "AuthorizationProtocolMismatch")])
        fields.update({"letter": {"sp": "".join(set("rwdlacup") - set(letters))}, "type": {"srt": "".join(sorted(set("sco") - set(types)))}, "service": {"ss": "bft"},
                       "expired": {"se": PAST}, "tampered": {"tamper": "1"}, "address": {"sip": "10.0.0.1"}, "protocol": {"spr": "https"}}.get(flaw, {}))
        return self.under_sas(self.operation(name), f"{name}, {flaw or 'right'}", fields, "account sas", code)

    def queue_sas(self):
        name = self.pick([*QUEUE, *QUEUE, "set metadata", "clear", "get acl"])
        fields = {"sv": "2021-12-02", "sp": "raup", "se": FUTURE, "queue": "«Q»"}
        if name not in QUEUE:
            request = Request("acl", "", "GET", "/«Q»", "comp=acl") if name == "get acl" else self.operation(name)
            return self.under_sas(request, f"{name}, never", fields, "queue sas", "AuthorizationFailure")
        if self.policies and self.rng.random() < 0.3:
            fields = {"sv": "2021-12-02", "si": "reader", "queue": "«Q»"}
            return self.under_sas(self.operation(name), f"{name}, by policy", fields, "queue sas", "" if QUEUE[name] == "r" else "AuthorizationPermissionMismatch")
        flaw, code = self.pick([("", ""), ("letter", "AuthorizationPermissionMismatch"), ("another queue", "AuthenticationFailed"), ("expired", "AuthenticationFailed"),
                                ("tampered", "AuthenticationFailed"), ("address", "AuthorizationSourceIPMismatch"), ("protocol", "AuthorizationProtocolMismatch"),
                                ("unknown policy", "AuthenticationFailed")])
        fields.update({"letter": {"sp": "raup".replace(QUEUE[name], "")}, "another queue": {"queue": "another"}, "expired": {"se": PAST}, "tampered": {"tamper": "1"},
                       "address": {"sip": "10.0.0.1"}, "protocol": {"spr": "https"}, "unknown policy": {"si": "unknown"}}.get(flaw, {}))
        return self.under_sas(self.operation(name), f"{name}, {flaw or 'right'}", fields, "queue sas", code)

    def under_sas(self, request, cond, fields, op, code):
        request.op, request.cond, request.auth, request.sas = op, cond, "sas", fields
        if code:
            request.expect, request.messages = (403, code), None
        return request

    # ---- the service ------------------------------------------------------------------------------------------------

    def properties(self):
        if self.rng.random() < 0.5:
            return self.operation("properties")
        return self.set_properties(self.pick(["rule", "none"]))

    def set_properties(self, kind):
        metrics = "<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
        logging = ("<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
                   "</RetentionPolicy></Logging>")
        body = (f"{HEAD}<StorageServiceProperties>{logging}<HourMetrics>{metrics}</HourMetrics><MinuteMetrics>{metrics}</MinuteMetrics>"
                f"{CORS if kind == 'rule' else '<Cors />'}</StorageServiceProperties>")
        return Request("properties", f"set {kind}", "PUT", "/", "restype=service&comp=properties", body=body, expect=(202, ""))

    def bad_properties(self):
        cond, body = self.pick([("six rules", CORS.replace("<Cors>", "").replace("</Cors>", "") * 6), ("no XML", "text")])
        body = f"<StorageServiceProperties><Cors>{body}</Cors></StorageServiceProperties>" if cond == "six rules" else body
        return Request("properties", cond, "PUT", "/", "restype=service&comp=properties", body=body, expect=(400, "InvalidXmlDocument"))

    def preflight(self):
        origin, method, headers = self.pick(["https://a.example", "https://b.example"]), self.pick(["GET", "DELETE"]), self.pick(["x-ms-date", "x-other"])
        asked = [("Origin", origin), ("Access-Control-Request-Method", method), ("Access-Control-Request-Headers", headers)]
        return Request("preflight", f"{origin} {method} {headers}", "OPTIONS", "/«Q»/messages", headers=asked, auth="none")

    def stats(self):
        return Request("stats", "primary", "GET", "/", "restype=service&comp=stats", expect=(400, "InvalidQueryParameterValue"))

    def verb(self):
        verb, path, query = self.pick([("GET", "/«Q»", ""), ("PUT", "/«Q»/messages", ""), ("POST", "/«Q»", ""), ("GET", "/«Q»", "comp=unknown"), ("PATCH", "/«Q»", "")])
        return Request("verb", f"{verb} {path[4:]}?{query}", verb, path, query)

    def header(self):
        kind = self.pick(["version", "later version", "request id", "stray metadata"])
        headers = {"version": ("x-ms-version", "2020-99"), "later version": ("x-ms-version", "2030-01-01"), "request id": ("x-ms-client-request-id", "mine"),
                   "stray metadata": ("x-ms-meta", "{'a': 'b'}")}[kind]
        expect = (400, "InvalidHeaderValue") if kind == "version" else (200, "")
        return Request("header", kind, "GET", "/«Q»/messages", "peekonly=true", headers=[headers], expect=expect)
