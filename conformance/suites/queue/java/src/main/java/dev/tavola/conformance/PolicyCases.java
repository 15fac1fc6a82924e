package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.peeked;
import static dev.tavola.conformance.Clients.queueWithSas;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.QueueAccessPolicy;
import com.azure.storage.queue.models.QueueSignedIdentifier;
import com.azure.storage.queue.sas.QueueServiceSasSignatureValues;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.stream.IntStream;

final class PolicyCases {
    private PolicyCases() {}

    private static QueueSignedIdentifier policy(String id, String permissions) {
        return new QueueSignedIdentifier().setId(id).setAccessPolicy(new QueueAccessPolicy().setPermissions(permissions)
            .setStartsOn(OffsetDateTime.parse("2021-01-06T01:03:17Z")).setExpiresOn(OffsetDateTime.parse("2099-01-01T00:00:00Z")));
    }

    private static List<QueueSignedIdentifier> policies(QueueClient queue) {
        return queue.getAccessPolicy().stream().toList();
    }

    static void register() {
        test("policies: come back, are replaced and cleared", onQueue(List.of(), queue -> {
            equal(policies(queue).size(), 0);
            queue.setAccessPolicy(List.of(policy("all", "raup")));
            QueueSignedIdentifier found = policies(queue).get(0);
            equal(List.of(found.getId(), found.getAccessPolicy().getPermissions(), found.getAccessPolicy().getStartsOn().toInstant().toString()),
                List.of("all", "raup", "2021-01-06T01:03:17Z"));
            queue.setAccessPolicy(List.of(policy("other", "r")));
            equal(policies(queue).stream().map(QueueSignedIdentifier::getId).toList(), List.of("other"));
            queue.setAccessPolicy(List.of());
            equal(policies(queue).size(), 0);
        }));

        test("policies: five are the most", onQueue(List.of(), queue -> {
            queue.setAccessPolicy(IntStream.range(0, 5).mapToObj(n -> policy("id" + n, "r")).toList());
            refused(400, "InvalidXmlDocument", () -> queue.setAccessPolicy(IntStream.range(0, 6).mapToObj(n -> policy("id" + n, "r")).toList()));
        }));

        test("policies: letters of other services are refused", onQueue(List.of(), queue ->
            refused(400, "InvalidXmlDocument", () -> queue.setAccessPolicy(List.of(policy("id", "rwdl"))))));

        test("policies: a signature by policy is allowed and revoked with it", onQueue(List.of("m"), queue -> {
            QueueClient reader = queueWithSas(queue.getQueueName(), queue.generateSas(new QueueServiceSasSignatureValues("reader")));
            refused(403, "AuthenticationFailed", () -> peeked(reader));
            queue.setAccessPolicy(List.of(policy("reader", "r")));
            equal(peeked(reader), "m");
            refused(403, "AuthorizationPermissionMismatch", () -> reader.sendMessage("x"));
            queue.setAccessPolicy(List.of());
            refused(403, "AuthenticationFailed", () -> peeked(reader));
        }));
    }
}
