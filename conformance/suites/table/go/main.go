// Command conformance runs the Go SDK for tables against the server.
package main

import "os"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "resume" {
		resume(os.Args[2:])
		return
	}
	tableCases()
	entityCases()
	typeCases()
	keyCases()
	queryCases()
	pagingCases()
	transactionCases()
	concurrencyCases()
	indexCases()
	policyCases()
	accountSASCases()
	tableSASCases()
	serviceCases()
	connectionStringCases()
	restartCases()

	wanted := ""
	if len(os.Args) > 1 {
		wanted = os.Args[1]
	}
	runAll(wanted)
}
