package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_MERGE;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.failure;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.newTable;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Clients.row;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;
import static dev.tavola.conformance.Harness.that;
import static dev.tavola.conformance.Indexes.DEFINITIONS;
import static dev.tavola.conformance.Indexes.explain;
import static dev.tavola.conformance.Indexes.onCustomers;
import static dev.tavola.conformance.Indexes.onEntities;
import static dev.tavola.conformance.Indexes.whole;
import static dev.tavola.conformance.TransactionCases.action;
import static dev.tavola.conformance.TransactionCases.fails;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableItem;
import com.azure.data.tables.models.TableTransactionFailedException;
import dev.tavola.conformance.Clients.Attempt;
import dev.tavola.conformance.Indexes.Explained;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;

final class IndexCases {
    private static final String TOWN = "Town eq 'Redmond'";
    private static final String BOTH = "Town eq 'Redmond' and LastName eq 'Smith'";

    /** Filters over customers, and how the index by Town and LastName finds them; empty where it is of no use. */
    private static final Map<String, String> FILTERS = filters(
        BOTH, "ordered",
        "LastName eq 'Smith' and 'Redmond' eq Town", "ordered",
        "Town eq 'Zürich' and LastName eq 'Howard' and Age lt 30", "ordered",
        "Town eq 'Redmond' and LastName eq 'Smith' and PartitionKey ge 'shard1'", "ordered",
        "Town eq 'Redmond' and (LastName eq 'Smith' or LastName eq 'Brown')", "merged",
        "Town eq 'Nowhere' and LastName eq 'Smith'", "ordered",
        TOWN, "sorted",
        "Town eq 'Redmond' and LastName ge 'R' and LastName lt 'T'", "sorted",
        "Town ge 'B' and Town lt 'C'", "sorted",
        "LastName eq 'Smith'", "",
        "not (Town eq 'Redmond')", "",
        "PartitionKey eq 'shard1' and RowKey eq '0100'", "",
        "PartitionKey eq 'shard1'", "");

    private IndexCases() {}

    private static Map<String, String> filters(String... filtersAndUses) {
        Map<String, String> filters = new LinkedHashMap<>();
        for (int i = 0; i < filtersAndUses.length; i += 2) {
            filters.put(filtersAndUses[i], filtersAndUses[i + 1]);
        }
        return filters;
    }

    static void register() {
        declaring();
        using();
        includes();
        types();
        unique();
        writing();
        mistakes();
    }

