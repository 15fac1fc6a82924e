package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;
import static dev.tavola.conformance.Indexes.explain;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import dev.tavola.conformance.Clients.Attempt;
import dev.tavola.conformance.Indexes.Explained;
import java.util.List;
import java.util.stream.IntStream;

/** What the server learns from its queries: `TavolaAdvice` and `TavolaHotPartitions`, read like any table. */
final class WorkloadCases {
    private static final TableClient ADVICE = SERVICE.getTableClient("TavolaAdvice");
    private static final TableClient HOT = SERVICE.getTableClient("TavolaHotPartitions");

    private WorkloadCases() {}

    static void register() {
        test("workload: an index is advised, declared and used", Indexes.onCustomers(300, (table, indexes) -> {
            String proposed = "PartitionKey eq '" + indexes.table + "' and Action eq 'create'";
            equal(rowKeys(ADVICE, proposed), "");
            List<String> filters = IntStream.range(0, 12).mapToObj(number -> "Email eq 'c" + number + "@example.com'").toList();
            List<Explained> before = filters.stream().map(filter -> explain(indexes.table, filter)).toList();
            equal(rowKeys(ADVICE, proposed), "create-ByEmail");
            TableEntity one = ADVICE.getEntity(indexes.table, "create-ByEmail");
            equal(List.of("Name", "Keys", "Include", "Shapes", "Executions").stream().map(one::getProperty).toList(),
                List.of("ByEmail", "Email", "", "Email eq <String>", 12L));
            indexes.build("ByEmail", "Keys", one.getProperty("Keys"), "Include", one.getProperty("Include"));
            equal(rowKeys(ADVICE, proposed), "");
            for (int number = 0; number < 12; number++) {
                Explained found = explain(indexes.table, filters.get(number));
                equal(found.rows(), before.get(number).rows());
                equal(found.used(), "index ByEmail ordered");
            }
        }));

        test("workload: a hot partition is found", onTable(table -> {
            table.createEntity(entity("hot", "1", "Text", "x".repeat(100)));
            for (int number = 0; number < 400; number++) {
                table.getEntity("hot", "1");
            }
            TableEntity found = HOT.getEntity(table.getTableName(), "hot");
            that((Integer) found.getProperty("Rank") >= 1 && (Double) found.getProperty("RequestsPerSecond") > 0, found.getProperties().toString());
            equal(rowKeys(HOT, "PartitionKey eq '" + table.getTableName() + "'"), "hot");
        }));

        test("workload: both tables are read-only", () -> {
            for (TableClient table : List.of(ADVICE, HOT)) {
                List<Attempt> attempts = List.of(
                    () -> table.createEntity(entity("p", "r")),
                    () -> table.upsertEntity(entity("p", "r")),
                    () -> table.deleteEntity("p", "r"),
                    table::deleteTable);
                for (Attempt attempt : attempts) {
                    refused(403, "InsufficientAccountPermissions", attempt);
                }
            }
        });
    }
}
