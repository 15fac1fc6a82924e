package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func action(kind aztables.TransactionType, rowKey string, properties props) aztables.TransactionAction {
	return aztables.TransactionAction{ActionType: kind, Entity: entity("p", rowKey, properties)}
}

// matching makes an action conditional.
func matching(etag azcore.ETag, action aztables.TransactionAction) aztables.TransactionAction {
	action.IfMatch = &etag
	return action
}

type actions = []aztables.TransactionAction

// fails expects a transaction to fail like this at this index, and to leave these rows.
//
// The SDK builds its error from the outer answer, 202 without a code; what failed is in the text of the error.
func (c *Case) fails(table *aztables.Client, all actions, code string, index int, left string) {
	_, err := table.SubmitTransaction(c.ctx, all, nil)
	var response *azcore.ResponseError
	c.that(errors.As(err, &response), "expected a ResponseError, got %v", err)
	equal(c, response.StatusCode, http.StatusAccepted)
	for _, part := range []string{`"code":"` + code + `"`, fmt.Sprintf(`"value":"%d:`, index)} {
		c.that(strings.Contains(err.Error(), part), "no %s in %v", part, err)
	}
	equal(c, rowKeys(c, table, ""), left)
}

func transactionCases() {
	const (
		add           = aztables.TransactionTypeAdd
		remove        = aztables.TransactionTypeDelete
		updateMerge   = aztables.TransactionTypeUpdateMerge
		updateReplace = aztables.TransactionTypeUpdateReplace
		insertMerge   = aztables.TransactionTypeInsertMerge
		insertReplace = aztables.TransactionTypeInsertReplace
	)

	test("transactions: one of each action", onTable(func(c *Case, table *aztables.Client, _ string) {
		for _, key := range []string{"merge", "replace", "gone"} {
			must(table.AddEntity(c.ctx, entity("p", key, props{"a": 1}), nil))
		}
		must(table.SubmitTransaction(c.ctx, actions{
			action(add, "new", props{"a": 1}),
			matching(azcore.ETagAny, action(updateMerge, "merge", props{"b": 2})),
			matching(azcore.ETagAny, action(updateReplace, "replace", props{"b": 2})),
			action(insertMerge, "upsertmerge", props{"b": 2}),
			action(insertReplace, "upsertreplace", props{"b": 2}),
			action(remove, "gone", nil),
		}, nil))
		got := map[string]map[string]any{}
		for _, row := range list(c, table, "") {
			got[row.RowKey] = row.Properties
		}
		one, two := int32(1), int32(2)
		equal(c, got, map[string]map[string]any{
			"new": {"a": one}, "merge": {"a": one, "b": two}, "replace": {"b": two}, "upsertmerge": {"b": two}, "upsertreplace": {"b": two},
		})
	}))

	many := func(count int) actions {
		all := actions{}
		for n := range count {
			all = append(all, action(add, fmt.Sprintf("%03d", n), nil))
		}
		return all
	}

	test("transactions: of a single action", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.SubmitTransaction(c.ctx, many(1), nil))
		equal(c, rowKeys(c, table, ""), "000")
	}))

	test("transactions: of 100 actions", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.SubmitTransaction(c.ctx, many(100), nil))
		equal(c, len(list(c, table, "")), 100)
	}))

	test("transactions: every type and odd text in a body", onTable(func(c *Case, table *aztables.Client, _ string) {
		properties := props{
			"text": "--changeset_ \r\n\r\nHTTP/1.1 400 {} 😀", "big": aztables.EDMInt64(-1), "bin": aztables.EDMBinary{1, 2},
			"g": aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
		}
		must(table.SubmitTransaction(c.ctx, actions{action(add, "1", properties), action(add, "2", nil)}, nil))
		equal(c, get(c, table, "p", "1").Properties, map[string]any(properties))
	}))

	test("transactions: an update and a delete with current ETags", onTable(func(c *Case, table *aztables.Client, _ string) {
		first := must(table.AddEntity(c.ctx, entity("p", "1", nil), nil)).ETag
		second := must(table.AddEntity(c.ctx, entity("p", "2", nil), nil)).ETag
		must(table.SubmitTransaction(c.ctx, actions{
			matching(first, action(updateReplace, "1", props{"n": 1})), matching(second, action(remove, "2", nil)),
		}, nil))
		equal(c, rowKeys(c, table, "n eq 1"), "1")
		equal(c, rowKeys(c, table, ""), "1")
	}))

	test("transactions: a row that exists fails with its index", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, entity("p", "2", nil), nil))
		c.fails(table, actions{action(add, "0", nil), action(add, "1", nil), action(add, "2", nil)}, "EntityAlreadyExists", 2, "2")
	}))

	for _, kind := range []aztables.TransactionType{updateMerge, updateReplace, remove} {
		test(fmt.Sprintf("transactions: %s of a missing row fails with its index", kind), onTable(func(c *Case, table *aztables.Client, _ string) {
			c.fails(table, actions{action(add, "0", nil), matching(azcore.ETagAny, action(kind, "1", nil))}, "ResourceNotFound", 1, "")
		}))

		test(fmt.Sprintf("transactions: %s with an old ETag fails with its index", kind), onTable(func(c *Case, table *aztables.Client, _ string) {
			old := must(table.AddEntity(c.ctx, entity("p", "1", nil), nil)).ETag
			must(table.UpdateEntity(c.ctx, entity("p", "1", props{"n": 1}), nil))
			c.fails(table, actions{action(add, "0", nil), matching(old, action(kind, "1", nil))}, "UpdateConditionNotSatisfied", 1, "1")
		}))
	}

	for _, bad := range []struct {
		name    string
		actions actions
		code    string
		index   int
	}{
		{"the same row twice fails at the second", actions{action(add, "0", nil), action(insertMerge, "1", nil), action(insertMerge, "1", nil)}, "InvalidDuplicateRow", 2},
		{"two partitions fail at the first of the other", actions{action(add, "0", nil), {ActionType: add, Entity: entity("q", "1", nil)}}, "CommandsInBatchActOnDifferentPartitions", 1},
		{"101 actions fail at the hundredth", many(101), "InvalidInput", 99},
		{"a value that is too large fails with its index", actions{action(add, "0", nil), action(add, "1", props{"v": strings.Repeat("x", 32*1024+1)})}, "PropertyValueTooLarge", 1},
		{"a bad value fails with its index", actions{action(add, "0", nil), action(add, "1", props{"v": "no", "v@odata.type": "Edm.Guid"})}, "InvalidInput", 1},
		{"a forbidden character in a key fails with its index", actions{action(add, "0", nil), action(add, "a/b", nil)}, "OutOfRangeInput", 1},
		{"a null row key fails with its index", actions{action(add, "0", nil), {ActionType: add, Entity: []byte(`{"PartitionKey":"p","RowKey":null}`)}}, "PropertiesNeedValue", 1},
	} {
		test("transactions: "+bad.name, onTable(func(c *Case, table *aztables.Client, _ string) {
			c.fails(table, bad.actions, bad.code, bad.index, "")
		}))
	}

	test("transactions: a missing table fails at the first", func(c *Case) {
		_, err := service.NewClient(newName()).SubmitTransaction(c.ctx, many(2), nil)
		c.that(err != nil && strings.Contains(err.Error(), `"code":"TableNotFound"`) && strings.Contains(err.Error(), `"value":"0:`), "%v", err)
	})

	test("transactions: over 4 MiB is RequestBodyTooLarge", onTable(func(c *Case, table *aztables.Client, _ string) {
		properties := props{}
		for n := range 15 {
			properties[fmt.Sprintf("p%d", n)] = strings.Repeat("x", 32*1024)
		}
		all := actions{}
		for n := range 10 {
			all = append(all, action(add, fmt.Sprint(n), properties))
		}
		_, err := table.SubmitTransaction(c.ctx, all, nil)
		c.refused(err, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge")
		equal(c, rowKeys(c, table, ""), "")
	}))
}
