package acp

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest/hosttest"
	"swarmdeck/expect"
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
	os.Exit(expect.Run(m))
}
