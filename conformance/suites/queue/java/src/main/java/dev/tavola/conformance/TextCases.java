package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.ENDPOINT;
import static dev.tavola.conformance.Clients.KEY;
import static dev.tavola.conformance.Clients.LONG;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.peeked;
import static dev.tavola.conformance.Clients.receive;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.core.util.BinaryData;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueClientBuilder;
import com.azure.storage.queue.QueueMessageEncoding;
import com.azure.storage.queue.models.QueueMessageItem;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

final class TextCases {
    private static final int LIMIT = 65536;

    private TextCases() {}

    static void register() {
        Map<String, String> texts = new LinkedHashMap<>();
        texts.put("empty", "");
        texts.put("plain", "plain");
        texts.put("blanks at both ends", "  x  ");
        texts.put("line feeds", "\na\n\nb\n");
        texts.put("tabs", "\ta\tb");
        texts.put("markup", "<a b=\"c\">'d' & e</a>");
        texts.put("entities", "&lt;&amp;&#65;&quot;");
        texts.put("end of CDATA", "a]]>b");
        texts.put("JSON", "{\"a\":[1,\"ü\"]}");
        texts.put("accents", "Grüße e\u0301 \u00e9");
        texts.put("Japanese", "日本語");
        texts.put("beyond the basic plane", "😀𝄞");
        texts.put("private use", "\ue000\uf8ff");
        texts.put("line separators", "\u2028\u2029");
        texts.put("base64", "SGVsbG8=");
        texts.forEach((name, text) -> test("texts: " + name, onQueue(List.of(text), queue -> {
            equal(peeked(queue), text);
            QueueMessageItem found = receive(queue, LONG);
            queue.updateMessage(found.getMessageId(), found.getPopReceipt(), text + "|" + text, Duration.ZERO);
            equal(peeked(queue), text + "|" + text);
        })));

        test("texts: bytes by the client's base64", onQueue(List.of(), queue -> {
            QueueClient encoding = new QueueClientBuilder().endpoint(ENDPOINT).queueName(queue.getQueueName())
                .credential(new StorageSharedKeyCredential(Clients.ACCOUNT, KEY)).messageEncoding(QueueMessageEncoding.BASE64).buildClient();
            byte[] data = new byte[256];
            for (int n = 0; n < data.length; n++) {
                data[n] = (byte) n;
            }
            encoding.sendMessage(BinaryData.fromBytes(data));
            equal(encoding.peekMessage().getBody().toBytes(), data);
            that(peeked(queue).startsWith("AAECAw"), peeked(queue));
        }));

        for (String character : List.of("a", "é", "日", "😀", "&")) {
            int size = character.getBytes(StandardCharsets.UTF_8).length;
            String full = character.repeat(LIMIT / size) + "a".repeat(LIMIT % size);
            test("texts: 64 KiB of " + character, onQueue(List.of(full), queue -> that(peeked(queue).equals(full), "the text is another one")));
            test("texts: a byte more than 64 KiB of " + character, onQueue(List.of(), queue ->
                refused(413, "RequestBodyTooLarge", () -> queue.sendMessage(full + "a"))));
        }
    }
}
