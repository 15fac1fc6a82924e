package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func listTables(c *Case, options *aztables.ListTablesOptions) [][]string {
	pages := [][]string{}
	for pager := service.NewListTablesPager(options); pager.More(); {
		page := must(pager.NextPage(c.ctx))
		names := []string{}
		for _, table := range page.Tables {
			names = append(names, *table.Name)
		}
		pages = append(pages, names)
	}
	return pages
}

func withPrefix(prefix string) *string {
	return to.Ptr(fmt.Sprintf("TableName ge '%s' and TableName lt '%s~'", prefix, prefix))
}

// withTables makes tables of these names for the body.
func withTables(c *Case, names []string, body func()) {
	for _, name := range names {
		must(service.CreateTable(c.ctx, name, nil))
		defer service.DeleteTable(c.ctx, name, nil)
	}
	body()
}

func tableCases() {
	test("tables: create returns the name", func(c *Case) {
		name := newName()
		created := must(service.CreateTable(c.ctx, name, nil))
		must(service.DeleteTable(c.ctx, name, nil))
		equal(c, *created.TableName, name)
	})

	test("tables: create and delete through the table's client", func(c *Case) {
		table := service.NewClient(newName())
		must(table.CreateTable(c.ctx, nil))
		must(table.Delete(c.ctx, nil))
	})

	test("tables: create twice is TableAlreadyExists", onTable(func(c *Case, _ *aztables.Client, name string) {
		_, err := service.CreateTable(c.ctx, name, nil)
		c.refused(err, http.StatusConflict, string(aztables.TableAlreadyExists))
		_, err = service.CreateTable(c.ctx, strings.ToUpper(name), nil)
		c.refused(err, http.StatusConflict, string(aztables.TableAlreadyExists))
	}))

	test("tables: delete twice is ResourceNotFound", func(c *Case) {
		name := newName()
		must(service.CreateTable(c.ctx, name, nil))
		must(service.DeleteTable(c.ctx, name, nil))
		_, err := service.DeleteTable(c.ctx, name, nil)
		c.refused(err, http.StatusNotFound, string(aztables.ResourceNotFound))
	})

	for _, bad := range []struct{ what, name, code string }{
		{"with a dash", "not-a-name", "InvalidResourceName"},
		{"that starts with a digit", "1abc", "InvalidResourceName"},
		{"of two characters", "ab", "OutOfRangeInput"},
		{"of 64 characters", strings.Repeat("a", 64), "OutOfRangeInput"},
		{"that is reserved", "tables", "InvalidInput"},
	} {
		test("tables: a name "+bad.what+" is "+bad.code, func(c *Case) {
			_, err := service.CreateTable(c.ctx, bad.name, nil)
			c.refused(err, http.StatusBadRequest, bad.code)
		})
	}

	test("tables: a missing table is TableNotFound for every entity operation", func(c *Case) {
		table := service.NewClient(newName())
		row := entity("p", "r", nil)
		_, insert := table.AddEntity(c.ctx, row, nil)
		_, read := table.GetEntity(c.ctx, "p", "r", nil)
		_, update := table.UpdateEntity(c.ctx, row, nil)
		_, upsert := table.UpsertEntity(c.ctx, row, nil)
		_, remove := table.DeleteEntity(c.ctx, "p", "r", nil)
		_, query := tryList(c, table, "")
		for _, err := range []error{insert, read, update, upsert, remove, query} {
			c.refused(err, http.StatusNotFound, "TableNotFound")
		}
	})

	test("tables: list by range of names", func(c *Case) {
		prefix := newName()
		names := []string{prefix + "a", prefix + "b", prefix + "c"}
		withTables(c, names, func() {
			equal(c, listTables(c, &aztables.ListTablesOptions{Filter: withPrefix(prefix)}), [][]string{names})
			equal(c, listTables(c, &aztables.ListTablesOptions{Filter: to.Ptr("TableName eq '" + names[1] + "'")}), [][]string{{names[1]}})
		})
	})

	test("tables: list page by page, with a token given explicitly", func(c *Case) {
		prefix := newName()
		names := []string{prefix + "1", prefix + "2", prefix + "3", prefix + "4", prefix + "5"}
		withTables(c, names, func() {
			options := &aztables.ListTablesOptions{Filter: withPrefix(prefix), Top: to.Ptr(int32(2))}
			equal(c, listTables(c, options), [][]string{names[:2], names[2:4], names[4:]})
			first := must(service.NewListTablesPager(options).NextPage(c.ctx))
			c.that(first.NextTableName != nil, "no token")
			options.NextTableName = first.NextTableName
			equal(c, listTables(c, options), [][]string{names[2:4], names[4:]})
		})
	})

	for _, format := range []aztables.MetadataFormat{aztables.MetadataFormatNone, aztables.MetadataFormatMinimal, aztables.MetadataFormatFull} {
		test("tables: list as "+string(format), onTable(func(c *Case, _ *aztables.Client, name string) {
			options := &aztables.ListTablesOptions{Filter: to.Ptr("TableName eq '" + name + "'"), Format: &format}
			equal(c, listTables(c, options), [][]string{{name}})
		}))
	}

	test("tables: 20 made at once are all there", func(c *Case) {
		prefix := newName()
		var made sync.WaitGroup
		errs := make([]error, 20)
		for n := range errs {
			made.Add(1)
			go func() {
				defer made.Done()
				_, errs[n] = service.CreateTable(c.ctx, fmt.Sprintf("%s%02d", prefix, n), nil)
			}()
		}
		made.Wait()
		found := listTables(c, &aztables.ListTablesOptions{Filter: withPrefix(prefix)})[0]
		for n, err := range errs {
			c.ok(err)
			must(service.DeleteTable(c.ctx, fmt.Sprintf("%s%02d", prefix, n), nil))
		}
		equal(c, len(found), 20)
	})
}
