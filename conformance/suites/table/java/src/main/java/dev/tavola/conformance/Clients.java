package dev.tavola.conformance;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpClient;
import com.azure.core.http.netty.NettyAsyncHttpClientBuilder;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.implementation.models.TableServiceJsonErrorException;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableServiceException;
import io.netty.resolver.AddressResolver;
import io.netty.resolver.AddressResolverGroup;
import io.netty.resolver.InetNameResolver;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Promise;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.stream.Collectors;

/** How the cases reach the server, and what they ask of errors. */
final class Clients {
    static final String ENDPOINT = System.getenv("TAVOLA_ENDPOINT");
    static final String ACCOUNT = System.getenv("TAVOLA_ACCOUNT");
    static final String KEY = System.getenv("TAVOLA_KEY");
    static final TableServiceClient SERVICE = serviceAt(ENDPOINT, KEY);

    /** The body of a case that is given a new table. */
    interface TableBody {
        void run(TableClient table) throws Exception;
    }

    /** Something that is expected to fail. */
    interface Attempt {
        void run() throws Exception;
    }

    private Clients() {}

    static TableServiceClient serviceAt(String endpoint, String key) {
        return new TableServiceClientBuilder().endpoint(endpoint)
            .credential(new AzureNamedKeyCredential(ACCOUNT, key))
            .buildClient();
    }

    static TableServiceClient serviceWithSas(String sas) {
        return new TableServiceClientBuilder().endpoint(ENDPOINT).sasToken(sas).buildClient();
    }

    static TableClient tableWithSas(String name, String sas) {
        return new TableClientBuilder().endpoint(ENDPOINT).sasToken(sas).tableName(name).buildClient();
    }

    static TableClient newTable() {
        return SERVICE.getTableClient(Harness.newName());
    }

    /** The body of a case with a new table, which is deleted afterwards. */
    static Harness.Body onTable(TableBody body) {
        return () -> {
            TableClient table = newTable();
            table.createTable();
            try {
                body.run(table);
            } finally {
                table.deleteTable();
            }
        };
    }

    static TableEntity row(String rowKey, Object... namesAndValues) {
        return entity("p", rowKey, namesAndValues);
    }

    static TableEntity entity(String partitionKey, String rowKey, Object... namesAndValues) {
        TableEntity entity = new TableEntity(partitionKey, rowKey);
        for (int i = 0; i < namesAndValues.length; i += 2) {
            entity.addProperty((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return entity;
    }

    static List<TableEntity> list(TableClient table, String filter) {
        ListEntitiesOptions options = new ListEntitiesOptions().setFilter(filter);
        return table.listEntities(options, null, Context.NONE).stream().toList();
    }

    /** The row keys of what matches, in order, with a blank between. */
    static String rowKeys(TableClient table, String filter) {
        return list(table, filter).stream().map(TableEntity::getRowKey).collect(Collectors.joining(" "));
    }

    static int statusOf(Throwable error) {
        return error instanceof HttpResponseException e && e.getResponse() != null ? e.getResponse().getStatusCode() : 0;
    }

    /** The service's code. Listings throw the SDK's inner exception, which the other calls turn into the public one. */
    static String codeOf(Throwable error) {
        if (error instanceof TableServiceException e && e.getValue() != null) {
            return e.getValue().getErrorCode().toString();
        }
        if (error instanceof TableServiceJsonErrorException e && e.getValue() != null) {
            return e.getValue().getOdataError().getCode();
        }
        return "";
    }

    /** Runs what is expected to fail, and returns what it threw. */
    static Throwable failure(Attempt attempt) {
        try {
            attempt.run();
        } catch (Exception e) {
            return e;
        }
        throw new AssertionError("expected a failure, but it succeeded");
    }

    static void refused(int status, String code, Attempt attempt) {
        Throwable error = failure(attempt);
        if (statusOf(error) != status || !codeOf(error).equals(code)) {
            throw new AssertionError("expected " + status + " " + code + ", got " + statusOf(error) + " " + codeOf(error), error);
        }
    }

    /** For the XML operations, whose errors the SDK does not read: it shows the status and the answer's header. */
    static void refusedInXml(int status, String code, Attempt attempt) {
        Throwable error = failure(attempt);
        equalStatus(error, status);
        String header = ((HttpResponseException) error).getResponse().getHeaderValue("x-ms-error-code");
        Harness.equal(header, code);
    }

    private static void equalStatus(Throwable error, int status) {
        if (statusOf(error) != status) {
            throw new AssertionError("expected status " + status, error);
        }
    }

    /** A transport that takes every host name for the server's address, in place of DNS. */
    static HttpClient resolvedLocally() {
        AddressResolverGroup<InetSocketAddress> loopback = new AddressResolverGroup<>() {
            @Override
            protected AddressResolver<InetSocketAddress> newResolver(EventExecutor executor) {
                return new LoopbackResolver(executor).asAddressResolver();
            }
        };
        return new NettyAsyncHttpClientBuilder(reactor.netty.http.client.HttpClient.create().resolver(loopback)).build();
    }

    private static final class LoopbackResolver extends InetNameResolver {
        LoopbackResolver(EventExecutor executor) {
            super(executor);
        }

        @Override
        protected void doResolve(String host, Promise<InetAddress> promise) throws Exception {
            promise.setSuccess(InetAddress.getByName("127.0.0.1"));
        }

        @Override
        protected void doResolveAll(String host, Promise<List<InetAddress>> promise) throws Exception {
            promise.setSuccess(List.of(InetAddress.getByName("127.0.0.1")));
        }
    }
}
