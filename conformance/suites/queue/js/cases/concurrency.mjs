import assert from "node:assert/strict";
import { newName, test } from "../harness.mjs";
import { LONG, codeOf, count, onQueue, peek, queueClient, receiveOne, textsOf } from "../clients.mjs";

const TASKS = 16;
const MESSAGES = 300;
const tasks = (body, length = TASKS) => Promise.all(Array.from({ length }, (_, task) => body(task)));
const outcome = (promise) => promise.then(() => "won", (error) => codeOf(error));
const tally = (results, wanted) => results.filter((result) => result === wanted).length;

test("concurrency: no message is handed out twice", onQueue([], async (queue) => {
  await tasks((n) => queue.sendMessage(String(n)), MESSAGES);
  const taken = [];
  await tasks(async (task) => {
    for (;;) {
      const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 1 + (task % 8), visibilityTimeout: LONG });
      if (receivedMessageItems.length === 0) return;
      taken.push(...textsOf(receivedMessageItems));
    }
  });
  assert.equal(taken.length, MESSAGES);
  assert.equal(new Set(taken).size, MESSAGES);
}));

test("concurrency: producers and consumers lose nothing", onQueue([], async (queue) => {
  const taken = [];
  let producing = true;
  const consumers = tasks(async () => {
    for (;;) {
      const last = !producing;
      const message = await receiveOne(queue);
      if (!message && last) return;
      if (!message) continue;
      taken.push(message.messageText);
      await queue.deleteMessage(message.messageId, message.popReceipt);
    }
  }, 6);
  await tasks(async (task) => {
    for (let n = 0; n < 20; n += 1) await queue.sendMessage(`${task}-${n}`);
  }, 6);
  producing = false;
  await consumers;
  assert.equal(taken.length, 120);
  assert.equal(new Set(taken).size, 120);
  assert.equal(await count(queue), 0);
}));

test("concurrency: one of many deletes wins", onQueue(["m"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  const results = await tasks(() => outcome(queue.deleteMessage(messageId, popReceipt)));
  assert.deepEqual([tally(results, "won"), tally(results, "MessageNotFound")], [1, TASKS - 1]);
}));

test("concurrency: one of many updates wins", onQueue(["m"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  const results = await tasks((task) => outcome(queue.updateMessage(messageId, popReceipt, String(task), 0)));
  assert.deepEqual([tally(results, "won"), tally(results, "MessageNotFound")], [1, TASKS - 1]);
  assert.deepEqual(textsOf(await peek(queue)), [String(results.indexOf("won"))]);
}));

test("concurrency: one of many creates is the first", async () => {
  const queue = queueClient(newName());
  const results = await tasks(() => queue.createIfNotExists());
  assert.equal(results.filter(({ succeeded }) => succeeded).length, 1);
  await queue.delete();
});
