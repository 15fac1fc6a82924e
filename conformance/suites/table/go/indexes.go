package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// townFilters are filters over customers, and how the index by Town and LastName finds them; empty where it is of no use.
var townFilters = []struct{ filter, use string }{
	{"Town eq 'Redmond' and LastName eq 'Smith'", "ordered"},
	{"LastName eq 'Smith' and 'Redmond' eq Town", "ordered"},
	{"Town eq 'Zürich' and LastName eq 'Howard' and Age lt 30", "ordered"},
	{"Town eq 'Redmond' and LastName eq 'Smith' and PartitionKey ge 'shard1'", "ordered"},
	{"Town eq 'Redmond' and (LastName eq 'Smith' or LastName eq 'Brown')", "merged"},
	{"Town eq 'Nowhere' and LastName eq 'Smith'", "ordered"},
	{"Town eq 'Redmond'", "sorted"},
	{"Town eq 'Redmond' and LastName ge 'R' and LastName lt 'T'", "sorted"},
	{"Town ge 'B' and Town lt 'C'", "sorted"},
	{"LastName eq 'Smith'", ""},
	{"not (Town eq 'Redmond')", ""},
	{"PartitionKey eq 'shard1' and RowKey eq '0100'", ""},
	{"PartitionKey eq 'shard1'", ""},
}

func indexCases() {
	declaringCases()
	indexUseCases()
	uniqueIndexCases()
	indexMistakeCases()
	viewCases()
	workloadCases()
}

func declaringCases() {
	test("indexes: an entity declares one, which is built", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
		equal(c, own.names(), "")
		c.ok(own.declare("ByTown", props{"Keys": "Town"}))
		progress := aztables.EDMInt64(0)
		found := own.get("ByTown")
		for ; found["State"] != "Readable"; found = own.get("ByTown") {
			equal(c, found["State"], any("Building"))
			c.that(found["Progress"].(aztables.EDMInt64) >= progress, "progress goes back from %d: %v", progress, found)
			progress = found["Progress"].(aztables.EDMInt64)
		}
		equal(c, found["Progress"], any(aztables.EDMInt64(210)))
		equal(c, found["Entries"], any(aztables.EDMInt64(190)))
		equal(c, found["Distinct"], any(aztables.EDMInt64(6)))
		for name, value := range (props{"Keys": "Town", "Include": "", "Filter": "", "Unique": false, "BrowseAs": "", "Error": "", "Note": ""}) {
			equal(c, found[name], value)
		}
		equal(c, own.names(), "ByTown")
	}))

	test("indexes: the table that they are declared in always exists", onCustomers(1, func(c *Case, _ *aztables.Client, own indexes) {
		_, err := service.CreateTable(c.ctx, "TavolaIndexes", nil)
		c.refused(err, http.StatusConflict, "TableAlreadyExists")
		_, err = service.DeleteTable(c.ctx, "TavolaIndexes", nil)
		c.refused(err, http.StatusForbidden, "InsufficientAccountPermissions")
		c.ok(own.declare("ByTown", props{"Keys": "Town"}))
		page := must(service.NewListTablesPager(&aztables.ListTablesOptions{Filter: to.Ptr("TableName eq 'TavolaIndexes'")}).NextPage(c.ctx))
		equal(c, len(page.Tables), 1)
	}))

	test("indexes: a definition is replaced, merged and written back", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
		filter := "Town eq 'Redmond' and LastName eq 'Smith'"
		expected := explain(c, own.table, filter, "", nil)
		own.build("Main", props{"Keys": "Town"})
		// What was read can be written back, whatever the server says in it.
		read := must(definitions.GetEntity(c.ctx, own.table, "Main", nil)).Value
		replace := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}
		must(definitions.UpsertEntity(c.ctx, read, replace))
		equal(c, own.get("Main")["State"], any("Readable"))
		merge := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge}
		must(definitions.UpsertEntity(c.ctx, entity(own.table, "Main", props{"Include": "Email"}), merge))
		// The definition before answers until the new one is built.
		meanwhile := explain(c, own.table, filter, "", nil)
		equal(c, meanwhile.rows, expected.rows)
		equal(c, meanwhile.used, "index Main ordered")
		found := own.waitFor("Main", "Readable")
		equal(c, []any{found["Keys"], found["Include"]}, []any{"Town", "Email"})
		found = own.build("Main", props{"Keys": "Town,LastName"})
		equal(c, []any{found["Keys"], found["Include"]}, []any{"Town,LastName", ""})
		equal(c, explain(c, own.table, filter, "", nil).rows, expected.rows)
		equal(c, own.names(), "Main")
	}))

	test("indexes: definitions are listed in pages, and ETags count", onCustomers(5, func(c *Case, _ *aztables.Client, own indexes) {
		for name, keys := range map[string]string{"ByTown": "Town", "ByAge": "Age", "ByBoth": "Town,Age"} {
			c.ok(own.declare(name, props{"Keys": keys}))
		}
		equal(c, own.names(), "ByAge ByBoth ByTown")
		options := &aztables.ListEntitiesOptions{Filter: to.Ptr("PartitionKey eq '" + own.table + "'"), Top: to.Ptr(int32(2))}
		equal(c, pageSizes(c, definitions, options), []int{2, 1})
		c.refused(own.declare("ByAge", props{"Keys": "Age"}), http.StatusConflict, "EntityAlreadyExists")
		own.waitFor("ByAge", "Readable")
		old := must(definitions.GetEntity(c.ctx, own.table, "ByAge", nil)).ETag
		own.build("ByAge", props{"Keys": "Age", "Include": "Town"})
		_, err := definitions.DeleteEntity(c.ctx, own.table, "ByAge", &aztables.DeleteEntityOptions{IfMatch: &old})
		c.refused(err, http.StatusPreconditionFailed, "UpdateConditionNotSatisfied")
		c.ok(own.drop("ByAge"))
		c.refused(own.drop("ByAge"), http.StatusNotFound, "ResourceNotFound")
		equal(c, own.names(), "ByBoth ByTown")
	}))

	test("indexes: a transaction declares several or none", onCustomers(30, func(c *Case, _ *aztables.Client, own indexes) {
		one := func(name, keys string) aztables.TransactionAction {
			return aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: entity(own.table, name, props{"Keys": keys})}
		}
		_, err := definitions.SubmitTransaction(c.ctx, actions{one("ByTown", "Town"), one("Wrong", "Town,,")}, nil)
		c.that(err != nil && strings.Contains(err.Error(), `"code":"InvalidInput"`) && strings.Contains(err.Error(), `"value":"1:`), "%v", err)
		equal(c, own.names(), "")
		must(definitions.SubmitTransaction(c.ctx, actions{one("ByTown", "Town"), one("ByAge", "Age")}, nil))
		own.waitFor("ByTown", "Readable")
		own.waitFor("ByAge", "Readable")
	}))

	test("indexes: they are there after a crash", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
		own.build("ByTown", props{"Keys": "Town,LastName", "Include": "Age"})
		filter := "Town eq 'Redmond' and LastName eq 'Smith'"
		before := explain(c, own.table, filter, "", nil)
		fill(c, service.NewClient(own.table), "more", 1000)
		c.ok(own.declare("ByNumber", props{"Keys": "n"}))
		restartServer()
		equal(c, explain(c, own.table, filter, "", nil), before)
		own.waitFor("ByNumber", "Readable")
		own.sound("ByTown")
		own.sound("ByNumber")
	}))
}