    private static void declaring() {
        test("indexes: an entity declares one, which is built", onCustomers(210, (table, indexes) -> {
            equal(indexes.names(), "");
            indexes.declare("ByTown", "Keys", "Town");
            TableEntity found = indexes.get("ByTown");
            long progress = 0;
            while (!found.getProperty("State").equals("Readable")) {
                equal(found.getProperty("State"), "Building");
                that((Long) found.getProperty("Progress") >= progress, "progress goes back");
                progress = (Long) found.getProperty("Progress");
                found = indexes.get("ByTown");
            }
            equal(found.getProperty("Progress"), 210L);
            equal(found.getProperty("Entries"), 190L);
            equal(found.getProperty("Distinct"), 6L);
            Map<String, Object> definition = Map.of("Keys", "Town", "Include", "", "Filter", "", "Unique", false, "BrowseAs", "", "Error", "", "Note", "");
            for (Map.Entry<String, Object> one : definition.entrySet()) {
                equal(found.getProperty(one.getKey()), one.getValue());
            }
            equal(indexes.names(), "ByTown");
        }));

        test("indexes: the table that they are declared in always exists", onCustomers(1, (table, indexes) -> {
            // On Azure the same call makes a plain table.
            equal(SERVICE.createTableIfNotExistsWithResponse("TavolaIndexes", null, Context.NONE).getStatusCode(), 409);
            refused(403, "InsufficientAccountPermissions", () -> SERVICE.deleteTable("TavolaIndexes"));
            indexes.declare("ByTown", "Keys", "Town");
            that(SERVICE.listTables().stream().map(TableItem::getName).anyMatch("TavolaIndexes"::equals), "it is not listed");
        }));

        test("indexes: a definition is replaced, merged and written back", onCustomers(210, (table, indexes) -> {
            List<String> expected = explain(indexes.table, BOTH).rows();
            TableEntity read = indexes.build("Main", "Keys", "Town");
            // What was read can be written back, whatever the server says in it.
            DEFINITIONS.upsertEntityWithResponse(read, TableEntityUpdateMode.REPLACE, null, Context.NONE);
            equal(indexes.get("Main").getProperty("State"), "Readable");
            DEFINITIONS.upsertEntityWithResponse(entity(indexes.table, "Main", "Include", "Email"), TableEntityUpdateMode.MERGE, null, Context.NONE);
            // The definition before answers until the new one is built.
            Explained meanwhile = explain(indexes.table, BOTH);
            equal(meanwhile.rows(), expected);
            equal(meanwhile.used(), "index Main ordered");
            TableEntity merged = indexes.waitFor("Main", "Readable");
            equal(merged.getProperty("Keys") + " " + merged.getProperty("Include"), "Town Email");
            TableEntity replaced = indexes.build("Main", "Keys", "Town,LastName");
            equal(replaced.getProperty("Keys") + " " + replaced.getProperty("Include"), "Town,LastName ");
            equal(explain(indexes.table, BOTH).rows(), expected);
            equal(indexes.names(), "Main");
        }));

        test("indexes: definitions are listed in pages, and ETags count", onCustomers(5, (table, indexes) -> {
            indexes.declare("ByTown", "Keys", "Town");
            indexes.declare("ByAge", "Keys", "Age");
            indexes.declare("ByBoth", "Keys", "Town,Age");
            equal(indexes.names(), "ByAge ByBoth ByTown");
            ListEntitiesOptions options = PagingCases.top(2).setFilter("PartitionKey eq '" + indexes.table + "'");
            PagedResponse<TableEntity> first = PagingCases.page(DEFINITIONS, options, null);
            equal(PagingCases.keys(first), "ByAge ByBoth");
            equal(PagingCases.keys(PagingCases.page(DEFINITIONS, options, first.getContinuationToken())), "ByTown");
            refused(409, "EntityAlreadyExists", () -> indexes.declare("ByAge", "Keys", "Age"));
            TableEntity old = indexes.waitFor("ByAge", "Readable");
            indexes.build("ByAge", "Keys", "Age", "Include", "Town");
            refused(412, "UpdateConditionNotSatisfied", () -> DEFINITIONS.deleteEntityWithResponse(old, true, null, Context.NONE));
            indexes.drop("ByAge");
            refused(404, "ResourceNotFound", () -> indexes.get("ByAge"));
            equal(indexes.names(), "ByBoth ByTown");
        }));

        test("indexes: a transaction declares several or none", onCustomers(30, (table, indexes) -> {
            Throwable error = failure(() -> DEFINITIONS.submitTransaction(List.of(
                action(CREATE, entity(indexes.table, "ByTown", "Keys", "Town")), action(CREATE, entity(indexes.table, "Wrong", "Keys", "Town,,")))));
            equal(error instanceof TableTransactionFailedException failed ? failed.getFailedTransactionActionIndex() : error, 1);
            equal(indexes.names(), "");
            DEFINITIONS.submitTransaction(List.of(
                action(CREATE, entity(indexes.table, "ByTown", "Keys", "Town")), action(CREATE, entity(indexes.table, "ByAge", "Keys", "Age"))));
            indexes.waitFor("ByTown", "Readable");
            indexes.waitFor("ByAge", "Readable");
        }));

        test("indexes: they are there after a crash", onCustomers(210, (table, indexes) -> {
            indexes.build("ByTown", "Keys", "Town,LastName", "Include", "Age");
            Explained before = explain(indexes.table, BOTH);
            PagingCases.fill(table, "more", 1000);
            indexes.declare("ByNumber", "Keys", "n");
            Harness.restartServer();
            equal(explain(indexes.table, BOTH), before);
            indexes.waitFor("ByNumber", "Readable");
            indexes.sound("ByTown");
            indexes.sound("ByNumber");
        }));
    }

