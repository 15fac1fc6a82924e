"""Replays the recordings of a service and reports each file as a case.

    python3 -m recorded SERVICE --accepted FILE [--recordings DIR] [--only TEXT] [--show CLASS]

SERVICE is table, queue or blob, `TAVOLA_BIN` the server's binary. Without recordings the reason is printed and the exit
code is 78.
"""

import argparse
import collections
import json
import os
import sys
from pathlib import Path

from . import changed, recordings
from .accepted import CLASSES, Accepted
from .compare import Difference
from .server import Server
from .services import SERVICES
from .session import Session

#: What conformance/run takes for "skipped", also where a client that is not at hand would be a failure.
NOT_AT_HAND = 78


def main():
    parser = argparse.ArgumentParser(prog="recorded", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service", choices=sorted(SERVICES))
    parser.add_argument("--accepted", required=True, help="list of differences that were looked at")
    parser.add_argument("--recordings", type=Path, help="folder to take instead of the service's own")
    parser.add_argument("--only", default="", help="only files whose names hold this")
    parser.add_argument("--show", choices=CLASSES, help="print the accepted differences of a class")
    arguments = parser.parse_args()
    folder = arguments.recordings or recordings.folder(arguments.service)
    if folder is None:
        print(f"no recordings of the live {arguments.service} service beside the project, nor where TAVOLA_RECORDINGS says")
        return NOT_AT_HAND
    replay = Replay(arguments, Accepted(arguments.accepted))
    files = replay.replayable(recordings.read_all(folder, arguments.only))
    changes = changed.changes(arguments.service)
    with Server(os.environ["TAVOLA_BIN"], arguments.service, len(files) + len(changes)) as server:
        replay.connect(server)
        equal = [recording for recording in files if replay.file(recording)]
        if not arguments.only and not arguments.recordings:
            stale = replay.accepted.stale()
            report("list: every accepted difference is still there", "\n".join(map(str, stale)))
        # A few files need not have an answer for each change.
        for change in changes if not arguments.only else ():
            replay.self_check(change, equal)
        report("server: it logs no error", "\n".join(server.errors()))
    replay.summary()
    return 0


class Replay:
    def __init__(self, arguments, accepted):
        self.service, self.accepted, self.show = SERVICES[arguments.service], accepted, arguments.show
        self.counts, self.address, self.accounts = collections.Counter(), None, None

    def connect(self, server):
        self.address, self.accounts = server.address(), iter(server.accounts)

    def replayable(self, files):
        """Those that need no token of the recorded issuer, and speak to this service rather than to Cosmos."""
        out = []
        for recording in files:
            if recording.needs_bearer_token():
                self.counts["exchanges left out: bearer token"] += len(recording.entries)
            elif "cosmos" in recording.name.lower():
                self.counts["exchanges left out: Cosmos"] += len(recording.entries)
            else:
                out.append(recording)
        return out

    def file(self, recording):
        """Replays a file as a case; whether its answers were equal, but for differences that the list has."""
        found = self.differences(recording)
        real, classes = self.classify(found)
        self.counts["exchanges"] += len(recording.entries)
        for name in CLASSES:
            self.counts[f"differences: {name}"] += classes[name]
        self.counts["differences: real"] += len(real)
        report(f"replay: {short(recording.name)}", "\n".join(map(str, real)))
        return not real

    def self_check(self, change, equal):
        """A changed answer must be reported, where it was changed, and by no entry of the list accepted."""
        recording = changed.first_fit(change, equal)
        name = f"self-check: {change.__name__.replace('_', ' ')} is reported"
        if recording is None:
            report(name, "no recorded answer that this change fits was replayed as equal")
            return
        last = len(recording.entries) - 1
        real = [one for one in self.differences(recording) if self.accepted.find(one) is None]
        is_reported = real and all(one.index == last and one.aspect != "exception" for one in real)
        report(name, "" if is_reported else f"{recording.name}[{last}]: {[str(one) for one in real]}")

    def differences(self, recording):
        """All differences of a file that begins with an empty account."""
        session, found = Session(self.service, self.address, *next(self.accounts)), []
        for index, entry in enumerate(recording.entries):
            operation, request = "", entry.uri
            try:
                operation, request, new = session.exchange(entry, recording.headers_cut())
            except Exception as error:
                new = [Difference("exception", "", "", f"{type(error).__name__}: {error}")]
                session.close()
                session.connection = None
            for one in new:
                one.file, one.index, one.operation, one.request = recording.name, index, operation, request
            found += new
        session.close()
        return found

    def classify(self, found):
        real, classes = [], collections.Counter()
        for one in found:
            entry = self.accepted.find(one)
            if entry is None:
                real.append(one)
                continue
            classes[entry["class"]] += 1
            if entry["class"] == self.show:
                print(f"{one.file} {one}\n  accepted: {entry['reason']}")
        return real, classes

    def summary(self):
        for name, count in self.counts.items():
            print(f"{count:>6} {name}")


def short(name):
    """`test_table_batch.pyTestTableBatchtest_too_many` as `test_table_batch test_too_many`."""
    file, _, rest = name.partition(".py")
    return f"{file} {rest[rest.find('test_'):]}" if "test_" in rest else name


def report(case, detail):
    """A case is good when there is nothing to say about it."""
    print(f"{'FAILED' if detail else 'ok    '} {case}" + (f"\n{detail}" if detail else ""), flush=True)
    if "TAVOLA_RESULTS" in os.environ:
        with open(os.environ["TAVOLA_RESULTS"], "a") as results:
            results.write(json.dumps({"case": case, "ok": not detail, "detail": detail[:4000]}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
