"""The third oracle: what the wire reference says that a row and a filter mean (sections 4, 6 and 8).

It exists so that a difference from Azurite on rows can be listed broadly without hiding a mistake of ours: our own
answer is checked against this model whether or not Azurite agrees.
"""

import datetime
import fnmatch
import json
import re
import urllib.parse

from client import message

ETAG = re.compile(r"W/\"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'\"$")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,6}[1-9])?Z$")
ANNOTATED = ("Edm.DateTime", "Edm.Guid", "Edm.Int64", "Edm.Binary")


def url_keys(pk, rk):
    """The key predicate as answers spell it: quotes doubled and raw, the rest percent-encoded."""
    enc = lambda key: urllib.parse.quote(key.replace("'", "''"), safe="'()!*~-._,;:@&=+$")
    return f"(PartitionKey='{enc(pk)}',RowKey='{enc(rk)}')"


def same_text(left, right):
    return urllib.parse.unquote(left) == urllib.parse.unquote(right)


def check_entity(got, row, keys, level, select, table, base, top):
    """Compares one entity of our answer with the model's row; gives a text for the first mistake."""
    pk, rk = keys
    want = {}
    if top and level != "none":
        suffix = "&$select=" + select if select is not None else ""
        want["odata.metadata"] = f"{base}/$metadata#{table}/@Element{suffix}"
    if level == "full":
        want["odata.type"] = "devstoreaccount1." + table
        want["odata.id"] = f"{base}/{table}{url_keys(pk, rk)}"
        want["odata.editLink"] = f"{table}{url_keys(pk, rk)}"
    if level != "none":
        want["odata.etag"] = ETAG
    names = [name.strip() for name in select.split(",")] if select else None
    everything = {"PartitionKey": ("Edm.String", pk), "RowKey": ("Edm.String", rk), "Timestamp": ("Timestamp", TIMESTAMP), **row}
    for name in names if names is not None and "*" not in names else everything:
        if name not in everything:
            want[name] = None
            continue
        edm, value = everything[name]
        if edm == "Timestamp":
            if level == "full":
                want["Timestamp@odata.type"] = "Edm.DateTime"
        elif level != "none" and (edm in ANNOTATED or (edm == "Edm.Double" and isinstance(value, str))):
            want[name + "@odata.type"] = edm
        want[name] = value
    for name in sorted(set(want) | set(got)):
        if name not in got:
            return f"{name} is missing, wanted {want[name]!r}"
        if name not in want:
            return f"{name} = {got[name]!r} is not wanted"
        expected, found = want[name], got[name]
        if isinstance(expected, re.Pattern):
            if not (isinstance(found, str) and expected.match(found)):
                return f"{name} = {found!r} has the wrong form"
        elif name in ("odata.id", "odata.editLink"):
            if not same_text(expected, found):
                return f"{name} = {found!r}, wanted {expected!r}"
        elif type(expected) is not type(found) or expected != found:
            return f"{name} = {found!r}, wanted {expected!r}"
    return ""


# ---- filters -------------------------------------------------------------------------------------------------------

WIDENS = {("Edm.Int32", "Edm.Int32"), ("Edm.Int64", "Edm.Int32"), ("Edm.Int64", "Edm.Int64"), ("Edm.Double", "Edm.Int32"),
          ("Edm.Double", "Edm.Int64"), ("Edm.Double", "Edm.Double")}
NUMBERS = {"Edm.Int32", "Edm.Int64", "Edm.Double"}


def order_of(edm, value):
    """A value that Python orders as the service does."""
    if edm == "Edm.String":
        return value.encode("utf-16-be", "surrogatepass")
    if edm in NUMBERS:
        return float(value) if edm == "Edm.Double" else int(value)
    if edm == "Edm.DateTime":
        return ticks(value)
    return value


def ticks(text):
    head, _, rest = text.rstrip("Z").partition(".")
    moment = datetime.datetime.fromisoformat(head) - datetime.datetime(1601, 1, 1)
    return (moment.days * 86400 + moment.seconds) * 10_000_000 + int(rest.ljust(7, "0") or 0)


def compare_values(prop, op, literal):
    """One comparison of a stored value with a literal, both as (edm, value)."""
    (left_type, left), (right_type, right) = prop, literal
    numeric = left_type in NUMBERS and right_type in NUMBERS
    if left_type != right_type and not (numeric and (left_type, right_type) in WIDENS):
        return op in ("ne", "lt", "le")  # A stored value of another type counts as less.
    a, b = order_of(left_type, left), order_of(right_type, right)
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op]


