package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	tasks  = 20
	rounds = 5
)

// atOnce runs the body in many goroutines, and returns what each returned.
func atOnce[T any](count int, body func(task int) T) []T {
	results := make([]T, count)
	var running sync.WaitGroup
	for task := range count {
		running.Add(1)
		go func() {
			defer running.Done()
			results[task] = body(task)
		}()
	}
	running.Wait()
	return results
}

// countUp adds to a counter from many goroutines, each under its ETag, and expects that no increment is lost.
func countUp(c *Case, table *aztables.Client, write func(entity []byte, etag azcore.ETag) error, isConflict func(error) bool) {
	must(table.AddEntity(c.ctx, row(props{"n": 0}), nil))
	var conflicts atomic.Int32
	errs := atOnce(tasks, func(int) error {
		for done := 0; done < rounds; {
			got, err := table.GetEntity(c.ctx, "p", "r", nil)
			if err != nil {
				return err
			}
			n := decode(got.Value).Properties["n"].(int32)
			switch err = write(row(props{"n": n + 1}), got.ETag); {
			case err == nil:
				done++
			case isConflict(err):
				conflicts.Add(1)
			default:
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		c.ok(err)
	}
	equal(c, get(c, table, "p", "r").Properties["n"], any(int32(tasks*rounds)))
	c.that(conflicts.Load() > 0, "no conflict: the goroutines did not run at the same time")
}

func concurrencyCases() {
	conflict := func(err error) bool { return codeOf(err) == "UpdateConditionNotSatisfied" }

	for _, mode := range []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace} {
		test(fmt.Sprintf("concurrency: no increment is lost with %s", mode), onTable(func(c *Case, table *aztables.Client, _ string) {
			countUp(c, table, func(entity []byte, etag azcore.ETag) error {
				_, err := table.UpdateEntity(c.ctx, entity, update(mode, &etag))
				return err
			}, conflict)
		}))
	}

	test("concurrency: no increment is lost in transactions", onTable(func(c *Case, table *aztables.Client, _ string) {
		countUp(c, table, func(entity []byte, etag azcore.ETag) error {
			_, err := table.SubmitTransaction(c.ctx, actions{{ActionType: aztables.TransactionTypeUpdateReplace, Entity: entity, IfMatch: &etag}}, nil)
			return err
		}, func(err error) bool { return statusOf(err) == 202 })
	}))

	count := func(results []string, wanted string) (found int) {
		for _, result := range results {
			if result == wanted {
				found++
			}
		}
		return found
	}

	test("concurrency: one of many inserts of a row wins", onTable(func(c *Case, table *aztables.Client, _ string) {
		results := atOnce(tasks, func(int) string {
			_, err := table.AddEntity(c.ctx, row(nil), nil)
			if err == nil {
				return "won"
			}
			return codeOf(err)
		})
		equal(c, []int{count(results, "won"), count(results, "EntityAlreadyExists")}, []int{1, tasks - 1})
	}))

	test("concurrency: one of many deletes of a row wins", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(nil), nil))
		results := atOnce(tasks, func(int) string {
			_, err := table.DeleteEntity(c.ctx, "p", "r", nil)
			if err == nil {
				return "won"
			}
			return codeOf(err)
		})
		equal(c, []int{count(results, "won"), count(results, "ResourceNotFound")}, []int{1, tasks - 1})
	}))

	test("concurrency: 200 inserts at once are all there", onTable(func(c *Case, table *aztables.Client, _ string) {
		for _, err := range atOnce(200, func(n int) error {
			_, err := table.AddEntity(c.ctx, entity(fmt.Sprint(n%10), fmt.Sprint(n), nil), nil)
			return err
		}) {
			c.ok(err)
		}
		equal(c, len(list(c, table, "")), 200)
	}))
}
