package main

import (
	"strconv"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

const (
	tasks    = 20
	messages = 400
)

// atOnce runs the body in many goroutines, and returns what each returned.
func atOnce[T any](many int, body func(task int) T) []T {
	results := make([]T, many)
	var running sync.WaitGroup
	for task := range many {
		running.Add(1)
		go func() {
			defer running.Done()
			results[task] = body(task)
		}()
	}
	running.Wait()
	return results
}

func tally(results []string, wanted string) (found int) {
	for _, result := range results {
		if result == wanted {
			found++
		}
	}
	return found
}

func resultOf(err error) string {
	if err == nil {
		return "won"
	}
	return codeOf(err)
}

func concurrencyCases() {
	test("concurrency: no message is handed out twice", onQueue(nil, func(c *Case, q queue, _ string) {
		for _, err := range atOnce(tasks, func(task int) error {
			for n := range messages / tasks {
				if _, err := q.EnqueueMessage(c.ctx, strconv.Itoa(task*messages+n), nil); err != nil {
					return err
				}
			}
			return nil
		}) {
			c.ok(err)
		}
		var lock sync.Mutex
		taken := map[string]int{}
		for _, err := range atOnce(tasks, func(task int) error {
			for {
				answer, err := q.DequeueMessages(c.ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(1 + task%8)), VisibilityTimeout: to.Ptr(long)})
				if err != nil || len(answer.Messages) == 0 {
					return err
				}
				lock.Lock()
				for _, one := range answer.Messages {
					taken[*one.MessageText]++
				}
				lock.Unlock()
			}
		}) {
			c.ok(err)
		}
		equal(c, len(taken), messages)
		for text, times := range taken {
			c.that(times == 1, "%s was handed out %d times", text, times)
		}
	}))

	test("concurrency: one of many deletes wins", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		results := atOnce(tasks, func(int) string { return resultOf(remove(c, q, found.MessageID, found.PopReceipt)) })
		equal(c, []int{tally(results, "won"), tally(results, "MessageNotFound")}, []int{1, tasks - 1})
	}))

	test("concurrency: one of many updates wins", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
		found := receive(c, q, long)
		results := atOnce(tasks, func(task int) string {
			_, err := update(c, q, found.MessageID, found.PopReceipt, strconv.Itoa(task), 0)
			return resultOf(err)
		})
		equal(c, []int{tally(results, "won"), tally(results, "MessageNotFound")}, []int{1, tasks - 1})
	}))
}
