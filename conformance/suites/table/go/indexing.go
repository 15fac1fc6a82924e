package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const indexPoll = 20 * time.Millisecond

var (
	towns       = []string{"Redmond", "Seattle", "Portland", "Chicago", "Boston", "Zürich"}
	names       = []string{"Smith", "Jones", "Robinson", "Brown", "Clarke", "Green", "Howard"}
	definitions = service.NewClient("TavolaIndexes")
)

// indexes are those of one table: entities of TavolaIndexes whose partition is the name of the table.
type indexes struct {
	c     *Case
	table string
}

func (i indexes) declare(name string, properties props) error {
	_, err := definitions.AddEntity(i.c.ctx, entity(i.table, name, properties), nil)
	return err
}

func (i indexes) get(name string) map[string]any {
	return get(i.c, definitions, i.table, name).Properties
}

func (i indexes) waitFor(name, state string) map[string]any {
	for {
		found := i.get(name)
		if found["State"] == state {
			return found
		}
		i.c.that(found["State"] == "Building", "%s on its way to %s: %v", name, state, found)
		time.Sleep(indexPoll)
	}
}

// build declares an index, or another definition for it, and waits until it can be used.
func (i indexes) build(name string, properties props) map[string]any {
	replace := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}
	must(definitions.UpsertEntity(i.c.ctx, entity(i.table, name, properties), replace))
	return i.waitFor(name, "Readable")
}

func (i indexes) names() string {
	return rowKeys(i.c, definitions, "PartitionKey eq '"+i.table+"'")
}

func (i indexes) drop(name string) error {
	_, err := definitions.DeleteEntity(i.c.ctx, i.table, name, nil)
	return err
}

// sound has the server compare the index with its table.
func (i indexes) sound(name string) {
	merge := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}
	must(definitions.UpdateEntity(i.c.ctx, entity(i.table, name, props{"Verify": true}), merge))
	for {
		found, _ := i.get(name)["Verify"].(string)
		if found != "running" {
			i.c.that(strings.HasPrefix(found, "sound: "), "%s: %s", name, found)
			return
		}
		time.Sleep(indexPoll)
	}
}

// customer has a town and a name; every tenth has no name, every eleventh no town.
func customer(number, count int) (partitionKey, rowKey string, properties props) {
	properties = props{"Email": fmt.Sprintf("c%d@example.com", number), "Age": number % 60}
	if number%10 != 0 {
		properties["LastName"] = names[number%len(names)]
	}
	if number%11 != 0 {
		properties["Town"] = towns[number%len(towns)]
	}
	return fmt.Sprintf("shard%d", number*3/count), fmt.Sprintf("%04d", number), properties
}

// onCustomers is a case's body that is given a table of customers and its indexes.
func onCustomers(count int, body func(*Case, *aztables.Client, indexes)) func(*Case) {
	return onTable(func(c *Case, table *aztables.Client, name string) {
		batches := map[string]actions{}
		for number := range count {
			partitionKey, rowKey, properties := customer(number, count)
			batches[partitionKey] = append(batches[partitionKey], aztables.TransactionAction{
				ActionType: aztables.TransactionTypeAdd, Entity: entity(partitionKey, rowKey, properties),
			})
		}
		for _, batch := range batches {
			for start := 0; start < len(batch); start += 100 {
				must(table.SubmitTransaction(c.ctx, batch[start:min(start+100, len(batch))], nil))
			}
		}
		body(c, table, indexes{c, name})
	})
}

// asking sends headers with every request, and keeps those of the answers.
type asking struct {
	headers map[string]string
	answers []http.Header
}

func (a *asking) Do(request *policy.Request) (*http.Response, error) {
	for name, value := range a.headers {
		request.Raw().Header.Set(name, value)
	}
	response, err := request.Next()
	if err == nil {
		a.answers = append(a.answers, response.Header)
	}
	return response, err
}

// explained is what a query found, entity after entity, and how it says that it found it.
type explained struct {
	rows          []string
	used, notUsed string
}

// explain runs a query that says how its rows were found; hint names the index to use, or none.
func explain(c *Case, table, filter, hint string, options *aztables.ListEntitiesOptions) explained {
	asking := &asking{headers: map[string]string{"x-tavola-explain": "true"}}
	if hint != "" {
		asking.headers["x-tavola-index"] = hint
	}
	policies := policy.ClientOptions{PerCallPolicies: []policy.Policy{asking}}
	client := must(aztables.NewClientWithSharedKey(endpoint+"/"+table, credential, &aztables.ClientOptions{ClientOptions: policies}))
	if options == nil {
		options = &aztables.ListEntitiesOptions{}
	}
	options.Filter = to.Ptr(filter)
	found := explained{rows: []string{}}
	for pager := client.NewListEntitiesPager(options); pager.More(); {
		found.rows = append(found.rows, whole(must(pager.NextPage(c.ctx)))...)
	}
	words := []string{}
	for _, name := range []string{"query-kind", "index", "index-use"} {
		if word := asking.answers[0].Get("x-tavola-" + name); word != "" {
			words = append(words, word)
		}
	}
	found.used, found.notUsed = strings.Join(words, " "), asking.answers[0].Get("x-tavola-index-not-used")
	return found
}

// whole are the entities of a page as they came, with their ETags and times.
func whole(page aztables.ListEntitiesResponse) []string {
	rows := []string{}
	for _, data := range page.Entities {
		rows = append(rows, string(data))
	}
	return rows
}

// keysOf are the keys of entities as whole returns them.
func keysOf(rows []string) []string {
	keys := []string{}
	for _, row := range rows {
		var one struct{ PartitionKey, RowKey string }
		if err := json.Unmarshal([]byte(row), &one); err != nil {
			panic(failure(err.Error()))
		}
		keys = append(keys, one.PartitionKey+" "+one.RowKey)
	}
	return keys
}
