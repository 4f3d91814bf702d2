package dag

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Format is a shape that a record is exported to and imported from, without
// loss.
type Format interface {
	// Export writes records, in their order, to a place that does not exist
	// yet. After an error, such as that the context ended, nothing is left there. The
	// records can be read twice.
	Export(ctx context.Context, dest string, records iter.Seq2[Record, error]) error
	// Import reads records in their order, and what the place says they are in
	// all. An import calls it twice: to look at everything, then to take it in. each
	// fails when the context ends.
	Import(ctx context.Context, src string, each func(Record) error) (Manifest, error)
}

// Record is an event as it travels. Its Event was made by ParseAs.
type Record struct {
	Pos   uint64 // in the record it comes from
	Seq   uint64 // in its stream
	Event Event
	Edges []Edge // all of its edges, RUN_HAS_EVENT among them
}

// Manifest says what a place holds, so that what was cut off is missed.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Events  uint64 `json:"events"`
	Chain   string `json:"chain"` // sha256 over the chain before and the event's id, in turn; hex
}

// The format's name and version.
const (
	FormatName    = "swarmdeck.dag"
	FormatVersion = 1
)

// Tally counts records as they pass. The zero value has seen none.
type Tally struct {
	events uint64
	chain  []byte
}

// Add counts one.
func (t *Tally) Add(e Event) {
	t.events++
	sum := sha256.Sum256(append(t.chain, e.id[:]...))
	t.chain = sum[:]
}

// Manifest says what passed.
func (t *Tally) Manifest() Manifest {
	return Manifest{FormatName, FormatVersion, t.events, hex.EncodeToString(t.chain)}
}

// Check reports a manifest of another format or version.
func (m Manifest) Check() error {
	if m.Format != FormatName || m.Version != FormatVersion {
		return core.Errorf(core.InvalidInput, "format: %q version %d is not allowed; allowed: %s version %d; is it cut off, or another file?",
			core.Clip(m.Format), m.Version, FormatName, FormatVersion).With("field", "format")
	}
	return nil
}

// ParseAs reads an event that is to have an id, from JSON with or without it.
// That of an event whose content was erased can't be checked: it is what the
// event says.
func ParseAs(id string, data []byte) (Event, error) {
	e, err := parse(data)
	if err != nil {
		return e, tampered(id, "%v", err)
	}
	if e.EventID != id {
		return e, tampered(id, "what it says has the id %s: it was changed", e.EventID)
	}
	return e, nil
}

// tampered refuses an import, naming the event.
func tampered(id, format string, args ...any) error {
	return core.Errorf(core.InvalidInput, "event %s: %s", core.Clip(id), fmt.Sprintf(format, args...)).
		With("field", "event_id").With("event_id", core.Clip(id))
}

// Same reports a projection of an event, kept beside it, that says something
// else.
func (e Event) Same(field, want, got string) error {
	if want == got {
		return nil
	}
	return tampered(e.EventID, "%s is %q beside it, %q in it: it was changed", field, core.Clip(got), core.Clip(want))
}

// Transferred is what an export or import did.
type Transferred struct {
	Format string `json:"format"`
	Path   string `json:"path"`
	Events uint64 `json:"events"`
	New    uint64 `json:"new"`             // that an import took in; the others were there
	Erased uint64 `json:"erased,omitzero"` // without their content: their ids can't be checked
}

func (d *DAG) format(name string) (Format, error) {
	f := d.formats[name]
	if f == nil {
		return nil, core.Invalid("format", name, strings.Join(slices.Sorted(maps.Keys(d.formats)), ", "))
	}
	return f, nil
}

// Export writes a tenant's whole record, as it is when it begins, to a place
// that does not exist yet.
func (d *DAG) Export(ctx context.Context, tenant, format, dest string) (Transferred, error) {
	done := Transferred{Format: format, Path: dest}
	f, err := d.format(format)
	if err != nil {
		return done, err
	}
	figures, err := d.Figures(ctx, tenant)
	if err != nil {
		return done, err
	}
	done.Events = uint64(figures.Events)
	return done, audit.Explain("export the record to "+dest, f.Export(ctx, dest, d.records(ctx, tenant, done.Events)))
}

// Bounds of what is read or taken in one transaction. What has more bytes than
// enough ends with the event that made it so.
const (
	exportBatch = 500 // events
	importBatch = 200
	batchBytes  = MaxEvent // of canonical JSON
)

// records reads the events up to a pos in short transactions.
func (d *DAG) records(ctx context.Context, tenant string, upto uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for from := uint64(1); from <= upto; {
			all, bytes := make([]Record, 0, exportBatch), 0
			err := d.view(ctx, tenant, "read the record", func(r reader) error {
				for ; from <= upto && len(all) < exportBatch && bytes < batchBytes; from++ {
					e, err := r.detailAt(from)
					if err != nil {
						return err
					}
					all = append(all, Record{e.Pos, e.Seq, e.Event, e.Edges})
					bytes += len(e.Event.raw)
				}
				return ctx.Err()
			})
			for _, rec := range all {
				if err == nil && !yield(rec, nil) {
					return
				}
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
}

// Import takes a whole record in. All of it is looked at before any is taken:
// each event has the id that it should, streams have no gaps, edges are those
// that follow, and what is here already is the same. What was imported before
// is left as it is.
func (d *DAG) Import(ctx context.Context, by core.Caller, format, src string) (Transferred, error) {
	done := Transferred{Format: format, Path: src}
	f, err := d.format(format)
	if err != nil {
		return done, err
	}
	c := &inspector{d: d, ctx: ctx, tenant: by.Tenant, streams: map[string]*lane{}, calls: map[[32]byte]string{}}
	manifest, err := f.Import(ctx, src, c.inspect)
	if err == nil {
		err = c.settle(manifest)
	}
	if err != nil {
		return done, audit.Explain("look at "+src, c.near(err))
	}
	var batch []Record
	bytes := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		n, err := d.take(ctx, by, batch)
		done.Events += uint64(len(batch))
		done.New += n
		clear(batch)
		batch, bytes = batch[:0], 0
		return err
	}
	_, err = f.Import(ctx, src, func(rec Record) error {
		if rec.Event.Erased != nil {
			done.Erased++
		}
		batch = append(batch, rec)
		bytes += len(rec.Event.raw)
		if len(batch) < importBatch && bytes < batchBytes {
			return ctx.Err()
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return done, audit.Explain("import "+src, err)
}

// take records a batch of an import, and returns how many of it are new.
func (d *DAG) take(ctx context.Context, by core.Caller, batch []Record) (n uint64, err error) {
	events := core.Map(batch, func(rec Record) Event { return rec.Event })
	err = d.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		n = 0
		all, err := d.emitIn(tx, events...)
		if err != nil {
			return err
		}
		for i, rec := range all {
			if rec.Seq != batch[i].Seq {
				return elsewhere(batch[i], rec.Seq)
			}
			if rec.New {
				n++
			}
		}
		return nil
	})
	return n, err
}

// elsewhere refuses an event that has another place here.
func elsewhere(rec Record, seq uint64) error {
	_, stream := streamOf(&rec.Event)
	return core.Errorf(core.Conflict, "event %s: number %d of %s there, %d here: the two records went different ways",
		rec.Event.EventID, rec.Seq, stream, seq).With("field", "seq").With("event_id", rec.Event.EventID)
}
