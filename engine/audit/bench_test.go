package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// benchState is what a task's transition records, about the usual size.
var benchState = core.Raw(`{"status":"running","attempt":1,"priority":50,"session_id":"se_bf4fc_0000000001","updated_at":"2026-05-01T12:00:00.123456Z","agent":"fetcher-07"}`)

func fill(b testing.TB, l *audit.Ledger, events, perCommit int) {
	for done := 0; done < events; done += perCommit {
		err := l.Update(b.Context(), alice, func(tx *audit.Tx) error {
			for i := range perCommit {
				e := audit.Entry{Type: "task.running", Trace: trace, Subject: "task", ID: fmt.Sprintf("tk_bf4fc_%010d", done+i), State: benchState, Prev: uint64(done)}
				if _, err := tx.Record(e); err != nil {
					return err
				}
			}
			return nil
		})
		expect.No(b, err)
	}
}

// BenchmarkCommit shows what recording costs: the store alone with a value of
// an event's size, then the event, then its place in the signed tree.
func BenchmarkCommit(b *testing.B) {
	var base float64
	value := make([]byte, 500)
	for _, perCommit := range []int{1, 100, 1000} {
		for _, mode := range []string{"store", "record", "sealed"} {
			b.Run(fmt.Sprintf("%s/%d", mode, perCommit), func(b *testing.B) {
				dir := b.TempDir()
				var opt store.Options
				if mode == "sealed" {
					opt.Seal = openSealer(b, filepath.Join(dir, "key")).Seal
				}
				db := openStore(b, filepath.Join(dir, "data.db"), opt)
				l := audit.New(db, audit.Options{})
				b.ResetTimer()
				if mode == "store" {
					seq := uint64(0)
					for b.Loop() {
						_ = l.Append(b.Context(), alice, func(tx *audit.Tx) error {
							for range perCommit {
								seq++
								if err := tx.Put(audit.Events, seqKey(seq), value); err != nil {
									return err
								}
							}
							return nil
						})
					}
				} else {
					for b.Loop() {
						fill(b, l, perCommit, perCommit)
					}
				}
				perEvent := float64(b.Elapsed().Nanoseconds()) / float64(b.N*perCommit)
				if mode == "store" {
					base = perEvent
				}
				b.ReportMetric(perEvent, "ns/event")
				b.ReportMetric(perEvent/base, "x-store")
			})
		}
	}
}

// sink is a store that keeps nothing: what is left is the ledger's own cost.
type sink struct {
	store.Store
	store.Tx
	n int64
}

func (s *sink) Update(_ context.Context, _ string, fn func(store.Tx) error) error { return fn(s) }
func (s *sink) Tenant() string                                                    { return acme }
func (s *sink) Put(store.Bucket, []byte, []byte) error                            { return nil }
func (s *sink) Add(string, int64) int64                                           { s.n++; return s.n }
func (s *sink) OnCommit(fn func())                                                { fn() }
func (s *sink) Scan(store.Bucket, []byte, []byte, bool, func(_, _ []byte) (bool, error)) error {
	return nil
}

// BenchmarkRecord is the ledger's own cost of an update with one event.
func BenchmarkRecord(b *testing.B) {
	l := audit.New(&sink{}, audit.Options{OnChange: func(core.Change) {}})
	e := audit.Entry{Type: "task.running", Trace: trace, Subject: "task", ID: "tk_bf4fc_0000000001", State: benchState, Detail: core.Raw(`{"worker":"w1"}`), Prev: 7}
	b.ReportAllocs()
	for b.Loop() {
		err := l.Update(b.Context(), alice, func(tx *audit.Tx) error {
			_, err := tx.Record(e)
			return err
		})
		expect.No(b, err)
	}
}

const benchEvents = 200_000

func BenchmarkLog(b *testing.B) {
	h := newHouse(b)
	fill(b, h.Ledger, benchEvents, 500)
	million := func(b *testing.B) {
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e6/benchEvents, "s/million")
	}
	b.Run("verify", func(b *testing.B) {
		// What no verifier can do without: hashing every event once.
		var one bytes.Buffer
		expect.No(b, h.Export(b.Context(), acme, "jsonl", &one))
		event := one.Bytes()[:one.Len()/benchEvents]
		start := time.Now()
		for range benchEvents {
			_ = sha256.Sum256(event)
		}
		bare := time.Since(start)
		b.ResetTimer()
		for b.Loop() {
			if r := h.verify(nil); !r.OK {
				b.Fatal(r)
			}
		}
		million(b)
		b.ReportMetric(float64(len(event)), "B/event")
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/bare.Seconds(), "x-sha256")
	})
	b.Run("export", func(b *testing.B) {
		for b.Loop() {
			expect.No(b, h.Export(b.Context(), acme, "jsonl", io.Discard))
		}
		million(b)
	})
	b.Run("replay", func(b *testing.B) {
		for b.Loop() {
			expect.Of(h.Reconcile(b.Context(), acme))(b)
		}
		million(b)
	})
	b.Run("replay-fold", func(b *testing.B) {
		h.Register(echo{h})
		for b.Loop() {
			expect.Of(h.Reconcile(b.Context(), acme))(b)
		}
		million(b)
	})
	b.Run("filter", func(b *testing.B) {
		for b.Loop() {
			expect.Of(h.List(b.Context(), acme, core.Filter{Kind: "task.done"}))(b)
		}
		million(b)
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			expect.Of(h.List(b.Context(), acme, core.Filter{Page: 1000}))(b)
		}
	})
	b.Run("page-until", func(b *testing.B) {
		for b.Loop() {
			expect.Of(h.List(b.Context(), acme, core.Filter{Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}))(b)
		}
	})
	b.Run("sign", func(b *testing.B) {
		secret, _, err := note.GenerateKey(nil, audit.Origin(acme))
		expect.No(b, err)
		signer := expect.Of(note.NewSigner(secret))(b)
		text, _, _ := strings.Cut(string(h.checkpoint()), "\n\n")
		for b.Loop() {
			expect.Of(note.Sign(&note.Note{Text: text + "\n"}, signer))(b)
		}
	})
	b.Run("prove", func(b *testing.B) {
		for b.Loop() {
			expect.Of(h.Prove(b.Context(), acme, core.NewID("ev", acme, 77_777)))(b)
		}
	})
	b.Run("check-proof", func(b *testing.B) {
		proof := expect.Of(h.Prove(b.Context(), acme, core.NewID("ev", acme, 77_777)))(b)
		key := h.sealer.Verifier(acme)
		for b.Loop() {
			expect.Of(audit.CheckProof(proof, key))(b)
		}
	})
}

// echo is a kind whose store always agrees with the log.
type echo struct{ h *house }

func (echo) Subject() string { return "task" }

func (echo) States(_ store.Tx, each func(string, any) error) error {
	for i := range benchEvents {
		if err := each(fmt.Sprintf("tk_bf4fc_%010d", i), benchState); err != nil {
			return err
		}
	}
	return nil
}
