"""Replays recorded exchanges with the live service against the server, and compares the answers.

    recordings.py   the files: what was asked, what was answered
    signing.py      signatures and tokens of now in place of those that were cut out
    learned.py      what a server gives out (ETags, times, ids), replaced by what the other one gave out
    session.py      one file against one account: send, compare, learn
    compare.py      differences of JSON, XML and multipart bodies
    services/       what is particular to tables, and to queues and blobs
    accepted.py     the list of differences that were looked at
    changed.py      the self-check: a changed answer is reported
    server.py       a server of its own, with an account for every file

`python3 -m recorded SERVICE --accepted FILE` is what the suites run.
"""
