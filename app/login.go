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
	"sync/atomic"
	"syscall"

	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// hands are whoever started this process: what they interrupt, and their terminal.
type hands struct{ lent atomic.Bool }

// context ends at the first signal that ends the process, a second one ends it at once. An
// interrupt is no signal while a program has the terminal: that is told too.
func (h *hands) context() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case s := <-signals:
				if s != os.Interrupt || !h.lent.Load() {
					stop()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, stop
}

// lend is command.Env's.
func (h *hands) lend(argv []string) error {
	h.lent.Store(true)
	defer h.lent.Store(false)
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
