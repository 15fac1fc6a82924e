package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	endpoint   = os.Getenv("TAVOLA_ENDPOINT")
	account    = os.Getenv("TAVOLA_ACCOUNT")
	key        = os.Getenv("TAVOLA_KEY")
	credential = must(aztables.NewSharedKeyCredential(account, key))
	service    = must(aztables.NewServiceClientWithSharedKey(endpoint, credential, nil))
)

type props map[string]any

// entity writes an entity with its keys as they are, and annotates the SDK's types.
//
// EDMEntity doubles the quotes in keys, so it is used only where the cases are about it.
func entity(partitionKey, rowKey string, properties props) []byte {
	all := props{"PartitionKey": partitionKey, "RowKey": rowKey}
	for name, value := range properties {
		all[name] = value
		switch value.(type) {
		case aztables.EDMInt64:
			all[name+"@odata.type"] = "Edm.Int64"
		case aztables.EDMDateTime:
			all[name+"@odata.type"] = "Edm.DateTime"
		case aztables.EDMGUID:
			all[name+"@odata.type"] = "Edm.Guid"
		case aztables.EDMBinary:
			all[name+"@odata.type"] = "Edm.Binary"
		}
	}
	return must(json.Marshal(all))
}

func decode(data []byte) aztables.EDMEntity {
	var decoded aztables.EDMEntity
	if err := json.Unmarshal(data, &decoded); err != nil {
		panic(failure(err.Error()))
	}
	return decoded
}

// onTable is a case's body that is given a new table, which is deleted afterwards.
func onTable(body func(*Case, *aztables.Client, string)) func(*Case) {
	return func(c *Case) {
		name := newName()
		must(service.CreateTable(c.ctx, name, nil))
		defer service.DeleteTable(context.Background(), name, nil)
		body(c, service.NewClient(name), name)
	}
}

func get(c *Case, table *aztables.Client, partitionKey, rowKey string) aztables.EDMEntity {
	return decode(must(table.GetEntity(c.ctx, partitionKey, rowKey, nil)).Value)
}

// list returns all rows that match, page after page.
func list(c *Case, table *aztables.Client, filter string) []aztables.EDMEntity {
	rows, err := tryList(c, table, filter)
	c.ok(err)
	return rows
}

func tryList(c *Case, table *aztables.Client, filter string) ([]aztables.EDMEntity, error) {
	options := &aztables.ListEntitiesOptions{}
	if filter != "" {
		options.Filter = &filter
	}
	rows := []aztables.EDMEntity{}
	for pager := table.NewListEntitiesPager(options); pager.More(); {
		page, err := pager.NextPage(c.ctx)
		if err != nil {
			return nil, err
		}
		for _, data := range page.Entities {
			rows = append(rows, decode(data))
		}
	}
	return rows, nil
}

// rowKeys joins the row keys of what matches.
func rowKeys(c *Case, table *aztables.Client, filter string) string {
	keys := []string{}
	for _, row := range list(c, table, filter) {
		keys = append(keys, row.RowKey)
	}
	return strings.Join(keys, " ")
}

func codeOf(err error) string {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.ErrorCode
	}
	return ""
}

func statusOf(err error) int {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode
	}
	return 0
}

// refused ends the case unless the error has this status and code.
func (c *Case) refused(err error, status int, code string) {
	c.that(err != nil, "expected %d %s, but it succeeded", status, code)
	c.that(statusOf(err) == status && codeOf(err) == code, "expected %d %s, got %d %q: %v", status, code, statusOf(err), codeOf(err), err)
}

// resolvedLocally are options that dial the server's address for every host name, in place of DNS.
func resolvedLocally() *aztables.ClientOptions {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}
	return &aztables.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: &http.Client{Transport: &http.Transport{DialContext: dial}},
	}}
}

func serverPort() string {
	return must(url.Parse(endpoint)).Port()
}
