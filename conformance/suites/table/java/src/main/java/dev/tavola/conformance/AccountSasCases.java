package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.codeOf;
import static dev.tavola.conformance.Clients.failure;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.refusedInXml;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.serviceWithSas;
import static dev.tavola.conformance.Clients.tableWithSas;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.newName;
import static dev.tavola.conformance.Harness.test;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasIpRange;
import com.azure.data.tables.sas.TableSasProtocol;
import java.time.OffsetDateTime;
import java.util.List;

final class AccountSasCases {
    private static final String ALL = "rwdlacu";

    private AccountSasCases() {}

    /** What a signature is tried with: its clients, the latter of a table with the row p, r. */
    record Limited(TableServiceClient service, TableClient table) {}

    interface Use {
        void run(Limited clients) throws Exception;
    }

    private static TableAccountSasSignatureValues values(String permissions, String resourceTypes) {
        return values(permissions, resourceTypes, "t", OffsetDateTime.now().plusHours(1));
    }

    private static TableAccountSasSignatureValues values(String permissions, String resourceTypes, String services, OffsetDateTime expiry) {
        return new TableAccountSasSignatureValues(expiry, TableAccountSasPermission.parse(permissions),
            TableAccountSasService.parse(services), TableAccountSasResourceType.parse(resourceTypes));
    }

    private static Harness.Body with(TableAccountSasSignatureValues values, Use body) {
        return onTable(owner -> {
            owner.createEntity(row("r"));
            String sas = SERVICE.generateAccountSas(values);
            body.run(new Limited(serviceWithSas(sas), tableWithSas(owner.getTableName(), sas)));
        });
    }

    private static void operation(String name, String needs, String type, Use use) {
        test("account SAS: " + name + " is allowed with " + needs + " alone", with(values(needs, type), use));
        for (String letter : needs.split("")) {
            // Creating a table takes c or w.
            String without = ALL.replace(letter, "").replace(letter.equals("c") ? "w" : letter, "");
            test("account SAS: " + name + " is refused without " + letter, with(values(without, "sco"), clients ->
                expectRefusal(type, "AuthorizationPermissionMismatch", use, clients)));
        }
        test("account SAS: " + name + " is refused without resource type " + type, with(values(ALL, "sco".replace(type, "")), clients ->
            expectRefusal(type, "AuthorizationResourceTypeMismatch", use, clients)));
    }

    /** Operations on the service answer in XML, and transactions have no status of their own. */
    private static void expectRefusal(String type, String code, Use use, Limited clients) {
        if (type.equals("s")) {
            refusedInXml(403, code, () -> use.run(clients));
        } else {
            equal(codeOf(failure(() -> use.run(clients))), code);
        }
    }

    private static void refusedAs(String name, String code, TableAccountSasSignatureValues values) {
        test("account SAS: " + name + " is " + code, with(values, clients -> refused(403, code, () -> list(clients.table(), null))));
    }

    static void register() {
        operation("list tables", "l", "c", clients -> clients.service().listTables().stream().count());
        operation("create a table", "c", "c", clients -> {
            String name = newName();
            clients.service().createTable(name);
            SERVICE.deleteTable(name);
        });
        operation("delete a table", "d", "c", clients -> {
            String name = newName();
            SERVICE.createTable(name);
            try {
                clients.service().deleteTable(name);
            } finally {
                SERVICE.deleteTable(name);
            }
        });
        operation("read service properties", "r", "s", clients -> clients.service().getProperties());
        operation("write service properties", "w", "s", clients -> clients.service().setProperties(new TableServiceProperties()));
        operation("get an entity", "r", "o", clients -> clients.table().getEntity("p", "r"));
        operation("query entities", "r", "o", clients -> list(clients.table(), null));
        operation("insert", "a", "o", clients -> clients.table().createEntity(row("new")));
        operation("merge", "u", "o", clients -> clients.table().updateEntity(row("r"), TableEntityUpdateMode.MERGE));
        operation("replace", "u", "o", clients -> clients.table().updateEntity(row("r"), TableEntityUpdateMode.REPLACE));
        operation("upsert", "au", "o", clients -> clients.table().upsertEntity(row("r")));
        operation("delete an entity", "d", "o", clients -> clients.table().deleteEntity("p", "r"));
        operation("transaction of an insert and a delete", "ad", "o", clients -> clients.table().submitTransaction(
            List.of(new TableTransactionAction(CREATE, row("new")), new TableTransactionAction(DELETE, row("r")))));

        OffsetDateTime now = OffsetDateTime.now();
        refusedAs("expired", "AuthenticationFailed", values(ALL, "sco", "t", now.minusHours(1)));
        refusedAs("not yet valid", "AuthenticationFailed", values(ALL, "sco").setStartTime(now.plusMinutes(30)));
        refusedAs("for another service", "AuthorizationServiceMismatch", values(ALL, "sco", "bq", now.plusHours(1)));
        refusedAs("for https only", "AuthorizationProtocolMismatch", values(ALL, "sco").setProtocol(TableSasProtocol.HTTPS_ONLY));
        refusedAs("for another address", "AuthorizationSourceIPMismatch", values(ALL, "sco").setSasIpRange(TableSasIpRange.parse("10.1.1.1-10.1.1.9")));

        test("account SAS: with a start, protocols and an address range that hold",
            with(values(ALL, "sco").setStartTime(now.minusHours(1))
                .setProtocol(TableSasProtocol.HTTPS_HTTP)
                .setSasIpRange(TableSasIpRange.parse("127.0.0.0-127.0.0.255")), clients -> equal(list(clients.table(), null).size(), 1)));

        test("account SAS: cannot touch access policies", with(values(ALL, "sco"), clients -> {
            refusedInXml(403, "AuthorizationFailure", clients.table()::getAccessPolicies);
            refusedInXml(403, "AuthorizationFailure", () -> clients.table().setAccessPolicies(List.of()));
        }));
    }
}
