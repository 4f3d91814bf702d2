package op

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/witness"
)

func auditLog() []*Op {
	id := arg("ID", "event")
	return []*Op{
		auditList(),
		show(Op{Name: "audit show", Short: "Show an audit event"}, id,
			byTenant(func(c *Call) tenantRead[string, audit.Event] { return c.Audit.Get })),
		auditVerify(),
		define(Op{Name: "audit checkpoint", Short: "Print the newest signed checkpoint, to keep elsewhere", Effect: Reads},
			func(ctx context.Context, c *Call) (Checkpoint, error) {
				note, err := c.Audit.Checkpoint(ctx, c.By.Tenant)
				if err == nil {
					err = c.Audit.Issue(ctx, c.By.Tenant, note)
				}
				return Checkpoint{string(note)}, err
			}),
		show(Op{Name: "audit prove", Short: "Print a proof that an event is in the log"}, id,
			func(ctx context.Context, c *Call, id string) (Proof, error) {
				proof, err := c.Audit.Prove(ctx, c.By.Tenant, id)
				return Proof{string(proof)}, err
			}),
		auditCheckProof(),
		auditCheckSegment(),
		auditExport(),
		define(Op{Name: "audit reconcile", Short: "Replay the log and list every difference from the store; exit 1 if there is one", Effect: Reads},
			func(ctx context.Context, c *Call) (Deltas, error) {
				all, err := c.Reconcile(ctx, c.By.Tenant)
				if err == nil && len(all) > 0 {
					err = &Failed{core.Errorf(core.Conflict, "%d unexplained differences between log and store", len(all))}
				}
				return all, err
			}),
		define(Op{
			Name: "audit key show", Short: "Show the keys that signed the log, oldest first, and from which event to which", Effect: Reads,
			Long: "Show the keys that signed the log, oldest first: the event that names each, and the last event under it. The last key\n" +
				"is in force. One that is unsigned was not named by the key before it: the key file was exchanged or lost, or the data\n" +
				"file is away from it.",
		}, func(ctx context.Context, c *Call) (all core.Page[audit.Key], err error) {
			all.Items, err = c.Engine.Keys(ctx, c.By.Tenant)
			return all, err
		}),
		define(Op{
			Name: "audit key rotate", Short: "Make a new signing key, signed by the old one, which is then gone", Role: Admin, Confirm: ConfirmAsk, Done: "signs from now on:",
			Long: "Make a new signing key. The old one signs it and is then gone; checkpoints are signed with the new one from the event\n" +
				"on that names it. The logs of the data file's other tenants take it up with their next event.",
		}, func(ctx context.Context, c *Call) (audit.Key, error) {
			if err := c.direct(); err != nil {
				return audit.Key{}, err
			}
			return c.RotateKey(ctx, c.By)
		}),
		change(Op{
			Name: "audit key trust", Short: "Let the key of another machine sign this log too", Role: Admin, Confirm: ConfirmAsk, Undo: "audit key retire", Done: "trusts",
			Long: "Let the key of another machine sign the tenant's log too, at its request: the 128 characters that it names where it says\n" +
				"that the log does not trust its key. The key of the engine that has the tenant signs that, in the log. From then on the\n" +
				"other machine may take the tenant over. Compare the id of the key with the one that is told there.",
		}, arg("REQUEST", ""), func(ctx context.Context, c *Call, request string) (audit.Key, error) {
			if err := c.direct(); err != nil {
				return audit.Key{}, err
			}
			return c.TrustKey(ctx, c.By, request)
		}),
		change(Op{
			Name: "audit key endorse", Short: "Let the key of another machine sign all logs that this machine's key may sign", Role: Admin, Confirm: ConfirmAsk, Undo: "audit key retire", Done: "endorsed",
			Long: "Let the key of another machine sign each log of the database that the key of this machine may sign: `audit key trust` for\n" +
				"all tenants, at any engine. Each engine follows for the logs that it has, within some seconds, and for others once it\n" +
				"has them; where a key was named before, nothing changes. Logs that another machine founded need a request of their own.",
		}, arg("REQUEST", ""), func(ctx context.Context, c *Call, request string) (Told[audit.Endorsement], error) {
			if c.By.Far { // whose rights are those of one tenant
				return Told[audit.Endorsement]{}, core.Errorf(core.Denied, "audit key endorse: it holds for all tenants: give it on the machine whose engine has %s", c.By.Tenant)
			}
			e, err := c.EndorseKey(ctx, c.By, request)
			return told(e, "endorsed key "+e.KeyID+": engines trust it in each log of its request that trusts this machine's key"), err
		}),
		change(Op{
			Name: "audit key retire", Short: "End what another machine's key may sign in this log", Effect: Destroys, Role: Admin, Confirm: ConfirmAsk, Undo: "audit key trust", Done: "retired",
			Long: "End what the key of another machine may sign in the tenant's log: one that was lost, or whose machine is no more. What it\n" +
				"signed before stays valid. The key of the engine that has the tenant signs that; its own it can't retire.",
		}, arg("KEY", ""), func(ctx context.Context, c *Call, id string) (audit.Key, error) {
			if err := c.direct(); err != nil {
				return audit.Key{}, err
			}
			return c.RetireKey(ctx, c.By, id)
		}),
		witnessAdd(),
		picked(Op{Name: "audit witness list", Short: "List the witnesses, what they hold and what went wrong"},
			func(c *Call) tenantList[witness.Status] { return c.Witnesses.List }, func(_ *Call, w witness.Status) core.Traits {
				words := append([]string{w.Name, w.Path, w.LastError}, w.Command...)
				return core.Traits{At: w.CreatedAt, Kind: w.Kind, Text: strings.Join(words, " ")}
			}),
		change(Op{Name: "audit witness remove", Short: "Publish there no more; what it holds stays", Effect: Destroys, Role: Admin, Confirm: ConfirmAsk, Done: "removed"},
			arg("NAME", "witness"), func(ctx context.Context, c *Call, name string) (Told[Done], error) {
				w, err := c.Witnesses.Remove(ctx, c.By, name)
				return told(Done{w.Name, "removed"}, "nothing is published to "+w.Name+" any more"), err
			}),
	}
}