    private static void using() {
        test("indexes: a composite key leaves every answer as it was, and so does dropping it", onCustomers(210, (table, indexes) -> {
            Map<String, List<String>> before = new LinkedHashMap<>();
            FILTERS.keySet().forEach(filter -> before.put(filter, explain(indexes.table, filter).rows()));
            indexes.build("ByTownAndName", "Keys", "Town,LastName");
            FILTERS.forEach((filter, use) -> {
                Explained found = explain(indexes.table, filter);
                equal(found.rows(), before.get(filter));
                if (use.isEmpty()) {
                    that(!found.used().contains("ByTownAndName"), filter + ": " + found.used());
                } else {
                    equal(found.used(), "index ByTownAndName " + use);
                }
            });
            indexes.drop("ByTownAndName");
            FILTERS.keySet().forEach(filter -> {
                Explained found = explain(indexes.table, filter);
                equal(found.rows(), before.get(filter));
                that(!found.used().contains("ByTownAndName"), filter + ": " + found.used());
            });
        }));

        test("indexes: pages are as they were", onCustomers(210, (table, indexes) -> {
            List<String> filters = List.of(TOWN, "Town ge 'C' and Town lt 'S'", "Town eq 'Boston' or Town eq 'Seattle'", "Town eq 'Nowhere'");
            for (String filter : filters) {
                for (int top : List.of(1, 7, 1000)) {
                    List<List<String>> before = pages(table, filter, top);
                    for (String include : List.of("", "*")) {
                        indexes.build("ByTown", "Keys", "Town", "Include", include);
                        equal(pages(table, filter, top), before);
                    }
                    indexes.drop("ByTown");
                }
            }
        }));

        test("indexes: a token goes on over declaring and dropping", onCustomers(210, (table, indexes) -> {
            List<String> expected = whole(list(table, TOWN));
            that(expected.size() > 16, expected.size() + " rows");
            List<String> found = new ArrayList<>();
            String token = null;
            for (int step = 0; step == 0 || token != null; step++) {
                PagedResponse<TableEntity> page = PagingCases.page(table, PagingCases.top(4).setFilter(TOWN), token);
                found.addAll(whole(page.getValue()));
                token = page.getContinuationToken();
                if (step % 2 == 0) {
                    indexes.build("ByTown", "Keys", "Town");
                } else {
                    indexes.drop("ByTown");
                }
            }
            equal(found, expected);
        }));

        test("indexes: entities without the property are kept when asked for", onCustomers(210, (table, indexes) -> {
            String filter = "not (Town gt '')";
            List<String> before = explain(indexes.table, filter).rows();
            equal(before.size(), 20);
            indexes.build("ByTown", "Keys", "Town");
            Explained without = explain(indexes.table, filter);
            equal(without.rows(), before);
            equal(without.notUsed(), "ByTown=skip-missing");
            equal(indexes.build("ByTown", "Keys", "Town?").getProperty("Entries"), 210L);
            Explained with = explain(indexes.table, filter);
            equal(with.rows(), before);
            that(with.used().startsWith("index ByTown"), with.used());
        }));

        test("indexes: a partial one serves filters that imply it", onCustomers(210, (table, indexes) -> {
            Map<String, Boolean> asked = Map.of(
                "Town eq 'Redmond' and Age ge 50", true, "Town eq 'Redmond' and Age gt 55", true, "Town eq 'Redmond' and Age ge 40", false, TOWN, false);
            Map<String, List<String>> before = new LinkedHashMap<>();
            asked.keySet().forEach(filter -> before.put(filter, explain(indexes.table, filter).rows()));
            equal(indexes.build("Elderly", "Keys", "Town", "Filter", "Age ge 50").getProperty("Filter"), "Age ge 50");
            asked.forEach((filter, serves) -> {
                Explained found = explain(indexes.table, filter);
                equal(found.rows(), before.get(filter));
                equal(serves ? found.used() : found.notUsed(), serves ? "index Elderly ordered partial" : "Elderly=partial");
            });
        }));

        test("indexes: a hint names one or none", onCustomers(210, (table, indexes) -> {
            indexes.build("ByTown", "Keys", "Town");
            indexes.build("ByName", "Keys", "LastName");
            List<String> expected = explain(indexes.table, BOTH, "none", new ListEntitiesOptions()).rows();
            Map.of("none", "table scan", "ByTown", "index ByTown ordered", "ByName", "index ByName ordered").forEach((hint, used) -> {
                Explained found = explain(indexes.table, BOTH, hint, new ListEntitiesOptions());
                equal(found.rows(), expected);
                equal(found.used(), used);
            });
        }));
    }

