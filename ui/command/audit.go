package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

func (t *tree) audit() *cobra.Command {
	return t.group("audit", "The log that proves what happened",
		t.auditList(),
		t.command(spec{
			use: "show ID", short: "Show an audit event", effect: Reads, args: []string{"event"},
			run: func(c *call, args []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				found, err := eng.Audit.Get(c.ctx, by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
		t.auditVerify(),
		t.command(spec{
			use: "checkpoint", short: "Print the newest signed checkpoint, to keep elsewhere", effect: Reads,
			run: func(c *call, _ []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				note, err := eng.Audit.Checkpoint(c.ctx, by.Tenant)
				if err != nil {
					return err
				}
				return c.textDocument("checkpoint", note)
			},
		}),
		t.command(spec{
			use: "prove ID", short: "Print a proof that an event is in the log", effect: Reads, args: []string{"event"},
			run: func(c *call, args []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				proof, err := eng.Audit.Prove(c.ctx, by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.textDocument("proof", proof)
			},
		}),
		t.auditCheckProof(),
		t.auditExport(),
		t.auditReconcile(),
	)
}

// textDocument prints a text document as it is, or as one JSON object.
func (c *call) textDocument(name string, text []byte) error {
	if c.g.Output != "json" {
		return c.raw(text)
	}
	var out bytes.Buffer
	if err := putJSON(&out, map[string]string{name: string(text)}); err != nil {
		return err
	}
	return c.flush(&out)
}

func (t *tree) auditList() *cobra.Command {
	var l filter
	return t.command(spec{
		use: "list", short: "List the audit events, newest first", effect: Reads,
		long:  "List the audit events, newest first. --kind is the event type, task.* takes all that begin so;\n--agent is who acted or what it was about.",
		flags: func(f *pflag.FlagSet) { l.bind(f) },
		run: func(c *call, _ []string) error {
			f, err := l.read(c)
			if err != nil {
				return err
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			page, err := eng.Audit.List(c.ctx, by.Tenant, f)
			if err != nil {
				return err
			}
			type E = audit.Event
			return list(c, page, []column[E]{
				{title: "SEQ", right: true, text: func(e E) string { return fmt.Sprint(e.Seq) }},
				{title: "EVENT", text: func(e E) string { return e.EventID }},
				{title: "TYPE", text: func(e E) string { return e.EventType }},
				{title: "BY", most: 20, text: func(e E) string { return e.Actor }},
				{title: "DOOR", text: func(e E) string { return string(e.Door) }},
				{title: "AGE", right: true, text: func(e E) string { return c.age(e.CreatedAt) }},
				{title: "CREATED", wide: true, text: func(e E) string { return stamp(e.CreatedAt) }},
				{title: "TRACE", wide: true, text: func(e E) string { return e.TraceID }},
				{title: "PAYLOAD", most: 60, text: func(e E) string { return string(e.Payload) }},
			})
		},
	})
}

func (t *tree) auditVerify() *cobra.Command {
	var checkpoint string
	return t.command(spec{
		use: "verify", short: "Recompute the whole log; exit 1 unless it is sound", effect: Reads,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&checkpoint, "checkpoint", "", "a checkpoint `FILE` kept elsewhere, which the log must extend")
			source(f, "checkpoint", "file")
		},
		run: func(c *call, _ []string) error {
			var saved []byte
			if checkpoint != "" {
				var err error
				if saved, err = c.file("checkpoint", checkpoint); err != nil {
					return err
				}
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			report, err := eng.Audit.Verify(c.ctx, by.Tenant, saved)
			if err != nil {
				return err
			}
			if err := c.show(report); err != nil {
				return err
			}
			if !report.OK {
				return &ExitError{Code: ExitFailed, Err: core.Errorf(core.Conflict, "audit log of %s does not verify: %d problems", by.Tenant, len(report.Problems))}
			}
			return nil
		},
	})
}

func (t *tree) auditCheckProof() *cobra.Command {
	var key string
	return t.command(spec{
		use: "check-proof FILE", short: "Check a proof and print its event", effect: Reads, args: []string{"file"},
		long: "Check a proof made by audit prove and print the event it proves. The verifier key is that of this\n" +
			"data file's tenant unless --key names another log's.",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&key, "key", "", "verifier `KEY`: name+hash+key")
		},
		run: func(c *call, args []string) error {
			proof, err := c.file("file", args[0])
			if err != nil {
				return err
			}
			keys := []string{key}
			if key == "" {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				// Every key the log ever used; the proof names its own.
				if keys, err = eng.Audit.Verifiers(c.ctx, by.Tenant); err != nil {
					return err
				}
			}
			event, err := checkProof(proof, keys)
			if err != nil {
				return err
			}
			return c.show(event)
		},
	})
}

// checkProof tries each verifier key.
func checkProof(proof []byte, keys []string) (event audit.Event, err error) {
	err = core.Errorf(core.NotFound, "this tenant's log has no signing key yet; name one with --key").With("field", "key")
	for i := len(keys) - 1; i >= 0; i-- {
		if event, err = audit.CheckProof(proof, keys[i]); err == nil {
			return event, nil
		}
	}
	return audit.Event{}, err
}

func (t *tree) auditExport() *cobra.Command {
	var format, out string
	return t.command(spec{
		use: "export", short: "Write the whole log as JSON lines or CSV", effect: Reads,
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &format, "format", "", "jsonl", "format: jsonl|csv", "jsonl", "csv")
			f.StringVar(&out, "out", "", "into this `FILE`, which must not exist (default stdout)")
			source(f, "out", "file")
		},
		run: func(c *call, _ []string) error {
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			if out == "" || out == "-" {
				return eng.Audit.Export(c.ctx, by.Tenant, format, c.env.Stdout)
			}
			path := c.env.path(out)
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return outError("out", out, err)
			}
			err = eng.Audit.Export(c.ctx, by.Tenant, format, f)
			if err == nil {
				err = f.Sync()
			}
			if closeErr := f.Close(); err == nil {
				err = closeErr
			}
			if err != nil {
				os.Remove(path) // half an export is worse than none
				return fmt.Errorf("export to %s: %w", out, err)
			}
			return c.say(map[string]string{"file": filepath.Clean(path), "format": format}, "exported to %s", out)
		},
	})
}

