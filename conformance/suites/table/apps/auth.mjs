// @auth/azure-tables-adapter: the store of users, accounts, sessions and tokens of Auth.js. The steps are those that
// Auth.js itself walks in a sign-in.
import assert from "node:assert/strict";
import { TableStorageAdapter } from "@auth/azure-tables-adapter";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import { account, endpoint, freshTable, key, test } from "./cases.mjs";

const client = new TableClient(endpoint, freshTable("appsauth"), new AzureNamedKeyCredential(account, key), { allowInsecureConnection: true });
await client.createTable();
const adapter = TableStorageAdapter(client);
const rows = async () => (await Array.fromAsync?.(client.listEntities())) ?? (await collect(client.listEntities()));

async function collect(iterator) {
  const out = [];
  for await (const item of iterator) out.push(item);
  return out;
}

let user;
const verified = new Date("2024-02-29T12:34:56.789Z");

await test("auth: a user is created and found by id and by email", async () => {
  user = await adapter.createUser({ email: "o'brien+x@example.com", name: "O'Brien 日本 😀", emailVerified: verified, image: "https://example.com/a.png" });
  for (const found of [await adapter.getUser(user.id), await adapter.getUserByEmail("o'brien+x@example.com")]) {
    assert.equal(found.id, user.id);
    assert.equal(found.name, "O'Brien 日本 😀");
    assert.equal(found.emailVerified.valueOf(), verified.valueOf());
    assert.equal(found.partitionKey, undefined);
  }
});
await test("auth: an unknown user is null", async () => {
  assert.equal(await adapter.getUser("nobody"), null);
  assert.equal(await adapter.getUserByEmail("nobody@example.com"), null);
});
await test("auth: a second user with the same email is refused", async () => {
  await assert.rejects(adapter.createUser({ email: "o'brien+x@example.com", emailVerified: null }), (error) => error.statusCode === 409 && /EntityAlreadyExists/.test(JSON.stringify(error.details)));
});
await test("auth: an update merges", async () => {
  const updated = await adapter.updateUser({ id: user.id, name: "New" });
  assert.equal(updated.name, "New");
  const found = await adapter.getUser(user.id);
  assert.equal(found.name, "New");
  assert.equal(found.email, "o'brien+x@example.com");
});
await test("auth: an account is linked and leads to its user", async () => {
  const linked = await adapter.linkAccount({ provider: "github", providerAccountId: "4711", type: "oauth", userId: user.id, expires_at: 1893456000 });
  assert.equal(linked.providerAccountId, "4711");
  assert.equal((await adapter.getUserByAccount({ provider: "github", providerAccountId: "4711" })).id, user.id);
  assert.equal(await adapter.getUserByAccount({ provider: "github", providerAccountId: "0" }), null);
});
await test("auth: a session is created, read, prolonged and deleted", async () => {
  const expires = new Date(Date.now() + 3600_000);
  await adapter.createSession({ sessionToken: "token-1", userId: user.id, expires });
  const both = await adapter.getSessionAndUser("token-1");
  assert.equal(both.session.expires.valueOf(), expires.valueOf());
  assert.equal(both.user.id, user.id);
  const later = new Date(expires.valueOf() + 1000);
  await adapter.updateSession({ sessionToken: "token-1", expires: later });
  assert.equal((await adapter.getSessionAndUser("token-1")).session.expires.valueOf(), later.valueOf());
  assert.equal((await adapter.deleteSession("token-1")).sessionToken, "token-1");
  assert.equal(await adapter.getSessionAndUser("token-1"), null);
});
await test("auth: a verification token works once", async () => {
  const token = { identifier: "a@example.com", token: "secret token %20+", expires: new Date(Date.now() + 60_000) };
  await adapter.createVerificationToken(token);
  assert.equal(await adapter.useVerificationToken({ identifier: "b@example.com", token: token.token }), null);
  assert.equal((await adapter.useVerificationToken({ identifier: "a@example.com", token: token.token })).expires.valueOf(), token.expires.valueOf());
  assert.equal(await adapter.useVerificationToken({ identifier: "a@example.com", token: token.token }), null);
});
await test("auth: a deleted user leaves nothing behind", async () => {
  await adapter.createSession({ sessionToken: "token-2", userId: user.id, expires: new Date(Date.now() + 60_000) });
  assert.equal((await adapter.deleteUser(user.id)).id, user.id);
  assert.equal(await adapter.getUser(user.id), null);
  // A refused createUser writes one of its two rows: that is how the adapter works on Azure too.
  const left = (await rows()).filter((row) => row.id === user.id || row.userId === user.id);
  assert.deepEqual(left.map((row) => row.partitionKey), []);
});
await client.deleteTable();
