package tree_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/drivers/keeper"
	driver "swarmdeck/drivers/tree"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

// onHost in the environment has the trees of a test on a host of this name.
const onHost = "TEST_TREE_HOST"

// aHost is a host whose keeper is in this process.
type aHost struct {
	keeper.Hosts
	desk  *driver.Desk
	cells *cell.Supervisor
	say   func(out io.Writer) // in the place of the desk, if any

	mu    sync.Mutex
	asked []string // for what
}

// asking is one request that it answers.
type asking struct {
	keeper.Screened
	in, out [2]*os.File
	done    chan struct{}
	exit    cell.Exit
}

func (a *asking) Streams() (stdin, stdout, stderr *os.File) { return a.in[1], a.out[0], nil }
func (a *asking) Done() <-chan struct{}                     { return a.done }
func (a *asking) Exit() cell.Exit                           { return a.exit }
func (a *asking) CloseIO()                                  { a.in[1].Close(); a.out[0].Close() }

func (h *aHost) Start(_, host string, spec cell.Spec, o keeper.Hosted) (keeper.Screened, error) {
	if host != "box" {
		return nil, core.Errorf(core.Unavailable, "host %s can't be reached", host)
	}
	if o.Desk != keeper.Trees {
		p, err := h.cells.Start(spec)
		return keeper.NewHere(p), err
	}
	a := &asking{done: make(chan struct{})}
	var err error
	for _, p := range []*[2]*os.File{&a.in, &a.out} {
		if p[0], p[1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	go func() {
		if h.say != nil {
			_, _ = io.Copy(io.Discard, a.in[0])
			h.say(a.out[1])
		} else if err := h.desk.Serve(context.Background(), h.heard(a.in[0]), a.out[1]); err != nil {
			a.exit.Code = 1
		}
		a.in[0].Close()
		a.out[1].Close()
		close(a.done)
	}()
	return a, nil
}

// heard notes what a request asks for.
func (h *aHost) heard(in io.Reader) io.Reader {
	all := bufio.NewReader(in)
	line, _ := all.ReadBytes('\n')
	var q struct{ Op string }
	_ = json.Unmarshal(line, &q) // the desk says what is wrong
	h.mu.Lock()
	h.asked = append(h.asked, q.Op)
	h.mu.Unlock()
	return io.MultiReader(bytes.NewReader(line), all)
}

// TestTreesOnAHostAreAsThoseHere has what is tried of trees here tried of such: what the
// host has a part in, or with TREE_HOST=all all of it.
func TestTreesOnAHostAreAsThoseHere(t *testing.T) {
	t.Setenv(onHost, "box")
	tests := map[string]func(*testing.T){
		"a branch": TestATreeIsABranchWithARepositoryOfItsOwn, "merged": TestChangesAreTakenOverWhereTheBranchIsCheckedOut,
		"no git": TestADirectoryWithoutGitHasTreesToo, "a command": TestACommandSeesAStateInACell, "a call": TestACallsIdIsNoTasks,
		"lfs": TestAFileOfLFSIsFilledInWhereItsObjectIsThere, "submodule": TestASubmoduleIsInTheTree, "loose": TestWhatNoCommitOfASubmoduleHoldsIsSeenAndNotLost,
		"ends of lines": TestFilesThatGitCallsCleanAreClean,
	}
	if os.Getenv("TREE_HOST") == "all" {
		maps.Copy(tests, map[string]func(*testing.T){
			"changes": TestWhatChangedIsListedAndShown, "somebody's work": TestWorkOfTheOperatorIsNotOverwritten, "conflicts": TestConflictsAreNamed,
			"a part": TestAPartOfWhatChangedIsTakenOver, "pushed": TestACommitIsPushed, "hostile": TestARepositoryOfNobodysTrustRunsNothing,
			"links": TestATreesLinksLeadNowhere, "packed": TestATreeIsMadeOfWorkTreesAndPackedBranchesToo, "lfs changed": TestAChangedFileOfLFSIsTakenOverAsAnObject,
			"lfs content": TestContentThatBelongsToLFSIsNotTakenOverAsAFileOfGit, "lfs nowhere": TestAPointerToNowhereIsNotTakenOver,
			"no submodule": TestASubmoduleThatIsNotThereIsNamedAndStaysAsItIs, "within": TestARepositoryWithinATreeRunsNothing,
		})
	}
	for name, test := range tests {
		t.Run(name, test)
	}
}

func TestATreeOfAHostIsOfOneAgentAlone(t *testing.T) {
	t.Setenv(onHost, "box")
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "mine", "ada's\n")
	expect.Of(r.d.Now(t.Context(), ada))(t)
	no(t, r.d.Make(t.Context(), ada))
	expect.True(t, r.read(ada.Path, "mine") != "", "made once more, the same tree is another one")
	bob := r.tree("bob", r.repo)
	expect.True(t, r.read(bob.Path, "mine") == "" && r.read(bob.Path, "a") != "", "bob's tree is not his own")
	// Another agent of the same name begins anew.
	no(t, r.d.Remove(t.Context(), ada))
	ada.CreatedAt = ada.CreatedAt.Add(1)
	no(t, r.d.Make(t.Context(), ada))
	expect.Is(t, r.read(ada.Path, "mine"), "", "ada has the files of an earlier one")
	packs, _ := filepath.Glob(filepath.Join(r.base, "kept", tenant, "trees", "*.git", "objects", "pack", "*.pack"))
	expect.True(t, len(packs) == 0, "each look leaves a pack: %v", packs)
	no(t, r.host.desk.Tidy([]string{"bob"}))
	expect.True(t, r.read(ada.Path, "a") == "" && r.read(bob.Path, "a") != "", "another tree than ada's went")
	r.git(bob.Path, "fsck")
	expect.Err(t, expect.Fault(r.d.Now(t.Context(), ada)), core.Kind(core.Unavailable), "a tree that is gone")
	no(t, r.host.desk.Tidy(nil))
	for _, dir := range []string{"sources", "work/t_host", "states/t_host/trees"} {
		left, _ := os.ReadDir(filepath.Join(r.base, "box", dir))
		expect.True(t, len(left) == 0, "%s holds %v", dir, left)
	}
}

// What one tree is made of is there for the next, also submodules and objects of git LFS.
func TestNothingGoesToAHostTwice(t *testing.T) {
	t.Setenv(onHost, "box")
	r := newRig(t)
	r.modules()
	r.write(r.repo, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	for _, content := range []string{"one\n", "two\n"} {
		text, object := pointer(content)
		r.write(r.repo, strings.TrimSpace(content)+".bin", text)
		r.write(r.repo, ".git/lfs/objects/"+object, content)
	}
	r.git(r.repo, "-c", "filter.lfs.process=", "-c", "filter.lfs.clean=", "-c", "filter.lfs.required=false", "add", ".")
	r.git(r.repo, "commit", "-qm", "large files")
	sent := func() (all []string) {
		for _, op := range r.host.asked {
			if op != "place" && op != "make" {
				all = append(all, op)
			}
		}
		r.host.asked = nil
		return all
	}
	ada := r.tree("ada", r.repo)
	expect.Same(t, sent(), []string{"base", "base", "fill", "fill"}, "the first tree is made by")
	bob := r.tree("bob", r.repo)
	all := sent()
	expect.True(t, len(all) == 0, "the second tree is made by %v", all)
	for _, path := range []string{ada.Path, bob.Path} {
		expect.True(t, r.read(path, "one.bin") == "one\n" && r.read(path, "deps/lib/l/one") == "one\n", "%s is not whole", path)
	}
	text, object := pointer("three\n")
	r.write(r.repo, "three.bin", text)
	r.write(r.repo, ".git/lfs/objects/"+object, "three\n")
	r.git(r.repo, "-c", "filter.lfs.process=", "-c", "filter.lfs.clean=", "-c", "filter.lfs.required=false", "add", ".")
	r.git(r.repo, "commit", "-qm", "one more")
	eve := r.tree("eve", r.repo)
	if all := sent(); !slices.Equal(all, []string{"base", "fill"}) || r.read(eve.Path, "three.bin") != "three\n" || r.read(eve.Path, "two.bin") != "two\n" {
		t.Errorf("the third tree is made by %v", all)
	}
}

func TestWhatAHostAnswersIsNotTrusted(t *testing.T) {
	t.Setenv(onHost, "box")
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	for name, say := range map[string]string{
		"nothing": "", "no JSON": "x\n", "no state": "{}\n", "no hash": `{"commit":"--all"}` + "\n", "no pack": `{"commit":"` + strings.Repeat("a", 40) + `","pack":true}` + "\nPACKnone",
		"a commit that is not there": `{"commit":"` + strings.Repeat("a", 40) + `"}` + "\n", "an escape": `{"error":"\u001b[2J"}` + "\n", "too much": strings.Repeat("x", 33<<20),
	} {
		r.host.say = func(out io.Writer) { _, _ = io.WriteString(out, say) }
		s, err := r.d.Now(t.Context(), ada)
		expect.True(t, err != nil && !strings.Contains(err.Error(), "\x1b"), "%s: %+v %v", name, s, err)
	}
	r.host.say = nil
	expect.Of(r.d.Now(t.Context(), ada))(t)
}

func FuzzARequestToADesk(f *testing.F) {
	k := expect.Of(driver.NewDesk(gittest.Git(f).Cells, nil, f.TempDir()))(f)
	for _, seed := range []string{`{"op":"place","tree":{"agent":"ada","source":"/x"}}`, `{"op":"land","tree":{"agent":"../x","source":"/x"}}`, `{"op":"state","have":["x"]}`, `{"op":"other"}`, "", "{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, op := range []string{"make", "base", "fill"} {
			if strings.Contains(string(line), op) {
				return // what makes files has tests of its own
			}
		}
		_ = k.Serve(t.Context(), strings.NewReader(string(line)+"\n"), io.Discard)
	})
}

var _ tree.Driver = (*driver.Driver)(nil)
