"""What servers give out: the forms of it, and the recorded text with the text of the server under test for each."""

import urllib.parse

GUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,7})?Z"
TABLE_ETAG = r"W/\"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(?:\.\d{1,7})?Z'\""
DATE = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"


class Learned:
    """Values of earlier answers. One value may stand for several: entities of one batch share a timestamp in the
    recording and not here, so each is kept for its scope as well."""

    def __init__(self):
        self.anywhere, self.scoped = {}, {}

    def put(self, recorded, actual, scope=None):
        if recorded and actual and recorded != actual:
            self.anywhere[recorded] = actual
            self.scoped[scope, recorded] = actual

    def get(self, recorded, scope=None):
        return self.scoped.get((scope, recorded)) or self.anywhere.get(recorded)

    def same_or_new(self, recorded, actual, scope):
        """Whether a value that is new on every answer is the one that was learned for this scope; a new one is learned."""
        known = self.scoped.get((scope, recorded))
        if known is None:
            self.put(recorded, actual, scope)
        return known in (None, actual)

    def apply(self, text, scope=None):
        """The text with every known value replaced, in plain and in percent-encoded form."""
        for recorded in sorted(self.anywhere, key=len, reverse=True):
            actual = self.get(recorded, scope)
            for form in (str, urllib.parse.quote, lambda value: urllib.parse.quote(value, safe="")):
                if form(recorded) in text:
                    text = text.replace(form(recorded), form(actual))
        return text
