package command

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/witness"
	"swarmdeck/ui/term"
)

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

// showReport prints what became of the log's proof.
func (c *call) showReport(r audit.Report) error {
	return c.print(r, func(w io.Writer) error { return reportText(w, r) })
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

func (c *call) showDeltas(all op.Deltas) error {
	if len(all) == 0 {
		if c.g.Output == "json" {
			return nil
		}
		return c.say(nil, "no unexplained difference")
	}
	type D = audit.Delta
	return list(c, core.Page[D]{Items: all}, []column[D]{
		{title: "SUBJECT", text: func(d D) string { return d.Subject }},
		{title: "ID", text: func(d D) string { return d.ID }},
		{title: "FIELD", text: func(d D) string { return d.Field }},
		{title: "BY THE LOG", most: 40, text: func(d D) string { return d.Log }},
		{title: "IN THE STORE", most: 40, text: func(d D) string { return d.Store }},
	})
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
		{title: "STATUS", text: func(k K) string {
			switch {
			case k.Retired != "":
				return "retired by " + k.RetiredBy
			case k.Unsigned && k.Trusted:
				return "not trusted"
			case k.Last > 0:
				return "replaced"
			}
			return "signs"
		}},
		{title: "EVENT", text: func(k K) string { return k.Event }},
		{title: "VERIFIER", most: 120, text: func(k K) string { return k.Verifier }},
	}
}

func witnessColumns(c *call) []column[witness.Status] {
	type W = witness.Status
	return []column[W]{
		{title: "WITNESS", text: func(w W) string { return w.Name }},
		{title: "KIND", text: func(w W) string { return w.Kind }},
		{title: "TO", most: 60, text: func(w W) string { return w.Path + Join(w.Command) }},
		{title: "HOLDS", right: true, text: func(w W) string { return strconv.FormatInt(w.Published, 10) }},
		{title: "UP TO", right: true, text: func(w W) string { return strconv.FormatUint(w.Size, 10) }},
		{title: "LAG", right: true, text: func(w W) string { return strconv.FormatUint(w.Lag, 10) }},
		{title: "STATE", most: 80, text: func(w W) string {
			switch {
			case w.Failing:
				return "failing: " + w.LastError
			case w.PublishedAt.IsZero():
				return "nothing published yet"
			}
			return "published " + c.age(w.PublishedAt) + " ago"
		}},
		{title: "LAST ERROR", wide: true, text: func(w W) string {
			if w.LastError == "" {
				return ""
			}
			return c.age(w.FailedAt) + " ago: " + w.LastError
		}},
	}
}

func liveWitnesses(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Witnesses.List(c.ctx, tenant)
	return candidates(all, err, func(w witness.Status) Candidate { return Candidate{w.Name, w.Path + Join(w.Command)} })
}
