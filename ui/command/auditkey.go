package command

import (
	"strconv"

	"github.com/spf13/cobra"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

func (t *tree) auditKey() *cobra.Command {
	return t.group("key", "The keys that sign the log",
		t.command(spec{
			use: "show", short: "Show the keys that signed the log, oldest first, and from which event to which", effect: Reads,
			long: "Show the keys that signed the log, oldest first: the event that names each, and the last event under it. The last key\n" +
				"is in force. One that is unsigned was not named by the key before it: the key file was exchanged or lost, or the data\n" +
				"file is away from it.",
			run: func(c *call, _ []string) error {
				all, err := c.eng.Keys(c.ctx, c.by.Tenant)
				if err != nil {
					return err
				}
				return list(c, core.Page[audit.Key]{Items: all}, signingColumns(c))
			},
		}),
		t.command(spec{
			use: "rotate", short: "Make a new signing key, signed by the old one, which is then gone", effect: Writes, role: Admin, confirm: ConfirmAsk,
			long: "Make a new signing key. The old one signs it and is then gone; checkpoints are signed with the new one from the event\n" +
				"on that names it. The logs of the data file's other tenants take it up with their next event.",
			run: func(c *call, _ []string) error {
				k, err := c.eng.RotateKey(c.ctx, c.by)
				if err != nil {
					return err
				}
				return record(c, k, signingColumns(c))
			},
		}),
	)
}

func signingColumns(*call) []column[audit.Key] {
	type K = audit.Key
	seq := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	return []column[K]{
		{title: "KEY", text: func(k K) string { return k.KeyID }},
		{title: "FROM", right: true, text: func(k K) string { return seq(k.First) }},
		{title: "TO", right: true, text: func(k K) string { return seq(k.Last) }},
		{title: "SIGNED BY", text: func(k K) string {
			switch {
			case k.Unsigned:
				return "UNSIGNED"
			case k.SignedBy == "":
				return "the first"
			}
			return k.SignedBy
		}},
		{title: "EVENT", text: func(k K) string { return k.Event }},
		{title: "VERIFIER", most: 120, text: func(k K) string { return k.Verifier }},
	}
}
