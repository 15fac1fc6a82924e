"""Signatures of now: SharedKey of tables and of the other services, account and service shared access signatures."""

import base64
import collections
import datetime
import hashlib
import hmac
import urllib.parse

#: Signs where the live service was recorded to refuse a signature.
WRONG_KEY = base64.b64encode(b"another key").decode()
#: Tokens begin and end this far from now.
LIFETIME = datetime.timedelta(hours=1)


def parameters(query):
    """The query as [(name, value)], decoded, in order."""
    return urllib.parse.parse_qsl(query, keep_blank_values=True)


def sign(key, text):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def shared_key_of_tables(method, path, query, headers, account):
    """Verb, MD5, type, date, and of the query `comp` alone."""
    comp = dict(parameters(query)).get("comp")
    resource = f"/{account}{path}" + (f"?comp={comp}" if comp else "")
    date = headers.get("x-ms-date") or headers.get("date", "")
    return "\n".join([method, headers.get("content-md5", ""), headers.get("content-type", ""), date, resource])


def shared_key_of_others(method, path, query, headers, account):
    """Twelve lines, the headers of the service, and all of the query."""
    names = ["content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
             "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]
    values = {name: headers.get(name, "") for name in names}
    if values["content-length"] == "0":
        values["content-length"] = ""
    if "x-ms-date" in headers:
        values["date"] = ""
    own = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers) if name.startswith("x-ms-"))
    query_values = collections.defaultdict(list)
    for name, value in parameters(query):
        query_values[name.lower()].append(value)
    resource = f"/{account}{path}" + "".join(f"\n{name}:{','.join(sorted(query_values[name]))}" for name in sorted(query_values))
    return "\n".join([method, *values.values()]) + "\n" + own + resource


def token_now(query, account, key, path, service_text):
    """The query with the times of its token moved to now and its signature made anew, all else as it was.

    `service_text(fields, account, path)` is what a token of the service signs.
    """
    now = datetime.datetime.now(datetime.timezone.utc)
    fields = dict(parameters(query))
    for name, moment in (("st", now - LIFETIME), ("se", now + LIFETIME)):
        if name in fields:
            fields[name] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    text = account_token(fields, account) if "srt" in fields else service_text(fields, account, path)
    fields["sig"] = sign(key, text)

    def piece(text):
        name = text.split("=")[0]
        return f"{name}={urllib.parse.quote(fields[name], safe='')}" if name in ("st", "se", "sig") else text

    return "&".join(piece(text) for text in query.split("&"))


def account_token(fields, account):
    lines = [account] + [fields.get(name, "") for name in ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")]
    if fields.get("sv", "") >= "2020-12-06":
        lines.append(fields.get("ses", ""))
    return "\n".join(lines) + "\n"


def table_token(fields, account, _path):
    resource = f"/table/{account}/{fields.get('tn', '').lower()}"
    return _lines(fields, ["sp", "st", "se"], [resource], ["si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"])


def queue_token(fields, account, path):
    resource = f"/queue/{account}/{path.split('/')[1]}"
    return _lines(fields, ["sp", "st", "se"], [resource], ["si", "sip", "spr", "sv"])


def blob_token(fields, account, path):
    _, container, blob = (urllib.parse.unquote(path).split("/", 2) + ["", ""])[:3]
    kind, version = fields.get("sr", ""), fields.get("sv", "")
    resource = f"/blob/{account}/{container or '$root'}" + (f"/{blob}" if kind != "c" and blob else "")
    since_2018 = []
    if version >= "2018-11-09":
        moment = fields.get("snapshot", "") or fields.get("versionid", "")
        since_2018 = [kind, moment if kind in ("bs", "bv") else ""]
    if version >= "2020-12-06":
        since_2018.append(fields.get("ses", ""))
    head = _lines(fields, ["sp", "st", "se"], [resource], ["si", "sip", "spr", "sv"])
    return "\n".join([head, *since_2018, *(fields.get(name, "") for name in ("rscc", "rscd", "rsce", "rscl", "rsct"))])


def _lines(fields, before, resource, after):
    return "\n".join([fields.get(name, "") for name in before] + resource + [fields.get(name, "") for name in after])