func auditList() *Op {
	var all bool
	return list(Op{
		Name: "audit list", Short: "List the audit events, newest first", Example: "audit list --kind 'approval.*' --since 1h\naudit list --all",
		Long: "List the audit events, newest first: decisions, effects, failures and what people did. Bookkeeping, which proves rows or\n" +
			"notes the steps of what another event tells, is left out without --all or --kind. --kind is the event type, task.* takes\n" +
			"all that begin so; --agent is who acted or what it was about. In the cockpit: key A shows all.",
		Params: []*Param{flag(&all, "all", "with the bookkeeping")},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[audit.Event], error) {
		if all {
			return c.Audit.List(ctx, c.By.Tenant, f)
		}
		return c.Audit.Told(ctx, c.By.Tenant, f)
	})
}

// direct refuses whom another engine brought here. Engines let each other in by what the
// database says, and who can write that is not to say which keys sign the log.
func (c *Call) direct() error {
	if c.By.Peer == "" {
		return nil
	}
	return core.Errorf(core.Denied, "audit key: %s brought this line; give it on the machine whose engine has %s, or at its SSH door", c.By.Peer, c.By.Tenant)
}

// Checkpoint is a signed head of the log, a note to keep as it is.
type Checkpoint struct {
	Text string `json:"checkpoint"`
}

// Proof is a proof of an event, to keep as it is.
type Proof struct {
	Text string `json:"proof"`
}

// Deltas are the differences between log and store.
type Deltas []audit.Delta

// Done is what became of a thing that is known by its name.
type Done struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

