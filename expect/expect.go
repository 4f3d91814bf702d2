// Package expect has the lines that every test repeats: no error, one value that must be
// another, and a state that is waited for. It knows nothing of ours.
package expect

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience only ends a hang.
const patience = 10 * time.Minute

// No ends the test for an error. What it was about is told before it.
func No(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s%v", told(about), err)
	}
}

// Of is the value of a call without an error: expect.Of(os.Open(name))(t).
func Of[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		No(t, err)
		return v
	}
}

// Is fails the test, which goes on, if a value isn't the one that is wanted.
func Is[T comparable](t testing.TB, got, want T, about ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%sgot %s, want %s", told(about), shown(got), shown(want))
	}
}

// True fails the test, which goes on, if what is expected doesn't hold.
func True(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Errorf(format, args...)
	}
}

// Must ends the test if what it goes on with doesn't hold.
func Must(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// Same fails the test, which goes on, if two lists differ.
func Same[E comparable](t testing.TB, got, want []E, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%sgot %v, want %v", told(about), got, want)
	}
}

// Has fails the test, which goes on, if a text lacks a part.
func Has(t testing.TB, text, part string, about ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%sgot %q, want it to have %q", told(about), text, part)
	}
}

// Row fails the test, which goes on, for members of an object that aren't as named.
func Row[V any](t testing.TB, row map[string]V, want ...any) {
	t.Helper()
	for pair := range slices.Chunk(want, 2) {
		if got := any(row[pair[0].(string)]); got != pair[1] {
			t.Errorf("%s: got %v, want %v, of %v", pair[0], got, pair[1], row)
		}
	}
}

// Err fails the test, which goes on, if an error isn't of the kind that is wanted.
func Err(t testing.TB, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%sgot error %v, want %v", told(about), err, want)
	}
}

// Says fails the test, which goes on, if there is no error or its text lacks a part;
// for "" none is wanted.
func Says(t testing.TB, err error, part string, about ...any) {
	t.Helper()
	if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
		t.Errorf("%sgot error %v, want one that says %q", told(about), err, part)
	}
}

// Fault is the error of a call whose value is nothing to the test.
func Fault[T any](_ T, err error) error { return err }

// Later runs a function beside the test and returns where its value comes.
func Later[T any](do func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- do() }()
	return c
}

// From is what comes from a channel, which ends the test if it doesn't.
func From[T any](t testing.TB, c <-chan T, missing string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal(missing)
	}
	return v
}

// Fails fails the test, which goes on, if there is no error.
func Fails(t testing.TB, err error, about ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%sgot no error", told(about))
	}
}

func shown(v any) string {
	if reflect.ValueOf(v).Kind() == reflect.String {
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%+v", v)
}

func told(about []any) (said string) {
	for _, v := range about {
		if out, is := v.([]byte); is {
			v = string(out)
		}
		said += fmt.Sprint(v) + ": "
	}
	return said
}

// Still fails the test if a value changes within a fifth of a second.
func Still[T comparable](t testing.TB, value func() T, about ...any) {
	t.Helper()
	StillFor(t, 200*time.Millisecond, value, about...)
}

// StillFor fails the test if a value changes within a time.
func StillFor[T comparable](t testing.TB, d time.Duration, value func() T, about ...any) {
	t.Helper()
	now, was := value(), value()
	for end := time.Now().Add(d); now == was && time.Now().Before(end); now = value() {
		time.Sleep(d / 20)
	}
	Is(t, now, was, about...)
}

// Rests waits until a value stays the same for a fifth of a second.
func Rests[T comparable](t testing.TB, what string, value func() T) (last T) {
	t.Helper()
	Await(t, what, func() bool {
		last = value()
		time.Sleep(200 * time.Millisecond)
		return value() == last
	})
	return last
}

// Run runs the tests of a package, whose goroutines all have to end.
func Run(m *testing.M) (code int) {
	before := runtime.NumGoroutine()
	code = m.Run()
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		return code // the fuzzer has goroutines of its own
	}
	for end := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return 1
		}
	}
	return code
}

// Await waits for a state that rings no bell. Between two looks it leaves the machine to
// what it waits for, twice as long as a look takes.
func Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		began := time.Now()
		if ok() {
			return
		}
		if began.After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(max(2*time.Millisecond, min(2*time.Since(began), time.Second)))
	}
}