    /** The pages of a query. A scan may need a last one to see that there is nothing more, so that empty ones do not count. */
    private static List<List<String>> pages(TableClient table, String filter, int top) {
        List<List<String>> pages = new ArrayList<>();
        for (PagedResponse<TableEntity> page : table.listEntities(PagingCases.top(top).setFilter(filter), null, Context.NONE).iterableByPage()) {
            if (!page.getValue().isEmpty()) {
                pages.add(whole(page.getValue()));
            }
        }
        return pages;
    }

    private static void includes() {
        String ordered = "index ByTown ordered";
        includes("", ordered, ordered);
        includes("LastName,Age", ordered, ordered + " covering");
        includes("*", ordered + " covering", ordered + " covering");
    }

    private static void includes(String include, String ofAll, String ofSome) {
        test("indexes: Include is '" + include + "'", onCustomers(210, (table, indexes) -> {
            List<String> some = List.of("RowKey", "LastName", "Age");
            List<String> before = explain(indexes.table, TOWN).rows();
            List<String> beforeSome = explain(indexes.table, TOWN, null, new ListEntitiesOptions().setSelect(some)).rows();
            equal(indexes.build("ByTown", "Keys", "Town", "Include", include).getProperty("Include"), include);
            Explained found = explain(indexes.table, TOWN);
            equal(found.rows(), before);
            equal(found.used(), ofAll);
            Explained selected = explain(indexes.table, TOWN, null, new ListEntitiesOptions().setSelect(some));
            equal(selected.rows(), beforeSome);
            equal(selected.used(), ofSome);
        }));
    }

    private static void types() {
        typed("String", "'ab'", "", "ab", "it's", "ä", "😀");
        typed("Boolean", "true", false, true);
        typed("Int32", "0", -5, 0, Integer.MAX_VALUE);
        typed("Int64", "0L", Long.MIN_VALUE, 0L, Long.MAX_VALUE);
        typed("Double", "0.25", -1.5e300, 0.25, 1e300);
        typed("DateTime", "datetime'2020-02-29T12:00:00.000001Z'", OffsetDateTime.parse("1601-01-01T00:00:00Z"),
            OffsetDateTime.parse("2020-02-29T12:00:00.000001Z"), OffsetDateTime.parse("9999-12-31T00:00:00Z"));
        typed("Guid", "guid'00000000-0000-0000-0000-000000000001'", UUID.fromString("00000000-0000-0000-0000-000000000001"),
            UUID.fromString("f0000000-0000-0000-0000-000000000000"));
        typed("Binary", "X'0102'", new byte[0], new byte[] {1, 2}, new byte[] {1, 2, 0});
    }

    private static void typed(String type, String literal, Object... values) {
        List<TableEntity> entities = new ArrayList<>(List.of(row("none")));
        IntStream.range(0, values.length).forEach(at -> entities.add(row(String.valueOf(at), "V", values[at])));
        test("indexes: " + type + " as a key", onEntities(entities, (table, indexes) -> {
            List<String> filters = List.of("eq", "ne", "lt", "le", "gt", "ge").stream().map(operator -> "V " + operator + " " + literal).toList();
            Map<String, List<String>> before = new LinkedHashMap<>();
            filters.forEach(filter -> before.put(filter, explain(indexes.table, filter).rows()));
            indexes.build("ByV", "Keys", "V");
            for (String filter : filters) {
                Explained found = explain(indexes.table, filter, "ByV", new ListEntitiesOptions());
                equal(found.rows(), before.get(filter));
                that(found.used().startsWith("index ByV "), filter + ": " + found.used());
            }
        }));
    }

    private static TableEntity email(String rowKey, String email) {
        return row(rowKey, "Email", email);
    }

