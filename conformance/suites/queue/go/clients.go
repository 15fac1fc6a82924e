package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// A message that has to be hidden is hidden for this many seconds, whatever the machine does meanwhile.
const long = int32(3600)

// How long to wait for what has to happen within a second or two.
const waitMax = 40 * time.Second

var (
	endpoint   = os.Getenv("TAVOLA_ENDPOINT")
	account    = os.Getenv("TAVOLA_ACCOUNT")
	key        = os.Getenv("TAVOLA_KEY")
	credential = must(azqueue.NewSharedKeyCredential(account, key))
	service    = must(azqueue.NewServiceClientWithSharedKeyCredential(endpoint, credential, nil))
)

type (
	message = azqueue.DequeuedMessage
	queue   = *azqueue.QueueClient
)

// onQueue is a case's body that is given a new queue with these messages, which is deleted afterwards.
func onQueue(texts []string, body func(*Case, queue, string)) func(*Case) {
	return func(c *Case) {
		name := newName()
		must(service.CreateQueue(c.ctx, name, nil))
		defer service.DeleteQueue(context.Background(), name, nil)
		q := service.NewQueueClient(name)
		for _, text := range texts {
			send(c, q, text)
		}
		body(c, q, name)
	}
}

func send(c *Case, q queue, text string) *azqueue.EnqueuedMessage {
	return must(q.EnqueueMessage(c.ctx, text, nil)).Messages[0]
}

// receive takes one message and hides it for that many seconds; nil when there is none.
func receive(c *Case, q queue, seconds int32) *message {
	found := must(q.DequeueMessage(c.ctx, &azqueue.DequeueMessageOptions{VisibilityTimeout: &seconds})).Messages
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// receiveAll takes all messages that can be received now.
func receiveAll(c *Case, q queue) (all []*message) {
	for {
		found := must(q.DequeueMessages(c.ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32)), VisibilityTimeout: to.Ptr(long)})).Messages
		if len(found) == 0 {
			return all
		}
		all = append(all, found...)
	}
}

func peek(c *Case, q queue) []*azqueue.PeekedMessage {
	return must(q.PeekMessages(c.ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})).Messages
}

// peeked joins the texts that can be seen now.
func peeked(c *Case, q queue) string {
	texts := []string{}
	for _, one := range peek(c, q) {
		texts = append(texts, value(one.MessageText))
	}
	return strings.Join(texts, " ")
}

func received(messages []*message) string {
	texts := []string{}
	for _, one := range messages {
		texts = append(texts, value(one.MessageText))
	}
	return strings.Join(texts, " ")
}

func remove(c *Case, q queue, id, receipt *string) error {
	_, err := q.DeleteMessage(c.ctx, *id, *receipt, nil)
	return err
}

func update(c *Case, q queue, id, receipt *string, text string, seconds int32) (*string, error) {
	answer, err := q.UpdateMessage(c.ctx, *id, *receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
	return answer.PopReceipt, err
}

func count(c *Case, q queue) int64 {
	return *must(q.GetProperties(c.ctx, nil)).ApproximateMessagesCount
}

// value is the empty one for nil: the SDK has no text for an empty element.
func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// eventually repeats the attempt until it succeeds.
func eventually(c *Case, what string, attempt func() bool) {
	for deadline := time.Now().Add(waitMax); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if attempt() {
			return
		}
	}
	c.fail("not within %s: %s", waitMax, what)
}

func codeOf(err error) string {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.ErrorCode
	}
	return ""
}

func statusOf(err error) int {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode
	}
	return 0
}

// refused ends the case unless the error has this status and code.
func (c *Case) refused(err error, status int, code string) {
	c.that(err != nil, "expected %d %s, but it succeeded", status, code)
	c.that(statusOf(err) == status && codeOf(err) == code, "expected %d %s, got %d %q: %v", status, code, statusOf(err), codeOf(err), err)
}
