import assert from "node:assert/strict";
import { restartServer, test } from "../harness.mjs";
import { collect, onTable } from "../clients.mjs";

test("restart: what was acknowledged is there afterwards", onTable(async (table) => {
  const { etag } = await table.createEntity({ partitionKey: "p", rowKey: "single", n: 1 });
  await table.submitTransaction(["a", "b"].map((rowKey) => ["create", { partitionKey: "p", rowKey }]));
  await table.setAccessPolicy([{ id: "kept", accessPolicy: { permission: "r" } }]);
  await restartServer();
  assert.equal((await table.getEntity("p", "single")).etag, etag);
  assert.deepEqual((await collect(table.listEntities())).map((row) => row.rowKey), ["a", "b", "single"]);
  assert.deepEqual((await table.getAccessPolicy()).map(({ id }) => id), ["kept"]);
}));

test("restart: the SDK's retries carry writers over it", onTable(async (table) => {
  const WRITERS = 8;
  let restarted = false;
  let rowsBefore = 0;
  const writer = async (id) => {
    let n = 0;
    // Each writes on for a while after the restart, so that its connection is sure to break.
    for (let after = 0; after < 5; n += 1) {
      await table.upsertEntity({ partitionKey: `w${id}`, rowKey: String(n).padStart(6, "0"), n }, "Replace");
      if (restarted) after += 1;
      else rowsBefore += 1;
    }
    return n;
  };
  const writers = Promise.all(Array.from({ length: WRITERS }, (_, id) => writer(id)));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await restartServer();
  restarted = true;
  const written = await writers;
  assert.ok(rowsBefore > 0, "the restart came before the first write");
  for (const [id, count] of written.entries()) {
    const rows = await collect(table.listEntities({ queryOptions: { filter: `PartitionKey eq 'w${id}'` } }));
    assert.deepEqual(rows.map((row) => row.n), Array.from({ length: count }, (_, n) => n));
  }
}));

test("restart: a read sent while the server is down succeeds", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
  const restart = restartServer();
  const reads = [];
  let done = false;
  restart.finally(() => (done = true));
  do {
    reads.push(table.getEntity("p", "r"));
    await new Promise((resolve) => setTimeout(resolve, 2));
  } while (!done);
  await restart;
  for (const entity of await Promise.all(reads)) assert.equal(entity.n, 1);
}));

test("restart: a token goes on afterwards", onTable(async (table) => {
  await table.submitTransaction(["1", "2", "3", "4"].map((rowKey) => ["create", { partitionKey: "p", rowKey }]));
  const first = (await table.listEntities().byPage({ maxPageSize: 2 }).next()).value;
  await restartServer();
  const second = (await table.listEntities().byPage({ continuationToken: first.continuationToken }).next()).value;
  assert.deepEqual(second.map((row) => row.rowKey), ["3", "4"]);
}));