func indexUseCases() {
	test("indexes: a composite key leaves every answer as it was, and so does dropping it", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
		before := map[string][]string{}
		for _, one := range townFilters {
			before[one.filter] = explain(c, own.table, one.filter, "", nil).rows
		}
		own.build("ByTownAndName", props{"Keys": "Town,LastName"})
		for _, one := range townFilters {
			found := explain(c, own.table, one.filter, "", nil)
			equal(c, found.rows, before[one.filter])
			if one.use != "" {
				equal(c, found.used, "index ByTownAndName "+one.use)
			} else {
				c.that(!strings.Contains(found.used, "ByTownAndName"), "%s: %s", one.filter, found.used)
			}
		}
		c.ok(own.drop("ByTownAndName"))
		for _, one := range townFilters {
			found := explain(c, own.table, one.filter, "", nil)
			equal(c, found.rows, before[one.filter])
			c.that(!strings.Contains(found.used, "ByTownAndName"), "%s: %s", one.filter, found.used)
		}
		_, err := definitions.GetEntity(c.ctx, own.table, "ByTownAndName", nil)
		c.refused(err, http.StatusNotFound, "ResourceNotFound")
	}))

	test("indexes: pages are as they were", onCustomers(210, func(c *Case, table *aztables.Client, own indexes) {
		filters := []string{"Town eq 'Redmond'", "Town ge 'C' and Town lt 'S'", "Town eq 'Boston' or Town eq 'Seattle'", "Town eq 'Nowhere'"}
		// A scan may need a last page to see that there is nothing more, so that empty ones do not count.
		pages := func(filter string, top int32) [][]string {
			all := [][]string{}
			options := &aztables.ListEntitiesOptions{Filter: &filter, Top: &top}
			for pager := table.NewListEntitiesPager(options); pager.More(); {
				if page := whole(must(pager.NextPage(c.ctx))); len(page) > 0 {
					all = append(all, page)
				}
			}
			return all
		}
		for _, filter := range filters {
			for _, top := range []int32{1, 7, 1000} {
				before := pages(filter, top)
				for _, include := range []string{"", "*"} {
					own.build("ByTown", props{"Keys": "Town", "Include": include})
					equal(c, pages(filter, top), before)
				}
				c.ok(own.drop("ByTown"))
			}
		}
	}))

	test("indexes: a token goes on over declaring and dropping", onCustomers(210, func(c *Case, table *aztables.Client, own indexes) {
		options := &aztables.ListEntitiesOptions{Filter: to.Ptr("Town eq 'Redmond'"), Top: to.Ptr(int32(4))}
		expected := explain(c, own.table, "Town eq 'Redmond'", "", nil).rows
		c.that(len(expected) > 16, "%d rows", len(expected))
		found := []string{}
		for step := 0; step == 0 || options.NextPartitionKey != nil; step++ {
			page := must(table.NewListEntitiesPager(options).NextPage(c.ctx))
			found = append(found, whole(page)...)
			options.NextPartitionKey, options.NextRowKey = page.NextPartitionKey, page.NextRowKey
			if step%2 == 0 {
				own.build("ByTown", props{"Keys": "Town"})
			} else {
				c.ok(own.drop("ByTown"))
			}
		}
		equal(c, found, expected)
	}))

	for _, form := range []struct{ include, ofAll, ofSome string }{{"", "", ""}, {"LastName,Age", "", " covering"}, {"*", " covering", " covering"}} {
		test("indexes: Include is '"+form.include+"'", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
			filter := "Town eq 'Redmond'"
			some := func() *aztables.ListEntitiesOptions {
				return &aztables.ListEntitiesOptions{Select: to.Ptr("RowKey,LastName,Age")}
			}
			before, beforeSome := explain(c, own.table, filter, "", nil), explain(c, own.table, filter, "", some())
			equal(c, own.build("ByTown", props{"Keys": "Town", "Include": form.include})["Include"], any(form.include))
			equal(c, explain(c, own.table, filter, "", nil), explained{before.rows, "index ByTown ordered" + form.ofAll, ""})
			equal(c, explain(c, own.table, filter, "", some()), explained{beforeSome.rows, "index ByTown ordered" + form.ofSome, ""})
		}))
	}

	test("indexes: entities without the property are kept when asked for", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
		filter := "not (Town gt '')"
		before := explain(c, own.table, filter, "", nil).rows
		equal(c, len(before), 20)
		own.build("ByTown", props{"Keys": "Town"})
		without := explain(c, own.table, filter, "", nil)
		equal(c, without.rows, before)
		equal(c, without.notUsed, "ByTown=skip-missing")
		equal(c, own.build("ByTown", props{"Keys": "Town?"})["Entries"], any(aztables.EDMInt64(210)))
		with := explain(c, own.table, filter, "", nil)
		equal(c, with.rows, before)
		c.that(strings.HasPrefix(with.used, "index ByTown"), "%s", with.used)
	}))

	test("indexes: a partial one serves filters that imply it", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
		asked := map[string]bool{
			"Town eq 'Redmond' and Age ge 50": true, "Town eq 'Redmond' and Age gt 55": true,
			"Town eq 'Redmond' and Age ge 40": false, "Town eq 'Redmond'": false,
		}
		before := map[string][]string{}
		for filter := range asked {
			before[filter] = explain(c, own.table, filter, "", nil).rows
		}
		equal(c, own.build("Elderly", props{"Keys": "Town", "Filter": "Age ge 50"})["Filter"], any("Age ge 50"))
		for filter, serves := range asked {
			found := explain(c, own.table, filter, "", nil)
			equal(c, found.rows, before[filter])
			if serves {
				equal(c, found.used, "index Elderly ordered partial")
			} else {
				equal(c, found.notUsed, "Elderly=partial")
			}
		}
	}))

	for _, typed := range []struct {
		name    string
		values  []any
		literal string
	}{
		{"String", []any{"", "ab", "it's", "ä", "😀"}, "'ab'"},
		{"Boolean", []any{false, true}, "true"},
		{"Int32", []any{-5, 0, 7}, "0"},
		{"Int64", []any{aztables.EDMInt64(-1 << 62), aztables.EDMInt64(0), aztables.EDMInt64(1 << 62)}, "0L"},
		{"Double", []any{-1.5e300, 0.25, 1e300}, "0.25"},
		{"DateTime", []any{date(1601, 1, 1, 0, 0, 0, 0), date(2020, 2, 29, 12, 0, 0, 100), date(9999, 12, 31, 0, 0, 0, 0)}, "datetime'2020-02-29T12:00:00.0000001Z'"},
		{"Guid", []any{aztables.EDMGUID("00000000-0000-0000-0000-000000000001"), aztables.EDMGUID("f0000000-0000-0000-0000-000000000000")}, "guid'00000000-0000-0000-0000-000000000001'"},
		{"Binary", []any{aztables.EDMBinary{}, aztables.EDMBinary{1, 2}, aztables.EDMBinary{1, 2, 0}}, "X'0102'"},
	} {
		test("indexes: "+typed.name+" as a key", onTable(func(c *Case, table *aztables.Client, name string) {
			must(table.AddEntity(c.ctx, entity("p", "none", nil), nil))
			for n, value := range typed.values {
				must(table.AddEntity(c.ctx, entity("p", fmt.Sprint(n), props{"V": value}), nil))
			}
			operators := strings.Fields("eq ne lt le gt ge")
			before := map[string][]string{}
			for _, operator := range operators {
				before[operator] = explain(c, name, "V "+operator+" "+typed.literal, "", nil).rows
			}
			indexes{c, name}.build("ByV", props{"Keys": "V"})
			for _, operator := range operators {
				found := explain(c, name, "V "+operator+" "+typed.literal, "ByV", nil)
				equal(c, found.rows, before[operator])
				c.that(strings.HasPrefix(found.used, "index ByV "), "%s: %s", operator, found.used)
			}
		}))
	}

	test("indexes: a hint names one or none", onCustomers(210, func(c *Case, _ *aztables.Client, own indexes) {
		own.build("ByTown", props{"Keys": "Town"})
		own.build("ByName", props{"Keys": "LastName"})
		filter := "Town eq 'Redmond' and LastName eq 'Smith'"
		expected := explain(c, own.table, filter, "none", nil).rows
		for hint, used := range map[string]string{"none": "table scan", "ByTown": "index ByTown ordered", "ByName": "index ByName ordered"} {
			found := explain(c, own.table, filter, hint, nil)
			equal(c, found.rows, expected)
			equal(c, found.used, used)
		}
	}))

	test("indexes: they follow every write", onCustomers(60, func(c *Case, table *aztables.Client, own indexes) {
		own.build("ByTown", props{"Keys": "Town"})
		own.build("Copies", props{"Keys": "Town", "Include": "*"})
		finds := func(keys ...string) {
			scanned := explain(c, own.table, "Town eq 'Bern'", "none", nil)
			equal(c, strings.Join(keysOf(scanned.rows), ", "), strings.Join(keys, ", "))
			for _, hint := range []string{"ByTown", "Copies"} {
				equal(c, explain(c, own.table, "Town eq 'Bern'", hint, nil).rows, scanned.rows)
			}
		}
		merge := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}
		replace := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace}
		finds()
		must(table.AddEntity(c.ctx, entity("b", "1", props{"Town": "Bern"}), nil))
		must(table.UpsertEntity(c.ctx, entity("a", "2", props{"Town": "Bern"}), nil))
		finds("a 2", "b 1")
		must(table.UpdateEntity(c.ctx, entity("b", "1", props{"Town": "Basel"}), merge))
		must(table.UpdateEntity(c.ctx, entity("shard0", "0000", props{"Town": "Bern"}), merge))
		finds("a 2", "shard0 0000")
		must(table.UpdateEntity(c.ctx, entity("a", "2", props{"Other": 1}), replace))
		finds("shard0 0000")
		must(table.SubmitTransaction(c.ctx, actions{
			action(aztables.TransactionTypeAdd, "3", props{"Town": "Bern"}), action(aztables.TransactionTypeInsertMerge, "4", props{"Town": "Bern"}),
		}, nil))
		finds("p 3", "p 4", "shard0 0000")
		must(table.SubmitTransaction(c.ctx, actions{action(aztables.TransactionTypeDelete, "3", nil)}, nil))
		must(table.DeleteEntity(c.ctx, "shard0", "0000", nil))
		finds("p 4")
		own.sound("ByTown")
		own.sound("Copies")
	}))

	test("indexes: writers go on while one is built", onCustomers(2000, func(c *Case, table *aztables.Client, own indexes) {
		c.ok(own.declare("ByTown", props{"Keys": "Town"}))
		var writers sync.WaitGroup
		errors := make(chan error, 2000)
		for task := range 4 {
			writers.Add(1)
			go func() {
				defer writers.Done()
				for number := task; number < 2000; number += 97 {
					partitionKey, rowKey, _ := customer(number, 2000)
					var err error
					if number%3 != 0 {
						_, err = table.UpsertEntity(c.ctx, entity(partitionKey, rowKey, props{"Town": "Moved"}), nil)
					} else {
						_, err = table.DeleteEntity(c.ctx, partitionKey, rowKey, nil)
					}
					if err != nil {
						errors <- err
					}
				}
			}()
		}
		writers.Wait()
		close(errors)
		for err := range errors {
			c.ok(err)
		}
		own.waitFor("ByTown", "Readable")
		for _, town := range []string{"Moved", "Redmond"} {
			scanned := explain(c, own.table, "Town eq '"+town+"'", "none", nil)
			found := explain(c, own.table, "Town eq '"+town+"'", "ByTown", nil)
			equal(c, found.rows, scanned.rows)
			equal(c, found.used, "index ByTown ordered")
		}
		own.sound("ByTown")
	}))
}

