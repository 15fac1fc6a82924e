package dev.tavola.conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static dev.tavola.conformance.Clients.SERVICE;
import static dev.tavola.conformance.Clients.entity;
import static dev.tavola.conformance.Clients.list;
import static dev.tavola.conformance.Clients.onTable;
import static dev.tavola.conformance.Clients.refused;
import static dev.tavola.conformance.Harness.equal;
import static dev.tavola.conformance.Harness.test;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;

final class PagingCases {
    private PagingCases() {}

    static void fill(TableClient table, String partitionKey, int count) {
        for (int start = 0; start < count; start += 100) {
            List<TableTransactionAction> actions = IntStream.range(start, Math.min(start + 100, count))
                .mapToObj(n -> new TableTransactionAction(CREATE, entity(partitionKey, String.format("%05d", n), "n", n)))
                .toList();
            table.submitTransaction(actions);
        }
    }

    static PagedResponse<TableEntity> page(TableClient table, ListEntitiesOptions options, String token) {
        return table.listEntities(options, null, Context.NONE).iterableByPage(token).iterator().next();
    }

    static ListEntitiesOptions top(int count) {
        return new ListEntitiesOptions().setTop(count);
    }

    static String keys(PagedResponse<TableEntity> page) {
        return page.getValue().stream().map(TableEntity::getRowKey).collect(Collectors.joining(" "));
    }

    private static List<Integer> pageSizes(TableClient table, ListEntitiesOptions options) {
        return StreamSupport.stream(table.listEntities(options, null, Context.NONE).iterableByPage().spliterator(), false)
            .map(page -> page.getValue().size())
            .toList();
    }

    /** A process of its own: prints the row keys from a token on. */
    static void resume(String tableName, String token) {
        List<String> pages = new ArrayList<>();
        SERVICE.getTableClient(tableName).listEntities(top(4), null, Context.NONE).iterableByPage(token).forEach(page -> pages.add(keys(page)));
        System.out.println(String.join(" | ", pages));
    }

    private static String resumeInNewProcess(String tableName, String token) throws Exception {
        Process process = new ProcessBuilder(ProcessHandle.current().info().command().orElse("java"),
            "-cp", System.getProperty("java.class.path"), Main.class.getName(), "resume", tableName, token)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
        return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    }

    static void register() {
        test("paging: pages hold what was asked for", onTable(table -> {
            fill(table, "p", 7);
            equal(pageSizes(table, top(3)), List.of(3, 3, 1));
        }));

        test("paging: no token when the last page is full", onTable(table -> {
            fill(table, "p", 6);
            PagedResponse<TableEntity> second = page(table, top(3), page(table, top(3), null).getContinuationToken());
            equal(second.getValue().size(), 3);
            equal(second.getContinuationToken(), null);
        }));

        test("paging: 1000 rows a page without a size", onTable(table -> {
            fill(table, "p", 1001);
            equal(pageSizes(table, new ListEntitiesOptions()), List.of(1000, 1));
            equal(list(table, null).size(), 1001);
        }));

        test("paging: more than 1000 a page is InvalidInput", onTable(table ->
            refused(400, "InvalidInput", () -> page(table, top(1001), null))));

        test("paging: a token leads over partitions, an empty key among them", onTable(table -> {
            for (String key : List.of("", "a", "o'b", "ü%+;")) {
                fill(table, key, 2);
            }
            equal(pageSizes(table, top(1)), List.of(1, 1, 1, 1, 1, 1, 1, 1));
        }));

        test("paging: a token carries a filter on", onTable(table -> {
            fill(table, "p", 20);
            ListEntitiesOptions options = top(4).setFilter("n ge 5 and n lt 12");
            PagedResponse<TableEntity> first = page(table, options, null);
            PagedResponse<TableEntity> second = page(table, options, first.getContinuationToken());
            equal(keys(first) + " " + keys(second), "00005 00006 00007 00008 00009 00010 00011");
        }));

        test("paging: a token survives the deletion of the row it names", onTable(table -> {
            fill(table, "p", 6);
            PagedResponse<TableEntity> first = page(table, top(2), null);
            table.deleteEntity("p", "00002");
            equal(keys(page(table, top(2), first.getContinuationToken())), "00003 00004");
        }));

        test("paging: a token is taken up by a new process", onTable(table -> {
            fill(table, "p", 10);
            PagedResponse<TableEntity> first = page(table, top(4), null);
            equal(keys(first), "00000 00001 00002 00003");
            equal(resumeInNewProcess(table.getTableName(), first.getContinuationToken()), "00004 00005 00006 00007 | 00008 00009");
        }));
    }
}
