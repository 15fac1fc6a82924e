"""How the queue service is spoken to, and what a side remembers: the ids and receipts that its server gave.

Placeholders: «Q» for the queue, «ID n» for a message, «RECEIPT n m» for the receipt m of message n.
"""

import re
import urllib.parse
from dataclasses import dataclass

import differential.side

VERSION = "2021-12-02"
MESSAGE = re.compile(r"<QueueMessage>(.*?)</QueueMessage>", re.S)


@dataclass
class Request(differential.side.Request):
    puts: int = None  #: The number of the message that a success makes.
    updates: int = None  #: The number of the message that a success gives another receipt.
    gets: bool = False  #: Whether the messages of the answer have new receipts.
    messages: object = None  #: What the model expects in the answer: [(number, text, dequeue count)].


class Side(differential.side.Side):
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
        headers = [(name, self.resolve(value)) for name, value in request.headers]
        names = {name.lower() for name, _ in headers}
        body = request.body.encode() if isinstance(request.body, str) else request.body
        if "x-ms-version" not in names:
            headers.append(("x-ms-version", VERSION))
        if body is not None and "content-type" not in names:
            headers.append(("Content-Type", "application/xml"))
        if body is not None or request.verb in ("POST", "PUT"):
            headers.append(("Content-Length", str(len(body or b""))))
        answer = self.deliver(request, self.root + self.resolve(request.path), self.resolve(request.query), headers, body)
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

    def string_to_sign(self, scheme, verb, path, query, headers, date):
        own = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers) if name.startswith("x-ms-"))
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        resource = f"/{self.account}{path}"
        if scheme == "lite":
            comp = dict(pairs).get("comp")
            resource += f"?comp={comp}" if comp else ""
            return f"{verb}\n{headers.get('content-md5', '')}\n{headers.get('content-type', '')}\n\n{own}{resource}"
        names = sorted({name.lower() for name, _ in pairs})
        resource += "".join(f"\n{name}:{','.join(sorted(value for other, value in pairs if other.lower() == name))}" for name in names)
        length = headers.get("content-length", "")
        lines = [verb, "", "", "" if length == "0" else length, "", headers.get("content-type", ""), "", "", "", "", "", ""]
        return "\n".join(lines) + f"\n{own}{resource}"

    def sas_to_sign(self, fields):
        resource = f"/queue/{self.account}/{fields.pop('queue')}"
        get = lambda name: fields.get(name, "")
        return "\n".join([*map(get, ("sp", "st", "se")), resource, *map(get, ("si", "sip", "spr", "sv"))])
