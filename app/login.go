//go:build linux

package app

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// logIn is command.Env's, where a person sits at this terminal; nil elsewhere.
func logIn() func(ctx context.Context, name string, argv []string) error {
	if !term.IsTerminal(os.Stdin) || !term.IsTerminal(os.Stderr) {
		return nil
	}
	return func(ctx context.Context, name string, argv []string) error {
		fmt.Fprintf(os.Stderr, "%s is not logged in. Open its login here, %s? [Y/n] ", name, core.Join(argv))
		answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "" && answer != "y" && answer != "yes" {
			return nil
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd.Run()
	}
}
