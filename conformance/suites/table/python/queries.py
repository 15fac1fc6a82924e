"""Filters by each type and each operator, and what a filter may not be."""

import operator
from datetime import datetime, timezone
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty

from clients import entity, row_keys
from sdk import collect, raises
from suite import equal

OPERATORS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}


async def _each_operator(kit, stored, literals, wrap=lambda value: value, render=None):
    """Compares every stored value with every literal by every operator; Python's own order is the oracle.

    The literal goes into the filter as a parameter of the SDK, and again as text when `render` is given.
    """
    table = await kit.new_table(*(entity("p", f"{at:02}", V=wrap(value)) for at, value in enumerate(stored)))
    for literal in literals:
        for name, compare in OPERATORS.items():
            expected = [f"{at:02}" for at, value in enumerate(stored) if compare(value, literal)]
            found = await row_keys(table.query_entities(f"V {name} @literal", parameters={"literal": literal}))
            equal(found, expected, f"V {name} {literal!r}")
            if render:
                found = await row_keys(table.query_entities(f"V {name} {render(literal)}"))
                equal(found, expected, f"V {name} {render(literal)}")


async def strings_by_each_operator(kit):
    values = ["", "A", "B", "a", "ab", "b", "it's", "ä", "中"]
    await _each_operator(kit, values, ["", "A", "a", "it's", "中", "zzz"])


async def strings_compare_by_utf16_units(kit):
    # U+1F600 is written with surrogates, which order before U+FF5E although its code point is larger.
    table = await kit.new_table(entity(row="emoji", V="😀"), entity(row="wave", V="～"))
    equal(await row_keys(table.query_entities("V lt @v", parameters={"v": "～"})), ["emoji"])


async def int32_by_each_operator(kit):
    values = [-(2**31), -1, 0, 1, 2, 10, 2**31 - 1]
    await _each_operator(kit, values, [-(2**31), 0, 2, 2**31 - 1], render=str)


async def int64_by_each_operator(kit):
    values = [-(2**63), -(2**53) - 1, -1, 0, 9, 10, 2**53, 2**53 + 1, 2**63 - 1]
    await _each_operator(
        kit, values, [-(2**63), 2**53, 2**53 + 1, 2**63 - 1],
        wrap=lambda value: EntityProperty(value, EdmType.INT64), render=lambda value: f"{value}L",
    )


async def int64_is_compared_with_small_literals_of_either_width(kit):
    table = await kit.new_table(*(
        entity(row=str(value), V=EntityProperty(value, EdmType.INT64)) for value in (5, 9, 10)
    ))
    equal(sorted(await row_keys(table.query_entities("V ge 9"))), ["10", "9"])
    equal(sorted(await row_keys(table.query_entities("V ge 9L"))), ["10", "9"])


async def doubles_by_each_operator(kit):
    values = [float("-inf"), -1e300, -0.5, 0.0, 0.1, 2.0, 10.0, 1e300, float("inf")]
    await _each_operator(kit, values, [-0.5, 0.0, 0.1, 10.0, 1e300], render=repr)


async def booleans_by_each_operator(kit):
    await _each_operator(kit, [False, True], [False, True], render=lambda value: str(value).lower())


async def dates_by_each_operator(kit):
    utc = timezone.utc
    values = [
        datetime(1601, 1, 1, tzinfo=utc), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=utc),
        datetime(1970, 1, 1, tzinfo=utc), datetime(2020, 1, 1, tzinfo=utc),
        datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=utc), datetime(9999, 12, 31, tzinfo=utc),
    ]
    await _each_operator(kit, values, values[1:5], render=lambda value: f"datetime'{value:%Y-%m-%dT%H:%M:%S.%fZ}'")


async def dates_are_compared_by_ticks(kit):
    table = await kit.new_table(*(
        entity(row=digit, V=EntityProperty(f"2020-01-01T00:00:00.123456{digit}Z", EdmType.DATETIME)) for digit in "123"
    ))
    equal(await row_keys(table.query_entities("V gt datetime'2020-01-01T00:00:00.1234561Z'")), ["2", "3"])
    equal(await row_keys(table.query_entities("V eq datetime'2020-01-01T02:00:00.1234562+02:00'")), ["2"])


