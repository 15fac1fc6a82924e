package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// inOrder are the keys of the people of onView, as the view by town and name has them.
var inOrder = []string{
	"Boston ~-|c|6", "Boston O~7CNeil~2F~7E|b|0005", "Redmond Adams|b|0004", "Redmond Smith|a|0003", "Redmond Smith|b|0002",
	"Seattle Brown|a|0001",
}

// onView is a case's body that is given a table of people, its indexes, and a client of the view by town and name.
func onView(include string, body func(c *Case, table *aztables.Client, own indexes, view *aztables.Client, name string)) func(*Case) {
	return onTable(func(c *Case, table *aztables.Client, tableName string) {
		for _, person := range [][]byte{
			entity("a", "0003", props{"Town": "Redmond", "LastName": "Smith"}),
			entity("a", "0001", props{"Town": "Seattle", "LastName": "Brown"}),
			entity("b", "0002", props{"Town": "Redmond", "LastName": "Smith"}),
			entity("b", "0004", props{"Town": "Redmond", "LastName": "Adams", "Age": 7, "Photo": aztables.EDMBinary{0, 255}}),
			entity("b", "0005", props{"Town": "Boston", "LastName": "O|Neil/~"}),
			entity("c", "6", props{"Town": "Boston"}),
			entity("c", "7", props{"LastName": "Nobody"}),
		} {
			must(table.AddEntity(c.ctx, person, nil))
		}
		own, name := indexes{c, tableName}, newName()
		found := own.build("ByTown", props{"Keys": "Town,LastName", "Include": include, "BrowseAs": name})
		equal(c, found["BrowseAs"], any(name))
		body(c, table, own, service.NewClient(name), name)
	})
}

// keysInPages are the keys of all pages of a listing.
func keysInPages(c *Case, table *aztables.Client, filter string, top int32) []string {
	keys := []string{}
	for pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Top: &top}); pager.More(); {
		keys = append(keys, keysOf(whole(must(pager.NextPage(c.ctx))))...)
	}
	return keys
}

