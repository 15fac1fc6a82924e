package dev.tavola.conformance;

/** Runs the Java SDK for queues against the server. */
final class Main {
    public static void main(String[] args) throws Exception {
        QueueCases.register();
        MessageCases.register();
        ReceiptCases.register();
        TextCases.register();
        ConcurrencyCases.register();
        PolicyCases.register();
        SasCases.register();
        ServiceCases.register();
        RestartCases.register();
        Harness.runAll(args.length > 0 ? args[0] : "");
        // The client's threads would keep the process alive.
        System.exit(0);
    }
}
