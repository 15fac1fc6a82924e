package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Indexes.explain;
import static dev.tavola.conformance.Indexes.keys;
import static dev.tavola.conformance.Indexes.properties;
import static dev.tavola.conformance.TransactionCases.action;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import dev.tavola.conformance.Clients.Attempt;
import dev.tavola.conformance.Indexes.Explained;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Indexes that are read as tables, by the name in `BrowseAs`. */
final class IndexViewCases {
    private static final List<TableEntity> PEOPLE = List.of(
        entity("a", "0003", "Town", "Redmond", "LastName", "Smith"),
        entity("a", "0001", "Town", "Seattle", "LastName", "Brown"),
        entity("b", "0002", "Town", "Redmond", "LastName", "Smith"),
        entity("b", "0004", "Town", "Redmond", "LastName", "Adams", "Age", 7, "Photo", new byte[] {0, -1}),
        entity("b", "0005", "Town", "Boston", "LastName", "O|Neil/~"),
        entity("c", "6", "Town", "Boston"),
        entity("c", "7", "LastName", "Nobody"));
    private static final List<String> IN_ORDER = List.of(
        "Boston ~-|c|6", "Boston O~7CNeil~2F~7E|b|0005", "Redmond Adams|b|0004", "Redmond Smith|a|0003", "Redmond Smith|b|0002",
        "Seattle Brown|a|0001");

    /** The body of a case with a table of people, its indexes, and a client of the view by town and name. */
    private interface ViewBody {
        void run(TableClient table, Indexes indexes, TableClient view) throws Exception;
    }

    private IndexViewCases() {}

    private static Harness.Body onView(String include, ViewBody body) {
        return Indexes.onEntities(PEOPLE, (table, indexes) -> {
            TableClient view = Clients.newTable();
            TableEntity found = indexes.build("ByTown", "Keys", "Town,LastName", "Include", include, "BrowseAs", view.getTableName());
            equal(found.getProperty("BrowseAs"), view.getTableName());
            body.run(table, indexes, view);
        });
    }

    private static List<List<String>> pages(TableClient table, ListEntitiesOptions options) {
        List<List<String>> pages = new ArrayList<>();
        for (PagedResponse<TableEntity> page : table.listEntities(options, null, Context.NONE).iterableByPage()) {
            pages.add(keys(page.getValue()));
        }
        return pages;
    }

    private static void whole(String include) {
        test("index views: whole entities in the order of the index, Include is '" + include + "'", onView(include, (table, indexes, view) -> {
            List<TableEntity> found = list(view, null);
            equal(keys(found), IN_ORDER);
            for (TableEntity one : found) {
                TableEntity origin = table.getEntity((String) one.getProperty("OriginPartitionKey"), (String) one.getProperty("OriginRowKey"));
                Map<String, String> expected = properties(origin);
                Map<String, String> shown = properties(one);
                List.of("OriginPartitionKey", "OriginRowKey").forEach(shown::remove);
                // Keys and addresses are the view's own.
                List.of("PartitionKey", "RowKey", "odata.metadata", "odata.type", "odata.id", "odata.editLink").forEach(name -> {
                    expected.remove(name);
                    shown.remove(name);
                });
                equal(shown, expected);
            }
        }));
    }

    private static void filtered(String filter, List<String> expected) {
        test("index views: " + filter, onView("", (table, indexes, view) -> {
            Explained found = explain(view.getTableName(), filter);
            equal(found.keys(), expected);
            equal(found.used(), "index ByTown browsed");
        }));
    }

