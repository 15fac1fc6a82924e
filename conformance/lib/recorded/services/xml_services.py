"""Queues and blobs: the long form of SharedKey, and answers in XML. Here is what they share, and blobs."""

import re

from .. import signing
from ..compare import Difference
from ..learned import DATE, GUID, TIME
from ..recordings import to_bytes
from .service import Service, mark_difference, recorded_text, xml_differences, xml_text


class XmlService(Service):
    shared_key = staticmethod(signing.shared_key_of_others)
    #: What a path of that many names addresses.
    levels = ()
    #: Elements whose text is new on every answer, and learned.
    new_elements = ()

    def operation(self, request, headers):
        query = dict(signing.parameters(request.query))
        names = [name for name in request.path.split("/") if name]
        words = [request.method, self.levels[min(len(names), len(self.levels) - 1)]]
        words += [query[name] for name in ("comp", "peekonly") if name in query]
        words += [headers[name] for name in ("x-ms-lease-action", "x-ms-blob-type") if name in headers]
        words += ["copy"] * ("x-ms-copy-source" in headers) + ["SAS"] * ("sig" in query)
        return " ".join(words)

    def path(self, session, request):
        return session.learned.apply(request.path, request.scope)

    def body_differences(self, session, entry, request, headers, data):
        if "xml" not in entry.answer_type():
            recorded = to_bytes(entry.answer, "application/octet-stream", entry.answer_headers.get("content-length"))
            if data not in (recorded, recorded_text(entry.answer).encode() if not isinstance(entry.answer, dict) else b""):
                yield Difference("body", "$", recorded[:80], data[:80])
            return
        live, here = recorded_text(entry.answer), data.decode("utf-8", "replace")
        yield from mark_difference(live, here)
        live, here = xml_text(session.to_here(live)), xml_text(here)
        for name in self.new_elements:
            element = rf"<{name}>([^<]*)</{name}>"
            for old, new in zip(re.findall(element, live), re.findall(element, here)):
                session.learned.put(old, new)
            live, here = (re.sub(element, f"<{name}/>", text) for text in (live, here))
        yield from xml_differences(session.learned.apply(live), here)


class Blob(XmlService):
    name, token = "blob", staticmethod(signing.blob_token)
    levels = ("service", "container", "blob")
    header_forms = {
        **Service.header_forms, "last-modified": DATE, "etag": r'"0x[0-9A-F]{15,16}"', "x-ms-snapshot": TIME,
        "x-ms-version-id": TIME, "x-ms-lease-id": GUID, "x-ms-copy-id": GUID, "x-ms-creation-time": DATE,
        "x-ms-copy-completion-time": DATE, "x-ms-access-tier-change-time": DATE,
    }
    new_elements = ("Etag", "Last-Modified", "Creation-Time", "Snapshot", "VersionId", "NextMarker", "CopyId", "CopyCompletionTime",
                    "AccessTierChangeTime", "DeletedTime", "SignedStart", "SignedExpiry")
