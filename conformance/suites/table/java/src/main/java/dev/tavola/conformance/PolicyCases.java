package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.newTable;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refusedInXml;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableSignedIdentifier;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

final class PolicyCases {
    private static final OffsetDateTime START = OffsetDateTime.parse("2020-01-01T00:00:00Z");
    private static final OffsetDateTime EXPIRY = OffsetDateTime.parse("2120-01-01T00:00:00Z");

    private PolicyCases() {}

    static TableSignedIdentifier policy(String id, String permissions, OffsetDateTime expiry) {
        return new TableSignedIdentifier(id).setAccessPolicy(
            new TableAccessPolicy().setStartsOn(START).setExpiresOn(expiry).setPermissions(permissions));
    }

    /** The SDK has null for an empty list. */
    private static List<String> ids(TableClient table) {
        List<TableSignedIdentifier> identifiers = table.getAccessPolicies().getIdentifiers();
        return identifiers == null ? List.of() : identifiers.stream().map(TableSignedIdentifier::getId).toList();
    }

    static void register() {
        test("policies: a new table has none", onTable(table -> equal(ids(table), List.of())));

        test("policies: five there and back", onTable(table -> {
            table.setAccessPolicies(Stream.of("r", "a", "u", "d", "raud").map(p -> policy("id" + p, p, EXPIRY)).toList());
            List<TableSignedIdentifier> got = table.getAccessPolicies().getIdentifiers();
            equal(got.stream().map(one -> one.getId() + one.getAccessPolicy().getPermissions()).toList(), List.of("idrr", "idaa", "iduu", "iddd", "idraudraud"));
            for (TableSignedIdentifier one : got) {
                equal(one.getAccessPolicy().getStartsOn(), START);
                equal(one.getAccessPolicy().getExpiresOn(), EXPIRY);
            }
        }));

        test("policies: setting replaces all, and none clears", onTable(table -> {
            table.setAccessPolicies(List.of(policy("one", "r", EXPIRY), policy("two", "r", EXPIRY)));
            table.setAccessPolicies(List.of(policy("three", "r", EXPIRY)));
            equal(ids(table), List.of("three"));
            table.setAccessPolicies(List.of());
            equal(ids(table), List.of());
        }));

        test("policies: an id alone is kept", onTable(table -> {
            table.setAccessPolicies(List.of(new TableSignedIdentifier("bare")));
            equal(ids(table), List.of("bare"));
        }));

        test("policies: six are InvalidXmlDocument", onTable(table -> {
            List<TableSignedIdentifier> six = IntStream.range(0, 6).mapToObj(n -> policy("id" + n, "r", EXPIRY)).toList();
            refusedInXml(400, "InvalidXmlDocument", () -> table.setAccessPolicies(six));
        }));

        test("policies: of a missing table are TableNotFound", () -> {
            TableClient table = newTable();
            refusedInXml(404, "TableNotFound", table::getAccessPolicies);
            refusedInXml(404, "TableNotFound", () -> table.setAccessPolicies(List.of()));
        });
    }
}
