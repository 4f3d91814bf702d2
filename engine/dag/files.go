package dag

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// File is a file that was written, as it was found afterwards.
type File struct {
	Path   string
	SHA256 string    // of its content, in hex; "" of one that was not read
	Size   int64     // bytes
	At     time.Time // when it was changed, by the clock of its file system
}

// FileID is the node id of a file.
func FileID(path string) string { return fit("file:" + path) }

// ListFiles is the list of what a run wrote, as it was found on disk.
const ListFiles = "files"

// maxFiles bounds the files of one event.
const maxFiles = 64

// node is the file as a resource.
func (f File) node() Node {
	r := &Resource{ID: FileID(f.Path), Kind: ResourceFile, Name: fit(f.Path), Capabilities: []Capability{}}
	if f.SHA256 != "" {
		r.Metadata = core.MustEncode(map[string]any{"sha256": f.SHA256, "size": f.Size})
	}
	return NewNode(r)
}

// files states files as resources that come from others.
func (h *Head) files(all []File, from ...NodeRef) {
	for _, f := range all[:min(len(all), maxFiles)] {
		n := f.node()
		h.Nodes = append(h.Nodes, n)
		for _, origin := range from {
			h.Edges = append(h.Edges, Edge{Type: DerivedFrom, From: n.Ref(), To: origin})
		}
	}
}

// inWords is what an event says of files in words; more are those that are not named.
func inWords(files []File, more int) []ContentPart {
	var b strings.Builder
	for i, f := range files {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(f.Path)
	}
	if more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return []ContentPart{{Type: "text", Text: clip(b.String(), maxValue)}}
}

// eachPart calls fn for files by as many as one event has; the last says how many are not
// named.
func eachPart(files []File, more int, fn func(part []File, more int) error) error {
	for len(files) > maxFiles {
		if err := fn(files[:maxFiles], 0); err != nil {
			return err
		}
		files = files[maxFiles:]
	}
	if len(files) == 0 && more == 0 {
		return nil
	}
	return fn(files, more)
}

// Wrote records that a call wrote a file, as a message of a list.
func (r *Recording) Wrote(ctx context.Context, list, call, path, text string) error {
	r.mu.Lock()
	h := r.head()
	m := r.message(h.TS, RoleTool, []ContentPart{{Type: "text", Text: clip(text, maxValue)}})
	h.Nodes = []Node{m}
	if path != "" {
		h.files([]File{{Path: path}}, r.origins([]string{call})...)
	}
	r.add(h, &HistoryAppend{List: list, MessageRef: m.ID()})
	r.mu.Unlock()
	return nil
}

// Changed records files that were found changed, and how many more. They come from the
// calls, as far as these are known, or else from what was said or done last.
func (r *Recording) Changed(ctx context.Context, calls []string, files []File, more int) error {
	r.mu.Lock()
	from := r.origins(calls)
	_ = eachPart(files, more, func(part []File, more int) error {
		h := r.head()
		m := r.message(h.TS, RoleTool, inWords(part, more))
		h.Nodes = []Node{m}
		for _, origin := range from {
			h.Edges = append(h.Edges, Edge{Type: DerivedFrom, From: m.Ref(), To: origin})
		}
		h.files(part, from...)
		r.add(h, &HistoryAppend{List: ListFiles, MessageRef: m.ID()})
		return nil
	})
	full := len(r.pending) >= gatherEvents
	r.mu.Unlock()
	if full {
		return r.Flush(ctx)
	}
	return nil
}

// origins are calls as far as they are known, or else what was said or done last; mu is
// held.
func (r *Recording) origins(calls []string) (from []NodeRef) {
	for _, call := range calls[:min(len(calls), maxFiles)] {
		made := cmp.Or(r.calls[fit(call)].event, r.ended[fit(call)])
		if IsEventID(made) {
			from = append(from, NodeRef{TypeToolCall, made})
		}
	}
	if len(from) == 0 && r.cause.EventID != "" {
		from = []NodeRef{{TypeEvent, r.cause.EventID}}
	}
	return from
}

// Changed tells files that were found changed, and how many more. They come from a call,
// where that is open, or else from what was told last.
func (w *Within) Changed(call string, files []File, more int) error {
	from := NodeRef{TypeEvent, w.h.Head}
	if made, open := w.isOpen(fit(call)); open {
		from = NodeRef{TypeToolCall, made}
	}
	return eachPart(files, more, func(part []File, more int) error {
		if w.over {
			return nil
		}
		h := w.head()
		m := w.message(h.TS, RoleTool, inWords(part, more))
		h.Nodes = []Node{m}
		h.Edges = []Edge{{Type: DerivedFrom, From: m.Ref(), To: from}}
		h.files(part, from)
		return w.tell(h, &HistoryAppend{List: ListFiles, MessageRef: m.ID()})
	})
}
