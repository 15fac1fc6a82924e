package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func fill(c *Case, table *aztables.Client, partitionKey string, count int) {
	for start := 0; start < count; start += 100 {
		actions := []aztables.TransactionAction{}
		for n := start; n < min(start+100, count); n++ {
			actions = append(actions, aztables.TransactionAction{
				ActionType: aztables.TransactionTypeAdd,
				Entity:     entity(partitionKey, fmt.Sprintf("%05d", n), props{"n": n}),
			})
		}
		must(table.SubmitTransaction(c.ctx, actions, nil))
	}
}

// pageSizes counts the rows of each page.
func pageSizes(c *Case, table *aztables.Client, options *aztables.ListEntitiesOptions) []int {
	sizes := []int{}
	for pager := table.NewListEntitiesPager(options); pager.More(); {
		sizes = append(sizes, len(must(pager.NextPage(c.ctx)).Entities))
	}
	return sizes
}

func pageKeys(page aztables.ListEntitiesResponse) string {
	keys := []string{}
	for _, data := range page.Entities {
		keys = append(keys, decode(data).RowKey)
	}
	return strings.Join(keys, " ")
}

// resume is a process of its own for the paging cases: it prints the row keys from a token on.
func resume(args []string) {
	options := &aztables.ListEntitiesOptions{Top: to.Ptr(int32(4)), NextPartitionKey: &args[1], NextRowKey: &args[2]}
	keys := []string{}
	for pager := service.NewClient(args[0]).NewListEntitiesPager(options); pager.More(); {
		for _, data := range must(pager.NextPage(context.Background())).Entities {
			keys = append(keys, decode(data).RowKey)
		}
	}
	must(os.Stdout.Write(must(json.Marshal(keys))))
}

func pagingCases() {
	top := func(count int32) *aztables.ListEntitiesOptions { return &aztables.ListEntitiesOptions{Top: &count} }

	test("paging: pages hold what was asked for", onTable(func(c *Case, table *aztables.Client, _ string) {
		fill(c, table, "p", 7)
		equal(c, pageSizes(c, table, top(3)), []int{3, 3, 1})
	}))

	test("paging: no token when the last page is full", onTable(func(c *Case, table *aztables.Client, _ string) {
		fill(c, table, "p", 6)
		equal(c, pageSizes(c, table, top(3)), []int{3, 3})
	}))

	test("paging: 1000 rows a page without a size", onTable(func(c *Case, table *aztables.Client, _ string) {
		fill(c, table, "p", 1001)
		equal(c, pageSizes(c, table, nil), []int{1000, 1})
	}))

	test("paging: more than 1000 a page is InvalidInput", onTable(func(c *Case, table *aztables.Client, _ string) {
		_, err := table.NewListEntitiesPager(top(1001)).NextPage(c.ctx)
		c.refused(err, http.StatusBadRequest, "InvalidInput")
	}))

	test("paging: a token leads over partitions, an empty key among them", onTable(func(c *Case, table *aztables.Client, _ string) {
		for _, key := range []string{"", "a", "o b", "ü%+"} {
			fill(c, table, key, 2)
		}
		equal(c, pageSizes(c, table, top(1)), []int{1, 1, 1, 1, 1, 1, 1, 1})
	}))

	test("paging: a token given explicitly carries a filter on", onTable(func(c *Case, table *aztables.Client, _ string) {
		fill(c, table, "p", 20)
		options := top(4)
		options.Filter = to.Ptr("n ge 5 and n lt 12")
		first := must(table.NewListEntitiesPager(options).NextPage(c.ctx))
		options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
		second := must(table.NewListEntitiesPager(options).NextPage(c.ctx))
		equal(c, pageKeys(first)+" "+pageKeys(second), "00005 00006 00007 00008 00009 00010 00011")
		c.that(second.NextPartitionKey == nil, "a token after the last page")
	}))

	test("paging: a token survives the deletion of the row it names", onTable(func(c *Case, table *aztables.Client, _ string) {
		fill(c, table, "p", 6)
		options := top(2)
		first := must(table.NewListEntitiesPager(options).NextPage(c.ctx))
		must(table.DeleteEntity(c.ctx, "p", "00002", nil))
		options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
		equal(c, pageKeys(must(table.NewListEntitiesPager(options).NextPage(c.ctx))), "00003 00004")
	}))

	test("paging: a token is taken up by a new process", onTable(func(c *Case, table *aztables.Client, name string) {
		fill(c, table, "p", 10)
		first := must(table.NewListEntitiesPager(top(4)).NextPage(c.ctx))
		equal(c, pageKeys(first), "00000 00001 00002 00003")
		output := must(exec.Command(must(os.Executable()), "resume", name, *first.NextPartitionKey, *first.NextRowKey).Output())
		equal(c, string(output), `["00004","00005","00006","00007","00008","00009"]`)
	}))
}
