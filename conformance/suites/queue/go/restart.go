package main

import (
	"strconv"
	"sync/atomic"
	"time"
)

func restartCases() {
	test("restart: what was acknowledged is there afterwards", onQueue([]string{"a", "b", "c", "d"}, func(c *Case, q queue, _ string) {
		claimed, deleted := receive(c, q, long), receive(c, q, long)
		c.ok(remove(c, q, deleted.MessageID, deleted.PopReceipt))
		before := peek(c, q)
		restartServer()
		equal(c, peek(c, q), before)
		equal(c, count(c, q), 3)
		c.ok(remove(c, q, claimed.MessageID, claimed.PopReceipt))
	}))

	test("restart: the SDK's retries carry producers over it", onQueue(nil, func(c *Case, q queue, _ string) {
		var restarted atomic.Bool
		sent := make(chan [][]string, 1)
		go func() {
			sent <- atOnce(6, func(task int) (acknowledged []string) {
				for n, after := 0, 0; after < 5; n++ {
					text := strconv.Itoa(task) + "-" + strconv.Itoa(n)
					if _, err := q.EnqueueMessage(c.ctx, text, nil); err != nil {
						return append(acknowledged, err.Error())
					}
					acknowledged = append(acknowledged, text)
					if restarted.Load() {
						after++
					}
				}
				return acknowledged
			})
		}()
		time.Sleep(200 * time.Millisecond)
		restartServer()
		restarted.Store(true)
		found := map[string]bool{}
		all := <-sent
		for _, one := range receiveAll(c, q) {
			found[*one.MessageText] = true
		}
		for _, acknowledged := range all {
			for _, text := range acknowledged {
				c.that(found[text], "lost: %s", text)
			}
		}
	}))
}
