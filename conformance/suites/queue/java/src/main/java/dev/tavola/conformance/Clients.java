package dev.tavola.conformance;

import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueClientBuilder;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.QueueServiceClientBuilder;
import com.azure.storage.queue.models.PeekedMessageItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueStorageException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

/** How the cases reach the server, and what they ask of errors. */
final class Clients {
    static final String ENDPOINT = System.getenv("TAVOLA_ENDPOINT");
    static final String ACCOUNT = System.getenv("TAVOLA_ACCOUNT");
    static final String KEY = System.getenv("TAVOLA_KEY");
    static final QueueServiceClient SERVICE = serviceAt(ENDPOINT, KEY);
    /** A message that has to be hidden is hidden for this long, whatever the machine does meanwhile. */
    static final Duration LONG = Duration.ofHours(1);
    /** How long to wait for what has to happen within a second or two. */
    private static final Duration WAIT_MAX = Duration.ofSeconds(40);
    private static final int BATCH = 32;

    /** The body of a case that is given a new queue. */
    interface QueueBody {
        void run(QueueClient queue) throws Exception;
    }

    /** Something that is expected to fail. */
    interface Attempt {
        void run() throws Exception;
    }

    private Clients() {}

    static QueueServiceClient serviceAt(String endpoint, String key) {
        return new QueueServiceClientBuilder().endpoint(endpoint).credential(new StorageSharedKeyCredential(ACCOUNT, key)).buildClient();
    }

    static QueueServiceClient serviceWithSas(String sas) {
        return new QueueServiceClientBuilder().endpoint(ENDPOINT).sasToken(sas).buildClient();
    }

    static QueueClient queueWithSas(String name, String sas) {
        return new QueueClientBuilder().endpoint(ENDPOINT).sasToken(sas).queueName(name).buildClient();
    }

    static QueueClient newQueue() {
        return SERVICE.getQueueClient(Harness.newName());
    }

    /** The body of a case with a new queue that holds these messages, which is deleted afterwards. */
    static Harness.Body onQueue(List<String> texts, QueueBody body) {
        return () -> {
            QueueClient queue = newQueue();
            queue.create();
            try {
                texts.forEach(queue::sendMessage);
                body.run(queue);
            } finally {
                queue.deleteIfExists();
            }
        };
    }

    /** One message, hidden for that long; null when there is none. */
    static QueueMessageItem receive(QueueClient queue, Duration hidden) {
        return queue.receiveMessages(1, hidden, null, Context.NONE).stream().findFirst().orElse(null);
    }

    /** All messages that can be received now. */
    static List<QueueMessageItem> receiveAll(QueueClient queue) {
        List<QueueMessageItem> all = new ArrayList<>();
        while (true) {
            List<QueueMessageItem> found = queue.receiveMessages(BATCH, LONG, null, Context.NONE).stream().toList();
            if (found.isEmpty()) {
                return all;
            }
            all.addAll(found);
        }
    }

    static List<PeekedMessageItem> peek(QueueClient queue) {
        return queue.peekMessages(BATCH, null, Context.NONE).stream().toList();
    }

    /** The texts that can be seen now, with a blank between. */
    static String peeked(QueueClient queue) {
        return peek(queue).stream().map(one -> text(one.getBody())).collect(Collectors.joining(" "));
    }

    static String received(List<QueueMessageItem> messages) {
        return messages.stream().map(one -> text(one.getBody())).collect(Collectors.joining(" "));
    }

    /** The client has no body for an empty text. */
    static String text(com.azure.core.util.BinaryData body) {
        return body == null ? "" : body.toString();
    }

    static int count(QueueClient queue) {
        return queue.getProperties().getApproximateMessagesCount();
    }

    static void eventually(String what, Callable<Boolean> attempt) throws Exception {
        for (long end = System.nanoTime() + WAIT_MAX.toNanos(); System.nanoTime() < end; Thread.sleep(100)) {
            if (attempt.call()) {
                return;
            }
        }
        throw new AssertionError("not within " + WAIT_MAX + ": " + what);
    }

    static String codeOf(QueueStorageException error) {
        return error.getErrorCode() == null ? "" : error.getErrorCode().toString();
    }

    static void refused(int status, String code, Attempt attempt) throws Exception {
        try {
            attempt.run();
        } catch (QueueStorageException error) {
            if (error.getStatusCode() != status || !codeOf(error).equals(code)) {
                throw new AssertionError("expected " + status + " " + code + ", got " + error.getStatusCode() + " " + codeOf(error), error);
            }
            return;
        }
        throw new AssertionError("expected " + status + " " + code + ", but it succeeded");
    }
}
