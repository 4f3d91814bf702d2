package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/term"
)

func (t *tree) audit() *cobra.Command {
	return t.group("audit", "The log that proves what happened",
		lists(t, spec{
			use: "list", short: "List the audit events, newest first", effect: Reads,
			long: "List the audit events, newest first. --kind is the event type, task.* takes all that begin so;\n" +
				"--agent is who acted or what it was about.",
			example: "audit list --kind 'approval.*' --since 1h",
		}, nil, eventColumns,
			func(c *call, f core.Filter) (core.Page[audit.Event], error) {
				return c.eng.Audit.List(c.ctx, c.by.Tenant, f)
			}),
		t.command(spec{
			use: "show ID", short: "Show an audit event", effect: Reads, args: []string{"event"},
			run: shows(func(c *call, id string) (audit.Event, error) { return c.eng.Audit.Get(c.ctx, c.by.Tenant, id) }),
		}),
		t.auditVerify(),
		t.command(spec{
			use: "checkpoint", short: "Print the newest signed checkpoint, to keep elsewhere", effect: Reads,
			run: func(c *call, _ []string) error {
				note, err := c.eng.Audit.Checkpoint(c.ctx, c.by.Tenant)
				if err == nil {
					err = c.eng.Audit.Issue(c.ctx, c.by.Tenant, note)
				}
				if err != nil {
					return err
				}
				return c.verbatim(map[string]string{"checkpoint": string(note)}, note)
			},
		}),
		t.command(spec{
			use: "prove ID", short: "Print a proof that an event is in the log", effect: Reads, args: []string{"event"},
			run: func(c *call, args []string) error {
				proof, err := c.eng.Audit.Prove(c.ctx, c.by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.verbatim(map[string]string{"proof": string(proof)}, proof)
			},
		}),
		t.auditCheckProof(),
		t.auditCheckSegment(),
		t.auditExport(),
		t.auditReconcile(),
		t.auditKey(),
		t.auditWitness(),
	)
}

func eventColumns(c *call) []column[audit.Event] {
	type E = audit.Event
	return []column[E]{
		{title: "SEQ", right: true, text: func(e E) string { return fmt.Sprint(e.Seq) }},
		{title: "EVENT", text: func(e E) string { return e.EventID }},
		{title: "TYPE", text: func(e E) string { return e.EventType }},
		{title: "BY", most: 20, text: func(e E) string { return e.Actor }},
		{title: "DOOR", text: func(e E) string { return string(e.Door) }},
		{title: "AGE", right: true, text: func(e E) string { return c.age(e.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(e E) string { return stamp(e.CreatedAt) }},
		{title: "TRACE", wide: true, text: func(e E) string { return e.TraceID }},
		{title: "PAYLOAD", most: 60, text: func(e E) string { return cmp.Or(operator.HeldIn(&e), string(e.Payload)) }},
	}
}

func (t *tree) auditVerify() *cobra.Command {
	var checkpoint, held string
	var saved []byte
	return t.command(spec{
		use: "verify", short: "Recompute the whole log; exit 1 unless it is sound", effect: Reads,
		long: "Recompute every hash of the log and its tree, check the signed checkpoint and every key that ever signed one, and hold\n" +
			"the log against what its file and git witnesses hold. Exit 1 unless all of it is sound.",
		example: "audit verify --checkpoint kept.txt\naudit verify --witness /mnt/elsewhere/swarmdeck.log",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&checkpoint, "checkpoint", "", "a checkpoint `FILE` kept elsewhere, which the log must extend")
			source(f, "checkpoint", sourceText)
			f.StringVar(&held, "witness", "", "a `FILE` that a witness wrote, whose checkpoints the log must extend")
			source(f, "witness", sourceText)
		},
		check: func(c *call, _ []string) (err error) {
			if checkpoint != "" {
				saved, err = c.printed("checkpoint", checkpoint)
			}
			return err
		},
		run: func(c *call, _ []string) error {
			report, err := c.eng.Verify(c.ctx, c.by.Tenant, saved)
			if err == nil && held != "" {
				err = c.compare(held, &report)
			}
			if err != nil {
				return err
			}
			if err := c.print(report, func(w io.Writer) error { return reportText(w, report) }); err != nil {
				return err
			}
			if !report.OK {
				return &ExitError{Code: ExitFailed, Err: core.Errorf(core.Conflict, "audit log of %s does not verify: %d problems", c.by.Tenant, len(report.Problems))}
			}
			return nil
		},
	})
}

// reportText is a report for people: its lists a line for each.
func reportText(w io.Writer, r audit.Report) error {
	keys, witnesses, problems := r.Keys, r.Witnesses, r.Problems
	r.Keys, r.Witnesses, r.Problems = nil, nil, nil
	data, err := core.Encode(r)
	if err != nil {
		return err
	}
	if err := details(w, data); err != nil {
		return err
	}
	for _, k := range keys {
		to, by := "on", "the first"
		if k.Last > 0 {
			to = fmt.Sprintf("to %d", k.Last)
		}
		if k.Unsigned {
			by = "UNSIGNED"
		} else if k.SignedBy != "" {
			by = "signed by " + k.SignedBy
		}
		fmt.Fprintln(w, term.Clean(fmt.Sprintf("key        %s from event %d %s, %s", k.KeyID, k.First, to, by)))
	}
	for _, x := range witnesses {
		fmt.Fprintln(w, term.Clean(fmt.Sprintf("witness    %s: %d checkpoints, the newest of %d events", x.Witness, x.Checkpoints, x.Newest)))
	}
	for _, p := range problems {
		fmt.Fprintln(w, term.Clean("problem    "+p))
	}
	return nil
}

func (t *tree) auditCheckProof() *cobra.Command {
	var key string
	return t.command(spec{
		use: "check-proof FILE", short: "Check a proof and print its event", effect: Reads, args: []string{sourceText}, ownScope: true,
		long: "Check a proof made by audit prove and print the event it proves. The verifier key is that of this\n" +
			"data file's tenant unless --key names another log's.",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&key, "key", "", "verifier `KEY`: name+hash+key")
		},
		run: func(c *call, args []string) error {
			proof, err := c.printed("proof", args[0])
			if err != nil {
				return err
			}
			keys := []string{key}
			if key == "" {
				if err := c.scope(); err != nil {
					return err
				}
				// Every key the log ever used; the proof names its own.
				if keys, err = c.eng.Audit.Verifiers(c.ctx, c.by.Tenant); err != nil {
					return err
				}
			}
			event, err := checkProof(proof, keys)
			if err != nil {
				return inFile(err)
			}
			return c.show(event)
		},
	})
}

