package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;

import com.azure.core.http.rest.Response;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.util.List;
import java.util.stream.IntStream;

final class EntityCases {
    private static final String ETAG = "W/\"datetime'\\d{4}-\\d\\d-\\d\\dT\\d\\d%3A\\d\\d%3A\\d\\d(\\.\\d{1,7})?Z'\"";

    private EntityCases() {}

    private static TableEntity numbered(int count) {
        TableEntity entity = row("r");
        IntStream.range(0, count).forEach(n -> entity.addProperty("p" + n, n));
        return entity;
    }

    private static TableEntity withText(int properties) {
        TableEntity entity = row("r");
        IntStream.range(0, properties).forEach(n -> entity.addProperty("p" + n, "x".repeat(32 * 1024)));
        return entity;
    }

    private static Response<Void> updateIfUnchanged(TableClient table, TableEntity entity, TableEntityUpdateMode mode) {
        return table.updateEntityWithResponse(entity, mode, true, null, Context.NONE);
    }

    static void register() {
        test("entities: insert answers 204, and get returns the row", onTable(table -> {
            equal(table.createEntityWithResponse(row("r", "n", 1), null, Context.NONE).getStatusCode(), 204);
            TableEntity got = table.getEntity("p", "r");
            equal(List.of(got.getPartitionKey(), got.getRowKey(), got.getProperty("n")), List.of("p", "r", 1));
            that(got.getETag().matches(ETAG), "odd ETag " + got.getETag());
            that(got.getTimestamp().getYear() > 2000, "odd Timestamp " + got.getTimestamp());
        }));

        test("entities: insert of an existing key is EntityAlreadyExists", onTable(table -> {
            table.createEntity(row("r", "n", 1));
            refused(409, "EntityAlreadyExists", () -> table.createEntity(row("r", "n", 2)));
            equal(table.getEntity("p", "r").getProperty("n"), 1);
        }));

        test("entities: get of a missing row is ResourceNotFound", onTable(table ->
            refused(404, "ResourceNotFound", () -> table.getEntity("p", "r"))));

        test("entities: get with select", onTable(table -> {
            table.createEntity(row("r", "a", 1, "b", 2));
            TableEntity got = table.getEntityWithResponse("p", "r", List.of("a", "none"), null, Context.NONE).getValue();
            equal(got.getProperty("a"), 1);
            that(!got.getProperties().containsKey("b"), "b was not asked for");
            that(got.getProperties().containsKey("none") && got.getProperty("none") == null, "no null for what is missing");
        }));

        test("entities: merge keeps what it does not name", onTable(table -> {
            table.createEntity(row("r", "a", 1, "b", 2));
            table.updateEntity(row("r", "b", 3), TableEntityUpdateMode.MERGE);
            TableEntity got = table.getEntity("p", "r");
            equal(List.of(got.getProperty("a"), got.getProperty("b")), List.of(1, 3));
        }));

        test("entities: replace drops what it does not name", onTable(table -> {
            table.createEntity(row("r", "a", 1, "b", 2));
            table.updateEntity(row("r", "b", 3), TableEntityUpdateMode.REPLACE);
            TableEntity got = table.getEntity("p", "r");
            equal(got.getProperty("b"), 3);
            that(!got.getProperties().containsKey("a"), "a is still there");
        }));

        for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
            test("entities: " + mode + " of a missing row is ResourceNotFound", onTable(table ->
                refused(404, "ResourceNotFound", () -> table.updateEntity(row("r"), mode))));

            test("entities: " + mode + " if unchanged, then with the old ETag", onTable(table -> {
                table.createEntity(row("r", "n", 1));
                TableEntity old = table.getEntity("p", "r");
                equal(updateIfUnchanged(table, old.addProperty("n", 2), mode).getStatusCode(), 204);
                refused(412, "UpdateConditionNotSatisfied", () -> updateIfUnchanged(table, old.addProperty("n", 3), mode));
                TableEntity now = table.getEntity("p", "r");
                equal(now.getProperty("n"), 2);
                that(!now.getETag().equals(old.getETag()), "the ETag did not change");
            }));

            test("entities: upsert by " + mode + " inserts, then updates", onTable(table -> {
                table.upsertEntityWithResponse(row("r", "a", 1), mode, null, Context.NONE);
                table.upsertEntityWithResponse(row("r", "b", 2), mode, null, Context.NONE);
                TableEntity got = table.getEntity("p", "r");
                equal(got.getProperty("b"), 2);
                equal(got.getProperty("a"), mode == TableEntityUpdateMode.MERGE ? 1 : null);
            }));

            // The SDK takes the last quote off the ETag in the header, and applications send that back.
            test("entities: " + mode + " with the ETag of an answer's header, which lost its quote", onTable(table -> {
                String scrubbed = table.createEntityWithResponse(row("r"), null, Context.NONE).getHeaders().getValue("ETag");
                that(!scrubbed.endsWith("\""), "the SDK no longer changes the header");
                TableEntity entity = row("r", "n", 2, "odata.etag", scrubbed);
                equal(updateIfUnchanged(table, entity, mode).getStatusCode(), 204);
            }));
        }

        test("entities: a fetched entity can be written back as it is", onTable(table -> {
            table.createEntity(row("r", "a", 1, "big", 5L));
            TableEntity got = table.getEntity("p", "r");
            table.updateEntity(got, TableEntityUpdateMode.REPLACE);
            equal(table.getEntity("p", "r").getProperty("big"), 5L);
        }));

        test("entities: delete is quiet the second time", onTable(table -> {
            table.createEntity(row("r"));
            equal(table.deleteEntityWithResponse(row("r"), false, null, Context.NONE).getStatusCode(), 204);
            equal(table.deleteEntityWithResponse(row("r"), false, null, Context.NONE).getStatusCode(), 404);
        }));

        test("entities: delete if unchanged", onTable(table -> {
            table.createEntity(row("r"));
            TableEntity old = table.getEntity("p", "r");
            table.upsertEntity(row("r", "n", 1));
            refused(412, "UpdateConditionNotSatisfied", () -> table.deleteEntityWithResponse(old, true, null, Context.NONE));
            TableEntity now = table.getEntity("p", "r");
            equal(table.deleteEntityWithResponse(now, true, null, Context.NONE).getStatusCode(), 204);
        }));

        test("entities: 252 properties fit, 253 are TooManyProperties", onTable(table -> {
            table.createEntity(numbered(252));
            equal(table.getEntity("p", "r").getProperty("p251"), 251);
            refused(400, "TooManyProperties", () -> table.upsertEntity(numbered(253)));
        }));

        test("entities: just under 1 MiB fits, over it is EntityTooLarge", onTable(table -> {
            table.createEntity(withText(15));
            refused(400, "EntityTooLarge", () -> table.upsertEntity(withText(17)));
        }));

        test("entities: a property name of 256 characters is PropertyNameTooLong", onTable(table ->
            refused(400, "PropertyNameTooLong", () -> table.createEntity(row("r", "n".repeat(256), 1)))));

        test("entities: a property name that is no identifier is PropertyNameInvalid", onTable(table ->
            refused(400, "PropertyNameInvalid", () -> table.createEntity(row("r", "123", 1)))));

        test("entities: property names keep their case and unicode letters", onTable(table -> {
            table.createEntity(row("r", "Name", 1, "name", 2, "größe", 3, "名前", 4));
            TableEntity got = table.getEntity("p", "r");
            equal(List.of(got.getProperty("Name"), got.getProperty("name"), got.getProperty("größe"), got.getProperty("名前")), List.of(1, 2, 3, 4));
        }));
    }
}
