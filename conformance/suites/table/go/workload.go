package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func workloadCases() {
	advice, hot := service.NewClient("TavolaAdvice"), service.NewClient("TavolaHotPartitions")

	test("workload: an index is advised, declared and used", onCustomers(300, func(c *Case, _ *aztables.Client, own indexes) {
		filter := func(number int) string { return fmt.Sprintf("Email eq 'c%d@example.com'", number) }
		proposed := "PartitionKey eq '" + own.table + "' and Action eq 'create'"
		equal(c, rowKeys(c, advice, proposed), "")
		before := [][]string{}
		for number := range 12 {
			before = append(before, explain(c, own.table, filter(number), "", nil).rows)
		}
		equal(c, rowKeys(c, advice, proposed), "create-ByEmail")
		one := get(c, advice, own.table, "create-ByEmail").Properties
		for name, value := range (props{"Name": "ByEmail", "Keys": "Email", "Include": "", "Shapes": "Email eq <String>", "Executions": aztables.EDMInt64(12)}) {
			equal(c, one[name], value)
		}
		own.build("ByEmail", props{"Keys": one["Keys"], "Include": one["Include"]})
		equal(c, rowKeys(c, advice, proposed), "")
		for number, rows := range before {
			equal(c, explain(c, own.table, filter(number), "", nil), explained{rows, "index ByEmail ordered", ""})
		}
	}))

	test("workload: a hot partition is found", onTable(func(c *Case, table *aztables.Client, name string) {
		must(table.AddEntity(c.ctx, entity("hot", "1", props{"Text": strings.Repeat("x", 100)}), nil))
		for range 400 {
			must(table.GetEntity(c.ctx, "hot", "1", nil))
		}
		found := get(c, hot, name, "hot").Properties
		c.that(found["Rank"].(int32) >= 1 && found["Share"].(float64) > 0 && found["RequestsPerSecond"].(float64) > 0, "%v", found)
		equal(c, rowKeys(c, hot, "PartitionKey eq '"+name+"'"), "hot")
	}))

	test("workload: both tables are read-only", func(c *Case) {
		for _, table := range []*aztables.Client{advice, hot} {
			_, insert := table.AddEntity(c.ctx, entity("p", "r", nil), nil)
			_, upsert := table.UpsertEntity(c.ctx, entity("p", "r", nil), nil)
			_, remove := table.DeleteEntity(c.ctx, "p", "r", nil)
			_, drop := table.Delete(c.ctx, nil)
			for _, err := range []error{insert, upsert, remove, drop} {
				c.refused(err, http.StatusForbidden, "InsufficientAccountPermissions")
			}
		}
	})
}
