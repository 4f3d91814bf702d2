package keymap

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"swarmdeck/ui/term"
)

//go:embed default.toml
var defaults []byte

// Limits of a keymap file.
const (
	MaxFile     = 256 << 10 // bytes
	MaxBindings = 500
	maxEach     = 16   // keys of one binding
	maxLine     = 4096 // bytes of a command line
	maxText     = 200  // bytes of help, hint, scope, action
)

// Load reads the defaults and, when user isn't empty, the user's file over
// them: a binding takes its keys away from the default binding of the same
// scope, and [[unbind]] takes keys away from whatever has them. Any mistake
// refuses the whole file, naming file and line.
func Load(user []byte, name string, v Vocabulary) (*Keymap, error) {
	m := &Keymap{}
	base, err := parse(defaults, "default", v)
	if err != nil {
		return nil, err
	}
	m.all = base.binds
	if len(bytes.TrimSpace(user)) > 0 {
		over, err := parse(user, name, v)
		if err != nil {
			return nil, err
		}
		if err := m.merge(over); err != nil {
			return nil, err
		}
	}
	if err := m.index(); err != nil {
		return nil, err
	}
	return m, nil
}

// file is a parsed keymap file.
type file struct {
	binds   []*Binding
	unbinds []unbind
}

type unbind struct {
	scope string
	keys  []Sequence
	from  string
}

// document is the TOML shape.
type document struct {
	Bind []struct {
		Binding
		written
	} `toml:"bind"`
	Unbind []struct {
		Scope string `toml:"scope"`
		written
	} `toml:"unbind"`
}

// written are keys as a file has them.
type written struct {
	Key   string   `toml:"key"`
	Names []string `toml:"keys"`
}

func parse(data []byte, name string, v Vocabulary) (*file, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: %d bytes, at most %d", name, len(data), MaxFile)
	}
	var doc document
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, syntax(name, err)
	}
	if len(doc.Bind)+len(doc.Unbind) > MaxBindings {
		return nil, fmt.Errorf("%s: %d bindings, at most %d", name, len(doc.Bind)+len(doc.Unbind), MaxBindings)
	}
	lines := tableLines(data)
	f := &file{}
	for i := range doc.Bind {
		b := &doc.Bind[i].Binding
		b.Line, b.From = strings.TrimSpace(b.Line), lines.at(name, "bind", i)
		var err error
		if b.Keys, err = doc.Bind[i].sequences(); err == nil {
			err = v.check(b)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.From, err)
		}
		f.binds = append(f.binds, b)
	}
	for i, d := range doc.Unbind {
		u := unbind{scope: d.Scope, from: lines.at(name, "unbind", i)}
		var err error
		if u.keys, err = d.sequences(); err == nil {
			err = v.scope(u.scope)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.from, err)
		}
		f.unbinds = append(f.unbinds, u)
	}
	return f, nil
}

func (w *written) sequences() ([]Sequence, error) {
	keys := w.Names
	if w.Key != "" {
		if len(keys) > 0 {
			return nil, errors.New("key and keys both given; use one")
		}
		keys = []string{w.Key}
	}
	if len(keys) == 0 {
		return nil, errors.New("keys is missing")
	}
	if len(keys) > maxEach {
		return nil, fmt.Errorf("%d keys, at most %d for one binding", len(keys), maxEach)
	}
	out := make([]Sequence, 0, len(keys))
	for _, k := range keys {
		seq, err := ParseSequence(k)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Sequence) bool { return slices.Equal(o, seq) }) {
			return nil, fmt.Errorf("key %q given twice", seq)
		}
		out = append(out, seq)
	}
	return out, nil
}

