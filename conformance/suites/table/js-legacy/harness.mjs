// One harness for both JavaScript suites.
export * from "../js/harness.mjs";
