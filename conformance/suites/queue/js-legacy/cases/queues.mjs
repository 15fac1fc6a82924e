import assert from "node:assert/strict";
import { newName, test } from "../harness.mjs";
import { onQueue, refused, service } from "../clients.mjs";

test("queues: create, exists, delete", async () => {
  const queue = newName();
  assert.equal((await service.doesQueueExist(queue)).exists, false);
  assert.equal((await service.createQueueIfNotExists(queue)).created, true);
  assert.equal((await service.createQueueIfNotExists(queue)).created, false);
  assert.equal((await service.doesQueueExist(queue)).exists, true);
  assert.equal(await service.deleteQueueIfExists(queue), true);
  assert.equal(await service.deleteQueueIfExists(queue), false);
  await refused(service.deleteQueue(queue), 404, "QueueNotFound");
});

test("queues: create again with other metadata", onQueue([], (queue) =>
  refused(service.createQueue(queue, { metadata: { a: "1" } }), 409, "QueueAlreadyExists")));

test("queues: metadata and count", onQueue(["a", "b"], async (queue) => {
  await service.setQueueMetadata(queue, { one: "1", two: "a b" });
  const found = await service.getQueueMetadata(queue);
  assert.deepEqual([found.metadata, String(found.approximateMessageCount)], [{ one: "1", two: "a b" }, "2"]);
}));

test("queues: listed by prefix, with metadata, in pages", async () => {
  const prefix = newName();
  const names = ["c", "a", "b"].map((end) => `${prefix}-${end}`);
  for (const name of names) await service.createQueue(name, { metadata: { end: name.slice(-1) } });
  try {
    const seen = [];
    let token = null;
    do {
      const page = await service.listQueuesSegmentedWithPrefix(prefix, token, { maxResults: 2, include: "metadata" });
      seen.push(...page.entries);
      token = page.continuationToken;
    } while (token);
    assert.deepEqual(seen.map(({ name, metadata }) => [name, metadata]), names.slice().sort().map((name) => [name, { end: name.slice(-1) }]));
  } finally {
    for (const name of names) await service.deleteQueue(name);
  }
});

test("queues: a wrong name", () => refused(service.createQueue("wrong--name"), 400, "InvalidResourceName").catch((error) => {
  // The client may refuse it first.
  assert.equal(error.name, "AssertionError");
  assert.match(error.message, /Queue name/);
}));

test("service: properties come back", async () => {
  const before = await service.getServiceProperties();
  try {
    const rule = { AllowedOrigins: ["https://a.example"], AllowedMethods: ["GET", "PUT"], AllowedHeaders: ["x-ms-meta-a"], ExposedHeaders: ["x-ms-meta-b"], MaxAgeInSeconds: 60 };
    await service.setServiceProperties({ ...before, Logging: { ...before.Logging, Read: true }, Cors: { CorsRule: [rule] } });
    const found = await service.getServiceProperties();
    assert.equal(found.Logging.Read, true);
    assert.deepEqual(found.Cors.CorsRule, [rule]);
  } finally {
    await service.setServiceProperties({ ...before, Cors: before.Cors ?? {} });
  }
});
