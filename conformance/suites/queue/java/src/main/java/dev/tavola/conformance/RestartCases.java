package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.LONG;
import static dev.tavola.conformance.Clients.count;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.peeked;
import static dev.tavola.conformance.Clients.receive;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.restartServer;
import static dev.tavola.conformance.Harness.test;

import com.azure.storage.queue.models.QueueMessageItem;
import java.util.List;

final class RestartCases {
    private RestartCases() {}

    static void register() {
        test("restart: what was acknowledged is there afterwards", onQueue(List.of("a", "b", "c", "d"), queue -> {
            QueueMessageItem claimed = receive(queue, LONG);
            QueueMessageItem deleted = receive(queue, LONG);
            queue.deleteMessage(deleted.getMessageId(), deleted.getPopReceipt());
            restartServer();
            equal(List.of(peeked(queue), count(queue)), List.of("c d", 3));
            queue.deleteMessage(claimed.getMessageId(), claimed.getPopReceipt());
        }));
    }
}
