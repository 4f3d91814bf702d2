package files

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
)

// delta is a manifest as the difference from another one: as long as what changed.
type delta struct {
	base    digest
	deep    int   // deltas down to a whole manifest, itself included
	bytes   int64 // of all of these
	changes []change
}

// change is one line that is other than in the base.
type change struct {
	entry
	gone bool // the path alone counts
}

// firstOfDelta begins a delta; a line with its base, how deep it is and its bytes follows.
const firstOfDelta = "swarmdeck tree delta 1\n"

// maxDeep bounds the deltas that lie upon each other. Together they are no longer than
// the whole manifest would be, so that writing this now and then does not count.
const maxDeep = 1000

// changed lists how entries differ from earlier ones, in the order of a walk.
func changed(was, now []entry) (all []change) {
	for len(was) > 0 || len(now) > 0 {
		c := -1
		switch {
		case len(was) == 0:
			c = 1
		case len(now) > 0:
			c = order(was[0].path, now[0].path)
		}
		switch {
		case c < 0:
			all = append(all, change{entry: entry{path: was[0].path}, gone: true})
		case c > 0 || !was[0].alike(&now[0]):
			all = append(all, change{entry: now[0]})
		}
		if c <= 0 {
			was = was[1:]
		}
		if c >= 0 {
			now = now[1:]
		}
	}
	return all
}

// apply makes the entries of changes to a base.
func apply(base []entry, changes []change) []entry {
	all := make([]entry, 0, len(base)+len(changes))
	for _, c := range changes {
		n := 0
		for n < len(base) && order(base[n].path, c.path) < 0 {
			n++
		}
		all = append(all, base[:n]...)
		if base = base[n:]; len(base) > 0 && base[0].path == c.path {
			base = base[1:]
		}
		if !c.gone {
			all = append(all, c.entry)
		}
	}
	return append(all, base...)
}

// encode writes a delta. The bytes that it says include its own but for the first lines.
func (d *delta) encode(below int64) []byte {
	var lines []byte
	for _, c := range d.changes {
		if c.gone {
			lines = append(strconv.AppendQuoteToASCII(append(lines, '-'), c.path), '\n')
		} else {
			lines = c.append(append(lines, '+'))
		}
	}
	d.bytes = below + int64(len(lines))
	return append(fmt.Appendf([]byte(firstOfDelta), "%s %d %d\n", d.base, d.deep, d.bytes), lines...)
}

// decodeDelta reads one; ok is false for what is a whole manifest, or none at all.
func decodeDelta(data []byte) (d delta, ok bool, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(firstOfDelta))
	if !ok {
		return d, false, nil
	}
	head, lines, _ := strings.Cut(string(rest), "\n")
	f := strings.Split(head, " ")
	if len(f) != 3 {
		return d, true, core.Errorf(core.Internal, "a delta of a manifest has no base")
	}
	if d.base, err = parseDigest(f[0]); err == nil {
		if d.deep, err = strconv.Atoi(f[1]); err == nil {
			d.bytes, err = strconv.ParseInt(f[2], 10, 64)
		}
	}
	if err != nil || d.deep < 1 || d.deep > maxDeep || d.bytes < 0 {
		return d, true, core.Errorf(core.Internal, "a delta of a manifest has no base: %q", core.Clip(head))
	}
	for n := 3; lines != ""; n++ {
		line, more, whole := strings.Cut(lines, "\n")
		c, err := parseChange(line)
		if err == nil && !whole {
			err = fmt.Errorf("it is cut")
		}
		if err == nil && len(d.changes) > 0 && order(d.changes[len(d.changes)-1].path, c.path) >= 0 {
			err = fmt.Errorf("%q is out of order", c.path)
		}
		if err != nil {
			return d, true, core.Errorf(core.Internal, "line %d of a delta of a manifest: %v", n, err)
		}
		d.changes, lines = append(d.changes, c), more
	}
	return d, true, nil
}

func parseChange(line string) (c change, err error) {
	switch {
	case strings.HasPrefix(line, "+"):
		c.entry, err = parse(line[1:])
		return c, err
	case strings.HasPrefix(line, "-"):
		path, rest, err := unquote(line[1:])
		if err == nil && (rest != "" || "-"+strconv.QuoteToASCII(path) != line) {
			err = fmt.Errorf("it is written in another way than ours")
		}
		c.path, c.gone = path, true
		return c, err
	}
	return c, fmt.Errorf("it neither adds nor removes")
}

// fold makes one list of changes of several, the newest first.
func fold(deltas []delta) []change {
	if len(deltas) == 1 {
		return deltas[0].changes
	}
	known := map[string]bool{}
	var all []change
	for _, d := range deltas {
		for _, c := range d.changes {
			if !known[c.path] {
				known[c.path] = true
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b change) int { return order(a.path, b.path) })
	return all
}
