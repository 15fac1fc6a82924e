// Runs the conformance tests that Dapr ships for its state stores on its Azure Table store.
package dapr

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dapr/components-contrib/state/azure/tablestorage"
	conformance "github.com/dapr/components-contrib/tests/conformance/state"
	"github.com/dapr/kit/logger"
)

func TestStateStore(t *testing.T) {
	props := map[string]string{
		"accountName": os.Getenv("TAVOLA_ACCOUNT"),
		"accountKey":  os.Getenv("TAVOLA_KEY"),
		"serviceURL":  os.Getenv("TAVOLA_ENDPOINT"),
		"tableName":   fmt.Sprintf("appsdapr%d", time.Now().UnixNano()),
	}
	// As tests/config/state/tests.yml of components-contrib has it for azure.tablestorage.storage.
	config, err := conformance.NewTestConfig("azure.tablestorage.storage", []string{"etag", "first-write"},
		map[string]interface{}{"badEtag": "W/\"datetime'2023-05-09T12%3A28%3A54.1442151Z'\""})
	if err != nil {
		t.Fatal(err)
	}
	conformance.ConformanceTests(t, props, tablestorage.NewAzureTablesStateStore(logger.NewLogger("dapr")), config)
}
