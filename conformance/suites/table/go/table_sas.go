package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func tableSAS(name, permissions string) aztables.SASSignatureValues {
	return aztables.SASSignatureValues{
		TableName: name, Permissions: permissions, Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: time.Now().UTC().Add(time.Hour),
	}
}

// limitedTo is a client for the named table with a signature.
func limitedTo(name string, values aztables.SASSignatureValues) *aztables.Client {
	query := must(values.Sign(credential))
	// The SDK signs the range but leaves it out of the query.
	for field, value := range map[string]string{
		"spk": values.StartPartitionKey, "srk": values.StartRowKey, "epk": values.EndPartitionKey, "erk": values.EndRowKey,
	} {
		if value != "" {
			query += "&" + field + "=" + url.QueryEscape(value)
		}
	}
	return must(aztables.NewClientWithNoCredential(endpoint+"/"+name+"?"+query, nil))
}

func tableSASCases() {
	onRow := func(body func(*Case, *aztables.Client, string)) func(*Case) {
		return onTable(func(c *Case, table *aztables.Client, name string) {
			must(table.AddEntity(c.ctx, row(nil), nil))
			body(c, table, name)
		})
	}

	for _, one := range []struct {
		name, needs string
		run         func(*Case, *aztables.Client) error
	}{
		{"get an entity", "r", func(c *Case, table *aztables.Client) error {
			_, err := table.GetEntity(c.ctx, "p", "r", nil)
			return err
		}},
		{"query entities", "r", func(c *Case, table *aztables.Client) error {
			_, err := tryList(c, table, "")
			return err
		}},
		{"insert", "a", func(c *Case, table *aztables.Client) error {
			_, err := table.AddEntity(c.ctx, entity("p", "new", nil), nil)
			return err
		}},
		{"merge", "u", func(c *Case, table *aztables.Client) error {
			_, err := table.UpdateEntity(c.ctx, row(nil), update(aztables.UpdateModeMerge, nil))
			return err
		}},
		{"replace", "u", func(c *Case, table *aztables.Client) error {
			_, err := table.UpdateEntity(c.ctx, row(nil), update(aztables.UpdateModeReplace, nil))
			return err
		}},
		{"upsert", "au", func(c *Case, table *aztables.Client) error {
			_, err := table.UpsertEntity(c.ctx, row(nil), nil)
			return err
		}},
		{"delete an entity", "d", func(c *Case, table *aztables.Client) error {
			_, err := table.DeleteEntity(c.ctx, "p", "r", nil)
			return err
		}},
	} {
		test(fmt.Sprintf("table SAS: %s is allowed with %s alone", one.name, one.needs), onRow(func(c *Case, _ *aztables.Client, name string) {
			c.ok(one.run(c, limitedTo(name, tableSAS(name, one.needs))))
		}))

		for _, letter := range one.needs {
			test(fmt.Sprintf("table SAS: %s is refused without %c", one.name, letter), onRow(func(c *Case, _ *aztables.Client, name string) {
				without := strings.ReplaceAll("raud", string(letter), "")
				c.refused(one.run(c, limitedTo(name, tableSAS(name, without))), http.StatusForbidden, "AuthorizationPermissionMismatch")
			}))
		}
	}

	test("table SAS: a transaction, and one without its permission", onRow(func(c *Case, _ *aztables.Client, name string) {
		insert := actions{action(aztables.TransactionTypeAdd, "new", nil)}
		must(limitedTo(name, tableSAS(name, "a")).SubmitTransaction(c.ctx, insert, nil))
		_, err := limitedTo(name, tableSAS(name, "rud")).SubmitTransaction(c.ctx, insert, nil)
		c.that(err != nil && strings.Contains(err.Error(), "AuthorizationPermissionMismatch"), "%v", err)
	}))

	test("table SAS: is for its table alone", onRow(func(c *Case, _ *aztables.Client, name string) {
		_, err := tryList(c, limitedTo(name, tableSAS("another", "raud")), "")
		equal(c, statusOf(err), http.StatusForbidden)
	}))

	test("table SAS: expired is AuthenticationFailed", onRow(func(c *Case, _ *aztables.Client, name string) {
		values := tableSAS(name, "raud")
		values.ExpiryTime = time.Now().UTC().Add(-time.Hour)
		_, err := tryList(c, limitedTo(name, values), "")
		c.refused(err, http.StatusForbidden, "AuthenticationFailed")
	}))

	test("table SAS: cannot touch access policies", onRow(func(c *Case, _ *aztables.Client, name string) {
		_, err := limitedTo(name, tableSAS(name, "raud")).GetAccessPolicy(c.ctx, nil)
		c.refused(err, http.StatusForbidden, "AuthorizationFailure")
	}))

	// A table with rows 1 to 3 in the partitions a, b and c.
	onGrid := func(body func(*Case, string)) func(*Case) {
		return onTable(func(c *Case, table *aztables.Client, name string) {
			for _, partition := range strings.Fields("a b c") {
				for _, key := range strings.Fields("1 2 3") {
					must(table.AddEntity(c.ctx, entity(partition, key, nil), nil))
				}
			}
			body(c, name)
		})
	}
	ranged := func(name, startPartition, startRow, endPartition, endRow string) *aztables.Client {
		values := tableSAS(name, "raud")
		values.StartPartitionKey, values.StartRowKey = startPartition, startRow
		values.EndPartitionKey, values.EndRowKey = endPartition, endRow
		return limitedTo(name, values)
	}

	for _, one := range []struct {
		name                                           string
		startPartition, startRow, endPartition, endRow string
		want                                           string
	}{
		{"from a partition on", "b", "", "", "", "b1 b2 b3 c1 c2 c3"},
		{"up to a partition", "", "", "b", "", "a1 a2 a3 b1 b2 b3"},
		{"one partition", "b", "", "b", "", "b1 b2 b3"},
		{"from a row on", "b", "2", "", "", "b2 b3 c1 c2 c3"},
		{"up to a row", "", "", "b", "2", "a1 a2 a3 b1 b2"},
		{"from row to row", "a", "3", "c", "1", "a3 b1 b2 b3 c1"},
	} {
		test("table SAS: a query sees "+one.name, onGrid(func(c *Case, name string) {
			keys := []string{}
			for _, row := range list(c, ranged(name, one.startPartition, one.startRow, one.endPartition, one.endRow), "") {
				keys = append(keys, row.PartitionKey+row.RowKey)
			}
			equal(c, strings.Join(keys, " "), one.want)
		}))
	}

	test("table SAS: inside a range everything works, outside nothing", onGrid(func(c *Case, name string) {
		limited := ranged(name, "b", "2", "b", "2")
		must(limited.UpsertEntity(c.ctx, entity("b", "2", props{"n": 1}), nil))
		equal(c, get(c, limited, "b", "2").Properties["n"], any(int32(1)))
		must(limited.DeleteEntity(c.ctx, "b", "2", nil))
		must(limited.AddEntity(c.ctx, entity("b", "2", nil), nil))

		_, read := limited.GetEntity(c.ctx, "b", "3", nil)
		c.refused(read, http.StatusNotFound, "ResourceNotFound")
		_, insert := limited.AddEntity(c.ctx, entity("b", "4", nil), nil)
		_, change := limited.UpdateEntity(c.ctx, entity("b", "3", nil), nil)
		_, upsert := limited.UpsertEntity(c.ctx, entity("b", "3", nil), nil)
		_, remove := limited.DeleteEntity(c.ctx, "b", "3", nil)
		for _, err := range []error{insert, change, upsert, remove} {
			c.refused(err, http.StatusForbidden, "AuthorizationFailure")
		}
	}))

	byPolicy := func(name string) *aztables.Client {
		return limitedTo(name, aztables.SASSignatureValues{TableName: name, Identifier: "policy"})
	}
	later := time.Now().Add(time.Hour)

	test("table SAS: a policy gives permission, a change of it changes, its removal revokes", onRow(func(c *Case, table *aztables.Client, name string) {
		setPolicies(c, table, policyNamed("policy", "r", later))
		limited := byPolicy(name)
		get(c, limited, "p", "r")
		_, err := limited.DeleteEntity(c.ctx, "p", "r", nil)
		c.refused(err, http.StatusForbidden, "AuthorizationPermissionMismatch")

		setPolicies(c, table, policyNamed("policy", "a", later))
		_, err = limited.GetEntity(c.ctx, "p", "r", nil)
		c.refused(err, http.StatusForbidden, "AuthorizationPermissionMismatch")

		setPolicies(c, table)
		_, err = limited.GetEntity(c.ctx, "p", "r", nil)
		c.refused(err, http.StatusForbidden, "AuthenticationFailed")
	}))

	test("table SAS: an expired policy is AuthenticationFailed", onRow(func(c *Case, table *aztables.Client, name string) {
		setPolicies(c, table, policyNamed("policy", "r", time.Now().Add(-time.Minute)))
		_, err := byPolicy(name).GetEntity(c.ctx, "p", "r", nil)
		c.refused(err, http.StatusForbidden, "AuthenticationFailed")
	}))
}
