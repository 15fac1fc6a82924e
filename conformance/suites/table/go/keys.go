package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func keyCases() {
	for _, one := range []struct{ name, key string }{
		{"a blank", " "},
		{"blanks around and inside", " a  b "},
		{"one quote", "O'Brien"},
		{"quotes only", "''''"},
		{"a double quote", `say "hi"`},
		{"a percent sign", "100%"},
		{"a percent escape", "%20%2F%25"},
		{"a plus", "a+b"},
		{"an ampersand and equals", "a&b=c"},
		{"parentheses and a comma", "x(1),y=)"},
		{"a semicolon and a colon", "a;b:c@d"},
		{"brackets and bars", "[a]{b}|c^`<d>"},
		{"accents", "Åse Müller"},
		{"east asian", "東京都"},
		{"right to left", "שלום"},
		{"emoji", "🙂👍🏽"},
		{"two dots", ".."},
	} {
		test("keys: "+one.name+" in every operation", onTable(func(c *Case, table *aztables.Client, _ string) {
			key := one.key
			must(table.AddEntity(c.ctx, entity(key, key, props{"n": 1}), nil))
			_, err := table.AddEntity(c.ctx, entity(key, key, nil), nil)
			c.refused(err, http.StatusConflict, "EntityAlreadyExists")
			must(table.UpdateEntity(c.ctx, entity(key, key, props{"n": 2}), update(aztables.UpdateModeMerge, nil)))
			must(table.UpsertEntity(c.ctx, entity(key, key, props{"m": 3}), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge}))
			got := get(c, table, key, key)
			equal(c, []any{got.PartitionKey, got.RowKey, got.Properties["n"], got.Properties["m"]}, []any{key, key, int32(2), int32(3)})
			quoted := strings.ReplaceAll(key, "'", "''")
			equal(c, rowKeys(c, table, fmt.Sprintf("PartitionKey eq '%s' and RowKey eq '%s'", quoted, quoted)), key)
			must(table.DeleteEntity(c.ctx, key, key, nil))
			equal(c, len(list(c, table, "")), 0)
		}))

		// In a transaction the SDK does not double quotes in URLs, so only inserts can hold them.
		if strings.Contains(one.key, "'") {
			continue
		}
		test("keys: "+one.name+" in a transaction", onTable(func(c *Case, table *aztables.Client, _ string) {
			key := one.key
			must(table.SubmitTransaction(c.ctx, []aztables.TransactionAction{
				{ActionType: aztables.TransactionTypeAdd, Entity: entity(key, key, props{"n": 1})},
				{ActionType: aztables.TransactionTypeInsertMerge, Entity: entity(key, key+"2", nil)},
			}, nil))
			must(table.SubmitTransaction(c.ctx, []aztables.TransactionAction{
				{ActionType: aztables.TransactionTypeInsertReplace, Entity: entity(key, key, props{"n": 2})},
				{ActionType: aztables.TransactionTypeDelete, Entity: entity(key, key+"2", nil)},
			}, nil))
			rows := list(c, table, "")
			equal(c, len(rows), 1)
			equal(c, []any{rows[0].PartitionKey, rows[0].RowKey, rows[0].Properties["n"]}, []any{key, key, int32(2)})
		}))
	}

	// For everything else the SDK itself refuses empty keys.
	test("keys: empty in insert and query", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, entity("", "", props{"n": 1}), nil))
		_, err := table.AddEntity(c.ctx, entity("", "", nil), nil)
		c.refused(err, http.StatusConflict, "EntityAlreadyExists")
		equal(c, list(c, table, "PartitionKey eq '' and RowKey eq ''")[0].Properties["n"], any(int32(1)))
	}))

	test("keys: a quote in the insert of a transaction", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.SubmitTransaction(c.ctx, []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeAdd, Entity: entity("O'Brien", "O'Brien", props{"n": 1})},
		}, nil))
		equal(c, get(c, table, "O'Brien", "O'Brien").Properties["n"], any(int32(1)))
	}))

	test("keys: keys differ by case", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, entity("p", "a", nil), nil))
		must(table.AddEntity(c.ctx, entity("p", "A", nil), nil))
		equal(c, rowKeys(c, table, ""), "A a")
	}))

	test("keys: rows come in UTF-16 code unit order", onTable(func(c *Case, table *aztables.Client, _ string) {
		for _, key := range []string{"Ａ", "😀", "中", "é", "a", "Z"} {
			must(table.AddEntity(c.ctx, entity("p", key, nil), nil))
		}
		equal(c, rowKeys(c, table, ""), "Z a é 中 😀 Ａ")
	}))

	test("keys: 512 characters fit, 513 are PropertyValueTooLarge", onTable(func(c *Case, table *aztables.Client, _ string) {
		longest := strings.Repeat("k", 512)
		must(table.AddEntity(c.ctx, entity(longest, longest, nil), nil))
		equal(c, get(c, table, longest, longest).RowKey, longest)
		_, err := table.AddEntity(c.ctx, entity("p", longest+"k", nil), nil)
		c.refused(err, http.StatusBadRequest, "PropertyValueTooLarge")
	}))

	for _, bad := range []string{"a/b", `a\b`, "a#b", "a?b", "a\tb", "a\u0085b"} {
		test(fmt.Sprintf("keys: insert with %q is OutOfRangeInput", bad), onTable(func(c *Case, table *aztables.Client, _ string) {
			_, err := table.AddEntity(c.ctx, entity(bad, "r", nil), nil)
			c.refused(err, http.StatusBadRequest, "OutOfRangeInput")
			_, err = table.AddEntity(c.ctx, entity("p", bad, nil), nil)
			c.refused(err, http.StatusBadRequest, "OutOfRangeInput")
		}))
	}
}
