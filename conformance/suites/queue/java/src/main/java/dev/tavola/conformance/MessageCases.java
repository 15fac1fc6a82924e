package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.LONG;
import static dev.tavola.conformance.Clients.count;
import static dev.tavola.conformance.Clients.eventually;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.peek;
import static dev.tavola.conformance.Clients.peeked;
import static dev.tavola.conformance.Clients.receive;
import static dev.tavola.conformance.Clients.receiveAll;
import static dev.tavola.conformance.Clients.received;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.core.util.Context;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.SendMessageResult;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

final class MessageCases {
    private static final Duration WEEK = Duration.ofDays(7);

    private MessageCases() {}

    private static SendMessageResult send(QueueClient queue, String text, Duration hidden, Duration life) {
        return queue.sendMessageWithResponse(text, hidden, life, null, Context.NONE).getValue();
    }

    static void register() {
        test("messages: what sending tells", onQueue(List.of(), queue -> {
            SendMessageResult sent = queue.sendMessage("text");
            that(sent.getMessageId().length() == 36 && !sent.getPopReceipt().isEmpty(), sent.getMessageId());
            equal(Duration.between(sent.getInsertionTime(), sent.getExpirationTime()), WEEK);
            equal(sent.getTimeNextVisible(), sent.getInsertionTime());
        }));

        test("messages: what receiving tells", onQueue(List.of(), queue -> {
            SendMessageResult sent = queue.sendMessage("text");
            QueueMessageItem found = receive(queue, LONG);
            equal(List.of(found.getMessageId(), found.getBody().toString(), found.getDequeueCount(), found.getInsertionTime(), found.getExpirationTime()),
                List.of(sent.getMessageId(), "text", 1L, sent.getInsertionTime(), sent.getExpirationTime()));
            that(!found.getPopReceipt().equals(sent.getPopReceipt()), "the receipt has not changed");
        }));

        test("messages: what peeking tells", onQueue(List.of("text"), queue -> {
            equal(peek(queue).get(0).getBody().toString(), "text");
            equal(peek(queue).get(0).getDequeueCount(), 0L);
        }));

        test("messages: an empty queue", onQueue(List.of(), queue -> {
            equal(queue.receiveMessage(), null);
            equal(queue.peekMessage(), null);
        }));

        List<String> numbers = IntStream.range(0, 40).mapToObj(Integer::toString).toList();
        test("messages: thirty-two at most, in the order of sending", onQueue(numbers, queue -> {
            equal(peek(queue).size(), 32);
            equal(received(receiveAll(queue)), String.join(" ", numbers));
        }));

        for (int many : List.of(0, 33)) {
            test("messages: " + many + " at once are refused", onQueue(List.of("m"), queue -> {
                refused(400, "OutOfRangeQueryParameterValue", () -> queue.receiveMessages(many).stream().count());
                refused(400, "OutOfRangeQueryParameterValue", () -> queue.peekMessages(many, null, Context.NONE).stream().count());
            }));
        }

        test("messages: received ones are hidden and counted", onQueue(List.of("a", "b"), queue -> {
            receive(queue, LONG);
            equal(peeked(queue), "b");
            equal(count(queue), 2);
        }));

        test("messages: hidden ones come back", onQueue(List.of("m"), queue -> {
            receive(queue, Duration.ofSeconds(1));
            eventually("it is visible again", () -> peeked(queue).equals("m"));
            equal(receive(queue, LONG).getDequeueCount(), 2L);
        }));

        test("messages: sent hidden", onQueue(List.of(), queue -> {
            SendMessageResult sent = send(queue, "later", LONG, null);
            equal(Duration.between(sent.getInsertionTime(), sent.getTimeNextVisible()), LONG);
            send(queue, "soon", Duration.ofSeconds(1), null);
            eventually("it is visible", () -> peeked(queue).equals("soon"));
        }));

        test("messages: expire", onQueue(List.of(), queue -> {
            SendMessageResult sent = send(queue, "short", null, Duration.ofSeconds(1));
            eventually("it expired", () -> peeked(queue).isEmpty());
            refused(404, "MessageNotFound", () -> queue.deleteMessage(sent.getMessageId(), sent.getPopReceipt()));
        }));

        test("messages: live for ever", onQueue(List.of(), queue ->
            equal(send(queue, "m", null, Duration.ofSeconds(-1)).getExpirationTime().getYear(), 9999)));

        for (int life : List.of(0, -2)) {
            test("messages: a life of " + life + " is refused", onQueue(List.of(), queue ->
                refused(400, "InvalidQueryParameterValue", () -> send(queue, "m", null, Duration.ofSeconds(life)))));
        }

        test("messages: hiding as long as living is refused", onQueue(List.of(), queue ->
            refused(400, "InvalidQueryParameterValue", () -> send(queue, "m", Duration.ofSeconds(5), Duration.ofSeconds(5)))));

        for (Duration hidden : List.of(Duration.ofSeconds(-1), WEEK.plusSeconds(1))) {
            test("messages: hiding for " + hidden + " is refused", onQueue(List.of("m"), queue -> {
                refused(400, "OutOfRangeQueryParameterValue", () -> send(queue, "m", hidden, Duration.ofSeconds(-1)));
                refused(400, "OutOfRangeQueryParameterValue", () -> receive(queue, hidden));
            }));
        }

        test("messages: delete", onQueue(List.of("a", "b"), queue -> {
            QueueMessageItem found = receive(queue, LONG);
            queue.deleteMessage(found.getMessageId(), found.getPopReceipt());
            refused(404, "MessageNotFound", () -> queue.deleteMessage(found.getMessageId(), found.getPopReceipt()));
            equal(count(queue), 1);
        }));

        test("messages: clear", onQueue(List.of("a", "b"), queue -> {
            QueueMessageItem found = receive(queue, LONG);
            queue.clearMessages();
            equal(count(queue), 0);
            refused(404, "MessageNotFound", () -> queue.deleteMessage(found.getMessageId(), found.getPopReceipt()));
            queue.sendMessage("new");
            equal(peeked(queue), "new");
        }));
    }
}
