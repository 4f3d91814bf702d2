// Package plain is the cockpit as lines of text, for where there is no
// terminal to draw on, and for people who have the lines read to them.
package plain

import (
	"bufio"
	"context"
	"fmt"

	"swarmdeck/ui/command"
)

// Run reads command lines until the input ends.
func Run(ctx context.Context, env *command.Env, s command.Start, why string) error {
	line := *env
	line.Caller, line.Dir, line.Open, line.Close, line.Doors = s.Caller, s.Dir, env.Open, nil, command.Doors{}
	fmt.Fprintf(env.Stdout, "swarmdeck in plain lines (%s); type help for the commands\n", why)
	in := bufio.NewScanner(env.Stdin)
	for in.Scan() && ctx.Err() == nil {
		args, err := command.Split(in.Text())
		if err != nil {
			fmt.Fprintln(env.Stderr, err)
			continue
		}
		if len(args) > 0 {
			command.Run(ctx, &line, args)
		}
	}
	return in.Err()
}
