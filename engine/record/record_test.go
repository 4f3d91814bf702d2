package record_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// tool is a noun as a service would have one.
type tool struct {
	TenantID string    `json:"tenant_id"`
	Name     string    `json:"name"`
	Color    string    `json:"color"`
	Secret   string    `json:"-"`
	Made     time.Time `json:"made"`
	Changed  time.Time `json:"changed"`
	Seq      uint64    `json:"seq"`
}

const (
	bTool  store.Bucket = "tool"
	bColor store.Bucket = "tool.color"
)

type world struct {
	*record.Kind[*tool]
	t     *testing.T
	db    *store.DB
	by    core.Caller
	heard []string
	// unread are the records that pages could not show.
	unread []string
}

func newWorld(t *testing.T) *world {
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "x.db"), store.Options{}))(t)
	t.Cleanup(func() { db.Close() })
	for _, tenant := range []string{"t_acme", "t_other"} {
		expect.No(t, db.CreateTenant(t.Context(), tenant))
	}
	w := &world{t: t, db: db, by: core.Caller{Tenant: "t_acme", Name: "ann", Kind: core.Operator}}
	w.Kind = &record.Kind[*tool]{
		Noun: "tool", Bucket: bTool, Limit: 4, Ledger: audit.New(db, audit.Options{
			Unread: func(_, _ string, err error) { w.unread = append(w.unread, err.Error()) },
		}),
		ID:   func(v *tool) string { return v.Name },
		Head: func(v *tool) record.Head { return record.Head{&v.TenantID, &v.Made, &v.Changed, &v.Seq} },
		Stored: func(v *tool) any {
			return struct {
				tool
				Secret string
			}{*v, v.Secret}
		},
		State: func(v *tool) any {
			return struct {
				Color string `json:"color"`
			}{v.Color}
		},
		Indexes: []record.Index[*tool]{{Bucket: bColor, Keys: func(v *tool) []record.Key {
			return []record.Key{record.Text(v.Color).Last(v.Name)}
		}}},
		Follow: func(tenant, id string, v *tool) {
			if v == nil {
				v = &tool{Color: "gone"}
			}
			w.heard = append(w.heard, tenant+" "+id+" "+v.Color)
		},
	}
	w.Ledger.Register(w.Auditable())
	return w
}

func (w *world) put(name, color string) (action string) {
	w.t.Helper()
	err := w.Ledger.Update(w.t.Context(), w.by, func(tx *audit.Tx) (err error) {
		action, err = w.Put(tx, record.Event{}, &tool{Name: name, Color: color}, func(a, b *tool) bool { return a.Color == b.Color })
		return err
	})
	expect.No(w.t, err)
	return action
}

func (w *world) update(fn func(*audit.Tx) error) {
	w.t.Helper()
	expect.No(w.t, w.Ledger.Update(w.t.Context(), w.by, fn))
}

func (w *world) deltas() []audit.Delta {
	w.t.Helper()
	return expect.Of(w.Ledger.Reconcile(w.t.Context(), "t_acme"))(w.t)
}

func (w *world) colors() (keys []string) {
	err := w.db.View(w.t.Context(), "t_acme", func(tx store.Tx) error {
		return tx.Scan(bColor, nil, nil, false, func(k, v []byte) (bool, error) {
			keys = append(keys, string(k)+"="+string(v))
			return true, nil
		})
	})
	expect.No(w.t, err)
	return keys
}

