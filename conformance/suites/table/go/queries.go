package main

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// countToNine fills the table with the rows 1 to 9: their number, whether it is even, and its word.
func countToNine(c *Case, table *aztables.Client) {
	actions := []aztables.TransactionAction{}
	for n, word := range strings.Fields("one two three four five six seven eight nine") {
		properties := props{"n": n + 1, "even": n%2 == 1, "word": word}
		actions = append(actions, aztables.TransactionAction{
			ActionType: aztables.TransactionTypeAdd, Entity: entity("p", fmt.Sprint(n+1), properties),
		})
	}
	must(table.SubmitTransaction(c.ctx, actions, nil))
}

func queryCases() {
	// Rows 1, 2 and 3 hold a low, a middle and a high value; the literal is the middle one; row none holds none.
	for _, typed := range []struct {
		name    string
		values  []any
		literal string
	}{
		{"String", []any{"", "a'b", "ü"}, "'a''b'"},
		{"Boolean", []any{false, true}, "true"},
		{"Int32", []any{-5, 0, math.MaxInt32}, "0"},
		{"Int64", []any{aztables.EDMInt64(math.MinInt64), aztables.EDMInt64(0), aztables.EDMInt64(math.MaxInt64)}, "0L"},
		{"Double", []any{-1.5e300, 0.25, 1e300}, "0.25"},
		{"DateTime", []any{date(1601, 1, 1, 0, 0, 0, 0), date(2020, 2, 29, 12, 0, 0, 100), date(9999, 12, 31, 0, 0, 0, 0)}, "datetime'2020-02-29T12:00:00.0000001Z'"},
		{"Guid", []any{aztables.EDMGUID("00000000-0000-0000-0000-000000000001"), aztables.EDMGUID("11111111-2222-3333-4444-555555555555"), aztables.EDMGUID("f0000000-0000-0000-0000-000000000000")}, "guid'11111111-2222-3333-4444-555555555555'"},
		{"Binary", []any{aztables.EDMBinary{}, aztables.EDMBinary{1, 2}, aztables.EDMBinary{1, 2, 0}}, "X'0102'"},
	} {
		for _, operator := range []struct {
			name string
			want []string
		}{
			{"eq", []string{"2"}}, {"ne", []string{"1", "3"}}, {"lt", []string{"1"}},
			{"le", []string{"1", "2"}}, {"gt", []string{"3"}}, {"ge", []string{"2", "3"}},
		} {
			test(fmt.Sprintf("queries: %s %s", typed.name, operator.name), onTable(func(c *Case, table *aztables.Client, _ string) {
				for n, value := range typed.values {
					must(table.AddEntity(c.ctx, entity("p", fmt.Sprint(n+1), props{"v": value}), nil))
				}
				must(table.AddEntity(c.ctx, entity("p", "none", nil), nil))
				want := []string{}
				for _, key := range operator.want {
					if key != "3" || len(typed.values) == 3 {
						want = append(want, key)
					}
				}
				equal(c, rowKeys(c, table, "v "+operator.name+" "+typed.literal), strings.Join(want, " "))
			}))
		}
	}

	for _, one := range []struct{ name, filter, want string }{
		{"no filter", "", "1 2 3 4 5 6 7 8 9"},
		{"and binds tighter than or", "n eq 1 or n eq 2 and even", "1 2"},
		{"parentheses", "(n eq 1 or n eq 2) and even eq true", "2"},
		{"not", "not (n lt 8)", "8 9"},
		{"a bare boolean property", "even", "2 4 6 8"},
		{"a literal on the left", "3 gt n", "1 2"},
		{"a range of row keys", "PartitionKey eq 'p' and RowKey ge '3' and RowKey lt '6'", "3 4 5"},
		{"a prefix of a string", "word ge 't' and word lt 'u'", "2 3"},
		{"another partition", "PartitionKey eq 'q'", ""},
		{"a missing property with ne", "none ne 1", ""},
		{"not of a missing property", "not (none eq 1) and n eq 5", "5"},
		{"a property name in another case", "N ge 1", ""},
		{"a value of another type with lt", "n lt ''", "1 2 3 4 5 6 7 8 9"},
		{"a value of another type with gt", "n gt ''", ""},
		{"Timestamp", "Timestamp gt datetime'2000-01-01T00:00:00Z' and n eq 4", "4"},
	} {
		test("queries: "+one.name, onTable(func(c *Case, table *aztables.Client, _ string) {
			countToNine(c, table)
			equal(c, rowKeys(c, table, one.filter), one.want)
		}))
	}

	test("queries: a literal widens to the property, never the other way", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, entity("p", "double", props{"v": 3, "v@odata.type": "Edm.Double"}), nil))
		must(table.AddEntity(c.ctx, entity("p", "int32", props{"v": 3}), nil))
		must(table.AddEntity(c.ctx, entity("p", "int64", props{"v": aztables.EDMInt64(3)}), nil))
		equal(c, rowKeys(c, table, "v eq 3"), "double int32 int64")
		equal(c, rowKeys(c, table, "v eq 3L"), "double int64")
		equal(c, rowKeys(c, table, "v eq 3.0"), "double")
	}))

	test("queries: select", onTable(func(c *Case, table *aztables.Client, _ string) {
		countToNine(c, table)
		pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: to.Ptr("n eq 2"), Select: to.Ptr("word,none")})
		page := must(pager.NextPage(c.ctx))
		equal(c, len(page.Entities), 1)
		got := decode(page.Entities[0])
		equal(c, got.Properties["word"], any("two"))
		equal(c, got.RowKey, "")
		c.that(got.ETag != "", "no ETag")
		c.that(strings.Contains(string(page.Entities[0]), `"none":null`), "no null in %s", page.Entities[0])
	}))

	for _, format := range []aztables.MetadataFormat{aztables.MetadataFormatNone, aztables.MetadataFormatMinimal, aztables.MetadataFormatFull} {
		test("queries: as "+string(format), onTable(func(c *Case, table *aztables.Client, name string) {
			countToNine(c, table)
			pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: to.Ptr("n eq 2"), Format: &format})
			got := decode(must(pager.NextPage(c.ctx)).Entities[0])
			equal(c, got.Properties["word"], any("two"))
			equal(c, got.ETag != "", format != aztables.MetadataFormatNone)
			equal(c, strings.HasSuffix(got.ID, "/"+name+"(PartitionKey='p',RowKey='2')"), format == aztables.MetadataFormatFull)
		}))
	}

	for _, bad := range []struct {
		name, filter string
		status       int
		code         string
	}{
		{"a syntax error", "aaa bbb ccc", http.StatusBadRequest, "InvalidInput"},
		{"an unclosed string", "word eq 'a", http.StatusBadRequest, "InvalidInput"},
		{"a comparison with null", "n eq null", http.StatusBadRequest, "InvalidInput"},
		{"an int32 literal out of range", "n eq 5454161346626", http.StatusBadRequest, "InvalidInput"},
		{"a function", "startswith(word,'t')", http.StatusNotImplemented, "NotImplemented"},
		{"property against property", "n eq word", http.StatusNotImplemented, "NotImplemented"},
	} {
		test("queries: "+bad.name+" is "+bad.code, onTable(func(c *Case, table *aztables.Client, _ string) {
			countToNine(c, table)
			_, err := tryList(c, table, bad.filter)
			c.refused(err, bad.status, bad.code)
		}))
	}
}
