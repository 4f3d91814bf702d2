package acp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/drivers/workdir"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestFilesAreServedWithinTheDirectoryAndTheGate(t *testing.T) {
	s, dir := newStand(t, traits{}, settings{FS: "write"})
	a := filepath.Join(dir, "a.txt")
	expect.No(t, os.WriteFile(a, []byte("one\ntwo\n"), 0o640))
	s.always("approve")
	s.ends(task.Succeeded, "", "read "+a, "write "+a+" three", "write "+filepath.Join(dir, "new.txt")+" four", "read "+filepath.Join(dir, "none"))
	s.heard("message", "read one\ntwo\n")
	s.heard("message", "error: ")
	s.heard("diff", "-one\n-two\n+three")
	for path, want := range map[string]string{a: "three", filepath.Join(dir, "new.txt"): "four"} {
		got, err := os.ReadFile(path)
		expect.True(t, string(got) == want, "%s holds %q: %v", path, got, err)
	}
	info, err := os.Stat(a)
	expect.True(t, err == nil && info.Mode().Perm() == 0o640, "mode %v: %v", info.Mode(), err)
	e := s.of("tool_request")[1]
	expect.True(t, e.Tool == "fs/write_text_file" && string(e.Args) == fmt.Sprintf(`{"path":%q,"content":"three"}`, a), "asked %+v", e)
	expect.Is(t, len(s.of("tool_result")), 4, "results of 4 calls")

	s.always("deny")
	s.ends(task.Succeeded, "", "write "+a+" five", "read "+a)
	s.heard("message", "denied by the operator: by the test")
	got, _ := os.ReadFile(a)
	expect.True(t, string(got) == "three", "a denied write left %q", got)
}

func TestAnEditedWriteIsTheOneThatIsMade(t *testing.T) {
	s, dir := newStand(t, traits{}, settings{FS: "write"})
	a := filepath.Join(dir, "a")
	final := core.MustEncode(map[string]string{"path": a, "content": "better"})
	s.answer = func(context.Context, fleet.Event) (fleet.ToolAnswer, error) {
		return fleet.ToolAnswer{Decision: "approve", Args: final}, nil
	}
	s.ends(task.Succeeded, "", "write "+a+" worse")
	got, _ := os.ReadFile(a)
	expect.True(t, string(got) == "better", "the file holds %q", got)
	outside := filepath.Join(t.TempDir(), "b")
	final = core.MustEncode(map[string]string{"path": outside, "content": "x"})
	s.prompt("write " + a + " worse")
	expect.Fails(t, expect.Fault(os.Stat(outside)), "an edited path led out of the directory")
}

func TestNoFileOutsideOfTheDirectoryIsReached(t *testing.T) {
	s, dir := newStand(t, traits{}, settings{})
	out := t.TempDir()
	secret := filepath.Join(out, "secret")
	expect.No(t, os.WriteFile(secret, []byte("the secret"), 0o600))
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Symlink(secret, in("link")), os.Symlink(out, in("door")), os.Symlink("../../../../../../../../"+secret, in("climb")),
		os.Link(secret, in("hard")), unix.Mkfifo(in("pipe"), 0o600), os.Mkdir(in("sub"), 0o700), os.Symlink("/dev/zero", in("endless")),
	} {
		expect.No(t, err)
	}
	s.always("approve")
	for _, path := range []string{
		secret, in("link"), in("door/secret"), in("climb"), in("../" + filepath.Base(out) + "/secret"), "/etc/passwd", "secret", "", "/",
		in("pipe"), in("sub"), in("endless"), dir, in("sub/../../x"), in("a\x00b"),
	} {
		s.forget()
		s.prompt("read " + path)
		got := strings.Join(s.texts("message"), "|")
		expect.True(t, strings.HasPrefix(got, "error:"), "read %q said %q", path, got)
		if path == "" {
			continue // the fake agent's own line can't say it
		}
		s.forget()
		s.prompt("write " + path + " gotcha")
		got = strings.Join(s.texts("message"), "|")
		expect.True(t, strings.HasPrefix(got, "error:"), "write %q said %q", path, got)
	}
	// A second name of a foreign file is replaced, not written through.
	s.prompt("write " + in("hard") + " mine")
	got, _ := os.ReadFile(secret)
	expect.True(t, string(got) == "the secret", "the file outside holds %q", got)
}

func TestAFileIsReadFromALineOn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	expect.No(t, os.WriteFile(path, []byte("1\n2\n3\n4\n"), 0o600))
	var p place
	p.Cells = drivertest.Cells(t, cell.Options{})
	p.Spec.Dir = dir
	n := func(i int) *int { return &i }
	for _, c := range []struct {
		line, limit *int
		want        string
	}{
		{nil, nil, "1\n2\n3\n4\n"},
		{n(2), nil, "2\n3\n4\n"},
		{n(2), n(2), "2\n3\n"},
		{nil, n(1), "1\n"},
		{n(9), n(2), ""},
		{n(-5), n(1), "1\n"},
		{n(1), n(-1), ""},
		{n(1), n(99), "1\n2\n3\n4\n"},
	} {
		got, err := p.readText(fileRequest{Path: path, Line: c.line, Limit: c.limit})
		expect.True(t, err == nil && got == c.want, "line %v limit %v: %q, %v", c.line, c.limit, got, err)
	}
	expect.No(t, os.WriteFile(path, make([]byte, workdir.MaxFile+1), 0o600))
	expect.Fails(t, expect.Fault(p.readText(fileRequest{Path: path})), "a huge file was read")
}

