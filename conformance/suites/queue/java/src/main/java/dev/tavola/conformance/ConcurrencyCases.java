package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.LONG;
import static dev.tavola.conformance.Clients.codeOf;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.receive;
import static dev.tavola.conformance.Clients.text;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.core.util.Context;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueStorageException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;

final class ConcurrencyCases {
    private static final int TASKS = 16;
    private static final int MESSAGES = 20;

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

    private static String outcome(Runnable call) {
        try {
            call.run();
            return "won";
        } catch (QueueStorageException e) {
            return codeOf(e);
        }
    }

    static void register() {
        test("concurrency: no message is handed out twice", onQueue(List.of(), queue -> {
            atOnce(TASKS, task -> () -> {
                for (int n = 0; n < MESSAGES; n++) {
                    queue.sendMessage(task + "-" + n);
                }
                return null;
            });
            List<String> taken = Collections.synchronizedList(new ArrayList<>());
            atOnce(TASKS, task -> () -> {
                while (true) {
                    List<QueueMessageItem> found = queue.receiveMessages(1 + task % 8, LONG, null, Context.NONE).stream().toList();
                    if (found.isEmpty()) {
                        return null;
                    }
                    found.forEach(one -> taken.add(text(one.getBody())));
                }
            });
            equal(taken.size(), TASKS * MESSAGES);
            equal(new HashSet<>(taken).size(), TASKS * MESSAGES);
        }));

        test("concurrency: one of many deletes wins", onQueue(List.of("m"), queue -> {
            QueueMessageItem found = receive(queue, LONG);
            List<String> results = atOnce(TASKS, task -> () -> outcome(() -> queue.deleteMessage(found.getMessageId(), found.getPopReceipt())));
            equal(List.of(Collections.frequency(results, "won"), Collections.frequency(results, "MessageNotFound")), List.of(1, TASKS - 1));
        }));

        test("concurrency: one of many updates wins", onQueue(List.of("m"), queue -> {
            QueueMessageItem found = receive(queue, LONG);
            List<String> results = atOnce(TASKS, task -> () -> outcome(() -> queue.updateMessage(found.getMessageId(), found.getPopReceipt(), "x", LONG)));
            equal(List.of(Collections.frequency(results, "won"), Collections.frequency(results, "MessageNotFound")), List.of(1, TASKS - 1));
        }));
    }
}