func uniqueIndexCases() {
	email := func(rowKey, email string) []byte { return entity("p", rowKey, props{"Email": email}) }
	onAccounts := func(body func(*Case, *aztables.Client, indexes)) func(*Case) {
		return onTable(func(c *Case, table *aztables.Client, name string) {
			must(table.AddEntity(c.ctx, email("1", "a"), nil))
			must(table.AddEntity(c.ctx, email("2", "b"), nil))
			body(c, table, indexes{c, name})
		})
	}

	test("indexes: a unique one refuses the second", onAccounts(func(c *Case, table *aztables.Client, own indexes) {
		equal(c, own.build("ByEmail", props{"Keys": "Email", "Unique": true})["Unique"], any(true))
		_, insert := table.AddEntity(c.ctx, email("3", "a"), nil)
		_, upsert := table.UpsertEntity(c.ctx, email("3", "a"), nil)
		_, merge := table.UpdateEntity(c.ctx, email("2", "a"), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge})
		_, replace := table.UpdateEntity(c.ctx, email("2", "a"), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		_, elsewhere := table.AddEntity(c.ctx, entity("q", "1", props{"Email": "a"}), nil)
		for _, err := range []error{insert, upsert, merge, replace, elsewhere} {
			c.refused(err, http.StatusConflict, "UniqueIndexViolation")
			c.that(strings.Contains(err.Error(), "ByEmail"), "%v", err)
		}
		equal(c, rowKeys(c, table, ""), "1 2")
		// Those without the property do not count, its own value is no obstacle, and what was given up is free.
		must(table.AddEntity(c.ctx, entity("p", "4", nil), nil))
		must(table.AddEntity(c.ctx, entity("p", "5", nil), nil))
		must(table.UpsertEntity(c.ctx, entity("p", "1", props{"Email": "a", "More": 1}), nil))
		must(table.DeleteEntity(c.ctx, "p", "1", nil))
		must(table.AddEntity(c.ctx, email("3", "a"), nil))
		found := explain(c, own.table, "Email eq 'a'", "", nil)
		equal(c, keysOf(found.rows), []string{"p 3"})
		equal(c, found.used, "index ByEmail ordered")
	}))

	test("indexes: a unique one in transactions", onAccounts(func(c *Case, table *aztables.Client, own indexes) {
		own.build("ByEmail", props{"Keys": "Email", "Unique": true, "Include": "*"})
		add := func(rowKey, email string) aztables.TransactionAction {
			return action(aztables.TransactionTypeAdd, rowKey, props{"Email": email})
		}
		upsert := func(rowKey, email string) aztables.TransactionAction {
			return action(aztables.TransactionTypeInsertMerge, rowKey, props{"Email": email})
		}
		c.fails(table, actions{add("4", "d"), add("5", "b")}, "UniqueIndexViolation", 1, "1 2")
		c.fails(table, actions{add("4", "d"), add("5", "e"), add("6", "d")}, "UniqueIndexViolation", 2, "1 2")
		c.fails(table, actions{upsert("1", "b")}, "UniqueIndexViolation", 0, "1 2")
		// Two may exchange their values.
		must(table.SubmitTransaction(c.ctx, actions{upsert("1", "b"), upsert("2", "a")}, nil))
		equal(c, rowKeys(c, table, "Email eq 'a'"), "2")
		own.sound("ByEmail")
	}))

	test("indexes: a unique one over what is there twice fails to build", onAccounts(func(c *Case, table *aztables.Client, own indexes) {
		must(table.AddEntity(c.ctx, email("3", "a"), nil))
		c.ok(own.declare("ByEmail", props{"Keys": "Email", "Unique": true}))
		found := own.waitFor("ByEmail", "Failed")
		c.that(strings.Contains(found["Error"].(string), "Email"), "%v", found)
		scanned := explain(c, own.table, "Email eq 'a'", "", nil)
		equal(c, keysOf(scanned.rows), []string{"p 1", "p 3"})
		equal(c, scanned.notUsed, "ByEmail=failed")
		must(table.DeleteEntity(c.ctx, "p", "3", nil))
		own.build("ByEmail", props{"Keys": "Email", "Unique": true})
		_, err := table.AddEntity(c.ctx, email("3", "a"), nil)
		c.refused(err, http.StatusConflict, "UniqueIndexViolation")
	}))
}

