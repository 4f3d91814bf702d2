package acp

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest/hosttest"
)

// TestMain makes the tests' process what the engine's is, and checks at the
// end that nothing was left.
func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	if code, is := hosttest.Entered(os.Args); is {
		syscall.Exit(code)
	}
	for name, play := range map[string]func(string) int{ // first: they have the other variables as well
		"ACP_TEST_COPY": playCopier, "ACP_TEST_PLAYER": playSecond,
	} {
		if with := os.Getenv(name); with != "" {
			os.Exit(play(with))
		}
	}
	if file := os.Getenv("ACP_TEST_TEE"); file != "" {
		os.Exit(playTee(file, os.Args[1:]))
	}
	if dir := os.Getenv("ACP_TEST_PLAY"); dir != "" {
		os.Exit(playWire(dir))
	}
	if file := os.Getenv("ACP_TEST_STEPS"); file != "" {
		os.Exit(playSteps(file))
	}
	if as := os.Getenv("ACP_TEST_AS"); as != "" {
		os.Exit(play(as))
	}
	if dir := os.Getenv("ACP_TEST_ENGINE"); dir != "" {
		playEngine(dir)
		os.Exit(0)
	}
	if err := cell.BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		os.Exit(code) // the fuzzer has goroutines of its own
	}
	for deadline := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		fmt.Fprintf(os.Stderr, "%d goroutines, %d before the tests\n", n, before)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		code = 1
	}
	os.Exit(code)
}
