package main

import (
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
)

func receiptCases() {
	test("receipts: of a send, delete", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := send(c, q, "m")
		c.ok(remove(c, q, sent.MessageID, sent.PopReceipt))
		equal(c, peeked(c, q), "")
	}))

	test("receipts: of a send, update", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := send(c, q, "m")
		receipt := must(update(c, q, sent.MessageID, sent.PopReceipt, "changed", 0))
		c.that(*receipt != *sent.PopReceipt, "the receipt has not changed")
		equal(c, peeked(c, q), "changed")
	}))

	test("receipts: stale after a receive", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := send(c, q, "m")
		found := receive(c, q, long)
		c.refused(remove(c, q, sent.MessageID, sent.PopReceipt), 404, "MessageNotFound")
		_, err := update(c, q, sent.MessageID, sent.PopReceipt, "x", 1)
		c.refused(err, 404, "MessageNotFound")
		c.ok(remove(c, q, found.MessageID, found.PopReceipt))
	}))

	test("receipts: stale after an update", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		receipt := must(update(c, q, found.MessageID, found.PopReceipt, "m", long))
		c.refused(remove(c, q, found.MessageID, found.PopReceipt), 404, "MessageNotFound")
		c.ok(remove(c, q, found.MessageID, receipt))
	}))

	test("receipts: a chain of updates", onQueue([]string{"0"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		receipt := found.PopReceipt
		for n := range 10 {
			receipt = must(update(c, q, found.MessageID, receipt, strconv.Itoa(n), long))
		}
		must(update(c, q, found.MessageID, receipt, "last", 0))
		again := receive(c, q, long)
		equal(c, *again.MessageText, "last")
		equal(c, *again.DequeueCount, 2)
	}))

	test("receipts: good while nobody else received", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, 1)
		eventually(c, "it is visible again", func() bool { return peeked(c, q) == "m" })
		c.ok(remove(c, q, found.MessageID, found.PopReceipt))
	}))

	test("receipts: an update with the empty text sets it", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		must(update(c, q, found.MessageID, found.PopReceipt, "", 0))
		equal(c, []int{len(peek(c, q)), len(peeked(c, q))}, []int{1, 0})
	}))

	test("receipts: an update to zero puts it behind the visible ones", onQueue([]string{"a", "b"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		must(update(c, q, found.MessageID, found.PopReceipt, "a", 0))
		equal(c, peeked(c, q), "b a")
	}))

	test("receipts: one for a batch, each with its id", onQueue([]string{"a", "b", "c"}, func(c *Case, q queue, _ string) {
		for _, found := range receiveAll(c, q) {
			c.ok(remove(c, q, found.MessageID, found.PopReceipt))
			c.refused(remove(c, q, found.MessageID, found.PopReceipt), 404, "MessageNotFound")
		}
	}))

	test("receipts: another's is not found", onQueue([]string{"a", "b"}, func(c *Case, q queue, _ string) {
		one, other := receive(c, q, long), receive(c, q, long)
		c.refused(remove(c, q, one.MessageID, other.PopReceipt), 404, "MessageNotFound")
	}))

	for _, id := range []string{"00000000-0000-0000-0000-000000000000", "no-guid"} {
		test("receipts: the id "+id+" is not found", onQueue(nil, func(c *Case, q queue, _ string) {
			c.refused(remove(c, q, &id, send(c, q, "m").PopReceipt), 404, "MessageNotFound")
		}))
	}

	for _, receipt := range []string{"invalid", "AgAAAAMAAAAAAAAAAKSnkIyg2QE=Random"} {
		test("receipts: "+receipt+" is a wrong parameter", onQueue(nil, func(c *Case, q queue, _ string) {
			sent := send(c, q, "m")
			c.refused(remove(c, q, sent.MessageID, &receipt), 400, "InvalidQueryParameterValue")
			_, err := update(c, q, sent.MessageID, to.Ptr(receipt), "x", 1)
			c.refused(err, 400, "InvalidQueryParameterValue")
		}))
	}

	test("receipts: those of a deleted queue are not found in the new one", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		must(q.Delete(c.ctx, nil))
		must(q.Create(c.ctx, nil))
		c.refused(remove(c, q, found.MessageID, found.PopReceipt), 404, "MessageNotFound")
	}))
}
