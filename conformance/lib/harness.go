package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
)

const caseTimeout = 60 * time.Second

// Case is what the body of a case works with: its methods end the case when something is wrong.
type Case struct {
	ctx context.Context
}

type registered struct {
	name string
	body func(*Case)
}

type failure string

var cases []registered

// test registers a case, which passes when its body returns.
func test(name string, body func(*Case)) {
	cases = append(cases, registered{name, body})
}

// runAll runs the cases whose names contain wanted, and writes a line of JSON for each.
func runAll(wanted string) {
	results, err := os.OpenFile(os.Getenv("TAVOLA_RESULTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer results.Close()
	seen := map[string]bool{}
	for _, one := range cases {
		if seen[one.name] {
			panic("two cases have the name " + one.name)
		}
		seen[one.name] = true
		if !strings.Contains(one.name, wanted) {
			continue
		}
		detail := outcome(one.body)
		line, _ := json.Marshal(map[string]any{"case": one.name, "ok": detail == "", "detail": detail})
		fmt.Fprintln(results, string(line))
	}
}

func outcome(body func(*Case)) (detail string) {
	ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
	defer cancel()
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case failure:
			detail = string(thrown)
		default:
			detail = fmt.Sprintf("panic: %v\n%s", thrown, debug.Stack())
		}
	}()
	body(&Case{ctx})
	return ""
}

// fail ends the case.
func (c *Case) fail(format string, args ...any) {
	panic(failure(fmt.Sprintf(format, args...)))
}

// ok ends the case unless there is no error.
func (c *Case) ok(err error) {
	if err != nil {
		c.fail("unexpected error: %v\n%s", err, debug.Stack())
	}
}

// that ends the case unless the condition holds.
func (c *Case) that(condition bool, format string, args ...any) {
	if !condition {
		c.fail(format, args...)
	}
}

// must returns the value, or ends the case when there is an error instead.
func must[T any](value T, err error) T {
	if err != nil {
		panic(failure(fmt.Sprintf("unexpected error: %v\n%s", err, debug.Stack())))
	}
	return value
}

// equal ends the case unless both are the same.
func equal[T any](c *Case, got, want T) {
	if !reflect.DeepEqual(got, want) {
		c.fail("got  %#v\nwant %#v", got, want)
	}
}

var (
	runID = newRunID()
	named = 0
)

func newRunID() string {
	id := make([]byte, 4)
	must(rand.Read(id))
	return hex.EncodeToString(id)
}

// newName returns a name for a table or a queue that nothing else uses.
func newName() string {
	named++
	return fmt.Sprintf("go%sn%d", runID, named)
}

// restartServer kills the server and starts it again on the same port and data.
func restartServer() {
	answer := must(http.Post(os.Getenv("TAVOLA_CONTROL")+"/restart", "", nil))
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		panic(failure("restart answered " + answer.Status))
	}
}
