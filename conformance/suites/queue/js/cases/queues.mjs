import assert from "node:assert/strict";
import { newName, test } from "../harness.mjs";
import { collect, count, onQueue, queueClient, refused, service } from "../clients.mjs";

test("queues: create, exists, delete", async () => {
  const queue = queueClient(newName());
  assert.equal(await queue.exists(), false);
  const { requestId, version, date } = await queue.create();
  assert.ok(requestId && version && date);
  assert.equal(await queue.exists(), true);
  await queue.delete();
  assert.equal(await queue.exists(), false);
  await refused(queue.delete(), 404, "QueueNotFound");
});

test("queues: createIfNotExists and deleteIfExists", async () => {
  const queue = queueClient(newName());
  assert.equal((await queue.createIfNotExists()).succeeded, true);
  assert.equal((await queue.createIfNotExists()).succeeded, false);
  const other = await queue.createIfNotExists({ metadata: { other: "1" } });
  assert.deepEqual([other.succeeded, other.errorCode], [false, "QueueAlreadyExists"]);
  assert.equal((await queue.deleteIfExists()).succeeded, true);
  const missing = await queue.deleteIfExists();
  assert.deepEqual([missing.succeeded, missing.errorCode], [false, "QueueNotFound"]);
});

test("queues: create again is fine with the same metadata only", onQueue([], async (queue) => {
  await queue.create();
  await refused(queue.create({ metadata: { a: "1" } }), 409, "QueueAlreadyExists");
  await queue.setMetadata({ a: "1" });
  await queue.create({ metadata: { a: "1" } });
  await refused(queue.create({ metadata: { a: "2" } }), 409, "QueueAlreadyExists");
  await refused(queue.create(), 409, "QueueAlreadyExists");
}));

test("queues: the service client creates and deletes", async () => {
  const name = newName();
  await service.createQueue(name, { metadata: { one: "1" } });
  assert.deepEqual((await service.getQueueClient(name).getProperties()).metadata, { one: "1" });
  await service.deleteQueue(name);
  await refused(service.deleteQueue(name), 404, "QueueNotFound");
});

test("queues: properties of a new one", onQueue([], async (queue) => {
  const { metadata, approximateMessagesCount } = await queue.getProperties();
  assert.deepEqual([metadata ?? {}, approximateMessagesCount], [{}, 0]);
}));

test("queues: metadata comes back, is replaced and cleared", onQueue([], async (queue) => {
  await queue.setMetadata({ key: "value", other: "a=b; c" });
  assert.deepEqual((await queue.getProperties()).metadata, { key: "value", other: "a=b; c" });
  await queue.setMetadata({ third: "3" });
  assert.deepEqual((await queue.getProperties()).metadata, { third: "3" });
  await queue.setMetadata();
  assert.deepEqual((await queue.getProperties()).metadata ?? {}, {});
}));

for (const name of ["in-valid", "1st", "a!b"]) {
  test(`queues: metadata named ${name} is refused`, onQueue([], (queue) =>
    refused(queue.setMetadata({ [name]: "x" }), 400, "InvalidMetadata")));
}

for (const [name, code] of [
  ["ab", "OutOfRangeInput"], ["a".repeat(64), "OutOfRangeInput"], ["a_b", "InvalidResourceName"], ["-abc", "InvalidResourceName"],
  ["abc-", "InvalidResourceName"], ["a--b", "InvalidResourceName"], ["Abc", "InvalidResourceName"], ["a.b", "InvalidResourceName"],
]) {
  test(`queues: the name ${name} is refused`, () => refused(service.createQueue(name), 400, code));
}

test("queues: a name is free at once after a delete, and its messages are gone", onQueue(["old"], async (queue) => {
  await queue.delete();
  await queue.create();
  assert.equal(await count(queue), 0);
}));

const listed = (body) => async () => {
  const prefix = newName();
  const names = ["c", "a", "b10", "b9", "0"].map((end) => `${prefix}-${end}`);
  for (const name of names) await service.createQueue(name, { metadata: { name: name.slice(-1) } });
  try {
    await body(prefix, names.slice().sort());
  } finally {
    for (const name of names) await service.deleteQueue(name);
  }
};

test("list: by prefix and in order", listed(async (prefix, names) => {
  const found = await collect(service.listQueues({ prefix: `${prefix}-` }));
  assert.deepEqual(found.map((one) => one.name), names);
  assert.deepEqual(found.map((one) => one.metadata), names.map(() => undefined));
}));

test("list: with metadata", listed(async (prefix, names) => {
  const found = await collect(service.listQueues({ prefix, includeMetadata: true }));
  assert.deepEqual(found.map((one) => one.metadata), names.map((name) => ({ name: name.slice(-1) })));
}));

test("list: page by page", listed(async (prefix, names) => {
  const pages = await collect(service.listQueues({ prefix }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.queueItems.map((one) => one.name)), [names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
  assert.deepEqual(pages.map((page) => page.maxPageSize), [2, 2, 2]);
  assert.equal(pages[0].prefix, prefix);
  assert.match(pages[0].serviceEndpoint, /^http:\/\/.*\/$/);
}));

test("list: goes on from a marker", listed(async (prefix, names) => {
  const first = (await service.listQueues({ prefix }).byPage({ maxPageSize: 3 }).next()).value;
  const rest = (await service.listQueues({ prefix }).byPage({ continuationToken: first.continuationToken }).next()).value;
  assert.deepEqual(rest.queueItems.map((one) => one.name), names.slice(3));
  assert.equal(rest.continuationToken ?? "", "");
}));

test("list: nothing", async () => assert.deepEqual(await collect(service.listQueues({ prefix: newName() })), []));

test("list: a marker of another form is refused", () =>
  refused(service.listQueues().byPage({ continuationToken: "garbage" }).next(), 400, "OutOfRangeInput"));

for (const maxPageSize of [0, -1]) {
  test(`list: pages of ${maxPageSize} are refused`, () =>
    refused(service.listQueues().byPage({ maxPageSize }).next(), 400, "OutOfRangeQueryParameterValue"));
}

const missing = queueClient(newName());
const receipt = "AgAAAAMAAAAAAAAAAKSnkIyg2QE=";
for (const [name, call] of Object.entries({
  "get properties": () => missing.getProperties(), "set metadata": () => missing.setMetadata({ a: "b" }), "get policies": () => missing.getAccessPolicy(),
  "set policies": () => missing.setAccessPolicy([]), send: () => missing.sendMessage("x"), receive: () => missing.receiveMessages(),
  peek: () => missing.peekMessages(), clear: () => missing.clearMessages(),
  "delete message": () => missing.deleteMessage("0b34b2d6-0a2b-4fb5-8a37-1b7d5ee3b2f1", receipt),
  "update message": () => missing.updateMessage("0b34b2d6-0a2b-4fb5-8a37-1b7d5ee3b2f1", receipt, "x", 1),
})) {
  test(`queues: ${name} on a missing one`, () => refused(call, 404, "QueueNotFound"));
}
