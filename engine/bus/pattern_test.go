package bus_test

import (
	"regexp"
	"strings"
	"testing"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestPatternsSelectTopics(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no string
	}{
		{"a", "a", "b a.b aa"},
		{"a.b", "a.b", "a a.b.c a.c"},
		{"a.*", "a.b a.c", "a a.b.c b.a"},
		{"*", "a b sys", "a.b"},
		{"*.*", "a.b", "a a.b.c sys.task"},
		{"a.>", "a.b a.b.c", "a b.a"},
		{">", "a a.b a.b.c", "sys.task.queued"},
		{"*.>", "a.b a.b.c", "a sys.task.queued"},
		{"a.*.c", "a.b.c", "a.c a.b.d a.b.b.c"},
		{"*.b.>", "a.b.c", "a.b a.c.b"},
		{"sys.>", "sys.task.queued sys.x", "sys a.b"},
		{"sys.task.*", "sys.task.queued", "sys.agent.idle sys.task"},
	} {
		p, err := bus.ParsePattern(c.pattern)
		expect.No(t, err, c.pattern)
		for _, topic := range strings.Fields(c.yes) {
			expect.True(t, p.Match(topic), "%s does not select %s", c.pattern, topic)
		}
		for _, topic := range strings.Fields(c.no) {
			expect.True(t, !p.Match(topic), "%s selects %s", c.pattern, topic)
		}
	}
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", "a.>.b", ">>", "a*", "**", "a b", "ä", "a.\x00", strings.Repeat("a", 201)} {
		expect.Is(t, code(expect.Fault(bus.ParsePattern(bad))), core.InvalidInput, bad)
		expect.Is(t, code(bus.CheckTopic(bad)), core.InvalidInput, "topic", bad)
	}
	expect.True(t, !(bus.Pattern{}).Match("a") && !(bus.Pattern{}).Match(""), "the zero pattern selects something")
}

// oracle is the pattern as a regular expression.
func oracle(pattern string) *regexp.Regexp {
	var words []string
	for _, w := range strings.Split(pattern, ".") {
		switch w {
		case "*":
			w = `[^.]+`
		case ">":
			w = `[^.]+(\.[^.]+)*`
		default:
			w = regexp.QuoteMeta(w)
		}
		words = append(words, w)
	}
	return regexp.MustCompile(`\A` + strings.Join(words, `\.`) + `\z`)
}

func FuzzPatternsMatchLikeTheirRegularExpression(f *testing.F) {
	for _, seed := range [][2]string{{"a.*.>", "a.b.c"}, {">", "sys.a"}, {"sys.*", "sys.a"}, {"a.b", "a.b.c"}, {"*", ""}, {"a..", "."}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, topic string) {
		p, err := bus.ParsePattern(pattern)
		if err != nil {
			expect.Is(t, code(err), core.InvalidInput, pattern, err)
			return
		}
		got := p.Match(topic) // never panics, whatever the topic
		if bus.CheckTopic(topic) != nil {
			return
		}
		want := oracle(pattern).MatchString(topic)
		if strings.HasPrefix(topic, "sys.") && !strings.HasPrefix(pattern, "sys.") && pattern != "sys" {
			want = false
		}
		expect.Is(t, got, want, pattern, "selects", topic)
	})
}
