package skill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func (s *shelf) order(ref string) []string {
	s.t.Helper()
	chain := expect.Of(s.Order(home, ref))(s.t)
	var all []string
	for _, c := range chain {
		all = append(all, c.Ref())
	}
	return all
}

func TestDependenciesComeFirst(t *testing.T) {
	s := newShelf(t)
	s.file("grasp.yaml", skillText("grasp", "1.0.0", "detect"))
	s.file("detect.yaml", skillText("detect", "1.0.0", "navigate"))
	s.file("navigate.yaml", skillText("navigate", "1.0.0"))
	s.file("fetch.yaml", skillText("fetch", "1.0.0", "grasp", "navigate", "say"))
	s.file("say.yaml", skillText("say", "1.0.0"))
	s.load()
	for ref, want := range map[string][]string{
		"grasp":    {"navigate@1.0.0", "detect@1.0.0", "grasp@1.0.0"},
		"navigate": {"navigate@1.0.0"},
		"fetch":    {"navigate@1.0.0", "detect@1.0.0", "grasp@1.0.0", "say@1.0.0", "fetch@1.0.0"},
	} {
		expect.Same(t, s.order(ref), want, ref)
	}
	s.load(s.file("navigate2.yaml", skillText("navigate", "2.0.0")))
	s.load(s.file("old.yaml", skillText("old", "1.0.0", "navigate@1.0.0", "detect")))
	expect.Same(t, s.order("old"), []string{"navigate@1.0.0", "navigate@2.0.0", "detect@1.0.0", "old@1.0.0"})
	expect.Err(t, expect.Fault(s.Order(home, "none-such")), core.Kind(core.NotFound))
}

func TestACycleIsPrintedAsItsPath(t *testing.T) {
	s := newShelf(t)
	s.file("a.yaml", skillText("aaa", "1.0.0", "bbb"))
	s.file("b.yaml", skillText("bbb", "1.0.0", "fine", "ccc@1.0.0"))
	s.file("c.yaml", skillText("ccc", "1.0.0", "aaa"))
	s.file("d.yaml", skillText("ddd", "1.0.0", "ccc"))
	s.file("fine.yaml", skillText("fine", "1.0.0"))
	got := s.load()
	const allowed = `is not allowed; allowed: what does not need this skill itself; a cycle: `
	want := []string{
		`a.yaml:4: dependencies[0]: "bbb" ` + allowed + `aaa → bbb → ccc → aaa`,
		`b.yaml:4: dependencies[1]: "ccc@1.0.0" ` + allowed + `bbb → ccc → aaa → bbb`,
		`c.yaml:4: dependencies[0]: "aaa" ` + allowed + `ccc → aaa → bbb → ccc`,
		`d.yaml:4: dependencies[0]: "ccc" is not allowed; allowed: a skill that is loaded`,
	}
	expect.True(t, slices.Equal(s.problems(got), want), "\n got %s\nwant %s", strings.Join(s.problems(got), "\n     "), strings.Join(want, "\n     "))
	expect.Same(t, got.actions(), []string{"created fine@1.0.0"})
}

func TestALongCycleIsPrintedInShort(t *testing.T) {
	s := newShelf(t)
	for i := range 100 {
		s.file(fmt.Sprintf("%02d.yaml", i), skillText(fmt.Sprintf("skill-%d", i), "1.0.0", fmt.Sprintf("skill-%d", (i+1)%100)))
	}
	got := s.load()
	expect.True(t, len(got.Refused) == 100 && strings.HasSuffix(got.Refused[0].Message, "skill-15 → … 81 more … → skill-97 → skill-98 → skill-99 → skill-0"),
		"%d: %s", len(got.Refused), got.Refused[0].Message)
}

func TestANewVersionMustNotCloseACycle(t *testing.T) {
	s := newShelf(t)
	s.load(s.file("move.yaml", skillText("move", "1.0.0")))
	s.load(s.file("look.yaml", skillText("look", "1.0.0", "move")))
	got := s.problems(s.load(s.file("move2.yaml", skillText("move", "2.0.0", "look"))))
	expect.True(t, len(got) == 1 && strings.HasSuffix(got[0], "a cycle: move → look → move"), "%q", got)
	// Pinned, the same is no cycle. Unloading the newest would make it one.
	s.load(s.file("look.yaml", skillText("look", "1.0.0", "move@1.0.0")))
	if got := s.load(s.file("move2.yaml", skillText("move", "2.0.0", "look"))); len(got.Refused) != 0 {
		t.Errorf("%q", s.problems(got))
	}
	expect.Same(t, s.order("move"), []string{"move@1.0.0", "look@1.0.0", "move@2.0.0"})
	got = s.problems(s.load(s.file("move3.yaml", skillText("move", "1.0.0", "move@2.0.0"))))
	expect.True(t, len(got) == 1, "%q", got)
}