// printed reads a file with what verbatim printed as name: the text itself, or
// the object of -o json.
func (c *call) printed(name, path string) ([]byte, error) {
	field := "file"
	if c.flags.Lookup(name) != nil {
		field = name
	}
	data, err := c.file(field, path)
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return data, err
	}
	var object map[string]string
	if err := core.Decode(data, &object); err != nil || len(object) != 1 || object[name] == "" {
		return nil, inFile(core.Errorf(core.InvalidInput, "%s: %s holds JSON, but not {%q: TEXT}", field, core.Clip(path), name).
			With("field", field).With("value", core.Clip(path)))
	}
	return []byte(object[name]), nil
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
		example: "audit export --format csv --out audit.csv",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &format, "format", "", "jsonl", "format: jsonl|csv", "jsonl", "csv")
			f.StringVar(&out, "out", "", "into this `FILE`, which must not exist (default stdout)")
			source(f, "out", "file")
		},
		check: func(c *call, _ []string) error {
			if out == "" || out == "-" {
				return nil
			}
			return c.makesFile()
		},
		run: func(c *call, _ []string) error {
			if out == "" || out == "-" {
				return c.eng.Audit.Export(c.ctx, c.by.Tenant, format, c.env.Stdout)
			}
			path := c.env.path(out)
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return outError("out", out, err)
			}
			err = c.eng.Audit.Export(c.ctx, c.by.Tenant, format, f)
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
	var exit *ExitError
	switch {
	case errors.As(err, &exit):
		return err
	case storeFault(err):
		return fmt.Errorf("%s: %w", field, err)
	case errors.Is(err, fs.ErrExist):
		return core.Errorf(core.Conflict, "%s: %s exists already", field, core.Clip(path)).With("field", field).With("value", core.Clip(path))
	}
	return pathError("write", field, path, err)
}

func (t *tree) auditReconcile() *cobra.Command {
	return t.command(spec{
		use: "reconcile", short: "Replay the log and list every difference from the store; exit 1 if there is one", effect: Reads,
		run: func(c *call, _ []string) error {
			deltas, err := c.eng.Reconcile(c.ctx, c.by.Tenant)
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

func (t *tree) auditCheckSegment() *cobra.Command {
	return t.command(spec{
		use: "check-segment FILE", short: "Check events that left the log against it", effect: Reads, args: []string{sourceText},
		long: "Check a file that audit events were written to before they left (tenant retention set audit --export): its events and\n" +
			"hashes lead to the signed checkpoint in it, and the log extends that.",
		run: func(c *call, args []string) error {
			in, err := c.large("file", args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			found, err := c.eng.Audit.VerifySegment(c.ctx, c.by.Tenant, in)
			if err != nil {
				return inFile(err)
			}
			return c.show(found)
		},
	})
}
