package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

const week = int32(7 * 24 * 3600)

func messageCases() {
	test("messages: what sending tells", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := send(c, q, "text")
		c.that(len(*sent.MessageID) == 36 && *sent.PopReceipt != "", "%v", sent)
		equal(c, sent.ExpirationTime.Sub(*sent.InsertionTime), 7*24*time.Hour)
		equal(c, *sent.TimeNextVisible, *sent.InsertionTime)
	}))

	test("messages: what receiving tells", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := send(c, q, "text")
		found := receive(c, q, long)
		equal(c, []string{*found.MessageID, *found.MessageText}, []string{*sent.MessageID, "text"})
		equal(c, []time.Time{*found.InsertionTime, *found.ExpirationTime}, []time.Time{*sent.InsertionTime, *sent.ExpirationTime})
		equal(c, *found.DequeueCount, 1)
		c.that(*found.PopReceipt != *sent.PopReceipt, "the receipt has not changed")
		c.that(found.TimeNextVisible.Sub(*found.InsertionTime) >= time.Hour, "%v", found)
	}))

	test("messages: what peeking tells", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := send(c, q, "text")
		found := peek(c, q)[0]
		equal(c, []string{*found.MessageID, *found.MessageText}, []string{*sent.MessageID, "text"})
		equal(c, *found.DequeueCount, 0)
	}))

	test("messages: an empty queue", onQueue(nil, func(c *Case, q queue, _ string) {
		equal(c, len(must(q.DequeueMessage(c.ctx, nil)).Messages), 0)
		equal(c, len(must(q.PeekMessage(c.ctx, nil)).Messages), 0)
	}))

	numbers := []string{}
	for n := range 40 {
		numbers = append(numbers, strconv.Itoa(n))
	}
	test("messages: thirty-two at most, in the order of sending", onQueue(numbers, func(c *Case, q queue, _ string) {
		equal(c, len(peek(c, q)), 32)
		equal(c, *receive(c, q, long).MessageText, "0")
		equal(c, received(receiveAll(c, q)), strings.Join(numbers[1:], " "))
	}))

	for _, many := range []int32{0, 33, -1} {
		test(fmt.Sprintf("messages: %d at once are refused", many), onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
			_, err := q.DequeueMessages(c.ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &many})
			c.refused(err, 400, "OutOfRangeQueryParameterValue")
			_, err = q.PeekMessages(c.ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &many})
			c.refused(err, 400, "OutOfRangeQueryParameterValue")
		}))
	}

	test("messages: received ones are hidden and counted", onQueue([]string{"a", "b"}, func(c *Case, q queue, _ string) {
		receive(c, q, long)
		equal(c, peeked(c, q), "b")
		equal(c, count(c, q), 2)
	}))

	test("messages: hidden ones come back", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		first := receive(c, q, 1)
		var second *message
		eventually(c, "it is visible again", func() bool { second = receive(c, q, long); return second != nil })
		equal(c, *second.MessageID, *first.MessageID)
		equal(c, *second.DequeueCount, 2)
	}))

	test("messages: sent hidden", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := must(q.EnqueueMessage(c.ctx, "later", &azqueue.EnqueueMessageOptions{VisibilityTimeout: to.Ptr(long)})).Messages[0]
		equal(c, sent.TimeNextVisible.Sub(*sent.InsertionTime), time.Hour)
		must(q.EnqueueMessage(c.ctx, "soon", &azqueue.EnqueueMessageOptions{VisibilityTimeout: to.Ptr(int32(1))}))
		eventually(c, "it is visible", func() bool { return peeked(c, q) == "soon" })
	}))

	test("messages: expire", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := must(q.EnqueueMessage(c.ctx, "short", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(1))})).Messages[0]
		equal(c, sent.ExpirationTime.Sub(*sent.InsertionTime), time.Second)
		eventually(c, "it expired", func() bool { return peeked(c, q) == "" })
		c.refused(remove(c, q, sent.MessageID, sent.PopReceipt), 404, "MessageNotFound")
	}))

	test("messages: live for ever", onQueue(nil, func(c *Case, q queue, _ string) {
		sent := must(q.EnqueueMessage(c.ctx, "m", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(-1))})).Messages[0]
		equal(c, sent.ExpirationTime.UTC().Format(time.RFC3339), "9999-12-31T23:59:59Z")
	}))

	for _, life := range []int32{0, -2} {
		test(fmt.Sprintf("messages: a life of %d is refused", life), onQueue(nil, func(c *Case, q queue, _ string) {
			_, err := q.EnqueueMessage(c.ctx, "m", &azqueue.EnqueueMessageOptions{TimeToLive: &life})
			c.refused(err, 400, "InvalidQueryParameterValue")
		}))
	}

	test("messages: hiding as long as living is refused", onQueue(nil, func(c *Case, q queue, _ string) {
		_, err := q.EnqueueMessage(c.ctx, "m", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(5)), VisibilityTimeout: to.Ptr(int32(5))})
		c.refused(err, 400, "InvalidQueryParameterValue")
	}))

	for _, hidden := range []int32{-1, week + 1} {
		test(fmt.Sprintf("messages: hiding for %d is refused", hidden), onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
			_, err := q.EnqueueMessage(c.ctx, "m", &azqueue.EnqueueMessageOptions{VisibilityTimeout: &hidden, TimeToLive: to.Ptr(int32(-1))})
			c.refused(err, 400, "OutOfRangeQueryParameterValue")
			_, err = q.DequeueMessage(c.ctx, &azqueue.DequeueMessageOptions{VisibilityTimeout: &hidden})
			c.refused(err, 400, "OutOfRangeQueryParameterValue")
			found := receive(c, q, long)
			_, err = update(c, q, found.MessageID, found.PopReceipt, "x", hidden)
			c.refused(err, 400, "OutOfRangeQueryParameterValue")
		}))
	}

	test("messages: delete", onQueue([]string{"a", "b"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		c.ok(remove(c, q, found.MessageID, found.PopReceipt))
		c.refused(remove(c, q, found.MessageID, found.PopReceipt), 404, "MessageNotFound")
		equal(c, count(c, q), 1)
	}))

	test("messages: clear", onQueue([]string{"a", "b"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		must(q.ClearMessages(c.ctx, nil))
		equal(c, count(c, q), 0)
		c.refused(remove(c, q, found.MessageID, found.PopReceipt), 404, "MessageNotFound")
		send(c, q, "new")
		equal(c, peeked(c, q), "new")
	}))
}
