package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const allAccountPermissions = "rwdlacu"

// sasClients are what a signature is tried with: the clients, a table with the row p, r, and a table to spare.
type sasClients struct {
	service *aztables.ServiceClient
	table   *aztables.Client
	name    string
	spare   string
}

func accountSAS(permissions, resourceTypes string) aztables.AccountSASSignatureValues {
	return aztables.AccountSASSignatureValues{
		Protocol: aztables.SASProtocolHTTPSandHTTP, Services: "t", Permissions: permissions, ResourceTypes: resourceTypes,
		ExpiryTime: time.Now().UTC().Add(time.Hour),
	}
}

// withAccountSAS is a case's body that is given the clients of a signature.
func withAccountSAS(values aztables.AccountSASSignatureValues, body func(*Case, sasClients)) func(*Case) {
	return onTable(func(c *Case, owner *aztables.Client, name string) {
		must(owner.AddEntity(c.ctx, row(nil), nil))
		spare := newName()
		withTables(c, []string{spare}, func() {
			query := must(values.Sign(credential))
			limited := must(aztables.NewServiceClientWithNoCredential(endpoint+"/?"+query.Encode(), nil))
			body(c, sasClients{limited, limited.NewClient(name), name, spare})
		})
	})
}

func accountSASCases() {
	type operation struct {
		name, needs, resourceType string
		run                       func(*Case, sasClients) error
	}
	operations := []operation{
		{"list tables", "l", "c", func(c *Case, sas sasClients) error {
			_, err := sas.service.NewListTablesPager(nil).NextPage(c.ctx)
			return err
		}},
		{"create a table", "c", "c", func(c *Case, sas sasClients) error {
			name := newName()
			_, err := sas.service.CreateTable(c.ctx, name, nil)
			service.DeleteTable(c.ctx, name, nil)
			return err
		}},
		{"delete a table", "d", "c", func(c *Case, sas sasClients) error {
			_, err := sas.service.DeleteTable(c.ctx, sas.spare, nil)
			return err
		}},
		{"read service properties", "r", "s", func(c *Case, sas sasClients) error {
			_, err := sas.service.GetProperties(c.ctx, nil)
			return err
		}},
		{"write service properties", "w", "s", func(c *Case, sas sasClients) error {
			_, err := sas.service.SetProperties(c.ctx, aztables.ServiceProperties{}, nil)
			return err
		}},
		{"get an entity", "r", "o", func(c *Case, sas sasClients) error {
			_, err := sas.table.GetEntity(c.ctx, "p", "r", nil)
			return err
		}},
		{"query entities", "r", "o", func(c *Case, sas sasClients) error {
			_, err := tryList(c, sas.table, "")
			return err
		}},
		{"insert", "a", "o", func(c *Case, sas sasClients) error {
			_, err := sas.table.AddEntity(c.ctx, entity("p", "new", nil), nil)
			return err
		}},
		{"merge", "u", "o", func(c *Case, sas sasClients) error {
			_, err := sas.table.UpdateEntity(c.ctx, row(nil), update(aztables.UpdateModeMerge, nil))
			return err
		}},
		{"replace", "u", "o", func(c *Case, sas sasClients) error {
			_, err := sas.table.UpdateEntity(c.ctx, row(nil), update(aztables.UpdateModeReplace, nil))
			return err
		}},
		{"upsert", "au", "o", func(c *Case, sas sasClients) error {
			_, err := sas.table.UpsertEntity(c.ctx, row(nil), nil)
			return err
		}},
		{"delete an entity", "d", "o", func(c *Case, sas sasClients) error {
			_, err := sas.table.DeleteEntity(c.ctx, "p", "r", nil)
			return err
		}},
	}
	for _, one := range operations {
		test(fmt.Sprintf("account SAS: %s is allowed with %s alone", one.name, one.needs),
			withAccountSAS(accountSAS(one.needs, one.resourceType), func(c *Case, sas sasClients) { c.ok(one.run(c, sas)) }))

		for _, letter := range one.needs {
			without := strings.ReplaceAll(allAccountPermissions, string(letter), "")
			if one.name == "create a table" {
				without = strings.ReplaceAll(without, "w", "") // which allows it as well
			}
			test(fmt.Sprintf("account SAS: %s is refused without %c", one.name, letter),
				withAccountSAS(accountSAS(without, "sco"), func(c *Case, sas sasClients) {
					c.refused(one.run(c, sas), http.StatusForbidden, "AuthorizationPermissionMismatch")
				}))
		}

		test(fmt.Sprintf("account SAS: %s is refused without resource type %s", one.name, one.resourceType),
			withAccountSAS(accountSAS(allAccountPermissions, strings.ReplaceAll("sco", one.resourceType, "")), func(c *Case, sas sasClients) {
				c.refused(one.run(c, sas), http.StatusForbidden, "AuthorizationResourceTypeMismatch")
			}))
	}

	test("account SAS: create a table with w too", withAccountSAS(accountSAS("w", "c"), func(c *Case, sas sasClients) {
		name := newName()
		must(sas.service.CreateTable(c.ctx, name, nil))
		must(service.DeleteTable(c.ctx, name, nil))
	}))

	test("account SAS: a transaction", withAccountSAS(accountSAS("a", "o"), func(c *Case, sas sasClients) {
		must(sas.table.SubmitTransaction(c.ctx, actions{action(aztables.TransactionTypeAdd, "new", nil)}, nil))
	}))

	test("account SAS: a transaction without its permission", withAccountSAS(accountSAS("rud", "o"), func(c *Case, sas sasClients) {
		_, err := sas.table.SubmitTransaction(c.ctx, actions{action(aztables.TransactionTypeAdd, "new", nil)}, nil)
		c.that(err != nil && strings.Contains(err.Error(), "AuthorizationPermissionMismatch"), "%v", err)
	}))

	changed := func(change func(*aztables.AccountSASSignatureValues)) aztables.AccountSASSignatureValues {
		values := accountSAS(allAccountPermissions, "sco")
		change(&values)
		return values
	}
	for _, bad := range []struct {
		name   string
		values aztables.AccountSASSignatureValues
		code   string
	}{
		{"expired", changed(func(v *aztables.AccountSASSignatureValues) { v.ExpiryTime = time.Now().UTC().Add(-time.Hour) }), "AuthenticationFailed"},
		{"not yet valid", changed(func(v *aztables.AccountSASSignatureValues) { v.StartTime = time.Now().UTC().Add(30 * time.Minute) }), "AuthenticationFailed"},
		{"for another service", changed(func(v *aztables.AccountSASSignatureValues) { v.Services = "bq" }), "AuthorizationServiceMismatch"},
		{"for https only", changed(func(v *aztables.AccountSASSignatureValues) { v.Protocol = aztables.SASProtocolHTTPS }), "AuthorizationProtocolMismatch"},
		{"for another address", changed(func(v *aztables.AccountSASSignatureValues) {
			v.IPRange = aztables.IPRange{Start: net.IPv4(10, 1, 1, 1)}
		}), "AuthorizationSourceIPMismatch"},
	} {
		test("account SAS: "+bad.name+" is "+bad.code, withAccountSAS(bad.values, func(c *Case, sas sasClients) {
			_, err := tryList(c, sas.table, "")
			c.refused(err, http.StatusForbidden, bad.code)
		}))
	}

	test("account SAS: with a start and an address range that hold", withAccountSAS(changed(func(v *aztables.AccountSASSignatureValues) {
		v.StartTime = time.Now().UTC().Add(-time.Hour)
		v.IPRange = aztables.IPRange{Start: net.IPv4(127, 0, 0, 0), End: net.IPv4(127, 0, 0, 255)}
	}), func(c *Case, sas sasClients) {
		equal(c, len(list(c, sas.table, "")), 1)
	}))

	test("account SAS: the URL that the SDK makes is for https alone", onTable(func(c *Case, _ *aztables.Client, name string) {
		url := must(service.GetAccountSASURL(
			aztables.AccountSASResourceTypes{Object: true}, aztables.AccountSASPermissions{Read: true}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)))
		limited := must(aztables.NewServiceClientWithNoCredential(url, nil))
		_, err := tryList(c, limited.NewClient(name), "")
		c.refused(err, http.StatusForbidden, "AuthorizationProtocolMismatch")
	}))

	test("account SAS: cannot touch access policies", withAccountSAS(accountSAS(allAccountPermissions, "sco"), func(c *Case, sas sasClients) {
		_, err := sas.table.GetAccessPolicy(c.ctx, nil)
		c.refused(err, http.StatusForbidden, "AuthorizationFailure")
		_, err = sas.table.SetAccessPolicy(c.ctx, &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{{ID: to.Ptr("x")}}})
		c.refused(err, http.StatusForbidden, "AuthorizationFailure")
	}))
}
