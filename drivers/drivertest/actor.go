package drivertest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Stage is an actor's way to speak in its protocol.
type Stage interface {
	// Say sends one message.
	Say(text string)
	// Noise sends what the protocol does not allow: broken and unknown lines,
	// control characters, invalid UTF-8, a line of 11 MiB.
	Noise()
	// Ask asks for a tool call and waits for the answer. It may be called
	// from several goroutines.
	Ask(tool, args string) (decision, finalArgs, reason string)
	// Cancelled is closed when the prompt was cancelled.
	Cancelled() <-chan struct{}
}

// Perform plays the acts of one prompt and returns the error of its result,
// "" for success. The acts are
//
//	say TEXT        a message
//	flood N         N messages, "line 1" to "line N"
//	noise           see Stage.Noise
//	tool NAME ARGS  asks, then says "approve ARGS", "deny REASON" or "abort REASON"
//	tools N         asks N times at once, then says "answered N"
//	count FILE      writes growing numbers to FILE until cancelled
//	spawn FILE      starts a process that outlives signals and its session, its pid to FILE
//	deaf            ignores every signal and cancel that can be ignored
//	hang            waits until cancelled
//	die N           exits with status N, without a result
//	crash           ends itself with SIGKILL
//	fail TEXT       ends with a failed result
func Perform(s Stage, prompt string) (failure string) {
	deaf := false
	wait := func(each func()) {
		for {
			select {
			case <-s.Cancelled():
				if !deaf {
					return
				}
				time.Sleep(time.Millisecond)
			case <-time.After(time.Millisecond):
			}
			each()
		}
	}
	for _, line := range strings.Split(prompt, "\n") {
		act, rest, _ := strings.Cut(line, " ")
		switch act {
		case "say":
			s.Say(rest)
		case "flood":
			n, _ := strconv.Atoi(rest)
			for i := range n {
				s.Say(fmt.Sprintf("line %d", i+1))
			}
		case "noise":
			s.Noise()
		case "tool":
			name, args, _ := strings.Cut(rest, " ")
			decision, final, reason := s.Ask(name, args)
			if decision == "approve" {
				reason = final
			}
			s.Say(decision + " " + reason)
			if decision == "abort" {
				return "the run was aborted"
			}
		case "tools":
			n, _ := strconv.Atoi(rest)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { s.Ask("many", fmt.Sprintf(`{"n":%d}`, i)) })
			}
			all.Wait()
			s.Say("answered " + rest)
		case "count":
			n := 0
			wait(func() {
				n++
				_ = os.WriteFile(rest, []byte(strconv.Itoa(n)), 0o600)
			})
			return "cancelled"
		case "spawn":
			spawn(rest)
		case "deaf":
			deaf = true
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		case "hang":
			wait(func() {})
			return "cancelled"
		case "die":
			n, _ := strconv.Atoi(rest)
			os.Exit(n)
		case "crash":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "fail":
			return rest
		case "":
		default:
			return "no such act: " + act
		}
	}
	return ""
}

// spawn leaves a process that tries to stay.
func spawn(pidFile string) {
	c := exec.Command("sh", "-c", `trap '' INT TERM HUP; echo $$ >"$1.tmp"; mv "$1.tmp" "$1"; while :; do sleep 60; done`, "sh", pidFile)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "spawn:", err)
		return
	}
	for range 5000 {
		if _, err := os.Stat(pidFile); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
