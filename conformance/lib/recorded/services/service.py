"""What a replay asks of a service."""

import re
from email.utils import parsedate_to_datetime

from ..compare import Difference, without_ids
from ..learned import GUID
from ..recordings import lower

#: What service properties are made of.
SECTIONS = ("Logging", "HourMetrics", "MinuteMetrics", "Cors")


class Service:
    name = ""
    #: What is signed with the account's key, and by a token of the service.
    shared_key = token = None
    #: Headers of answers that say nothing about the protocol.
    ignored_headers = {"date", "server", "transfer-encoding", "content-length", "connection", "keep-alive"}
    #: Headers that are new on every answer: their form is compared, and the value is learned.
    header_forms = {"x-ms-request-id": GUID}

    def memory(self):
        """What is remembered of one test."""

    def remember(self, session, request, status):
        """An answer has come."""

    def operation(self, request, headers):
        """What a request does, for people."""
        raise NotImplementedError

    def scope(self, request):
        """What a value that is learned belongs to."""
        return request.path

    def path(self, session, request):
        return request.path

    def body(self, session, entry):
        """The body of a request, with values of earlier answers."""
        if "xml" not in lower(entry.headers).get("content-type", ""):
            return entry.body
        text = entry.body.decode()
        if "comp=acl" in entry.uri:
            prolong_policies(session, text, lower(entry.headers)["x-ms-date"])
        return session.learned.apply(text).encode()

    def learn_header(self, session, name, live, here, scope):
        """Learns a value that is new on every answer; False if another one was given out for the same before."""
        if name != "x-ms-request-id":
            session.learned.put(live, here, scope)
        return True

    def settle(self, session, difference):
        """Names a difference more exactly by what the test did."""

    def body_differences(self, session, entry, request, headers, data):
        raise NotImplementedError


def prolong_policies(session, text, recorded_date):
    """A policy that was valid when it was recorded has to be valid now."""
    recorded = parsedate_to_datetime(recorded_date).strftime("%Y-%m-%dT%H:%M:%S")
    for expiry in re.findall(r"<Expiry>([^<]{19})", text):
        if recorded < expiry < "2090":
            session.learned.put(expiry, "2099" + expiry[4:])


def recorded_text(answer):
    return "" if answer is None else answer if isinstance(answer, str) else "".join(answer)


def mark_difference(live, here):
    """The byte order mark that XML answers begin with."""
    marks = [text.startswith("\ufeff") for text in (live, here)]
    if marks[0] != marks[1]:
        yield Difference("xml byte order mark", "$", *marks)


def xml_differences(live, here):
    """Two XML texts, and the codes of errors in them."""
    if live == here:
        return
    codes = [(re.findall(r"<(?:\w:)?[Cc]ode>(.*?)<", text) or [""])[0] for text in (live, here)]
    if codes[0] != codes[1]:
        yield Difference("error code", "$xml", *codes)
    yield Difference("xml", "$", live, here)


def xml_text(text):
    return without_ids(text.removeprefix("\ufeff"))


def sections(text):
    """Names of the sections that a document of service properties has."""
    return set(re.findall(rf"<({'|'.join(SECTIONS)})\b", text))


def section_differences(live, here, already_set):
    """Differences of service properties, section by section; returns the texts without what was compared.

    A section that the test has not set is a setting of the recorded account.
    """
    if not all("<StorageServiceProperties>" in text for text in (live, here)):
        return live, here
    for name in SECTIONS:
        element = rf"<{name} ?/>|<{name}>.*?</{name}>"
        texts = [(re.findall(element, text, re.S) or [""])[0] for text in (live, here)]
        if texts[0] != texts[1]:
            yield Difference("xml section" if name in already_set else "xml unset section", name, *texts)
        live, here = (re.sub(element, f"<{name}/>", text, flags=re.S) for text in (live, here))
    return live, here