    private static void unique() {
        List<TableEntity> accounts = List.of(email("1", "a"), email("2", "b"));

        test("indexes: a unique one refuses the second", onEntities(accounts, (table, indexes) -> {
            equal(indexes.build("ByEmail", "Keys", "Email", "Unique", true).getProperty("Unique"), true);
            List<Attempt> attempts = List.of(
                () -> table.createEntity(email("3", "a")),
                () -> table.upsertEntity(email("3", "a")),
                () -> table.updateEntity(email("2", "a"), TableEntityUpdateMode.MERGE),
                () -> table.updateEntity(email("2", "a"), TableEntityUpdateMode.REPLACE),
                () -> table.createEntity(entity("q", "1", "Email", "a")));
            for (Attempt attempt : attempts) {
                refused(409, "UniqueIndexViolation", attempt);
            }
            equal(rowKeys(table, null), "1 2");
            // Those without the property do not count, its own value is no obstacle, and what was given up is free.
            table.createEntity(row("4"));
            table.createEntity(row("5"));
            table.upsertEntity(row("1", "Email", "a", "More", 1));
            table.deleteEntity("p", "1");
            table.createEntity(email("3", "a"));
            Explained found = explain(indexes.table, "Email eq 'a'");
            equal(found.keys(), List.of("p 3"));
            equal(found.used(), "index ByEmail ordered");
        }));

        test("indexes: a unique one in transactions", onEntities(accounts, (table, indexes) -> {
            indexes.build("ByEmail", "Keys", "Email", "Unique", true, "Include", "*");
            fails(table, "UniqueIndexViolation", 1, "1 2", List.of(action(CREATE, email("4", "d")), action(CREATE, email("5", "b"))));
            fails(table, "UniqueIndexViolation", 2, "1 2",
                List.of(action(CREATE, email("4", "d")), action(CREATE, email("5", "e")), action(CREATE, email("6", "d"))));
            fails(table, "UniqueIndexViolation", 0, "1 2", List.of(action(UPSERT_MERGE, email("1", "b"))));
            // Two may exchange their values.
            table.submitTransaction(List.of(action(UPSERT_MERGE, email("1", "b")), action(UPSERT_MERGE, email("2", "a"))));
            equal(rowKeys(table, "Email eq 'a'"), "2");
            indexes.sound("ByEmail");
        }));

        List<TableEntity> twice = List.of(email("1", "twice"), email("2", "twice"));
        test("indexes: a unique one over what is there twice fails to build", onEntities(twice, (table, indexes) -> {
            indexes.declare("ByEmail", "Keys", "Email", "Unique", true);
            String error = (String) indexes.waitFor("ByEmail", "Failed").getProperty("Error");
            that(error.contains("Email") && !error.contains("twice"), error);
            Explained found = explain(indexes.table, "Email eq 'twice'");
            equal(found.keys(), List.of("p 1", "p 2"));
            equal(found.notUsed(), "ByEmail=failed");
            table.deleteEntity("p", "2");
            indexes.build("ByEmail", "Keys", "Email", "Unique", true);
            refused(409, "UniqueIndexViolation", () -> table.createEntity(email("2", "twice")));
        }));
    }

    private static void writing() {
        test("indexes: they follow every write", onCustomers(60, (table, indexes) -> {
            indexes.build("ByTown", "Keys", "Town");
            indexes.build("Copies", "Keys", "Town", "Include", "*");
            finds(indexes);
            table.createEntity(entity("b", "1", "Town", "Bern"));
            table.upsertEntity(entity("a", "2", "Town", "Bern"));
            finds(indexes, "a 2", "b 1");
            table.updateEntity(entity("b", "1", "Town", "Basel"), TableEntityUpdateMode.MERGE);
            table.updateEntity(entity("shard0", "0000", "Town", "Bern"), TableEntityUpdateMode.MERGE);
            finds(indexes, "a 2", "shard0 0000");
            table.updateEntity(entity("a", "2", "Other", 1), TableEntityUpdateMode.REPLACE);
            finds(indexes, "shard0 0000");
            table.submitTransaction(List.of(action(CREATE, row("3", "Town", "Bern")), action(UPSERT_MERGE, row("4", "Town", "Bern"))));
            finds(indexes, "p 3", "p 4", "shard0 0000");
            table.submitTransaction(List.of(action(DELETE, row("3"))));
            table.deleteEntity("shard0", "0000");
            finds(indexes, "p 4");
            indexes.sound("ByTown");
            indexes.sound("Copies");
        }));

        test("indexes: writers go on while one is built", onCustomers(2000, (table, indexes) -> {
            indexes.declare("ByTown", "Keys", "Town");
            IntStream.range(0, 4).parallel().forEach(task -> {
                for (int number = task; number < 2000; number += 97) {
                    TableEntity one = Indexes.customer(number, 2000);
                    if (number % 3 != 0) {
                        table.upsertEntity(entity(one.getPartitionKey(), one.getRowKey(), "Town", "Moved"));
                    } else {
                        table.deleteEntity(one.getPartitionKey(), one.getRowKey());
                    }
                }
            });
            indexes.waitFor("ByTown", "Readable");
            for (String filter : List.of("Town eq 'Moved'", TOWN)) {
                Explained found = explain(indexes.table, filter, "ByTown", new ListEntitiesOptions());
                equal(found.rows(), explain(indexes.table, filter, "none", new ListEntitiesOptions()).rows());
                equal(found.used(), "index ByTown ordered");
            }
            indexes.sound("ByTown");
        }));
    }

