package audit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func segmentOf(t testing.TB, h *house, from, upto uint64) []byte {
	t.Helper()
	var out bytes.Buffer
	expect.No(t, h.ExportSegment(t.Context(), acme, from, upto, &out))
	return out.Bytes()
}

func TestAnExportedSegmentIsCheckedAgainstTheLog(t *testing.T) {
	h := newHouse(t)
	for i := range 50 {
		set(t, h, fmt.Sprint("thing", i), `{"s":"x"}`)
	}
	first, second := segmentOf(t, h, 1, 20), segmentOf(t, h, 21, 37)
	h.retire(37)
	set(t, h, "more", `{"s":"x"}`)
	for i, data := range [][]byte{first, second} {
		s, err := h.VerifySegment(t.Context(), acme, bytes.NewReader(data))
		expect.Must(t, err == nil && s.Upto == []uint64{20, 37}[i], "%v %v", s, err)
		lines := strings.SplitAfter(string(data), "\n")
		for n, forged := range map[string]string{
			"a byte":          strings.Replace(string(data), "alice", "alicf", 1),
			"a line less":     lines[0] + strings.Join(lines[2:], ""),
			"two exchanged":   lines[0] + lines[2] + lines[1] + strings.Join(lines[3:], ""),
			"cut":             strings.Join(lines[:5], ""),
			"no head":         strings.Join(lines[1:], ""),
			"lines after":     string(data) + lines[1],
			"nothing":         "",
			"another place":   strings.Replace(string(data), `"upto":`, `"upto":1`, 1),
			"another tenant":  strings.ReplaceAll(string(data), acme, "t_evil"),
			"another's proof": strings.Join(append(lines[:len(lines)-2:len(lines)-2], lines[len(lines)-2][:20]), ""),
		} {
			_, err = h.VerifySegment(t.Context(), acme, strings.NewReader(forged))
			expect.Err(t, err, core.Kind(core.InvalidInput), n)
		}
	}
	var out bytes.Buffer
	expect.Err(t, h.ExportSegment(t.Context(), acme, 30, 40, &out), core.Kind(core.InvalidInput), "events that left were exported:")
	h.healthy()
}

func FuzzVerifySegment(f *testing.F) {
	h := newHouse(f)
	h.record(3, 4)
	f.Add(segmentOf(f, h, 1, 5))
	f.Add(segmentOf(f, h, 3, 3))
	f.Add([]byte(`{"format":"swarmdeck audit segment v1","tenant_id":"t_acme","from":4611686018427387904,"upto":4611686018427387904,"before":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := h.VerifySegment(t.Context(), acme, bytes.NewReader(data))
		if err == nil && (s.From == 0 || s.Upto < s.From || s.Upto > 8) {
			t.Fatal(s)
		}
	})
}

func TestWhatMayLeaveIsFoundByAgeAndNumber(t *testing.T) {
	h := newHouse(t)
	h.record(1, 1, 1, 1, 1) // and the event of the key
	for _, c := range []struct {
		age  audit.Age
		want uint64
	}{{audit.Age{}, 0}, {audit.Age{Keep: 4}, 2}, {audit.Age{Keep: 100}, 0}, {audit.Age{Before: newClock().now}, 0}, {audit.Age{Before: newClock().now.Add(1)}, 6}} {
		_, newest, err := h.Retirable(t.Context(), acme, c.age)
		expect.True(t, err == nil && newest == c.want, "%+v: %d, want %d (%v)", c.age, newest, c.want, err)
	}
}
