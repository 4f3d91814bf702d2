package ui

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/ui/term"
)

// crowdOf is a world of n agents and as many tasks, some with long names and wide runes.
func crowdOf(n int) *fakeWorld {
	w := crowd(n)
	w.tasks = nil
	for i, a := range w.agents {
		switch i % 3 {
		case 1:
			a.Name = fmt.Sprintf("an-agent-whose-name-is-as-long-as-names-may-be-%05d", i)
			a.LastTask = "調べる: 世界の設定ファイルを一つずつ読んで、どこが違うかを書く"
		case 2:
			a.Status, a.Reason = fleet.Failed, "exit status 127: /usr/local/bin/an-agent-that-is-not-there: not found"
		}
		w.tasks = append(w.tasks, task.Task{
			TaskID: id(core.TaskPrefix, i+1), TenantID: tenant, Kind: "agent.prompt", Status: task.Statuses()[i%7], Title: a.LastTask, Agent: a.Name, CreatedAt: start,
		})
	}
	return w
}

// TestNothingIsCutBesideEmptyCells: a list that cuts a cell has none to spare.
func TestNothingIsCutBesideEmptyCells(t *testing.T) {
	for _, n := range []int{0, 3, 300, 30_000} {
		for _, size := range [][2]int{{60, 15}, {80, 24}, {120, 40}, {200, 60}} {
			r := rigOn(t, crowdOf(n), size[0], size[1], Options{})
			for _, name := range r.m.lists {
				for _, alone := range []bool{true, false} {
					r.m.goTo(name)
					r.m.place.alone = alone
					r.m.dirty = true
					r.do(r.m.sync())
					rows := r.m.Frame().Plain()
					for _, pl := range r.m.place.shown {
						if in := pl.rect.Inset(1); pl.pane.Name() == name {
							expect.True(t, spare(rows[in.Y:in.Y+in.H], in.X, in.W) <= 2, "%s of %d at %v is cut beside empty cells:\n%s", name, n, size, strings.Join(rows, "\n"))
						}
					}
				}
			}
		}
	}
}

// spare is how many cells side by side are empty in all rows of w cells from x on, 0 where
// no row is cut.
func spare(rows []string, x, w int) (most int) {
	full, cut := make([]bool, w+2), false
	for _, row := range rows {
		at := -x
		for _, c := range row {
			if at >= 0 && at < w && c != ' ' {
				full[at], full[at+1] = true, true // the next one too, of a wide rune
				cut = cut || c == '…'
			}
			at += term.Width(string(c))
		}
	}
	run := 0
	for _, is := range full[:w] {
		if run++; is {
			run = 0
		}
		most = max(most, run)
	}
	if !cut {
		return 0
	}
	return most
}
