package git

import (
	"bufio"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/dag"
)

// When a segment ends, beside the end of its run and a fork.
const (
	segmentEvents = 1000
	segmentBytes  = 4 << 20
	allBytes      = 64 << 20 // of all segments that are open
)

// writer writes a stream for git fast-import.
type writer struct {
	out     *bufio.Writer
	forks   map[string]bool // events at which a fork begins
	open    map[string]*segment
	order   []string       // the open segments, the oldest first
	bytes   int            // of the open segments
	tips    map[string]int // newest commit of each branch
	commits map[string]int // of each forked event
	files   []string       // of all segments, as fast-import adds them: mark and path
	mark    int
	tally   dag.Tally
	at      int64 // of the newest event, in seconds
}

// segment is a part of a stream that becomes one commit.
type segment struct {
	stream string
	branch string
	file   string
	first  dag.Record
	last   dag.Record
	n      int
	lines  []byte
}

func (w *writer) write(records iter.Seq2[dag.Record, error]) error {
	for rec, err := range records {
		if err == nil {
			err = w.record(rec)
		}
		if err != nil {
			return err
		}
	}
	if err := w.flushAll(); err != nil {
		return err
	}
	return w.finish()
}

// record adds an event to its segment.
func (w *writer) record(rec dag.Record) error {
	e := rec.Event
	line, err := jsonl.Encode(rec)
	if err != nil {
		return err
	}
	w.tally.Add(e)
	w.at = max(w.at, e.TS.Time().Unix())
	stream := segmentName(e, 0)
	s := w.open[stream]
	if s == nil {
		s = &segment{stream: stream, branch: branchOf(e), file: segmentName(e, rec.Seq), first: rec}
		w.open[stream] = s
		w.order = append(w.order, stream)
	}
	s.last = rec
	s.n++
	s.lines = append(s.lines, line...)
	w.bytes += len(line)
	if w.bytes > allBytes {
		return w.flushAll()
	}
	if b, ok := e.Body.(*dag.AgentForked); ok {
		return w.forked(s, b)
	}
	if s.n >= segmentEvents || len(s.lines) >= segmentBytes || e.Kind == dag.KindRunFinished || w.forks[e.EventID] {
		return w.flush(s)
	}
	return nil
}

// forked begins the fork's branch, and those of the agents that go on there.
func (w *writer) forked(s *segment, b *dag.AgentForked) error {
	e := s.last.Event
	if err := w.flush(s); err != nil {
		return err
	}
	at, here := w.commits[b.AtEvent.EventID]
	if !here {
		at = w.tips[s.branch] // the event is not part of this record: the fork begins where it was told of
	}
	branches := []string{forkBranch + name(e.AgentID) + "/" + name(b.ToBranch)}
	for _, n := range e.Nodes {
		if n.Type == dag.TypeSubagent {
			branches = append(branches, agentBranch+name(n.ID()))
		}
	}
	for _, branch := range branches {
		if _, taken := w.tips[branch]; taken {
			continue
		}
		w.tips[branch] = at
		if _, err := fmt.Fprintf(w.out, "reset %s\nfrom :%d\n\n", branch, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) flushAll() error {
	for len(w.order) > 0 {
		if err := w.flush(w.open[w.order[0]]); err != nil {
			return err
		}
	}
	return nil
}

// flush makes a segment a commit.
func (w *writer) flush(s *segment) error {
	delete(w.open, s.stream)
	w.order = slices.DeleteFunc(w.order, func(stream string) bool { return stream == s.stream })
	w.bytes -= len(s.lines)
	first, last := s.first, s.last
	title := fmt.Sprintf("%s: events %d to %d", strings.TrimPrefix(strings.TrimSuffix(s.stream, "/000000000000.jsonl"), segmentDir), first.Seq, last.Seq)
	text := fmt.Sprintf("%s\n\nRun: %s\nAgent: %s\nFirst-event: %s\nLast-event: %s\n", title, first.Event.RunID, first.Event.AgentID, first.Event.EventID, last.Event.EventID)
	blob, err := w.blob(s.lines)
	if err != nil {
		return err
	}
	file := fmt.Sprintf("M 100644 :%d %s\n", blob, s.file)
	w.files = append(w.files, file)
	if err := w.commit(s.branch, last.Event.TS.Time().Unix(), text, nil, file); err != nil {
		return err
	}
	if w.forks[last.Event.EventID] {
		w.commits[last.Event.EventID] = w.mark
	}
	return nil
}

// blob writes a file's content and returns its mark.
func (w *writer) blob(data []byte) (int, error) {
	w.mark++
	fmt.Fprintf(w.out, "blob\nmark :%d\ndata %d\n", w.mark, len(data)) // the writer keeps the first error of all
	_, err := w.out.Write(append(data, '\n'))
	return w.mark, err
}

// commit adds files to a branch, on top of what is there and of merges.
func (w *writer) commit(branch string, at int64, text string, merges []int, files ...string) error {
	w.mark++
	fmt.Fprintf(w.out, "commit %s\nmark :%d\ncommitter swarmdeck <swarmdeck@localhost> %d +0000\ndata %d\n%s\n", branch, w.mark, at, len(text), text)
	if tip, ok := w.tips[branch]; ok {
		fmt.Fprintf(w.out, "from :%d\n", tip)
	}
	for _, m := range merges {
		fmt.Fprintf(w.out, "merge :%d\n", m)
	}
	for _, f := range files {
		w.out.WriteString(f)
	}
	_, err := w.out.WriteString("\n")
	w.tips[branch] = w.mark
	return err
}

// finish joins all branches: their segments and the manifest.
func (w *writer) finish() error {
	tips := slices.Collect(maps.Values(w.tips))
	slices.Sort(tips)
	m := w.tally.Manifest()
	data, err := manifest(m)
	if err != nil {
		return err
	}
	blob, err := w.blob(data)
	if err != nil {
		return err
	}
	files := append(w.files, fmt.Sprintf("M 100644 :%d %s\n", blob, manifestFile))
	text := fmt.Sprintf("Join a record of %d events\n", m.Events)
	if err := w.commit(recordBranch, w.at, text, slices.Compact(tips), files...); err != nil {
		return err
	}
	_, err = w.out.WriteString("done\n")
	return err
}
