package keymap

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"swarmdeck/ui/term"
)

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
