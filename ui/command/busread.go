package command

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// counted declares --count, how many messages a command reads.
func counted(f *pflag.FlagSet, n *int, def, most int, usage string) {
	f.IntVar(n, "count", def, fmt.Sprintf("%s `N`, 1-%d", usage, most))
}

func checkCount(n, most int) error {
	if n < 1 || n > most {
		return usage("count", "--count: %d is not allowed; allowed: 1-%d", n, most)
	}
	return nil
}

func (t *tree) busRead() *cobra.Command {
	var peek bool
	var n int
	return t.command(spec{
		use: "read AGENT", short: "Take messages out of a mailbox", effect: Writes, args: []string{"mailbox"},
		long: "Take messages out of the mailbox of an agent, controller or system: the highest priority first, then the\n" +
			"oldest. They are acknowledged and won't come again. With --peek they stay.",
		example: "bus read grasper --count 5\nbus read grasper --peek",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&peek, "peek", false, "only look")
			counted(f, &n, core.DefaultPageSize, core.MaxPageSize, "at most")
		},
		check: func(*call, []string) error { return checkCount(n, core.MaxPageSize) },
		run: func(c *call, args []string) error {
			take := c.eng.Bus.Read
			if peek {
				take = c.eng.Bus.Peek
			}
			found, err := take(c.ctx, c.by, args[0], n)
			if err != nil {
				return err
			}
			return list(c, core.Page[bus.Message]{Items: found}, messageColumns(c))
		},
	})
}

func (t *tree) busTail() *cobra.Command {
	var follow bool
	var n int
	return t.command(spec{
		use: "tail [PATTERN]", short: "Print the newest messages, oldest first", effect: Reads, args: []string{"topic"},
		long: "Print the newest messages, oldest first; with a pattern, those of the topics that it selects: * stands for\n" +
			"one word, > at the end for one or more. Without one also the direct messages. What the engine does is under\n" +
			"sys.>, for example sys.task.succeeded. It reads along and takes nothing: see consume and read for that.",
		example: "bus tail 'navigation.>' --follow\nbus tail 'sys.task.*'",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&follow, "follow", false, "go on with what comes")
			counted(f, &n, core.DefaultPageSize, 1000, "begin with the newest")
		},
		check: func(c *call, args []string) error {
			if err := checkCount(n, 1000); err != nil {
				return err
			}
			if len(args) > 0 {
				if _, err := bus.ParsePattern(args[0]); err != nil {
					return err
				}
			}
			if follow {
				return c.activate()
			}
			return nil
		},
		run: func(c *call, args []string) error { return c.tail(append(args, "")[0], n, follow) },
	})
}

func (c *call) tail(pattern string, n int, follow bool) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	var bell <-chan struct{}
	if follow {
		bell = c.eng.Watch(ctx)
	}
	found, seq, err := c.eng.Bus.Recent(ctx, c.by.Tenant, pattern, n)
	for {
		if err != nil {
			return err
		}
		if err := c.messageLines(found...); err != nil || !follow {
			return err
		}
		for from := seq; ; from = seq { // a busy log is read in pieces
			if found, seq, err = c.eng.Bus.Since(ctx, c.by.Tenant, pattern, from, 500); err != nil || len(found) > 0 || seq == from {
				break
			}
		}
		if err != nil || len(found) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-bell:
			if !open {
				return core.Errorf(core.Unavailable, "the engine has closed")
			}
		}
	}
}

func (t *tree) busConsume() *cobra.Command {
	var opt bus.SubscribeOptions
	var follow bool
	var typ string
	var n int
	return t.command(spec{
		use: "consume NAME [PATTERN]", short: "Read topics as a durable subscription", effect: Writes, args: []string{"subscription", "topic"},
		long: "Read the topics that a pattern selects as a durable subscription: each time it goes on where it was. What\n" +
			"is printed is acknowledged; what expires before it comes to it is a dead letter. A new NAME needs its PATTERN\n" +
			"and begins with what is accepted from now on, or at --start.",
		example: "bus consume indexer 'navigation.>' --follow",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&follow, "follow", false, "go on with what comes")
			f.Uint64Var(&opt.From, "start", 0, "a new one begins at this `SEQ`")
			enumVar(f, &typ, "type", "", "", "a new one reads only this `TYPE`"+allowedList(core.Strings(bus.Types()...)), core.Strings(bus.Types()...)...)
			counted(f, &n, core.MaxPageSize, 100_000, "at most")
		},
		check: func(c *call, args []string) error {
			if err := checkCount(n, 100_000); err != nil || !follow {
				return err
			}
			return c.activate()
		},
		run: func(c *call, args []string) error {
			opt.Name, opt.Pattern, opt.Type, opt.By = args[0], append(args, "")[1], bus.Type(typ), c.by.Name
			if err := c.known(&opt); err != nil {
				return err
			}
			s, err := c.eng.Bus.Subscribe(c.ctx, c.by.Tenant, opt)
			if err != nil {
				return err
			}
			err = c.consume(s, n, follow)
			if closeErr := s.Close(); err == nil {
				err = closeErr
			}
			return err
		},
	})
}

// known fills in what a durable subscription that exists was made with.
func (c *call) known(opt *bus.SubscribeOptions) error {
	if opt.Pattern != "" && opt.Type != "" {
		return nil
	}
	all, err := c.eng.Bus.Subscriptions(c.ctx, c.by.Tenant)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Name != opt.Name {
			continue
		}
		if opt.Pattern == "" {
			opt.Pattern = s.Pattern
		}
		if opt.Type == "" {
			opt.Type = s.MessageType
		}
	}
	if opt.Pattern == "" {
		return usage("pattern", "bus consume: there is no subscription %q yet; a new one needs a PATTERN", core.Clip(opt.Name))
	}
	return nil
}

func (c *call) consume(s *bus.Subscription, n int, follow bool) error {
	for range n {
		d, ok, err := s.Poll(c.ctx)
		if err == nil && !ok && follow {
			d, err = s.Next(c.ctx)
			ok = true
		}
		if err != nil || !ok {
			return err
		}
		if err := c.messageLines(d.Message); err != nil {
			return err
		}
		d.Ack()
	}
	return nil
}

// messageLines prints messages as they come, one line each.
func (c *call) messageLines(messages ...bus.Message) error {
	var out bytes.Buffer
	for _, m := range messages {
		if c.g.Output == "json" {
			if err := putJSON(&out, m); err != nil {
				return err
			}
			continue
		}
		line := fmt.Sprintf("%s %s %s %s: %s", m.Timestamp.UTC().Format("15:04:05"), address(m.Topic, m.RecipientID), m.MessageType, m.SenderID, m.Payload)
		if c.g.Output == "wide" {
			line = fmt.Sprintf("%s %s %s %s %s: %s", stamp(m.Timestamp), m.MessageID, address(m.Topic, m.RecipientID), m.MessageType, m.SenderID, m.Payload)
		}
		fmt.Fprintln(&out, term.Clean(line))
	}
	return c.flush(&out)
}
