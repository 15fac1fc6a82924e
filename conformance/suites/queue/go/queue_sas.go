package main

import (
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"
)

func queueToken(name, permissions string, change func(*sas.QueueSignatureValues)) string {
	values := sas.QueueSignatureValues{QueueName: name, Permissions: permissions, ExpiryTime: time.Now().UTC().Add(time.Hour)}
	if change != nil {
		change(&values)
	}
	signed := must(values.SignWithSharedKey(credential))
	return signed.Encode()
}

func queueSASCases() {
	for operation, letters := range map[string]string{"get metadata": "r", "put": "a", "get": "p", "peek": "r", "update": "u", "delete message": "p"} {
		test("queue SAS: "+operation+" by each letter", func(c *Case) {
			expect(c, operation, strings.Split("raup", ""), letters, "AuthorizationPermissionMismatch", func(queue, letter string) string {
				return queueToken(queue, letter, nil)
			})
		})
	}
	for _, operation := range []string{"set metadata", "get policies", "set policies", "clear"} {
		test("queue SAS: "+operation+" never", func(c *Case) {
			equal(c, attempt(c, operation, func(queue string) string { return queueToken(queue, "raup", nil) }), "AuthorizationFailure")
		})
	}

	test("queue SAS: create and delete of its queue", func(c *Case) {
		name := newName()
		holder := must(azqueue.NewQueueClientWithNoCredential(endpoint+"/"+name+"?"+queueToken(name, "raup", nil), nil))
		_, err := holder.Create(c.ctx, nil)
		c.refused(err, 403, "AuthorizationFailure")
		_, err = holder.Delete(c.ctx, nil)
		c.refused(err, 403, "AuthorizationFailure")
	})

	test("queue SAS: of another queue", func(c *Case) {
		equal(c, attempt(c, "peek", func(queue string) string { return queueToken(queue+"x", "raup", nil) }), "AuthenticationFailed")
	})

	test("queue SAS: by GetSASURL, which is for https only", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		address := must(q.GetSASURL(sas.QueuePermissions{Read: true}, time.Now().UTC().Add(time.Hour), nil))
		_, err := must(azqueue.NewQueueClientWithNoCredential(address, nil)).PeekMessage(c.ctx, nil)
		c.refused(err, 403, "AuthorizationProtocolMismatch")
	}))

	for name, one := range map[string]struct {
		want   string
		change func(*sas.QueueSignatureValues)
	}{
		"begun": {"allowed", func(v *sas.QueueSignatureValues) { v.StartTime = time.Now().UTC().Add(-time.Hour) }},
		"not yet begun": {"AuthenticationFailed", func(v *sas.QueueSignatureValues) {
			v.StartTime = time.Now().UTC().Add(time.Hour)
			v.ExpiryTime = v.StartTime.Add(time.Hour)
		}},
		"expired":   {"AuthenticationFailed", func(v *sas.QueueSignatureValues) { v.ExpiryTime = time.Now().UTC().Add(-time.Hour) }},
		"from here": {"allowed", func(v *sas.QueueSignatureValues) { v.IPRange = sas.IPRange{Start: net.IPv4(127, 0, 0, 1)} }},
		"from elsewhere": {"AuthorizationSourceIPMismatch", func(v *sas.QueueSignatureValues) {
			v.IPRange = sas.IPRange{Start: net.IPv4(10, 0, 0, 1), End: net.IPv4(10, 0, 0, 9)}
		}},
		"by any protocol": {"allowed", func(v *sas.QueueSignatureValues) { v.Protocol = sas.ProtocolHTTPSandHTTP }},
		"by https only":   {"AuthorizationProtocolMismatch", func(v *sas.QueueSignatureValues) { v.Protocol = sas.ProtocolHTTPS }},
	} {
		test("queue SAS: "+name, func(c *Case) {
			equal(c, attempt(c, "peek", func(queue string) string { return queueToken(queue, "r", one.change) }), one.want)
		})
	}

	test("queue SAS: changed", func(c *Case) {
		equal(c, attempt(c, "peek", func(queue string) string {
			values := must(url.ParseQuery(queueToken(queue, "r", nil)))
			values.Set("sp", "rp")
			return values.Encode()
		}), "AuthenticationFailed")
	})
}
