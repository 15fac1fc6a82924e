"""Values of every type as keys of an index: each comparison finds what it found without one, in pages too."""

from datetime import datetime, timezone
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty

from clients import entity
from index_clients import Indexes, all_pages, explain, fill
from suite import equal

OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge")
UTC = timezone.utc
INT64 = lambda value: EntityProperty(value, EdmType.INT64)

# Values of a type, and literals that they are compared with.
STRINGS = ["", "A", "a", "ab", "it's", "ä", "中", "～", "😀", "x" * 511, "x" * 512, "x" * 513, "x" * 513 + "y", "a\nb", "|~"]
BINARIES = [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"\xff", bytes(600), bytes(601)]
DATES = [
    datetime(1601, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC),
]
DOUBLES = [float("-inf"), -1e300, -0.5, -0.0, 0.0, 0.1, 2.0, 1e300, float("inf"), float("nan")]
GUIDS = [UUID(int=0), UUID(int=1), UUID("c9da6455-213d-42c9-9a79-3e9149a57833"), UUID(int=2**128 - 1)]
INT32S = [-(2**31), -1, 0, 1, 2, 10, 2**31 - 1]
INT64S = [-(2**63), -(2**53) - 1, -1, 0, 2, 2**53, 2**53 + 1, 2**63 - 1]


def _text(value):
    return "'" + value.replace("'", "''") + "'"


def _literals():
    yield from (_text(value) for value in STRINGS)
    yield from (f"X'{value.hex()}'" for value in BINARIES)
    yield from (f"datetime'{value:%Y-%m-%dT%H:%M:%S.%fZ}'" for value in DATES)
    yield from (repr(value) for value in DOUBLES if abs(value) < float("inf"))
    yield from (f"guid'{value}'" for value in GUIDS)
    yield from (str(value) for value in INT32S)
    yield from (f"{value}L" for value in INT64S)
    yield from ("true", "false")


ALL = [*STRINGS, *BINARIES, *DATES, *DOUBLES, *GUIDS, *INT32S, *map(INT64, INT64S), True, False]


async def _compare(kit, values, literals, keys="V", **more):
    """Asks every comparison without an index, then with one that has to be used; one entity has no value."""
    table = await kit.new_table(entity("p", "none"))
    await fill(table, (entity("p", f"{at:03}", V=value) for at, value in enumerate(values)))
    filters = [f"V {operator} {literal}" for literal in literals for operator in OPERATORS]
    before = {filter: (await explain(table, filter))[0] for filter in filters}
    assert any(before.values())
    await Indexes(kit, table).build("ByV", keys, **more)
    for filter, expected in before.items():
        found, used = await explain(table, filter, hint="ByV")
        equal(_comparable(found), _comparable(expected), filter)
        assert used.startswith("index ByV "), f"{filter}: {used}"
    return table


def _comparable(found):
    """NaN is not equal to itself."""
    return [repr(one) for one in found]


async def strings_as_keys(kit):
    await _compare(kit, STRINGS, map(_text, [*STRINGS, "x" * 514, "zzz"]))


async def binaries_as_keys(kit):
    await _compare(kit, BINARIES, (f"X'{value.hex()}'" for value in BINARIES))


async def dates_as_keys(kit):
    await _compare(kit, DATES, (f"datetime'{value:%Y-%m-%dT%H:%M:%S.%fZ}'" for value in DATES))


async def doubles_as_keys(kit):
    await _compare(kit, DOUBLES, (repr(value) for value in DOUBLES if abs(value) < float("inf")))


async def guids_as_keys(kit):
    await _compare(kit, GUIDS, (f"guid'{value}'" for value in GUIDS))


async def int32s_as_keys(kit):
    await _compare(kit, INT32S, map(str, INT32S))


async def int64s_as_keys(kit):
    await _compare(kit, map(INT64, INT64S), (f"{value}L" for value in INT64S))


