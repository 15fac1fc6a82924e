// How cases declare indexes, wait until they can be used, and ask which one a query used.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { collect, tableClient, withTable } from "./clients.mjs";

const POLL_MS = 20;
const TOWNS = ["Redmond", "Seattle", "Portland", "Chicago", "Boston", "Zürich"];
const NAMES = ["Smith", "Jones", "Robinson", "Brown", "Clarke", "Green", "Howard"];

export const definitions = tableClient("TavolaIndexes");

/** The indexes of one table: entities of `TavolaIndexes` whose partition is the name of the table. */
export class Indexes {
  constructor(table) {
    this.table = table.tableName;
  }

  entity(name, properties) {
    return { partitionKey: this.table, rowKey: name, ...properties };
  }

  declare(name, properties) {
    return definitions.createEntity(this.entity(name, properties));
  }

  get(name) {
    return definitions.getEntity(this.table, name);
  }

  async waitFor(name, state = "Readable") {
    for (;;) {
      const found = await this.get(name);
      if (found.State === state) return found;
      assert.equal(found.State, "Building", `${name} on its way to ${state}`);
      await sleep(POLL_MS);
    }
  }

  /** Declares an index, or another definition for it, and waits until it can be used. */
  async build(name, properties) {
    await definitions.upsertEntity(this.entity(name, properties), "Replace");
    return this.waitFor(name);
  }

  async names() {
    const own = definitions.listEntities({ queryOptions: { filter: `PartitionKey eq '${this.table}'` } });
    return (await collect(own)).map((one) => one.rowKey);
  }

  drop(name) {
    return definitions.deleteEntity(this.table, name);
  }

  /** Has the server compare the index with its table, and returns what it says. */
  async verify(name) {
    await definitions.updateEntity(this.entity(name, { Verify: true }), "Merge");
    for (;;) {
      const { Verify } = await this.get(name);
      if (Verify !== "running") return Verify;
      await sleep(POLL_MS);
    }
  }
}

/** A customer with a town and a name; every tenth has no name, every eleventh no town. */
function customer(number, count) {
  const one = {
    partitionKey: `shard${Math.floor((number * 3) / count)}`, rowKey: String(number).padStart(4, "0"),
    Email: `c${number}@example.com`, Age: number % 60,
  };
  if (number % 10) one.LastName = NAMES[number % NAMES.length];
  if (number % 11) one.Town = TOWNS[number % TOWNS.length];
  return one;
}

/** Inserts entities a hundred at a time; those of a partition stand side by side. */
export async function fill(table, entities) {
  let waiting = [];
  for (const [at, one] of entities.entries()) {
    waiting.push(["create", one]);
    if (waiting.length === 100 || entities[at + 1]?.partitionKey !== one.partitionKey) {
      await table.submitTransaction(waiting);
      waiting = [];
    }
  }
}

/** A case's body that is given a table of customers and its indexes. */
export const onCustomers = (count, body) => () => withTable(async (table) => {
  await fill(table, Array.from({ length: count }, (_, number) => customer(number, count)));
  return body(table, new Indexes(table));
});

/** A case's body that is given a table of these entities and its indexes. */
export const onEntities = (entities, body) => () => withTable(async (table) => {
  for (const one of entities) await table.createEntity(one);
  return body(table, new Indexes(table));
});

/** Runs a query that says how its rows were found; `hint` names the index to use, or `none`. */
export async function explain(table, filter, { hint, select, maxPageSize } = {}) {
  const pages = [];
  const customHeaders = { "x-tavola-explain": "true", ...(hint && { "x-tavola-index": hint }) };
  const onResponse = ({ headers }) => pages.push(headers);
  const paged = table.listEntities({ queryOptions: { filter, select }, requestOptions: { customHeaders }, onResponse });
  const found = maxPageSize ? (await collect(paged.byPage({ maxPageSize }))).flat() : await collect(paged);
  const words = ["query-kind", "index", "index-use"].map((name) => pages[0].get(`x-tavola-${name}`));
  return { found, used: words.filter(Boolean).join(" "), notUsed: pages[0].get("x-tavola-index-not-used"), pages };
}

export async function all(table, filter, maxPageSize = 1000) {
  return (await collect(table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize }))).flat();
}
