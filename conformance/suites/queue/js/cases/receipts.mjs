import assert from "node:assert/strict";
import { test } from "../harness.mjs";
import { LONG, eventually, onQueue, peek, receiveAll, receiveOne, refused, textsOf } from "../clients.mjs";

const gone = (attempt) => refused(attempt, 404, "MessageNotFound");

test("receipts: of a send, delete", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("m");
  await queue.deleteMessage(sent.messageId, sent.popReceipt);
  assert.deepEqual(await peek(queue), []);
}));

test("receipts: of a send, update", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("m");
  const updated = await queue.updateMessage(sent.messageId, sent.popReceipt, "changed", 0);
  assert.notEqual(updated.popReceipt, sent.popReceipt);
  assert.ok(updated.nextVisibleOn instanceof Date);
  assert.deepEqual(textsOf(await peek(queue)), ["changed"]);
}));

test("receipts: stale after a receive", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("m");
  const found = await receiveOne(queue);
  await gone(queue.deleteMessage(sent.messageId, sent.popReceipt));
  await gone(queue.updateMessage(sent.messageId, sent.popReceipt, "x", 1));
  await queue.deleteMessage(found.messageId, found.popReceipt);
}));

test("receipts: stale after an update", onQueue(["m"], async (queue) => {
  const found = await receiveOne(queue);
  const updated = await queue.updateMessage(found.messageId, found.popReceipt, undefined, LONG);
  await gone(queue.deleteMessage(found.messageId, found.popReceipt));
  await queue.deleteMessage(found.messageId, updated.popReceipt);
}));

test("receipts: a chain of updates", onQueue(["0"], async (queue) => {
  let { messageId, popReceipt } = await receiveOne(queue);
  for (let n = 1; n <= 10; n += 1) ({ popReceipt } = await queue.updateMessage(messageId, popReceipt, String(n), n === 10 ? 0 : LONG));
  const found = await receiveOne(queue);
  assert.deepEqual([found.messageText, found.dequeueCount], ["10", 2]);
}));

test("receipts: good while nobody else received", onQueue(["m"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue, 1);
  await eventually(async () => (await peek(queue)).length === 1, "it is visible again");
  await queue.deleteMessage(messageId, popReceipt);
}));

test("receipts: an update without text keeps it", onQueue(["kept"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  await queue.updateMessage(messageId, popReceipt, undefined, 0);
  assert.deepEqual(textsOf(await peek(queue)), ["kept"]);
}));

test("receipts: an update with the empty text sets it", onQueue(["m"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  await queue.updateMessage(messageId, popReceipt, "", 0);
  assert.deepEqual(textsOf(await peek(queue)), [""]);
}));

test("receipts: an update to zero puts it behind the visible ones", onQueue(["a", "b"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  await queue.updateMessage(messageId, popReceipt, undefined, 0);
  assert.deepEqual(textsOf(await peek(queue)), ["b", "a"]);
}));

test("receipts: one for a batch, each with its id", onQueue(["a", "b", "c"], async (queue) => {
  const found = await receiveAll(queue);
  assert.equal(new Set(found.map((one) => one.popReceipt)).size, 1);
  for (const { messageId, popReceipt } of found) {
    await queue.deleteMessage(messageId, popReceipt);
    await gone(queue.deleteMessage(messageId, popReceipt));
  }
}));

test("receipts: another's is not found", onQueue(["a", "b"], async (queue) => {
  const [one, other] = [await receiveOne(queue), await receiveOne(queue)];
  await gone(queue.deleteMessage(one.messageId, other.popReceipt));
}));

for (const id of ["00000000-0000-0000-0000-000000000000", "no-guid"]) {
  test(`receipts: the id ${id} is not found`, onQueue([], async (queue) => {
    const { popReceipt } = await queue.sendMessage("m");
    await gone(queue.deleteMessage(id, popReceipt));
  }));
}

for (const receipt of ["invalid", "AgAAAAMAAAAAAAAAAKSnkIyg2QE=Random", "a b"]) {
  test(`receipts: ${receipt} is a wrong parameter`, onQueue([], async (queue) => {
    const { messageId } = await queue.sendMessage("m");
    const error = await refused(queue.deleteMessage(messageId, receipt), 400, "InvalidQueryParameterValue");
    assert.match(JSON.stringify(error.details), /Invalid pop receipt format/);
    await refused(queue.updateMessage(messageId, receipt, "x", 1), 400, "InvalidQueryParameterValue");
  }));
}

test("receipts: those of a deleted queue are not found in the new one", onQueue(["m"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  await queue.delete();
  await queue.create();
  await gone(queue.deleteMessage(messageId, popReceipt));
}));
