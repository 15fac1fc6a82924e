import assert from "node:assert/strict";
import azure from "azure-storage";
import { newName, test } from "../harness.mjs";
import { LONG, onQueue, peek, promising, receive, refused, service, textsOf } from "../clients.mjs";

test("messages: send, peek, receive, delete", onQueue([], async (queue) => {
  const sent = await service.createMessage(queue, "text");
  assert.ok(sent.messageId && sent.popReceipt);
  assert.deepEqual(await peek(queue), ["text"]);
  const [found] = await receive(queue);
  assert.deepEqual([found.messageId, found.messageText, String(found.dequeueCount)], [sent.messageId, "text", "1"]);
  assert.deepEqual(await peek(queue), []);
  await service.deleteMessage(queue, found.messageId, found.popReceipt);
  await refused(service.deleteMessage(queue, found.messageId, found.popReceipt), 404, "MessageNotFound");
}));

test("messages: one by one", onQueue(["a", "b"], async (queue) => {
  assert.equal((await service.peekMessage(queue)).messageText, "a");
  assert.equal((await service.getMessage(queue, { visibilityTimeout: LONG })).messageText, "a");
  assert.equal((await service.getMessage(queue, { visibilityTimeout: LONG })).messageText, "b");
  assert.ok(!(await service.getMessage(queue)));
}));

test("messages: the order of sending", onQueue(["a", "b", "c", "d"], async (queue) => {
  assert.deepEqual(textsOf(await receive(queue, 3)), ["a", "b", "c"]);
  assert.deepEqual(textsOf(await receive(queue, 32)), ["d"]);
}));

for (const [name, text] of Object.entries({
  markup: "<a>&amp;'\"</a>", "other languages": "Grüße 日本語 😀", "blanks at both ends": "  x  ", "line ends": "a\r\nb\nc", tabs: "\ta", JSON: '{"a":1}', empty: "",
})) {
  test(`messages: ${name}`, onQueue([text], async (queue) => assert.deepEqual((await peek(queue)).map((one) => one ?? ""), [text])));
}

test("messages: as base64", onQueue([], async (queue) => {
  const encoding = promising(azure.createQueueService(process.env.TAVOLA_CONNECTION_STRING));
  encoding.messageEncoder = new azure.QueueMessageEncoder.TextBase64QueueMessageEncoder();
  await encoding.createMessage(queue, "a\0b");
  assert.deepEqual(await peek(queue, encoding), ["a\0b"]);
  assert.deepEqual(await peek(queue), ["YQBi"]);
}));

test("messages: update text and visibility", onQueue(["old"], async (queue) => {
  const [found] = await receive(queue);
  const updated = await service.updateMessage(queue, found.messageId, found.popReceipt, 0, { messageText: "new" });
  assert.notEqual(updated.popReceipt, found.popReceipt);
  assert.deepEqual(await peek(queue), ["new"]);
  await refused(service.updateMessage(queue, found.messageId, found.popReceipt, 0, { messageText: "x" }), 404, "MessageNotFound");
}));

test("messages: update of the visibility alone", onQueue(["kept"], async (queue) => {
  const [found] = await receive(queue);
  await service.updateMessage(queue, found.messageId, found.popReceipt, 0);
  assert.deepEqual(await peek(queue), ["kept"]);
}));

test("messages: hidden, and with a life", onQueue([], async (queue) => {
  await service.createMessage(queue, "hidden", { visibilityTimeout: LONG, messageTimeToLive: 2 * LONG });
  assert.deepEqual(await peek(queue), []);
  assert.equal(String((await service.getQueueMetadata(queue)).approximateMessageCount), "1");
  await refused(service.createMessage(queue, "x", { visibilityTimeout: 5, messageTimeToLive: 5 }), 400, "InvalidQueryParameterValue");
}));

test("messages: clear", onQueue(["a", "b"], async (queue) => {
  await service.clearMessages(queue);
  assert.deepEqual(await peek(queue), []);
}));

test("messages: of a missing queue", () => refused(service.createMessage(newName(), "x"), 404, "QueueNotFound"));

test("messages: too many at once", onQueue([], (queue) => refused(service.peekMessages(queue, { numOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue")));

test("messages: too large", onQueue([], (queue) => refused(service.createMessage(queue, "x".repeat(65537)), 413, "RequestBodyTooLarge")));