func viewCases() {
	for _, include := range []string{"", "LastName", "*"} {
		test("index views: whole entities in the order of the index, Include is '"+include+"'", onView(include, func(c *Case, table *aztables.Client, _ indexes, view *aztables.Client, _ string) {
			keys := []string{}
			for _, row := range list(c, view, "") {
				keys = append(keys, row.PartitionKey+" "+row.RowKey)
				origin := get(c, table, row.Properties["OriginPartitionKey"].(string), row.Properties["OriginRowKey"].(string))
				delete(row.Properties, "OriginPartitionKey")
				delete(row.Properties, "OriginRowKey")
				equal(c, row.Properties, origin.Properties)
				equal(c, row.Timestamp, origin.Timestamp)
			}
			equal(c, keys, inOrder)
		}))
	}

	test("index views: pages go on in the order of the index", onView("", func(c *Case, _ *aztables.Client, _ indexes, view *aztables.Client, _ string) {
		for _, top := range []int32{1, 2, 5, 6} {
			equal(c, keysInPages(c, view, "", top), inOrder)
		}
		equal(c, pageSizes(c, view, &aztables.ListEntitiesOptions{Top: to.Ptr(int32(4))}), []int{4, 2})
	}))

	test("index views: many pages", onTable(func(c *Case, table *aztables.Client, name string) {
		fill(c, table, "p", 2400)
		view := newName()
		indexes{c, name}.build("ByNumber", props{"Keys": "n", "BrowseAs": view})
		equal(c, pageSizes(c, service.NewClient(view), nil), []int{1000, 1000, 400})
		for at, row := range list(c, service.NewClient(view), "") {
			equal(c, row.PartitionKey, fmt.Sprintf("~i%d", at))
			equal(c, row.RowKey, fmt.Sprintf("p|%05d", at))
		}
	}))

	for _, one := range []struct {
		filter string
		want   []string
	}{
		{"PartitionKey eq 'Redmond'", inOrder[2:5]},
		{"PartitionKey eq 'Redmond' and RowKey ge 'Smith|' and RowKey lt 'Smith}'", inOrder[3:5]},
		{"PartitionKey gt 'Boston' and PartitionKey lt 'S'", inOrder[2:5]},
		{"LastName eq 'Brown'", inOrder[5:]},
		{"OriginPartitionKey eq 'b'", []string{inOrder[1], inOrder[2], inOrder[4]}},
		{"PartitionKey eq 'Nowhere'", []string{}},
	} {
		test("index views: "+one.filter, onView("", func(c *Case, _ *aztables.Client, _ indexes, view *aztables.Client, name string) {
			found := explain(c, name, one.filter, "", nil)
			equal(c, keysOf(found.rows), one.want)
			equal(c, found.used, "index ByTown browsed")
			equal(c, keysInPages(c, view, one.filter, 1), one.want)
		}))
	}

	test("index views: rows are found by their keys and follow their entities", onView("", func(c *Case, table *aztables.Client, _ indexes, view *aztables.Client, _ string) {
		equal(c, get(c, view, "Redmond", "Adams|b|0004").Properties["Photo"], any(aztables.EDMBinary{0, 255}))
		merge := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}
		must(table.UpdateEntity(c.ctx, entity("b", "0004", props{"Town": "Austin"}), merge))
		_, err := view.GetEntity(c.ctx, "Redmond", "Adams|b|0004", nil)
		c.refused(err, http.StatusNotFound, "ResourceNotFound")
		equal(c, get(c, view, "Austin", "Adams|b|0004").Properties["Age"], any(int32(7)))
		equal(c, keysInPages(c, view, "", 1000)[0], "Austin Adams|b|0004")
		must(table.DeleteEntity(c.ctx, "b", "0004", nil))
		equal(c, len(keysInPages(c, view, "", 1000)), 5)
	}))

	test("index views: nothing is written into one", onView("", func(c *Case, _ *aztables.Client, _ indexes, view *aztables.Client, _ string) {
		one := entity("Redmond", "Adams|b|0004", props{"Age": 8})
		_, insert := view.AddEntity(c.ctx, entity("Bern", "new", nil), nil)
		_, upsert := view.UpsertEntity(c.ctx, one, nil)
		_, update := view.UpdateEntity(c.ctx, one, nil)
		_, remove := view.DeleteEntity(c.ctx, "Redmond", "Adams|b|0004", nil)
		for _, err := range []error{insert, upsert, update, remove} {
			c.refused(err, http.StatusForbidden, "InsufficientAccountPermissions")
		}
		_, err := view.SubmitTransaction(c.ctx, actions{action(aztables.TransactionTypeAdd, "new", nil)}, nil)
		c.that(err != nil && strings.Contains(err.Error(), "InsufficientAccountPermissions"), "%v", err)
		equal(c, keysInPages(c, view, "", 1000), inOrder)
	}))

	test("index views: the name is taken, and goes without the index or with it", onView("", func(c *Case, _ *aztables.Client, own indexes, view *aztables.Client, name string) {
		_, err := service.CreateTable(c.ctx, name, nil)
		c.refused(err, http.StatusConflict, "TableAlreadyExists")
		for _, taken := range []string{own.table, "TavolaAdvice"} {
			c.refused(own.declare("Other", props{"Keys": "Town", "BrowseAs": taken}), http.StatusConflict, "TableAlreadyExists")
		}
		c.refused(own.declare("Other", props{"Keys": "Town", "BrowseAs": "no-name"}), http.StatusBadRequest, "InvalidResourceName")
		must(service.DeleteTable(c.ctx, name, nil))
		_, err = tryList(c, view, "")
		c.refused(err, http.StatusNotFound, "TableNotFound")
		found := own.get("ByTown")
		equal(c, []any{found["BrowseAs"], found["State"]}, []any{"", "Readable"})
		own.build("ByTown", props{"Keys": "Town,LastName", "BrowseAs": name})
		equal(c, keysInPages(c, view, "", 1000), inOrder)
		c.ok(own.drop("ByTown"))
		_, err = tryList(c, view, "")
		c.refused(err, http.StatusNotFound, "TableNotFound")
	}))
}
