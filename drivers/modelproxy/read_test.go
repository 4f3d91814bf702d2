package modelproxy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// allocated is how many bytes f takes in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestMemoryGrowsWithTheSizeOfWhatIsSaidAlone(t *testing.T) {
	const n, most = 2000, 64 << 20
	text := strings.Repeat("x", 512)
	t.Run("texts of a request", func(t *testing.T) {
		body := `{"messages":[{"role":"assistant","content":[` + strings.Repeat(fmt.Sprintf(`{"text":%q},`, text), n-1) + fmt.Sprintf(`{"text":%q}]}]}`, text)
		got := allocated(func() {
			c, err := askChat("", []byte(body))
			expect.True(t, err == nil && len(c.Messages) == 1 && len(c.Messages[0].Content) == 1 && len(c.Messages[0].Content[0].Text) == n*len(text),
				"%v, %d messages", err, len(c.Messages))
		})
		expect.True(t, got <= most, "%d MiB for a request of %d bytes", got>>20, len(body))
	})
	t.Run("texts of an answer", func(t *testing.T) {
		a := newAnswer()
		for i := range maxParts {
			a.say("text", fmt.Sprint(i), text+text)
		}
		got := allocated(func() {
			c := a.call()
			expect.True(t, len(c.Messages[0].Content) == 1 && len(c.Messages[0].Content[0].Text) == 2*maxParts*len(text), "%d parts", len(c.Messages[0].Content))
		})
		if got > most {
			t.Errorf("%d MiB for an answer of %d bytes", got>>20, a.size)
		}
	})
	for name, body := range map[string]string{
		"/chat/completions":         `{"choices":[%s{}]}`,
		"/responses":                `{"output":[%s{}]}`,
		"/messages":                 `{"content":[%s{}]}`,
		"/models/m:generateContent": `{"candidates":[%s{}]}`,
	} {
		t.Run("values of an answer to "+name, func(t *testing.T) {
			f, _ := formatOf(name)
			x := &exchange{l: &line{p: New()}, a: newAnswer()}
			data := fmt.Appendf(nil, body, strings.Repeat("{},", 1<<18))
			got := allocated(func() {
				expect.Fails(t, x.read(data, f.whole), "understood")
			})
			expect.True(t, got <= most, "%d MiB for an answer of %d bytes", got>>20, len(data))
		})
	}
}

func TestAnAnswerWaitsForItsTurnToBeUnderstood(t *testing.T) {
	p := New()
	for range maxRead {
		p.reading <- struct{}{}
	}
	x := &exchange{l: &line{p: p}, a: newAnswer()}
	read := expect.Later(func() error { return x.read([]byte(`{"choices":[{"message":{"content":"hi"}}]}`), chatWhole) })
	select {
	case err := <-read:
		t.Errorf("before its turn: %v", err)
	case <-p.reading: // one is done
		if err := <-read; err != nil || x.a.call().Messages[0].Content[0].Text != "hi" {
			t.Errorf("in its turn: %v %+v", err, x.a.call())
		}
	}
	expect.Is(t, len(p.reading), maxRead-1, "are being read")
}

func TestTheValuesOfAListAreCountedOneByOne(t *testing.T) {
	piece := `{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"totalTokenCount":7}},`
	list := "[" + strings.Repeat(piece, 5000) + strings.TrimSuffix(piece, ",") + "]"
	expect.Is(t, items([]byte(list)), 9, "values in a piece")
	x := &exchange{l: &line{p: New()}, a: newAnswer()}
	expect.No(t, x.read([]byte(list), geminiWhole))
	c := x.a.call()
	got := c.Messages[0].Content[0].Text
	expect.True(t, got == strings.Repeat("x", 5001) && *c.Tokens == (dag.Usage{TotalTokens: 7}), "%d bytes, %+v", len(got), c.Tokens)
	x.a = newAnswer()
	expect.No(t, x.read([]byte("["+strings.Repeat(`{"kind":0},`, maxItems)+"{}]"), geminiWhole))
	want := fmt.Sprintf("(%d bytes more are not kept)", (maxItems-maxPieces)*len(`{"kind":0}`)+2)
	if got := x.a.call().Messages[0].Content; len(got) != 1 || got[0].Text != want {
		t.Errorf("%+v, want %s", got, want)
	}
}
