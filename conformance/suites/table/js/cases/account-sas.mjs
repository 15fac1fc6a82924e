import assert from "node:assert/strict";
import { TableClient, TableServiceClient, generateAccountSas } from "@azure/data-tables";
import { newTableName, test } from "../harness.mjs";
import {
  collect, credential, endpoint, onTable, overHttp, permissionsOf, refused, sasServiceClient, sasTableClient, service,
} from "../clients.mjs";

const ALL = "rwdlau";
const HOUR_MS = 3_600_000;

function sasFor(permissions, options = {}) {
  return generateAccountSas(credential, { permissions: permissionsOf(permissions), ...options });
}

// What each operation needs: the permissions, and the resource type.
const operations = {
  "list tables": { needs: "l", type: "c", run: ({ service }) => collect(service.listTables()) },
  "create a table": {
    needs: "w", type: "c",
    run: async ({ service }) => {
      const name = newTableName();
      await service.createTable(name);
      made.push(name);
    },
  },
  "delete a table": { needs: "d", type: "c", run: ({ service, spare }) => deleteLoudly(service, spare) },
  "read service properties": { needs: "r", type: "s", run: ({ service }) => service.getProperties() },
  "write service properties": { needs: "w", type: "s", run: ({ service }) => service.setProperties({}) },
  "get an entity": { needs: "r", type: "o", run: ({ table }) => table.getEntity("p", "r") },
  "query entities": { needs: "r", type: "o", run: ({ table }) => collect(table.listEntities()) },
  "insert": { needs: "a", type: "o", run: ({ table }) => table.createEntity({ partitionKey: "p", rowKey: "new" }) },
  "merge": { needs: "u", type: "o", run: ({ table }) => table.updateEntity({ partitionKey: "p", rowKey: "r" }, "Merge") },
  "replace": { needs: "u", type: "o", run: ({ table }) => table.updateEntity({ partitionKey: "p", rowKey: "r" }, "Replace") },
  "upsert by merge": { needs: "au", type: "o", run: ({ table }) => table.upsertEntity({ partitionKey: "p", rowKey: "r" }, "Merge") },
  "upsert by replace": { needs: "au", type: "o", run: ({ table }) => table.upsertEntity({ partitionKey: "p", rowKey: "r" }, "Replace") },
  "delete an entity": { needs: "d", type: "o", run: ({ table }) => table.deleteEntity("p", "r") },
  "transaction of an insert": {
    needs: "a", type: "o",
    run: ({ table }) => table.submitTransaction([["create", { partitionKey: "p", rowKey: "new" }]]),
  },
  "transaction of an insert and a delete": {
    needs: "ad", type: "o",
    run: ({ table }) => table.submitTransaction([
      ["create", { partitionKey: "p", rowKey: "new" }], ["delete", { partitionKey: "p", rowKey: "r" }],
    ]),
  },
};
const made = [];

/** Deletes a table and throws on 404 too, which the SDK keeps quiet. */
async function deleteLoudly(client, name) {
  let status;
  await client.deleteTable(name, { onResponse: (raw) => (status = raw.status) });
  assert.equal(status, 204);
}

/** Runs `body` with the clients of a signature, a table with one row, and a table to spare. */
async function withSas(sas, body) {
  const spare = newTableName();
  await service.createTable(spare);
  try {
    await onTable(async (owner) => {
      await owner.createEntity({ partitionKey: "p", rowKey: "r" });
      await body({ service: sasServiceClient(sas), table: sasTableClient(owner.tableName, sas), spare });
    })();
  } finally {
    for (const name of [spare, ...made.splice(0)]) await service.deleteTable(name);
  }
}

