package main

import (
	"net"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"
)

func accountToken(permissions, types string, change func(*sas.AccountSignatureValues)) string {
	values := sas.AccountSignatureValues{Permissions: permissions, ResourceTypes: types, ExpiryTime: time.Now().UTC().Add(time.Hour)}
	if change != nil {
		change(&values)
	}
	signed := must(values.SignWithSharedKey(credential))
	return signed.Encode()
}

func accountSASCases() {
	// Update, Delete and Clear are of objects by the documentation and of containers in practice: both are accepted.
	rules := map[string][2]string{
		"list": {"s", "l"}, "get service properties": {"s", "r"}, "create": {"c", "cw"}, "delete queue": {"c", "d"}, "get metadata": {"c", "r"},
		"set metadata": {"c", "w"}, "put": {"o", "a"}, "get": {"o", "p"}, "peek": {"o", "r"}, "update": {"oc", "u"}, "delete message": {"oc", "p"}, "clear": {"oc", "d"},
	}
	for operation, rule := range rules {
		test("account SAS: "+operation+" by each letter", func(c *Case) {
			expect(c, operation, strings.Split("rwdlacup", ""), rule[1], "AuthorizationPermissionMismatch", func(_, letter string) string {
				return accountToken(letter, "sco", nil)
			})
		})
		test("account SAS: "+operation+" by each resource type", func(c *Case) {
			expect(c, operation, strings.Split("sco", ""), rule[0], "AuthorizationResourceTypeMismatch", func(_, kind string) string {
				return accountToken("rwdlacup", kind, nil)
			})
		})
	}

	for _, operation := range []string{"get policies", "set policies"} {
		test("account SAS: "+operation+" never", func(c *Case) {
			equal(c, attempt(c, operation, func(string) string { return accountToken("rwdlacup", "sco", nil) }), "AuthorizationFailure")
		})
	}

	for name, one := range map[string]struct {
		want   string
		change func(*sas.AccountSignatureValues)
	}{
		"begun": {"allowed", func(v *sas.AccountSignatureValues) { v.StartTime = time.Now().UTC().Add(-time.Hour) }},
		"not yet begun": {"AuthenticationFailed", func(v *sas.AccountSignatureValues) {
			v.StartTime = time.Now().UTC().Add(time.Hour)
			v.ExpiryTime = v.StartTime.Add(time.Hour)
		}},
		"expired":   {"AuthenticationFailed", func(v *sas.AccountSignatureValues) { v.ExpiryTime = time.Now().UTC().Add(-time.Hour) }},
		"from here": {"allowed", func(v *sas.AccountSignatureValues) { v.IPRange = sas.IPRange{Start: net.IPv4(127, 0, 0, 1)} }},
		"from elsewhere": {"AuthorizationSourceIPMismatch", func(v *sas.AccountSignatureValues) {
			v.IPRange = sas.IPRange{Start: net.IPv4(10, 0, 0, 1), End: net.IPv4(10, 0, 0, 9)}
		}},
		"by any protocol": {"allowed", func(v *sas.AccountSignatureValues) { v.Protocol = sas.ProtocolHTTPSandHTTP }},
		"by https only":   {"AuthorizationProtocolMismatch", func(v *sas.AccountSignatureValues) { v.Protocol = sas.ProtocolHTTPS }},
	} {
		test("account SAS: "+name, func(c *Case) {
			equal(c, attempt(c, "peek", func(string) string { return accountToken("r", "o", one.change) }), one.want)
		})
	}
}
