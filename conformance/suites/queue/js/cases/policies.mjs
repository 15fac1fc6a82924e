import assert from "node:assert/strict";
import { generateQueueSASQueryParameters } from "@azure/storage-queue";
import { test } from "../harness.mjs";
import { anHourAgo, credential, inAnHour, onQueue, peek, refused, sasQueueClient, textsOf } from "../clients.mjs";

const policy = (id, permissions, startsOn = anHourAgo(), expiresOn = inAnHour()) => ({ id, accessPolicy: { startsOn, expiresOn, permissions } });

test("policies: none at first", onQueue([], async (queue) =>
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, [])));

test("policies: come back", onQueue([], async (queue) => {
  const startsOn = new Date("2021-01-06T01:03:17.699Z");
  const expiresOn = new Date("2099-12-31T23:59:59.000Z");
  await queue.setAccessPolicy([policy("all", "raup", startsOn, expiresOn)]);
  const [found] = (await queue.getAccessPolicy()).signedIdentifiers;
  assert.deepEqual([found.id, found.accessPolicy.permissions], ["all", "raup"]);
  assert.deepEqual([found.accessPolicy.startsOn, found.accessPolicy.expiresOn], [startsOn, expiresOn]);
}));

test("policies: five, replaced and cleared", onQueue([], async (queue) => {
  await queue.setAccessPolicy(["1", "2", "3", "4", "5"].map((id) => policy(id, "r")));
  assert.equal((await queue.getAccessPolicy()).signedIdentifiers.length, 5);
  await queue.setAccessPolicy([policy("other", "a")]);
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers.map(({ id }) => id), ["other"]);
  await queue.setAccessPolicy([]);
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
}));

test("policies: six are refused", onQueue([], (queue) =>
  refused(queue.setAccessPolicy(["1", "2", "3", "4", "5", "6"].map((id) => policy(id, "r"))), 400, "InvalidXmlDocument")));

test("policies: letters of other services are refused", onQueue([], (queue) =>
  refused(queue.setAccessPolicy([policy("id", "rwdl")]), 400, "InvalidXmlDocument")));

test("policies: two of one id are refused", onQueue([], (queue) =>
  refused(queue.setAccessPolicy([policy("id", "r"), policy("id", "a")]), 400, "InvalidXmlDocument")));

test("policies: a signature by policy is allowed and revoked with it", onQueue(["m"], async (queue) => {
  const sas = generateQueueSASQueryParameters({ queueName: queue.name, identifier: "reader" }, credential).toString();
  const reader = sasQueueClient(queue.name, sas);
  await refused(peek(reader), 403, "AuthenticationFailed");
  await queue.setAccessPolicy([policy("reader", "r")]);
  assert.deepEqual(textsOf(await peek(reader)), ["m"]);
  await refused(reader.sendMessage("x"), 403, "AuthorizationPermissionMismatch");
  await queue.setAccessPolicy([]);
  await refused(peek(reader), 403, "AuthenticationFailed");
}));

test("policies: an expired one allows nothing", onQueue(["m"], async (queue) => {
  await queue.setAccessPolicy([policy("old", "r", new Date("2000-01-01"), anHourAgo())]);
  const sas = generateQueueSASQueryParameters({ queueName: queue.name, identifier: "old" }, credential).toString();
  await refused(peek(sasQueueClient(queue.name, sas)), 403, "AuthenticationFailed");
}));
