package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static dev.tavola.conformance.Clients.ACCOUNT;
import static dev.tavola.conformance.Clients.ENDPOINT;
import static dev.tavola.conformance.Clients.KEY;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.resolvedLocally;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.newName;
import static dev.tavola.conformance.Harness.test;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import java.net.URI;
import java.time.OffsetDateTime;
import java.util.List;

final class ConnectionStringCases {
    private ConnectionStringCases() {}

    /** Makes a table, writes and reads a row, and deletes the table, all with this client. */
    private static void works(TableServiceClient service) {
        TableClient table = service.createTable(newName());
        try {
            table.createEntity(row("r", "n", 1));
            table.submitTransaction(List.of(new TableTransactionAction(UPDATE_MERGE, row("r", "n", 2))));
            equal(rowKeys(table, "n eq 2"), "r");
        } finally {
            table.deleteTable();
        }
    }

    private static void connects(String name, String connectionString) {
        test("connection strings: " + name, () -> works(new TableServiceClientBuilder().connectionString(connectionString).buildClient()));
    }

    static void register() {
        String key = "AccountName=" + ACCOUNT + ";AccountKey=" + KEY;
        connects("as the server prints it", System.getenv("TAVOLA_CONNECTION_STRING"));
        connects("protocol, account, key and endpoint", "DefaultEndpointsProtocol=http;" + key + ";TableEndpoint=" + ENDPOINT);
        connects("account, key and endpoint", key + ";TableEndpoint=" + ENDPOINT);
        connects("an endpoint with a slash at its end", "DefaultEndpointsProtocol=http;" + key + ";TableEndpoint=" + ENDPOINT + "/");
        connects("endpoints of the other services too, in another order",
            "BlobEndpoint=http://127.0.0.1:1/x;TableEndpoint=" + ENDPOINT + ";" + key + ";DefaultEndpointsProtocol=http");
        connects("a secondary endpoint next to the primary", "DefaultEndpointsProtocol=http;" + key + ";TableEndpoint=" + ENDPOINT
            + ";TableSecondaryEndpoint=" + ENDPOINT.replace(ACCOUNT, ACCOUNT + "-secondary"));

        test("connection strings: a shared access signature", () -> {
            String sas = SERVICE.generateAccountSas(new TableAccountSasSignatureValues(OffsetDateTime.now().plusHours(1),
                TableAccountSasPermission.parse("rwdlacu"), TableAccountSasService.parse("t"), TableAccountSasResourceType.parse("sco")));
            works(new TableServiceClientBuilder().connectionString("TableEndpoint=" + ENDPOINT + ";SharedAccessSignature=" + sas).buildClient());
        });

        test("connection strings: an endpoint suffix, so that the account is in the host name", () -> works(new TableServiceClientBuilder()
            .connectionString("DefaultEndpointsProtocol=http;" + key + ";EndpointSuffix=example:" + URI.create(ENDPOINT).getPort())
            .httpClient(resolvedLocally())
            .buildClient()));

        if ("1".equals(System.getenv("TAVOLA_ON_DEVELOPMENT_PORT"))) {
            connects("UseDevelopmentStorage=true", "UseDevelopmentStorage=true");
            connects("UseDevelopmentStorage=true with a proxy", "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://127.0.0.1");
        }
    }
}
