package secret

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mask replaces the values that a process was given in what it prints. A nil
// one replaces nothing. It may be used from any goroutine.
type Mask struct {
	find   *automaton
	names  []string // by pattern
	size   []int    // of patterns, in bytes
	values map[string]string
}

// NewMask masks values by name; those of less than MinValue bytes are not
// looked for.
func NewMask(values map[string]string) *Mask {
	m := &Mask{values: maps.Clone(values)}
	var all []pattern
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(strings.TrimSpace(values[name])) < MinValue {
			continue
		}
		for _, p := range patterns(values[name]) {
			all = append(all, p)
			m.names, m.size = append(m.names, name), append(m.size, len(p.text))
		}
	}
	if len(all) == 0 {
		return nil
	}
	m.find = newAutomaton(all)
	return m
}

// Writer passes what is written on to another writer, masked. It holds back
// what may be the beginning of a value, at most as much as the longest pattern
// and its line breaks.
func (m *Mask) Writer(to io.Writer) *Writer { return &Writer{m: m, to: to} }

// Writer masks a stream.
type Writer struct {
	m     *Mask
	to    io.Writer
	err   error
	held  []byte // read and not passed on
	state int32
	extra int   // line breaks passed over within the state
	hits  []hit // found in what is held, in order, apart; positions in held
}

// hit is a part to replace; from may lie before what is held.
type hit struct{ from, to, pattern int }

func (w *Writer) Write(p []byte) (int, error) {
	if w.m == nil {
		return w.to.Write(p)
	}
	data, at := p, 0
	if len(w.held) > 0 {
		at = len(w.held)
		data = append(w.held, p...)
	}
	w.scan(data, at)
	done := w.pass(data, len(data)-int(w.m.find.nodes[w.state].depth)-w.extra)
	w.held = append(w.held[:0], data[done:]...)
	return len(p), w.err
}

// Close passes on what was held back, and closes the other writer if that can
// be closed.
func (w *Writer) Close() {
	if w.m != nil {
		w.pass(w.held, len(w.held))
		w.held, w.state, w.extra = nil, 0, 0
	}
	if c, ok := w.to.(interface{ Close() }); ok {
		c.Close()
	}
}

// scan looks for patterns from a position on.
func (w *Writer) scan(data []byte, i int) {
	a := w.m.find
	for ; i < len(data); i++ {
		if w.state == 0 {
			if i = a.skip(data, i); i == len(data) {
				return
			}
		}
		b, was := data[i], &a.nodes[w.state]
		if (b == '\n' || b == '\r') && was.wraps && (w.extra+1)*wrapAt <= int(was.depth) && a.child(w.state, b) == 0 {
			w.extra++
			continue
		}
		if w.state = a.step(w.state, b); w.state == 0 {
			w.extra = 0
			continue
		}
		if match := int(a.nodes[w.state].match) - 1; match >= 0 {
			w.found(hit{i + 1 - w.m.size[match] - w.extra, i + 1, match})
		}
	}
}

// found adds a hit; with those that it overlaps it is one, named by the longest.
func (w *Writer) found(h hit) {
	for n := len(w.hits); n > 0 && w.hits[n-1].to > h.from; n-- {
		last := w.hits[n-1]
		h.from = min(h.from, last.from)
		if w.m.size[last.pattern] > w.m.size[h.pattern] {
			h.pattern = last.pattern
		}
		w.hits = w.hits[:n-1]
	}
	w.hits = append(w.hits, h)
}

// pass writes what is certain, all before the position safe, and returns how
// much that is.
func (w *Writer) pass(data []byte, safe int) int {
	safe = max(safe, 0)
	done, used := 0, 0
	for _, h := range w.hits {
		if h.from >= safe {
			break
		}
		w.write(data[done:max(done, h.from)])
		if h.to > safe { // it may grow
			done = safe
			break
		}
		w.write([]byte("[secret " + w.m.names[h.pattern] + "]"))
		done = h.to
		used++
	}
	w.hits = append(w.hits[:0], w.hits[used:]...)
	if done < safe {
		w.write(data[done:safe])
	}
	for i := range w.hits {
		w.hits[i].from -= safe
		w.hits[i].to -= safe
	}
	return safe
}

func (w *Writer) write(p []byte) {
	if len(p) > 0 && w.err == nil {
		_, w.err = w.to.Write(p)
	}
}

// Bytes masks a whole text.
func (m *Mask) Bytes(text []byte) []byte {
	if m == nil {
		return text
	}
	var out bytes.Buffer
	w := m.Writer(&out)
	_, _ = w.Write(text)
	w.Close()
	return out.Bytes()
}

// String masks a whole text.
func (m *Mask) String(text string) string {
	if m == nil {
		return text
	}
	return string(m.Bytes([]byte(text)))
}

// Values are what it masks, by name and in clear, for another process of ours to
// mask in its place.
func (m *Mask) Values() map[string]string {
	if m == nil {
		return nil
	}
	return maps.Clone(m.values)
}

// minRest is the least of a value's end that Rest looks for, in bytes.
const minRest = 4

// Rest masks a text whose beginning somebody else has read: it may begin within
// a value, of which only the end is there.
func (m *Mask) Rest(text []byte) []byte {
	if m == nil {
		return text
	}
	begin, cut, of := string(text[:min(len(text), maxGiven)]), 0, ""
	for name, value := range m.values {
		for _, p := range patterns(value) {
			end := min(len(p.text)-1, len(text))
			if end >= minRest && end == len(text) && strings.Contains(p.text, begin) {
				cut, of = end, name
			}
			for ; end >= minRest && end > cut; end-- {
				if strings.HasPrefix(begin, p.text[len(p.text)-end:]) {
					cut, of = end, name
				}
			}
		}
	}
	if cut == 0 {
		return m.Bytes(text)
	}
	return append([]byte("[secret "+of+"]"), m.Bytes(text[cut:])...)
}

// handedOut remembers the values that were opened for somebody, so that the
// program's own log can be kept free of them.
type handedOut struct {
	mu     sync.Mutex
	values map[string]string // "TENANT/NAME"; what one was before it was set anew is "TENANT/NAME (old)"
	mask   atomic.Pointer[Mask]
}

// add takes opened values over.
func (g *handedOut) add(tenant string, values map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := maps.Clone(g.values)
	if next == nil {
		next = map[string]string{}
	}
	for name, value := range values {
		at := tenant + "/" + name
		if was, ok := next[at]; ok && was != value {
			next[at+" (old)"] = was
		}
		next[at] = value
	}
	if maps.Equal(next, g.values) {
		return
	}
	g.values = next
	g.mask.Store(NewMask(next))
}

// Masked is text without the values that were opened since the start.
func (s *Secrets) Masked(text string) string { return s.out.mask.Load().String(text) }
