import assert from "node:assert/strict";
import http from "node:http";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { test } from "../harness.mjs";
import {
  account, collect, credential, endpoint, hostStyleEndpoint, overHttp, onTable, refused, resolvedLocally, service, tableClient,
} from "../clients.mjs";

const retention = (days) => (days ? { enabled: true, days } : { enabled: false });
const metrics = (days) => ({ version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: retention(days) });
const logging = { version: "1.0", read: true, write: false, delete: true, retentionPolicy: retention(3) };
const rule = (origins, options = {}) => ({
  allowedOrigins: origins, allowedMethods: "GET,PUT", allowedHeaders: "content-type,x-ms-*", exposedHeaders: "x-ms-request-id",
  maxAgeInSeconds: 100, ...options,
});

async function current() {
  const { logging, hourMetrics, minuteMetrics, cors } = await service.getProperties();
  return { logging, hourMetrics, minuteMetrics, cors };
}

/** A case's body after which the service's properties are as they were. */
const restoring = (body) => async () => {
  const before = await current();
  try {
    await body(before);
  } finally {
    await service.setProperties(before);
  }
};

test("service: properties there and back", restoring(async () => {
  const wanted = { logging, hourMetrics: metrics(7), minuteMetrics: metrics(1), cors: [rule("http://a.example"), rule("*")] };
  await service.setProperties(wanted);
  assert.deepEqual(await current(), wanted);
}));

test("service: properties that are left out stay", restoring(async () => {
  await service.setProperties({ logging, hourMetrics: metrics(7) });
  await service.setProperties({ minuteMetrics: metrics(9) });
  const after = await current();
  assert.deepEqual([after.logging, after.hourMetrics, after.minuteMetrics], [logging, metrics(7), metrics(9)]);
}));

test("service: metrics and logging can be switched off", restoring(async () => {
  const off = { version: "1.0", enabled: false, retentionPolicy: retention() };
  await service.setProperties({
    hourMetrics: off, minuteMetrics: off,
    logging: { version: "1.0", read: false, write: false, delete: false, retentionPolicy: retention() },
  });
  const after = await current();
  assert.equal(after.hourMetrics.enabled, false);
  assert.deepEqual([after.logging.read, after.logging.retentionPolicy.enabled], [false, false]);
}));

test("service: no CORS rules clear those there are", restoring(async () => {
  await service.setProperties({ cors: [rule("http://a.example")] });
  await service.setProperties({ cors: [] });
  assert.deepEqual((await current()).cors ?? [], []);
}));

test("service: six CORS rules are InvalidXmlDocument", restoring(() =>
  refused(service.setProperties({ cors: Array(6).fill(rule("*")) }), 400, "InvalidXmlDocument")));

test("service: retention of 366 days is refused", restoring(() =>
  assert.rejects(service.setProperties({ hourMetrics: metrics(366) }), (error) => error.statusCode === 400)));

/** Sends a request without a signature, as a browser does before the real one. */
function preflight(headers) {
  return new Promise((resolve, reject) => {
    const request = http.request(`${endpoint}/Tables`, { method: "OPTIONS", headers }, (response) => {
      response.resume();
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers }));
    });
    request.on("error", reject);
    request.end();
  });
}

test("service: a preflight that a rule matches", restoring(async () => {
  await service.setProperties({ cors: [rule("http://a.example")] });
  const { status, headers } = await preflight({
    "Origin": "http://a.example", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-ms-date,content-type",
  });
  assert.equal(status, 200);
  assert.equal(headers["access-control-allow-origin"], "http://a.example");
  assert.match(headers["access-control-allow-methods"], /PUT/);
  assert.equal(headers["access-control-max-age"], "100");
  assert.match(headers["access-control-allow-headers"], /x-ms-date/);
}));