def matches(tree, keys, row):
    kind = tree[0]
    if kind == "and":
        return matches(tree[1], keys, row) and matches(tree[2], keys, row)
    if kind == "or":
        return matches(tree[1], keys, row) or matches(tree[2], keys, row)
    if kind == "not":
        return not matches(tree[1], keys, row)
    everything = {**row, "PartitionKey": ("Edm.String", keys[0]), "RowKey": ("Edm.String", keys[1])}
    if kind == "prop":
        return everything.get(tree[1]) == ("Edm.Boolean", True)
    if kind == "const":
        return tree[1]
    _, name, op, literal = tree
    return name in everything and compare_values(everything[name], op, literal)


def sort_key(keys):
    return tuple(key.encode("utf-16-be", "surrogatepass") for key in keys)


#: What an error says, by its code: clients match on these texts (sections 5, 9.4, 10 and 11.2).
MESSAGES = {
    "TableAlreadyExists": "The table specified already exists.", "TableNotFound": "The table specified does not exist.",
    "ResourceNotFound": "The specified resource does not exist.", "EntityAlreadyExists": "The specified entity already exists.",
    "UpdateConditionNotSatisfied": "The update condition specified in the request was not satisfied.",
    "PropertiesNeedValue": "The values are not specified for all properties in the entity.",
    "PropertyNameInvalid": "The property name is invalid.", "PropertyNameTooLong": "The property name exceeds the maximum allowed length (255).",
    "PropertyValueTooLarge": "The property value exceeds the maximum allowed size (64KB)*", "EntityTooLarge": "The entity is larger than *",
    "TooManyProperties": "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.",
    "DuplicatePropertiesSpecified": "A property is specified more than one time.",
    "InvalidResourceName": "The specifed resource name contains invalid characters.",
    "OutOfRangeInput": ["The specified resource name length is not within the permissible limits.", "The '*' parameter of value '*' is out of range.", "One of the request inputs is out of range."],
    "InvalidInput": ["One of the request inputs is not valid.", "An error occurred while processing this request.", "Syntax error at position * in '*'.", "Bad Request - Error in query syntax.",
                     "The number of keys specified in the URI does not match number of key properties for the resource '*'.", "The etag value '*' specified in one of the request headers is not valid. *",
                     "Unrecognized 'Edm.*' literal *", "The operator '*' is not supported for the 'null' literal; only equality checks are supported.", "*If-Match*",
                     "A binary operator with incompatible types was detected. Found operand types 'Edm.*' and 'Edm.*' for operator kind '*'.",
                     "A unary operator with an incompatible type was detected. Found operand type 'Edm.*' for operator kind 'Not'."],
    "InvalidXmlDocument": "XML specified is not syntactically valid.", "NotImplemented": "The requested operation is not implemented on the specified resource.",
    # A second line may say which time, policy or field was wrong: it tells a stranger nothing.
    "AuthenticationFailed": [
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.",
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.\n*",
    ],
    "AuthorizationFailure": "This request is not authorized to perform this operation.",
    "AuthorizationPermissionMismatch": "This request is not authorized to perform this operation using this permission.",
    "CorsPreflightFailure": "CORS not enabled or no matching rule found for this request.",
}


def check_error(answer):
    """Whether an error of ours has the form and the text of its code."""
    text = answer.body.decode("utf-8", "replace")
    if answer.status < 400 or not text:
        return ""
    given = re.search(r"RequestId:(\S+?)(?:\\n|\n|\r)", text)
    if not given or given.group(1) != answer.header("x-ms-request-id"):
        return f"RequestId in the body is not x-ms-request-id {answer.header('x-ms-request-id')!r}: {text[-200:]!r}"
    if not re.search(r"Time:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", text):
        return f"no Time with seven digits: {text[-200:]!r}"
    wanted = MESSAGES.get(answer.code(), "*")
    wanted = [wanted] if isinstance(wanted, str) else wanted
    plain = lambda pattern: re.sub(r"[\[?]", lambda m: f"[{m.group(0)}]", pattern)
    if not any(fnmatch.fnmatchcase(message(answer), plain(pattern)) for pattern in wanted):
        return f"the message of {answer.code()} is {message(answer)!r}"
    return ""


def parse_json(answer):
    return json.loads(answer.body.decode("utf-8"))