async def guids_by_equality(kit):
    values = [UUID(int=0), UUID("c9da6455-213d-42c9-9a79-3e9149a57833"), UUID(int=2**128 - 1)]
    table = await kit.new_table(*(entity(row=str(at), V=value) for at, value in enumerate(values)))
    for at, value in enumerate(values):
        equal(await row_keys(table.query_entities("V eq @v", parameters={"v": value})), [str(at)])
        others = [str(other) for other in range(3) if other != at]
        equal(await row_keys(table.query_entities("V ne @v", parameters={"v": value})), others)
        equal(await row_keys(table.query_entities(f"V eq guid'{str(value).upper()}'")), [str(at)])


async def guids_have_an_order(kit):
    values = [UUID(int=0), UUID(int=1), UUID("00000000-0000-0000-0000-0000000000ff"), UUID(int=2**128 - 1)]
    table = await kit.new_table(*(entity(row=str(at), V=value) for at, value in enumerate(values)))
    equal(await row_keys(table.query_entities("V gt @v", parameters={"v": values[1]})), ["2", "3"])
    equal(await row_keys(table.query_entities("V le @v", parameters={"v": values[1]})), ["0", "1"])


async def binaries_by_each_operator(kit):
    values = [b"", b"\0", b"\0\0", b"\x01", b"a", b"ab", b"b", b"\xff"]
    await _each_operator(kit, values, [b"", b"\0", b"ab", b"\xff"], render=lambda value: f"binary'{value.hex()}'")


async def keys_by_each_operator(kit):
    keys = ["a", "b", "c", "d"]
    table = await kit.new_table(*(entity(key, key) for key in keys))
    for property in ("PartitionKey", "RowKey"):
        for name, compare in OPERATORS.items():
            expected = [key for key in keys if compare(key, "b")]
            equal(await row_keys(table.query_entities(f"{property} {name} 'b'")), expected, f"{property} {name}")


async def the_timestamp_can_be_asked_for(kit):
    table = await kit.new_table(entity(row="1"), entity(row="2"))
    stamp = (await table.get_entity("p", "1")).metadata["timestamp"].tables_service_value
    equal(await row_keys(table.query_entities(f"Timestamp eq datetime'{stamp}'")), ["1"])
    equal(await row_keys(table.query_entities(f"Timestamp gt datetime'{stamp}'")), ["2"])


async def and_or_not_and_parentheses(kit):
    table = await kit.new_table(*(entity(row=str(number), N=number, Even=number % 2 == 0) for number in range(8)))
    for filter, expected in {
        "N lt 2 or N gt 5 and Even eq true": "016",
        "(N lt 2 or N gt 5) and Even eq true": "06",
        "not (N lt 6)": "67",
        "not (N lt 2 or N gt 3) and Even eq true": "2",
        "N gt 1 and N lt 7 and (N eq 2 or N eq 6 or N eq 7)": "26",
        "not N eq 0 and not N eq 1": "234567",
        "Even": "0246",
        "not Even": "1357",
        "3 lt N": "4567",
        "((((N eq 1))))": "1",
    }.items():
        equal("".join(await row_keys(table.query_entities(filter))), expected, filter)


async def a_missing_property_matches_nothing_but_its_negation(kit):
    table = await kit.new_table(entity(row="with", A=1), entity(row="without", B=1))
    equal(await row_keys(table.query_entities("A eq 1")), ["with"])
    equal(await row_keys(table.query_entities("A ne 2")), ["with"])
    equal(await row_keys(table.query_entities("not (A eq 1)")), ["without"])


async def a_value_of_another_type_is_less_than_the_literal(kit):
    table = await kit.new_table(
        entity(row="date", V=datetime(2020, 1, 1, tzinfo=timezone.utc)), entity(row="number", V=5),
        entity(row="text", V="5"),
    )
    equal(await row_keys(table.query_entities("V eq '5'")), ["text"])
    equal(await row_keys(table.query_entities("V ne '5'")), ["date", "number"])
    equal(await row_keys(table.query_entities("V lt ''")), ["date", "number"])
    equal(await row_keys(table.query_entities("V gt ''")), ["text"])