async def booleans_as_keys(kit):
    await _compare(kit, [False, True], ("true", "false"))


async def all_types_in_one_index(kit):
    await _compare(kit, ALL, _literals())


async def all_types_in_one_index_of_copies(kit):
    await _compare(kit, ALL, ("''", "'ab'", "0", "2", "2L", "0.0", "true", "X'00'", f"guid'{GUIDS[1]}'"), keys="V?", Include="*")


async def numbers_of_three_types_meet_one_literal(kit):
    table = await kit.new_table(
        entity(row="double", V=3.0), entity(row="int32", V=3), entity(row="int64", V=INT64(3)), entity(row="text", V="3"),
    )
    indexes = Indexes(kit, table)
    found = await indexes.build("ByV", "V:Int32")
    equal(found["OffType"].value, 3)
    finds = {"3": ["double", "int32", "int64"], "3L": ["double", "int64"], "3.0": ["double"], "'3'": ["text"]}
    for literal, expected in finds.items():
        found, used = await explain(table, f"V eq {literal}", hint="ByV")
        equal([one["RowKey"] for one, _ in found], expected, literal)
        assert used.startswith("index ByV"), used


async def timestamps_as_keys(kit):
    table = await kit.new_table(entity(row="1"), entity(row="2"), entity(row="3"))
    indexes = Indexes(kit, table)
    found = await indexes.build("ByTime", "Timestamp")
    assert "Timestamp" in found["Note"], found
    stamp = (await table.get_entity("p", "2")).metadata["timestamp"].tables_service_value
    for operator, expected in (("eq", ["2"]), ("gt", ["3"]), ("le", ["1", "2"])):
        found, used = await explain(table, f"Timestamp {operator} datetime'{stamp}'", hint="ByTime")
        equal([one["RowKey"] for one, _ in found], expected, operator)
        assert used.startswith("index ByTime"), used
    await table.upsert_entity(entity(row="1", V=1))
    found, _ = await explain(table, f"Timestamp gt datetime'{stamp}'", hint="ByTime")
    equal([one["RowKey"] for one, _ in found], ["1", "3"])


UNICODE = [
    "ascii", "Ärger", "日本語", "Ελλάδα", "русский", "עברית", "😀😃", "e\u0301", "\u00e9", "ﬀ", "Straße", "\ufffd", "\U0010ffff",
]


async def unicode_in_names_values_and_keys(kit):
    table = await kit.new_table()
    for at, word in enumerate(UNICODE):
        await fill(table, [entity(word, f"{other}-{at}", Größe=word, 名=other) for other in UNICODE])
    filters = ["名 eq '😀😃'", "Größe gt 'z' and Größe lt '～'"]
    for word in map(_text, UNICODE):
        filters += [f"Größe eq {word}", f"Größe eq {word} and 名 gt 'z'", f"Größe ge {word} and Größe le {word}", f"Größe gt {word}"]
    before = {filter: (await explain(table, filter))[0] for filter in filters}
    equal(len(before["Größe eq '日本語'"]), len(UNICODE))
    indexes, name = Indexes(kit, table), kit.name()
    equal((await indexes.build("Size", "Größe,名", BrowseAs=name))["Keys"], "Größe,名")
    for filter, expected in before.items():
        found, used = await explain(table, filter)
        equal(found, expected, filter)
        if filter.startswith("Größe eq"):
            assert used.startswith("index Size"), f"{filter}: {used}"
    pages = await all_pages(kit.table(name).list_entities(results_per_page=50))
    in_order = sorted(UNICODE, key=lambda word: word.encode("utf-16-be"))
    expected = [(word, other) for word in in_order for other in in_order]
    equal([(one["PartitionKey"], one["名"]) for page in pages for one, _ in page], expected)
    one = pages[0][0][0]
    equal(one["RowKey"], "|".join([one["名"], one["OriginPartitionKey"], one["OriginRowKey"]]))
