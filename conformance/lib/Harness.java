package dev.tavola.conformance;

import com.azure.json.JsonProviders;
import com.azure.json.JsonWriter;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/** Registers cases, runs them one after the other, and writes a line of JSON for each. */
final class Harness {
    private static final int CASE_TIMEOUT_SECONDS = 60;
    private static final Map<String, Body> CASES = new LinkedHashMap<>();
    private static final String RUN_ID = String.format("%08x", ThreadLocalRandom.current().nextInt());
    private static final AtomicInteger NAMED = new AtomicInteger();

    /** What a case does: it passes when this returns, and fails with what this throws. */
    interface Body {
        void run() throws Exception;
    }

    private Harness() {}

    static void test(String name, Body body) {
        if (CASES.put(name, body) != null) {
            throw new IllegalStateException("two cases have the name " + name);
        }
    }

    static void runAll(String wanted) throws Exception {
        Path results = Path.of(System.getenv("TAVOLA_RESULTS"));
        ExecutorService worker = Executors.newCachedThreadPool();
        for (Map.Entry<String, Body> one : CASES.entrySet()) {
            if (one.getKey().contains(wanted)) {
                String line = resultLine(one.getKey(), outcome(worker, one.getValue()));
                Files.writeString(results, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
        }
    }

    /** Empty when the case passed. */
    private static String outcome(ExecutorService worker, Body body) throws InterruptedException {
        Future<?> running = worker.submit(() -> {
            body.run();
            return null;
        });
        try {
            running.get(CASE_TIMEOUT_SECONDS, TimeUnit.SECONDS);
            return "";
        } catch (TimeoutException e) {
            running.cancel(true);
            return "no result after " + CASE_TIMEOUT_SECONDS + " seconds";
        } catch (ExecutionException e) {
            StringWriter trace = new StringWriter();
            e.getCause().printStackTrace(new PrintWriter(trace));
            return trace.toString();
        }
    }

    private static String resultLine(String name, String detail) throws Exception {
        StringWriter line = new StringWriter();
        try (JsonWriter json = JsonProviders.createWriter(line)) {
            json.writeStartObject();
            json.writeStringField("case", name);
            json.writeBooleanField("ok", detail.isEmpty());
            json.writeStringField("detail", detail);
            json.writeEndObject();
        }
        return line.toString();
    }

    /** A name for a table or a queue that nothing else uses. */
    static String newName() {
        return "java" + RUN_ID + "n" + NAMED.incrementAndGet();
    }

    /** Kills the server and starts it again on the same port and data. */
    static void restartServer() throws Exception {
        HttpRequest restart = HttpRequest.newBuilder(URI.create(System.getenv("TAVOLA_CONTROL") + "/restart"))
            .POST(HttpRequest.BodyPublishers.noBody())
            .build();
        int status = HttpClient.newHttpClient().send(restart, HttpResponse.BodyHandlers.discarding()).statusCode();
        equal(status, 200);
    }

    static void equal(Object got, Object want) {
        if (!Objects.deepEquals(got, want)) {
            throw new AssertionError("got  " + got + "\nwant " + want);
        }
    }

    static void that(boolean condition, String message) {
        if (!condition) {
            throw new AssertionError(message);
        }
    }
}
