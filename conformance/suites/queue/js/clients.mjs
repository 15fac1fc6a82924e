// How the cases reach the server, and what they ask of errors.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { AnonymousCredential, QueueClient, QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";
import { newName } from "./harness.mjs";

export const endpoint = process.env.TAVOLA_ENDPOINT;
export const account = process.env.TAVOLA_ACCOUNT;
export const key = process.env.TAVOLA_KEY;
export const credential = new StorageSharedKeyCredential(account, key);
export const service = new QueueServiceClient(endpoint, credential);

/** A message that has to be hidden is hidden for this many seconds, whatever the machine does meanwhile. */
export const LONG = 3600;
/** How long to wait for what has to happen within a second or two. */
const WAIT_MS_MAX = 40_000;

export function queueClient(name, options) {
  return new QueueClient(`${endpoint}/${name}`, credential, options);
}

export function sasQueueClient(name, sas) {
  return new QueueClient(`${endpoint}/${name}?${sas}`, new AnonymousCredential());
}

export function sasServiceClient(sas) {
  return new QueueServiceClient(`${endpoint}?${sas}`, new AnonymousCredential());
}

/** Runs `body` with a new queue that holds these messages, and deletes the queue whatever happens. */
export async function withQueue(texts, body) {
  const queue = queueClient(newName());
  await queue.create();
  try {
    for (const text of texts) await queue.sendMessage(text);
    return await body(queue);
  } finally {
    await queue.deleteIfExists();
  }
}

/** A case's body that is given a new queue with these messages. */
export const onQueue = (texts, body) => () => withQueue(texts, body);

/** All messages that can be received now. */
export async function receiveAll(queue, visibilityTimeout = LONG) {
  const all = [];
  for (;;) {
    const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout });
    if (receivedMessageItems.length === 0) return all;
    all.push(...receivedMessageItems);
  }
}

export async function receiveOne(queue, visibilityTimeout = LONG) {
  return (await queue.receiveMessages({ visibilityTimeout })).receivedMessageItems[0];
}

export async function peek(queue, numberOfMessages = 32) {
  return (await queue.peekMessages({ numberOfMessages })).peekedMessageItems;
}

export const textsOf = (messages) => messages.map((message) => message.messageText);
export const count = async (queue) => (await queue.getProperties()).approximateMessagesCount;

/** Repeats `attempt` until it gives something that counts as true, and returns that. */
export async function eventually(attempt, what) {
  for (const deadline = Date.now() + WAIT_MS_MAX; Date.now() < deadline; await sleep(100)) {
    const found = await attempt();
    if (found) return found;
  }
  throw new Error(`not within ${WAIT_MS_MAX} ms: ${what}`);
}

/** The service's code, from the header that the SDK itself reads. */
export function codeOf(error) {
  return error.details?.errorCode ?? error.code;
}

/** Expects `attempt` (a promise or a function) to fail with this status and code; returns the error. */
export async function refused(attempt, status, code) {
  let error;
  try {
    await (typeof attempt === "function" ? attempt() : attempt);
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `expected ${status} ${code}, but it succeeded`);
  assert.deepEqual([error.statusCode, codeOf(error)], [status, code], error.message);
  return error;
}

export async function collect(iterator) {
  const all = [];
  for await (const one of iterator) all.push(one);
  return all;
}

export const inAnHour = () => new Date(Date.now() + LONG * 1000);
export const anHourAgo = () => new Date(Date.now() - LONG * 1000);
