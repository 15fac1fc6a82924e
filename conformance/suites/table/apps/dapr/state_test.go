// Runs the conformance tests that Dapr ships for its state stores on its Azure Table store.
package dapr

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/dapr/components-contrib/state/azure/tablestorage"
	conformance "github.com/dapr/components-contrib/tests/conformance/state"
	"github.com/dapr/kit/logger"
)

func TestStateStore(t *testing.T) {
	table := fmt.Sprintf("appsdapr%d", time.Now().UnixNano())
	t.Cleanup(func() { drop(t, table) })
	props := map[string]string{
		"accountName": os.Getenv("TAVOLA_ACCOUNT"),
		"accountKey":  os.Getenv("TAVOLA_KEY"),
		"serviceURL":  os.Getenv("TAVOLA_ENDPOINT"),
		"tableName":   table,
	}
	// As tests/config/state/tests.yml of components-contrib has it for azure.tablestorage.storage.
	config, err := conformance.NewTestConfig("azure.tablestorage.storage", []string{"etag", "first-write"},
		map[string]interface{}{"badEtag": "W/\"datetime'2023-05-09T12%3A28%3A54.1442151Z'\""})
	if err != nil {
		t.Fatal(err)
	}
	conformance.ConformanceTests(t, props, tablestorage.NewAzureTablesStateStore(logger.NewLogger("dapr")), config)
}

// Dapr never drops the table that it made.
func drop(t *testing.T, table string) {
	service, err := aztables.NewServiceClientFromConnectionString(os.Getenv("TAVOLA_CONNECTION_STRING"), nil)
	if err == nil {
		_, err = service.DeleteTable(context.Background(), table, nil)
	}
	if err != nil {
		t.Error(err)
	}
}
