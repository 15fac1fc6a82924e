package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.ENDPOINT;
import static dev.tavola.conformance.Clients.KEY;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.onQueue;
import static dev.tavola.conformance.Clients.peeked;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.serviceAt;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueClientBuilder;
import com.azure.storage.queue.models.QueueAnalyticsLogging;
import com.azure.storage.queue.models.QueueCorsRule;
import com.azure.storage.queue.models.QueueMetrics;
import com.azure.storage.queue.models.QueueRetentionPolicy;
import com.azure.storage.queue.models.QueueServiceProperties;
import java.util.Collections;
import java.util.List;

final class ServiceCases {
    private ServiceCases() {}

    /** A case after which the service properties are as they were. */
    private static Harness.Body restoring(Harness.Body body) {
        return () -> {
            QueueServiceProperties before = SERVICE.getProperties();
            if (before.getCors() == null) {
                before.setCors(List.of());
            }
            try {
                body.run();
            } finally {
                SERVICE.setProperties(before);
            }
        };
    }

    private static QueueCorsRule rule() {
        return new QueueCorsRule().setAllowedOrigins("https://app.example.com").setAllowedMethods("GET,PUT").setAllowedHeaders("content-type,x-ms-*")
            .setExposedHeaders("x-ms-request-id").setMaxAgeInSeconds(60);
    }

    private static QueueMetrics metrics(int days) {
        return new QueueMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true).setRetentionPolicy(new QueueRetentionPolicy().setEnabled(true).setDays(days));
    }

    static void register() {
        test("service: properties come back", restoring(() -> {
            SERVICE.setProperties(new QueueServiceProperties().setCors(List.of(rule())).setHourMetrics(metrics(5)).setMinuteMetrics(metrics(6))
                .setAnalyticsLogging(new QueueAnalyticsLogging().setVersion("1.0").setRead(true).setWrite(false).setDelete(true)
                    .setRetentionPolicy(new QueueRetentionPolicy().setEnabled(true).setDays(7))));
            QueueServiceProperties found = SERVICE.getProperties();
            equal(List.of(found.getCors().get(0).getAllowedMethods(), found.getCors().get(0).getMaxAgeInSeconds()), List.of("GET,PUT", 60));
            equal(List.of(found.getHourMetrics().getRetentionPolicy().getDays(), found.getMinuteMetrics().getRetentionPolicy().getDays()), List.of(5, 6));
            equal(List.of(found.getAnalyticsLogging().isRead(), found.getAnalyticsLogging().isWrite(), found.getAnalyticsLogging().isDelete()), List.of(true, false, true));
        }));

        test("service: six CORS rules are refused", restoring(() ->
            refused(400, "InvalidXmlDocument", () -> SERVICE.setProperties(SERVICE.getProperties().setCors(Collections.nCopies(6, rule()))))));

        test("service: a retention of 366 days is refused", restoring(() ->
            refused(400, "InvalidXmlDocument", () -> SERVICE.setProperties(SERVICE.getProperties().setHourMetrics(metrics(366))))));

        // Statistics of the secondary: this version of the client looks for another root element than the service sends.
        test("service: no statistics of the primary", () -> refused(400, "InvalidQueryParameterValue", SERVICE::getStatistics));

        test("service: the secondary reads", onQueue(List.of("m"), queue ->
            equal(peeked(serviceAt(ENDPOINT + "-secondary", KEY).getQueueClient(queue.getQueueName())), "m")));

        test("service: by connection string", onQueue(List.of("m"), queue -> {
            QueueClient client = new QueueClientBuilder().connectionString(System.getenv("TAVOLA_CONNECTION_STRING")).queueName(queue.getQueueName()).buildClient();
            equal(peeked(client), "m");
        }));

        test("service: a wrong key is refused", () -> {
            refused(403, "AuthenticationFailed", () -> serviceAt(ENDPOINT, "d3Jvbmc=").getProperties());
            that(SERVICE.getProperties() != null, "no properties");
        });
    }
}