const unmatched = {
  "another origin": { "Origin": "http://b.example", "Access-Control-Request-Method": "PUT" },
  "another method": { "Origin": "http://a.example", "Access-Control-Request-Method": "DELETE" },
  "another header": { "Origin": "http://a.example", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-other" },
};

for (const [name, headers] of Object.entries(unmatched)) {
  test(`service: a preflight with ${name} is refused`, restoring(async () => {
    await service.setProperties({ cors: [rule("http://a.example")] });
    assert.equal((await preflight(headers)).status, 403);
  }));
}

test("service: a preflight without rules is refused", restoring(async () => {
  await service.setProperties({ cors: [] });
  const { status } = await preflight({ "Origin": "http://a.example", "Access-Control-Request-Method": "GET" });
  assert.equal(status, 403);
}));

test("service: a request from an allowed origin gets the CORS headers", restoring(() =>
  onTable(async (table) => {
    await service.setProperties({ cors: [rule("http://a.example")] });
    const answers = {};
    for (const origin of ["http://a.example", "http://b.example"]) {
      await collect(table.listEntities({
        requestOptions: { customHeaders: { Origin: origin } }, onResponse: (raw) => (answers[origin] = raw.headers),
      }));
    }
    assert.equal(answers["http://a.example"].get("access-control-allow-origin"), "http://a.example");
    assert.match(answers["http://a.example"].get("access-control-expose-headers"), /x-ms-request-id/);
    assert.equal(answers["http://b.example"].get("access-control-allow-origin"), undefined);
  })()));

// The SDK makes the secondary's name from the first label of the host, so this works with the account in the host only.
test("service: stats come from the secondary", async () => {
  const client = new TableServiceClient(hostStyleEndpoint(), credential, resolvedLocally());
  const { geoReplication } = await client.getStatistics();
  assert.equal(geoReplication.status, "live");
  assert.ok(geoReplication.lastSyncTime instanceof Date && !Number.isNaN(geoReplication.lastSyncTime.getTime()));
});

test("service: the secondary reads what the primary wrote, and writes nothing", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
  const secondary = tableClient(table.tableName, { endpoint: endpoint.replace(account, `${account}-secondary`) });
  assert.equal((await secondary.getEntity("p", "r")).n, 1);
  await refused(secondary.createEntity({ partitionKey: "p", rowKey: "s" }), 403, "InsufficientAccountPermissions");
}));

test("service: merges tunnelled through POST, as the SDK sends them to names like Cosmos DB's", onTable(async (owner) => {
  const table = new TableClient(hostStyleEndpoint("table.cosmos.example"), owner.tableName, credential, resolvedLocally());
  await table.createEntity({ partitionKey: "p", rowKey: "r", a: 1 });
  let sent;
  await table.updateEntity({ partitionKey: "p", rowKey: "r", b: 2 }, "Merge", { onResponse: (raw) => (sent = raw.request) });
  assert.deepEqual([sent.method, sent.headers.get("x-http-method")], ["POST", "MERGE"]);
  await table.submitTransaction([["update", { partitionKey: "p", rowKey: "r", c: 3 }, "Merge"]]);
  const { a, b, c } = await owner.getEntity("p", "r");
  assert.deepEqual([a, b, c], [1, 2, 3]);
}));

test("service: a wrong key is AuthenticationFailed", () => {
  const wrong = new AzureNamedKeyCredential(account, Buffer.from("wrong").toString("base64"));
  return refused(collect(new TableServiceClient(endpoint, wrong, overHttp).listTables()), 403, "AuthenticationFailed");
});

test("service: no credentials at all are NoAuthenticationInformation", () =>
  refused(collect(new TableServiceClient(endpoint, overHttp).listTables()), 401, "NoAuthenticationInformation"));

const ofVersion = (version) => new TableServiceClient(endpoint, credential, { ...overHttp, version });

test("service: a version that is no date is InvalidHeaderValue", () =>
  refused(collect(ofVersion("newest").listTables()), 400, "InvalidHeaderValue"));

// Any well-formed version is served, also one from before JSON and one that nobody knows yet.
for (const version of ["2012-02-12", "2017-04-17", "2019-07-07", "2020-12-06", "2099-12-31"]) {
  test(`service: version ${version} is served and echoed`, async () => {
    let served;
    await ofVersion(version).listTables({ onResponse: (raw) => (served = raw.headers.get("x-ms-version")) }).next();
    assert.equal(served, version);
  });
}
