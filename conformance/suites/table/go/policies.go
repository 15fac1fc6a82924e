package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func policyNamed(id, permission string, expiry time.Time) *aztables.SignedIdentifier {
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	return &aztables.SignedIdentifier{ID: &id, AccessPolicy: &aztables.AccessPolicy{
		Start: &start, Expiry: to.Ptr(expiry.UTC().Truncate(time.Second)), Permission: &permission,
	}}
}

func setPolicies(c *Case, table *aztables.Client, policies ...*aztables.SignedIdentifier) {
	must(table.SetAccessPolicy(c.ctx, &aztables.SetAccessPolicyOptions{TableACL: policies}))
}

func policyIDs(c *Case, table *aztables.Client) string {
	ids := []string{}
	for _, policy := range must(table.GetAccessPolicy(c.ctx, nil)).SignedIdentifiers {
		ids = append(ids, *policy.ID)
	}
	return strings.Join(ids, " ")
}

func policyCases() {
	expiry := time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)

	test("policies: a new table has none", onTable(func(c *Case, table *aztables.Client, _ string) {
		equal(c, policyIDs(c, table), "")
	}))

	test("policies: five there and back", onTable(func(c *Case, table *aztables.Client, _ string) {
		five := []*aztables.SignedIdentifier{}
		for _, permission := range []string{"r", "a", "u", "d", "raud"} {
			five = append(five, policyNamed("id"+permission, permission, expiry))
		}
		setPolicies(c, table, five...)
		got := must(table.GetAccessPolicy(c.ctx, nil)).SignedIdentifiers
		equal(c, len(got), 5)
		for n, policy := range got {
			equal(c, []string{*policy.ID, *policy.AccessPolicy.Permission}, []string{*five[n].ID, *five[n].AccessPolicy.Permission})
			c.that(policy.AccessPolicy.Start.Equal(*five[n].AccessPolicy.Start), "start %v", policy.AccessPolicy.Start)
			c.that(policy.AccessPolicy.Expiry.Equal(expiry), "expiry %v", policy.AccessPolicy.Expiry)
		}
	}))

	test("policies: setting replaces all, and none clears", onTable(func(c *Case, table *aztables.Client, _ string) {
		setPolicies(c, table, policyNamed("one", "r", expiry), policyNamed("two", "r", expiry))
		setPolicies(c, table, policyNamed("three", "r", expiry))
		equal(c, policyIDs(c, table), "three")
		setPolicies(c, table)
		equal(c, policyIDs(c, table), "")
	}))

	test("policies: an id alone is kept", onTable(func(c *Case, table *aztables.Client, _ string) {
		setPolicies(c, table, &aztables.SignedIdentifier{ID: to.Ptr("bare"), AccessPolicy: &aztables.AccessPolicy{}})
		equal(c, policyIDs(c, table), "bare")
	}))

	test("policies: six are refused", onTable(func(c *Case, table *aztables.Client, _ string) {
		six := []*aztables.SignedIdentifier{}
		for _, id := range strings.Fields("1 2 3 4 5 6") {
			six = append(six, policyNamed(id, "r", expiry))
		}
		_, err := table.SetAccessPolicy(c.ctx, &aztables.SetAccessPolicyOptions{TableACL: six})
		// The SDK puts an error of its own in place of the service's.
		c.that(err != nil && strings.Contains(err.Error(), "more than five (5) access policies"), "%v", err)
		equal(c, policyIDs(c, table), "")
	}))

	test("policies: of a missing table are TableNotFound", func(c *Case) {
		table := service.NewClient(newName())
		_, err := table.GetAccessPolicy(c.ctx, nil)
		c.refused(err, http.StatusNotFound, "TableNotFound")
		_, err = table.SetAccessPolicy(c.ctx, nil)
		c.refused(err, http.StatusNotFound, "TableNotFound")
	})
}
