import assert from "node:assert/strict";
import { QueueClient, QueueServiceClient, QueueSASPermissions, StorageSharedKeyCredential, generateQueueSASQueryParameters } from "@azure/storage-queue";
import { test } from "../harness.mjs";
import { account, collect, credential, endpoint, inAnHour, onQueue, peek, queueClient, refused, textsOf } from "../clients.mjs";

const connectionString = process.env.TAVOLA_CONNECTION_STRING;

test("connection strings: with the key", onQueue(["m"], async (queue) => {
  assert.deepEqual(textsOf(await peek(new QueueClient(connectionString, queue.name))), ["m"]);
  const found = await collect(QueueServiceClient.fromConnectionString(connectionString).listQueues({ prefix: queue.name }));
  assert.deepEqual(found.map(({ name }) => name), [queue.name]);
}));

test("connection strings: with a signature", onQueue(["m"], async (queue) => {
  const sas = generateQueueSASQueryParameters({ queueName: queue.name, permissions: QueueSASPermissions.parse("r"), expiresOn: inAnHour() }, credential);
  assert.deepEqual(textsOf(await peek(new QueueClient(`QueueEndpoint=${endpoint};SharedAccessSignature=${sas}`, queue.name))), ["m"]);
}));

if (process.env.TAVOLA_ON_DEVELOPMENT_PORT === "1") {
  test("connection strings: of the development account", onQueue(["m"], async (queue) =>
    assert.deepEqual(textsOf(await peek(new QueueClient("UseDevelopmentStorage=true", queue.name))), ["m"])));
}

test("connection strings: a wrong key is refused", onQueue(["m"], async (queue) => {
  const wrong = new QueueClient(`${endpoint}/${queue.name}`, new StorageSharedKeyCredential(account, "d3Jvbmc="));
  await refused(peek(wrong), 403, "AuthenticationFailed");
}));

test("connection strings: an endpoint with a slash at its end", onQueue(["m"], async (queue) => {
  const found = await collect(new QueueServiceClient(`${endpoint}/`, credential).listQueues({ prefix: queue.name }));
  assert.deepEqual(found.map(({ name }) => name), [queue.name]);
}));

test("connection strings: answers name the request", onQueue(["m"], async (queue) => {
  let headers;
  const watched = queueClient(queue.name);
  await watched.peekMessages({ onResponse: (response) => (headers = response.headers) });
  assert.match(headers.get("x-ms-request-id"), /^[0-9a-f-]{36}$/);
  assert.equal(headers.get("content-type"), "application/xml");
  assert.equal(headers.get("cache-control"), "no-cache");
  assert.match(headers.get("x-ms-version"), /^\d{4}-\d\d-\d\d$/);
}));
