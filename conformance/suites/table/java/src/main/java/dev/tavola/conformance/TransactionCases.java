package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_REPLACE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_REPLACE;
import static dev.tavola.conformance.Clients.codeOf;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.failure;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.newTable;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionResponse;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.azure.data.tables.models.TableTransactionResult;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

final class TransactionCases {
    private TransactionCases() {}

    static TableTransactionAction action(TableTransactionActionType type, TableEntity entity) {
        return new TableTransactionAction(type, entity);
    }

    private static List<TableTransactionAction> inserts(int count) {
        return IntStream.range(0, count).mapToObj(n -> action(CREATE, row(String.format("%03d", n)))).toList();
    }

    /** Expects the transaction to fail with this code at this index, and to leave only these rows. */
    static void fails(TableClient table, String code, int index, String left, List<TableTransactionAction> actions) {
        Throwable error = failure(() -> table.submitTransaction(actions));
        if (!(error instanceof TableTransactionFailedException failed)) {
            throw new AssertionError("expected a failed transaction", error);
        }
        equal(codeOf(failed) + " at " + failed.getFailedTransactionActionIndex(), code + " at " + index);
        equal(rowKeys(table, null), left);
    }

    private static void failsOnEmptyTable(String name, String code, int index, List<TableTransactionAction> actions) {
        test("transactions: " + name, onTable(table -> fails(table, code, index, "", actions)));
    }

    static void register() {
        test("transactions: one of each action", onTable(table -> {
            for (String key : List.of("merge", "replace", "gone")) {
                table.createEntity(row(key, "a", 1));
            }
            TableTransactionResult result = table.submitTransaction(List.of(
                action(CREATE, row("new", "a", 1)), action(UPDATE_MERGE, row("merge", "b", 2)), action(UPDATE_REPLACE, row("replace", "b", 2)),
                action(UPSERT_MERGE, row("upsertmerge", "b", 2)), action(UPSERT_REPLACE, row("upsertreplace", "b", 2)), action(DELETE, row("gone"))));
            equal(result.getTransactionActionResponses().stream().map(TableTransactionActionResponse::getStatusCode).toList(),
                List.of(204, 204, 204, 204, 204, 204));
            String rows = list(table, null).stream()
                .map(row -> row.getRowKey() + ":" + row.getProperty("a") + ":" + row.getProperty("b"))
                .collect(Collectors.joining(" "));
            equal(rows, "merge:1:2 new:1:null replace:null:2 upsertmerge:null:2 upsertreplace:null:2");
        }));

        test("transactions: answers are found by row key", onTable(table -> {
            // The SDK drops the headers of the answers, so there is no ETag to compare.
            TableTransactionResult result = table.submitTransaction(inserts(3));
            equal(result.getTransactionActionResponses().size(), 3);
            equal(result.getTableTransactionActionResponseByRowKey("001").getStatusCode(), 204);
        }));

        test("transactions: of a single action", onTable(table -> {
            table.submitTransaction(inserts(1));
            equal(rowKeys(table, null), "000");
        }));

        test("transactions: of 100 actions", onTable(table -> {
            equal(table.submitTransaction(inserts(100)).getTransactionActionResponses().size(), 100);
            equal(list(table, null).size(), 100);
        }));

        test("transactions: every type and odd text in a body", onTable(table -> {
            String text = "--changeset_ \r\n\r\nHTTP/1.1 400 {} 😀";
            UUID guid = UUID.fromString("c9da6455-213d-42c9-9a79-3e9149a57833");
            table.submitTransaction(List.of(action(CREATE, row("1", "text", text, "big", -1L, "bin", new byte[] {1, 2}, "g", guid)), action(CREATE, row("2"))));
            TableEntity got = table.getEntity("p", "1");
            equal(List.of(got.getProperty("text"), got.getProperty("big"), got.getProperty("g")), List.of(text, -1L, guid));
            equal(got.getProperty("bin"), new byte[] {1, 2});
        }));

        test("transactions: if unchanged", onTable(table -> {
            table.createEntity(row("1"));
            table.createEntity(row("2"));
            TableEntity first = table.getEntity("p", "1");
            TableEntity second = table.getEntity("p", "2");
            table.submitTransaction(List.of(
                new TableTransactionAction(UPDATE_REPLACE, first.addProperty("n", 1), true), new TableTransactionAction(DELETE, second, true)));
            equal(rowKeys(table, null), "1");
            equal(rowKeys(table, "n eq 1"), "1");
        }));

        test("transactions: a row that exists fails with its index", onTable(table -> {
            table.createEntity(row("2"));
            fails(table, "EntityAlreadyExists", 2, "2", List.of(action(CREATE, row("0")), action(CREATE, row("1")), action(CREATE, row("2"))));
        }));

        for (TableTransactionActionType type : List.of(UPDATE_MERGE, UPDATE_REPLACE, DELETE)) {
            test("transactions: " + type + " of a missing row fails with its index", onTable(table ->
                fails(table, "ResourceNotFound", 1, "", List.of(action(CREATE, row("0")), action(type, row("1"))))));

            test("transactions: " + type + " with an old ETag fails with its index", onTable(table -> {
                table.createEntity(row("1"));
                TableEntity old = table.getEntity("p", "1");
                table.upsertEntity(row("1", "n", 1));
                fails(table, "UpdateConditionNotSatisfied", 1, "1", List.of(action(CREATE, row("0")), new TableTransactionAction(type, old, true)));
            }));
        }

        failsOnEmptyTable("the same row twice fails at the second", "InvalidDuplicateRow", 2,
            List.of(action(CREATE, row("0")), action(UPSERT_MERGE, row("1")), action(UPSERT_MERGE, row("1"))));
        failsOnEmptyTable("two partitions fail at the first of the other", "CommandsInBatchActOnDifferentPartitions", 1,
            List.of(action(CREATE, row("0")), action(CREATE, entity("q", "1"))));
        failsOnEmptyTable("101 actions fail at the hundredth", "InvalidInput", 99, inserts(101));
        failsOnEmptyTable("a value that is too large fails with its index", "PropertyValueTooLarge", 1,
            List.of(action(CREATE, row("0")), action(CREATE, row("1", "v", "x".repeat(32 * 1024 + 1)))));
        failsOnEmptyTable("a bad value fails with its index", "InvalidInput", 1,
            List.of(action(CREATE, row("0")), action(CREATE, row("1", "v", "no", "v@odata.type", "Edm.Guid"))));
        failsOnEmptyTable("a forbidden character in a key fails with its index", "OutOfRangeInput", 1,
            List.of(action(CREATE, row("0")), action(CREATE, row("a/b"))));

        test("transactions: a missing table fails at the first", () -> {
            Throwable error = failure(() -> newTable().submitTransaction(inserts(2)));
            equal(codeOf(error), "TableNotFound");
            equal(((TableTransactionFailedException) error).getFailedTransactionActionIndex(), 0);
        });

        test("transactions: over 4 MiB is RequestBodyTooLarge", onTable(table -> {
            List<TableTransactionAction> actions = IntStream.range(0, 10).mapToObj(n -> {
                TableEntity entity = row(String.valueOf(n));
                IntStream.range(0, 15).forEach(p -> entity.addProperty("p" + p, "x".repeat(32 * 1024)));
                return action(CREATE, entity);
            }).toList();
            refused(413, "RequestBodyTooLarge", () -> table.submitTransaction(actions));
            equal(rowKeys(table, null), "");
        }));
    }
}