for (const [name, { needs, type, run }] of Object.entries(operations)) {
  test(`account SAS: ${name} is allowed with ${needs} alone`, () =>
    withSas(sasFor(needs, { resourceTypes: type }), run));

  for (const letter of needs) {
    test(`account SAS: ${name} is refused without ${letter}`, () =>
      withSas(sasFor(ALL.replace(letter, "")), (clients) =>
        refused(() => run(clients), 403, "AuthorizationPermissionMismatch")));
  }

  test(`account SAS: ${name} is refused without resource type ${type}`, () =>
    withSas(sasFor(ALL, { resourceTypes: "sco".replace(type, "") }), (clients) =>
      refused(() => run(clients), 403, "AuthorizationResourceTypeMismatch")));
}

const readAll = ({ table }) => collect(table.listEntities());

test("account SAS: in the URL of the client", onTable(async (owner) => {
  const url = `${endpoint}?${sasFor(ALL)}`;
  const table = new TableClient(url, owner.tableName, overHttp);
  await table.createEntity({ partitionKey: "p", rowKey: "1" });
  await table.submitTransaction([["create", { partitionKey: "p", rowKey: "2" }]]);
  assert.equal((await readAll({ table })).length, 2);
  await collect(new TableServiceClient(url, overHttp).listTables());
}));

test("account SAS: expired is AuthenticationFailed", () =>
  withSas(sasFor(ALL, { expiresOn: new Date(Date.now() - HOUR_MS) }), (clients) =>
    refused(() => readAll(clients), 403, "AuthenticationFailed")));

test("account SAS: not yet valid is AuthenticationFailed", () =>
  withSas(sasFor(ALL, { startsOn: new Date(Date.now() + HOUR_MS / 2) }), (clients) =>
    refused(() => readAll(clients), 403, "AuthenticationFailed")));

test("account SAS: with a start in the past", () =>
  withSas(sasFor(ALL, { startsOn: new Date(Date.now() - HOUR_MS) }), async (clients) => {
    assert.equal((await readAll(clients)).length, 1);
  }));

test("account SAS: for another service is AuthorizationServiceMismatch", () =>
  withSas(sasFor(ALL, { services: { blob: true, queue: true } }), (clients) =>
    refused(() => readAll(clients), 403, "AuthorizationServiceMismatch")));

test("account SAS: for https only is AuthorizationProtocolMismatch over http", () =>
  withSas(sasFor(ALL, { protocol: "https" }), (clients) =>
    refused(() => readAll(clients), 403, "AuthorizationProtocolMismatch")));

test("account SAS: for https and http", () =>
  withSas(sasFor(ALL, { protocol: "https,http" }), async (clients) => {
    assert.equal((await readAll(clients)).length, 1);
  }));

test("account SAS: for another address is AuthorizationSourceIPMismatch", () =>
  withSas(sasFor(ALL, { ipRange: { start: "10.1.1.1", end: "10.1.1.9" } }), (clients) =>
    refused(() => readAll(clients), 403, "AuthorizationSourceIPMismatch")));

test("account SAS: for a range with this address", () =>
  withSas(sasFor(ALL, { ipRange: { start: "127.0.0.0", end: "127.0.0.255" } }), async (clients) => {
    assert.equal((await readAll(clients)).length, 1);
  }));

// From version 2020-12-06 on the string to sign has one line more, which the SDK leaves out: nothing newer can be tried.
test("account SAS: of version 2018-03-28", () =>
  withSas(sasFor(ALL, { version: "2018-03-28" }), async (clients) => {
    assert.equal((await readAll(clients)).length, 1);
  }));

test("account SAS: with a changed permission is AuthenticationFailed", () =>
  withSas(sasFor("r").replace("sp=r", "sp=rw"), (clients) =>
    refused(() => readAll(clients), 403, "AuthenticationFailed")));

test("account SAS: cannot touch access policies", () =>
  withSas(sasFor(ALL), async ({ table }) => {
    await refused(table.getAccessPolicy(), 403, "AuthorizationFailure");
    await refused(table.setAccessPolicy([]), 403, "AuthorizationFailure");
  }));
