package exec

import (
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestAFileThatAnAgentWantsToWriteIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	expect.No(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600))
	a := &agent{}
	a.Place = &keeper.Place{Local: keeper.Local{Pins: newPins(t)}}
	a.Spec.Dir, a.Spec.Whose.Tenant = dir, "t_x"
	for _, c := range []struct {
		args        string
		files, held int
	}{
		{`{"path":"a.txt","content":"two\n"}`, 1, 1},
		{`{"path":` + string(core.MustEncode(filepath.Join(dir, "a.txt"))) + `,"text":"two\n"}`, 1, 1},
		{`{"path":"../a.txt","content":"x"}`, 0, 0},
		{`{"path":"/etc/passwd","content":"x"}`, 0, 0},
		{`{"path":"a.txt","old_string":"one","new_string":"two"}`, 0, 0},
		{`{"path":"new.txt","content":"x"}`, 1, 1},
		{`{"argv":["ls"]}`, 0, 0},
	} {
		held := 0
		got := a.written(core.Raw(c.args))
		for _, f := range got {
			if f.Unbound == "" {
				held++
			}
		}
		expect.True(t, len(got) == c.files && held == c.held, "%s: %+v", c.args, got)
	}
}
