package pane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

// shelf counts what is read of it.
type shelf struct {
	reads int
	err   error
	text  string
}

func (s *shelf) note(_ context.Context, _, id string) (string, error) {
	s.reads++
	return id + ": " + s.text, s.err
}

func noteSheet(s *shelf, live bool) *Detail[string] {
	return NewDetail(DetailSpec[string]{
		Name: "note", Fetch: s.note, Live: live,
		Text:  func(_ Env, s *string, out *Paras) { out.Add("says", *s, screen.Text) },
		Item:  func(s *string) Item { return Item{Kind: "note", ID: *s, Task: "t1"} },
		Title: func(s *string) string { return "note " + *s },
	})
}

// look shows the sheet's thing and gives what stands on the screen.
func look(d *Detail[string], env Env, it Item) string {
	d.Resize(60, 5)
	d.Show(env, it)
	for _, b := range bodies(d.Refresh(env)) {
		d.Update(env, b)
	}
	c := screen.New(60, 5)
	d.Draw(c, env, true)
	return strings.Join(c.Plain(), "\n")
}

func TestAgesGoOnInARecordThatIsNotReadAgain(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	env := Env{Now: at}
	d := NewDetail(DetailSpec[string]{Name: "note", Fetch: (&shelf{text: "hi"}).note, Text: func(env Env, _ *string, out *Paras) {
		out.Add("sent", When(env.Now, at), screen.Text)
	}})
	expect.Has(t, look(d, env, Item{Kind: "note", ID: "n1"}), "(0s ago)")
	env.Now = at.Add(17 * time.Second)
	c := screen.New(60, 5)
	d.Draw(c, env, true)
	expect.Has(t, strings.Join(c.Plain(), "\n"), "(17s ago)")
}

func TestARecordThatNeverChangesIsReadOnce(t *testing.T) {
	w := &shelf{text: "hi"}
	env := Env{}
	for _, live := range []bool{false, true} {
		w.reads = 0
		d := noteSheet(w, live)
		expect.True(t, d.Title(env) == "" && d.Selected(env).Task == "", "it shows what was not read")
		for range 3 {
			look(d, env, Item{Kind: "note", ID: "n1"})
		}
		want := map[bool]int{false: 1, true: 3}[live]
		expect.True(t, w.reads == want, "live %v: %d reads, want %d", live, w.reads, want)
		if d.Title(env) != "note n1: hi" || d.Selected(env).Task != "t1" {
			t.Errorf("%q, %+v", d.Title(env), d.Selected(env))
		}
		out := look(d, env, Item{Kind: "note", ID: "n2"})
		expect.True(t, strings.Contains(out, "n2: hi") && !strings.Contains(out, "n1"), "another one:\n%s", out)
		d.Reset()
		expect.True(t, d.Selected(env) == (Item{}) && d.Refresh(env) == nil, "it goes on after a reset")
	}
}

func TestARecordThatCantBeReadSaysWhyAndIsReadAgain(t *testing.T) {
	w := &shelf{err: errors.New("disk \x1b[31mgone"), text: "hi"}
	env := Env{}
	d := noteSheet(w, false)
	expect.Has(t, look(d, env, Item{Kind: "note", ID: "n1"}), "disk gone", "shown")
	w.err = nil
	expect.Has(t, look(d, env, Item{Kind: "note", ID: "n1"}), "n1: hi", "shown")
}

func TestAReplyAboutAnotherRecordIsDropped(t *testing.T) {
	env := Env{}
	d := noteSheet(&shelf{text: "hi"}, false)
	d.Show(env, Item{Kind: "note", ID: "n1"})
	late := bodies(d.Refresh(env))
	d.Show(env, Item{Kind: "note", ID: "n2"})
	for _, b := range late {
		d.Update(env, b)
	}
	if d.got != nil {
		t.Errorf("it shows %q", *d.got)
	}
	d.Reset()
	for _, b := range late {
		d.Update(env, b)
	}
	expect.Has(t, look(d, env, Item{Kind: "note", ID: "n1"}), "n1: hi", "the first one again")
}

func TestARecordThatHasComeToItsEndIsNotReadAgain(t *testing.T) {
	reads, over := 0, false
	d := NewDetail(DetailSpec[bool]{
		Name: "x", Live: true, Settled: func(end *bool) bool { return *end }, Text: func(Env, *bool, *Paras) {},
		Fetch: func(context.Context, string, string) (bool, error) {
			reads++
			return over, nil
		},
	})
	env := Env{}
	d.Show(env, Item{Kind: "x", ID: "1"})
	look := func() {
		for _, body := range bodies(d.Refresh(env)) {
			d.Update(env, body)
		}
	}
	look()
	look()
	over = true
	look()
	look()
	look()
	expect.Must(t, reads == 3, "%d reads, want 3", reads)
}