func auditVerify() *Op {
	var checkpoint, held string
	var saved []byte
	return define(Op{
		Name: "audit verify", Short: "Recompute the whole log; exit 1 unless it is sound", Effect: Reads,
		Long: "Recompute every hash of the log and its tree, check the signed checkpoint and every key that ever signed one, hold\n" +
			"the log against what its file and git witnesses hold, and verify every signature of an answer. Exit 1 unless all of it\n" +
			"is sound.",
		Example: "audit verify --checkpoint kept.txt\naudit verify --witness /mnt/elsewhere/swarmdeck.log",
		Params: []*Param{
			flag(&checkpoint, "checkpoint", "a checkpoint `FILE` kept elsewhere, which the log must extend").from("text"),
			flag(&held, "witness", "a `FILE` that a witness wrote, whose checkpoints the log must extend").from("text"),
		},
		Check: func(c *Call) (err error) {
			if checkpoint != "" {
				saved, err = c.printed("checkpoint", "checkpoint", checkpoint)
			}
			return err
		},
	}, func(ctx context.Context, c *Call) (audit.Report, error) {
		report, err := c.Verify(ctx, c.By.Tenant, saved)
		if err == nil && held != "" {
			err = c.compare(ctx, held, &report)
		}
		if err == nil {
			var signed judge.Signatures
			signed, err = c.Judge.CheckSignatures(ctx, c.By.Tenant)
			report.Signed, report.Erased, report.Problems = signed.Checked, signed.Erased, append(report.Problems, signed.Bad...)
			report.OK = report.OK && len(signed.Bad) == 0
		}
		if err != nil {
			return audit.Report{}, err
		}
		if !report.OK {
			err = &Failed{core.Errorf(core.Conflict, "audit log of %s does not verify: %d problems", c.By.Tenant, len(report.Problems))}
		}
		return report, err
	})
}

// compare holds the log against a file that a witness wrote.
func (c *Call) compare(ctx context.Context, path string, report *audit.Report) error {
	in, err := c.File("witness", path)
	if err != nil {
		return err
	}
	defer in.Close()
	return failed(c.Witnesses.CompareFile(ctx, c.By.Tenant, path, witness.Read(in), report))
}

// printed reads a file with what was printed of a Checkpoint or Proof: the text
// itself, or its JSON, whose member is called name.
func (c *Call) printed(field, name, path string) ([]byte, error) {
	data, err := c.Read(field, "@"+path)
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return data, err
	}
	var object map[string]string
	if err := core.Decode(data, &object); err != nil || len(object) != 1 || object[name] == "" {
		return nil, failed(core.Errorf(core.InvalidInput, "%s: %s holds JSON, but not {%q: TEXT}", field, core.Clip(path), name).
			With("field", field).With("value", core.Clip(path)))
	}
	return []byte(object[name]), nil
}

func auditCheckProof() *Op {
	var path, key string
	return define(Op{
		Name: "audit check-proof", Short: "Check a proof and print its event", Effect: Reads, Alone: true, Full: true,
		Long: "Check a proof made by audit prove and print the event it proves. The verifier key is that of this\n" +
			"data file's tenant unless --key names another log's.",
		Params: []*Param{place(&path, "FILE", "text"), flag(&key, "key", "verifier `KEY`: name+hash+key")},
	}, func(ctx context.Context, c *Call) (event audit.Event, err error) {
		proof, err := c.printed("file", "proof", path)
		if err != nil {
			return event, err
		}
		if key != "" {
			event, err = audit.CheckProof(proof, key)
			return event, failed(err)
		}
		if err := c.Open(true); err != nil {
			return event, err
		}
		event, err = c.Audit.CheckProof(ctx, c.By.Tenant, proof)
		return event, failed(err)
	})
}

func auditCheckSegment() *Op {
	var path string
	return define(Op{
		Name: "audit check-segment", Short: "Check events that left the log against it", Effect: Reads,
		Long: "Check a file that audit events were written to before they left (tenant retention set audit --export): its events and\n" +
			"hashes lead to the signed checkpoint in it, and the log extends that.",
		Params: []*Param{place(&path, "FILE", "text")},
	}, func(ctx context.Context, c *Call) (audit.Segment, error) {
		in, err := c.File("file", path)
		if err != nil {
			return audit.Segment{}, err
		}
		defer in.Close()
		found, err := c.Audit.VerifySegment(ctx, c.By.Tenant, in)
		if err != nil {
			return audit.Segment{}, failed(err)
		}
		return found, nil
	})
}

