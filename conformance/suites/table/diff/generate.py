"""Makes the requests: a seeded walk over all operations, with what the wire reference expects of each.

A scenario works on one fresh table. `Scenario.next` gives the next request, chosen by weight among the families below;
each family is a method that ends in a `Request`. Where the reference fixes the answer, the request says so (`expect`,
`check`), so that both servers being wrong in the same way is noticed too.
"""

import base64
import copy
import json
import re
import urllib.parse

import model
from client import Request

JSON = "application/json"
LEVELS = {"none": "nometadata", "minimal": "minimalmetadata", "full": "fullmetadata"}
KEYS = ["a", "b", "B", "O'Brien", "a b", "100%", "%20", "a+b", "Grün", "日本", "😀", "(x)", "a,b=c", '"q"', "~!*", ";:@&=$",
        "''", "x=y", "0", "00", "-", "zz", ""]
PLAIN_KEYS = ["a", "b", "c", "d", "e"]
BAD_NAMES = [("ab", 400, "OutOfRangeInput"), ("a" * 64, 400, "OutOfRangeInput"), ("1abc", 400, "InvalidResourceName"),
             ("a-bc", 400, "InvalidResourceName"), ("a_bc", 400, "InvalidResourceName"), ("ab%C3%BC", 400, "InvalidResourceName")]
XML_HEAD = '<?xml version="1.0" encoding="utf-8"?>'
NEVER = "2001-01-01T00:00:00Z"
FOREVER = "2099-01-01T00:00:00Z"


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def with_placeholders(text):
    """Percent-encoded but for the placeholders, which are resolved when the request is sent."""
    return "".join(part if part.startswith("«") else urllib.parse.quote(part, safe="'") for part in re.split("(«[^»]*»)", text))


def enc(text, style=0):
    """Percent-encodes a key as one of the clients does."""
    return urllib.parse.quote(text.replace("'", "''"), safe=["", "'()!*~"][style])


def predicate(pk, rk, style=0):
    return f"(PartitionKey='{enc(pk, style)}',RowKey='{enc(rk, style)}')"


