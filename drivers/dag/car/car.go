// Package car keeps a record of agents as IPLD: a CAR file of version 1
// (ipld.io/specs/transport/car/carv1) with dag-json blocks.
//
// The block of an event is its canonical JSON, so that the digest in its CID
// is the event_id. An entry block links to the event, and to the entry before
// it in its stream. Pages link to up to 1000 entries in their order, and the
// root to the pages. An event that dag-json can't carry as it is, because it
// has a member "/" or names that sort otherwise there, is a raw block of the
// same bytes.
package car

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/safeopen"
)

// perPage is how many entries a page links to.
const perPage = 1000

// maxBlock bounds one block of a file that is read.
const maxBlock = jsonl.MaxLine

// entry is an event in its place.
type entry struct {
	Edges []dag.Edge `json:"edges"`
	Event link       `json:"event"`
	Pos   uint64     `json:"pos"`
	Prev  *link      `json:"prev,omitzero"` // the entry before it in its stream
	Seq   uint64     `json:"seq"`
}

// page is a part of the record.
type page struct {
	Entries []link `json:"entries"`
}

// root is the whole record.
type root struct {
	dag.Manifest `json:",embed"`
	Pages        []link `json:"pages"`
}

// Format implements dag.Format.
type Format struct{}

var _ dag.Format = Format{}

// writer writes blocks one after the other.
type writer struct{ out *bufio.Writer }

// block writes one block and returns its identifier.
func (w writer) block(codec int, data []byte) (cid, error) {
	c := cidOf(codec, data)
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(c)+len(data)))
	for _, part := range [][]byte{size[:n], []byte(c), data} {
		if _, err := w.out.Write(part); err != nil {
			return "", err
		}
	}
	return c, nil
}

// node writes a block of dag-json.
func (w writer) node(v any) (cid, error) {
	data, err := core.Encode(v)
	if err != nil {
		return "", fmt.Errorf("encode a block: %w", err)
	}
	canon, err := core.Canonical(data)
	if err != nil {
		return "", fmt.Errorf("encode a block: %w", err)
	}
	return w.block(codecDAGJSON, canon)
}

// codecFor is how an event's block is read. dag-json reserves "/", and sorts
// names by their bytes where RFC 8785 does by UTF-16: they differ from U+E000
// on.
func codecFor(event []byte) int {
	if bytes.Contains(event, []byte(`"/":`)) || bytes.ContainsFunc(event, sortsOtherwise) && slices.ContainsFunc(names(event), func(name string) bool {
		return strings.ContainsFunc(name, sortsOtherwise)
	}) {
		return codecRaw
	}
	return codecDAGJSON
}

func sortsOtherwise(r rune) bool { return r >= 0xe000 }

// names are the members' names in a JSON text.
func names(text []byte) (all []string) {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return all
		}
		if in, n := dec.StackIndex(dec.StackDepth()); token.Kind() == '"' && in == '{' && n%2 == 1 {
			all = append(all, token.String())
		}
	}
}

// Export implements dag.Format; dest is a file.
func (Format) Export(_ context.Context, dest string, records iter.Seq2[dag.Record, error]) error {
	return jsonl.Create(dest, func(f *os.File) error {
		w := writer{bufio.NewWriterSize(f, 1<<18)}
		// The root is known at the end: its place is kept.
		first := header(cidOf(codecDAGJSON, nil))
		if _, err := w.out.Write(append(binary.AppendUvarint(nil, uint64(len(first))), first...)); err != nil {
			return err
		}
		top, err := w.write(records)
		if err != nil {
			return err
		}
		if err := w.out.Flush(); err != nil {
			return err
		}
		_, err = f.WriteAt(header(top), int64(len(binary.AppendUvarint(nil, uint64(len(first))))))
		return err
	})
}

// write writes all blocks and returns the root's identifier.
func (w writer) write(records iter.Seq2[dag.Record, error]) (cid, error) {
	var tally dag.Tally
	top := root{Pages: []link{}}
	now := page{}
	newest := map[string]link{} // by stream
	turn := func() error {
		if len(now.Entries) == 0 {
			return nil
		}
		c, err := w.node(now)
		top.Pages = append(top.Pages, linkTo(c))
		now.Entries = nil
		return err
	}
	for rec, err := range records {
		if err != nil {
			return "", err
		}
		event, err := w.block(codecFor(rec.Event.Canonical()), rec.Event.Canonical())
		if err != nil {
			return "", err
		}
		e := entry{Edges: rec.Edges, Event: linkTo(event), Pos: rec.Pos, Seq: rec.Seq}
		if e.Edges == nil {
			e.Edges = []dag.Edge{}
		}
		stream := rec.Event.RunID + "\x00" + rec.Event.AgentID
		if rec.Event.RunID != "" {
			stream = rec.Event.RunID
		}
		if prev, ok := newest[stream]; ok {
			e.Prev = &prev
		}
		c, err := w.node(e)
		if err != nil {
			return "", err
		}
		newest[stream] = linkTo(c)
		tally.Add(rec.Event)
		if now.Entries = append(now.Entries, linkTo(c)); len(now.Entries) == perPage {
			if err := turn(); err != nil {
				return "", err
			}
		}
	}
	if err := turn(); err != nil {
		return "", err
	}
	top.Manifest = tally.Manifest()
	return w.node(top)
}

func (Format) Import(ctx context.Context, src string, each func(dag.Record) error) (dag.Manifest, error) {
	var nobody *safeopen.Own // who names a file to import has checked it
	f, err := nobody.File(src)
	if err != nil {
		return dag.Manifest{}, err
	}
	defer f.Close()
	a, err := open(ctx, f)
	if err != nil {
		return dag.Manifest{}, err
	}
	return a.read(each)
}

// read follows the links from the root.
func (a *archive) read(each func(dag.Record) error) (dag.Manifest, error) {
	var top root
	if err := a.node(a.root, &top); err != nil {
		return dag.Manifest{}, fmt.Errorf("root: %w", err)
	}
	for i, l := range top.Pages {
		var now page
		if err := a.follow(l, &now); err != nil {
			return top.Manifest, fmt.Errorf("page %d: %w", i, err)
		}
		for _, l := range now.Entries {
			rec, err := a.record(l)
			if err == nil {
				err = each(rec)
			}
			if err != nil {
				return top.Manifest, err
			}
		}
	}
	return top.Manifest, nil
}

// record reads an entry and its event.
func (a *archive) record(l link) (dag.Record, error) {
	var e entry
	if err := a.follow(l, &e); err != nil {
		return dag.Record{}, fmt.Errorf("entry: %w", err)
	}
	c, err := e.Event.cid()
	if err != nil {
		return dag.Record{}, err
	}
	id := hex.EncodeToString([]byte(c[len(c)-32:]))
	data, err := a.block(c)
	if err != nil {
		return dag.Record{}, fmt.Errorf("event %s: %w", id, err)
	}
	if was := dag.ErasedID(data); was != "" { // the block is of what is left
		id = was
	}
	event, err := dag.ParseAs(id, data)
	return dag.Record{Pos: e.Pos, Seq: e.Seq, Event: event, Edges: e.Edges}, err
}
