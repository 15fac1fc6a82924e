package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.count;
import static dev.tavola.conformance.Clients.newQueue;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.core.util.Context;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.QueueItem;
import com.azure.storage.queue.models.QueuesSegmentOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

final class QueueCases {
    private static final String RECEIPT = "AgAAAAMAAAAAAAAAAKSnkIyg2QE=";

    private QueueCases() {}

    private interface Listed {
        void run(String prefix, List<String> names);
    }

    /** The body of a case with several queues under one prefix, whose names are given in order. */
    private static Harness.Body listed(Listed body) {
        return () -> {
            String prefix = Harness.newName();
            List<String> names = new ArrayList<>();
            for (String end : List.of("c", "a", "b10", "b9", "0")) {
                names.add(prefix + "-" + end);
                SERVICE.createQueueWithResponse(prefix + "-" + end, Map.of("end", end), null, Context.NONE);
            }
            names.sort(null);
            try {
                body.run(prefix, names);
            } finally {
                names.forEach(SERVICE::deleteQueue);
            }
        };
    }

    private static List<QueueItem> list(QueuesSegmentOptions options) {
        return SERVICE.listQueues(options, null, Context.NONE).stream().toList();
    }

    private static List<String> names(List<QueueItem> queues) {
        return queues.stream().map(QueueItem::getName).toList();
    }

    static void register() {
        test("queues: create, properties, delete", () -> {
            QueueClient queue = newQueue();
            refused(404, "QueueNotFound", queue::getProperties);
            queue.create();
            equal(queue.getProperties().getApproximateMessagesCount(), 0);
            equal(queue.getProperties().getMetadata(), Map.of());
            queue.delete();
            refused(404, "QueueNotFound", queue::delete);
        });

        test("queues: createIfNotExists and deleteIfExists", () -> {
            QueueClient queue = newQueue();
            equal(queue.createIfNotExists(), true);
            queue.setMetadata(Map.of("a", "1"));
            // With the same metadata the answer is 204, which the client takes for created.
            equal(queue.createIfNotExists(), false);
            equal(queue.deleteIfExists(), true);
            equal(queue.deleteIfExists(), false);
        });

        test("queues: create again is fine with the same metadata only", onQueue(List.of(), queue -> {
            queue.create();
            refused(409, "QueueAlreadyExists", () -> queue.createWithResponse(Map.of("a", "1"), null, Context.NONE));
            queue.setMetadata(Map.of("a", "1"));
            equal(queue.createWithResponse(Map.of("a", "1"), null, Context.NONE).getStatusCode(), 204);
            refused(409, "QueueAlreadyExists", queue::create);
        }));

        test("queues: metadata comes back, is replaced and cleared", onQueue(List.of(), queue -> {
            queue.setMetadata(Map.of("one", "1", "two", "x=y; z"));
            equal(queue.getProperties().getMetadata(), Map.of("one", "1", "two", "x=y; z"));
            queue.setMetadata(Map.of("three", "3"));
            equal(queue.getProperties().getMetadata(), Map.of("three", "3"));
            queue.setMetadata(null);
            equal(queue.getProperties().getMetadata(), Map.of());
        }));

        for (String name : List.of("in-valid", "1st", "a!b")) {
            test("queues: metadata named " + name + " is refused", onQueue(List.of(), queue ->
                refused(400, "InvalidMetadata", () -> queue.setMetadata(Map.of(name, "x")))));
        }

        Map<String, String> wrong = new LinkedHashMap<>();
        List.of("ab", "a".repeat(64)).forEach(name -> wrong.put(name, "OutOfRangeInput"));
        List.of("a_b", "-abc", "abc-", "a--b", "Abc", "a.b").forEach(name -> wrong.put(name, "InvalidResourceName"));
        wrong.forEach((name, code) -> test("queues: the name " + name + " is refused", () -> refused(400, code, () -> SERVICE.createQueue(name))));

        test("queues: a name is free at once after a delete, and its messages are gone", onQueue(List.of("old"), queue -> {
            queue.delete();
            queue.create();
            equal(count(queue), 0);
        }));

        QueueClient missing = newQueue();
        Map<String, Clients.Attempt> calls = new LinkedHashMap<>();
        calls.put("set metadata", () -> missing.setMetadata(Map.of("a", "b")));
        calls.put("get policies", () -> missing.getAccessPolicy().stream().count());
        calls.put("set policies", () -> missing.setAccessPolicy(List.of()));
        calls.put("send", () -> missing.sendMessage("x"));
        calls.put("receive", missing::receiveMessage);
        calls.put("peek", missing::peekMessage);
        calls.put("clear", missing::clearMessages);
        calls.put("delete message", () -> missing.deleteMessage("0b34b2d6-0a2b-4fb5-8a37-1b7d5ee3b2f1", RECEIPT));
        calls.put("update message", () -> missing.updateMessage("0b34b2d6-0a2b-4fb5-8a37-1b7d5ee3b2f1", RECEIPT, "x", Duration.ofSeconds(1)));
        calls.forEach((name, call) -> test("queues: " + name + " on a missing one", () -> refused(404, "QueueNotFound", call)));

        test("list: by prefix and in order", listed((prefix, names) -> equal(names(list(new QueuesSegmentOptions().setPrefix(prefix))), names)));

        test("list: with metadata", listed((prefix, names) -> {
            for (QueueItem one : list(new QueuesSegmentOptions().setPrefix(prefix).setIncludeMetadata(true))) {
                equal(prefix + "-" + one.getMetadata().get("end"), one.getName());
            }
        }));

        test("list: page by page", listed((prefix, names) -> {
            List<Integer> sizes = new ArrayList<>();
            List<String> found = new ArrayList<>();
            SERVICE.listQueues(new QueuesSegmentOptions().setPrefix(prefix).setMaxResultsPerPage(2), null, Context.NONE).iterableByPage().forEach(page -> {
                sizes.add(page.getValue().size());
                found.addAll(names(page.getValue()));
            });
            equal(found, names);
            equal(sizes, List.of(2, 2, 1));
        }));
    }
}
