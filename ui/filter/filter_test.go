package filter_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/filter"
)

func TestMatch(t *testing.T) {
	columns := []string{"task", "status", "agent", "started"}
	row := []string{"t_01J9", "Running", "scout two", "12:30"}
	for text, want := range map[string]bool{
		"": true, "run": true, "RUN": true, "fail": false, "!fail": true, "!run": false, "~rng": true, "~gnr": false, "!~gnr": true,
		"status:run": true, "agent:run": false, "!agent:run": true, "stat:run": true, "status:~rn": true, "!status:~rn": false,
		"scout run": true, "scout fail": false, `"scout two"`: true, `"scout  two"`: false, `agent:"scout two"`: true, `"!run"`: false,
		"12:30": true, "nocol:run": false, "!": true, "~": true, "status:": true, "status:!": false, "s:run": false, "ta:01j": true, `"unfinished`: false,
	} {
		expect.Is(t, filter.Parse(text, columns).Match(row), want, text, "passes")
	}
	var none *filter.Filter
	expect.True(t, none.Match(row) && none.Empty(), "a nil filter stops rows")
	expect.True(t, !filter.Parse("agent:x", columns).Match(row[:1]), "a column that the row doesn't have matches")
}

func TestIndexFindsWhateverTheCase(t *testing.T) {
	for _, tt := range []struct{ s, lower, want string }{
		{"Hello", "ell", "ell"}, {"HELLO", "ell", "ELL"}, {"größe ÄÖÜ", "äö", "ÄÖ"}, {"aab", "ab", "ab"}, {"x", "xx", ""}, {"İstanbul", "s", "s"},
	} {
		from, end, ok := filter.Index(tt.s, tt.lower)
		expect.True(t, ok == (tt.want != "") && (!ok || tt.s[from:end] == tt.want), "%q in %q: %d to %d, %v", tt.lower, tt.s, from, end, ok)
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	f := filter.Parse("run !fail ~st agent:sc", []string{"task", "status", "agent"})
	row := []string{"t_01J9", "Running", "scout"}
	expect.Is(t, testing.AllocsPerRun(100, func() { f.Match(row) }), 0, "allocations a row")
}

func FuzzMatch(f *testing.F) {
	f.Add(`!status:~fld "two words" ~x`, "two words\x00failed")
	f.Add("!~", "\xff")
	f.Fuzz(func(t *testing.T, text, row string) {
		cells := strings.Split(row, "\x00")
		p := filter.Parse(text, []string{"task", "status"})
		p.Match(cells)
		expect.Must(t, strings.TrimSpace(text) != "" || p.Empty(), "nothing stops rows")
	})
}
