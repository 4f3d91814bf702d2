package grid_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/expect"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/screen"
)

// rows are ids; each row shows its id, a state and a number.
type rows struct {
	ids  []string
	read int
}

func (r *rows) Len() int        { return len(r.ids) }
func (r *rows) ID(i int) string { return r.ids[i] }

func (r *rows) Index(id string) int { return slices.Index(r.ids, id) }

func (r *rows) Row(i int, set func(int, string, screen.Role)) {
	r.read++
	set(0, r.ids[i], screen.Accent)
	set(1, "● running", screen.Busy)
	set(2, "42", screen.Text)
	set(9, "no such column", screen.Text)
}

func many(n int) *rows {
	r := &rows{ids: make([]string, n)}
	for i := range r.ids {
		r.ids[i] = "t_" + strconv.Itoa(i)
	}
	return r
}

func columns() []grid.Column {
	return []grid.Column{{Title: "TASK", Key: true, Weight: 1}, {Title: "STATE", Min: 9, Priority: 1}, {Title: "N", Min: 4, Priority: 2, Right: true}}
}

func shown(g *grid.Grid, w, h int) string {
	c := screen.New(w, h)
	g.Draw(c, c.Bounds(), true)
	return strings.Join(c.Plain(), "\n")
}

func TestColumnsAreDroppedBeforeTheyAreCut(t *testing.T) {
	g := grid.New(columns()...)
	g.SetSource(many(2))
	for w, want := range map[int]string{
		30: "  TASK STATE        N\n▸ t_0  ● running   42\n  t_1  ● running   42",
		18: "  TASK STATE\n▸ t_0  ● running\n  t_1  ● running",
		12: "  TASK    N\n▸ t_0    42\n  t_1    42",
	} {
		got := shown(g, w, 3)
		expect.True(t, got == want, "at %d:\n%s\nwant\n%s", w, got, want)
	}
}

// Widths follow what is in sight, and nothing is cut or left out beside cells that are empty.
func TestWidthsFollowWhatIsInSight(t *testing.T) {
	long := "what changed since yesterday in 世界 and elsewhere"
	for _, tt := range []struct {
		name  string
		cells [][]string
		want  map[int]string
	}{
		{"all fits", [][]string{{"● ok", "an", "short", "tk_bf4fc_0000000042", ""}}, map[int]string{60: "● ok        an   short    0042"}},
		{"a text gets what is left", [][]string{{"● ok", "scribe", long, "tk_bf4fc_0000123456", ""}, {"◆ needs you", "a-name-of-20-letters", "x", "", ""}}, map[int]string{
			40: "● ok        scribe        what change…",
			60: "● ok        scribe           what changed since ye… 123456",
			95: "● ok        scribe               what changed since yesterday in 世界 and elsewhere   123456",
		}},
		{"what is empty goes first", [][]string{{"● ok", "an", long, "", "why it failed"}}, map[int]string{47: "● ok  an   what changed since … why it failed"}},
	} {
		g := grid.New(grid.Column{Title: "STATE", Min: 11}, grid.Column{Title: "NAME", Min: 12, Weight: 2, Key: true},
			grid.Column{Title: "TASK", Min: 12, Weight: 5, Priority: 2}, grid.Column{Title: "ID", Min: 4, Priority: 4, ID: true}, grid.Column{Title: "WHY", Min: 18, Weight: 3, Priority: 1})
		g.SetSource(&texts{tt.cells})
		for w, want := range tt.want {
			row := strings.Split(shown(g, w, 4), "\n")[1][len("▸ "):]
			expect.Is(t, strings.TrimRight(row, " "), want, tt.name, "at", w)
		}
		_, all := g.Want(4)
		expect.True(t, !strings.Contains(shown(g, all, 4), "…"), "%s: cut at %d, which is what it wants", tt.name, all)
	}
}

// texts are rows as they are.
type texts struct{ cells [][]string }

func (s *texts) Len() int        { return len(s.cells) }
func (s *texts) ID(i int) string { return strconv.Itoa(i) }

func (s *texts) Index(id string) int {
	if i, err := strconv.Atoi(id); err == nil && i < len(s.cells) {
		return i
	}
	return -1
}

func (s *texts) Row(i int, set func(int, string, screen.Role)) {
	for col, text := range s.cells[i] {
		set(col, text, screen.Text)
	}
}

