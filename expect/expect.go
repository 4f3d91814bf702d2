// Package expect has the lines that every test repeats: no error, one value that must be
// another, and a state that is waited for. It knows nothing of ours.
package expect

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// No ends the test for an error. What it was about is told before it.
func No(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s%v", told(about), err)
	}
}

// Is fails the test, which goes on, if a value isn't the one that is wanted.
func Is[T comparable](t testing.TB, got, want T, about ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%sgot %s, want %s", told(about), shown(got), shown(want))
	}
}

func shown(v any) string {
	if reflect.ValueOf(v).Kind() == reflect.String {
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%+v", v)
}

func told(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintln(about...), "\n") + ": "
}

// patience is far above what anything takes; it only ends a hang.
const patience = 2 * time.Minute

// Await waits for a state that rings no bell: of a process, a file, a socket.
func Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
