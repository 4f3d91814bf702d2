package witness_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/witness"
	"swarmdeck/expect"
)

func read(text string) (notes []string, err error) {
	for k, bad := range witness.Read(strings.NewReader(text)) {
		if bad != nil {
			return notes, bad
		}
		notes = append(notes, k.Where+" "+string(k.Note))
	}
	return notes, nil
}

func line(note string) string {
	return string(witness.Line{At: time.Unix(0, 0).UTC(), Checkpoint: note}.Encode())
}

func TestLinesAreReadBack(t *testing.T) {
	one := line("swarmdeck/t_a\n1\nx\n\n— swarmdeck/t_a y\n")
	for name, c := range map[string]struct {
		text string
		want string // of the lines, or of the error
	}{
		"nothing":              {"", ""},
		"lines":                {one + one, "1 2"},
		"no end":               {strings.TrimSuffix(one+one, "\n"), "1 2"},
		"cut short at the end": {one + one[:len(one)-9], "1"},
		"cut short between":    {one[:20] + "\n" + one + one[:3] + "\n" + one, "2 4"},
		"empty lines":          {"\n\n" + one, "3"},
		"garbage":              {one + "hello\n", "line 2 is no checkpoint"},
		"half of another":      {`{"at":"x"}` + "\n", "line 1 is no checkpoint"},
		"more members":         {strings.Replace(one, `{"at"`, `{"x":1,"at"`, 1), "line 1 is no checkpoint"},
		"a line without end":   {one + strings.Repeat("x", 200<<10), "line 2 is longer than"},
		"binary":               {"\x00\xff\x00", "line 1 is no checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			notes, err := read(c.text)
			var got []string
			for _, n := range notes {
				got = append(got, strings.Fields(n)[1])
			}
			if err != nil {
				got = []string{err.Error()}
			}
			if s := strings.Join(got, " "); s != c.want && (err == nil || !strings.Contains(s, c.want)) {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// What is read back of a hostile file is what was written, or an error.
func FuzzRead(f *testing.F) {
	one := line("swarmdeck/t_a\n1\nx\n\n— swarmdeck/t_a y\n")
	f.Add([]byte(one))
	f.Add([]byte(one[:30] + "\n" + one))
	f.Add([]byte(`{"at":"2026-01-01T00:00:00Z","checkpoint":"\ud800"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		for k, err := range witness.Read(bytes.NewReader(data)) {
			if err != nil {
				return
			}
			n++
			expect.Must(t, n <= bytes.Count(data, []byte("\n"))+1 && len(k.Note) <= len(data), "more than was there: %v", k)
			var at int
			_, err := fmt.Sscanf(k.Where, "line %d", &at)
			expect.Must(t, err == nil && at >= 1, "%v", k.Where)
		}
	})
}
