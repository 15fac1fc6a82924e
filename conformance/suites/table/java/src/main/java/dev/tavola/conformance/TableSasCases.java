package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static dev.tavola.conformance.Clients.codeOf;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.failure;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.refusedInXml;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.statusOf;
import static dev.tavola.conformance.Clients.tableWithSas;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.PolicyCases.policy;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.stream.Collectors;

final class TableSasCases {
    private TableSasCases() {}

    private static TableSasSignatureValues values(String permissions) {
        return new TableSasSignatureValues(OffsetDateTime.now().plusHours(1), TableSasPermission.parse(permissions));
    }

    private static TableClient limited(TableClient owner, TableSasSignatureValues values) {
        return tableWithSas(owner.getTableName(), owner.generateSas(values));
    }

    /** The body of a case that is given a table with the row p, r. */
    private static Harness.Body onRow(Clients.TableBody body) {
        return onTable(table -> {
            table.createEntity(row("r"));
            body.run(table);
        });
    }

    private static void operation(String name, String needs, Clients.TableBody use) {
        test("table SAS: " + name + " is allowed with " + needs + " alone", onRow(table -> use.run(limited(table, values(needs)))));
        for (String letter : needs.split("")) {
            test("table SAS: " + name + " is refused without " + letter, onRow(table -> {
                TableClient client = limited(table, values("raud".replace(letter, "")));
                equal(codeOf(failure(() -> use.run(client))), "AuthorizationPermissionMismatch");
            }));
        }
    }

    /** The body of a case that is given a table with the rows 1 to 3 in the partitions a, b and c. */
    private static Harness.Body onGrid(Clients.TableBody body) {
        return onTable(table -> {
            for (String partition : List.of("a", "b", "c")) {
                for (String key : List.of("1", "2", "3")) {
                    table.createEntity(entity(partition, key));
                }
            }
            body.run(table);
        });
    }

    private static void range(String name, String startPartition, String startRow, String endPartition, String endRow, String want) {
        test("table SAS: a query sees " + name, onGrid(table -> {
            TableClient client = limited(table, values("r").setStartPartitionKey(startPartition).setStartRowKey(startRow)
                .setEndPartitionKey(endPartition).setEndRowKey(endRow));
            equal(list(client, null).stream().map(row -> row.getPartitionKey() + row.getRowKey()).collect(Collectors.joining(" ")), want);
        }));
    }

    static void register() {
        operation("get an entity", "r", table -> table.getEntity("p", "r"));
        operation("query entities", "r", table -> list(table, null));
        operation("insert", "a", table -> table.createEntity(row("new")));
        operation("merge", "u", table -> table.updateEntity(row("r"), TableEntityUpdateMode.MERGE));
        operation("replace", "u", table -> table.updateEntity(row("r"), TableEntityUpdateMode.REPLACE));
        operation("upsert", "au", table -> table.upsertEntity(row("r")));
        operation("delete an entity", "d", table -> table.deleteEntity("p", "r"));
        operation("transaction of an insert and a merge", "au", table -> table.submitTransaction(
            List.of(new TableTransactionAction(CREATE, row("new")), new TableTransactionAction(UPDATE_MERGE, row("r")))));

        test("table SAS: is for its table alone", onRow(other -> onRow(own -> {
            TableClient client = tableWithSas(other.getTableName(), own.generateSas(values("raud")));
            equal(statusOf(failure(() -> list(client, null))), 403);
        }).run()));

        test("table SAS: expired is AuthenticationFailed", onRow(table ->
            refused(403, "AuthenticationFailed", () -> list(limited(table, values("r").setExpiryTime(OffsetDateTime.now().minusHours(1))), null))));

        test("table SAS: cannot touch access policies", onRow(table ->
            refusedInXml(403, "AuthorizationFailure", limited(table, values("raud"))::getAccessPolicies)));

        // The SDK wants a row key with each partition key.
        range("one partition", "b", "1", "b", "3", "b1 b2 b3");
        range("from a row on", "b", "2", null, null, "b2 b3 c1 c2 c3");
        range("up to a row", null, null, "b", "2", "a1 a2 a3 b1 b2");
        range("from row to row", "a", "3", "c", "1", "a3 b1 b2 b3 c1");

        test("table SAS: inside a range everything works, outside nothing", onGrid(table -> {
            TableClient client = limited(table, values("raud").setStartPartitionKey("b").setStartRowKey("2").setEndPartitionKey("b").setEndRowKey("2"));
            client.upsertEntity(entity("b", "2", "n", 1));
            equal(client.getEntity("b", "2").getProperty("n"), 1);
            client.deleteEntity("b", "2");
            client.createEntity(entity("b", "2"));

            refused(404, "ResourceNotFound", () -> client.getEntity("b", "3"));
            refused(403, "AuthorizationFailure", () -> client.createEntity(entity("b", "4")));
            refused(403, "AuthorizationFailure", () -> client.updateEntity(entity("b", "3")));
            refused(403, "AuthorizationFailure", () -> client.upsertEntity(entity("b", "3")));
            refused(403, "AuthorizationFailure", () -> client.deleteEntity("b", "3"));
        }));

        OffsetDateTime later = OffsetDateTime.now().plusHours(1);
        test("table SAS: a policy gives permission, a change of it changes, its removal revokes", onRow(table -> {
            table.setAccessPolicies(List.of(policy("policy", "r", later)));
            TableClient client = limited(table, new TableSasSignatureValues("policy"));
            client.getEntity("p", "r");
            refused(403, "AuthorizationPermissionMismatch", () -> client.deleteEntity("p", "r"));
            table.setAccessPolicies(List.of(policy("policy", "a", later)));
            refused(403, "AuthorizationPermissionMismatch", () -> client.getEntity("p", "r"));
            table.setAccessPolicies(List.of());
            refused(403, "AuthenticationFailed", () -> client.getEntity("p", "r"));
        }));

        test("table SAS: an expired policy is AuthenticationFailed", onRow(table -> {
            table.setAccessPolicies(List.of(policy("policy", "r", OffsetDateTime.now().minusMinutes(1))));
            refused(403, "AuthenticationFailed", () -> limited(table, new TableSasSignatureValues("policy")).getEntity("p", "r"));
        }));
    }
}
