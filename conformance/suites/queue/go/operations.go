package main

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// scene is what an operation under a signature works with.
type scene struct {
	*Case
	service          *azqueue.ServiceClient
	queue            queue
	other            string
	updated, deleted *message
}

var operations = map[string]func(scene) error{
	"list":                   func(s scene) error { _, err := s.service.NewListQueuesPager(nil).NextPage(s.ctx); return err },
	"get service properties": func(s scene) error { _, err := s.service.GetServiceProperties(s.ctx, nil); return err },
	"create":                 func(s scene) error { _, err := s.service.CreateQueue(s.ctx, s.other, nil); return err },
	"delete queue":           func(s scene) error { _, err := s.service.DeleteQueue(s.ctx, s.other, nil); return err },
	"get metadata":           func(s scene) error { _, err := s.queue.GetProperties(s.ctx, nil); return err },
	"set metadata":           func(s scene) error { _, err := s.queue.SetMetadata(s.ctx, nil); return err },
	"get policies":           func(s scene) error { _, err := s.queue.GetAccessPolicy(s.ctx, nil); return err },
	"set policies":           func(s scene) error { _, err := s.queue.SetAccessPolicy(s.ctx, nil); return err },
	"put":                    func(s scene) error { _, err := s.queue.EnqueueMessage(s.ctx, "x", nil); return err },
	"get":                    func(s scene) error { _, err := s.queue.DequeueMessage(s.ctx, nil); return err },
	"peek":                   func(s scene) error { _, err := s.queue.PeekMessage(s.ctx, nil); return err },
	"update": func(s scene) error {
		_, err := update(s.Case, s.queue, s.updated.MessageID, s.updated.PopReceipt, "x", 0)
		return err
	},
	"delete message": func(s scene) error { return remove(s.Case, s.queue, s.deleted.MessageID, s.deleted.PopReceipt) },
	"clear":          func(s scene) error { _, err := s.queue.ClearMessages(s.ctx, nil); return err },
}

// attempt runs one operation with a token: "allowed", or the code of the refusal.
func attempt(c *Case, operation string, token func(queue string) string) string {
	own, other := newName(), newName()
	must(service.CreateQueue(c.ctx, own, nil))
	defer service.DeleteQueue(context.Background(), own, nil)
	if operation != "create" {
		must(service.CreateQueue(c.ctx, other, nil))
	}
	defer service.DeleteQueue(context.Background(), other, nil)
	q := service.NewQueueClient(own)
	for _, text := range []string{"a", "b", "c"} {
		send(c, q, text)
	}
	query := "?" + token(own)
	err := operations[operation](scene{
		Case:    c,
		service: must(azqueue.NewServiceClientWithNoCredential(endpoint+"/"+query, nil)),
		queue:   must(azqueue.NewQueueClientWithNoCredential(endpoint+"/"+own+query, nil)),
		other:   other, updated: receive(c, q, long), deleted: receive(c, q, long),
	})
	if err == nil {
		return "allowed"
	}
	c.that(statusOf(err) == 403, "%s: %v", operation, err)
	return codeOf(err)
}

// expect ends the case unless the operation ends as it should under each of these.
func expect(c *Case, operation string, each []string, allowed, refusal string, token func(queue, one string) string) {
	for _, one := range each {
		want := refusal
		if strings.Contains(allowed, one) {
			want = "allowed"
		}
		got := attempt(c, operation, func(queue string) string { return token(queue, one) })
		c.that(got == want, "%s by %s: got %s, want %s", operation, one, got, want)
	}
}
