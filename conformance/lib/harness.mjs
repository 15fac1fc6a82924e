// Registers cases, runs them one after the other, and writes a line of JSON for each.

import { appendFileSync } from "node:fs";
import { randomBytes } from "node:crypto";

const CASE_TIMEOUT_MS = 60_000;
const cases = [];

/** Registers a case. It passes when `body` returns, and fails with what it throws. */
export function test(name, body) {
  cases.push({ name, body });
}

/** Runs the cases whose names contain `wanted`. */
export async function runAll(wanted = "") {
  const names = new Set(cases.map(({ name }) => name));
  if (names.size !== cases.length) throw new Error("two cases have the same name");
  for (const { name, body } of cases.filter((one) => one.name.includes(wanted))) {
    const failure = await outcome(body);
    const line = { case: name, ok: failure === undefined, detail: failure ?? "" };
    appendFileSync(process.env.TAVOLA_RESULTS, JSON.stringify(line) + "\n");
  }
}

async function outcome(body) {
  let timer;
  const tooLong = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result after ${CASE_TIMEOUT_MS} ms`)), CASE_TIMEOUT_MS);
  });
  try {
    await Promise.race([body(), tooLong]);
    return undefined;
  } catch (error) {
    return String(error?.stack ?? error);
  } finally {
    clearTimeout(timer);
  }
}

const runId = randomBytes(4).toString("hex");
let named = 0;

/** A name for a table or a queue that nothing else uses. */
export function newName() {
  named += 1;
  return `js${runId}n${named}`;
}

export const newTableName = newName;

/** Kills the server and starts it again on the same port and data. */
export async function restartServer() {
  const answer = await fetch(`${process.env.TAVOLA_CONTROL}/restart`, { method: "POST" });
  if (answer.status !== 200) throw new Error(`restart answered ${answer.status}`);
}
