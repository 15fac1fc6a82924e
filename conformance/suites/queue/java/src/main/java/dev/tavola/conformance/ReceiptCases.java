package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.LONG;
import static dev.tavola.conformance.Clients.eventually;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.peek;
import static dev.tavola.conformance.Clients.peeked;
import static dev.tavola.conformance.Clients.receive;
import static dev.tavola.conformance.Clients.receiveAll;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.SendMessageResult;
import java.time.Duration;
import java.util.List;

final class ReceiptCases {
    private static final Duration NOW = Duration.ZERO;

    private ReceiptCases() {}

    static void register() {
        test("receipts: of a send, delete", onQueue(List.of(), queue -> {
            SendMessageResult sent = queue.sendMessage("m");
            queue.deleteMessage(sent.getMessageId(), sent.getPopReceipt());
            equal(peeked(queue), "");
        }));

        test("receipts: of a send, update", onQueue(List.of(), queue -> {
            SendMessageResult sent = queue.sendMessage("m");
            queue.updateMessage(sent.getMessageId(), sent.getPopReceipt(), "changed", NOW);
            equal(peeked(queue), "changed");
        }));

        test("receipts: stale after a receive", onQueue(List.of(), queue -> {
            SendMessageResult sent = queue.sendMessage("m");
            QueueMessageItem found = receive(queue, LONG);
            refused(404, "MessageNotFound", () -> queue.deleteMessage(sent.getMessageId(), sent.getPopReceipt()));
            refused(404, "MessageNotFound", () -> queue.updateMessage(sent.getMessageId(), sent.getPopReceipt(), "x", LONG));
            queue.deleteMessage(found.getMessageId(), found.getPopReceipt());
        }));

        test("receipts: a chain of updates", onQueue(List.of("0"), queue -> {
            QueueMessageItem found = receive(queue, LONG);
            String receipt = found.getPopReceipt();
            for (int n = 1; n < 10; n++) {
                String last = receipt;
                receipt = queue.updateMessage(found.getMessageId(), last, Integer.toString(n), LONG).getPopReceipt();
                refused(404, "MessageNotFound", () -> queue.deleteMessage(found.getMessageId(), last));
            }
            queue.updateMessage(found.getMessageId(), receipt, "last", NOW);
            QueueMessageItem again = receive(queue, LONG);
            equal(List.of(again.getBody().toString(), again.getDequeueCount()), List.of("last", 2L));
        }));

        test("receipts: good while nobody else received", onQueue(List.of("m"), queue -> {
            QueueMessageItem found = receive(queue, Duration.ofSeconds(1));
            eventually("it is visible again", () -> peeked(queue).equals("m"));
            queue.deleteMessage(found.getMessageId(), found.getPopReceipt());
        }));

        test("receipts: an update without text keeps it", onQueue(List.of("kept"), queue -> {
            QueueMessageItem found = receive(queue, LONG);
            queue.updateMessage(found.getMessageId(), found.getPopReceipt(), null, NOW);
            equal(peeked(queue), "kept");
        }));

        test("receipts: an update with the empty text sets it", onQueue(List.of("m"), queue -> {
            QueueMessageItem found = receive(queue, LONG);
            queue.updateMessage(found.getMessageId(), found.getPopReceipt(), "", NOW);
            equal(List.of(peek(queue).size(), peeked(queue)), List.of(1, ""));
        }));

        test("receipts: one for a batch, each with its id", onQueue(List.of("a", "b", "c"), queue -> {
            for (QueueMessageItem found : receiveAll(queue)) {
                queue.deleteMessage(found.getMessageId(), found.getPopReceipt());
                refused(404, "MessageNotFound", () -> queue.deleteMessage(found.getMessageId(), found.getPopReceipt()));
            }
        }));

        test("receipts: another's is not found", onQueue(List.of("a", "b"), queue -> {
            QueueMessageItem one = receive(queue, LONG);
            QueueMessageItem other = receive(queue, LONG);
            refused(404, "MessageNotFound", () -> queue.deleteMessage(one.getMessageId(), other.getPopReceipt()));
        }));

        for (String receipt : List.of("invalid", "AgAAAAMAAAAAAAAAAKSnkIyg2QE=Random")) {
            test("receipts: " + receipt + " is a wrong parameter", onQueue(List.of(), queue -> {
                String id = queue.sendMessage("m").getMessageId();
                refused(400, "InvalidQueryParameterValue", () -> queue.deleteMessage(id, receipt));
                refused(400, "InvalidQueryParameterValue", () -> queue.updateMessage(id, receipt, "x", LONG));
            }));
        }
    }
}
