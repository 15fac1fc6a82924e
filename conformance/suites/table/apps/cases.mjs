// Records cases in the runner's form. A case is a name and a function that throws when the program does not get what
// it needs.
import { appendFileSync } from "node:fs";

export const endpoint = process.env.TAVOLA_ENDPOINT;
export const account = process.env.TAVOLA_ACCOUNT;
export const key = process.env.TAVOLA_KEY;
export const connectionString = process.env.TAVOLA_CONNECTION_STRING;

export function record(name, ok, detail = "") {
  appendFileSync(process.env.TAVOLA_RESULTS, JSON.stringify({ case: name, ok, detail }) + "\n");
  console.log(`${ok ? "ok" : "FAILED"}  ${name}${detail ? ": " + detail : ""}`);
}

export async function test(name, run) {
  try {
    await run();
    record(name, true);
  } catch (error) {
    record(name, false, String(error?.stack ?? error).slice(0, 2000));
  }
}

/** A table name that no other run has. */
export function freshTable(prefix) {
  return `${prefix}${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;
}
