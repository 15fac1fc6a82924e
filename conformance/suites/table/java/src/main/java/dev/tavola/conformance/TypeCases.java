package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.data.tables.models.TableEntity;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.UUID;

final class TypeCases {
    private TypeCases() {}

    private static void thereAndBack(String name, Object value) {
        test("types: " + name + " there and back", onTable(table -> {
            table.createEntity(row("r", "v", value));
            equal(table.getEntity("p", "r").getProperty("v"), value);
        }));
    }

    private static void annotated(String name, String type, Object sent, Object want) {
        test("types: " + name, onTable(table -> {
            table.createEntity(row("r", "v", sent, "v@odata.type", type));
            equal(table.getEntity("p", "r").getProperty("v"), want);
        }));
    }

    private static void unreadable(String name, String type, Object value, String code) {
        test("types: " + name + " is " + code, onTable(table ->
            refused(400, code, () -> table.createEntity(row("r", "v", value, "v@odata.type", type)))));
    }

    static void register() {
        thereAndBack("empty string", "");
        thereAndBack("string with blanks at both ends", "  a b  ");
        thereAndBack("string with control characters", "tab\tline\nquote\"back\\slash\u0001");
        thereAndBack("string of emoji", "👩‍👩‍👧‍👦 🏳️‍🌈 𝄞");
        thereAndBack("string in five scripts", "Zürich Ελλάδα Москва 東京 القاهرة");
        thereAndBack("string like a date", "2020-01-01T00:00:00Z");
        thereAndBack("string of 64 KiB", "é".repeat(32 * 1024));
        thereAndBack("string of 64 KiB in emoji", "😀".repeat(16 * 1024));
        thereAndBack("boolean true", true);
        thereAndBack("boolean false", false);
        thereAndBack("int32 minimum", Integer.MIN_VALUE);
        thereAndBack("int32 maximum", Integer.MAX_VALUE);
        thereAndBack("int64 minimum", Long.MIN_VALUE);
        thereAndBack("int64 maximum", Long.MAX_VALUE);
        thereAndBack("int64 zero", 0L);
        thereAndBack("double with a fraction", Math.PI);
        thereAndBack("double that is whole", 5.0);
        thereAndBack("double maximum", Double.MAX_VALUE);
        thereAndBack("double smallest", Double.MIN_VALUE);
        thereAndBack("date minimum", OffsetDateTime.parse("1601-01-01T00:00:00Z"));
        // The SDK writes a date of ticks with nine digits, two more than the service keeps.
        thereAndBack("date minimum and a tick", OffsetDateTime.parse("1601-01-01T00:00:00.0000001Z"));
        thereAndBack("date maximum", OffsetDateTime.parse("9999-12-31T23:59:59.9999999Z"));
        thereAndBack("date with ticks", OffsetDateTime.parse("2021-03-04T05:06:07.1234567Z"));
        thereAndBack("date before 1970", OffsetDateTime.parse("1903-12-17T10:35:00Z"));
        thereAndBack("guid", UUID.fromString("c9da6455-213d-42c9-9a79-3e9149a57833"));
        thereAndBack("binary", new byte[] {0, 1, 127, -128, -2, -1});
        thereAndBack("empty binary", new byte[0]);
        thereAndBack("binary of 64 KiB", new byte[64 * 1024]);

        annotated("date with an offset comes back in UTC", "Edm.DateTime", "2020-01-01T02:00:00+02:00", OffsetDateTime.parse("2020-01-01T00:00:00Z"));
        annotated("double NaN", "Edm.Double", "NaN", Double.NaN);
        annotated("double Infinity", "Edm.Double", "Infinity", Double.POSITIVE_INFINITY);
        annotated("double -Infinity", "Edm.Double", "-Infinity", Double.NEGATIVE_INFINITY);
        annotated("double sent as text", "Edm.Double", "3.25", 3.25);
        annotated("double sent as an integer", "Edm.Double", 5, 5.0);

        test("types: null is as good as absent", onTable(table -> {
            table.createEntity(row("r", "gone", null, "there", 1));
            that(!table.getEntity("p", "r").getProperties().containsKey("gone"), "null was stored");
        }));

        test("types: all of them in one entity", onTable(table -> {
            Map<String, Object> values = Map.of("s", "text", "b", true, "i", 1, "l", 2L, "d", 1.5, "t", OffsetDateTime.parse("2020-01-01T00:00:00Z"),
                "g", UUID.fromString("00000000-0000-0000-0000-000000000001"));
            TableEntity entity = row("r");
            values.forEach(entity::addProperty);
            table.createEntity(entity);
            TableEntity got = table.getEntity("p", "r");
            values.forEach((name, value) -> equal(got.getProperty(name), value));
        }));

        unreadable("a string over 64 KiB", "Edm.String", "x".repeat(32 * 1024 + 1), "PropertyValueTooLarge");
        unreadable("a binary over 64 KiB", "Edm.Binary", new byte[64 * 1024 + 1], "PropertyValueTooLarge");
        unreadable("a date before 1601", "Edm.DateTime", OffsetDateTime.parse("1600-12-31T23:59:59Z"), "OutOfRangeInput");
        unreadable("an Int64 over its limit", "Edm.Int64", "9223372036854775808", "InvalidInput");
        unreadable("an Int32 over its limit", "Edm.Int32", "2147483648", "InvalidInput");
        unreadable("a Guid that is none", "Edm.Guid", "not-a-guid", "InvalidInput");
        unreadable("a DateTime that is none", "Edm.DateTime", "yesterday", "InvalidInput");
        unreadable("a Binary that is no base64", "Edm.Binary", "***", "InvalidInput");
    }
}
