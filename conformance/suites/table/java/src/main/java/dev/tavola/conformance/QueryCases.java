package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;

final class QueryCases {
    private static final Map<String, List<String>> OPERATORS = Map.of(
        "eq", List.of("2"), "ne", List.of("1", "3"), "lt", List.of("1"), "le", List.of("1", "2"), "gt", List.of("3"), "ge", List.of("2", "3"));

    private QueryCases() {}

    /** Rows 1, 2 and 3 hold a low, a middle and a high value; the literal is the middle one; row none holds none. */
    private static void typed(String type, String literal, Object... values) {
        OPERATORS.forEach((operator, keys) -> test("queries: " + type + " " + operator, onTable(table -> {
            for (int i = 0; i < values.length; i++) {
                table.createEntity(row(String.valueOf(i + 1), "v", values[i]));
            }
            table.createEntity(row("none"));
            List<String> possible = keys.stream().filter(key -> Integer.parseInt(key) <= values.length).toList();
            equal(rowKeys(table, "v " + operator + " " + literal), String.join(" ", possible));
        })));
    }

    /** Fills the table with the rows 1 to 9: their number, whether it is even, and its word. */
    private static void countToNine(TableClient table) {
        List<TableTransactionAction> actions = new ArrayList<>();
        int n = 0;
        for (String word : "one two three four five six seven eight nine".split(" ")) {
            n++;
            actions.add(new TableTransactionAction(CREATE, row(String.valueOf(n), "n", n, "even", n % 2 == 0, "word", word)));
        }
        table.submitTransaction(actions);
    }

    private static void finds(String name, String filter, String want) {
        test("queries: " + name, onTable(table -> {
            countToNine(table);
            equal(rowKeys(table, filter), want);
        }));
    }

    private static void mistaken(String name, String filter, int status, String code) {
        test("queries: " + name + " is " + code, onTable(table -> refused(status, code, () -> list(table, filter))));
    }

    static void register() {
        typed("String", "'a''b'", "", "a'b", "ü");
        typed("Boolean", "true", false, true);
        typed("Int32", "0", -5, 0, Integer.MAX_VALUE);
        typed("Int64", "0L", Long.MIN_VALUE, 0L, Long.MAX_VALUE);
        typed("Double", "0.25", -1.5e300, 0.25, 1e300);
        typed("DateTime", "datetime'2020-02-29T12:00:00.000001Z'", OffsetDateTime.parse("1601-01-01T00:00:00Z"),
            OffsetDateTime.parse("2020-02-29T12:00:00.000001Z"), OffsetDateTime.parse("9999-12-31T00:00:00Z"));
        typed("Guid", "guid'11111111-2222-3333-4444-555555555555'", UUID.fromString("00000000-0000-0000-0000-000000000001"),
            UUID.fromString("11111111-2222-3333-4444-555555555555"), UUID.fromString("f0000000-0000-0000-0000-000000000000"));
        typed("Binary", "X'0102'", new byte[0], new byte[] {1, 2}, new byte[] {1, 2, 0});

        finds("no filter", null, "1 2 3 4 5 6 7 8 9");
        finds("and binds tighter than or", "n eq 1 or n eq 2 and even", "1 2");
        finds("parentheses", "(n eq 1 or n eq 2) and even eq true", "2");
        finds("not", "not (n lt 8)", "8 9");
        finds("a bare boolean property", "even", "2 4 6 8");
        finds("a literal on the left", "3 gt n", "1 2");
        finds("a range of row keys", "PartitionKey eq 'p' and RowKey ge '3' and RowKey lt '6'", "3 4 5");
        finds("a prefix of a string", "word ge 't' and word lt 'u'", "2 3");
        finds("another partition", "PartitionKey eq 'q'", "");
        finds("a missing property with ne", "none ne 1", "");
        finds("not of a missing property", "not (none eq 1) and n eq 5", "5");
        finds("a value of another type with lt", "n lt ''", "1 2 3 4 5 6 7 8 9");
        finds("a value of another type with gt", "n gt ''", "");
        finds("Timestamp", "Timestamp gt datetime'2000-01-01T00:00:00Z' and n eq 4", "4");

        test("queries: a literal widens to the property, never the other way", onTable(table -> {
            table.createEntity(row("double", "v", 3.0));
            table.createEntity(row("int32", "v", 3));
            table.createEntity(row("int64", "v", 3L));
            equal(rowKeys(table, "v eq 3"), "double int32 int64");
            equal(rowKeys(table, "v eq 3L"), "double int64");
            equal(rowKeys(table, "v eq 3.0"), "double");
        }));

        test("queries: select", onTable(table -> {
            countToNine(table);
            ListEntitiesOptions options = new ListEntitiesOptions().setFilter("n eq 2").setSelect(List.of("word", "none"));
            List<TableEntity> rows = table.listEntities(options, null, Context.NONE).stream().toList();
            equal(rows.size(), 1);
            equal(rows.get(0).getProperty("word"), "two");
            that(!rows.get(0).getProperties().containsKey("n"), "n was not asked for");
            that(rows.get(0).getProperties().containsKey("none"), "no null for what is missing");
            that(rows.get(0).getETag() != null, "no ETag");
        }));

        mistaken("a syntax error", "aaa bbb ccc", 400, "InvalidInput");
        mistaken("an unclosed string", "word eq 'a", 400, "InvalidInput");
        mistaken("a comparison with null", "n eq null", 400, "InvalidInput");
        mistaken("an int32 literal out of range", "n eq 5454161346626", 400, "InvalidInput");
        mistaken("a function", "startswith(word,'t')", 501, "NotImplemented");
        mistaken("property against property", "n eq word", 501, "NotImplemented");
    }
}
