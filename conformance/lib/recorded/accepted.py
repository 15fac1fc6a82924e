"""The list of differences that were looked at.

An entry matches when all of its patterns do: `*` is the only wildcard, a list gives alternatives, a missing pattern
matches anything. Its class says what kind of difference it is:

    documented  the server differs, and docs/compatibility.md says so
    settings    it depends on time, or on settings and earlier contents of the recorded account
    harness     a replay cannot decide
"""

import fnmatch
import re
import tomllib

CLASSES = ("documented", "settings", "harness")
PATTERNS = ("aspect", "where", "operation", "file", "live", "here")


class Accepted:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.entries = tomllib.load(file)["difference"]
        for entry in self.entries:
            unknown = set(entry) - {*PATTERNS, "class", "reason"}
            if unknown or entry.get("class") not in CLASSES or not entry.get("reason") or not set(entry) & set(PATTERNS):
                raise ValueError(f"{path}: an entry is not well formed: {entry}")
        self.used = [0] * len(self.entries)

    def find(self, difference):
        """The entry that accepts a difference, if any does."""
        for place, entry in enumerate(self.entries):
            if all(_matches(entry.get(name, "*"), str(getattr(difference, name))) for name in PATTERNS):
                self.used[place] += 1
                return entry
        return None

    def stale(self):
        return [entry for entry, used in zip(self.entries, self.used) if not used]


def _matches(pattern, value):
    alternatives = pattern if isinstance(pattern, list) else [pattern]
    return any(fnmatch.fnmatchcase(value, re.sub(r"[\[?]", r"[\g<0>]", one)) for one in alternatives)
