// One harness for all JavaScript suites.
export * from "../../../lib/harness.mjs";
