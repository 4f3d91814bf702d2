package skill

import (
	"fmt"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// thousand writes 1,000 skill files, each with schemas of its own, that depend
// on each other in chains of ten.
func (s *shelf) thousand() {
	for i := range 1000 {
		needs := ""
		if i%10 > 0 {
			needs = fmt.Sprintf("skill-%03d", i-1)
		}
		s.file(fmt.Sprintf("%d/skill-%03d.yaml", i/100, i), fmt.Sprintf(`name: skill-%03d
version: 1.0.%d
description: The skill number %d of many
parameters_schema:
  type: object
  properties:
    location: {type: string, description: "number %d"}
    speed: {type: number, default: 1.0, maximum: %d}
    way: {type: array, items: {type: object, properties: {x: {type: number}, y: {type: number}}}}
  required: [location]
returns_schema:
  type: object
  properties: {status: {enum: [ok, "failed %d"]}, final_position: {type: object}}
timeout: 60
max_retries: 2
dependencies: [%s]
tags: [motion, "part %d"]
effects: [exec]
runner: {kind: exec, argv: [./run.sh, "%d"], env: {N: "%d"}}
`, i, i, i, i, i+1, i, needs, i/100, i, i))
	}
}

// The registry has to have 1,000 skills in under 500 ms.

func BenchmarkLoad1000SkillsFromFiles(b *testing.B) {
	s := newShelf(b)
	s.thousand()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		fresh := newShelf(b)
		b.StartTimer()
		got, err := fresh.Load(b.Context(), alice, Given{Paths: []string{s.dir}})
		if err != nil || len(got.Changes) != 1000 {
			b.Fatal(err, len(got.Changes))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1000skills")
}

func BenchmarkReread1000UnchangedSkills(b *testing.B) {
	s := newShelf(b)
	s.thousand()
	s.load()
	w := &watcher{r: s.registry, seen: map[string]glance{}}
	defer func() { _ = w.notify.Close() }()
	expect.Of(w.look(b.Context()))(b)
	b.ResetTimer()
	for range b.N {
		if whole, err := w.look(b.Context()); err != nil || !whole {
			b.Fatal(whole, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1000skills")
}

func BenchmarkOpen1000SkillsFromTheStore(b *testing.B) {
	s := newShelf(b)
	s.thousand()
	s.load()
	b.ResetTimer()
	for range b.N {
		r, err := newRegistry(b.Context(), Options{Ledger: audit.New(s.db, audit.Options{}), Runners: s.opt.Runners}, []string{home})
		if err != nil || len(r.Catalog(home)) != 1000 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1000skills")
}

func BenchmarkCheckParameters(b *testing.B) {
	s := &Skill{Name: "drive", Version: "1.0.0", ParametersSchema: core.Raw(driving), ReturnsSchema: core.Raw(driving)}
	new(contracts).adopt(s)
	params := core.Raw(`{"location":"hall","mode":"fast","way":[{"x":1,"y":2},{"x":3,"y":4}]}`)
	b.Run("filled in", func(b *testing.B) {
		for range b.N {
			expect.Of(s.CheckParams(params))(b)
		}
	})
	b.Run("result", func(b *testing.B) {
		for range b.N {
			expect.No(b, s.checkResult(params))
		}
	})
	b.Run("refused", func(b *testing.B) {
		for range b.N {
			if _, err := s.CheckParams(core.Raw(`{"location":1,"way":[{}]}`)); err == nil {
				b.Fatal("taken")
			}
		}
	})
}

func BenchmarkChainOfTen(b *testing.B) {
	s := newShelf(b)
	s.thousand()
	s.load()
	b.ResetTimer()
	for range b.N {
		if chain, err := s.Order(home, "skill-999"); err != nil || len(chain) != 10 {
			b.Fatal(err, len(chain))
		}
	}
}
