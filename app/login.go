//go:build linux

package app

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// hands are whoever started this process: what they interrupt, and their terminal.
type hands struct{ interrupts chan os.Signal }

// context ends at the first signal that ends the process, a second one ends it at once.
func (h *hands) context() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(context.Background())
	h.interrupts = make(chan os.Signal, 1)
	ends := make(chan os.Signal, 1)
	signal.Notify(h.interrupts, os.Interrupt)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-h.interrupts:
		case <-ends:
		case <-ctx.Done():
		}
		signal.Stop(h.interrupts)
		signal.Stop(ends)
		stop()
	}()
	return ctx, stop
}

// lend is command.Env's. The terminal interrupts this process too: that is told to spare.
func (h *hands) lend(argv []string) error {
	spare, settled := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(spare, os.Interrupt)
	signal.Stop(h.interrupts)
	defer func() {
		signal.Notify(settled, os.Interrupt)
		signal.Stop(settled) // it returns once whatever came so far was told
		signal.Notify(h.interrupts, os.Interrupt)
		signal.Stop(spare)
	}()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// logIn is command.Env's, where a person sits at this terminal; nil elsewhere.
func (h *hands) logIn() func(ctx context.Context, name string, argv []string) error {
	if !term.IsTerminal(os.Stdin) || !term.IsTerminal(os.Stderr) {
		return nil
	}
	return func(_ context.Context, name string, argv []string) error {
		fmt.Fprintf(os.Stderr, "%s is not logged in. Open its login here, %s? [Y/n] ", name, core.Join(argv))
		answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "" && answer != "y" && answer != "yes" {
			return nil
		}
		return h.lend(argv)
	}
}