class Scenario:
    """The walk over one table, with a model of what the table holds."""

    def __init__(self, rng):
        self.rng = rng
        self.rows = {}
        self.policies = {}
        self.extra = set()

    # ---- choice of the family ---------------------------------------------------------------------------------------

    FAMILIES = [("insert", 22), ("replace", 10), ("merge", 10), ("delete", 6), ("get", 10), ("query", 24), ("bad_filter", 8),
                ("bad_query", 6), ("bad_insert", 14), ("bad_update", 6), ("bad_key", 5), ("bad_name", 5), ("batch", 16), ("bad_batch", 10),
                ("missing_table", 5), ("tables", 8), ("bad_table", 5), ("auth", 8), ("account_sas", 14), ("table_sas", 10),
                ("acl", 7), ("bad_acl", 4), ("properties", 3), ("bad_properties", 3), ("preflight", 5), ("origin", 3), ("stats", 1), ("format", 7),
                ("verb", 4), ("header", 5)]

    def next(self):
        name = self.rng.choices([f for f, _ in self.FAMILIES], [w for _, w in self.FAMILIES])[0]
        return getattr(self, name)()

    def pick(self, options):
        return self.rng.choice(options)

    def chance(self, share):
        return self.rng.random() < share

    # ---- values ----------------------------------------------------------------------------------------------------

    def value(self, kind):
        """A property of a kind: ([(member, raw JSON)...] without its name, edm, canonical value)."""
        r = self.rng
        if kind == "S":
            text = self.pick(["", " lead and trail ", "plain", "O'Brien", "日本語", "😀", "line\nbreak\t\"q\" \\", "\u0001", "B", "b",
                              "x" * self.pick([10, 300, 32768]) if self.chance(0.1) else "short", "2020-01-01T00:00:00Z", "null", "5"])
            return self.pick([None, "Edm.String"]), quoted(text), "Edm.String", text
        if kind == "B":
            flag = self.chance(0.5)
            return self.pick([None, "Edm.Boolean"]), json.dumps(flag), "Edm.Boolean", flag
        if kind == "I":
            number = self.pick([0, 1, -1, 2, 3, 7, 2**31 - 1, -2**31, r.randrange(-10, 10)])
            return self.pick([None, "Edm.Int32"]), str(number), "Edm.Int32", number
        if kind == "L":
            number = self.pick([0, 1, 3, -1, 2**31, 2**63 - 1, -2**63, 2**53 + 1, 10, 9])
            return "Edm.Int64", quoted(str(number)), "Edm.Int64", str(number)
        if kind == "D":
            raw, number = self.pick([("3.0", 3.0), ("0.1", 0.1), ("-2.5", -2.5), ("1e3", 1000.0), ("1.5E-7", 1.5e-7), ("1E+20", 1e20),
                                     ("1.7976931348623157E+308", 1.7976931348623157e308), ("5e-324", 5e-324), ("3.14", 3.14), ("0.0", 0.0)])
            return self.pick([None, "Edm.Double"]), raw, "Edm.Double", number
        if kind == "E":
            return self.pick([("Edm.Double", '"NaN"', "Edm.Double", "NaN"), ("Edm.Double", '"Infinity"', "Edm.Double", "Infinity"),
                              ("Edm.Double", '"-Infinity"', "Edm.Double", "-Infinity"), ("Edm.Double", "5", "Edm.Double", 5.0),
                              ("Edm.Double", '"3.14"', "Edm.Double", 3.14)])
        if kind == "T":
            raw, canon = self.pick([("2021-03-04T05:06:07Z", "2021-03-04T05:06:07Z"), ("2021-03-04T05:06:07.200Z", "2021-03-04T05:06:07.2Z"),
                                    ("2021-03-04T05:06:07.1234567Z", "2021-03-04T05:06:07.1234567Z"), ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
                                    ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"), ("2021-03-04T05:06:07", "2021-03-04T05:06:07Z"),
                                    ("2021-03-04", "2021-03-04T00:00:00Z"), ("2021-03-04T05:06:07+02:00", "2021-03-04T03:06:07Z"),
                                    ("2021-03-04T05:06:07.0000000Z", "2021-03-04T05:06:07Z"), ("2021-03-04T05:06Z", "2021-03-04T05:06:00Z")])
            return "Edm.DateTime", quoted(raw), "Edm.DateTime", canon
        if kind == "G":
            text = self.pick(["c9da6455-213d-42c9-9a79-3e9149a57833", "00000000-0000-0000-0000-000000000000", "C9DA6455-213D-42C9-9A79-3E9149A57834"])
            return "Edm.Guid", quoted(text), "Edm.Guid", text.lower()
        data = bytes(self.pick([[], [0], [1, 2, 3], list(range(256)), [255] * 5]))
        return "Edm.Binary", quoted(base64.b64encode(data).decode()), "Edm.Binary", base64.b64encode(data).decode()

    def properties(self):
        """Some properties: (raw members, model row)."""
        members, row = [], {}
        for kind in self.rng.sample("SSBIILDETGX", self.rng.randrange(0, 7)):
            name = kind + self.pick("12")
            if name in row:
                continue
            annotation, raw, edm, canon = self.value(kind)
            if annotation:
                members.append((name + "@odata.type", quoted(annotation)))
            members.append((name, raw))
            row[name] = (edm, canon)
        if self.chance(0.1):
            members.append(("Null1", "null"))
        if self.chance(0.05):
            members.append(("Größe", "5"))
            row["Größe"] = ("Edm.Int32", 5)
        return members, row

    def noise(self, members, pk, rk):
        """Members that a server must ignore on write (section 4.3)."""
        extra = []
        if self.chance(0.1):
            extra.append(("Timestamp", self.pick(["null", '"0001-01-01T00:00:00Z"', '"2020-01-01T00:00:00Z"'])))
        if self.chance(0.1):
            extra.append(("odata.etag", quoted("W/\"datetime'2020-01-01T00%3A00%3A00Z'\"")))
        if self.chance(0.05):
            extra.append(("PartitionKey@odata.type", '"Edm.String"'))
        return [("PartitionKey", quoted(pk)), ("RowKey", quoted(rk))] + extra + members

    @staticmethod
    def document(members):
        return "{" + ",".join(f"{quoted(name)}:{raw}" for name, raw in members) + "}"

    def key(self, plain=False):
        return self.pick(PLAIN_KEYS if plain else KEYS)

    def known_or_new(self):
        if self.rows and self.chance(0.7):
            return self.pick(sorted(self.rows))
        return self.key(), self.key()

    def level(self):
        return self.pick(list(LEVELS))

    def accept(self, level):
        return ("Accept", f"{JSON};odata={LEVELS[level]}")

    def signer(self):
        return self.pick(["key", "lite", "key-dateheader", "lite-dateheader"])

    # ---- entities --------------------------------------------------------------------------------------------------

    def insert(self):
        pk, rk = (self.key(), self.key()) if self.chance(0.8) else self.known_or_new()
        members, row = self.properties()
        level, prefer = self.level(), self.pick([None, None, "return-content", "return-no-content"])
        exists = (pk, rk) in self.rows
        headers = [self.accept(level), ("Content-Type", self.pick([JSON, JSON + ";odata=nometadata", JSON + "; charset=utf-8"]))]
        if prefer:
            headers.append(("Prefer", prefer))
        expect = (409, "EntityAlreadyExists") if exists else (204 if prefer == "return-no-content" else 201, "")

        def check(answer, side):
            if prefer and answer.header("preference-applied") != prefer:
                return f"Preference-Applied is {answer.header('preference-applied')!r}"
            if answer.status >= 300:
                return ""
            if not model.ETAG.match(answer.header("etag") or ""):
                return f"ETag is {answer.header('etag')!r}"
            location = f"{side.endpoint}/{side.table}{model.url_keys(pk, rk)}"
            if not model.same_text(answer.header("location") or "", location):
                return f"Location is {answer.header('location')!r}, wanted {location!r}"
            if answer.status == 204:
                return "" if answer.header("dataserviceid") == answer.header("location") else "DataServiceId is not the Location"
            return model.check_entity(model.parse_json(answer), row, (pk, rk), level, None, side.table, side.endpoint, True)

        cond = "existing row" if exists else (f"prefer {prefer}" if prefer else "new row")
        return Request("insert", f"{cond}, {level}", "POST", self.pick(["/«T»", "/«T»()"]), headers=headers,
                       body=self.document(self.noise(members, pk, rk)), auth=self.signer(), expect=expect, writes=True, etag_key=(pk, rk),
                       check=check, effect=lambda: self.rows.__setitem__((pk, rk), row))

    def condition(self, pk, rk):
        """An If-Match: (header or None, name, whether it holds for a row that exists)."""
        kind = self.pick(["none", "star", "right", "right", "wrong"])
        if kind == "none":
            return None, kind, True
        if kind == "star":
            return "*", kind, True
        if kind == "right":
            return f"«ETAG {pk}|{rk}»", kind, True
        return "W/\"datetime'2020-01-01T00%3A00%3A00.1234567Z'\"", kind, False

    def change(self, op, verbs):
        pk, rk = self.known_or_new()
        members, row = self.properties()
        header, kind, holds = self.condition(pk, rk)
        exists = (pk, rk) in self.rows
        verb = self.pick(verbs)
        headers = [("Content-Type", JSON)]
        if header:
            headers.append(("If-Match", header))
        if verb.startswith("POST "):
            headers.append(("X-HTTP-Method", verb.split()[1]))
        if kind == "none":
            expect = (204, "")
        elif not exists:
            expect = (404, "ResourceNotFound")
        else:
            expect = (204, "") if holds else (412, "UpdateConditionNotSatisfied")
        body = self.noise(members, pk, rk)
        if self.chance(0.2):
            body = members

        def effect():
            old = self.rows.get((pk, rk), {})
            self.rows[(pk, rk)] = {**old, **row} if op == "merge" else row

        def check(answer, side):
            if answer.status == 204 and not model.ETAG.match(answer.header("etag") or ""):
                return f"ETag is {answer.header('etag')!r}"
            return "answer has a Location" if answer.header("location") else ""

        tunnelled = " tunnelled" if verb.startswith("POST ") else ""
        return Request(op, f"if-match {kind}, {'row exists' if exists else 'no row'}{tunnelled}", verb.split()[0],
                       f"/«T»{predicate(pk, rk, self.pick([0, 1]))}", headers=headers, body=self.document(body), auth=self.signer(),
                       expect=expect, writes=True, etag_key=(pk, rk), effect=effect, check=check)

    def replace(self):
        return self.change("replace", ["PUT", "PUT", "PUT", "POST PUT"])

    def merge(self):
        return self.change("merge", ["PATCH", "MERGE", "POST MERGE"])

    def delete(self):
        pk, rk = self.known_or_new()
        header, kind, holds = self.condition(pk, rk)
        exists = (pk, rk) in self.rows
        if kind == "none":
            expect = (400, None)
        elif not exists:
            expect = (404, "ResourceNotFound")
        else:
            expect = (204, "") if holds else (412, "UpdateConditionNotSatisfied")
        return Request("delete", f"if-match {kind}, {'row exists' if exists else 'no row'}", "DELETE", f"/«T»{predicate(pk, rk)}",
                       headers=[("If-Match", header)] if header else [], auth=self.signer(), expect=expect, writes=True,
                       effect=lambda: self.rows.pop((pk, rk), None))

    def select(self):
        if self.chance(0.65):
            return None
        names = self.rng.sample(["PartitionKey", "RowKey", "Timestamp", "S1", "I1", "L1", "D1", "T1", "Missing"], self.rng.randrange(0, 4))
        return ",".join(names)

    def get(self):
        pk, rk = self.known_or_new()
        level, select = self.level(), self.select()
        row = self.rows.get((pk, rk))

        def check(answer, side):
            if answer.status != 200:
                return ""
            if not model.ETAG.match(answer.header("etag") or ""):
                return f"ETag is {answer.header('etag')!r}"
            return model.check_entity(model.parse_json(answer), row, (pk, rk), level, select, side.table, side.endpoint, True)

        missing = row is not None and bool(select) and any(
            n not in row and n not in ("PartitionKey", "RowKey", "Timestamp") for n in select.split(","))
        shape = "" if select is None else ", empty select" if not select else ", select of a missing property" if missing else ", select"
        query = "" if select is None else "$select=" + urllib.parse.quote(select)
        path = f"/«T»{predicate(pk, rk, self.pick([0, 1]))}"
        spelling = ""
        if self.chance(0.1):
            path, spelling = path.replace("'", "%27"), ", quotes encoded"
        elif self.chance(0.1):
            path, spelling = f"/«T»(RowKey='{enc(rk)}',PartitionKey='{enc(pk)}')", ", RowKey first"
        return Request("get", f"{'row exists' if row is not None else 'no row'}, {level}{shape}{spelling}", "GET", path, query,
                       headers=[self.accept(level)], auth=self.signer(), check=check,
                       expect=(200, "") if row is not None else (404, "ResourceNotFound"), etag_key=(pk, rk))

    # ---- queries ---------------------------------------------------------------------------------------------------

    def literal(self, edm):
        if edm == "Edm.String":
            text = self.pick(["", "plain", "O'Brien", "b", "B", "short", "a", "日本語", "5"])
            return "'" + text.replace("'", "''") + "'", text
        if edm == "Edm.Int32":
            number = self.pick([0, 1, -1, 3, 7, 2**31 - 1, -2**31])
            return str(number), number
        if edm == "Edm.Int64":
            number = self.pick([0, 1, 3, 2**31, 2**63 - 1, -1, 9, 10])
            return f"{number}L", str(number)
        if edm == "Edm.Double":
            return self.pick([("3.0", 3.0), ("0.1", 0.1), ("-2.5", -2.5), ("1e3", 1000.0), ("3.14", 3.14)])
        if edm == "Edm.Boolean":
            return self.pick([("true", True), ("false", False)])
        if edm == "Edm.DateTime":
            return self.pick([("datetime'2021-03-04T05:06:07Z'", "2021-03-04T05:06:07Z"), ("datetime'2021-03-04T05:06:07.2000000Z'", "2021-03-04T05:06:07.2Z"),
                              ("datetime'2021-03-04T05:06:07.1234567Z'", "2021-03-04T05:06:07.1234567Z"), ("datetime'1970-01-01T00:00:00Z'", "1970-01-01T00:00:00Z")])
        if edm == "Edm.Guid":
            return self.pick([("guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "c9da6455-213d-42c9-9a79-3e9149a57833"),
                              ("guid'C9DA6455-213D-42C9-9A79-3E9149A57834'", "c9da6455-213d-42c9-9a79-3e9149a57834")])
        return self.pick([("X'010203'", base64.b64encode(b"\1\2\3").decode()), ("binary'00'", base64.b64encode(b"\0").decode()), ("X''", "")])

    KIND_EDM = {"S": "Edm.String", "B": "Edm.Boolean", "I": "Edm.Int32", "L": "Edm.Int64", "D": "Edm.Double", "T": "Edm.DateTime",
                "G": "Edm.Guid", "X": "Edm.Binary"}

    def atom(self, traits):
        shape = self.rng.random()
        if shape < 0.05:
            traits.add("bare property")
            return "B1", ("prop", "B1")
        name = self.pick(["S1", "S2", "B1", "I1", "I1", "I2", "L1", "D1", "T1", "G1", "X1", "PartitionKey", "RowKey", "PartitionKey", "RowKey", "Missing"])
        own = self.KIND_EDM.get(name[0], "Edm.String") if len(name) == 2 else "Edm.String"
        edm = own if self.chance(0.8) else self.pick(sorted(self.KIND_EDM.values()))
        if edm != own:
            traits.add(f"{own[4:]} with {edm[4:]} literal")
        elif edm != "Edm.String":
            traits.add(edm[4:])
        ops = ["eq", "ne"] if own in ("Edm.Guid", "Edm.Binary") or edm in ("Edm.Guid", "Edm.Binary") else ["eq", "ne", "lt", "le", "gt", "ge"]
        op = self.pick(ops)
        if op == "ne":
            traits.add("ne")
        raw, canon = self.literal(edm)
        if name == "Missing":
            traits.add("missing property")
        tree = ("cmp", name, op, (edm, canon))
        if self.chance(0.08):
            traits.add("literal first")
            flipped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(op, op)
            return f"{raw} {flipped} {name}", tree
        return f"{name} {op} {raw}", tree

    def expression(self, depth, traits):
        roll = self.rng.random()
        if depth == 0 or roll < 0.45:
            return self.atom(traits)
        if roll < 0.55:
            traits.add("not")
            text, tree = self.expression(depth - 1, traits)
            return f"not ({text})", ("not", tree)
        word = "and" if roll < 0.8 else "or"
        left, left_tree = self.expression(depth - 1, traits)
        right, right_tree = self.expression(depth - 1, traits)
        if self.chance(0.5) or left_tree[0] in ("and", "or") or right_tree[0] in ("and", "or"):
            return f"({left}) {word} ({right})", (word, left_tree, right_tree)
        return f"{left} {word} {right}", (word, left_tree, right_tree)

    def query(self):
        level, select, traits = self.level(), self.select(), set()
        roll = self.rng.random()
        if roll < 0.15:
            text, tree = None, ("const", True)
        elif roll < 0.2:
            text, tree = self.pick(["", " "]), ("const", True)
            traits.add("blank filter")
        elif roll < 0.23:
            text, tree = self.pick([("true", ("const", True)), ("false", ("const", False))])
            traits.add("constant filter")
        elif roll < 0.3 and self.rows:
            pk, rk = self.pick(sorted(self.rows))
            lit = lambda key: "'" + key.replace("'", "''") + "'"
            text = f"PartitionKey eq {lit(pk)} and RowKey eq {lit(rk)}"
            tree = ("and", ("cmp", "PartitionKey", "eq", ("Edm.String", pk)), ("cmp", "RowKey", "eq", ("Edm.String", rk)))
            traits.add("point filter")
        elif self.chance(0.03):
            # Azurite fails on it at times, and chance alone brings it too rarely.
            text, tree = "I1 ge 9223372036854775807L", ("cmp", "I1", "ge", ("Edm.Int64", "9223372036854775807"))
            traits.add("Int32 with Int64 literal")
        else:
            text, tree = self.expression(2, traits)
        top = self.pick([None, None, 1, 2, 3, 1000])
        wanted = sorted((keys for keys, row in self.rows.items() if model.matches(tree, keys, row)), key=model.sort_key)
        rows = {keys: self.rows[keys] for keys in wanted}
        query = []
        if text is not None:
            query.append(("$filter", text))
        if select is not None:
            query.append(("$select", select))
        if top:
            query.append(("$top", str(top)))
        encode = urllib.parse.quote_plus if self.chance(0.3) else urllib.parse.quote
        joined = "&".join(f"{name}={encode(value)}" for name, value in query)
        if self.chance(0.2):
            joined = joined.replace("$", "%24")

        def check(answer, side):
            if answer.status != 200:
                return ""
            got, left = [], list(wanted)
            for number, page in enumerate(answer.pages or [answer]):
                if page.status != 200:
                    return f"page {number} is {page.brief()}"
                document = model.parse_json(page)
                metadata = f"{side.endpoint}/$metadata#{side.table}" + ("&$select=" + select if select is not None else "")
                if level != "none" and document.get("odata.metadata") != metadata:
                    return f"odata.metadata is {document.get('odata.metadata')!r}, wanted {metadata!r}"
                if set(document) - {"odata.metadata", "value"}:
                    return f"members {sorted(document)}"
                if top and len(document["value"]) > top:
                    return f"{len(document['value'])} rows with $top={top}"
                got += document["value"]
            if len(got) != len(left):
                return f"{len(got)} rows instead of {len(left)}: wanted {wanted}, filter {text!r}"
            for entity, keys in zip(got, left):
                mistake = model.check_entity(entity, rows[keys], keys, level, select, side.table, side.endpoint, False)
                if mistake:
                    return f"row {keys}: {mistake}"
            return ""

        if select is not None and any(n not in ("PartitionKey", "RowKey", "Timestamp") for n in select.split(",")):
            traits.add("select")
        elif select is not None:
            traits.add("empty select" if not select else "select of keys")
        cond = f"{level}; " + (", ".join(sorted(traits)) or "plain") + (f"; top {top}" if top else "")
        return Request("query", cond, "GET", self.pick(["/«T»()", "/«T»"]), joined, headers=[self.accept(level)], auth=self.signer(),
                       expect=(200, ""), follow=True, check=check)

    BAD_FILTERS = [("aaa bbb ccc", 400, "InvalidInput"), ("S1 eq null", 400, "InvalidInput"), ("S1 ne null", 400, "InvalidInput"),
                   ("S1 lt null", 400, "InvalidInput"), ("I1 eq 5454161346626", 400, "InvalidInput"),
                   ("startswith(S1,'a')", 501, "NotImplemented"), ("substringof('a',S1)", 501, "NotImplemented"), ("S1 eq S2", 501, "NotImplemented"),
                   ("1 eq 1", 501, "NotImplemented"), ("I1 add 1 eq 2", 501, "NotImplemented"), ("length(S1) eq 3", 501, "NotImplemented"),
                   ("S1 Eq 'x'", 400, "InvalidInput"), ("S1 EQ 'x'", 400, "InvalidInput"), ("S1 eq 'x' AND I1 eq 1", 400, "InvalidInput"),
                   ("S1 eq 'x", 400, "InvalidInput"), ("(S1 eq 'x'", 400, "InvalidInput"), ("S1 eq 'x')", 400, "InvalidInput"),
                   ("G1 eq guid'xx'", 400, "InvalidInput"), ("T1 eq datetime'2020-13-45T00:00:00Z'", 400, "InvalidInput"), ("X1 eq X'0'", 400, "InvalidInput"),
                   ("and", 400, "InvalidInput"), ("S1 eq", 400, "InvalidInput"), ("not", 400, "InvalidInput"), ('S1 eq "x"', 400, "InvalidInput"),
                   ("eq 'x'", 400, "InvalidInput"), ("S1 eq 'x' and", 400, "InvalidInput"), ("S1 eq 'x' or or I1 eq 1", 400, "InvalidInput"),
                   ("S1 'x'", 400, "InvalidInput"), ("()", 400, "InvalidInput"), ("I1 eq 99999999999999999999L", 400, "InvalidInput"),
                   ("S1 eq 'x' S2 eq 'y'", 400, "InvalidInput"), ("S1 = 'x'", 400, "InvalidInput"), ("S1 == 'x'", 400, "InvalidInput"),
                   ("S1;eq 'x'", 400, "InvalidInput"), ("S-1 eq 'x'", 400, "InvalidInput"),
                   ("(PartitionKey ) and (RowKey ge 'r')", 400, "InvalidInput"), ("B1 or Timestamp", 400, "InvalidInput"), ("not RowKey", 400, "InvalidInput")]

    def bad_filter(self):
        text, status, code = self.pick(self.BAD_FILTERS)
        return Request("query", f"filter {text}", "GET", "/«T»()", "$filter=" + urllib.parse.quote(text), auth=self.signer(), expect=(status, code))

    def bad_query(self):
        cond, query, expect = self.pick([
            ("top 0", "$top=0", (200, "")), ("top 1001", "$top=1001", (400, "InvalidInput")), ("top -1", "$top=-1", (400, "InvalidInput")),
            ("top word", "$top=ten", (400, "InvalidInput")), ("top empty", "$top=", None), ("top fraction", "$top=1.5", (400, "InvalidInput")),
            ("orderby", "$orderby=S1", None), ("skip", "$skip=1", None), ("unknown option", "hello=world", (200, "")),
            ("garbled token", "NextPartitionKey=garbled&NextRowKey=garbled", None), ("timeout", "timeout=20", (200, "")),
            ("empty filter and select", "$select=&$filter=", (200, "")), ("select blanks", "$select=PartitionKey,%20RowKey", (200, "")),
            ("select star", "$select=*", (200, ""))])
        return Request("query", cond, "GET", "/«T»()", query, auth=self.signer(), expect=expect)

    # ---- refused writes --------------------------------------------------------------------------------------------

    def bad_bodies(self):
        two = '"PartitionKey":"p","RowKey":"bad",'
        many = ",".join(f'"P{i}":1' for i in range(253))
        big = ",".join(f'"P{i}":"{"x" * 32000}"' for i in range(18))
        return [
            ("empty body", "", (400, None)), ("cut body", "{", (400, "InvalidInput")), ("array body", "[]", (400, "InvalidInput")),
            ("null body", "null", (400, None)), ("empty object", "{}", (400, "PropertiesNeedValue")), ("trailing text", "{%s\"A\":1}x" % two, (400, "InvalidInput")),
            ("no RowKey", '{"PartitionKey":"p","A":1}', (400, "PropertiesNeedValue")), ("no PartitionKey", '{"RowKey":"r"}', (400, "PropertiesNeedValue")),
            ("null RowKey", '{"PartitionKey":"p","RowKey":null}', (400, "PropertiesNeedValue")),
            ("number PartitionKey", '{"PartitionKey":1,"RowKey":"bad"}', (400, "InvalidInput")),
            ("boolean RowKey", '{"PartitionKey":"p","RowKey":true}', (400, "InvalidInput")),
            ("PartitionKey annotated Int32", '{"PartitionKey@odata.type":"Edm.Int32","PartitionKey":"1","RowKey":"bad"}', (400, "InvalidInput")),
            ("object value", "{%s\"A\":{}}" % two, (400, "InvalidInput")), ("array value", "{%s\"A\":[]}" % two, (400, "InvalidInput")),
            ("name starts with digit", "{%s\"123\":1}" % two, (400, "PropertyNameInvalid")), ("name with dash", "{%s\"a-b\":1}" % two, (400, "PropertyNameInvalid")),
            ("name with blank", "{%s\"a b\":1}" % two, (400, "PropertyNameInvalid")), ("empty name", "{%s\"\":1}" % two, (400, "PropertyNameInvalid")),
            ("name of 256", "{%s\"%s\":1}" % (two, "n" * 256), (400, "PropertyNameTooLong")), ("name of 255", "{%s\"%s\":1}" % (two, "n" * 255), (201, "")),
            ("253 properties", "{%s%s}" % (two, many), (400, "TooManyProperties")), ("252 properties", "{%s%s}" % (two, many.rsplit(",", 1)[0]), (201, "")),
            ("string of 32769", "{%s\"A\":\"%s\"}" % (two, "x" * 32769), (400, "PropertyValueTooLarge")),
            ("binary of 65537", "{%s\"A@odata.type\":\"Edm.Binary\",\"A\":\"%s\"}" % (two, base64.b64encode(b"x" * 65537).decode()), (400, "PropertyValueTooLarge")),
            ("entity over 1 MiB", "{%s%s}" % (two, big), (400, "EntityTooLarge")),
            ("key of 513", '{"PartitionKey":"%s","RowKey":"bad"}' % ("k" * 513), (400, "PropertyValueTooLarge")),
            ("key of 512", '{"PartitionKey":"%s","RowKey":"bad"}' % ("k" * 512), (201, "")),
            ("key with slash", '{"PartitionKey":"a/b","RowKey":"bad"}', (400, "OutOfRangeInput")),
            ("key with backslash", '{"PartitionKey":"a\\\\b","RowKey":"bad"}', (400, "OutOfRangeInput")),
            ("key with hash", '{"PartitionKey":"p","RowKey":"a#b"}', (400, "OutOfRangeInput")), ("key with question mark", '{"PartitionKey":"p","RowKey":"a?b"}', (400, "OutOfRangeInput")),
            ("key with tab", '{"PartitionKey":"p","RowKey":"a\\tb"}', (400, "OutOfRangeInput")), ("key with U+0085", '{"PartitionKey":"p","RowKey":"a\\u0085b"}', (400, "OutOfRangeInput")),
            ("Int32 out of range", "{%s\"A@odata.type\":\"Edm.Int32\",\"A\":2147483648}" % two, (400, "InvalidInput")),
            ("Int32 as text", "{%s\"A@odata.type\":\"Edm.Int32\",\"A\":\"5\"}" % two, None), ("Int32 as word", "{%s\"A@odata.type\":\"Edm.Int32\",\"A\":\"five\"}" % two, (400, "InvalidInput")),
            ("Int64 out of range", "{%s\"A@odata.type\":\"Edm.Int64\",\"A\":\"9223372036854775808\"}" % two, (400, "InvalidInput")),
            ("Int64 as number", "{%s\"A@odata.type\":\"Edm.Int64\",\"A\":5}" % two, None), ("Int64 as word", "{%s\"A@odata.type\":\"Edm.Int64\",\"A\":\"five\"}" % two, (400, "InvalidInput")),
            ("integer beyond int32", "{%s\"A\":5000000000}" % two, (201, "")), ("Guid garbled", "{%s\"A@odata.type\":\"Edm.Guid\",\"A\":\"xyz\"}" % two, (400, "InvalidInput")),
            ("DateTime garbled", "{%s\"A@odata.type\":\"Edm.DateTime\",\"A\":\"yesterday\"}" % two, (400, "InvalidInput")),
            ("DateTime month 13", "{%s\"A@odata.type\":\"Edm.DateTime\",\"A\":\"2020-13-01T00:00:00Z\"}" % two, (400, "InvalidInput")),
            ("DateTime before 1601", "{%s\"A@odata.type\":\"Edm.DateTime\",\"A\":\"1600-12-31T00:00:00Z\"}" % two, (400, "OutOfRangeInput")),
            ("DateTime as number", "{%s\"A@odata.type\":\"Edm.DateTime\",\"A\":5}" % two, (400, "InvalidInput")),
            ("Binary garbled", "{%s\"A@odata.type\":\"Edm.Binary\",\"A\":\"!!!\"}" % two, (400, "InvalidInput")),
            ("Boolean as word", "{%s\"A@odata.type\":\"Edm.Boolean\",\"A\":\"maybe\"}" % two, (400, "InvalidInput")),
            ("Boolean as text", "{%s\"A@odata.type\":\"Edm.Boolean\",\"A\":\"true\"}" % two, (201, "")),
            ("Boolean as text in upper case", "{%s\"A@odata.type\":\"Edm.Boolean\",\"A\":\"TRUE\"}" % two, (201, "")),
            ("Double as word", "{%s\"A@odata.type\":\"Edm.Double\",\"A\":\"pi\"}" % two, (400, "InvalidInput")),
            ("String as number", "{%s\"A@odata.type\":\"Edm.String\",\"A\":5}" % two, None),
            ("unknown type", "{%s\"A@odata.type\":\"Edm.Single\",\"A\":5}" % two, (400, None)),
            ("duplicate property", "{%s\"A\":1,\"A\":2}" % two, (400, None)), ("stray annotation", "{%s\"A@odata.type@odata.type\":\"Edm.String\",\"A\":5}" % two, (201, "")),
            ("annotation without value", "{%s\"A@odata.type\":\"Edm.Int64\"}" % two, None), ("annotated null", "{%s\"A@odata.type\":\"Edm.Int64\",\"A\":null}" % two, (201, "")),
            ("property named etag", "{%s\"etag\":\"x\",\"ETag\":\"y\"}" % two, (201, "")), ("case of names", "{%s\"Aa\":1,\"aA\":2}" % two, (201, "")),
            ("minus zero", "{%s\"A\":-0.0}" % two, (201, "")), ("huge number", "{%s\"A\":1e999}" % two, None), ("leading zero", "{%s\"A\":01}" % two, (400, "InvalidInput")),
            ("single quotes", "{'PartitionKey':'p','RowKey':'bad'}", (400, "InvalidInput")), ("invalid UTF-8", b'{"PartitionKey":"p","RowKey":"\xff"}', (400, None)),
            ("lone surrogate", '{"PartitionKey":"p","RowKey":"bad","A":"\\ud800"}', None), ("byte order mark", "\ufeff{%s\"A\":1}" % two, None),
        ]

    def bad_insert(self):
        cond, body, expect = self.pick(self.bad_bodies())
        return Request("insert", cond, "POST", "/«T»", headers=[("Content-Type", JSON)], body=body, auth=self.signer(), expect=expect, writes=True,
                       effect=self.spoil)

    def spoil(self):
        """A write that the model does not follow went through: the scenario ends."""
        self.spoiled = True

    spoiled = False

    def bad_update(self):
        etag = self.pick(["garbled", '"x"', 'W/"wrong"', "W/\"datetime'garbled'\"", "W/\"datetime'2020-01-01T00%3A00%3A00Z'\", W/\"datetime'2021-01-01T00%3A00%3A00Z'\"", ""])
        verb = self.pick(["PUT", "PATCH", "DELETE"])
        cond = {"garbled": "etag is a word", '"x"': "etag is strong", "": "etag is empty", 'W/"wrong"': "etag of nothing"}.get(etag, "etag list" if "," in etag else "etag with a garbled date")
        if self.rows and self.chance(0.6):
            pk, rk = self.pick(sorted(self.rows))
            return Request("conditions", f"{verb}, {cond}", verb, f"/«T»{predicate(pk, rk)}", headers=[("Content-Type", JSON), ("If-Match", etag)],
                           body="{}" if verb != "DELETE" else None, auth=self.signer(), writes=True, effect=self.spoil,
                           expect=(412, "UpdateConditionNotSatisfied") if etag.startswith("W/") and "," not in etag else (400, "InvalidInput") if etag else None)
        name, body, expect = self.pick([b for b in self.bad_bodies() if "key" not in b[0].lower() and b[0] not in ("empty object",)])
        expect = (204, "") if expect and expect[0] == 201 else expect
        return Request(self.pick(["replace", "merge"]), name, verb if verb != "DELETE" else "PUT", f"/«T»{predicate('p', 'bad')}",
                       headers=[("Content-Type", JSON)], body=body, auth=self.signer(), expect=expect, writes=True, effect=self.spoil)

    def bad_key(self):
        cond, path, expect = self.pick([
            ("one bare key", "/«T»('x')", (400, "InvalidInput")), ("PartitionKey only", "/«T»(PartitionKey='x')", (400, "InvalidInput")),
            ("three keys", "/«T»(PartitionKey='x',RowKey='y',Other='z')", (400, "InvalidInput")), ("not closed", "/«T»(PartitionKey='x',RowKey='y'", (400, None)),
            ("no quotes", "/«T»(PartitionKey=x,RowKey=y)", (400, None)), ("blank after comma", "/«T»(PartitionKey='x', RowKey='y')".replace(" ", "%20"), (404, "ResourceNotFound")),
            ("slash in key", "/«T»(PartitionKey='x%2Fy',RowKey='y')", (400, "InvalidInput")), ("backslash in key", "/«T»(PartitionKey='x%5Cy',RowKey='y')", (400, "InvalidInput")),
            ("hash in key", "/«T»(PartitionKey='x%23y',RowKey='y')", (404, "ResourceNotFound")), ("question mark in key", "/«T»(PartitionKey='x%3Fy',RowKey='y')", (404, "ResourceNotFound")),
            ("lower-case names", "/«T»(partitionkey='x',rowkey='y')", (400, None)), ("odd quote", "/«T»(PartitionKey='x'y',RowKey='y')", (400, None)),
            ("extra segment", "/«T»/extra", (501, "NotImplemented")), ("count segment", "/«T»/$count", (501, "NotImplemented")), ("key of 513", f"/«T»(PartitionKey='{'k' * 513}',RowKey='y')", None)])
        return Request("get", "URL: " + cond, "GET", path, auth=self.signer(), expect=expect)

    def bad_name(self):
        name, status, code = self.pick(BAD_NAMES)
        cond = "name of " + ("64" if len(name) == 64 else name)
        keys = predicate("p", "r")
        op, verb, path, query, body = self.pick([
            ("get", "GET", f"/{name}{keys}", "", None), ("query", "GET", f"/{name}()", "", None), ("insert", "POST", f"/{name}", "", '{"PartitionKey":"p","RowKey":"r"}'),
            ("replace", "PUT", f"/{name}{keys}", "", "{}"), ("delete", "DELETE", f"/{name}{keys}", "", None), ("acl", "GET", f"/{name}", "comp=acl", None)])
        headers = [("Content-Type", JSON)] if body else []
        if op == "delete":
            headers.append(("If-Match", "*"))
        return Request(op, cond, verb, path, query, headers=headers, body=body, expect=(status, code))

    def missing_table(self):
        keys = predicate("p", "r")
        op, verb, path, query, body, status, code = self.pick([
            ("get", "GET", f"/«T»none{keys}", "", None, 404, "TableNotFound"), ("query", "GET", "/«T»none()", "", None, 404, "TableNotFound"),
            ("insert", "POST", "/«T»none", "", '{"PartitionKey":"p","RowKey":"r"}', 404, "TableNotFound"), ("replace", "PUT", f"/«T»none{keys}", "", "{}", 404, "TableNotFound"),
            ("merge", "PATCH", f"/«T»none{keys}", "", "{}", 404, "TableNotFound"), ("delete", "DELETE", f"/«T»none{keys}", "", None, 404, None),
            ("acl", "GET", "/«T»none", "comp=acl", None, 404, "TableNotFound"), ("acl", "PUT", "/«T»none", "comp=acl", XML_HEAD + "<SignedIdentifiers />", 404, "TableNotFound"),
            ("tables", "DELETE", "/Tables('«T»none')", "", None, 404, "ResourceNotFound"), ("tables", "GET", "/Tables('«T»none')", "", None, 404, "ResourceNotFound")])
        headers = [("Content-Type", JSON)] if body else []
        if op == "delete":
            headers.append(("If-Match", "*"))
        return Request(op, f"no such table, {verb}", verb, path, query, headers=headers, body=body, expect=(status, code), auth=self.signer())

    # ---- tables ----------------------------------------------------------------------------------------------------

    def tables(self):
        level = self.level()
        kind = self.pick(["create and so on", "create again", "other case", "list", "list", "probe", "get"])
        if kind == "create and so on":
            name, prefer = "«T»" + self.pick(["x", "y", "Z"]), self.pick([None, "return-content", "return-no-content"])
            exists = name.lower() in self.extra
            if exists and self.chance(0.6):
                self.extra.discard(name.lower())
                return Request("tables", "delete", "DELETE", f"/Tables({self.pick(['%27', chr(39)])}{name}')", auth=self.signer(), expect=(204, ""), writes=True)
            self.extra.add(name.lower())
            headers = [self.accept(level), ("Content-Type", JSON)] + ([("Prefer", prefer)] if prefer else [])
            expect = (409, "TableAlreadyExists") if exists else (204 if prefer == "return-no-content" else 201, "")
            return Request("tables", f"create, {'exists' if exists else 'new'}, prefer {prefer}, {level}", "POST", self.pick(["/Tables", "/Tables()"]), headers=headers,
                           body='{"TableName":"%s"}' % name, auth=self.signer(), expect=expect, writes=True)
        if kind == "create again":
            return Request("tables", "create, exists", "POST", "/Tables", headers=[("Content-Type", JSON)], body='{"TableName":"«T»"}', expect=(409, "TableAlreadyExists"), writes=True)
        if kind == "other case":
            pk, rk = self.known_or_new()
            known = (pk, rk) in self.rows
            return Request("get", "table in upper case", "GET", "/«TU»" + predicate(pk, rk), expect=(200, "") if known else (404, "ResourceNotFound"))
        if kind == "list":
            extra = self.pick(["", "&$top=1", "&$top=2"])
            op, word = self.pick([("ge", "all"), ("eq", "one"), ("ne", "not this"), ("gt", "after")])
            text = f"TableName {op} '«T»' and TableName lt '«T»~'"
            return Request("tables", f"list {word}, {level}{extra and ', paged'}", "GET", self.pick(["/Tables", "/Tables()"]),
                           "$filter=" + with_placeholders(text) + extra, headers=[self.accept(level)], expect=(200, ""), follow=True)
        if kind == "probe":
            cond, name = self.pick([("list by name", "«T»"), ("list by name in upper case", "«TU»")])

            def check(answer, side):
                found = [table["TableName"] for table in model.parse_json(answer)["value"]]
                return "" if found == [side.table] else f"found {found}"

            return Request("tables", cond, "GET", "/Tables", "$filter=" + with_placeholders(f"TableName eq '{name}'"), headers=[self.accept(level)], expect=(200, ""), check=check)
        return Request("tables", f"get, {level}", "GET", "/Tables('«T»')", headers=[self.accept(level)], expect=(200, ""))

    def bad_table(self):
        choices = [(f"create name of {n if len(n) < 64 else 64}", '{"TableName":"%s"}' % urllib.parse.unquote(n), (s, c)) for n, s, c in BAD_NAMES] + [
            ("create name tables", '{"TableName":"tables"}', (400, "InvalidInput")), ("create, empty object", "{}", (400, None)), ("create, empty body", "", (400, None)),
            ("create, cut body", '{"TableName":', (400, None)), ("create, null name", '{"TableName":null}', (400, None)), ("create, number", '{"TableName":5}', (400, None)),
            ("create, empty name", '{"TableName":""}', (400, None)), ("create, array", "[]", (400, None))]
        if self.chance(0.3):
            cond, query, expect = self.pick([("list, top 0", "$top=0", None), ("list, top 1001", "$top=1001", (400, "InvalidInput")), ("list, garbled filter", "$filter=TableName%20xx", (400, "InvalidInput")),
                                             ("list, function", "$filter=startswith(TableName,'a')", (501, "NotImplemented")), ("list, other property", "$filter=Other%20eq%20'a'", None)])
            return Request("tables", cond, "GET", "/Tables", query, expect=expect)
        cond, body, expect = self.pick(choices)
        return Request("tables", cond, "POST", "/Tables", headers=[("Content-Type", JSON)], body=body, expect=expect)

    # ---- batches ---------------------------------------------------------------------------------------------------

    def part(self, verb, path, body=None, headers=(), style=0):
        url = ["«BASE»" + path, "/«ACCOUNT»" + path][style]
        lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary", "", f"{verb} {url} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers]
        return "\r\n".join(lines) + "\r\n\r\n" + (body or "") + "\r\n"

    def envelope(self, parts, cond, expect=None, **more):
        batch, change = "batch_1", "changeset_1"
        text = f"--{batch}\r\nContent-Type: multipart/mixed; boundary={change}\r\n\r\n"
        text += "".join(f"--{change}\r\n{part}" for part in parts) + f"--{change}--\r\n\r\n--{batch}--\r\n"
        if self.chance(0.15):
            text, cond = text.replace("\r\n", "\n"), cond + ", LF only"
        return Request("batch", cond, "POST", "/$batch", headers=[("Content-Type", f"multipart/mixed; boundary={batch}"), ("Accept", JSON)],
                       body=text, auth=self.signer(), expect=expect, writes=True, **more)

    def operation(self, pk, rk, rows):
        """One right operation on a row: (part, whether it needs a row, effect on rows)."""
        members, row = self.properties()
        exists = (pk, rk) in rows
        kinds = ["put", "merge"] + (["delete", "update", "update-etag"] if exists else ["insert", "insert"])
        kind = self.pick(kinds)
        body = self.document([("PartitionKey", quoted(pk)), ("RowKey", quoted(rk))] + members)
        keys = f"/«T»{predicate(pk, rk, self.pick([0, 1]))}"
        head, style = [("Content-Type", JSON), ("Accept", JSON + ";odata=minimalmetadata"), ("DataServiceVersion", "3.0")], self.pick([0, 0, 0, 1])
        if kind == "insert":
            rows[(pk, rk)] = row
            prefer = self.pick([None, "return-no-content", "return-content"])
            return kind + (f" {prefer}" if prefer else "") + (" at a relative URL" if style else ""), self.part("POST", "/«T»", body, head + ([("Prefer", prefer)] if prefer else []), style)
        if kind == "delete":
            del rows[(pk, rk)]
            return kind + (" at a relative URL" if style else ""), self.part("DELETE", keys, None, [("If-Match", "*"), ("Accept", JSON)], style)
        if kind == "merge":
            rows[(pk, rk)] = {**rows.get((pk, rk), {}), **row}
            return kind + (" at a relative URL" if style else ""), self.part(self.pick(["PATCH", "MERGE"]), keys, body, head, style)
        rows[(pk, rk)] = row
        match = {"put": [], "update": [("If-Match", "*")], "update-etag": [("If-Match", f"«ETAG {pk}|{rk}»")]}[kind]
        return kind + (" at a relative URL" if style else ""), self.part("PUT", keys, body, head + match, style)

    def some_rows(self, count):
        pk = self.key(plain=True) if self.chance(0.5) else self.known_or_new()[0]
        names = sorted({rk for p, rk in self.rows if p == pk} | set(self.rng.sample(KEYS, 5)))
        return pk, self.rng.sample(names, min(count, len(names)))

    def batch(self):
        pk, row_keys = self.some_rows(self.pick([1, 1, 2, 3, 5]))
        rows, kinds, parts, touched = copy.deepcopy(self.rows), set(), [], []
        for rk in row_keys:
            kind, part = self.operation(pk, rk, rows)
            kinds.add(kind)
            parts.append(part)
            touched.append((pk, rk))

        def effect():
            self.rows = rows

        def check(answer, side):
            statuses = batch_statuses(answer)
            return "" if len(statuses) == len(parts) and all(s < 300 for s in statuses) else f"parts are {statuses} for {len(parts)} operations"

        return self.envelope(parts, "succeeds: " + ", ".join(sorted(kinds)), (202, ""), etag_key=touched, effect=effect, check=check)

    def bad_batch(self):
        pk = "p" + self.pick("12345")
        head = [("Content-Type", JSON), ("Prefer", "return-no-content")]
        entity = lambda p, r, more="": '{"PartitionKey":"%s","RowKey":"%s"%s}' % (p, r, more)
        insert = lambda p, r, more="", table="«T»": self.part("POST", f"/{table}", entity(p, r, more), head)
        good = [insert(pk, "g1"), insert(pk, "g2")]
        update = lambda etag, rk: self.part("PUT", f"/«T»{predicate(pk, rk)}", entity(pk, rk), [("Content-Type", JSON), ("If-Match", etag)])
        kind = self.pick(["same row", "two partitions", "absent", "wrong etag", "exists", "101", "100", "no table", "bad name", "no key", "two tables", "empty changeset",
                          "no changeset", "get in changeset", "single get", "single get, no row", "two changesets", "garbled", "no boundary", "json", "too large value", "bad part json", "empty body",
                          "delete without if-match", "bad property"])
        failing = None
        if kind == "same row":
            parts, failing = good + [insert(pk, "g1")], (2, 400, "InvalidDuplicateRow")
        elif kind == "two partitions":
            parts, failing = [good[0], insert("other", "x")], (1, 400, "CommandsInBatchActOnDifferentPartitions")
        elif kind == "absent":
            parts, failing = good + [update("*", "absent")], (2, 404, "ResourceNotFound")
        elif kind in ("wrong etag", "exists"):
            mine = [keys for keys in sorted(self.rows) if "'" not in keys[0] + keys[1]]
            if not mine:
                return self.insert()
            p, r = self.pick(mine)
            new = insert(p, "freshly made") if '"' not in p else self.part("POST", "/«T»", self.document([("PartitionKey", quoted(p)), ("RowKey", '"freshly made"')]), head)
            keys = [("PartitionKey", quoted(p)), ("RowKey", quoted(r))]
            if kind == "exists":
                parts, failing = [new, self.part("POST", "/«T»", self.document(keys), head)], (1, 409, "EntityAlreadyExists")
            else:
                part = self.part("PATCH", f"/«T»{predicate(p, r)}", self.document(keys), [("Content-Type", JSON), ("If-Match", "W/\"datetime'2020-01-01T00%3A00%3A00.1Z'\"")])
                parts, failing = [new, part], (1, 412, "UpdateConditionNotSatisfied")
        elif kind == "101":
            parts, failing = [insert(pk, f"n{i}") for i in range(101)], (99, 400, "InvalidInput")
        elif kind == "100":
            self.spoiled = True
            return self.envelope([insert(pk + "hundred", f"n{i}") for i in range(100)], "100 operations", (202, ""))
        elif kind == "no table":
            parts, failing = [insert(pk, "x", table="«T»none")], (0, 404, "TableNotFound")
        elif kind == "bad name":
            parts, failing = [insert(pk, "x", table="1bad")], (0, 400, "InvalidResourceName")
        elif kind == "no key":
            parts, failing = [good[0], self.part("POST", "/«T»", '{"PartitionKey":"%s"}' % pk, head)], (1, 400, "PropertiesNeedValue")
        elif kind == "two tables":
            parts, failing = [good[0], insert(pk, "x", table="«T»none")], (1, None, None)
        elif kind == "too large value":
            parts, failing = [good[0], insert(pk, "x", ',"A":"%s"' % ("x" * 32769))], (1, 400, "PropertyValueTooLarge")
        elif kind == "bad part json":
            parts, failing = [good[0], self.part("POST", "/«T»", "{", head)], (1, 400, "InvalidInput")
        elif kind == "bad property":
            parts, failing = [good[0], insert(pk, "x", ',"1a":5')], (1, 400, "PropertyNameInvalid")
        elif kind == "delete without if-match":
            parts, failing = [self.part("DELETE", f"/«T»{predicate(pk, 'g9')}", None, [("Accept", JSON)])], (0, 400, None)
        elif kind == "empty changeset":
            return self.envelope([], "empty changeset", (202, ""))
        else:
            return self.odd_batch(kind, pk, good)
        index, status, code = failing

        def check(answer, side):
            statuses = batch_statuses(answer)
            if len(statuses) != 1 or (status and statuses != [status]):
                return f"parts are {statuses}, wanted [{status}]"
            if code and f'"code":"{code}"' not in answer.body.decode("utf-8", "replace"):
                return f"the part has another code than {code}: {answer.body.decode('utf-8', 'replace')[-400:]!r}"
            if len(parts) > 1 and f'"value":"{index}:' not in answer.body.decode("utf-8", "replace"):
                return f"no index {index} in {answer.body.decode('utf-8', 'replace')[-300:]!r}"
            return ""

        return self.envelope(parts, "fails: " + kind, (202, ""), check=check)

    def odd_batch(self, kind, pk, good):
        get = lambda p, r: f"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET «BASE»/«T»{predicate(p, r)} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n"
        send = lambda body, expect, kind=kind, ctype="multipart/mixed; boundary=b": Request(
            "batch", kind, "POST", "/$batch", headers=[("Content-Type", ctype), ("Accept", JSON)], body=body, auth=self.signer(), expect=expect, writes=True, effect=self.spoil)
        change = lambda name, part: f"--b\r\nContent-Type: multipart/mixed; boundary={name}\r\n\r\n--{name}\r\n{part}--{name}--\r\n"
        if kind.startswith("single get"):
            known = sorted(self.rows)
            p, r = self.pick(known) if known and kind == "single get" else (pk, "surely absent")
            kind = "single get" if known and kind == "single get" else "single get, no row"
            wanted = 200 if kind == "single get" else 404
            request = send(f"--b\r\n{get(p, r)}--b--\r\n", (202, ""), kind)
            request.effect, request.writes = None, False
            request.check = lambda answer, side: "" if batch_statuses(answer) == [wanted] else f"parts are {batch_statuses(answer)}, wanted [{wanted}]"
            return request
        if kind == "get in changeset":
            return send(change("c", get(pk, "x")), None)
        if kind == "two changesets":
            self.spoiled = True  # The first of them is carried out.
            return send(change("c", good[0]) + change("d", good[1]) + "--b--\r\n", None)
        if kind == "no changeset":
            return send("--b--\r\n", (400, "InvalidInput"))
        if kind == "empty body":
            return send("", (400, "InvalidInput"))
        if kind == "garbled":
            return send("hello", (400, "InvalidInput"))
        if kind == "no boundary":
            return send("--b--\r\n", (400, "InvalidInput"), ctype="multipart/mixed")
        return send("{}", (400, "InvalidInput"), ctype=JSON)

    # ---- credentials -----------------------------------------------------------------------------------------------

    def auth(self):
        kind, expect = self.pick([
            ("key-wrong", (403, "AuthenticationFailed")), ("lite-wrong", (403, "AuthenticationFailed")), ("key-stranger", (403, "AuthenticationFailed")),
            ("key-old", (403, "AuthenticationFailed")), ("lite-future", (403, "AuthenticationFailed")), ("key-recent", (200, "")), ("key-undated", (403, "AuthenticationFailed")),
            ("none", (401, "NoAuthenticationInformation")), ("raw:garbled", (400, "InvalidAuthenticationInfo")), ("raw:Basic eDp5", None), ("raw:SharedKey devstoreaccount1", (400, "InvalidAuthenticationInfo")),
            ("raw:SharedKey devstoreaccount1:!!!", (403, "AuthenticationFailed")), ("raw:Bearer x", None), ("raw:SharedKey ", (400, "InvalidAuthenticationInfo"))])
        verb, path, query = self.pick([("GET", "/«T»()", ""), ("GET", "/Tables", "$filter=TableName%20eq%20'«T»'"), ("GET", "/", "restype=service&comp=properties")])
        return Request("auth", f"{kind}{' on XML' if 'restype' in query else ''}", verb, path, query, auth=kind, expect=expect)

    def account_sas(self):
        fields = {"ss": self.pick(["t", "t", "bqtf"]), "srt": "sco", "sp": "rwdlacu", "se": FOREVER, "sv": self.pick(["2019-02-02", "2015-04-05", "2020-12-06", "2021-06-08"])}
        flaw, code = self.pick([
            (None, ""), (None, ""), (None, ""), ("permission", "AuthorizationPermissionMismatch"), ("permission", "AuthorizationPermissionMismatch"), ("permission", "AuthorizationPermissionMismatch"),
            ("resource type", "AuthorizationResourceTypeMismatch"), ("resource type", "AuthorizationResourceTypeMismatch"), ("service", "AuthorizationServiceMismatch"), ("expired", "AuthenticationFailed"), ("not yet", "AuthenticationFailed"),
            ("address", "AuthorizationSourceIPMismatch"), ("https only", "AuthorizationProtocolMismatch"), ("tampered", "AuthenticationFailed"), ("own address", ""), ("http allowed", "")])
        request, kind, letters = self.sas_request()
        if flaw == "permission":
            missing = self.pick(letters)
            fields["sp"] = "".join(letter for letter in fields["sp"] if letter not in missing)
        elif flaw == "resource type":
            fields["srt"] = "sco".replace(kind, "")
        elif flaw == "service":
            fields["ss"] = "bq"
        elif flaw == "expired":
            fields["se"] = NEVER
        elif flaw == "not yet":
            fields["st"] = "2098-01-01T00:00:00Z"
        elif flaw == "address":
            fields["sip"] = "10.0.0.1"
        elif flaw == "own address":
            fields["sip"] = self.pick(["127.0.0.1", "127.0.0.0-127.0.0.9"])
        elif flaw == "https only":
            fields["spr"] = "https"
        elif flaw == "http allowed":
            fields["spr"] = "https,http"
        elif flaw == "tampered":
            fields["tamper"] = "1"
        return self.with_sas(request, f"account SAS, {flaw or 'right'}", fields, (403, code) if code else None)

    def sas_request(self):
        """A request that a SAS may allow: (request, resource type, the letter sets any of which is enough to refuse when missing)."""
        pk, rk = self.known_or_new()
        exists = (pk, rk) in self.rows
        body = self.document([("PartitionKey", quoted(pk)), ("RowKey", quoted(rk))])

        def effect():
            self.rows[(pk, rk)] = {}

        keys = f"/«T»{predicate(pk, rk)}"
        head = [("Content-Type", JSON)]
        options = [
            (Request("sas", "get", "GET", keys, expect=(200, "") if exists else (404, "ResourceNotFound")), "o", ["r"]),
            (Request("sas", "query", "GET", "/«T»()", "$filter=RowKey%20eq%20''", expect=(200, "")), "o", ["r"]),
            (Request("sas", "insert", "POST", "/«T»", headers=head, body=body, expect=(409, "EntityAlreadyExists") if exists else (201, ""), writes=True, effect=effect, etag_key=(pk, rk)), "o", ["a"]),
            (Request("sas", "upsert", "PUT", keys, headers=head, body=body, expect=(204, ""), writes=True, effect=effect, etag_key=(pk, rk)), "o", ["a", "u"]),
            (Request("sas", "update", "PUT", keys, headers=head + [("If-Match", "*")], body=body, expect=(204, "") if exists else (404, "ResourceNotFound"), writes=True, effect=effect, etag_key=(pk, rk)), "o", ["u"]),
            (Request("sas", "delete", "DELETE", keys, headers=[("If-Match", "*")], expect=(204, "") if exists else (404, "ResourceNotFound"), writes=True,
                     effect=lambda: self.rows.pop((pk, rk), None)), "o", ["d"]),
            (Request("sas", "list tables", "GET", "/Tables", "$filter=TableName%20eq%20'«T»'", expect=(200, "")), "c", ["l"]),
            (Request("sas", "create table", "POST", "/Tables", headers=head, body='{"TableName":"«T»"}', expect=(409, "TableAlreadyExists")), "c", ["cw"]),
            (Request("sas", "get properties", "GET", "/", "restype=service&comp=properties", expect=(200, "")), "s", ["r"]),
        ]
        return self.pick(options)

    def with_sas(self, request, cond, fields, expect):
        request.auth, request.sas = "sas", fields
        request.cond = f"{cond}: {request.cond}"
        if expect:
            request.expect, request.effect = expect, None
        return request

    def table_sas(self):
        fields = {"tn": "«T»", "sp": "raud", "se": FOREVER, "sv": self.pick(["2019-02-02", "2018-03-28", "2020-12-06"])}
        request, kind, letters = self.sas_request()
        if kind != "o":
            return self.with_sas(request, "table SAS, beyond a table", fields, (403, None))
        flaw = self.pick([None, None, "permission", "permission", "expired", "not yet", "other table", "tampered", "range", "range", "range", "unknown policy", "policy", "policy expired", "case"])
        expect = None
        if flaw == "permission":
            fields["sp"] = fields["sp"].replace(self.pick(letters), "")
            expect = (403, "AuthorizationPermissionMismatch")
        elif flaw == "expired":
            fields["se"], expect = NEVER, (403, "AuthenticationFailed")
        elif flaw == "not yet":
            fields["st"], expect = "2098-01-01T00:00:00Z", (403, "AuthenticationFailed")
        elif flaw == "other table":
            fields["tn"], expect = "«T»other", (403, None)
        elif flaw == "tampered":
            fields["tamper"], expect = "1", (403, "AuthenticationFailed")
        elif flaw == "unknown policy":
            fields = {"tn": "«T»", "si": "nosuch", "sv": "2019-02-02"}
            expect = (403, "AuthenticationFailed")
        elif flaw in ("policy", "policy expired"):
            wanted = [name for name, (permission, expiry) in self.policies.items() if (expiry == NEVER) == (flaw == "policy expired") and permission == "raud"]
            if not wanted:
                return self.acl()
            fields = {"tn": "«T»", "si": self.pick(sorted(wanted)), "sv": "2019-02-02"}
            expect = (403, "AuthenticationFailed") if flaw == "policy expired" else None
        elif flaw == "range":
            return self.range_sas(request, fields)
        return self.with_sas(request, f"table SAS, {flaw or 'right'}", fields, expect)

    def range_sas(self, request, fields):
        """Key ranges: the request of a row inside or outside of them."""
        low, high = sorted([self.key(plain=True), self.key(plain=True)])
        fields.update({"spk": low, "epk": high})
        pk, rk = self.key(plain=True), self.key(plain=True)
        if self.chance(0.4):
            fields.update({"srk": "b", "erk": "d"})
        after = pk > low or (pk == low and ("srk" not in fields or rk >= fields["srk"]))
        before = pk < high or (pk == high and ("erk" not in fields or rk <= fields["erk"]))
        inside, exists = after and before, (pk, rk) in self.rows
        body, keys, head = self.document([("PartitionKey", quoted(pk)), ("RowKey", quoted(rk))]), f"/«T»{predicate(pk, rk)}", [("Content-Type", JSON)]
        refused = (403, "AuthorizationFailure")

        def effect():
            self.rows[(pk, rk)] = {}

        place = "inside" if inside else "outside"
        kind = self.pick(["get", "insert", "upsert", "query"])
        if kind == "get":
            request = Request("sas", "get", "GET", keys, expect=(200, "") if exists and inside else (404, "ResourceNotFound"))
        elif kind == "insert":
            request = Request("sas", "insert", "POST", "/«T»", headers=head, body=body, writes=True, effect=effect, etag_key=(pk, rk),
                              expect=refused if not inside else (409, "EntityAlreadyExists") if exists else (201, ""))
        elif kind == "upsert":
            request = Request("sas", "upsert", "PUT", keys, headers=head, body=body, writes=True, effect=effect, etag_key=(pk, rk), expect=(204, "") if inside else refused)
        else:
            place = "any"
            within = lambda p, r: (p > low or (p == low and r >= fields.get("srk", ""))) and (p < high or (p == high and ("erk" not in fields or r <= fields["erk"])))
            wanted = sorted((k for k in self.rows if within(*k)), key=model.sort_key)

            def check(answer, side):
                got = [(e["PartitionKey"], e["RowKey"]) for page in answer.pages or [answer] for e in model.parse_json(page)["value"]] if answer.status == 200 else wanted
                return "" if got == wanted else f"rows {got}, wanted {wanted} in {fields}"

            request = Request("sas", "query", "GET", "/«T»()", expect=(200, ""), follow=True, check=check)
        return self.with_sas(request, f"table SAS, key range, {place}", fields, None)

    # ---- ACL, service properties, CORS -----------------------------------------------------------------------------

    def acl(self):
        if self.chance(0.45):
            return Request("acl", "get" + (", with policies" if self.policies else ", none"), "GET", "/«T»", "comp=acl", headers=[("Accept", "application/xml")], auth=self.signer(), expect=(200, ""))
        count = self.pick([0, 1, 2, 5])
        policies, items = {}, ""
        for number in range(count):
            name = self.pick(["first", "second", "id", "ünïcode", "x" * 64][number:number + 1] or ["id"])
            expiry, permission = self.pick([(FOREVER, "raud"), (NEVER, "raud"), (FOREVER, "r"), (None, None)])
            start = self.pick(["", "<Start>2011-10-11T00:00:00Z</Start>", "<Start>2011-10-11</Start>", "<Start>2011-10-11T00:00:00.1234567Z</Start>"])
            policies[name] = (permission, expiry)
            inner = f"<AccessPolicy>{start}<Expiry>{expiry}</Expiry><Permission>{permission}</Permission></AccessPolicy>" if expiry else self.pick(["<AccessPolicy />", ""])
            items += f"<SignedIdentifier><Id>{name}</Id>{inner}</SignedIdentifier>"
        body = XML_HEAD + (f"<SignedIdentifiers>{items}</SignedIdentifiers>" if items else "<SignedIdentifiers />")
        empty = count == 0 and self.chance(0.3)

        def effect():
            self.policies = policies

        return Request("acl", "set, empty body" if empty else f"set {count or 'none'}", "PUT", "/«T»", "comp=acl", headers=[("Content-Type", "application/xml"), ("Accept", "application/xml")],
                       body=None if empty else body, auth=self.signer(), expect=(204, ""), writes=True, effect=effect)

    def bad_acl(self):
        one = lambda name, inner="": f"<SignedIdentifier><Id>{name}</Id>{inner}</SignedIdentifier>"
        wrap = lambda items: f"{XML_HEAD}<SignedIdentifiers>{items}</SignedIdentifiers>"
        policy = lambda e, p: f"<AccessPolicy><Expiry>{e}</Expiry><Permission>{p}</Permission></AccessPolicy>"
        cond, body = self.pick([
            ("six policies", wrap("".join(one(f"i{i}") for i in range(6)))), ("id of 65", wrap(one("x" * 65))), ("same id twice", wrap(one("a") + one("a"))), ("no id", wrap("<SignedIdentifier />")),
            ("not XML", "hello"), ("cut XML", wrap(one("a"))[:-5]), ("other root", XML_HEAD + "<Other />"), ("garbled date", wrap(one("a", policy("soon", "r")))), ("unknown permission", wrap(one("a", policy(FOREVER, "xyz"))))])
        return Request("acl", "set, " + cond, "PUT", "/«T»", "comp=acl", headers=[("Content-Type", "application/xml"), ("Accept", "application/xml")], body=body, auth=self.signer(),
                       expect=(400, "InvalidXmlDocument") if cond in ("six policies", "not XML", "cut XML") else (400, None), writes=True, effect=self.spoil)

    RULES = {
        "one": [("https://a.example", "GET,PUT", "x-ms-meta*,accept", "x-ms-*", 60)], "star": [("*", "GET,POST,DELETE", "*", "*", 0)],
        "two": [("https://a.example,https://b.example", "GET", "accept", "x-ms-request-id", 10), ("https://b.example", "PUT,MERGE", "*", "etag", 20)], "none": []}

    def properties_document(self, rules):
        retention = "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>"
        off = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
        cors = "".join(f"<CorsRule><AllowedOrigins>{o}</AllowedOrigins><AllowedMethods>{m}</AllowedMethods><MaxAgeInSeconds>{age}</MaxAgeInSeconds>"
                       f"<ExposedHeaders>{e}</ExposedHeaders><AllowedHeaders>{h}</AllowedHeaders></CorsRule>" for o, m, h, e, age in rules)
        return (f"{XML_HEAD}<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>{retention}</Logging>"
                f"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>{retention}</HourMetrics>"
                f"<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>{off}</MinuteMetrics><Cors>{cors}</Cors></StorageServiceProperties>")

    def set_properties(self, name):
        """Sets the rules of that name; they hold for the whole run, as the service keeps them."""
        def effect():
            Scenario.shared_cors = name

        return Request("properties", f"set, CORS {name}", "PUT", "/", "restype=service&comp=properties", headers=[("Content-Type", "application/xml"), ("Accept", "application/xml")],
                       body=self.properties_document(self.RULES[name]), auth=self.signer(), expect=(202, ""), writes=True, effect=effect)

    shared_cors = None

    def properties_or_get(self):
        if Scenario.shared_cors is None or self.chance(0.6):
            return self.set_properties(self.pick(sorted(self.RULES)))
        return Request("properties", "get", "GET", "/", "restype=service&comp=properties", headers=[("Accept", "application/xml")], auth=self.signer(), expect=(200, ""))

    def bad_properties(self):
        cors = lambda inner: f"{XML_HEAD}<StorageServiceProperties><Cors>{inner}</Cors></StorageServiceProperties>"
        rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders></ExposedHeaders><AllowedHeaders></AllowedHeaders></CorsRule>"
        metrics = lambda days: f"{XML_HEAD}<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy></HourMetrics></StorageServiceProperties>"
        cond, body, verb, query = self.pick([
            ("six rules", cors(rule * 6), "PUT", "restype=service&comp=properties"), ("unknown method", cors(rule.replace("GET", "FETCH")), "PUT", "restype=service&comp=properties"),
            ("366 days", metrics(366), "PUT", "restype=service&comp=properties"), ("0 days", metrics(0), "PUT", "restype=service&comp=properties"), ("not XML", "hello", "PUT", "restype=service&comp=properties"),
            ("empty body", None, "PUT", "restype=service&comp=properties"), ("unknown comp", None, "GET", "restype=service&comp=hello"), ("stats on the primary", None, "GET", "restype=service&comp=stats"),
            ("unknown restype", None, "GET", "restype=hello&comp=properties"), ("negative age", cors(rule.replace(">1<", ">-1<")), "PUT", "restype=service&comp=properties")])
        code = "InvalidXmlDocument" if cond in ("six rules", "not XML") else None
        return Request("properties", cond, verb, "/", query, headers=[("Accept", "application/xml")], body=body, auth=self.signer(), expect=(400, code), writes=verb == "PUT", effect=self.spoil)

    def preflight(self):
        rules = Scenario.shared_cors or "none"
        origin, method = self.pick(["https://a.example", "https://b.example", "https://c.example", "https://A.example"]), self.pick(["GET", "PUT", "POST", "MERGE"])
        wanted = self.pick([None, "accept", "x-ms-meta-a,accept", "x-other"])
        drop = self.pick([None] * 6 + ["Origin", "Access-Control-Request-Method"])
        headers = [("Origin", origin), ("Access-Control-Request-Method", method)] + ([("Access-Control-Request-Headers", wanted)] if wanted else [])
        headers = [h for h in headers if h[0] != drop]
        return Request("cors", f"preflight, rules {rules}" + (f", no {drop}" if drop else f", {origin[8:]} {method} {wanted}"), "OPTIONS", self.pick(["/«T»()", "/", "/nothing"]), headers=headers, auth="none",
                       expect=(400, "InvalidHeaderValue") if drop else (403, "CorsPreflightFailure") if rules == "none" else None)

    def origin(self):
        rules, origin = Scenario.shared_cors or "none", self.pick(["https://a.example", "https://c.example"])
        fits = [rule for rule in self.RULES[rules] if origin in rule[0].split(",") or rule[0] == "*"]

        def check(answer, side):
            wanted = None if not fits else "*" if fits[0][0] == "*" else origin
            if answer.header("access-control-allow-origin") != wanted:
                return f"Access-Control-Allow-Origin is {answer.header('access-control-allow-origin')!r}, wanted {wanted!r}"
            exposed = answer.header("access-control-expose-headers") or ""
            if fits and "x-ms-request-id" not in exposed.lower():
                return f"x-ms-request-id is not exposed by a rule that exposes {fits[0][3]!r}: Access-Control-Expose-Headers is {exposed!r}"
            return ""

        return Request("cors", f"actual, rules {rules}, {origin[8:]}", "GET", "/Tables", "$filter=TableName%20eq%20'«T»'", headers=[("Origin", origin)], auth=self.signer(),
                       expect=(200, ""), check=check)

    def stats(self):
        return Request("properties", "stats on the secondary", "GET", "-secondary/", "restype=service&comp=stats", headers=[("Accept", "application/xml")], expect=(200, ""))

    # ---- negotiation -----------------------------------------------------------------------------------------------

    def format(self):
        cond, accept, query, expect = self.pick([
            ("json only", JSON, "", (200, "")), ("spaces", JSON + "; odata=nometadata", "", (200, "")), ("list", f"{JSON}, {JSON}; odata=minimalmetadata", "", (200, "")),
            ("$format wins", JSON + ";odata=nometadata", "$format=" + urllib.parse.quote(JSON + ";odata=fullmetadata", safe=""), (200, "")), ("$format json", "*/*", "$format=json", None),
            ("anything", "*/*", "", None), ("atom", "application/atom+xml", "", None), ("verbose", JSON + ";odata=verbose", "", (415, None)), ("text", "text/plain", "", (415, None)),
            ("full upper case", JSON + ";odata=FullMetadata", "", None), ("streaming", JSON + ";odata=minimalmetadata;streaming=true", "", (200, ""))])
        path = self.pick(["/«T»()", "/Tables"])
        if path == "/Tables":
            query = "&".join(p for p in (query, "$filter=TableName%20eq%20'«T»'") if p)
        return Request("negotiation", f"{cond} on {'tables' if path == '/Tables' else 'entities'}", "GET", path, query, headers=[("Accept", accept)], auth=self.signer(), expect=expect)

    def verb(self):
        cond, verb, path, headers, expect = self.pick([
            ("PUT on a table", "PUT", "/«T»", [], None), ("DELETE on a table path", "DELETE", "/«T»", [], None), ("POST on an entity", "POST", "/«T»(PartitionKey='x',RowKey='y')", [], None),
            ("tunnel on GET", "GET", "/«T»()", [("X-HTTP-Method", "MERGE")], (400, "XMethodNotUsingPost")), ("tunnel of nonsense", "POST", "/«T»(PartitionKey='x',RowKey='y')", [("X-HTTP-Method", "FETCH")], (400, "XMethodIncorrectValue")),
            ("tunnelled delete, no row", "POST", "/«T»(PartitionKey='x',RowKey='nosuch')", [("X-HTTP-Method", "DELETE"), ("If-Match", "*")], (404, "ResourceNotFound")), ("PUT on Tables", "PUT", "/Tables", [], None),
            ("GET on $batch", "GET", "/$batch", [], None), ("PUT on $batch", "PUT", "/$batch", [], None), ("HEAD on a table", "HEAD", "/«T»()", [], None), ("DELETE on Tables", "DELETE", "/Tables", [], None)])
        body = "{}" if verb in ("PUT", "POST") and "tunnelled" not in cond else None
        return Request("verbs", cond, verb, path, headers=headers + ([("Content-Type", JSON)] if body else []), body=body, auth=self.signer(), expect=expect, writes=True, effect=self.spoil)

    def header(self):
        cond, headers, expect = self.pick([
            ("client request id", [("x-ms-client-request-id", "0a1b-c2 d3")], (200, "")), ("client request id of 1100", [("x-ms-client-request-id", "x" * 1100)], None),
            ("old version", [("x-ms-version", "2017-04-17")], (200, "")), ("new version", [("x-ms-version", "2020-12-06")], (200, "")), ("garbled version", [("x-ms-version", "yesterday")], (400, "InvalidHeaderValue")),
            ("old data service version", [("DataServiceVersion", "1.0"), ("MaxDataServiceVersion", "1.0")], None), ("data service version of .NET", [("DataServiceVersion", "3.0;NetFx"), ("MaxDataServiceVersion", "3.0;NetFx")], (200, "")),
            ("if-none-match", [("If-None-Match", "*")], None), ("future version", [("x-ms-version", "2030-01-01")], None)])
        return Request("headers", cond, "GET", "/«T»()", "$top=1", headers=headers, auth=self.signer(), expect=expect)


# The family of service properties keeps its rules for the whole run, as the service does.
Scenario.properties_family = Scenario.properties_or_get
Scenario.FAMILIES = [("properties_family" if name == "properties" else name, weight) for name, weight in Scenario.FAMILIES]


def batch_statuses(answer):
    return [int(code) for code in re.findall(r"^HTTP/1\.1 (\d{3})", answer.body.decode("utf-8", "replace"), re.M)]
