package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static dev.tavola.conformance.Clients.ACCOUNT;
import static dev.tavola.conformance.Clients.ENDPOINT;
import static dev.tavola.conformance.Clients.KEY;
import static dev.tavola.conformance.Clients.codeOf;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.newName;
import static dev.tavola.conformance.Harness.test;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.data.tables.TableAsyncClient;
import com.azure.data.tables.TableServiceAsyncClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.util.List;
import reactor.core.publisher.Flux;

/** A few of the cases once more, with the asynchronous client. */
final class AsyncCases {
    private static final TableServiceAsyncClient SERVICE = new TableServiceClientBuilder().endpoint(ENDPOINT)
        .credential(new AzureNamedKeyCredential(ACCOUNT, KEY))
        .buildAsyncClient();

    private AsyncCases() {}

    static void register() {
        test("async: create if not exists, delete twice", () -> {
            String name = newName();
            SERVICE.createTableIfNotExists(name).block();
            SERVICE.createTableIfNotExists(name).block();
            SERVICE.deleteTable(name).block();
            SERVICE.deleteTable(name).block();
            refused(404, "TableNotFound", () -> SERVICE.getTableClient(name).getEntity("p", "r").block());
        });

        test("async: insert, get, update, delete", onTable(owner -> {
            TableAsyncClient table = SERVICE.getTableClient(owner.getTableName());
            TableEntity got = table.createEntity(row("r", "n", 1)).then(table.getEntity("p", "r")).block();
            equal(got.getProperty("n"), 1);
            table.updateEntity(got.addProperty("n", 2)).block();
            equal(table.getEntity("p", "r").block().getProperty("n"), 2);
            table.deleteEntity("p", "r").then(table.deleteEntity("p", "r")).block();
            refused(404, "ResourceNotFound", () -> table.getEntity("p", "r").block());
        }));

        test("async: 200 inserts at once, listed page by page", onTable(owner -> {
            TableAsyncClient table = SERVICE.getTableClient(owner.getTableName());
            Flux.range(0, 200).flatMap(n -> table.createEntity(row(String.format("%03d", n), "n", n)), 50).blockLast();
            List<Integer> sizes = table.listEntities(new ListEntitiesOptions().setTop(80)).byPage().map(page -> page.getValue().size()).collectList().block();
            equal(sizes, List.of(80, 80, 40));
        }));

        test("async: a transaction, and one that fails with its index", onTable(owner -> {
            TableAsyncClient table = SERVICE.getTableClient(owner.getTableName());
            table.submitTransaction(List.of(new TableTransactionAction(CREATE, row("1")))).block();
            Throwable error = Clients.failure(() -> table.submitTransaction(
                List.of(new TableTransactionAction(CREATE, row("0")), new TableTransactionAction(CREATE, row("1")))).block());
            equal(codeOf(error), "EntityAlreadyExists");
            equal(((TableTransactionFailedException) error).getFailedTransactionActionIndex(), 1);
        }));
    }
}