func TestSelectionAndMarksHaveRolesAndSigns(t *testing.T) {
	g := grid.New(columns()...)
	g.SetSource(many(3))
	g.Do("mark")
	c := screen.New(14, 4)
	g.Draw(c, c.Bounds(), true)
	expect.Is(t, strings.Join(c.Plain(), "|"), "  TASK    N| ■t_0    42|▸ t_1    42|  t_2    42", "text is")
	expect.Is(t, strings.Join(c.Roles(), "|"), "..tttt.tttt|mmmmmmmmmmmmmm|ssssssssssssss|..aaaa", "roles are")
	g.Draw(c, c.Bounds(), false)
	expect.Is(t, c.Roles()[2], "SSSSSSSSSSSSSS", "without focus the roles are")
	expect.Same(t, g.Marks(), []string{"t_0"}, "marks")
	g.Do("clear-marks")
	expect.Is(t, len(g.Marks()), 0, "marks")
}

func TestSelectionFollowsTheID(t *testing.T) {
	src := many(100)
	g := grid.New(columns()...)
	g.SetSource(src)
	g.Move(50)
	shown(g, 30, 11)
	src.ids = append([]string{"new_1", "new_2"}, src.ids...)
	if id, _ := g.Selected(); id != "t_50" || g.Index() != 52 {
		t.Errorf("after an insertion: %s at %d", id, g.Index())
	}
	slices.Reverse(src.ids)
	id, _ := g.Selected()
	expect.True(t, id == "t_50", "after a sort: %s", id)
	at := g.Index()
	src.ids = slices.DeleteFunc(src.ids, func(id string) bool { return id == "t_50" })
	id, _ = g.Selected()
	expect.True(t, id == "t_49" && g.Index() == at, "after a deletion: %s at %d, was %d", id, g.Index(), at)
	src.ids = nil
	_, ok := g.Selected()
	expect.True(t, !ok && g.Index() == -1, "an empty list has a selection")
	src.ids = many(100).ids
	id, _ = g.Selected()
	expect.True(t, id == "t_49", "after the rows came back: %s", id)
	expect.True(t, !g.Select("nope") && g.Select("t_7") && g.Index() == 7, "select")
}

func TestAListThatGrowsAtItsTopKeepsNewRowsInSight(t *testing.T) {
	src := many(100)
	g := grid.New(columns()...)
	g.HoldTop = true
	g.SetSource(src)
	grow := func(id string) string {
		src.ids = append([]string{id}, src.ids...)
		return shown(g, 30, 4)
	}
	shown(g, 30, 4)
	for i, want := range []string{"new_0 ▸ t_0 t_1", "new_1 new_0 ▸ t_0", "new_1 new_0 ▸ t_0", "new_1 new_0 ▸ t_0"} {
		var ids []string
		for _, row := range strings.Split(grow("new_"+strconv.Itoa(i)), "\n")[1:] {
			ids = append(ids, strings.Fields(strings.TrimSuffix(row, "● running   42"))...)
		}
		expect.Is(t, strings.Join(ids, " "), want, "after row", i, "came")
	}
	g.Do("top")
	shown(g, 30, 4)
	expect.Has(t, grow("newest"), "newest", "back at the top")
}

func TestPaging(t *testing.T) {
	g := grid.New(columns()...)
	g.SetSource(many(100))
	shown(g, 30, 11) // ten rows
	for _, tt := range []struct {
		action string
		want   int
	}{
		{"down", 1}, {"half-down", 6}, {"page-down", 16}, {"bottom", 99}, {"down", 99}, {"page-up", 89}, {"half-up", 84}, {"top", 0}, {"up", 0},
	} {
		expect.True(t, g.Do(tt.action) && g.Index() == tt.want, "%s goes to %d, want %d", tt.action, g.Index(), tt.want)
	}
	expect.True(t, !g.Do("dance"), "it dances")
}

func TestEmptyAndTiny(t *testing.T) {
	g := grid.New(columns()...)
	g.Empty = "no tasks yet"
	expect.Has(t, shown(g, 30, 3), "no tasks yet", "shows")
	for w := range 12 {
		for h := range 4 {
			shown(g, w, h)
		}
	}
}

