"""Queues: messages with ids, times and receipts that are new on every answer, and yet have to agree with each other."""

import base64
import datetime
import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from .. import signing
from ..compare import Difference
from ..learned import DATE, GUID
from .service import Service, mark_difference, recorded_text, section_differences, sections, xml_differences, xml_text
from .xml_services import XmlService

#: Elements of a message that are new on every answer.
NEW_ELEMENTS = ("MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible")
MESSAGE = re.compile(r"<QueueMessage>(.*?)</QueueMessage>", re.S)
QUEUE = re.compile(r"<Queue><Name>([^<]*)</Name>.*?</Queue>", re.S)
#: Recorded and replayed spans of time may differ by this: seconds are cut off, and a machine may be busy.
SLACK_SECONDS = 5
#: The years that a receipt's instant counts from.
RECEIPT_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass
class Memory:
    """What a test made: other queues and settings in an answer are those of the recorded account."""

    queues: set = field(default_factory=set)
    sections: set = field(default_factory=set)
    #: The recorded id of each message here.
    ids: dict = field(default_factory=dict)


class Queue(XmlService):
    name, token = "queue", staticmethod(signing.queue_token)
    levels = ("service", "queue", "messages", "message")
    header_forms = {**Service.header_forms, "x-ms-popreceipt": r"\S+", "x-ms-time-next-visible": DATE}

    def memory(self):
        return Memory()

    def remember(self, session, request, status):
        if status >= 300 or request.method != "PUT":
            return
        names = [name for name in request.path.split("/") if name]
        if len(names) == 1:
            session.memory.queues.add(names[0])
        if "comp=properties" in request.query:
            session.memory.sections |= sections(request.body.decode())

    def learn_header(self, session, name, live, here, scope):
        if name != "x-ms-popreceipt":
            return super().learn_header(session, name, live, here, scope)
        session.learned.put(live, here)
        return receipt_shape(live) == receipt_shape(here)

    def body_differences(self, session, entry, request, headers, data):
        if "xml" not in entry.answer_type():
            if data:
                yield Difference("body present", "$", None, data[:300].decode("utf-8", "replace"))
            return
        live, here = recorded_text(entry.answer), data.decode("utf-8", "replace")
        yield from mark_difference(live, here)
        live, here = xml_text(session.to_here(live)), xml_text(here)
        live = without_foreign_queues(live, session.memory.queues)
        live, here = yield from section_differences(live, here, session.memory.sections)
        dates = [parsedate_to_datetime(one["date"]) for one in (entry.answer_headers, headers)]
        for number, (one, other) in enumerate(zip(MESSAGE.findall(live), MESSAGE.findall(here))):
            yield from message_differences(session, f"message[{number}]", fields(one), fields(other), dates)
        live, here = (without_new(text) for text in (live, here))
        yield from xml_differences(session.learned.apply(live), here)


def fields(message):
    return dict(re.findall(r"<(\w+)>([^<]*)</\1>", message))


def without_new(text):
    for name in NEW_ELEMENTS:
        text = re.sub(rf"<{name}>[^<]*</{name}>", f"<{name}/>", text)
    return re.sub(rf"<LastSyncTime>({DATE})?<", "<LastSyncTime><", text)


def without_foreign_queues(text, known):
    """A list of queues without those of other tests, which ran in the recorded account at the same time."""
    return QUEUE.sub(lambda found: found[0] if found[1] in known else "", text).replace("<Queues></Queues>", "<Queues />")


def message_differences(session, where, live, here, dates):
    """What is new in a message, as far as it has to agree with what the answer and earlier ones say."""
    if live.keys() != here.keys():
        return
    for name, form in [("MessageId", GUID), *((name, DATE) for name in NEW_ELEMENTS if name in live and "Time" in name)]:
        if not re.fullmatch(form, here[name]) or not re.fullmatch(form, live[name]):
            yield Difference("message form", f"{where}.{name}", live[name], here[name])
            return
    if session.memory.ids.setdefault(here["MessageId"], live["MessageId"]) != live["MessageId"]:
        yield Difference("message value", f"{where}.MessageId (another message was expected)", live["MessageId"], here["MessageId"])
        return
    for name in ("MessageId", "InsertionTime", "ExpirationTime"):
        if not session.learned.same_or_new(live[name], here[name], (name, live["MessageId"])):
            yield Difference("message value", f"{where}.{name} (not the one given out before)", live[name], here[name])
    spans = [("InsertionTime", "ExpirationTime")] + [("Date", "TimeNextVisible")] * ("TimeNextVisible" in live)
    for first, last in spans:
        seconds = [span(message, date, first, last) for message, date in zip((live, here), dates)]
        if abs(seconds[0] - seconds[1]) > SLACK_SECONDS:
            yield Difference("message time", f"{where}.{first} to {last}", *seconds)
    if "PopReceipt" in live:
        yield from receipt_differences(session, where, live, here)


def span(message, date, first, last):
    begin = date if first == "Date" else parsedate_to_datetime(message[first])
    # The last instant there is, is no distance from another.
    return (parsedate_to_datetime(message[last]) - begin).total_seconds() if " 9999 " not in message[last] else 0


def receipt_differences(session, where, live, here):
    """Receipts: their form, the instant inside, and that messages of one answer share one as they did."""
    shapes = [receipt_shape(message["PopReceipt"]) for message in (live, here)]
    if shapes[0] != shapes[1]:
        yield Difference("receipt form", where, *shapes)
        session.learned.put(live["PopReceipt"], here["PopReceipt"])
        return
    visible = receipt_time(here["PopReceipt"]).replace(microsecond=0)
    if visible != parsedate_to_datetime(here["TimeNextVisible"]):
        yield Difference("receipt time", where, here["TimeNextVisible"], visible)
    if not session.learned.same_or_new(live["PopReceipt"], here["PopReceipt"], None):
        yield Difference("receipt value", f"{where} (not the one given out with the others)", live["PopReceipt"], here["PopReceipt"])


def receipt_shape(receipt):
    """Its kind, its constants and its length; None where it is no receipt."""
    try:
        data = base64.b64decode(receipt, validate=True)
    except ValueError:
        return None
    return data[:12].hex(), len(data)


def receipt_time(receipt):
    ticks = int.from_bytes(base64.b64decode(receipt)[12:20], "little")
    return RECEIPT_EPOCH + datetime.timedelta(microseconds=ticks // 10)
