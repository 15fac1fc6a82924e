package main

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func retention(days int32) *aztables.RetentionPolicy {
	return &aztables.RetentionPolicy{Enabled: to.Ptr(true), Days: &days}
}

func metrics(days int32) *aztables.Metrics {
	return &aztables.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: retention(days)}
}

func corsRule(origins string) *aztables.CorsRule {
	return &aztables.CorsRule{
		AllowedOrigins: &origins, AllowedMethods: to.Ptr("GET,PUT"), AllowedHeaders: to.Ptr("x-ms-*"),
		ExposedHeaders: to.Ptr("x-ms-request-id"), MaxAgeInSeconds: to.Ptr(int32(100)),
	}
}

func properties(c *Case) aztables.ServiceProperties {
	return must(service.GetProperties(c.ctx, nil)).ServiceProperties
}

// restoring is a case's body after which the service's properties are as they were.
func restoring(body func(*Case)) func(*Case) {
	return func(c *Case) {
		before := properties(c)
		if before.Cors == nil {
			before.Cors = []*aztables.CorsRule{}
		}
		defer service.SetProperties(c.ctx, before, nil)
		body(c)
	}
}

func preflight(c *Case, headers map[string]string) *http.Response {
	request := must(http.NewRequestWithContext(c.ctx, http.MethodOptions, endpoint+"/Tables", nil))
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response := must(http.DefaultClient.Do(request))
	response.Body.Close()
	return response
}

func serviceCases() {
	test("service: properties there and back", restoring(func(c *Case) {
		logging := &aztables.Logging{Version: to.Ptr("1.0"), Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(true), RetentionPolicy: retention(3)}
		wanted := aztables.ServiceProperties{
			Logging: logging, HourMetrics: metrics(7), MinuteMetrics: metrics(1),
			Cors: []*aztables.CorsRule{corsRule("http://a.example"), corsRule("*")},
		}
		must(service.SetProperties(c.ctx, wanted, nil))
		equal(c, properties(c), wanted)
	}))

	test("service: properties that are left out stay", restoring(func(c *Case) {
		must(service.SetProperties(c.ctx, aztables.ServiceProperties{HourMetrics: metrics(7), MinuteMetrics: metrics(2)}, nil))
		must(service.SetProperties(c.ctx, aztables.ServiceProperties{MinuteMetrics: metrics(9)}, nil))
		equal(c, properties(c).HourMetrics, metrics(7))
		equal(c, properties(c).MinuteMetrics, metrics(9))
	}))

	test("service: six CORS rules are InvalidXmlDocument", restoring(func(c *Case) {
		rules := []*aztables.CorsRule{}
		for range 6 {
			rules = append(rules, corsRule("*"))
		}
		_, err := service.SetProperties(c.ctx, aztables.ServiceProperties{Cors: rules}, nil)
		c.refused(err, http.StatusBadRequest, "InvalidXmlDocument")
	}))

	test("service: retention of 366 days is refused", restoring(func(c *Case) {
		_, err := service.SetProperties(c.ctx, aztables.ServiceProperties{HourMetrics: metrics(366)}, nil)
		equal(c, statusOf(err), http.StatusBadRequest)
	}))

	test("service: a preflight that a rule matches, and some that it does not", restoring(func(c *Case) {
		must(service.SetProperties(c.ctx, aztables.ServiceProperties{Cors: []*aztables.CorsRule{corsRule("http://a.example")}}, nil))
		allowed := preflight(c, map[string]string{
			"Origin": "http://a.example", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-ms-date",
		})
		equal(c, allowed.StatusCode, http.StatusOK)
		equal(c, allowed.Header.Get("Access-Control-Allow-Origin"), "http://a.example")
		equal(c, allowed.Header.Get("Access-Control-Max-Age"), "100")
		for _, headers := range []map[string]string{
			{"Origin": "http://b.example", "Access-Control-Request-Method": "PUT"},
			{"Origin": "http://a.example", "Access-Control-Request-Method": "DELETE"},
			{"Origin": "http://a.example", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "other"},
		} {
			equal(c, preflight(c, headers).StatusCode, http.StatusForbidden)
		}
	}))

	secondary := strings.Replace(endpoint, account, account+"-secondary", 1)

	test("service: stats come from the secondary", func(c *Case) {
		client := must(aztables.NewServiceClientWithSharedKey(secondary, credential, nil))
		stats := must(client.GetStatistics(c.ctx, nil))
		equal(c, *stats.GeoReplication.Status, aztables.GeoReplicationStatusLive)
		c.that(stats.GeoReplication.LastSyncTime.Year() > 2000, "%v", stats.GeoReplication.LastSyncTime)
	})

	test("service: stats of the primary are refused", func(c *Case) {
		_, err := service.GetStatistics(c.ctx, nil)
		equal(c, statusOf(err), http.StatusBadRequest)
	})

	test("service: the secondary reads what the primary wrote, and writes nothing", onTable(func(c *Case, table *aztables.Client, name string) {
		must(table.AddEntity(c.ctx, row(props{"n": 1}), nil))
		other := must(aztables.NewServiceClientWithSharedKey(secondary, credential, nil)).NewClient(name)
		equal(c, get(c, other, "p", "r").Properties["n"], any(int32(1)))
		_, err := other.AddEntity(c.ctx, entity("p", "s", nil), nil)
		c.refused(err, http.StatusForbidden, "InsufficientAccountPermissions")
	}))

	test("service: merges tunnelled through POST, as the SDK sends them to names like Cosmos DB's", onTable(func(c *Case, owner *aztables.Client, name string) {
		likeCosmos := "http://" + account + ".table.cosmos.example:" + serverPort()
		table := must(aztables.NewServiceClientWithSharedKey(likeCosmos, credential, resolvedLocally())).NewClient(name)
		must(table.AddEntity(c.ctx, row(props{"a": 1}), nil))
		must(table.UpdateEntity(c.ctx, row(props{"b": 2}), update(aztables.UpdateModeMerge, nil)))
		must(table.SubmitTransaction(c.ctx, actions{matching(azcore.ETagAny, action(aztables.TransactionTypeUpdateMerge, "r", props{"c": 3}))}, nil))
		equal(c, get(c, owner, "p", "r").Properties, map[string]any{"a": int32(1), "b": int32(2), "c": int32(3)})
	}))

	test("service: a wrong key is AuthenticationFailed", func(c *Case) {
		wrong := must(aztables.NewSharedKeyCredential(account, base64.StdEncoding.EncodeToString([]byte("wrong"))))
		client := must(aztables.NewServiceClientWithSharedKey(endpoint, wrong, nil))
		_, err := client.NewListTablesPager(nil).NextPage(c.ctx)
		c.refused(err, http.StatusForbidden, "AuthenticationFailed")
	})

	test("service: no credentials at all are NoAuthenticationInformation", func(c *Case) {
		client := must(aztables.NewServiceClientWithNoCredential(endpoint, nil))
		_, err := client.NewListTablesPager(nil).NextPage(c.ctx)
		c.refused(err, http.StatusUnauthorized, "NoAuthenticationInformation")
	})
}
