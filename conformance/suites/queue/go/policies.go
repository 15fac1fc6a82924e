package main

import (
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"
)

func policy(id, permissions string) *azqueue.SignedIdentifier {
	return &azqueue.SignedIdentifier{ID: &id, AccessPolicy: &azqueue.AccessPolicy{
		Start: to.Ptr(time.Now().UTC().Add(-time.Hour)), Expiry: to.Ptr(time.Now().UTC().Add(time.Hour)), Permission: &permissions,
	}}
}

func setPolicies(c *Case, q queue, policies ...*azqueue.SignedIdentifier) error {
	_, err := q.SetAccessPolicy(c.ctx, &azqueue.SetAccessPolicyOptions{QueueACL: policies})
	return err
}

func policyCases() {
	test("policies: none at first", onQueue(nil, func(c *Case, q queue, _ string) {
		equal(c, len(must(q.GetAccessPolicy(c.ctx, nil)).SignedIdentifiers), 0)
	}))

	test("policies: come back, are replaced and cleared", onQueue(nil, func(c *Case, q queue, _ string) {
		start, expiry := time.Date(2021, 1, 6, 1, 3, 17, 0, time.UTC), time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
		c.ok(setPolicies(c, q, &azqueue.SignedIdentifier{ID: to.Ptr("all"), AccessPolicy: &azqueue.AccessPolicy{Start: &start, Expiry: &expiry, Permission: to.Ptr("raup")}}))
		found := must(q.GetAccessPolicy(c.ctx, nil)).SignedIdentifiers
		equal(c, len(found), 1)
		equal(c, []string{*found[0].ID, *found[0].AccessPolicy.Permission}, []string{"all", "raup"})
		c.that(found[0].AccessPolicy.Start.Equal(start) && found[0].AccessPolicy.Expiry.Equal(expiry), "%v", found[0].AccessPolicy)
		c.ok(setPolicies(c, q, policy("other", "r")))
		equal(c, *must(q.GetAccessPolicy(c.ctx, nil)).SignedIdentifiers[0].ID, "other")
		c.ok(setPolicies(c, q))
		equal(c, len(must(q.GetAccessPolicy(c.ctx, nil)).SignedIdentifiers), 0)
	}))

	test("policies: five are the most", onQueue(nil, func(c *Case, q queue, _ string) {
		many := []*azqueue.SignedIdentifier{}
		for n := range 5 {
			many = append(many, policy(fmt.Sprint(n), "r"))
		}
		c.ok(setPolicies(c, q, many...))
		c.refused(setPolicies(c, q, append(many, policy("6", "r"))...), 400, "InvalidXmlDocument")
	}))

	test("policies: letters of other services are refused", onQueue(nil, func(c *Case, q queue, _ string) {
		c.refused(setPolicies(c, q, policy("id", "rwdl")), 400, "InvalidXmlDocument")
	}))

	test("policies: a signature by policy is allowed and revoked with it", onQueue([]string{"m"}, func(c *Case, q queue, name string) {
		signed := must(sas.QueueSignatureValues{QueueName: name, Identifier: "reader"}.SignWithSharedKey(credential))
		reader := must(azqueue.NewQueueClientWithNoCredential(endpoint+"/"+name+"?"+signed.Encode(), nil))
		_, err := reader.PeekMessage(c.ctx, nil)
		c.refused(err, 403, "AuthenticationFailed")
		c.ok(setPolicies(c, q, policy("reader", "r")))
		equal(c, peeked(c, reader), "m")
		_, err = reader.EnqueueMessage(c.ctx, "x", nil)
		c.refused(err, 403, "AuthorizationPermissionMismatch")
		c.ok(setPolicies(c, q))
		_, err = reader.PeekMessage(c.ctx, nil)
		c.refused(err, 403, "AuthenticationFailed")
	}))
}