func outError(field, path string, err error) error {
	if os.IsExist(err) {
		return core.Errorf(core.Conflict, "%s: %s exists already", field, clip(path)).With("field", field).With("value", clip(path))
	}
	return fmt.Errorf("%s: %w", field, err)
}

func (t *tree) auditReconcile() *cobra.Command {
	return t.command(spec{
		use: "reconcile", short: "Replay the log and list every difference from the store; exit 1 if there is one", effect: Reads,
		run: func(c *call, _ []string) error {
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			deltas, err := eng.Reconcile(c.ctx, by.Tenant)
			if err != nil {
				return err
			}
			if len(deltas) == 0 {
				if c.g.Output == "json" {
					return nil
				}
				return c.say(nil, "no unexplained difference")
			}
			type D = audit.Delta
			err = list(c, core.Page[D]{Items: deltas}, []column[D]{
				{title: "SUBJECT", text: func(d D) string { return d.Subject }},
				{title: "ID", text: func(d D) string { return d.ID }},
				{title: "FIELD", text: func(d D) string { return d.Field }},
				{title: "BY THE LOG", most: 40, text: func(d D) string { return d.Log }},
				{title: "IN THE STORE", most: 40, text: func(d D) string { return d.Store }},
			})
			if err != nil {
				return err
			}
			return &ExitError{Code: ExitFailed, Err: core.Errorf(core.Conflict, "%d unexplained differences between log and store", len(deltas))}
		},
	})
}
