import assert from "node:assert/strict";
import { QueueServiceClient } from "@azure/storage-queue";
import { test } from "../harness.mjs";
import { collect, credential, endpoint, onQueue, peek, refused, service, textsOf } from "../clients.mjs";

const ORIGIN = "https://app.example.com";
const RULE = { allowedOrigins: ORIGIN, allowedMethods: "GET,PUT", allowedHeaders: "content-type,x-ms-*", exposedHeaders: "x-ms-request-id", maxAgeInSeconds: 60 };
const retention = { enabled: true, days: 7 };

/** A case's body, after which the service properties are as they were. */
const restoring = (body) => async () => {
  const { queueAnalyticsLogging, hourMetrics, minuteMetrics, cors } = await service.getProperties();
  try {
    await body();
  } finally {
    await service.setProperties({ queueAnalyticsLogging, hourMetrics, minuteMetrics, cors: cors ?? [] });
  }
};

test("service: properties come back", restoring(async () => {
  const sent = {
    queueAnalyticsLogging: { version: "1.0", deleteProperty: true, read: false, write: true, retentionPolicy: retention },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: retention },
    minuteMetrics: { version: "1.0", enabled: true, includeAPIs: false, retentionPolicy: { enabled: false } },
    cors: [RULE, { ...RULE, allowedOrigins: "*", allowedMethods: "POST" }],
  };
  await service.setProperties(sent);
  const found = await service.getProperties();
  for (const name of Object.keys(sent)) assert.deepEqual(JSON.parse(JSON.stringify(found[name])), sent[name], name);
}));

test("service: what is not sent stays", restoring(async () => {
  await service.setProperties({ cors: [RULE] });
  await service.setProperties({ minuteMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: retention } });
  const { cors, minuteMetrics } = await service.getProperties();
  assert.deepEqual([cors.length, minuteMetrics.enabled], [1, true]);
}));

test("service: six CORS rules are refused", restoring(() =>
  refused(service.setProperties({ cors: Array(6).fill(RULE) }), 400, "InvalidXmlDocument")));

test("service: a retention of 366 days is refused", restoring(() =>
  refused(service.setProperties({ hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days: 366 } } }), 400, "InvalidXmlDocument")));

const preflight = (origin, method, headers) => fetch(`${endpoint}/some-queue/messages`, {
  method: "OPTIONS", headers: { Origin: origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers },
});

test("service: a preflight by the rules", restoring(async () => {
  await service.setProperties({ cors: [RULE] });
  const answer = await preflight(ORIGIN, "GET", "content-type,x-ms-date");
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("access-control-allow-origin"), ORIGIN);
  assert.equal(answer.headers.get("access-control-max-age"), "60");
}));

for (const [name, ...request] of [["another origin", "https://b.example.com", "GET", ""], ["another method", ORIGIN, "DELETE", ""], ["another header", ORIGIN, "GET", "x-other"]]) {
  test(`service: a preflight of ${name} is refused`, restoring(async () => {
    await service.setProperties({ cors: [RULE] });
    const answer = await preflight(...request);
    assert.equal(answer.status, 403);
    assert.match(await answer.text(), /CorsPreflightFailure/);
  }));
}

const secondary = new QueueServiceClient(`${endpoint}-secondary`, credential);

test("service: statistics of the secondary", async () => {
  // This version of the SDK looks for another root element than the service sends, so that its own fields stay empty.
  const { _response: { bodyAsText } } = await secondary.getStatistics();
  assert.match(bodyAsText, /<StorageServiceStats><GeoReplication><Status>live<\/Status><LastSyncTime>\w{3}, .* GMT</);
});

test("service: no statistics of the primary", () => refused(service.getStatistics(), 400, "InvalidQueryParameterValue"));

test("service: the secondary reads", onQueue(["m"], async (queue) => {
  const reader = secondary.getQueueClient(queue.name);
  assert.deepEqual(textsOf(await peek(reader)), ["m"]);
  assert.equal((await reader.getProperties()).approximateMessagesCount, 1);
  assert.deepEqual((await collect(secondary.listQueues({ prefix: queue.name }))).map(({ name }) => name), [queue.name]);
  await assert.rejects(reader.sendMessage("x"));
  assert.deepEqual(textsOf(await peek(queue)), ["m"]);
}));

test("service: no credentials", async () => {
  const answer = await fetch(`${endpoint}?comp=list`, { headers: { "x-ms-version": "2024-05-04" } });
  assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [401, "NoAuthenticationInformation"]);
});
