package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

type metadata = map[string]*string

// plain is metadata by names in lower case: headers of Go have another case than those on the wire.
func plain(found metadata) map[string]string {
	out := map[string]string{}
	for name, value := range found {
		out[strings.ToLower(name)] = *value
	}
	return out
}

func list(c *Case, options *azqueue.ListQueuesOptions) (all []*azqueue.Queue, pages []int) {
	for pager := service.NewListQueuesPager(options); pager.More(); {
		page := must(pager.NextPage(c.ctx))
		all = append(all, page.Queues...)
		pages = append(pages, len(page.Queues))
	}
	return all, pages
}

func names(queues []*azqueue.Queue) []string {
	out := []string{}
	for _, one := range queues {
		out = append(out, *one.Name)
	}
	return out
}

// listed is a case's body that is given a prefix and the names of queues under it, in order.
func listed(body func(c *Case, prefix string, ordered []string)) func(*Case) {
	return func(c *Case) {
		prefix, all := newName(), []string{}
		for _, end := range []string{"c", "a", "b10", "b9", "0"} {
			name := prefix + "-" + end
			must(service.CreateQueue(c.ctx, name, &azqueue.CreateOptions{Metadata: metadata{"end": to.Ptr(end)}}))
			defer service.DeleteQueue(c.ctx, name, nil)
			all = append(all, name)
		}
		slices.Sort(all)
		body(c, prefix, all)
	}
}