func TestASaveKeepsRecordIndexCountEventAndFollowers(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct{ name, color, want string }{
		{"saw", "red", record.Created},
		{"saw", "red", record.Unchanged},
		{"axe", "red", record.Created},
		{"saw", "blue", record.Changed},
	} {
		got := w.put(step.name, step.color)
		expect.Must(t, got == step.want, "%v: %s", step, got)
	}
	got := w.colors()
	expect.Must(t, slices.Equal(got, []string{"blue\x00saw=saw", "red\x00axe=axe"}), "%v", got)
	saw, err := w.Get(t.Context(), "t_acme", "saw")
	expect.Must(t, err == nil && saw.TenantID == "t_acme" && saw.Seq == 3 && !saw.Made.After(saw.Changed), "%v %v", saw, err)
	_, err = w.Delete(t.Context(), w.by, "tool.sold", "saw")
	expect.Must(t, err == nil, "%v", err)
	_, err = w.Get(t.Context(), "t_acme", "saw")
	expect.Must(t, core.AsError(err).Code == core.NotFound, "%v", err)
	all, err := w.List(t.Context(), "t_acme")
	expect.Must(t, err == nil && len(all) == 1 && all[0].Name == "axe", "%v %v", all, err)
	expect.Must(t, slices.Equal(w.heard, []string{"t_acme saw red", "t_acme axe red", "t_acme saw blue", "t_acme saw gone"}), "%v", w.heard)
	if err := w.Ledger.View(t.Context(), "t_acme", func(tx *audit.Tx) error {
		expect.Is(t, w.Count(tx), 1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	d := w.deltas()
	expect.Must(t, len(d) == 0, "%v", d)
	w.heard = nil
	expect.Must(t, w.Read(t.Context(), "t_acme") == nil && slices.Equal(w.heard, []string{"t_acme axe red"}), "%v", w.heard)
}

func TestMoreThanTheLimitAreRefused(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.put(fmt.Sprint("tool", i), "red")
	}
	err := w.Ledger.Update(t.Context(), w.by, func(tx *audit.Tx) error {
		return w.Save(tx, record.Event{Type: "tool.created"}, nil, &tool{Name: "more"})
	})
	e := core.AsError(err)
	expect.Must(t, e.Code == core.Conflict && e.Details["field"] == "tool", "%v", err)
	d := w.deltas()
	expect.Must(t, len(d) == 0, "the refusal left something behind: %v", d)
}

func TestADamagedRecordIsNamedAndHidesNoOther(t *testing.T) {
	w := newWorld(t)
	w.put("axe", "red")
	w.put("saw", "red")
	w.forge(func(tx store.Tx) error { return tx.Put(bTool, []byte("axe"), []byte(`{"name":7}`)) })
	all, err := w.List(t.Context(), "t_acme")
	expect.Must(t, err != nil && strings.Contains(err.Error(), `decode tool "axe"`) && len(all) == 1 && all[0].Name == "saw", "%v %v", all, err)
	stop := errors.New("enough")
	err = w.Ledger.View(t.Context(), "t_acme", func(tx *audit.Tx) error { return w.Each(tx, func(*tool) error { return stop }) })
	expect.Must(t, errors.Is(err, stop), "%v", err)
	_, err = w.List(t.Context(), "t_other")
	expect.Must(t, err == nil, "%v", err)
}

// forge changes the store past the ledger, as somebody with the file would.
func (w *world) forge(fn func(store.Tx) error) {
	w.t.Helper()
	expect.No(w.t, w.db.Update(context.Background(), "t_acme", fn))
}

func TestReconcileFindsEveryForgery(t *testing.T) {
	type change func(w *world, tx store.Tx) error
	put := func(b store.Bucket, key, value string) change {
		return func(_ *world, tx store.Tx) error { return tx.Put(b, []byte(key), []byte(value)) }
	}
	drop := func(b store.Bucket, key string) change {
		return func(_ *world, tx store.Tx) error { return tx.Delete(b, []byte(key)) }
	}
	for name, c := range map[string]struct {
		do   change
		want string // subject id field of one delta
	}{
		"a record that is gone":      {drop(bTool, "axe"), "tool axe "},
		"a record too many":          {put(bTool, "hoe", `{"name":"hoe"}`), "tool hoe "},
		"a record under another key": {put(bTool, "saw", `{"name":"axe"}`), "tool saw row"},
		"a record that is no JSON":   {put(bTool, "saw", `x`), "tool saw row"},
		"an index entry too few":     {drop(bColor, "red\x00axe"), `tool.color "red\x00axe" row`},
		"an index entry too many":    {put(bColor, "red\x00hoe", "axe"), `tool.color "red\x00hoe" row`},
		"an index entry elsewhere":   {put(bColor, "red\x00axe", "saw"), `tool.color "red\x00axe" row`},
		"an entry of nothing":        {put(bColor, "zzz", "nobody"), `tool.color zzz row`},
		"a wrong count":              {func(_ *world, tx store.Tx) error { tx.Add("tool", 1); return nil }, "# tool row"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("axe", "red")
			w.put("saw", "blue")
			w.forge(func(tx store.Tx) error { return c.do(w, tx) })
			found := w.deltas()
			expect.Must(t, slices.ContainsFunc(found, func(d audit.Delta) bool { return d.Subject+" "+d.ID+" "+d.Field == c.want }),
				"want %q in %q", c.want, found)
		})
	}
}

func TestReconcileFindsAnyByteOfARecord(t *testing.T) {
	w := newWorld(t)
	w.put("axe", "red")
	var whole []byte
	w.forge(func(tx store.Tx) error {
		data, err := tx.Get(bTool, []byte("axe"))
		whole = slices.Clone(data)
		return err
	})
	for i := range whole {
		forged := slices.Clone(whole)
		forged[i] ^= 1
		w.forge(func(tx store.Tx) error { return tx.Put(bTool, []byte("axe"), forged) })
		expect.Must(t, len(w.deltas()) != 0, "byte %d of %s was changed unseen", i, whole)
	}
}

func TestRecordsAreTheSameWhateverTheirHeads(t *testing.T) {
	w := newWorld(t)
	one := tool{TenantID: "t_acme", Name: "saw", Color: "red", Secret: "s"}
	for what, change := range map[string]func(*tool){
		"same": func(v *tool) { v.TenantID, v.Made, v.Changed, v.Seq = "", time.Now(), time.Now(), 7 }, "name": func(v *tool) { v.Name = "" },
		"color": func(v *tool) { v.Color = "blue" }, "secret": func(v *tool) { v.Secret = "" },
	} {
		if other := one; w.Same(&one, &other) != true {
			t.Errorf("a copy is another")
		} else if change(&other); w.Same(&one, &other) != (what == "same") {
			t.Errorf("%s: %v", what, w.Same(&one, &other))
		}
	}
}

func TestKeysSortAsTheirPartsDo(t *testing.T) {
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	keys := []record.Key{
		record.Text("a").Seq(1), record.Text("a").Seq(256), record.Text("a").Seq(1 << 40), record.Text("ab").Seq(0), record.Text("b").Time(at).Byte(1).Last("z"),
	}
	expect.Must(t, slices.IsSortedFunc(keys, func(a, b record.Key) int { return slices.Compare(a, b) }), "%v", keys)
	p := record.Parts(keys[4])
	if name, when, kind, rest := p.Text(), p.Time(), p.Byte(), p.Text(); name != "b" || !when.Equal(at) || kind != 1 || rest != "z" || len(p) != 0 {
		t.Fatal(name, when, kind, rest, p)
	}
	n := p.Seq() + uint64(p.Byte()) + record.LastSeq(p)
	expect.Must(t, n == 0 && p.Text() == "", "there was nothing to read")
	from, to := record.Key{'a', 0xff}.Under()
	expect.Must(t, string(from) == "a\xff" && string(to) == "b", "%q %q", from, to)
	_, to = (record.Key{0xff}).Under()
	expect.Must(t, to == nil, "%q", to)
}

func TestAMirrorHoldsWhatTheNewestCommitLeft(t *testing.T) {
	w := newWorld(t)
	told := 0
	mirror := record.Mirror[tool]{Keep: func(v *tool) bool { return v.Color != "gray" }, Changed: func() { told++ }}
	w.Follow = mirror.Follow
	w.put("saw", "red")
	before := mirror.Of("t_acme")
	w.put("saw", "blue")
	w.put("axe", "gray")
	got := mirror.Get("t_acme", "saw")
	expect.True(t, before["saw"].Color == "red" && got != nil && got.Color == "blue" && told == 3, "before %v, now %v, told %d times", before["saw"], got, told)
	if mirror.Get("t_acme", "axe") != nil || !mirror.Elsewhere("t_other", "saw") || mirror.Elsewhere("t_acme", "saw") || len(mirror.All()["t_acme"]) != 1 {
		t.Errorf("%v", mirror.All())
	}
	_, err := w.Delete(t.Context(), w.by, "tool.removed", "saw")
	expect.True(t, err == nil && len(mirror.Of("t_acme")) == 0, "%v, %v", mirror.Of("t_acme"), err)
}

// part is a numbered noun that is found by a word.
type part struct {
	ID   string    `json:"id"`
	Made time.Time `json:"made"`
	For  string    `json:"for,omitempty"`
}

func TestNumberedRecordsPageByNumberTimeAndWord(t *testing.T) {
	w := newWorld(t)
	const byTool store.Bucket = "part.tool"
	k := record.Kind[*part]{
		Noun: "part", Bucket: "part", Ledger: w.Ledger, Number: record.UUIDs("id"),
		ID:      func(p *part) string { return p.ID },
		Head:    func(p *part) record.Head { return record.Head{Created: &p.Made} },
		Ended:   func(_ *audit.Tx, p *part) (time.Time, error) { return p.Made, nil },
		Indexes: []record.Index[*part]{{Bucket: byTool, Count: "part.tool", Word: func(p *part) string { return p.For }}},
	}
	w.Ledger.Register(k.Auditable())
	var made []part
	for i := range 7 {
		p := part{For: []string{"saw", "", "axe"}[i%3]}
		w.update(func(tx *audit.Tx) error {
			p.ID = core.NewUUID("t_acme", k.Next(tx), nil)
			return k.Save(tx, record.Event{Type: "part.made"}, nil, &p)
		})
		made = append(made, p)
	}
	if next, err := k.Prune(t.Context(), w.by, record.Limit{Keep: 6}, "parts"); err != nil || next != nil {
		t.Fatal(next, err)
	}
	saw := func(p *part) (bool, error) { return p.For == "saw", nil }
	type wanted struct {
		q     record.Query[*part]
		want  string
		total int
	}
	check := func(name string, c wanted) {
		c.q.Filter.Size = 3
		c.q.Filter.Page = max(1, c.q.Filter.Page)
		got := ""
		var page core.Page[*part]
		err := w.Ledger.View(t.Context(), "t_acme", func(tx *audit.Tx) (err error) {
			page, err = k.Page(t.Context(), tx, c.q)
			return err
		})
		for _, p := range page.Items {
			n, _ := core.LocalUUID("id", "t_acme", p.ID)
			got += fmt.Sprint(n)
		}
		expect.True(t, err == nil && got == c.want && page.Info.Total == c.total,
			"%s: %s of %d (%v), want %s of %d", name, got, page.Info.Total, err, c.want, c.total)
	}
	for name, c := range map[string]wanted{
		"all":           {record.Query[*part]{}, "765", 6},
		"second page":   {record.Query[*part]{Filter: core.Filter{Page: 2}}, "432", 6},
		"past the end":  {record.Query[*part]{Filter: core.Filter{Page: 9}}, "", 6},
		"since":         {record.Query[*part]{Filter: core.Filter{Since: made[3].Made}}, "765", 4},
		"until":         {record.Query[*part]{Filter: core.Filter{Until: made[3].Made}}, "32", 2},
		"matched":       {record.Query[*part]{Match: saw}, "74", 2},
		"of a word":     {record.Query[*part]{Along: byTool, Word: "saw"}, "74", 2},
		"word and time": {record.Query[*part]{Along: byTool, Word: "saw", Filter: core.Filter{Until: made[6].Made}}, "4", 1},
		"among":         {record.Query[*part]{Among: []uint64{1, 2, 5}, Match: func(*part) (bool, error) { return true, nil }}, "52", 2},
		"undecoded":     {record.Query[*part]{Match: saw, Raw: func(data []byte) bool { return strings.Contains(string(data), "axe") }}, "", 0},
	} {
		check(name, c)
	}
	all, err := w.Ledger.Reconcile(t.Context(), "t_acme")
	expect.True(t, err == nil && len(all) == 0, "%v, %v", all, err)
	w.forge(func(tx store.Tx) error { return tx.Put("part", record.Seq(4), []byte(`{"id":7}`)) })
	for name, c := range map[string]wanted{
		"a damaged one is left out":     {record.Query[*part]{Filter: core.Filter{Page: 2}}, "32", 6},
		"and the times about it":        {record.Query[*part]{Filter: core.Filter{Since: made[4].Made}}, "765", 3},
		"and what is matched beside it": {record.Query[*part]{Match: saw}, "7", 1},
	} {
		check(name, c)
	}
	got := slices.Compact(w.unread)
	expect.True(t, len(got) == 1 && strings.Contains(got[0], "decode part"), "told of %q", got)
}

func TestRowsAreFoundFromEitherEndAndDecodedWhenAsked(t *testing.T) {
	w := newWorld(t)
	const rows record.Rows[[]byte] = "row.blob"
	under := record.Text("a")
	w.update(func(tx *audit.Tx) error {
		_, err := tx.Record(audit.Entry{Type: "rows.kept", Subject: "rows", ID: "a"})
		for n, text := range []string{"zero", "one", "two"} {
			row, bad := rows.Row(under.Seq(uint64(n)), []byte(text))
			err = errors.Join(err, bad, row.Put(tx))
		}
		fresh, bad := rows.Row(under.Seq(1), []byte("another"))
		return errors.Join(err, bad, fresh.PutNew(tx))
	})
	for _, c := range []struct {
		from, to uint64
		back     bool
		want     string
	}{{0, 3, false, "zero one two"}, {0, 3, true, "two one zero"}, {1, 2, false, "one"}} {
		var got []string
		err := w.Ledger.View(t.Context(), "t_acme", func(tx *audit.Tx) error {
			return rows.Within(tx, under, record.Seq(c.from), record.Seq(c.to), c.back, func(k record.Parts, f record.Found[[]byte]) (bool, error) {
				v, err := f.Value()
				n := k.Seq()
				expect.True(t, len(f.Data) == len(v) && n < 3, "%d bytes at %d: %q", len(f.Data), n, v)
				got = append(got, string(v))
				return true, err
			})
		})
		expect.True(t, strings.Join(got, " ") == c.want && err == nil, "%+v: %q, %v", c, got, err)
	}
}

func TestRowsKeepNumbersTextsAndRecords(t *testing.T) {
	w := newWorld(t)
	const (
		numbers record.Rows[uint64]   = "row.number"
		texts   record.Rows[string]   = "row.text"
		tools   record.Rows[tool]     = "row.tool"
		signs   record.Rows[struct{}] = "row.sign"
	)
	under := record.Text("a")
	w.update(func(tx *audit.Tx) error {
		_, err := tx.Record(audit.Entry{Type: "rows.kept", Subject: "rows", ID: "a"})
		return errors.Join(err, numbers.Put(tx, under.Seq(1), 7), numbers.Put(tx, record.Text("b"), 8), texts.Put(tx, under, "x"),
			tools.Put(tx, under, tool{Name: "saw"}), signs.Put(tx, under, struct{}{}), tx.Put("row.number", record.Text("c"), []byte("no")))
	})
	w.update(func(tx *audit.Tx) error {
		n, ok, err := numbers.Get(tx, under.Seq(1))
		text, _, err2 := texts.Get(tx, under)
		v, _, err3 := tools.Get(tx, under)
		_, sign, err4 := signs.Get(tx, under)
		expect.True(t, n == 7 && ok && text == "x" && v.Name == "saw" && sign && errors.Join(err, err2, err3, err4) == nil,
			"%d %v %q %v %v, %v", n, ok, text, v, sign, errors.Join(err, err2, err3, err4))
		_, _, err = numbers.Get(tx, record.Text("c"))
		expect.True(t, len(core.DamagedIn(err)) == 1, "a number of two bytes: %v", err)
		_, err = tx.Record(audit.Entry{Type: "rows.dropped", Subject: "rows", ID: "a"})
		return errors.Join(err, numbers.Drop(tx, under))
	})
	w.update(func(tx *audit.Tx) error {
		_, gone, err := numbers.Get(tx, under.Seq(1))
		_, there, err2 := numbers.Get(tx, record.Text("b"))
		expect.True(t, !gone && there && errors.Join(err, err2) == nil, "gone %v, there %v, %v", !gone, there, errors.Join(err, err2))
		return nil
	})
}
