"""The reviewed list of differences that a differential run may find."""

import fnmatch
import re
import tomllib
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    op: str
    cond: str
    field: str
    tavola: str
    azurite: str

    def __str__(self):
        return f"{self.op} | {self.cond} | {self.field}: tavola {self.tavola[:300]!r}, azurite {self.azurite[:300]!r}"


class Known:
    """The reviewed list. An entry matches when each of its patterns does; a missing pattern matches anything."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.entries = tomllib.load(file)["difference"]
        for entry in self.entries:
            unknown = set(entry) - {"operation", "condition", "field", "tavola", "azurite", "reason", "reference"}
            assert not unknown and entry["reason"] and entry["reference"], f"entry {entry} is not well formed"
            entry["used"] = 0

    def find(self, difference):
        for entry in self.entries:
            pairs = [("operation", difference.op), ("condition", difference.cond), ("field", difference.field), ("tavola", difference.tavola), ("azurite", difference.azurite)]
            if all(any(fnmatch.fnmatchcase(value, escape(pattern)) for pattern in alternatives(entry.get(name, "*"))) for name, value in pairs):
                entry["used"] += 1
                return entry
        return None

    def stale(self):
        return [entry for entry in self.entries if not entry["used"]]


def alternatives(pattern):
    return pattern if isinstance(pattern, list) else [pattern]


def escape(pattern):
    """Only `*` is a wildcard: brackets and question marks stand for themselves."""
    return re.sub(r"[\[?]", lambda m: f"[{m.group(0)}]", pattern)
