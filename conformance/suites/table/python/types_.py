"""Each type there and back, at its extremes."""

import math
from datetime import datetime, timedelta, timezone
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty

from clients import entity
from sdk import collect, raises
from suite import equal

UTC = timezone.utc


async def _there_and_back(kit, **values):
    """Writes the values and returns what is read by a point read, having checked that a query returns the same."""
    table = await kit.new_table(entity(**values))
    found = await table.get_entity("p", "r")
    listed = (await collect(table.list_entities()))[0]
    equal(set(found), {"PartitionKey", "RowKey", *values})
    equal(repr(dict(listed)), repr(dict(found)), "answer of a query")
    return found


async def strings_come_back(kit):
    texts = {
        "Empty": "",
        "Blank": "  leading and trailing  ",
        "Emoji": "👩‍👩‍👧‍👦 🇩🇪 𝒳",
        "Quotes": "it's \"quoted\" \\ / back",
        "Controls": "tab\t newline\r\n bell\x07 escape\x1b del\x7f",
        "Scripts": "Ελληνικά עברית العربية 中文 हिन्दी",
        "NotCharacters": "\ufffe\uffff\ufeff\u2028\u2029",
        "LooksTyped": "2020-01-01T00:00:00Z",
        "Markup": "<a href='x'>&amp;</a>",
    }
    found = await _there_and_back(kit, **texts)
    for name, text in texts.items():
        equal(found[name], text, name)


async def a_string_of_64_kib_is_stored_and_a_longer_one_refused(kit):
    longest = "ü" * 32_768
    found = await _there_and_back(kit, Text=longest)
    equal(found["Text"], longest)
    table = await kit.new_table()
    with raises(code="PropertyValueTooLarge", status=400):
        await table.create_entity(entity(Text=longest + "u"))
    await table.create_entity(entity(Text="😀" * 16_384))
    with raises(code="PropertyValueTooLarge", status=400):
        await table.upsert_entity(entity(Text="😀" * 16_384 + "x"))


async def binaries_come_back(kit):
    values = {"Empty": b"", "Every": bytes(range(256)), "Zero": b"\0" * 3}
    found = await _there_and_back(kit, **values)
    for name, value in values.items():
        equal(found[name], value, name)


async def a_binary_of_64_kib_is_stored_and_a_longer_one_refused(kit):
    longest = bytes(range(256)) * 256
    equal((await _there_and_back(kit, Data=longest))["Data"], longest)
    table = await kit.new_table()
    with raises(code="PropertyValueTooLarge", status=400):
        await table.create_entity(entity(Data=longest + b"x"))


async def booleans_come_back(kit):
    found = await _there_and_back(kit, Yes=True, No=False)
    assert found["Yes"] is True and found["No"] is False


async def int32_limits_come_back(kit):
    for name, value in {"Least": -(2**31), "Most": 2**31 - 1, "Zero": 0, "MinusOne": -1}.items():
        found = await _there_and_back(kit, **{name: value})
        equal(found[name], value)
        equal(type(found[name]), int)


async def int64_limits_come_back(kit):
    values = {"Least": -(2**63), "Most": 2**63 - 1, "Zero": 0, "Small": 5, "PastDouble": 2**53 + 1}
    found = await _there_and_back(kit, **{name: EntityProperty(value, EdmType.INT64) for name, value in values.items()})
    for name, value in values.items():
        equal(found[name], EntityProperty(value, EdmType.INT64), name)


async def an_int64_out_of_range_is_refused(kit):
    table = await kit.new_table()
    with raises(TypeError):
        await table.create_entity(entity(V=EntityProperty(2**63, EdmType.INT64)))
    equal(await collect(table.list_entities()), [])


async def doubles_come_back(kit):
    values = {
        "Whole": 5.0, "Fraction": 0.1, "Most": 1.7976931348623157e308, "Least": -1.7976931348623157e308,
        "Tiny": 5e-324, "Normal": 2.2250738585072014e-308, "Large": 1e20, "Exact": 9007199254740993.0, "Pi": math.pi,
        "Zero": 0.0, "Third": 1 / 3,
    }
    found = await _there_and_back(kit, **values)
    for name, value in values.items():
        equal(found[name], value, name)
        equal(type(found[name]), float, name)


