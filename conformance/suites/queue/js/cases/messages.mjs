import assert from "node:assert/strict";
import { test } from "../harness.mjs";
import { LONG, count, eventually, onQueue, peek, receiveAll, receiveOne, refused, textsOf } from "../clients.mjs";

const WEEK = 7 * 24 * 3600;
const seconds = (from, to) => (to - from) / 1000;

test("messages: what sending tells", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("text");
  assert.match(sent.messageId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.ok(sent.popReceipt);
  assert.equal(seconds(sent.insertedOn, sent.expiresOn), WEEK);
  assert.deepEqual(sent.nextVisibleOn, sent.insertedOn);
}));

test("messages: what receiving tells", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("text", { messageTimeToLive: 2 * LONG });
  const found = await receiveOne(queue);
  assert.deepEqual(
    [found.messageId, found.messageText, found.dequeueCount, found.insertedOn, found.expiresOn],
    [sent.messageId, "text", 1, sent.insertedOn, sent.expiresOn]);
  assert.notEqual(found.popReceipt, sent.popReceipt);
  assert.ok(seconds(found.insertedOn, found.nextVisibleOn) >= LONG);
}));

test("messages: what peeking tells", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("text");
  const [found] = await peek(queue);
  assert.deepEqual(
    [found.messageId, found.messageText, found.dequeueCount, found.insertedOn, found.expiresOn, found.popReceipt, found.nextVisibleOn],
    [sent.messageId, "text", 0, sent.insertedOn, sent.expiresOn, undefined, undefined]);
}));

test("messages: an empty queue", onQueue([], async (queue) => {
  assert.deepEqual((await queue.receiveMessages()).receivedMessageItems, []);
  assert.deepEqual((await queue.peekMessages()).peekedMessageItems, []);
}));

test("messages: one without a number, and thirty-two at most", onQueue(Array.from({ length: 40 }, (_, n) => `${n}`), async (queue) => {
  assert.equal((await queue.peekMessages()).peekedMessageItems.length, 1);
  assert.equal((await peek(queue, 32)).length, 32);
  assert.deepEqual(textsOf((await queue.receiveMessages()).receivedMessageItems), ["0"]);
  assert.deepEqual(textsOf((await queue.receiveMessages({ numberOfMessages: 32 })).receivedMessageItems), Array.from({ length: 32 }, (_, n) => `${n + 1}`));
  assert.deepEqual(textsOf(await receiveAll(queue)), ["33", "34", "35", "36", "37", "38", "39"]);
}));

for (const numberOfMessages of [0, 33, -1]) {
  test(`messages: ${numberOfMessages} at once are refused`, onQueue(["m"], async (queue) => {
    await refused(queue.peekMessages({ numberOfMessages }), 400, "OutOfRangeQueryParameterValue");
    await refused(queue.receiveMessages({ numberOfMessages }), 400, "OutOfRangeQueryParameterValue");
  }));
}

test("messages: the order is that of sending", onQueue(["one", "two", "three"], async (queue) => {
  assert.deepEqual(textsOf(await peek(queue)), ["one", "two", "three"]);
  for (const text of ["one", "two", "three"]) assert.equal((await receiveOne(queue)).messageText, text);
}));

test("messages: received ones are hidden", onQueue(["a", "b"], async (queue) => {
  await receiveOne(queue);
  assert.deepEqual(textsOf(await peek(queue)), ["b"]);
  assert.equal(await count(queue), 2);
}));

test("messages: hidden ones come back and are counted", onQueue(["m"], async (queue) => {
  const first = await receiveOne(queue, 1);
  const second = await eventually(() => receiveOne(queue, LONG), "it is visible again");
  assert.deepEqual([second.messageId, second.dequeueCount], [first.messageId, 2]);
}));

test("messages: sent hidden", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("later", { visibilityTimeout: LONG });
  assert.equal(seconds(sent.insertedOn, sent.nextVisibleOn), LONG);
  await queue.sendMessage("soon", { visibilityTimeout: 1 });
  assert.equal((await eventually(() => receiveOne(queue), "it is visible")).messageText, "soon");
  assert.equal(await receiveOne(queue), undefined);
}));

test("messages: expire", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("short", { messageTimeToLive: 1 });
  assert.equal(seconds(sent.insertedOn, sent.expiresOn), 1);
  await queue.sendMessage("long");
  await eventually(async () => textsOf(await peek(queue)).join() === "long", "it expired");
  await refused(queue.deleteMessage(sent.messageId, sent.popReceipt), 404, "MessageNotFound");
}));

test("messages: live for ever", onQueue([], async (queue) => {
  const sent = await queue.sendMessage("m", { messageTimeToLive: -1 });
  assert.equal(sent.expiresOn.toISOString(), "9999-12-31T23:59:59.000Z");
}));

for (const messageTimeToLive of [0, -2]) {
  test(`messages: a life of ${messageTimeToLive} is refused`, onQueue([], (queue) =>
    refused(queue.sendMessage("m", { messageTimeToLive }), 400, "InvalidQueryParameterValue")));
}

test("messages: hiding as long as living is refused", onQueue([], (queue) =>
  refused(queue.sendMessage("m", { messageTimeToLive: 5, visibilityTimeout: 5 }), 400, "InvalidQueryParameterValue")));

for (const visibilityTimeout of [-1, WEEK + 1]) {
  test(`messages: hiding for ${visibilityTimeout} is refused`, onQueue(["m"], async (queue) => {
    await refused(queue.sendMessage("m", { visibilityTimeout, messageTimeToLive: -1 }), 400, "OutOfRangeQueryParameterValue");
    await refused(queue.receiveMessages({ visibilityTimeout }), 400, "OutOfRangeQueryParameterValue");
    const { messageId, popReceipt } = await receiveOne(queue);
    await refused(queue.updateMessage(messageId, popReceipt, "x", visibilityTimeout), 400, "OutOfRangeQueryParameterValue");
  }));
}

test("messages: receiving without hiding is refused", onQueue(["m"], (queue) =>
  refused(queue.receiveMessages({ visibilityTimeout: 0 }), 400, "OutOfRangeQueryParameterValue")));

test("messages: delete", onQueue(["a", "b"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  await queue.deleteMessage(messageId, popReceipt);
  await refused(queue.deleteMessage(messageId, popReceipt), 404, "MessageNotFound");
  assert.equal(await count(queue), 1);
}));

test("messages: clear", onQueue(["a", "b"], async (queue) => {
  const { messageId, popReceipt } = await receiveOne(queue);
  await queue.clearMessages();
  assert.equal(await count(queue), 0);
  await refused(queue.deleteMessage(messageId, popReceipt), 404, "MessageNotFound");
  await queue.sendMessage("new");
  assert.deepEqual(textsOf(await peek(queue)), ["new"]);
}));
