package dev.tavola.conformance;

/** Runs the Java SDK for tables against the server. */
final class Main {
    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("resume")) {
            PagingCases.resume(args[1], args[2]);
            System.exit(0);
        }
        TableCases.register();
        EntityCases.register();
        TypeCases.register();
        KeyCases.register();
        QueryCases.register();
        PagingCases.register();
        TransactionCases.register();
        ConcurrencyCases.register();
        IndexCases.register();
        IndexViewCases.register();
        WorkloadCases.register();
        PolicyCases.register();
        AccountSasCases.register();
        TableSasCases.register();
        ServiceCases.register();
        ConnectionStringCases.register();
        AsyncCases.register();
        RestartCases.register();
        Harness.runAll(args.length > 0 ? args[0] : "");
        // The client's threads would keep the process alive.
        System.exit(0);
    }
}
