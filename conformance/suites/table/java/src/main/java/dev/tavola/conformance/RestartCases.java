package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.restartServer;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.data.tables.models.TableTransactionAction;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

final class RestartCases {
    private static final int WRITERS = 8;

    private RestartCases() {}

    static void register() {
        test("restart: what was acknowledged is there afterwards", onTable(table -> {
            table.createEntity(row("single"));
            String etag = table.getEntity("p", "single").getETag();
            table.submitTransaction(List.of(new TableTransactionAction(CREATE, row("a")), new TableTransactionAction(CREATE, row("b"))));
            restartServer();
            equal(table.getEntity("p", "single").getETag(), etag);
            equal(rowKeys(table, null), "a b single");
        }));

        test("restart: the SDK's retries carry writers over it", onTable(table -> {
            AtomicBoolean restarted = new AtomicBoolean();
            AtomicInteger before = new AtomicInteger();
            CompletableFuture<List<Integer>> writers = CompletableFuture.supplyAsync(() -> {
                try {
                    return ConcurrencyCases.atOnce(WRITERS, writer -> () -> {
                        int n = 0;
                        // Each writes on for a while after the restart, so that its connection is sure to break.
                        for (int after = 0; after < 5; n++) {
                            table.upsertEntity(entity("w" + writer, String.format("%06d", n)));
                            if (restarted.get()) {
                                after++;
                            } else {
                                before.incrementAndGet();
                            }
                        }
                        return n;
                    });
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            Thread.sleep(200);
            restartServer();
            restarted.set(true);
            List<Integer> written = writers.get();
            that(before.get() > 0, "the restart came before the first write");
            for (int writer = 0; writer < WRITERS; writer++) {
                equal(list(table, "PartitionKey eq 'w" + writer + "'").size(), written.get(writer));
            }
        }));

        test("restart: a token goes on afterwards", onTable(table -> {
            PagingCases.fill(table, "p", 4);
            String token = PagingCases.page(table, PagingCases.top(2), null).getContinuationToken();
            restartServer();
            equal(PagingCases.keys(PagingCases.page(table, PagingCases.top(2), token)), "00002 00003");
        }));
    }
}
