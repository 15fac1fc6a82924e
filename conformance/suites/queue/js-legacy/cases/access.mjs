import assert from "node:assert/strict";
import azure from "azure-storage";
import { test } from "../harness.mjs";
import { account, endpoint, key, onQueue, peek, promising, refused, service } from "../clients.mjs";

const HOUR_MS = 3_600_000;
const start = new Date(Date.now() - HOUR_MS);
const expiry = new Date(Date.now() + HOUR_MS);
const withSas = (queue, policy) => promising(azure.createQueueServiceWithSas(endpoint, service.generateSharedAccessSignature(queue, policy)));
const allowing = (Permissions) => ({ AccessPolicy: { Permissions, Start: start, Expiry: expiry } });

test("ACL: policies there and back", onQueue([], async (queue) => {
  await service.setQueueAcl(queue, { one: { Permissions: "raup", Start: start, Expiry: expiry }, two: { Permissions: "r", Expiry: expiry } });
  const { signedIdentifiers } = await service.getQueueAcl(queue);
  assert.deepEqual(Object.keys(signedIdentifiers).sort(), ["one", "two"]);
  assert.equal(signedIdentifiers.one.Permissions, "raup");
  await service.setQueueAcl(queue, {});
  assert.deepEqual(Object.keys((await service.getQueueAcl(queue)).signedIdentifiers), []);
}));

const operations = {
  peek: ["r", (client, queue) => client.peekMessages(queue)], metadata: ["r", (client, queue) => client.getQueueMetadata(queue)],
  send: ["a", (client, queue) => client.createMessage(queue, "x")], receive: ["p", (client, queue) => client.getMessages(queue)],
};
for (const [name, [letter, run]] of Object.entries(operations)) {
  test(`SAS: ${name} is allowed with ${letter}`, onQueue(["m"], (queue) => run(withSas(queue, allowing(letter)), queue)));
  test(`SAS: ${name} is refused without ${letter}`, onQueue(["m"], (queue) =>
    refused(run(withSas(queue, allowing("raup".replace(letter, ""))), queue), 403, "AuthorizationPermissionMismatch")));
}

test("SAS: a policy gives permission, and its removal revokes", onQueue(["m"], async (queue) => {
  await service.setQueueAcl(queue, { readers: { Permissions: "r", Start: start, Expiry: expiry } });
  const reader = withSas(queue, { Id: "readers" });
  assert.deepEqual(await peek(queue, reader), ["m"]);
  await service.setQueueAcl(queue, {});
  await refused(reader.peekMessages(queue), 403, "AuthenticationFailed");
}));

test("service: statistics of the secondary", async () => {
  const client = promising(azure.createQueueService(account, key, { primaryHost: endpoint, secondaryHost: `${endpoint}-secondary` }));
  const stats = await client.getServiceStats({ locationMode: azure.StorageUtilities.LocationMode.SECONDARY_ONLY });
  assert.equal(stats.GeoReplication.Status, "live");
});

if (process.env.TAVOLA_ON_DEVELOPMENT_PORT === "1") {
  test("connection strings: of the development account", onQueue(["m"], async (queue) =>
    assert.deepEqual(await peek(queue, promising(azure.createQueueService("UseDevelopmentStorage=true"))), ["m"])));
}
