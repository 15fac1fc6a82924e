package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.newTable;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.newName;
import static dev.tavola.conformance.Harness.test;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableItem;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

final class TableCases {
    private TableCases() {}

    private static List<String> names(String filter) {
        return SERVICE.listTables(new ListTablesOptions().setFilter(filter), null, Context.NONE).stream().map(TableItem::getName).toList();
    }

    private static String withPrefix(String prefix) {
        return "TableName ge '" + prefix + "' and TableName lt '" + prefix + "~'";
    }

    /** Makes the tables for the time of the body. */
    private static void withTables(List<String> names, Harness.Body body) throws Exception {
        names.forEach(SERVICE::createTable);
        try {
            body.run();
        } finally {
            names.forEach(SERVICE::deleteTable);
        }
    }

    static void register() {
        test("tables: create, list, delete", () -> {
            String name = newName();
            SERVICE.createTable(name);
            equal(names("TableName eq '" + name + "'"), List.of(name));
            SERVICE.deleteTable(name);
            equal(names("TableName eq '" + name + "'"), List.of());
        });

        test("tables: create answers 204, as the SDK prefers no content", () -> {
            TableClient table = newTable();
            int status = table.createTableWithResponse(null, Context.NONE).getStatusCode();
            table.deleteTable();
            equal(status, 204);
        });

        test("tables: create twice is TableAlreadyExists", onTable(table -> {
            refused(409, "TableAlreadyExists", table::createTable);
            refused(409, "TableAlreadyExists", () -> SERVICE.createTable(table.getTableName().toUpperCase()));
        }));

        test("tables: create if not exists is quiet the second time", () -> {
            String name = newName();
            equal(SERVICE.createTableIfNotExistsWithResponse(name, null, Context.NONE).getStatusCode(), 204);
            equal(SERVICE.createTableIfNotExistsWithResponse(name, null, Context.NONE).getStatusCode(), 409);
            SERVICE.deleteTable(name);
        });

        test("tables: delete is quiet the second time", () -> {
            TableClient table = newTable();
            table.createTable();
            equal(table.deleteTableWithResponse(null, Context.NONE).getStatusCode(), 204);
            equal(table.deleteTableWithResponse(null, Context.NONE).getStatusCode(), 404);
        });

        Map.of("not-a-name", "InvalidResourceName", "1abc", "InvalidResourceName", "ab", "OutOfRangeInput",
            "a".repeat(64), "OutOfRangeInput", "tables", "InvalidInput")
            .forEach((name, code) -> test("tables: the name " + name + " is " + code,
                () -> refused(400, code, () -> SERVICE.createTable(name))));

        test("tables: a missing table is TableNotFound for every entity operation", () -> {
            TableClient table = newTable();
            refused(404, "TableNotFound", () -> table.createEntity(row("r")));
            refused(404, "TableNotFound", () -> table.getEntity("p", "r"));
            refused(404, "TableNotFound", () -> table.updateEntity(row("r"), TableEntityUpdateMode.MERGE));
            refused(404, "TableNotFound", () -> table.updateEntity(row("r"), TableEntityUpdateMode.REPLACE));
            refused(404, "TableNotFound", () -> table.upsertEntity(row("r")));
            refused(404, "TableNotFound", () -> list(table, null));
        });

        test("tables: list by range of names, in order", () -> {
            String prefix = newName();
            List<String> made = Stream.of("a", "b", "c").map(letter -> prefix + letter).toList();
            withTables(made, () -> equal(names(withPrefix(prefix)), made));
        });

        test("tables: list page by page with tokens", () -> {
            String prefix = newName();
            List<String> made = IntStream.rangeClosed(1, 5).mapToObj(n -> prefix + n).toList();
            ListTablesOptions options = new ListTablesOptions().setFilter(withPrefix(prefix)).setTop(2);
            withTables(made, () -> {
                List<List<String>> pages = new ArrayList<>();
                String token = null;
                do {
                    PagedResponse<TableItem> page = SERVICE.listTables(options, null, Context.NONE).iterableByPage(token).iterator().next();
                    pages.add(page.getValue().stream().map(TableItem::getName).toList());
                    token = page.getContinuationToken();
                } while (token != null);
                equal(pages, List.of(made.subList(0, 2), made.subList(2, 4), made.subList(4, 5)));
            });
        });
    }
}
