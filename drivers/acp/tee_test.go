package acp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// What the lines of a wire begin with.
const (
	toAgent   = "> "
	fromAgent = "< "
	killed    = "!" // here the agent's process was killed by a test
	started   = "#" // here a process of the agent began
)

// teed has an agent write down both directions of its wire, in file of dir. Its process
// stays the agent's own, so that whoever kills that kills the agent.
func teed(t *testing.T, a *fleet.Agent, dir, file string, reads ...string) {
	t.Helper()
	self := expect.Of(os.Executable())(t)
	var s settings
	expect.No(t, core.DecodeStored(a.Options, &s))
	s.Read, s.Write = append(s.Read, reads...), append(s.Write, dir) // of its command's files the wall knows no more
	a.Options = core.MustEncode(s)
	a.Command = append([]string{self}, a.Command...)
	a.Env["ACP_TEST_TEE"] = file
}

// playTee becomes the command of its arguments, with a copier on both its streams.
func playTee(file string, argv []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "tee:", err)
		return 2
	}
	if err := appendTo(file, started+"\n"); err != nil {
		return fail(err)
	}
	_ = os.Unsetenv("ACP_TEST_TEE")
	in, toIn, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	fromOut, out, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	copier := osexec.Command(os.Args[0])
	copier.Env = append(os.Environ(), "ACP_TEST_COPY="+file)
	copier.Stdin, copier.Stdout, copier.Stderr = os.Stdin, os.Stdout, os.Stderr
	copier.ExtraFiles = []*os.File{toIn, fromOut}
	if err := copier.Start(); err != nil {
		return fail(err)
	}
	for from, to := range map[*os.File]int{in: 0, out: 1} {
		if err := unix.Dup2(int(from.Fd()), to); err != nil {
			return fail(err)
		}
	}
	path, err := osexec.LookPath(argv[0])
	if err != nil {
		return fail(err)
	}
	return fail(syscall.Exec(path, argv, os.Environ()))
}

// playCopier passes on what goes between the client and the agent, line by line, each
// written down before.
func playCopier(file string) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // it ends with the agent
	toIn, fromOut := os.NewFile(3, "to the agent"), os.NewFile(4, "from the agent")
	var wg sync.WaitGroup
	pass := func(mark string, from io.Reader, to io.Writer) {
		lines := bufio.NewReaderSize(from, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				_ = appendTo(file, mark+string(bytes.TrimSuffix(line, []byte("\n")))+"\n")
				_, _ = to.Write(line)
			}
			if err != nil {
				return
			}
		}
	}
	go func() {
		pass(toAgent, os.Stdin, toIn)
		_ = toIn.Close()
	}()
	wg.Go(func() { pass(fromAgent, fromOut, os.Stdout) })
	wg.Wait()
	return 0
}

func appendTo(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}
