package bus_test

import (
	"fmt"
	"testing"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestListsPageFilterAndCount(t *testing.T) {
	r := newRig(t)
	task := core.NewID(core.TaskPrefix, acme, 7)
	trace := core.NewTrace(nil)
	start := r.clock.Now()
	r.send(bus.Send{Topic: "nav.done", Sender: "ann", Task: task, Payload: core.Raw(`{"where":"Kitchen"}`)})
	r.clock.move(time.Hour)
	half := r.clock.Now()
	r.send(bus.Send{Topic: "nav.failed", Type: bus.Error, Trace: trace})
	r.direct("bob", `{"n":1}`, func(s *bus.Send) { s.Sender = "ann" })
	taken := r.direct("cid", `{"n":2}`)
	r.read("cid", 1)
	ask := r.send(bus.Send{Recipient: "bob", Sender: "cid", Type: bus.Request, Trace: trace})
	r.direct("broadcast", `{"n":3}`)
	for name, c := range map[string]struct {
		q    bus.Query
		want string // seqs, newest first
	}{
		"all":               {bus.Query{}, "654321"},
		"second page":       {bus.Query{Filter: core.Filter{Page: 2, Size: 4}}, "21"},
		"past the end":      {bus.Query{Filter: core.Filter{Page: 9, Size: 4}}, ""},
		"since":             {bus.Query{Filter: core.Filter{Since: half}}, "65432"},
		"until":             {bus.Query{Filter: core.Filter{Until: half.Add(-time.Minute)}}, "1"},
		"before everything": {bus.Query{Filter: core.Filter{Until: start.Add(-time.Hour)}}, ""},
		"topic":             {bus.Query{Topic: "nav.*"}, "21"},
		"one topic":         {bus.Query{Topic: "nav.done"}, "1"},
		"sender":            {bus.Query{Filter: core.Filter{Agent: "ann"}}, "631"},
		"of two":            {bus.Query{Filter: core.Filter{Agent: "ann,cid"}}, "65431"},
		"recipient":         {bus.Query{Filter: core.Filter{Agent: "bob"}}, "653"},
		"type":              {bus.Query{Filter: core.Filter{Kind: "error"}}, "2"},
		"trace":             {bus.Query{Filter: core.Filter{Trace: trace}}, "52"},
		"task":              {bus.Query{Filter: core.Filter{Task: task}}, "1"},
		"text":              {bus.Query{Filter: core.Filter{Match: "kitchen"}}, "1"},
		"id":                {bus.Query{Filter: core.Filter{Match: taken.MessageID}}, "4"},
		"session":           {bus.Query{Filter: core.Filter{Session: "x"}}, ""},
		"conversation":      {bus.Query{Correlation: ask.CorrelationID}, "5"},
		"published":         {bus.Query{Filter: core.Filter{Status: "published"}}, "21"},
		"open":              {bus.Query{Filter: core.Filter{Status: "open"}}, "653"},
		"open, of one":      {bus.Query{Filter: core.Filter{Status: "open", Agent: "ann", Since: half}}, "63"},
		"read":              {bus.Query{Filter: core.Filter{Status: "read"}}, "4"},
		"expired":           {bus.Query{Filter: core.Filter{Status: "expired"}}, ""},
		"unanswered":        {bus.Query{Filter: core.Filter{Status: "unanswered"}}, "5"},
	} {
		page, err := r.Bus.List(t.Context(), acme, c.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		for _, m := range page.Items {
			got += fmt.Sprint(m.Seq)
			expect.True(t, m.Status != "" && m.Payload != nil && m.Deliveries == nil, "%s: %s", name, core.MustEncode(m))
		}
		expect.Is(t, got, c.want, name)
		total := len(c.want)
		expect.True(t, c.q.Size != 0 || page.Info.Total == total, "%s: total %d, want %d", name, page.Info.Total, total)
	}
	for name, q := range map[string]bus.Query{
		"status": {Filter: core.Filter{Status: "lost"}}, "kind": {Filter: core.Filter{Kind: "news"}}, "topic": {Topic: "a..b"},
		"the engine's": {Topic: "sys.>"}, "page": {Filter: core.Filter{Page: -1}}, "size": {Filter: core.Filter{Size: 101}},
	} {
		expect.Is(t, code(expect.Fault(r.Bus.List(t.Context(), acme, q))), core.InvalidInput, name)
	}
	r.whole()
}

func TestTailsGoOnWhereTheyWere(t *testing.T) {
	r := newRig(t)
	for i := range 30 {
		r.publish([]string{"a.b", "c.d"}[i%2], fmt.Sprintf(`{"n":%d}`, i))
	}
	r.direct("bob", `{"n":30}`)
	recent, seq, err := r.Recent(t.Context(), acme, "a.*", 3)
	expect.True(t, err == nil && len(recent) == 3 && string(recent[0].Payload) == `{"n":24}` && string(recent[2].Payload) == `{"n":28}` && seq == 31,
		"%s %d %v", core.MustEncode(recent), seq, err)
	all, _, err := r.Recent(t.Context(), acme, "", 1)
	expect.True(t, err == nil && len(all) == 1 && all[0].RecipientID == "bob" && all[0].Status == bus.Open, "%s %v", core.MustEncode(all), err)
	if found, next, err := r.Since(t.Context(), acme, "a.*", seq, 10); err != nil || len(found) != 0 || next != seq {
		t.Errorf("%v %d %v", found, next, err)
	}
	r.publish("a.b", `{"n":31}`)
	found, next, err := r.Since(t.Context(), acme, "a.*", seq, 10)
	expect.True(t, err == nil && len(found) == 1 && next == 32, "%v %d %v", found, next, err)
	found, next, err = r.Since(t.Context(), acme, "", 10, 5)
	expect.True(t, err == nil && len(found) == 5 && next == 15 && found[0].Seq == 11, "%v %d %v", found, next, err)
	for _, n := range []int{0, -1, 1001} {
		_, _, err = r.Since(t.Context(), acme, "", 0, n)
		expect.Is(t, code(err), core.InvalidInput, "n", n)
		_, _, err = r.Recent(t.Context(), acme, "", n)
		expect.Is(t, code(err), core.InvalidInput, "n", n)
	}
	for _, n := range []int{0, 101} {
		_, err = r.Read(t.Context(), alice, "bob", n)
		expect.Is(t, code(err), core.InvalidInput, "read", n)
	}
	boxes, err := r.Mailboxes(t.Context(), acme)
	expect.True(t, err == nil && len(boxes) == 1 && boxes[0].RecipientID == "bob" && boxes[0].Open == 1 && !boxes[0].Oldest.IsZero(), "%+v, %v", boxes, err)
}