func queueCases() {
	test("queues: create, properties, delete", func(c *Case) {
		q := service.NewQueueClient(newName())
		_, err := q.GetProperties(c.ctx, nil)
		c.refused(err, 404, "QueueNotFound")
		must(q.Create(c.ctx, nil))
		found := must(q.GetProperties(c.ctx, nil))
		equal(c, *found.ApproximateMessagesCount, 0)
		equal(c, len(found.Metadata), 0)
		must(q.Delete(c.ctx, nil))
		_, err = q.Delete(c.ctx, nil)
		c.refused(err, 404, "QueueNotFound")
	})

	test("queues: create again is fine with the same metadata only", onQueue(nil, func(c *Case, q queue, _ string) {
		must(q.Create(c.ctx, nil))
		_, err := q.Create(c.ctx, &azqueue.CreateOptions{Metadata: metadata{"a": to.Ptr("1")}})
		c.refused(err, 409, "QueueAlreadyExists")
		must(q.SetMetadata(c.ctx, &azqueue.SetMetadataOptions{Metadata: metadata{"a": to.Ptr("1")}}))
		must(q.Create(c.ctx, &azqueue.CreateOptions{Metadata: metadata{"a": to.Ptr("1")}}))
		_, err = q.Create(c.ctx, nil)
		c.refused(err, 409, "QueueAlreadyExists")
	}))

	test("queues: metadata comes back, is replaced and cleared", onQueue(nil, func(c *Case, q queue, _ string) {
		must(q.SetMetadata(c.ctx, &azqueue.SetMetadataOptions{Metadata: metadata{"one": to.Ptr("1"), "a_b": to.Ptr("x=y; z"), "a0": to.Ptr("0")}}))
		equal(c, plain(must(q.GetProperties(c.ctx, nil)).Metadata), map[string]string{"one": "1", "a_b": "x=y; z", "a0": "0"})
		must(q.SetMetadata(c.ctx, &azqueue.SetMetadataOptions{Metadata: metadata{"two": to.Ptr("2")}}))
		equal(c, plain(must(q.GetProperties(c.ctx, nil)).Metadata), map[string]string{"two": "2"})
		must(q.SetMetadata(c.ctx, nil))
		equal(c, len(must(q.GetProperties(c.ctx, nil)).Metadata), 0)
	}))

	for _, name := range []string{"in-valid", "1st", "a!b"} {
		test("queues: metadata named "+name+" is refused", onQueue(nil, func(c *Case, q queue, _ string) {
			_, err := q.SetMetadata(c.ctx, &azqueue.SetMetadataOptions{Metadata: metadata{name: to.Ptr("x")}})
			c.refused(err, 400, "InvalidMetadata")
		}))
	}

	for name, code := range map[string]string{
		"ab": "OutOfRangeInput", strings.Repeat("a", 64): "OutOfRangeInput", "a_b": "InvalidResourceName", "-abc": "InvalidResourceName",
		"abc-": "InvalidResourceName", "a--b": "InvalidResourceName", "Abc": "InvalidResourceName", "a.b": "InvalidResourceName",
	} {
		test("queues: the name "+name+" is refused", func(c *Case) {
			_, err := service.CreateQueue(c.ctx, name, nil)
			c.refused(err, 400, code)
		})
	}

	test("queues: a name is free at once after a delete, and its messages are gone", onQueue([]string{"old"}, func(c *Case, q queue, _ string) {
		must(q.Delete(c.ctx, nil))
		must(q.Create(c.ctx, nil))
		equal(c, count(c, q), 0)
	}))

	missing := service.NewQueueClient(newName())
	for name, call := range map[string]func(*Case) error{
		"set metadata": func(c *Case) error { _, err := missing.SetMetadata(c.ctx, nil); return err },
		"get policies": func(c *Case) error { _, err := missing.GetAccessPolicy(c.ctx, nil); return err },
		"set policies": func(c *Case) error { _, err := missing.SetAccessPolicy(c.ctx, nil); return err },
		"send":         func(c *Case) error { _, err := missing.EnqueueMessage(c.ctx, "x", nil); return err },
		"receive":      func(c *Case) error { _, err := missing.DequeueMessage(c.ctx, nil); return err },
		"peek":         func(c *Case) error { _, err := missing.PeekMessage(c.ctx, nil); return err },
		"clear":        func(c *Case) error { _, err := missing.ClearMessages(c.ctx, nil); return err },
		"delete message": func(c *Case) error {
			return remove(c, missing, to.Ptr("0b34b2d6-0a2b-4fb5-8a37-1b7d5ee3b2f1"), to.Ptr("AgAAAAMAAAAAAAAAAKSnkIyg2QE="))
		},
	} {
		test("queues: "+name+" on a missing one", func(c *Case) { c.refused(call(c), 404, "QueueNotFound") })
	}

	test("list: by prefix and in order", listed(func(c *Case, prefix string, ordered []string) {
		found, _ := list(c, &azqueue.ListQueuesOptions{Prefix: &prefix})
		equal(c, names(found), ordered)
		equal(c, len(found[0].Metadata), 0)
	}))

	test("list: with metadata", listed(func(c *Case, prefix string, ordered []string) {
		found, _ := list(c, &azqueue.ListQueuesOptions{Prefix: &prefix, Include: azqueue.ListQueuesInclude{Metadata: true}})
		for at, one := range found {
			equal(c, prefix+"-"+plain(one.Metadata)["end"], ordered[at])
		}
	}))

	test("list: page by page", listed(func(c *Case, prefix string, ordered []string) {
		found, pages := list(c, &azqueue.ListQueuesOptions{Prefix: &prefix, MaxResults: to.Ptr(int32(2))})
		equal(c, names(found), ordered)
		equal(c, pages, []int{2, 2, 1})
	}))

	test("list: goes on from a marker", listed(func(c *Case, prefix string, ordered []string) {
		first := must(service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: &prefix, MaxResults: to.Ptr(int32(3))}).NextPage(c.ctx))
		rest, _ := list(c, &azqueue.ListQueuesOptions{Prefix: &prefix, Marker: first.NextMarker})
		equal(c, names(rest), ordered[3:])
	}))

	test("list: a marker of another form is refused", func(c *Case) {
		_, err := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Marker: to.Ptr("garbage")}).NextPage(c.ctx)
		c.refused(err, 400, "OutOfRangeInput")
	})

	for _, size := range []int32{0, -1} {
		test(fmt.Sprintf("list: pages of %d are refused", size), func(c *Case) {
			_, err := service.NewListQueuesPager(&azqueue.ListQueuesOptions{MaxResults: &size}).NextPage(c.ctx)
			c.refused(err, 400, "OutOfRangeQueryParameterValue")
		})
	}
}
