package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_REPLACE;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

final class KeyCases {
    private KeyCases() {}

    private static Map<String, String> odd() {
        Map<String, String> keys = new LinkedHashMap<>();
        keys.put("empty", "");
        keys.put("a blank", " ");
        keys.put("blanks around and inside", " a  b ");
        keys.put("one quote", "O'Brien");
        keys.put("quotes only", "''''");
        keys.put("a double quote", "say \"hi\"");
        keys.put("a percent sign", "100%");
        keys.put("a percent escape", "%20%2F%25");
        keys.put("a plus", "a+b");
        keys.put("an ampersand and equals", "a&b=c");
        keys.put("parentheses and a comma", "x(1),y=)");
        keys.put("a semicolon and a colon", "a;b:c@d");
        keys.put("brackets and bars", "[a]{b}|c^`<d>");
        keys.put("accents", "Åse Müller");
        keys.put("east asian", "東京都");
        keys.put("right to left", "שלום");
        keys.put("emoji", "🙂👍🏽");
        keys.put("two dots", "..");
        return keys;
    }

    static void register() {
        odd().forEach((name, key) -> {
            test("keys: " + name + " in every operation", onTable(table -> {
                table.createEntity(entity(key, key, "n", 1));
                refused(409, "EntityAlreadyExists", () -> table.createEntity(entity(key, key)));
                table.updateEntity(entity(key, key, "n", 2), TableEntityUpdateMode.MERGE);
                table.upsertEntity(entity(key, key, "m", 3));
                TableEntity got = table.getEntity(key, key);
                equal(List.of(got.getPartitionKey(), got.getRowKey(), got.getProperty("n"), got.getProperty("m")), List.of(key, key, 2, 3));
                String quoted = key.replace("'", "''");
                equal(rowKeys(table, "PartitionKey eq '" + quoted + "' and RowKey eq '" + quoted + "'"), key);
                table.deleteEntity(key, key);
                equal(list(table, null).size(), 0);
            }));

            test("keys: " + name + " in a transaction", onTable(table -> {
                table.submitTransaction(List.of(new TableTransactionAction(CREATE, entity(key, key)), new TableTransactionAction(CREATE, entity(key, key + "2"))));
                table.submitTransaction(List.of(
                    new TableTransactionAction(UPDATE_MERGE, entity(key, key, "n", 2)), new TableTransactionAction(DELETE, entity(key, key + "2")),
                    new TableTransactionAction(UPSERT_REPLACE, entity(key, key + "3", "n", 3))));
                equal(list(table, null).stream().map(row -> row.getRowKey() + row.getProperty("n")).toList(), List.of(key + 2, key + "33"));
            }));
        });

        test("keys: keys differ by case", onTable(table -> {
            table.createEntity(row("a"));
            table.createEntity(row("A"));
            equal(rowKeys(table, null), "A a");
        }));

        test("keys: rows come in UTF-16 code unit order", onTable(table -> {
            for (String key : List.of("Ａ", "😀", "中", "é", "a", "Z")) {
                table.createEntity(row(key));
            }
            equal(rowKeys(table, null), "Z a é 中 😀 Ａ");
        }));

        test("keys: 512 characters fit, 513 are PropertyValueTooLarge", onTable(table -> {
            String longest = "k".repeat(512);
            table.createEntity(entity(longest, longest));
            equal(table.getEntity(longest, longest).getRowKey(), longest);
            refused(400, "PropertyValueTooLarge", () -> table.createEntity(row(longest + "k")));
        }));

        for (String bad : List.of("a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u0085b")) {
            test("keys: insert with " + bad.codePointAt(1) + " in a key is OutOfRangeInput", onTable(table -> {
                refused(400, "OutOfRangeInput", () -> table.createEntity(entity(bad, "r")));
                refused(400, "OutOfRangeInput", () -> table.createEntity(row(bad)));
            }));
        }
    }
}
