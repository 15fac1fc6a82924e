// connect-azuretables: sessions of an Express server in a table. The server is a real one, the client keeps cookies.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import express from "express";
import session from "express-session";
import { connectionString, freshTable, test } from "./cases.mjs";

const require = createRequire(import.meta.url);
process.env.AZURE_STORAGE_CONNECTION_STRING = connectionString;
const azure = require("azure-storage");
const table = freshTable("appssess");
const service = azure.createTableService(connectionString);
const call = (name, ...given) => new Promise((resolve, reject) => service[name](...given, (error, result) => (error ? reject(error) : resolve(result))));
const problems = [];
await call("createTableIfNotExists", table);
const store = require("connect-azuretables")(session).create({ table, sessionTimeOut: 30, errorLogger: (text) => problems.push(text), overrideCron: "0 0 1 1 *" });

const app = express();
app.use(session({ store, secret: "s", resave: false, saveUninitialized: false, cookie: { maxAge: 600_000 } }));
app.get("/count", (request, response) => response.json({ count: (request.session.count = (request.session.count ?? 0) + 1), id: request.sessionID }));
app.get("/out", (request, response) => request.session.destroy((error) => response.json({ error: error ? String(error) : null })));
const server = app.listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const visit = async (path, cookie) => {
  const response = await fetch(`http://127.0.0.1:${server.address().port}${path}`, { headers: cookie ? { cookie } : {} });
  return { body: await response.json(), cookie: response.headers.get("set-cookie")?.split(";")[0] ?? cookie };
};
const rows = async (query = new azure.TableQuery()) => (await call("queryEntities", table, query, null)).entries;

await test("sessions: a visitor is counted over requests, another one apart", async () => {
  const first = await visit("/count");
  assert.equal(first.body.count, 1);
  assert.equal((await visit("/count", first.cookie)).body.count, 2);
  assert.equal((await visit("/count", first.cookie)).body.count, 3);
  assert.equal((await visit("/count")).body.count, 1);
  assert.equal((await rows()).length, 2);
});
await test("sessions: the row has an expiry date", async () => {
  const [row] = await rows(new azure.TableQuery().top(1));
  assert.ok(row.expiryDate._ instanceof Date && row.expiryDate._ > new Date());
  // The middleware derives it from two readings of the clock: a few milliseconds may be missing.
  const age = JSON.parse(row.data._).cookie.originalMaxAge;
  assert.ok(age > 540_000 && age <= 600_000, `${age}`);
});
await test("sessions: signing out removes the row", async () => {
  const visitor = await visit("/count");
  assert.equal((await visit("/out", visitor.cookie)).body.error, null);
  const again = await visit("/count", visitor.cookie);
  assert.equal(again.body.count, 1);
});
await test("sessions: the store's own functions, and a session that nobody has", async () => {
  const promised = (name, ...given) => new Promise((resolve, reject) => store[name](...given, (error, result) => (error ? reject(error) : resolve(result))));
  await promised("set", "direct-1", { cookie: { originalMaxAge: 1000 }, text: "日本 'q' \" 😀" });
  assert.equal((await promised("get", "direct-1")).text, "日本 'q' \" 😀");
  await promised("touch", "direct-1", { cookie: { originalMaxAge: 1000 }, text: "touched" });
  assert.equal((await promised("get", "direct-1")).text, "touched");
  assert.equal(await promised("get", "nobody"), undefined);
  await promised("destroy", "direct-1");
  await assert.rejects(promised("destroy", "direct-1"), (error) => error.statusCode === 404);
});
await test("sessions: the clean-up deletes what has expired and keeps the rest", async () => {
  const kept = (await rows()).length;
  for (let i = 0; i < 12; i++) await new Promise((resolve) => store.set(`old${i}`, { cookie: { originalMaxAge: -60_000 } }, resolve));
  assert.equal((await rows()).length, kept + 12);
  store.cleanUp();
  for (let wait = 0; wait < 100 && (await rows()).length > kept; wait++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal((await rows()).length, kept);
  assert.deepEqual(problems, []);
});
await call("deleteTable", table);
server.close();
process.exit(0);
