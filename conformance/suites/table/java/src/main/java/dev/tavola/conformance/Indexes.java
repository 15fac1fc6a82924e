package dev.tavola.conformance;

import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.rowKeys;
import static dev.tavola.conformance.Harness.that;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.HttpHeaders;
import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The indexes of one table: entities of `TavolaIndexes` whose partition is the name of the table. */
final class Indexes {
    static final TableClient DEFINITIONS = SERVICE.getTableClient("TavolaIndexes");
    private static final int POLL_MILLIS = 20;
    private static final List<String> TOWNS = List.of("Redmond", "Seattle", "Portland", "Chicago", "Boston", "Zürich");
    private static final List<String> NAMES = List.of("Smith", "Jones", "Robinson", "Brown", "Clarke", "Green", "Howard");

    final String table;

    /** The body of a case with a table and its indexes. */
    interface IndexedBody {
        void run(TableClient table, Indexes indexes) throws Exception;
    }

    /** What a query found, each entity whole, and how it says that it found it. */
    record Explained(List<String> rows, List<String> keys, String used, String notUsed) {}

    Indexes(TableClient table) {
        this.table = table.getTableName();
    }

    void declare(String name, Object... properties) {
        DEFINITIONS.createEntity(entity(table, name, properties));
    }

    TableEntity get(String name) {
        return DEFINITIONS.getEntity(table, name);
    }

    TableEntity waitFor(String name, String state) throws InterruptedException {
        while (true) {
            TableEntity found = get(name);
            if (found.getProperty("State").equals(state)) {
                return found;
            }
            that(found.getProperty("State").equals("Building"), name + " on its way to " + state + ": " + found.getProperties());
            Thread.sleep(POLL_MILLIS);
        }
    }

    /** Declares an index, or another definition for it, and waits until it can be used. */
    TableEntity build(String name, Object... properties) throws InterruptedException {
        DEFINITIONS.upsertEntityWithResponse(entity(table, name, properties), TableEntityUpdateMode.REPLACE, null, Context.NONE);
        return waitFor(name, "Readable");
    }

    String names() {
        return rowKeys(DEFINITIONS, "PartitionKey eq '" + table + "'");
    }

    void drop(String name) {
        DEFINITIONS.deleteEntity(table, name);
    }

    /** Has the server compare the index with its table. */
    void sound(String name) throws InterruptedException {
        DEFINITIONS.updateEntity(entity(table, name, "Verify", true));
        String found;
        while ((found = (String) get(name).getProperty("Verify")).equals("running")) {
            Thread.sleep(POLL_MILLIS);
        }
        that(found.startsWith("sound: "), name + ": " + found);
    }

    /** The body of a case with a table of these entities. */
    static Harness.Body onEntities(List<TableEntity> entities, IndexedBody body) {
        return onTable(table -> {
            fill(table, entities);
            body.run(table, new Indexes(table));
        });
    }

    /** The body of a case with a table of customers: every tenth has no name, every eleventh no town. */
    static Harness.Body onCustomers(int count, IndexedBody body) {
        return onEntities(IntStream.range(0, count).mapToObj(number -> customer(number, count)).toList(), body);
    }

    static TableEntity customer(int number, int count) {
        TableEntity one = entity("shard" + number * 3 / count, String.format("%04d", number), "Email", "c" + number + "@example.com", "Age", number % 60);
        if (number % 10 != 0) {
            one.addProperty("LastName", NAMES.get(number % NAMES.size()));
        }
        if (number % 11 != 0) {
            one.addProperty("Town", TOWNS.get(number % TOWNS.size()));
        }
        return one;
    }

    /** Inserts entities a hundred at a time. */
    static void fill(TableClient table, List<TableEntity> entities) {
        Map<String, List<TableEntity>> partitions = entities.stream().collect(Collectors.groupingBy(TableEntity::getPartitionKey));
        for (List<TableEntity> partition : partitions.values()) {
            for (int start = 0; start < partition.size(); start += 100) {
                List<TableEntity> some = partition.subList(start, Math.min(start + 100, partition.size()));
                table.submitTransaction(some.stream().map(one -> new TableTransactionAction(TableTransactionActionType.CREATE, one)).toList());
            }
        }
    }

    static Explained explain(String table, String filter) {
        return explain(table, filter, null, new ListEntitiesOptions());
    }

    /** Runs a query that says how its rows were found; the hint names the index to use, or none. */
    static Explained explain(String table, String filter, String hint, ListEntitiesOptions options) {
        TableClient asking = new TableClientBuilder().endpoint(Clients.ENDPOINT)
            .credential(new AzureNamedKeyCredential(Clients.ACCOUNT, Clients.KEY))
            .tableName(table)
            .addPolicy((context, next) -> {
                context.getHttpRequest().setHeader(HttpHeaderName.fromString("x-tavola-explain"), "true");
                if (hint != null) {
                    context.getHttpRequest().setHeader(HttpHeaderName.fromString("x-tavola-index"), hint);
                }
                return next.process();
            })
            .buildClient();
        List<TableEntity> found = new ArrayList<>();
        HttpHeaders first = null;
        for (PagedResponse<TableEntity> page : asking.listEntities(options.setFilter(filter), null, Context.NONE).iterableByPage()) {
            found.addAll(page.getValue());
            first = first == null ? page.getHeaders() : first;
        }
        HttpHeaders headers = first;
        String used = Stream.of("query-kind", "index", "index-use")
            .map(name -> headers.getValue(HttpHeaderName.fromString("x-tavola-" + name)))
            .filter(Objects::nonNull)
            .collect(Collectors.joining(" "));
        return new Explained(whole(found), keys(found), used, headers.getValue(HttpHeaderName.fromString("x-tavola-index-not-used")));
    }

    /** Entities with their ETags and times, to be compared. */
    static List<String> whole(List<TableEntity> entities) {
        return entities.stream().map(entity -> properties(entity).toString()).toList();
    }

    static List<String> keys(List<TableEntity> entities) {
        return entities.stream().map(entity -> entity.getPartitionKey() + " " + entity.getRowKey()).toList();
    }

    static Map<String, String> properties(TableEntity entity) {
        Map<String, String> properties = new TreeMap<>();
        entity.getProperties().forEach((name, value) ->
            properties.put(name, value instanceof byte[] bytes ? Arrays.toString(bytes) : value + " " + (value == null ? "" : value.getClass())));
        return properties;
    }
}
