"""The recordings: one file is one test, its requests in order with the answers of the live service."""

import base64
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

#: Beside the project, unless `TAVOLA_RECORDINGS` says where.
BESIDE = Path(__file__).resolve().parents[4] / "shared" / "recordings"

LOGIN_HOSTS = ("login.microsoftonline.com", "management.azure.com", "sts.windows.net")
REQUEST_IDS = {"x-ms-request-id", "x-ms-client-request-id"}


def folder(service):
    """Where the recordings of a service are, and None when they are not at hand."""
    found = Path(os.environ.get("TAVOLA_RECORDINGS") or BESIDE) / service
    return found if any(found.glob("*.json")) else None


@dataclass
class Entry:
    """A request, and the answer of the live service to it."""

    uri: str
    method: str
    headers: dict
    body: bytes
    status: int
    answer_headers: dict
    #: As it was recorded: a JSON value, text, base64 or lines.
    answer: object

    @classmethod
    def read(cls, raw):
        headers = {name: value if isinstance(value, str) else ", ".join(value) for name, value in raw["RequestHeaders"].items()}
        low = lower(headers)
        body = to_bytes(raw["RequestBody"] or None, low.get("content-type", ""), low.get("content-length"))
        answer = None if raw["ResponseBody"] == [] else raw["ResponseBody"]
        return cls(raw["RequestUri"], raw["RequestMethod"], headers, body, raw["StatusCode"], lower(raw["ResponseHeaders"]), answer)

    def is_login(self):
        return any(host in self.uri for host in LOGIN_HOSTS)

    def answer_type(self):
        return self.answer_headers.get("content-type", "")


@dataclass
class Recording:
    """One file."""

    name: str
    entries: list = field(default_factory=list)

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8") as file:
            return cls(path.stem, [Entry.read(raw) for raw in json.load(file)["Entries"]])

    def needs_bearer_token(self):
        """Authorization is cut from the recordings, so the name and the logins tell."""
        return bool(re.search(r"(?i)aad|challenge_auth|oauth|token_cred", self.name)) or any(entry.is_login() for entry in self.entries)

    def headers_cut(self):
        """Later recordings were made without request ids, in requests and in answers."""
        seen = {name for entry in self.entries for name in [*lower(entry.headers), *entry.answer_headers]}
        return set() if seen & REQUEST_IDS else REQUEST_IDS


def read_all(path, only=""):
    return [Recording.read(file) for file in sorted(path.glob("*.json")) if only in file.name]


def lower(headers):
    """Headers by names in lower case; repeated ones joined as on the wire."""
    return {name.lower(): ", ".join(value) if isinstance(value, list) else value for name, value in headers.items()}


def to_bytes(value, content_type, length=None):
    """The bytes of a recorded body. JSON is written as the recorded client wrote it, which its Content-Length shows."""
    if value is None:
        return b""
    if isinstance(value, dict):
        return json.dumps(value).encode()
    if isinstance(value, list):
        return "".join(value).encode() if all(isinstance(line, str) for line in value) else json.dumps(value).encode()
    text = value.encode()
    if not content_type.startswith(("multipart/", "application/octet-stream")):
        return text
    try:
        data = base64.b64decode(value, validate=True)
    except ValueError:
        return text
    # Text may happen to be base64 as well; the length tells.
    return text if length == str(len(text)) != str(len(data)) else data