    static void register() {
        List.of("", "LastName", "*").forEach(IndexViewCases::whole);

        test("index views: pages go on in the order of the index", onView("", (table, indexes, view) -> {
            for (int top : List.of(1, 2, 5, 6)) {
                equal(pages(view, PagingCases.top(top)).stream().flatMap(List::stream).toList(), IN_ORDER);
            }
            equal(pages(view, PagingCases.top(4)), List.of(IN_ORDER.subList(0, 4), IN_ORDER.subList(4, 6)));
        }));

        test("index views: many pages", Clients.onTable(table -> {
            PagingCases.fill(table, "p", 2400);
            TableClient view = Clients.newTable();
            new Indexes(table).build("ByNumber", "Keys", "n", "BrowseAs", view.getTableName());
            List<List<String>> pages = pages(view, new ListEntitiesOptions());
            equal(pages.stream().map(List::size).toList(), List.of(1000, 1000, 400));
            List<String> expected = IntStream.range(0, 2400).mapToObj(n -> String.format("~i%d p|%05d", n, n)).toList();
            equal(pages.stream().flatMap(List::stream).toList(), expected);
        }));

        filtered("PartitionKey eq 'Redmond'", IN_ORDER.subList(2, 5));
        filtered("PartitionKey eq 'Redmond' and RowKey ge 'Smith|' and RowKey lt 'Smith}'", IN_ORDER.subList(3, 5));
        filtered("PartitionKey gt 'Boston' and PartitionKey lt 'S'", IN_ORDER.subList(2, 5));
        filtered("LastName eq 'Brown'", IN_ORDER.subList(5, 6));
        filtered("OriginPartitionKey eq 'b'", List.of(IN_ORDER.get(1), IN_ORDER.get(2), IN_ORDER.get(4)));
        filtered("PartitionKey eq 'Nowhere'", List.of());

        test("index views: rows are found by their keys and follow their entities", onView("", (table, indexes, view) -> {
            equal(view.getEntity("Redmond", "Adams|b|0004").getProperty("Photo"), new byte[] {0, -1});
            table.updateEntity(entity("b", "0004", "Town", "Austin"), TableEntityUpdateMode.MERGE);
            refused(404, "ResourceNotFound", () -> view.getEntity("Redmond", "Adams|b|0004"));
            equal(view.getEntity("Austin", "Adams|b|0004").getProperty("Age"), 7);
            equal(keys(list(view, null)).get(0), "Austin Adams|b|0004");
            table.deleteEntity("b", "0004");
            equal(list(view, null).size(), 5);
        }));

        test("index views: nothing is written into one", onView("", (table, indexes, view) -> {
            TableEntity one = entity("Redmond", "Adams|b|0004", "Age", 8);
            List<Attempt> attempts = List.of(
                () -> view.createEntity(entity("Bern", "new")),
                () -> view.upsertEntity(one),
                () -> view.updateEntity(one, TableEntityUpdateMode.MERGE),
                () -> view.updateEntity(one, TableEntityUpdateMode.REPLACE),
                () -> view.deleteEntity("Redmond", "Adams|b|0004"));
            for (Attempt attempt : attempts) {
                refused(403, "InsufficientAccountPermissions", attempt);
            }
            Throwable error = Clients.failure(() -> view.submitTransaction(List.of(action(CREATE, entity("Bern", "new")))));
            equal(Clients.codeOf(error), "InsufficientAccountPermissions");
            equal(keys(list(view, null)), IN_ORDER);
        }));

        test("index views: the name is taken, and goes without the index or with it", onView("", (table, indexes, view) -> {
            String name = view.getTableName();
            refused(409, "TableAlreadyExists", view::createTable);
            refused(409, "TableAlreadyExists", () -> indexes.declare("Other", "Keys", "Town", "BrowseAs", table.getTableName()));
            refused(409, "TableAlreadyExists", () -> indexes.declare("Other", "Keys", "Town", "BrowseAs", "TavolaAdvice"));
            refused(400, "InvalidResourceName", () -> indexes.declare("Other", "Keys", "Town", "BrowseAs", "no-name"));
            SERVICE.deleteTable(name);
            refused(404, "TableNotFound", () -> list(view, null));
            TableEntity found = indexes.get("ByTown");
            equal(found.getProperty("BrowseAs") + " " + found.getProperty("State"), " Readable");
            indexes.build("ByTown", "Keys", "Town,LastName", "BrowseAs", name);
            equal(keys(list(view, null)), IN_ORDER);
            indexes.drop("ByTown");
            refused(404, "TableNotFound", () -> list(view, null));
        }));
    }
}
