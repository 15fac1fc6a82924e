// Runs the conformance tests that Dapr ships for its bindings on its Azure Storage Queues binding.
package dapr

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/dapr/components-contrib/bindings"
	"github.com/dapr/components-contrib/bindings/azure/storagequeues"
	"github.com/dapr/components-contrib/metadata"
	conformance "github.com/dapr/components-contrib/tests/conformance/bindings"
	"github.com/dapr/kit/logger"
)

var account = os.Getenv("TAVOLA_ACCOUNT")

// newQueue names a queue, which is deleted after the test: the binding makes it and never deletes it.
func newQueue(t *testing.T) map[string]string {
	name := fmt.Sprintf("appsdapr%d", time.Now().UnixNano())
	t.Cleanup(func() {
		service, err := azqueue.NewServiceClientFromConnectionString(os.Getenv("TAVOLA_CONNECTION_STRING"), nil)
		if err == nil {
			_, err = service.DeleteQueue(context.Background(), name, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return map[string]string{
		"storageAccount": account, "storageAccessKey": os.Getenv("TAVOLA_KEY"), "queue": name, "ttlInSeconds": "600", "pollingInterval": "200ms",
		// The binding adds the account itself.
		"queueEndpointUrl": strings.TrimSuffix(os.Getenv("TAVOLA_ENDPOINT"), "/"+account),
	}
}

func newBinding() bindings.InputOutputBinding {
	return storagequeues.NewAzureStorageQueues(logger.NewLogger("dapr"))
}

func TestBinding(t *testing.T) {
	props := newQueue(t)
	config, err := conformance.NewTestConfig("azure.storagequeues", []string{"create", "operations", "read"}, map[string]interface{}{})
	if err != nil {
		t.Fatal(err)
	}
	conformance.ConformanceTests(t, props, newBinding(), newBinding(), config)
}

func TestMessages(t *testing.T) {
	for _, encoded := range []string{"false", "true"} {
		t.Run("encodeBase64 "+encoded, func(t *testing.T) {
			props := newQueue(t)
			props["encodeBase64"], props["decodeBase64"] = encoded, encoded
			binding := newBinding()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := binding.Init(ctx, bindings.Metadata{Base: metadata.Base{Properties: props}}); err != nil {
				t.Fatal(err)
			}
			texts := []string{"plain", "<a>&'\"</a>", "Grüße 日本語 😀", "line\nfeed"}
			for _, text := range texts {
				if _, err := binding.Invoke(ctx, &bindings.InvokeRequest{Data: []byte(text), Operation: bindings.CreateOperation}); err != nil {
					t.Fatal(err)
				}
			}
			found := make(chan string, len(texts))
			err := binding.Read(ctx, func(_ context.Context, answer *bindings.ReadResponse) ([]byte, error) {
				if answer.Metadata["dequeueCount"] != "1" || answer.Metadata["messageID"] == "" {
					t.Errorf("metadata is %v", answer.Metadata)
				}
				found <- string(answer.Data)
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range texts {
				select {
				case got := <-found:
					if got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				case <-ctx.Done():
					t.Fatalf("%q did not come", want)
				}
			}
			if err := binding.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
