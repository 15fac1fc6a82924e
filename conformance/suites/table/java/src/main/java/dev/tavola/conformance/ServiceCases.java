package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.ACCOUNT;
import static dev.tavola.conformance.Clients.ENDPOINT;
import static dev.tavola.conformance.Clients.KEY;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.failure;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.refusedInXml;
import static dev.tavola.conformance.Clients.resolvedLocally;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.serviceAt;
import static dev.tavola.conformance.Clients.statusOf;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceGeoReplication;
import com.azure.data.tables.models.TableServiceGeoReplicationStatus;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;

final class ServiceCases {
    private static final String SECONDARY = ENDPOINT.replace(ACCOUNT, ACCOUNT + "-secondary");

    private ServiceCases() {}

    private static TableServiceRetentionPolicy retention(int days) {
        return new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(days);
    }

    private static TableServiceMetrics metrics(int days) {
        return new TableServiceMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true).setRetentionPolicy(retention(days));
    }

    private static TableServiceCorsRule rule(String origins) {
        return new TableServiceCorsRule().setAllowedOrigins(origins).setAllowedMethods("GET,PUT").setAllowedHeaders("x-ms-*")
            .setExposedHeaders("x-ms-request-id").setMaxAgeInSeconds(100);
    }

    /** The body of a case after which the service's properties are as they were. */
    private static Harness.Body restoring(Harness.Body body) {
        return () -> {
            TableServiceProperties before = SERVICE.getProperties();
            try {
                body.run();
            } finally {
                SERVICE.setProperties(before);
            }
        };
    }

    /** Sends what a browser sends before the real request, and returns the status line and headers. */
    private static String preflight(Map<String, String> headers) throws Exception {
        // Java's own client does not let these headers through, so this writes to a socket.
        URI uri = URI.create(ENDPOINT + "/Tables");
        StringBuilder request = new StringBuilder("OPTIONS " + uri.getPath() + " HTTP/1.1\r\nHost: " + uri.getAuthority() + "\r\nConnection: close\r\n");
        headers.forEach((name, value) -> request.append(name).append(": ").append(value).append("\r\n"));
        try (Socket socket = new Socket(uri.getHost(), uri.getPort())) {
            socket.getOutputStream().write(request.append("\r\n").toString().getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8).toLowerCase();
        }
    }

    static void register() {
        test("service: properties there and back", restoring(() -> {
            SERVICE.setProperties(new TableServiceProperties()
                .setLogging(new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(true).setWriteLogged(false).setDeleteLogged(true).setRetentionPolicy(retention(3)))
                .setHourMetrics(metrics(7))
                .setMinuteMetrics(metrics(1))
                .setCorsRules(List.of(rule("http://a.example"), rule("*"))));
            TableServiceProperties got = SERVICE.getProperties();
            equal(List.of(got.getLogging().isReadLogged(), got.getLogging().isWriteLogged(), got.getLogging().isDeleteLogged()), List.of(true, false, true));
            equal(got.getLogging().getRetentionPolicy().getDaysToRetain(), 3);
            equal(got.getHourMetrics().getTableServiceRetentionPolicy().getDaysToRetain(), 7);
            equal(got.getMinuteMetrics().getTableServiceRetentionPolicy().getDaysToRetain(), 1);
            equal(got.getMinuteMetrics().isIncludeApis(), true);
            equal(got.getCorsRules().stream().map(TableServiceCorsRule::getAllowedOrigins).toList(), List.of("http://a.example", "*"));
            equal(got.getCorsRules().get(0).getMaxAgeInSeconds(), 100);
        }));

        test("service: properties that are left out stay", restoring(() -> {
            SERVICE.setProperties(new TableServiceProperties().setHourMetrics(metrics(7)).setMinuteMetrics(metrics(2)));
            SERVICE.setProperties(new TableServiceProperties().setMinuteMetrics(metrics(9)));
            TableServiceProperties got = SERVICE.getProperties();
            equal(got.getHourMetrics().getTableServiceRetentionPolicy().getDaysToRetain(), 7);
            equal(got.getMinuteMetrics().getTableServiceRetentionPolicy().getDaysToRetain(), 9);
        }));

        test("service: six CORS rules are InvalidXmlDocument", restoring(() -> refusedInXml(400, "InvalidXmlDocument",
            () -> SERVICE.setProperties(new TableServiceProperties().setCorsRules(Collections.nCopies(6, rule("*")))))));

        test("service: retention of 366 days is refused", restoring(() -> equal(
            statusOf(failure(() -> SERVICE.setProperties(new TableServiceProperties().setHourMetrics(metrics(366))))), 400)));

        test("service: a preflight that a rule matches, and some that it does not", restoring(() -> {
            SERVICE.setProperties(new TableServiceProperties().setCorsRules(List.of(rule("http://a.example"))));
            String allowed = preflight(Map.of("Origin", "http://a.example", "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "x-ms-date"));
            that(allowed.startsWith("http/1.1 200"), allowed);
            that(allowed.contains("access-control-allow-origin: http://a.example"), allowed);
            for (Map<String, String> headers : List.of(
                Map.of("Origin", "http://b.example", "Access-Control-Request-Method", "PUT"),
                Map.of("Origin", "http://a.example", "Access-Control-Request-Method", "DELETE"),
                Map.of("Origin", "http://a.example", "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "other"))) {
                String answer = preflight(headers);
                that(answer.startsWith("http/1.1 403"), answer);
            }
        }));

        test("service: stats come from the secondary", () -> {
            TableServiceGeoReplication replication = serviceAt(SECONDARY, KEY).getStatistics().getGeoReplication();
            equal(replication.getStatus(), TableServiceGeoReplicationStatus.LIVE);
            that(replication.getLastSyncTime().getYear() > 2000, "odd time " + replication.getLastSyncTime());
        });

        test("service: stats of the primary are refused", () -> equal(statusOf(failure(SERVICE::getStatistics)), 400));

        test("service: the secondary reads what the primary wrote, and writes nothing", onTable(table -> {
            table.createEntity(row("r", "n", 1));
            TableClient secondary = serviceAt(SECONDARY, KEY).getTableClient(table.getTableName());
            equal(secondary.getEntity("p", "r").getProperty("n"), 1);
            refused(403, "InsufficientAccountPermissions", () -> secondary.createEntity(row("s")));
        }));

        test("service: merges tunnelled through POST, as the SDK sends them to names like Cosmos DB's", onTable(owner -> {
            TableClient table = new TableClientBuilder().endpoint("http://" + ACCOUNT + ".table.cosmos.example:" + URI.create(ENDPOINT).getPort())
                .credential(new AzureNamedKeyCredential(ACCOUNT, KEY))
                .tableName(owner.getTableName())
                .httpClient(resolvedLocally())
                .buildClient();
            table.createEntity(row("r", "a", 1));
            table.updateEntity(row("r", "b", 2), TableEntityUpdateMode.MERGE);
            table.submitTransaction(List.of(new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, row("r", "c", 3))));
            TableEntity got = owner.getEntity("p", "r");
            equal(List.of(got.getProperty("a"), got.getProperty("b"), got.getProperty("c")), List.of(1, 2, 3));
        }));

        test("service: a wrong key is AuthenticationFailed", () -> {
            String wrong = Base64.getEncoder().encodeToString("wrong".getBytes(StandardCharsets.UTF_8));
            refused(403, "AuthenticationFailed", () -> serviceAt(ENDPOINT, wrong).listTables().stream().count());
        });
    }
}
