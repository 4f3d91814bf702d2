package host_test

import (
	"path/filepath"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/expect"
)

func TestASharedDirectoryThereIsGuardedAndWhatTheWallHeldIsTold(t *testing.T) {
	b := newBox(t, nil)
	b.guard = []string{"mine"}
	dir := t.TempDir()
	for _, c := range []struct{ script, says string }{
		{"echo x >mine; echo x >.envrc; unshare -U true; echo laid", "laid\n"},
		{"echo z >mine && echo wrote", ""}, // it is there by now
	} {
		s := spec("sh", "-c", c.script)
		s.Dir, s.Run = dir, "r"
		p := expect.Of(b.pool.Start("t_home", "box", s, keeper.Hosted{}))(t)
		_, outs, _ := p.Streams()
		o := collect(outs)
		p.Exit()
		expect.No(t, end(p))
		expect.Is(t, o.all(), c.says)
	}
	b.heldMu.Lock()
	defer b.heldMu.Unlock()
	seen := map[string]cell.Held{}
	for _, h := range b.held {
		if h.Run != "r" || h.Whose.Tenant != "t_home" || h.Whose.Agent != "A" {
			t.Errorf("it is told of another: %+v", h)
		}
		seen[h.Deed+" "+filepath.Base(h.Laid)] = h
	}
	expect.True(t, seen["lay mine"].When != "" && seen["lay .envrc"].When != "" && seen["spaces ."].Call == "unshare", "told %+v", b.held)
}
