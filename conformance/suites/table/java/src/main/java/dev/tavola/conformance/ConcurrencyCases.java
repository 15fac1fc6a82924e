package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_REPLACE;
import static dev.tavola.conformance.Clients.codeOf;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableTransactionAction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntFunction;

final class ConcurrencyCases {
    private static final int TASKS = 20;
    private static final int ROUNDS = 5;

    private ConcurrencyCases() {}

    /** Runs the tasks in threads of their own, and returns what each returned. */
    static <T> List<T> atOnce(int count, IntFunction<Callable<T>> task) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(count);
        try {
            List<Callable<T>> all = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                all.add(task.apply(n));
            }
            List<T> results = new ArrayList<>();
            for (Future<T> result : threads.invokeAll(all)) {
                results.add(result.get());
            }
            return results;
        } finally {
            threads.shutdown();
        }
    }

    /** Adds to a counter from many threads, each under its ETag, and expects that no increment is lost. */
    private static void countUp(TableClient table, Consumer<TableEntity> write) throws Exception {
        table.createEntity(row("counter", "n", 0));
        AtomicInteger conflicts = new AtomicInteger();
        atOnce(TASKS, task -> () -> {
            for (int done = 0; done < ROUNDS;) {
                TableEntity current = table.getEntity("p", "counter");
                try {
                    write.accept(current.addProperty("n", (int) current.getProperty("n") + 1));
                    done++;
                } catch (TableServiceException e) {
                    if (!codeOf(e).equals("UpdateConditionNotSatisfied")) {
                        throw e;
                    }
                    conflicts.incrementAndGet();
                }
            }
            return null;
        });
        equal(table.getEntity("p", "counter").getProperty("n"), TASKS * ROUNDS);
        that(conflicts.get() > 0, "no conflict: the threads did not run at the same time");
    }

    static void register() {
        for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
            test("concurrency: no increment is lost with " + mode, onTable(table ->
                countUp(table, entity -> table.updateEntityWithResponse(entity, mode, true, null, Context.NONE))));
        }

        test("concurrency: no increment is lost in transactions", onTable(table ->
            countUp(table, entity -> table.submitTransaction(List.of(new TableTransactionAction(UPDATE_REPLACE, entity, true))))));

        test("concurrency: one of many inserts of a row wins", onTable(table -> {
            List<String> results = atOnce(TASKS, task -> () -> {
                try {
                    table.createEntity(row("r"));
                    return "won";
                } catch (TableServiceException e) {
                    return codeOf(e);
                }
            });
            equal(Collections.frequency(results, "won"), 1);
            equal(Collections.frequency(results, "EntityAlreadyExists"), TASKS - 1);
        }));

        test("concurrency: one of many deletes of a row wins", onTable(table -> {
            table.createEntity(row("r"));
            List<Integer> results = atOnce(TASKS, task -> () ->
                table.deleteEntityWithResponse(row("r"), false, null, Context.NONE).getStatusCode());
            equal(Collections.frequency(results, 204), 1);
            equal(Collections.frequency(results, 404), TASKS - 1);
        }));

        test("concurrency: 200 inserts by 20 threads are all there", onTable(table -> {
            atOnce(TASKS, task -> () -> {
                for (int n = 0; n < 10; n++) {
                    table.createEntity(entity("p" + n, "r" + task));
                }
                return null;
            });
            equal(list(table, null).size(), 200);
        }));
    }
}