func TestACommandRunsInTheDirectoryOnceApproved(t *testing.T) {
	s, dir := newStand(t, traits{}, settings{Terminal: true})
	s.always("approve")
	s.ends(task.Succeeded, "", "run pwd", "run sh -c exit\u00a03", "run echo", "leave sleep 300")
	s.heard("message", "exit 0: "+s.handle.(*agent).place.machine().Real())
	s.always("deny")
	s.ends(task.Succeeded, "", "run touch "+dir+"/touched")
	expect.Fails(t, expect.Fault(os.Stat(filepath.Join(dir, "touched"))), "a denied command ran")
	e := s.of("tool_request")[0]
	expect.True(t, e.Tool == "terminal/create" && string(e.Args) == `{"command":"pwd"}`, "asked %+v", e)
}

func TestACommandRunsWithTheFilesThatWereJudged(t *testing.T) {
	pins := expect.Of(pin.New(filepath.Join(t.TempDir(), "approved"), filepath.Join(t.TempDir(), "runs"), nil))(t)
	dir := t.TempDir()
	a := fakeAgent(t, traits{}, settings{Terminal: true})
	a.Dir = dir
	s := open(t, newRuntime(t, Options{Local: keeper.Local{Pins: pins}}), a)
	job := filepath.Join(dir, "job.sh")
	expect.No(t, os.WriteFile(job, []byte("echo one"), 0o600))
	rewrite := false
	s.answer = func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		files := e.Bind(e.Args)
		expect.True(t, len(files) == 1 && files[0].Path == "job.sh", "bound to %+v", files)
		if rewrite {
			expect.Is(t, os.WriteFile(job, []byte("touch evil"), 0o600), nil)
		}
		return fleet.ToolAnswer{Decision: "approve", Args: e.Args, Files: files}, nil
	}
	s.ends(task.Succeeded, "", "run sh job.sh")
	s.heard("message", "exit 0: one")
	rewrite = true
	s.ends(task.Succeeded, "", "run sh job.sh")
	s.heard("message", "job.sh is not what was judged")
	expect.Fails(t, expect.Fault(os.Stat(filepath.Join(dir, "evil"))), "what nobody approved ran")
}

func TestACancelEndsItsCommands(t *testing.T) {
	s, dir := newStand(t, traits{}, settings{Terminal: true})
	s.always("approve")
	pid := filepath.Join(dir, "pid")
	stubborn := script(t, dir, "echo $$ >"+pid+"; trap '' INT TERM; while :; do sleep 1; done")
	done := s.start("leave sh "+stubborn, "hang")
	expect.Await(t, "the command runs", func() bool { return readPID(pid) > 0 })
	expect.True(t, runs(stubborn), "the command has ended")
	s.handle.Interrupt()
	out := s.wait(done)
	expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
	expect.True(t, !runs(stubborn), "the command outlived the cancel")
}

func TestOutputIsCutAtACharacter(t *testing.T) {
	term := &terminal{out: pipe.Kept{Most: 5, End: true}}
	_, _ = term.out.Write([]byte("äöü"))
	out := term.output()
	expect.True(t, out.Output == "öü" && out.Truncated, "%+v", out)
}

func TestWhatIsHiddenIsNotServed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"keys/a", "keys/b", ".env", "c"} {
		expect.No(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		expect.No(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	text := "new"
	for profile, served := range map[cell.Profile]string{cell.Worker: "keys/b c", cell.Reader: "", cell.Open: "keys/a keys/b .env c"} {
		var p place
		p.Cells = drivertest.Cells(t, cell.Options{})
		p.Spec.Dir = dir
		p.Spec.Wall = cell.Wall{Profile: profile, More: files.Places{Hide: []string{filepath.Join(dir, "keys"), filepath.Join(dir, ".env")}, Read: []string{filepath.Join(dir, "keys/b")}}}
		var read, wrote []string
		for _, name := range []string{"keys/a", "keys/b", ".env", "c"} {
			path := filepath.Join(dir, name)
			if _, err := p.readText(fileRequest{Path: path}); err == nil {
				read = append(read, name)
			}
			if _, err := p.writeText(fileRequest{Path: path, Content: &text}); err == nil {
				wrote = append(wrote, name)
			}
		}
		expect.Is(t, strings.Join(wrote, " "), served, profile, "wrote")
		if served == "" {
			served = "keys/b c"
		}
		expect.Is(t, strings.Join(read, " "), served, profile, "read")
	}
}

func FuzzWithin(f *testing.F) {
	dir := f.TempDir()
	var p place
	p.Spec.Dir = dir
	for _, seed := range []string{dir, dir + "/a", dir + "/../x", "/", "", dir + "x", dir + "/a/../../b", dir + "/./a//b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		rel, err := p.machine().Within(path)
		expect.True(t, err != nil || filepath.IsLocal(rel), "%q → %q", path, rel)
	})
}

func TestNoOwnFileOfTheEngineIsServed(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "swarm.db")
	own, err := safeopen.OwnFiles(data)
	expect.No(t, err)
	var p place
	p.Cells, p.Own = drivertest.Cells(t, cell.Options{}), own
	p.Spec.Dir = dir
	expect.No(t, os.WriteFile(data+".key", []byte("KEY"), 0o600))
	for name, link := range map[string]func(string, string) error{"hard": os.Link, "soft": os.Symlink} {
		expect.No(t, link(data+".key", filepath.Join(dir, name)))
	}
	text := "mine"
	for _, name := range []string{"swarm.db.key", "hard", "soft", "swarm.db.secrets.key"} {
		in := fileRequest{Path: filepath.Join(dir, name), Content: &text}
		if got, err := p.readText(in); err == nil {
			t.Errorf("read %s: %q", name, got)
		}
		_, err = p.writeText(in)
		expect.Fails(t, err, name)
	}
	got, err := os.ReadFile(data + ".key")
	expect.True(t, string(got) == "KEY" && err == nil, "the key is %q: %v", got, err)
}
