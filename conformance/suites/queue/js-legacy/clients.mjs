// How the cases reach the server: promises over the callbacks of azure-storage.

import assert from "node:assert/strict";
import azure from "azure-storage";
import { newName } from "./harness.mjs";

export const endpoint = process.env.TAVOLA_ENDPOINT;
export const account = process.env.TAVOLA_ACCOUNT;
export const key = process.env.TAVOLA_KEY;
/** A message that has to be hidden is hidden for this many seconds, whatever the machine does meanwhile. */
export const LONG = 3600;

/** Wraps a service so that its methods return promises of their result. */
export function promising(service) {
  return new Proxy(service, {
    get(target, name) {
      const member = target[name];
      const asynchronous = typeof member === "function" && !/^(generate|get(Url|Hostname))/.test(name);
      if (!asynchronous) return typeof member === "function" ? member.bind(target) : member;
      return (...args) =>
        new Promise((resolve, reject) =>
          member.call(target, ...args, (error, result) => (error ? reject(error) : resolve(result))));
    },
  });
}

export const service = promising(azure.createQueueService(process.env.TAVOLA_CONNECTION_STRING));

/** A case's body that is given the name of a new queue with these messages. */
export const onQueue = (texts, body) => async () => {
  const queue = newName();
  await service.createQueue(queue);
  try {
    for (const text of texts) await service.createMessage(queue, text);
    await body(queue);
  } finally {
    await service.deleteQueueIfExists(queue);
  }
};

export async function refused(attempt, status, code) {
  let error;
  try {
    await attempt;
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `expected ${status} ${code}, but it succeeded`);
  assert.deepEqual([error.statusCode, error.code], [status, code], error.message);
  return error;
}

export const textsOf = (messages) => messages.map((message) => message.messageText);
export const peek = async (queue, from = service) => textsOf(await from.peekMessages(queue, { numOfMessages: 32 }));
export const receive = (queue, numOfMessages = 1) => service.getMessages(queue, { numOfMessages, visibilityTimeout: LONG });
