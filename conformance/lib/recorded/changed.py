"""The self-check: an expected answer that is changed must be reported, or equal answers would prove nothing.

Each kind of change is made to the first recorded answer that it fits, among the files that were replayed without a
difference; everything before it in its file is replayed as well.
"""

import base64
import copy
import json
import re

#: These may be extra or new in an answer of ours, whatever the live service sent.
UNCHECKED_HEADERS = {"date", "server", "transfer-encoding", "content-length", "connection", "x-ms-request-id", "x-ms-version",
                     "x-ms-client-request-id"}
#: These are new on every answer.
NEW_MEMBERS = {"Timestamp", "odata.etag"}
#: An element with text that is not, or not in this form.
OLD_ELEMENT = r"<(?!(?:MessageId|\w*Time|TimeNextVisible|PopReceipt)>)(\w+)>([^<]+)</\1>"


def first_fit(change, recordings):
    """A recording up to the first entry that the change fits, with that changed; None if it fits none."""
    for recording in recordings:
        for place, entry in enumerate(recording.entries):
            changed = copy.deepcopy(entry)
            if not entry.is_login() and change(changed):
                part = copy.copy(recording)
                part.entries = [*recording.entries[:place], changed]
                return part
    return None


def status(entry):
    entry.status += 1
    return True


def header_value(entry):
    return _with_header(entry, lambda headers, name: headers.update({name: headers[name] + "x"}))


def header_left_out(entry):
    return _with_header(entry, lambda headers, name: headers.pop(name))


def header_added(entry):
    entry.answer_headers["x-ms-added"] = "x"
    return True


def _with_header(entry, change):
    names = sorted(name for name in entry.answer_headers.keys() - UNCHECKED_HEADERS if name in ("content-type", "cache-control"))
    if names:
        change(entry.answer_headers, names[0])
    return bool(names)


def json_value(entry):
    return _with_member(entry, lambda row, name: row.update({name: row[name] + "x"}))


def json_type(entry):
    return _with_member(entry, lambda row, name: row.update({name: 7}))


def json_member_left_out(entry):
    return _with_member(entry, lambda row, name: row.pop(name))


def json_order(entry):
    row = _row(entry)
    if not row or len(row) < 2:
        return False
    for name in list(reversed(row)):
        row[name] = row.pop(name)
    return True


def json_row_left_out(entry):
    rows = entry.answer.get("value") if isinstance(entry.answer, dict) else None
    return isinstance(rows, list) and len(rows) > 1 and "PartitionKey" in rows[0] and bool(rows.pop())


def _row(entry):
    """An entity of the answer."""
    answer = entry.answer if isinstance(entry.answer, dict) else {}
    rows = answer.get("value")
    row = rows[0] if isinstance(rows, list) and rows else answer
    return row if isinstance(row, dict) and "PartitionKey" in row else None


def _with_member(entry, change):
    row = _row(entry) or {}
    names = [name for name, value in row.items() if isinstance(value, str) and name not in NEW_MEMBERS]
    if names:
        change(row, names[-1])
    return bool(names)


def error_code(entry):
    return _with_error(entry, lambda error: error.update({"code": error["code"] + "x"}))


def error_message(entry):
    return _with_error(entry, lambda error: error["message"].update({"value": "x" + error["message"]["value"]}))


def _with_error(entry, change):
    error = entry.answer.get("odata.error") if isinstance(entry.answer, dict) else None
    if error:
        change(error)
    return bool(error)


def batch_status(entry):
    return _with_batch(entry, "HTTP/1.1 204 No Content", "HTTP/1.1 200 OK")


def batch_header(entry):
    return _with_batch(entry, "DataServiceVersion: 3.0;", "DataServiceVersion: 2.0;") or _with_batch(entry, "Cache-Control: ", "Cache-Contro1: ")


def _with_batch(entry, old, new):
    if not entry.answer_type().startswith("multipart/"):
        return False
    text = base64.b64decode(entry.answer).decode() if isinstance(entry.answer, str) else "".join(entry.answer)
    entry.answer = base64.b64encode(text.replace(old, new, 1).encode()).decode()
    return old in text


def xml_text(entry):
    return _with_xml(entry, OLD_ELEMENT, r"<\1>\2x</\1>")


def xml_element_left_out(entry):
    return _with_xml(entry, OLD_ELEMENT, "")


def xml_error_code(entry):
    return _with_xml(entry, r"<Code>", "<Code>x")


def xml_error_text(entry):
    return _with_xml(entry, r"<Message>", "<Message>x")


def xml_error_detail(entry):
    return _with_xml(entry, r"</Message><(\w+)>", r"</Message><\1>x")


def message_order(entry):
    """Two messages of one answer in the other order; their ids were learned when they were sent."""
    return _with_xml(entry, r"(<QueueMessage>.*?</QueueMessage>)(<QueueMessage>.*?</QueueMessage>)", r"\2\1")


def message_left_out(entry):
    return _with_xml(entry, r"<QueueMessage>.*?</QueueMessage>", "")


def message_id(entry):
    return _with_xml(entry, r"<MessageId>.*?<(?=.*<DequeueCount>)", "<MessageId>00000000-0000-0000-0000-000000000000<")


def message_expires_earlier(entry):
    return _with_xml(entry, r"<ExpirationTime>.*?<", "<ExpirationTime>Sat, 01 Jan 2000 00:00:00 GMT<")


def message_visible_earlier(entry):
    return _with_xml(entry, r"<TimeNextVisible>.*?<", "<TimeNextVisible>Sat, 01 Jan 2000 00:00:00 GMT<")


def receipt_kind(entry):
    return _with_xml(entry, r"<PopReceipt>A", "<PopReceipt>B")


def receipt_of_an_update(entry):
    receipt = entry.answer_headers.get("x-ms-popreceipt")
    entry.answer_headers["x-ms-popreceipt"] = f"B{receipt[1:]}" if receipt else ""
    return bool(receipt)


def _with_xml(entry, old, new):
    """Not in settings, which are those of the recorded account where a test has not set them."""
    if isinstance(entry.answer, list) and all(isinstance(line, str) for line in entry.answer):
        entry.answer = "".join(entry.answer)
    if not isinstance(entry.answer, str) or "xml" not in entry.answer_type() or "<StorageServiceProperties>" in entry.answer:
        return False
    before = entry.answer
    entry.answer = re.sub(old, new, before, count=1)
    return entry.answer != before


def body_left_out(entry):
    had_one = bool(entry.answer) and entry.method != "HEAD"
    entry.answer = None
    return had_one


def body_added(entry):
    had_none = entry.answer in (None, "") and entry.status == 204
    entry.answer = json.loads('{"added": 1}')
    return had_none


#: What each service's answers are made of.
EVERYWHERE = (status, header_value, header_left_out, header_added, xml_text, xml_element_left_out)
OF_TABLES = (json_value, json_type, json_member_left_out, json_order, json_row_left_out, error_code, error_message, batch_status,
             batch_header, body_left_out, body_added)
OF_QUEUES = (xml_error_code, xml_error_text, xml_error_detail, message_order, message_left_out, message_id, message_expires_earlier,
             message_visible_earlier, receipt_kind, receipt_of_an_update)


def changes(service):
    return EVERYWHERE + {"table": OF_TABLES, "queue": OF_QUEUES}.get(service, ())
