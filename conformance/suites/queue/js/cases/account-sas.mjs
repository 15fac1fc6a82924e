import assert from "node:assert/strict";
import { AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, SASProtocol, generateAccountSASQueryParameters } from "@azure/storage-queue";
import { test } from "../harness.mjs";
import { anHourAgo, credential, inAnHour, onQueue, peek, refused, sasQueueClient, textsOf } from "../clients.mjs";
import { OPERATIONS, attempt } from "./operations.mjs";

const RULES = {
  list: ["s", "l"], "get service properties": ["s", "r"], create: ["c", "cw"], "delete queue": ["c", "d"], "get metadata": ["c", "r"], "set metadata": ["c", "w"],
  put: ["o", "a"], get: ["o", "p"], peek: ["o", "r"], update: ["oc", "u"], "delete message": ["oc", "p"], clear: ["oc", "d"],
};

const token = (fields) => generateAccountSASQueryParameters({
  services: AccountSASServices.parse(fields.services ?? "q").toString(),
  resourceTypes: AccountSASResourceTypes.parse(fields.types ?? "sco").toString(),
  permissions: AccountSASPermissions.parse(fields.permissions ?? "rwdlacup"),
  expiresOn: inAnHour(), ...fields.more,
}, credential).toString();

for (const operation of OPERATIONS.filter((one) => RULES[one])) {
  const [types, letters] = RULES[operation];
  test(`account SAS: ${operation} by each letter`, async () => {
    for (const permissions of "rwdlacup") {
      const expected = letters.includes(permissions) ? "allowed" : "AuthorizationPermissionMismatch";
      assert.equal(await attempt(operation, () => token({ permissions })), expected, permissions);
    }
  });
  test(`account SAS: ${operation} by each resource type`, async () => {
    for (const type of "sco") {
      const expected = types.includes(type) ? "allowed" : "AuthorizationResourceTypeMismatch";
      assert.equal(await attempt(operation, () => token({ types: type })), expected, type);
    }
  });
}

for (const operation of ["get policies", "set policies"]) {
  test(`account SAS: ${operation} never`, async () => assert.equal(await attempt(operation, () => token({})), "AuthorizationFailure"));
}

test("account SAS: of other services", async () =>
  assert.equal(await attempt("peek", () => token({ services: "bft" })), "AuthorizationServiceMismatch"));

test("account SAS: of all services", async () => assert.equal(await attempt("peek", () => token({ services: "bfqt" })), "allowed"));

for (const [name, more, expected] of [
  ["begun", { startsOn: anHourAgo() }, "allowed"], ["not yet begun", { startsOn: inAnHour(), expiresOn: new Date(Date.now() + 7200_000) }, "AuthenticationFailed"],
  ["expired", { expiresOn: anHourAgo() }, "AuthenticationFailed"], ["from here", { ipRange: { start: "127.0.0.1" } }, "allowed"],
  ["from elsewhere", { ipRange: { start: "10.0.0.1", end: "10.0.0.9" } }, "AuthorizationSourceIPMismatch"],
  ["by any protocol", { protocol: SASProtocol.HttpsAndHttp }, "allowed"], ["by https only", { protocol: SASProtocol.Https }, "AuthorizationProtocolMismatch"],
  ["of version 2019-12-12", { version: "2019-12-12" }, "allowed"],
]) {
  test(`account SAS: ${name}`, async () => assert.equal(await attempt("peek", () => token({ more })), expected));
}

test("account SAS: changed", onQueue(["m"], async (queue) => {
  const sas = token({ permissions: "r" });
  assert.deepEqual(textsOf(await peek(sasQueueClient(queue.name, sas))), ["m"]);
  await refused(peek(sasQueueClient(queue.name, sas.replace("sp=r", "sp=rp"))), 403, "AuthenticationFailed");
}));
