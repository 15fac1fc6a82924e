import assert from "node:assert/strict";
import { QueueSASPermissions, SASProtocol, generateQueueSASQueryParameters } from "@azure/storage-queue";
import { newName, test } from "../harness.mjs";
import { anHourAgo, credential, inAnHour, onQueue, peek, queueClient, refused, sasQueueClient, textsOf } from "../clients.mjs";
import { OPERATIONS, attempt } from "./operations.mjs";

const RULES = { "get metadata": "r", put: "a", get: "p", peek: "r", update: "u", "delete message": "p" };
// A token is for the queue in the path, so that it is no token where there is none, or another one.
const ELSEWHERE = ["list", "get service properties", "create", "delete queue"];

const token = (queueName, permissions = "raup", more = {}) => generateQueueSASQueryParameters(
  { queueName, permissions: QueueSASPermissions.parse(permissions), expiresOn: inAnHour(), ...more }, credential).toString();

for (const operation of OPERATIONS) {
  test(`queue SAS: ${operation} by each letter`, async () => {
    for (const permissions of ["r", "a", "u", "p", "raup"]) {
      const result = await attempt(operation, (name) => token(name, permissions));
      if (ELSEWHERE.includes(operation)) assert.ok(["AuthenticationFailed", "AuthorizationFailure"].includes(result), `${permissions}: ${result}`);
      else if (!RULES[operation]) assert.equal(result, "AuthorizationFailure", permissions);
      else assert.equal(result, permissions.includes(RULES[operation]) ? "allowed" : "AuthorizationPermissionMismatch", permissions);
    }
  });
}

test("queue SAS: create and delete of its queue", async () => {
  const queue = queueClient(newName());
  const holder = sasQueueClient(queue.name, token(queue.name));
  await refused(holder.create(), 403, "AuthorizationFailure");
  await queue.create();
  await refused(holder.delete(), 403, "AuthorizationFailure");
  await queue.delete();
});

test("queue SAS: of another queue", onQueue(["m"], (queue) =>
  refused(peek(sasQueueClient(queue.name, token(`${queue.name}x`))), 403, "AuthenticationFailed")));

test("queue SAS: of a queue that is missing", async () => {
  const name = newName();
  await refused(peek(sasQueueClient(name, token(name))), 404, "QueueNotFound");
});

test("queue SAS: by generateSasUrl", onQueue(["m"], async (queue) => {
  const url = await queue.generateSasUrl({ permissions: QueueSASPermissions.parse("r"), expiresOn: inAnHour() });
  assert.deepEqual(textsOf(await peek(sasQueueClient(queue.name, new URL(url).search.slice(1)))), ["m"]);
}));

for (const [name, more, expected] of [
  ["begun", { startsOn: anHourAgo() }, "allowed"], ["not yet begun", { startsOn: inAnHour(), expiresOn: new Date(Date.now() + 7200_000) }, "AuthenticationFailed"],
  ["expired", { expiresOn: anHourAgo() }, "AuthenticationFailed"], ["from here", { ipRange: { start: "127.0.0.0", end: "127.0.0.255" } }, "allowed"],
  ["from elsewhere", { ipRange: { start: "10.0.0.1" } }, "AuthorizationSourceIPMismatch"],
  ["by any protocol", { protocol: SASProtocol.HttpsAndHttp }, "allowed"], ["by https only", { protocol: SASProtocol.Https }, "AuthorizationProtocolMismatch"],
  ["of version 2018-03-28", { version: "2018-03-28" }, "allowed"],
]) {
  test(`queue SAS: ${name}`, async () => assert.equal(await attempt("peek", (queue) => token(queue, "r", more)), expected));
}