    /** Expects these keys in Bern, by both indexes and without. */
    private static void finds(Indexes indexes, String... keys) {
        Explained scanned = explain(indexes.table, "Town eq 'Bern'", "none", new ListEntitiesOptions());
        equal(scanned.keys(), List.of(keys));
        for (String hint : List.of("ByTown", "Copies")) {
            equal(explain(indexes.table, "Town eq 'Bern'", hint, new ListEntitiesOptions()).rows(), scanned.rows());
        }
    }

    private static void mistaken(String name, Object... properties) {
        test("indexes: " + name + " is InvalidInput", onTable(table -> {
            Indexes indexes = new Indexes(table);
            refused(400, "InvalidInput", () -> indexes.declare("Wrong", properties));
            equal(indexes.names(), "");
        }));
    }

    private static void mistakes() {
        mistaken("no properties", "Keys", "");
        mistaken("five properties", "Keys", "A,B,C,D,E");
        mistaken("a property twice", "Keys", "A,A");
        mistaken("an unknown type", "Keys", "A:Int31");
        mistaken("a number for Keys", "Keys", 7);
        mistaken("a misspelt property", "Keys", "A", "Inculde", "B");
        mistaken("a text for Unique", "Keys", "A", "Unique", "yes");
        mistaken("a key in Include", "Keys", "A", "Include", "PartitionKey");
        mistaken("an unfinished Filter", "Keys", "A", "Filter", "B eq");
        mistaken("an or in Filter", "Keys", "A", "Filter", "B eq 1 or C eq 2");

        test("indexes: Keys are needed, and names are those of tables", onTable(table -> {
            Indexes indexes = new Indexes(table);
            refused(400, "PropertiesNeedValue", () -> indexes.declare("Wrong", "Include", "A"));
            refused(400, "InvalidResourceName", () -> indexes.declare("no-name", "Keys", "A"));
        }));

        test("indexes: a missing or dropped table has none", () -> {
            TableClient table = newTable();
            Indexes indexes = new Indexes(table);
            refused(404, "TableNotFound", () -> indexes.declare("ByA", "Keys", "A"));
            table.createTable();
            indexes.build("ByA", "Keys", "A");
            table.deleteTable();
            equal(indexes.names(), "");
            refused(404, "ResourceNotFound", () -> indexes.get("ByA"));
            refused(404, "TableNotFound", () -> indexes.declare("ByA", "Keys", "A"));
        });

        test("indexes: a table has sixteen, of them three copies", onTable(table -> {
            Indexes indexes = new Indexes(table);
            for (int number = 0; number < 16; number++) {
                indexes.declare("Index" + number, "Keys", "A", "Include", number < 3 ? "*" : "");
            }
            refused(400, "InvalidInput", () -> indexes.declare("Index16", "Keys", "A"));
            refused(400, "InvalidInput", () -> DEFINITIONS.updateEntity(entity(indexes.table, "Index9", "Include", "*")));
            indexes.drop("Index9");
            indexes.declare("Index16", "Keys", "A");
        }));
    }
}
