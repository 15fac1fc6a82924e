package dapr

import _ "github.com/dapr/components-contrib/state/azure/tablestorage"
