package dag

import (
	"cmp"
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
func inWords(files []File, more int) string {
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
	return clip(b.String(), maxValue)
}

// Wrote records the diff of a file that a call wrote.
func (r *Recording) Wrote(call, path, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var files []File
	if path != "" {
		files = []File{{Path: path}}
	}
	r.found(listDiff, clip(text, maxValue), nil, files, r.origins([]string{call}))
}

// Changed records files that were found changed, and how many more. They come from the
// calls, as far as these are known, or else from what was said or done last.
func (r *Recording) Changed(calls []string, files []File, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.origins(calls)
	for len(files) > 0 || more > 0 {
		part := files[:min(len(files), maxFiles)]
		if files = files[len(part):]; len(files) > 0 {
			r.found(ListFiles, inWords(part, 0), from, part, from)
			continue
		}
		r.found(ListFiles, inWords(part, more), from, part, from)
		more = 0
	}
}

// found records what a tool did to files, as a message that comes from some nodes; mu is
// held.
func (r *Recording) found(list, text string, from []NodeRef, files []File, origins []NodeRef) {
	h := r.head()
	m := r.message(h.TS, RoleTool, []ContentPart{{Type: "text", Text: text}})
	h.Nodes = []Node{m}
	for _, origin := range from {
		h.Edges = append(h.Edges, Edge{Type: DerivedFrom, From: m.Ref(), To: origin})
	}
	h.files(files, origins...)
	r.add(h, &HistoryAppend{List: list, MessageRef: m.ID()})
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
