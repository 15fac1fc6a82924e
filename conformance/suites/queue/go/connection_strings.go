package main

import (
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

func connectionStringCases() {
	test("connection strings: with the key", onQueue([]string{"m"}, func(c *Case, _ queue, name string) {
		q := must(azqueue.NewQueueClientFromConnectionString(os.Getenv("TAVOLA_CONNECTION_STRING"), name, nil))
		equal(c, peeked(c, q), "m")
	}))

	test("connection strings: with a signature", onQueue([]string{"m"}, func(c *Case, _ queue, name string) {
		text := "QueueEndpoint=" + endpoint + ";SharedAccessSignature=" + queueToken(name, "r", nil)
		equal(c, peeked(c, must(azqueue.NewQueueClientFromConnectionString(text, name, nil))), "m")
	}))

	test("connection strings: a wrong key is refused", onQueue(nil, func(c *Case, _ queue, name string) {
		wrong := must(azqueue.NewSharedKeyCredential(account, "d3Jvbmc="))
		q := must(azqueue.NewQueueClientWithSharedKeyCredential(endpoint+"/"+name, wrong, nil))
		_, err := q.PeekMessage(c.ctx, nil)
		c.refused(err, 403, "AuthenticationFailed")
	}))
}