func indexMistakeCases() {
	for _, bad := range []struct {
		name       string
		properties props
	}{
		{"no properties", props{"Keys": ""}}, {"five properties", props{"Keys": "A,B,C,D,E"}}, {"a property twice", props{"Keys": "A,A"}},
		{"an unknown type", props{"Keys": "A:Int31"}}, {"a number for Keys", props{"Keys": 7}},
		{"a misspelt property", props{"Keys": "A", "Inculde": "B"}}, {"a text for Unique", props{"Keys": "A", "Unique": "yes"}},
		{"a key in Include", props{"Keys": "A", "Include": "PartitionKey"}}, {"an unfinished Filter", props{"Keys": "A", "Filter": "B eq"}},
		{"an or in Filter", props{"Keys": "A", "Filter": "B eq 1 or C eq 2"}},
	} {
		test("indexes: "+bad.name+" is InvalidInput", onTable(func(c *Case, _ *aztables.Client, table string) {
			own := indexes{c, table}
			c.refused(own.declare("Wrong", bad.properties), http.StatusBadRequest, "InvalidInput")
			equal(c, own.names(), "")
		}))
	}

	test("indexes: Keys are needed, and names are those of tables", onTable(func(c *Case, _ *aztables.Client, table string) {
		own := indexes{c, table}
		c.refused(own.declare("Wrong", props{"Include": "A"}), http.StatusBadRequest, "PropertiesNeedValue")
		c.refused(own.declare("no-name", props{"Keys": "A"}), http.StatusBadRequest, "InvalidResourceName")
	}))

	test("indexes: a missing or dropped table has none", func(c *Case) {
		own := indexes{c, newName()}
		c.refused(own.declare("ByA", props{"Keys": "A"}), http.StatusNotFound, "TableNotFound")
		must(service.CreateTable(c.ctx, own.table, nil))
		own.build("ByA", props{"Keys": "A"})
		must(service.DeleteTable(c.ctx, own.table, nil))
		equal(c, own.names(), "")
		_, err := definitions.GetEntity(c.ctx, own.table, "ByA", nil)
		c.refused(err, http.StatusNotFound, "ResourceNotFound")
		c.refused(own.declare("ByA", props{"Keys": "A"}), http.StatusNotFound, "TableNotFound")
	})

	test("indexes: a table has sixteen, of them three copies", onTable(func(c *Case, _ *aztables.Client, table string) {
		own := indexes{c, table}
		for number := range 16 {
			include := ""
			if number < 3 {
				include = "*"
			}
			c.ok(own.declare(fmt.Sprintf("Index%d", number), props{"Keys": "A", "Include": include}))
		}
		more := own.declare("Index16", props{"Keys": "A"})
		c.refused(more, http.StatusBadRequest, "InvalidInput")
		c.that(strings.Contains(more.Error(), "at most 16 indexes"), "%v", more)
		merge := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}
		_, copying := definitions.UpdateEntity(c.ctx, entity(table, "Index9", props{"Include": "*"}), merge)
		c.refused(copying, http.StatusBadRequest, "InvalidInput")
		c.ok(own.drop("Index9"))
		c.ok(own.declare("Index16", props{"Keys": "A"}))
	}))
}
