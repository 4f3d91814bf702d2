package judge

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestADigestBindsEveryFile(t *testing.T) {
	with := func(change func(*File)) Ask {
		f := File{Path: "job.sh", SHA256: "aa", Size: 2, Mode: "0644", Runs: true}
		change(&f)
		return Ask{Gate: GateStart, Action: Action{Kind: "exec.run", Files: []File{f}}}
	}
	digest := func(a Ask) string {
		d := expect.Of(Digest("t_test", "v", a))(t)
		return d
	}
	base := digest(with(func(*File) {}))
	if digest(Ask{Gate: GateStart, Action: Action{Kind: "exec.run"}}) == base {
		t.Error("no file is as good as one")
	}
	for name, change := range map[string]func(*File){
		"path": func(f *File) { f.Path = "x" }, "content": func(f *File) { f.SHA256 = "ab" }, "size": func(f *File) { f.Size++ },
		"mode": func(f *File) { f.Mode = "0755" }, "use": func(f *File) { f.Runs = false }, "unbound": func(f *File) { f.Unbound = "x" },
	} {
		if digest(with(change)) == base {
			t.Errorf("another %s has the same digest", name)
		}
	}
	expect.Is(t, digest(with(func(f *File) { f.Text, f.Diff, f.Note = "x", "y", "z" })), base, "what the card shows is bound too")
}

func TestACardSaysWhatCannotBePromised(t *testing.T) {
	for _, c := range []struct {
		a    Approval
		says bool
	}{
		{Approval{Gate: GateTool, Driver: "acp", Action: Action{Tool: "execute"}}, true},
		{Approval{Gate: GateTool, Driver: "acp", Action: Action{Tool: "terminal/create"}}, false},
		{Approval{Gate: GateTool, Driver: "acp", Action: Action{Tool: "fs/write_text_file"}}, false},
		{Approval{Gate: GateStart, Action: Action{Kind: "exec.run"}}, false},
	} {
		if got := c.a.caveat(); (got != "") != c.says {
			t.Errorf("%s %s: %q", c.a.Gate, c.a.Action.Tool, got)
		}
	}
}

func TestACardSaysThatAFileIsNew(t *testing.T) {
	a := Approval{Action: Action{Kind: KindTool, Args: core.Raw(`{"path":"new.txt","content":"x\n"}`), Files: []File{{Path: "new.txt"}}}}
	got := (&cards{}).changes(&a)
	expect.Must(t, len(got) == 1, "%+v", got)
	expect.Is(t, got[0].Note, "new file", "the note of a change")
	expect.Is(t, got[0].Diff, "new.txt\n@@ -0,0 +1 @@\n+x", "the change")
	expect.Is(t, a.Action.Files[0].Line(), "new.txt, a new file", "the file in a line")
	was := File{Path: "new.txt", SHA256: core.SHA256("y")}
	expect.True(t, !was.same(&a.Action.Files[0]), "an answer about a new file holds for one that is there")
}