func TestStepsAndFallbacksCountForCycles(t *testing.T) {
	s := newShelf(t)
	steps := func(name, skill, fallback string) string {
		return "name: " + name + "\nversion: 1.0.0\nparameters_schema: {}\nrunner:\n  kind: composite\n  steps:\n    - id: one\n      skill: " +
			skill + "\n      error_policy: fallback\n      fallback: " + fallback + "\n"
	}
	s.file("plain.yaml", skillText("plain", "1.0.0"))
	s.file("a.yaml", steps("all", "plain", "back"))
	s.file("b.yaml", steps("back", "all", "plain"))
	got := s.problems(s.load())
	if len(got) != 2 || !strings.HasPrefix(got[0], "a.yaml:10: runner.steps[0].fallback: ") || !strings.HasSuffix(got[0], "all → back → all") ||
		!strings.HasPrefix(got[1], "b.yaml:8: runner.steps[0].skill: ") {
		t.Errorf("%q", got)
	}
	s.load(s.file("b.yaml", skillText("back", "1.0.0")))
	if got := s.load(s.file("a.yaml", steps("all", "plain", "back"))); len(got.Refused) != 0 {
		t.Errorf("%q", s.problems(got))
	}
	expect.Same(t, s.order("all"), []string{"all@1.0.0"}, "steps are no dependencies")
	_, err := s.Unload(t.Context(), alice, "back")
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && strings.Contains(err.Error(), "needed by all@1.0.0"), "%v", err)
}

func TestUnloadLeavesWhatOthersNeed(t *testing.T) {
	s := newShelf(t)
	s.load(s.file("a1.yaml", skillText("aaa", "1.0.0")))
	s.load(s.file("a2.yaml", skillText("aaa", "2.0.0")))
	s.load(s.file("b.yaml", skillText("bbb", "1.0.0", "aaa")))
	s.load(s.file("c.yaml", skillText("ccc", "1.0.0", "aaa@1.0.0")))
	unload := func(ref, want string) {
		t.Helper()
		_, err := s.Unload(t.Context(), alice, ref)
		expect.Says(t, err, want, "unload", ref)
	}
	unload("aaa", "needed by bbb@1.0.0, ccc@1.0.0")
	unload("aaa@1.0.0", "needed by ccc@1.0.0")
	unload("aaa@2.0.0", "")
	unload("aaa@2.0.0", "not found; versions of it: 1.0.0")
	unload("ccc", "")
	unload("bbb", "")
	unload("aaa", "")
	unload("aaa", "not found")
	if len(s.Catalog(home)) != 0 || s.Registry(home).LastUpdated.IsZero() {
		t.Errorf("%+v", s.Registry(home))
	}
	s.again()
	expect.True(t, len(s.Catalog(home)) == 0, "%+v", s.Catalog(home))
	deltas, err := s.ledger.Reconcile(t.Context(), home)
	expect.True(t, err == nil && len(deltas) == 0, "%+v %v", deltas, err)
}

func TestAVersionIsDefinedOnce(t *testing.T) {
	s := newShelf(t)
	one := s.file("1.yaml", skillText("one", "1.0.0"))
	two := s.file("2.yaml", skillText("one", "1.0.0")+"tags: [other]\n")
	got := s.load()
	want := `2.yaml:1: name: "one" is not allowed; allowed: one definition of each version, and one@1.0.0 is defined by ` + one
	p := s.problems(got)
	expect.True(t, slices.Equal(p, []string{want}) && slices.Equal(got.actions(), []string{"created one@1.0.0"}), "%q %q", p, got.actions())
	expect.Same(t, s.problems(s.load(two)), []string{want}, "in another load")
	got = s.load(one, two, s.dir, one)
	expect.True(t, len(got.Changes) == 1, "given more than once: %+v", got)
	copied := s.file("copy/1.yaml", skillText("one", "1.0.0"))
	got = s.load(copied)
	expect.True(t, slices.Equal(got.actions(), []string{"unchanged one@1.0.0"}), "the same elsewhere: %+v", got)
	// Moved, then changed.
	s.file("1.yaml", "")
	expect.No(t, os.Remove(one))
	got = s.load(two)
	expect.True(t, slices.Equal(got.actions(), []string{"changed one@1.0.0"}), "%q %q", got.actions(), s.problems(got))
	have, _ := s.Skill(home, "one")
	expect.True(t, have.Source == two, "%+v", have)
}

func TestOrderHoldsForAnyGraph(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		s := newShelf(t)
		const n = 25
		for i := range n {
			var needs []string
			for j := range n {
				if j != i && random.IntN(12) == 0 {
					needs = append(needs, fmt.Sprintf("skill-%d", j))
				}
			}
			s.file(fmt.Sprintf("%02d.yaml", i), skillText(fmt.Sprintf("skill-%d", i), "1.0.0", needs...))
		}
		got := s.load()
		if len(got.Changes)+countFiles(got) != n {
			t.Fatalf("%d loaded, %d refused", len(got.Changes), countFiles(got))
		}
		for _, k := range s.Catalog(home) {
			seen := map[string]bool{}
			for _, ref := range s.order(k.Name) {
				one, _ := s.Skill(home, ref)
				for _, need := range one.Dependencies {
					expect.Must(t, seen[need], "%s before %s", ref, need)
				}
				seen[one.Name] = true
			}
		}
	}
}

func countFiles(l Loaded) int {
	files := map[string]bool{}
	for _, p := range l.Refused {
		files[p.File] = true
	}
	return len(files)
}