// Exported is a log that was written to a file, or without one to Call.Out.
type Exported struct {
	File   string `json:"file"`
	Format string `json:"format"`
}

func auditExport() *Op {
	format, out := "jsonl", ""
	return define(Op{
		Name: "audit export", Short: "Write the whole log as JSON lines or CSV", Effect: Reads,
		Example: "audit export --format csv --out audit.csv",
		Params: []*Param{
			flag(&format, "format", "format: jsonl|csv").enum("jsonl", "csv"),
			flag(&out, "out", "into this `FILE`, which must not exist (default stdout)").makes(),
		},
	}, func(ctx context.Context, c *Call) (Told[Exported], error) {
		if out == "" || out == "-" {
			return told(Exported{}, ""), c.Audit.Export(ctx, c.By.Tenant, format, c.Out)
		}
		path := filepath.Clean(c.path(out))
		done := told(Exported{path, format}, "exported to "+out)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return done, FileFault("write", "out", out, err)
		}
		err = c.Audit.Export(ctx, c.By.Tenant, format, f)
		if err == nil {
			err = f.Sync()
		}
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			os.Remove(path) // half an export is worse than none
			return done, fmt.Errorf("export to %s: %w", out, err)
		}
		return done, nil
	})
}

func witnessAdd() *Op {
	var w witness.Witness
	var kind, path string
	var every time.Duration
	return define(Op{
		Request: &w,
		Name:    "audit witness add", Short: "Publish the log's checkpoints to a file, a git repository or a command", Role: Admin, Undo: "audit witness remove", Done: "added",
		Long: "Publish the newest checkpoint of the log elsewhere, by itself, whenever the log has grown, at most once in --every and once\n" +
			"more when the engine ends: to a PATH or file PATH, git DIR, or command -- COMMAND. A file gets a line for each, at its end.\n" +
			"A git repository is made in a directory that is not there yet, and gets a commit for each on a branch named after the\n" +
			"tenant; fetch from it. A command gets the line of a file on stdin, and exits 0 once it is kept. What fails is tried again.\n" +
			"Keep a witness where whoever can write the data file can't write: what it holds then shows a log that was put back or\n" +
			"rewritten (audit verify).",
		Example: "audit witness add /mnt/elsewhere/swarmdeck.log\naudit witness add git /srv/witness.git --every 10m\n" +
			"audit witness add command --name far -- ssh witness@far.example 'cat >> swarmdeck.log'",
		Params: []*Param{
			maybe(&kind, "KIND", ""), maybe(&path, "PATH", "").names(reach.Path),
			{Name: "command", About: "COMMAND", Rest: true, Into: &w.Command, Names: reach.Command},
			flag(&w.Name, "name", "`NAME` of the witness (default its kind)"),
			flag(&every, "every", "at most one checkpoint in this `TIME` (default 1m)").fills(&w.EveryS),
		},
		Check: func(c *Call) error {
			place := kind == witness.File || kind == witness.Git
			switch {
			case len(w.Command) > 0 && path == "" && (kind == "" || kind == witness.Command):
				w.Kind = witness.Command
			case len(w.Command) == 0 && kind != "" && path == "" && !place && kind != witness.Command:
				w.Kind, w.Path = witness.File, kind
			case len(w.Command) == 0 && path != "" && place:
				w.Kind, w.Path = kind, path
			default:
				return usage("target", "audit witness add: want a PATH, file PATH, git DIR, or command -- COMMAND…")
			}
			w.EveryS = int(every / time.Second)
			if w.Path != "" {
				if err := c.Place(&w.Path); err != nil {
					return err
				}
			}
			return w.Check()
		},
	}, func(ctx context.Context, c *Call) (witness.Status, error) {
		made, _, err := c.Witnesses.Add(ctx, c.By, w)
		return witness.Status{Witness: made}, err
	})
}