// merge lays the user's file over the defaults.
func (m *Keymap) merge(over *file) error {
	for _, u := range over.unbinds {
		for _, k := range u.keys {
			if !m.take(u.scope, k) {
				return fmt.Errorf("%s: key %q has no binding in scope %q to take away", u.from, k, u.scope)
			}
		}
	}
	for _, b := range over.binds {
		for _, k := range b.Keys {
			m.take(b.Scope, k)
		}
	}
	m.all = append(m.all, over.binds...)
	return nil
}

// take removes keys from the binding that has them and tells whether one had.
func (m *Keymap) take(scope string, keys Sequence) bool {
	for i, b := range m.all {
		if b.Scope != scope {
			continue
		}
		at := slices.IndexFunc(b.Keys, func(k Sequence) bool { return slices.Equal(k, keys) })
		if at < 0 {
			continue
		}
		if b.Keys = slices.Delete(b.Keys, at, at+1); len(b.Keys) == 0 {
			m.all = slices.Delete(m.all, i, i+1)
		}
		return true
	}
	return false
}

// index builds the lookup and refuses what contradicts itself: the same keys
// twice in a scope, or keys that are also the beginning of others.
func (m *Keymap) index() error {
	m.byScope = map[string][]entry{}
	for _, b := range m.all {
		for _, k := range b.Keys {
			for _, e := range m.byScope[b.Scope] {
				n := min(len(e.keys), len(k))
				if !slices.Equal(e.keys[:n], k[:n]) {
					continue
				}
				if len(e.keys) == len(k) {
					return fmt.Errorf("%s: key %q in scope %q is taken by %q (%s); unbind one", b.From, k, b.Scope, e.b.What(), e.b.From)
				}
				return fmt.Errorf("%s: key %q in scope %q and key %q of %q (%s): one begins the other; unbind one", b.From, k, b.Scope, e.keys, e.b.What(), e.b.From)
			}
			m.byScope[b.Scope] = append(m.byScope[b.Scope], entry{k, b})
		}
	}
	return nil
}

// syntax names file and line of a TOML mistake.
func syntax(name string, err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Errorf("%s:%d: field %q is unknown", name, row, term.Cut(last(strict.Errors[0].Key()), 60))
	}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		row, _ := de.Position()
		if strings.Contains(de.Error(), "cannot decode TOML") { // the rest of it is about Go types
			field := term.Cut(last(de.Key()), 60)
			return fmt.Errorf("%s:%d: %s: want %s", name, row, field, wanted(field))
		}
		return fmt.Errorf("%s:%d: %s", name, row, term.Cut(de.Error(), 200))
	}
	return fmt.Errorf("%s: %s", name, term.Cut(err.Error(), 200))
}

// wanted is the type of a field's value.
func wanted(field string) string {
	switch field {
	case "keys":
		return "a list of strings"
	case "fill", "bulk", "guard":
		return "true or false"
	case "bind", "unbind":
		return "[[" + field + "]]"
	}
	return "a string"
}

// positions are the line numbers of tables, by name.
type positions map[string][]int

func (p positions) at(file, table string, i int) string {
	if i < len(p[table]) {
		return fmt.Sprintf("%s:%d", file, p[table][i])
	}
	return file
}

// tableLines finds where each [[table]] stands, or each { table } of table = [ ].
func tableLines(data []byte) positions {
	out := positions{}
	p := unstable.Parser{}
	p.Reset(data)
	row := func(n *unstable.Node) int { return 1 + bytes.Count(data[:n.Raw.Offset], []byte{'\n'}) }
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		key := e.Key()
		key.Next()
		name := string(key.Node().Data)
		if e.Kind == unstable.ArrayTable {
			out[name] = append(out[name], row(key.Node()))
			continue
		}
		for each := e.Value().Children(); e.Value().Kind == unstable.Array && each.Next(); {
			if first := each.Node().Children(); each.Node().Kind == unstable.InlineTable && first.Next() {
				k := first.Node().Key()
				k.Next()
				out[name] = append(out[name], row(k.Node()))
			}
		}
	}
	return out
}

// last is the field's own name.
func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}