// Whatever happens to rows, sizes and columns: the selection is a row there
// is, it is on the screen, and no row is too wide.
func TestFocusIsAlwaysValid(t *testing.T) {
	actions := strings.Fields("up down top bottom half-up half-down page-up page-down mark mark-all clear-marks")
	texts := []string{"a", "世界", "\x1b[31m", "e\u0301", "long long long text", ""}
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		src := &hostile{rows: many(rng.IntN(40)), texts: texts}
		g := grid.New(columns()...)
		g.SetSource(src)
		for step := range 60 {
			switch rng.IntN(6) {
			case 0:
				rng.Shuffle(len(src.ids), func(i, j int) { src.ids[i], src.ids[j] = src.ids[j], src.ids[i] })
			case 1:
				src.ids = src.ids[:rng.IntN(len(src.ids)+1)]
			case 2:
				for range rng.IntN(10) {
					src.ids = append(src.ids, fmt.Sprintf("n_%d_%d", step, len(src.ids)))
				}
			case 3:
				g.Move(rng.IntN(1<<62) - 1<<61)
			default:
				g.Do(actions[rng.IntN(len(actions))])
			}
			w, h := rng.IntN(40), rng.IntN(14)
			c := screen.New(w, h)
			g.Draw(c, c.Bounds(), true)
			for _, row := range strings.Split(c.Render(screen.NewTheme("", nil)), "\n") {
				got := ansi.StringWidth(row)
				expect.Must(t, h <= 0 || got == w, "round %d: a row of %d cells on %d", round, got, w)
			}
			i := g.Index()
			id, ok := g.Selected()
			expect.Must(t, ok == (len(src.ids) > 0) && (!ok || i >= 0 && i < len(src.ids) && src.ids[i] == id),
				"round %d: selected %q, %v at %d of %d", round, id, ok, i, len(src.ids))
			if ok && w > 2 && h > 1 && !slices.ContainsFunc(c.Plain(), func(s string) bool { return strings.HasPrefix(s, "▸") }) {
				t.Fatalf("round %d: the selected row isn't on the screen:\n%s", round, strings.Join(c.Plain(), "\n"))
			}
		}
	}
}

type hostile struct {
	*rows
	texts []string
}

func (h *hostile) Row(i int, set func(int, string, screen.Role)) {
	for col := range 3 {
		set(col, h.texts[(i+col)%len(h.texts)], screen.Role(i+col))
	}
}

func TestAFrameCostsTheSameAtAMillionRows(t *testing.T) {
	for _, n := range []int{100, 1_000_000} {
		src := many(n)
		g := grid.New(columns()...)
		g.SetSource(src)
		g.Move(n / 2)
		c := screen.New(120, 40)
		g.Draw(c, c.Bounds(), true)
		src.read = 0
		allocs := testing.AllocsPerRun(100, func() {
			g.Do("down")
			g.Draw(c, c.Bounds(), true)
		})
		expect.True(t, allocs <= 2, "%v allocations a frame at %d rows", allocs, n)
		per := src.read / 101
		expect.True(t, per <= 40, "%d rows read a frame at %d rows", per, n)
	}
}

func BenchmarkMoveAndDraw(b *testing.B) {
	theme := screen.NewTheme("", map[screen.Role]lipgloss.Style{screen.Accent: lipgloss.NewStyle().Foreground(lipgloss.Cyan), screen.Busy: lipgloss.NewStyle().Foreground(lipgloss.Blue)})
	for _, n := range []int{100, 10_000, 1_000_000} {
		src := many(n)
		g := grid.New(append(columns(), grid.Column{Title: "A", Min: 10}, grid.Column{Title: "B", Min: 10}, grid.Column{Title: "C", Min: 10}, grid.Column{Title: "D", Min: 10})...)
		g.SetSource(src)
		c := screen.New(120, 40)
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%100 < 50 {
					g.Do("down")
				} else {
					g.Do("up")
				}
				g.Draw(c, c.Bounds(), true)
			}
		})
		b.Run(fmt.Sprintf("rows=%d,render", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Draw(c, c.Bounds(), true)
				_ = c.Render(theme)
			}
		})
	}
}

func TestTheSelectedRowKeepsTheColourOfItsState(t *testing.T) {
	g := grid.New(columns()...)
	g.SetSource(many(2))
	c := screen.New(30, 3)
	g.Draw(c, c.Bounds(), true)
	x := strings.Index(c.Plain()[1], "running")
	x = len([]rune(c.Plain()[1][:x]))
	for at, want := range map[int]screen.Role{0: screen.Selected, 2: screen.Selected, x: screen.Busy, 29: screen.Selected} {
		_, role, _ := c.At(at, 1)
		expect.True(t, role == want, "cell %d is %s, want %s", at, role, want)
	}
}

func TestIdsInATextAreShownByTheirEnds(t *testing.T) {
	for text, want := range map[string]string{
		"task tk_bf4fc_0000000042 queued, approval ap_bf4fc_0000012345.": "task 0042 queued, approval 12345.",
		"no id in it, _ and a_b": "no id in it, _ and a_b", "": "",
	} {
		expect.Is(t, grid.Endings(text), want)
	}
}
