package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func restartCases() {
	test("restart: what was acknowledged is there afterwards", onTable(func(c *Case, table *aztables.Client, _ string) {
		etag := must(table.AddEntity(c.ctx, row(nil), nil)).ETag
		must(table.SubmitTransaction(c.ctx, actions{action(aztables.TransactionTypeAdd, "a", nil), action(aztables.TransactionTypeAdd, "b", nil)}, nil))
		restartServer()
		equal(c, must(table.GetEntity(c.ctx, "p", "r", nil)).ETag, etag)
		equal(c, rowKeys(c, table, ""), "a b r")
	}))

	test("restart: the SDK's retries carry writers over it", onTable(func(c *Case, table *aztables.Client, _ string) {
		type outcome struct {
			rows int
			err  error
		}
		var restarted atomic.Bool
		var before atomic.Int32
		done := make(chan []outcome)
		go func() {
			done <- atOnce(8, func(writer int) outcome {
				// Each writes on for a while after the restart, so that its connection is sure to break.
				n := 0
				for after := 0; after < 5; n++ {
					written := entity(fmt.Sprintf("w%d", writer), fmt.Sprintf("%06d", n), props{"n": n})
					if _, err := table.UpsertEntity(c.ctx, written, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}); err != nil {
						return outcome{n, err}
					}
					if restarted.Load() {
						after++
					} else {
						before.Add(1)
					}
				}
				return outcome{n, nil}
			})
		}()
		time.Sleep(200 * time.Millisecond)
		restartServer()
		restarted.Store(true)
		for writer, result := range <-done {
			c.ok(result.err)
			equal(c, len(list(c, table, fmt.Sprintf("PartitionKey eq 'w%d'", writer))), result.rows)
		}
		c.that(before.Load() > 0, "the restart came before the first write")
	}))

	test("restart: a token goes on afterwards", onTable(func(c *Case, table *aztables.Client, _ string) {
		fill(c, table, "p", 4)
		options := &aztables.ListEntitiesOptions{Top: to.Ptr(int32(2))}
		first := must(table.NewListEntitiesPager(options).NextPage(c.ctx))
		restartServer()
		options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
		equal(c, pageKeys(must(table.NewListEntitiesPager(options).NextPage(c.ctx))), "00002 00003")
	}))
}
