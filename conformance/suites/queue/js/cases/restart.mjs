import assert from "node:assert/strict";
import { restartServer, test } from "../harness.mjs";
import { LONG, count, onQueue, peek, receiveOne, textsOf } from "../clients.mjs";

test("restart: what was acknowledged is there afterwards", onQueue(["a", "b", "c", "d"], async (queue) => {
  await queue.setMetadata({ kept: "1" });
  const claimed = await receiveOne(queue);
  const deleted = await receiveOne(queue);
  await queue.deleteMessage(deleted.messageId, deleted.popReceipt);
  const before = await peek(queue);
  await restartServer();
  assert.deepEqual(await peek(queue), before);
  assert.deepEqual((await queue.getProperties()).metadata, { kept: "1" });
  assert.equal(await count(queue), 3);
  const { popReceipt } = await queue.updateMessage(claimed.messageId, claimed.popReceipt, "changed", LONG);
  await queue.deleteMessage(claimed.messageId, popReceipt);
}));

test("restart: the SDK's retries carry producers over it", onQueue([], async (queue) => {
  const PRODUCERS = 6;
  let restarted = false;
  const acknowledged = [];
  const producer = async (id) => {
    for (let n = 0, after = 0; after < 5; n += 1) {
      await queue.sendMessage(`${id}-${n}`);
      acknowledged.push(`${id}-${n}`);
      if (restarted) after += 1;
    }
  };
  const producers = Promise.all(Array.from({ length: PRODUCERS }, (_, id) => producer(id)));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await restartServer();
  restarted = true;
  await producers;
  const found = new Set();
  for (;;) {
    const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: LONG });
    if (receivedMessageItems.length === 0) break;
    for (const text of textsOf(receivedMessageItems)) found.add(text);
  }
  assert.deepEqual(acknowledged.filter((text) => !found.has(text)), []);
}));
