// Command conformance runs the Go SDK for queues against the server.
package main

import "os"

func main() {
	queueCases()
	messageCases()
	receiptCases()
	textCases()
	concurrencyCases()
	policyCases()
	accountSASCases()
	queueSASCases()
	serviceCases()
	connectionStringCases()
	restartCases()

	wanted := ""
	if len(os.Args) > 1 {
		wanted = os.Args[1]
	}
	runAll(wanted)
}