async def a_prefix_is_asked_for_by_range(kit):
    table = await kit.new_table(*(entity(row=name) for name in ("bar", "foo", "foo-1", "foo-2", "fop", "zoo")))
    equal(await row_keys(table.query_entities("RowKey ge 'foo' and RowKey lt 'fop'")), ["foo", "foo-1", "foo-2"])


async def quotes_in_parameters_are_text(kit):
    table = await kit.new_table(entity(row="1", V="x' or 'a' eq 'a"), entity(row="2", V="x"))
    equal(await row_keys(table.query_entities("V eq @v", parameters={"v": "x' or 'a' eq 'a"})), ["1"])


async def special_characters_in_filters_reach_the_server_whole(kit):
    texts = ["a+b", "100%", "a&b", "a#b", "a/b?c=d", "ü 中 😀", "", " ", "tab\there", "%27", "a\\b"]
    table = await kit.new_table(*(entity(row=f"{at:02}", V=text) for at, text in enumerate(texts)))
    for at, text in enumerate(texts):
        equal(await row_keys(table.query_entities("V eq @v", parameters={"v": text})), [f"{at:02}"], repr(text))


async def a_long_filter_is_answered(kit):
    table = await kit.new_table(*(entity(row=f"{number:03}") for number in range(400)))
    wanted = [f"{number:03}" for number in range(0, 400, 2)]
    filter = "PartitionKey eq 'p' and (" + " or ".join(f"RowKey eq '{row}'" for row in wanted * 5) + ")"
    assert len(filter) > 18_000
    equal(await row_keys(table.query_entities(filter)), wanted)


async def select_goes_with_a_filter_on_another_property(kit):
    table = await kit.new_table(entity(row="1", A=1, B="x"), entity(row="2", A=2, B="y"))
    found = await collect(table.query_entities("A eq 2", select=["B", "Missing"]))
    equal([dict(one) for one in found], [{"B": "y", "Missing": None}])
    assert found[0].metadata["etag"].startswith("W/"), found[0].metadata


async def select_keeps_types(kit):
    big = EntityProperty(2**40, EdmType.INT64)
    table = await kit.new_table(entity(Big=big, Data=b"x", Rest=1))
    equal([dict(one) for one in await collect(table.list_entities(select="Big,Data"))], [{"Big": big, "Data": b"x"}])


async def entities_come_in_order_of_their_keys(kit):
    pairs = [("b", "1"), ("a", "2"), ("a", "10"), ("B", "1"), ("", "z"), ("a", ""), ("ä", "1")]
    table = await kit.new_table(*(entity(*pair) for pair in pairs))
    found = [(one["PartitionKey"], one["RowKey"]) for one in await collect(table.list_entities())]
    equal(found, sorted(pairs))


async def an_empty_filter_matches_all(kit):
    table = await kit.new_table(entity(row="1"), entity(row="2"))
    equal(await row_keys(table.query_entities("")), ["1", "2"])


async def a_filter_that_is_no_filter_is_refused(kit):
    table = await kit.new_table(entity(V=1))
    for filter in (
        "aaa bbb ccc", "V eq", "V = 1", "(V eq 1", "V eq 1)", "V eq 'open", "V eq 1 and", "V Eq 1", "V eq 5454161346626",
        "V eq null", "V eq datetime'yesterday'", "V eq guid'1'", "V eq X'0'",
    ):
        with raises(code="InvalidInput", status=400) as refused:
            await collect(table.query_entities(filter))
            raise AssertionError(f"accepted: {filter}")
        assert "RequestId:" in refused.error.message, refused.error.message


async def functions_and_arithmetic_are_not_implemented(kit):
    table = await kit.new_table(entity(V=1, W="x"))
    for filter in ("startswith(W, 'x')", "substringof('x', W)", "length(W) eq 1", "V add 1 eq 2", "V eq W", "1 eq 1"):
        with raises(code="NotImplemented", status=501):
            await collect(table.query_entities(filter))
            raise AssertionError(f"accepted: {filter}")


async def a_page_size_out_of_range_is_refused(kit):
    table = await kit.new_table(entity())
    for size in (1001, -1):
        with raises(code="InvalidInput", status=400):
            await collect(table.list_entities(results_per_page=size))
            raise AssertionError(f"accepted: {size}")