async def nan_and_the_infinities_come_back(kit):
    found = await _there_and_back(kit, NotANumber=math.nan, Up=math.inf, Down=-math.inf)
    assert math.isnan(found["NotANumber"])
    equal((found["Up"], found["Down"]), (math.inf, -math.inf))


async def a_double_written_as_text_or_integer_comes_back_as_double(kit):
    found = await _there_and_back(
        kit, Text=EntityProperty("3.25", EdmType.DOUBLE), Whole=EntityProperty(5, EdmType.DOUBLE)
    )
    equal((found["Text"], found["Whole"]), (3.25, 5.0))
    equal(type(found["Whole"]), float)


async def dates_come_back(kit):
    values = {
        "First": datetime(1601, 1, 1, tzinfo=UTC),
        "Last": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "Epoch": datetime(1970, 1, 1, tzinfo=UTC),
        "Micro": datetime(2020, 2, 29, 12, 30, 15, 123456, tzinfo=UTC),
        "Tenth": datetime(2020, 2, 29, 12, 30, 15, 100000, tzinfo=UTC),
    }
    found = await _there_and_back(kit, **values)
    for name, value in values.items():
        equal(found[name], value, name)
    equal(found["Epoch"].tables_service_value, "1970-01-01T00:00:00Z")
    equal(found["Tenth"].tables_service_value, "2020-02-29T12:30:15.1Z")


async def ticks_of_100_nanoseconds_survive(kit):
    texts = {
        "First": "1601-01-01T00:00:00.0000001Z",
        "Last": "9999-12-31T23:59:59.9999999Z",
        "Odd": "2020-02-29T12:30:15.1234567Z",
    }
    found = await _there_and_back(kit, **{name: EntityProperty(text, EdmType.DATETIME) for name, text in texts.items()})
    for name, text in texts.items():
        equal(found[name].tables_service_value, text, name)
    table = await kit.new_table(dict(found))
    again = await table.get_entity("p", "r")
    for name, text in texts.items():
        equal(again[name].tables_service_value, text, f"{name} written back")


async def a_date_in_another_zone_comes_back_in_utc(kit):
    local = datetime(2020, 6, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    equal((await _there_and_back(kit, When=local))["When"], datetime(2020, 5, 31, 23, 30, tzinfo=UTC))


async def a_date_before_1601_is_refused(kit):
    table = await kit.new_table()
    with raises(code="OutOfRangeInput", status=400):
        await table.create_entity(entity(When=EntityProperty("1600-12-31T23:59:59Z", EdmType.DATETIME)))


async def guids_come_back(kit):
    values = {"Some": UUID("c9da6455-213d-42c9-9a79-3e9149a57833"), "Nil": UUID(int=0), "Full": UUID(int=2**128 - 1)}
    found = await _there_and_back(kit, **values)
    for name, value in values.items():
        equal(found[name], value, name)


async def each_type_can_be_named_outright(kit):
    found = await _there_and_back(
        kit,
        Text=EntityProperty("5", EdmType.STRING),
        Number=EntityProperty(5, EdmType.INT32),
        Truth=EntityProperty(True, EdmType.BOOLEAN),
        Data=EntityProperty(b"5", EdmType.BINARY),
        Id=EntityProperty("C9DA6455-213D-42C9-9A79-3E9149A57833", EdmType.GUID),
    )
    equal(found["Text"], "5")
    equal(found["Number"], 5)
    equal(found["Truth"], True)
    equal(found["Data"], b"5")
    equal(found["Id"], UUID("c9da6455-213d-42c9-9a79-3e9149a57833"))


async def a_value_that_is_not_of_its_type_is_refused(kit):
    table = await kit.new_table()
    for value in (
        EntityProperty("not a date", EdmType.DATETIME),
        EntityProperty("not a guid", EdmType.GUID),
        EntityProperty("not a number", EdmType.DOUBLE),
        EntityProperty("not a truth", EdmType.BOOLEAN),
    ):
        with raises(code="InvalidInput", status=400):
            await table.upsert_entity(entity(V=value))
    equal(await collect(table.list_entities()), [])
