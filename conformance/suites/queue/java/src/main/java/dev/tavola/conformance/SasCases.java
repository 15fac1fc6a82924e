package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.LONG;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.codeOf;
import static dev.tavola.conformance.Clients.newQueue;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.peeked;
import static dev.tavola.conformance.Clients.queueWithSas;
import static dev.tavola.conformance.Clients.receive;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.serviceWithSas;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import com.azure.storage.common.sas.SasProtocol;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueStorageException;
import com.azure.storage.queue.sas.QueueSasPermission;
import com.azure.storage.queue.sas.QueueServiceSasSignatureValues;
import java.time.OffsetDateTime;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Signatures: what each letter and each type allows, and what else limits them. */
final class SasCases {
    private static final String REFUSED_LETTER = "AuthorizationPermissionMismatch";

    private SasCases() {}

    /** What an operation under a signature works with. */
    private record Scene(QueueServiceClient service, QueueClient queue, String other, QueueMessageItem updated, QueueMessageItem deleted) {}

    private interface Call {
        void run(Scene scene);
    }

    private static final Map<String, Call> CALLS = new LinkedHashMap<>();

    static {
        CALLS.put("list", scene -> scene.service.listQueues().stream().count());
        CALLS.put("get service properties", scene -> scene.service.getProperties());
        CALLS.put("create", scene -> scene.service.createQueue(scene.other));
        CALLS.put("delete queue", scene -> scene.service.deleteQueue(scene.other));
        CALLS.put("get metadata", scene -> scene.queue.getProperties());
        CALLS.put("set metadata", scene -> scene.queue.setMetadata(Map.of("a", "b")));
        CALLS.put("put", scene -> scene.queue.sendMessage("x"));
        CALLS.put("get", scene -> scene.queue.receiveMessage());
        CALLS.put("peek", scene -> scene.queue.peekMessage());
        CALLS.put("update", scene -> scene.queue.updateMessage(scene.updated.getMessageId(), scene.updated.getPopReceipt(), "x", LONG));
        CALLS.put("delete message", scene -> scene.queue.deleteMessage(scene.deleted.getMessageId(), scene.deleted.getPopReceipt()));
        CALLS.put("clear", scene -> scene.queue.clearMessages());
    }

    /** Runs one operation with a token: "allowed", or the code of the refusal. */
    private static String attempt(String operation, Function<QueueClient, String> token) {
        QueueClient own = newQueue();
        QueueClient other = newQueue();
        own.create();
        if (!operation.equals("create")) {
            other.create();
        }
        try {
            List.of("a", "b", "c").forEach(own::sendMessage);
            String sas = token.apply(own);
            CALLS.get(operation).run(new Scene(serviceWithSas(sas), queueWithSas(own.getQueueName(), sas), other.getQueueName(), receive(own, LONG), receive(own, LONG)));
            return "allowed";
        } catch (QueueStorageException e) {
            if (e.getStatusCode() != 403) {
                throw e;
            }
            return codeOf(e);
        } finally {
            own.deleteIfExists();
            other.deleteIfExists();
        }
    }

    private static AccountSasSignatureValues account(String permissions, String types) {
        return new AccountSasSignatureValues(OffsetDateTime.now().plusHours(1), AccountSasPermission.parse(permissions),
            AccountSasService.parse("q"), AccountSasResourceType.parse(types));
    }

    private static QueueServiceSasSignatureValues queue(String permissions) {
        return new QueueServiceSasSignatureValues(OffsetDateTime.now().plusHours(1), QueueSasPermission.parse(permissions));
    }

    static void register() {
        Map<String, List<String>> rules = new LinkedHashMap<>();
        rules.put("list", List.of("s", "l"));
        rules.put("get service properties", List.of("s", "r"));
        rules.put("create", List.of("c", "cw"));
        rules.put("delete queue", List.of("c", "d"));
        rules.put("get metadata", List.of("c", "r"));
        rules.put("set metadata", List.of("c", "w"));
        rules.put("put", List.of("o", "a"));
        rules.put("get", List.of("o", "p"));
        rules.put("peek", List.of("o", "r"));
        rules.put("update", List.of("oc", "u"));
        rules.put("delete message", List.of("oc", "p"));
        rules.put("clear", List.of("oc", "d"));
        rules.forEach((operation, rule) -> {
            test("account SAS: " + operation + " by each letter", () -> {
                for (String letter : "rwdlacup".split("")) {
                    String want = rule.get(1).contains(letter) ? "allowed" : REFUSED_LETTER;
                    equal(letter + " " + attempt(operation, own -> SERVICE.generateAccountSas(account(letter, "sco"))), letter + " " + want);
                }
            });
            test("account SAS: " + operation + " by each resource type", () -> {
                for (String type : "sco".split("")) {
                    String want = rule.get(0).contains(type) ? "allowed" : "AuthorizationResourceTypeMismatch";
                    equal(type + " " + attempt(operation, own -> SERVICE.generateAccountSas(account("rwdlacup", type))), type + " " + want);
                }
            });
        });

        Map<String, String> letters = Map.of("get metadata", "r", "put", "a", "get", "p", "peek", "r", "update", "u", "delete message", "p");
        letters.forEach((operation, right) -> test("queue SAS: " + operation + " by each letter", () -> {
            for (String letter : "raup".split("")) {
                String want = letter.equals(right) ? "allowed" : REFUSED_LETTER;
                equal(letter + " " + attempt(operation, own -> own.generateSas(queue(letter))), letter + " " + want);
            }
        }));

        for (String operation : List.of("set metadata", "clear")) {
            test("queue SAS: " + operation + " never", () -> equal(attempt(operation, own -> own.generateSas(queue("raup"))), "AuthorizationFailure"));
        }

        test("queue SAS: create of its queue", () -> {
            QueueClient queue = newQueue();
            refused(403, "AuthorizationFailure", () -> queueWithSas(queue.getQueueName(), queue.generateSas(queue("raup"))).create());
        });

        test("queue SAS: of another queue", onQueue(List.of("m"), queue ->
            refused(403, "AuthenticationFailed", () -> peeked(queueWithSas(queue.getQueueName(), newQueue().generateSas(queue("raup")))))));

        Map<String, Map.Entry<QueueServiceSasSignatureValues, String>> fields = new LinkedHashMap<>();
        fields.put("begun", Map.entry(queue("r").setStartTime(OffsetDateTime.now().minusHours(1)), "allowed"));
        fields.put("expired", Map.entry(queue("r").setExpiryTime(OffsetDateTime.now().minusHours(1)), "AuthenticationFailed"));
        fields.put("from here", Map.entry(queue("r").setSasIpRange(SasIpRange.parse("127.0.0.1")), "allowed"));
        fields.put("from elsewhere", Map.entry(queue("r").setSasIpRange(SasIpRange.parse("10.0.0.1-10.0.0.9")), "AuthorizationSourceIPMismatch"));
        fields.put("by any protocol", Map.entry(queue("r").setProtocol(SasProtocol.HTTPS_HTTP), "allowed"));
        fields.put("by https only", Map.entry(queue("r").setProtocol(SasProtocol.HTTPS_ONLY), "AuthorizationProtocolMismatch"));
        fields.forEach((name, one) -> test("queue SAS: " + name, () -> equal(attempt("peek", own -> own.generateSas(one.getKey())), one.getValue())));
    }
}
