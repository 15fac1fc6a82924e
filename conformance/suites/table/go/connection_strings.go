package main

import (
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// connects makes a table, writes and reads a row, and deletes the table, all with clients of this string.
func connects(connectionString string, options *aztables.ClientOptions) func(*Case) {
	return func(c *Case) {
		client := must(aztables.NewServiceClientFromConnectionString(connectionString, options))
		table := client.NewClient(newName())
		must(table.CreateTable(c.ctx, nil))
		defer table.Delete(c.ctx, nil)
		must(table.AddEntity(c.ctx, row(props{"n": 1}), nil))
		must(table.SubmitTransaction(c.ctx, actions{matching(azcore.ETagAny, action(aztables.TransactionTypeUpdateMerge, "r", props{"n": 2}))}, nil))
		equal(c, rowKeys(c, table, "n eq 2"), "r")
	}
}

// The SDK knows neither UseDevelopmentStorage=true nor an endpoint next to a SharedAccessSignature.
func connectionStringCases() {
	keyPart := "AccountName=" + account + ";AccountKey=" + key

	test("connection strings: as the server prints it", connects(os.Getenv("TAVOLA_CONNECTION_STRING"), nil))
	test("connection strings: account, key and endpoint", connects(keyPart+";TableEndpoint="+endpoint, nil))
	test("connection strings: an endpoint with a slash at its end", connects(keyPart+";TableEndpoint="+endpoint+"/;", nil))
	test("connection strings: endpoints of the other services too, in another order",
		connects("BlobEndpoint=http://127.0.0.1:1/x;TableEndpoint="+endpoint+";"+keyPart+";DefaultEndpointsProtocol=http", nil))
	test("connection strings: an endpoint suffix, so that the account is in the host name",
		connects("DefaultEndpointsProtocol=http;"+keyPart+";EndpointSuffix=example:"+serverPort(), resolvedLocally()))
}
