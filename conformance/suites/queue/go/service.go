package main

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

const origin = "https://app.example.com"

func corsRule() *azqueue.CORSRule {
	return &azqueue.CORSRule{
		AllowedOrigins: to.Ptr(origin), AllowedMethods: to.Ptr("GET,PUT"), AllowedHeaders: to.Ptr("content-type,x-ms-*"),
		ExposedHeaders: to.Ptr("x-ms-request-id"), MaxAgeInSeconds: to.Ptr(int32(60)),
	}
}

func retention(days int32) *azqueue.RetentionPolicy {
	return &azqueue.RetentionPolicy{Enabled: to.Ptr(true), Days: &days}
}

func metrics(days int32) *azqueue.Metrics {
	return &azqueue.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: retention(days)}
}

// restoring is a case's body after which the service properties are as they were.
func restoring(body func(*Case)) func(*Case) {
	return func(c *Case) {
		before := must(service.GetServiceProperties(c.ctx, nil))
		rules := before.CORS
		if rules == nil {
			rules = []*azqueue.CORSRule{}
		}
		defer service.SetProperties(c.ctx, &azqueue.SetPropertiesOptions{CORS: rules, HourMetrics: before.HourMetrics, Logging: before.Logging, MinuteMetrics: before.MinuteMetrics})
		body(c)
	}
}

func serviceCases() {
	test("service: properties come back", restoring(func(c *Case) {
		sent := azqueue.SetPropertiesOptions{
			CORS:        []*azqueue.CORSRule{corsRule(), corsRule()},
			HourMetrics: metrics(5), MinuteMetrics: metrics(6),
			Logging: &azqueue.Logging{Version: to.Ptr("1.0"), Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(true), RetentionPolicy: retention(7)},
		}
		must(service.SetProperties(c.ctx, &sent))
		found := must(service.GetServiceProperties(c.ctx, nil))
		equal(c, found.CORS, sent.CORS)
		equal(c, found.HourMetrics, sent.HourMetrics)
		equal(c, found.MinuteMetrics, sent.MinuteMetrics)
		equal(c, found.Logging, sent.Logging)
	}))

	test("service: six CORS rules are refused", restoring(func(c *Case) {
		rules := []*azqueue.CORSRule{}
		for range 6 {
			rules = append(rules, corsRule())
		}
		_, err := service.SetProperties(c.ctx, &azqueue.SetPropertiesOptions{CORS: rules})
		c.refused(err, 400, "InvalidXmlDocument")
	}))

	test("service: a retention of 366 days is refused", restoring(func(c *Case) {
		_, err := service.SetProperties(c.ctx, &azqueue.SetPropertiesOptions{HourMetrics: metrics(366)})
		c.refused(err, 400, "InvalidXmlDocument")
	}))

	test("service: a preflight by the rules", restoring(func(c *Case) {
		must(service.SetProperties(c.ctx, &azqueue.SetPropertiesOptions{CORS: []*azqueue.CORSRule{corsRule()}}))
		for method, status := range map[string]int{"GET": 200, "DELETE": 403} {
			request := must(http.NewRequest("OPTIONS", endpoint+"/some-queue/messages", nil))
			request.Header.Set("Origin", origin)
			request.Header.Set("Access-Control-Request-Method", method)
			answer := must(http.DefaultClient.Do(request))
			answer.Body.Close()
			equal(c, answer.StatusCode, status)
		}
	}))

	secondary := must(azqueue.NewServiceClientWithSharedKeyCredential(endpoint+"-secondary", credential, nil))

	test("service: statistics of the secondary", func(c *Case) {
		stats := must(secondary.GetStatistics(c.ctx, nil))
		equal(c, string(*stats.GeoReplication.Status), "live")
		c.that(!stats.GeoReplication.LastSyncTime.IsZero(), "no time of the last synchronisation")
	})

	test("service: no statistics of the primary", func(c *Case) {
		_, err := service.GetStatistics(c.ctx, nil)
		c.refused(err, 400, "InvalidQueryParameterValue")
	})

	test("service: the secondary reads and does not write", onQueue([]string{"m"}, func(c *Case, q queue, name string) {
		reader := secondary.NewQueueClient(name)
		equal(c, peeked(c, reader), "m")
		_, err := reader.EnqueueMessage(c.ctx, "x", nil)
		c.that(err != nil, "it writes")
		equal(c, count(c, q), 1)
	}))
}
