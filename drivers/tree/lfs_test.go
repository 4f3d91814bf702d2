package tree_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/git/gittest"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

// pointer is a content as it stands in a repository.
func pointer(content string) (text, object string) {
	sum := sha256.Sum256([]byte(content))
	oid := hex.EncodeToString(sum[:])
	return string(lfs.Pointer{OID: oid, Size: int64(len(content))}.Text()), filepath.Join(oid[:2], oid[2:4], oid)
}

// large gives the repository two files of git LFS, of which it has the content of
// one, without git-lfs.
func (r rig) large() {
	r.Helper()
	there, object := pointer("old content\n")
	gone, _ := pointer("nobody has it\n")
	r.write(r.repo, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	r.write(r.repo, "big.bin", there)
	r.write(r.repo, "far.bin", gone)
	r.git(r.repo, "-c", "filter.lfs.process=", "-c", "filter.lfs.clean=", "-c", "filter.lfs.required=false", "add", ".")
	r.git(r.repo, "commit", "-q", "-m", "large files")
	r.write(r.repo, ".git/lfs/objects/"+object, "old content\n")
	r.write(r.repo, "big.bin", "old content\n") // as git-lfs lays it out
}

func (r rig) changes(t tree.Tree) []tree.Change {
	r.Helper()
	s, err := r.d.Now(r.Context(), t)
	no(r, err)
	all, err := r.d.Changes(r.Context(), t, t.Since, s.Commit)
	no(r, err)
	return all
}

func TestAFileOfLFSIsFilledInWhereItsObjectIsThere(t *testing.T) {
	r := newRig(t)
	r.large()
	ada := r.tree("ada", r.repo)
	gone, _ := pointer("nobody has it\n")
	expect.Is(t, r.read(ada.Path, "big.bin"), "old content\n")
	got := r.read(ada.Path, "far.bin")
	expect.True(t, got == gone && ada.Pointers == (tree.Pointers{Files: 1, First: "far.bin"}), "%q, %+v", got, ada.Pointers)
	all := r.changes(ada)
	expect.True(t, len(all) == 0, "nobody changed %+v", all)
	r.write(ada.Path, "big.bin", "old content\n") // written once more
	all = r.changes(ada)
	expect.True(t, len(all) == 0, "nobody changed %+v", all)
	s, err := r.d.Now(t.Context(), ada)
	no(t, err)
	ran, err := r.d.Run(t.Context(), ada, s.Commit, command(func(string) {}, "grep", "-q", "old content", "big.bin"))
	no(t, err)
	expect.True(t, ran.Code == 0, "a check does not see the content: %+v", ran)
	r.write(ada.Path, "big.bin", "new content\n")
	all = r.changes(ada)
	expect.True(t, len(all) == 1 && all[0].Path == "big.bin" && all[0].LFS == 12, "%+v", all)
}

func TestAChangedFileOfLFSIsTakenOverAsAnObject(t *testing.T) {
	for _, mode := range tree.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t)
			r.large()
			ada := r.tree("ada", r.repo)
			r.write(ada.Path, "big.bin", "new content\n")
			r.write(ada.Path, "more.bin", "more\n")
			out, err := r.over(ada, tree.Join{Key: "t1", Mode: mode})
			no(t, err)
			text, object := pointer("new content\n")
			more, second := pointer("more\n")
			expect.Is(t, r.git(r.repo, "cat-file", "blob", out.Commit+":big.bin")+"\n", text, "the commit holds")
			expect.Is(t, r.git(r.repo, "cat-file", "blob", out.Commit+":more.bin")+"\n", more, "the commit holds")
			expect.True(t, r.read(r.repo, ".git/lfs/objects/"+object) == "new content\n" && r.read(r.repo, ".git/lfs/objects/"+second) == "more\n",
				"the objects are not in the repository")
			expect.True(t, r.read(r.repo, "big.bin") == "new content\n" && r.read(r.repo, "more.bin") == "more\n", "the files are not laid out")
			no(t, r.d.Land(t.Context(), ada, "t1", out.Commit, r.git(r.repo, "rev-parse", out.Commit+"^1"))) // the way back
			expect.Is(t, r.read(r.repo, "big.bin"), "old content\n")
		})
	}
}

func TestWorkOfTheOperatorInAFileOfLFSIsNotOverwritten(t *testing.T) {
	r := newRig(t)
	r.large()
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "big.bin", "hers\n")
	r.write(r.repo, "big.bin", "mine\n")
	_, err := r.over(ada, tree.Join{Key: "t1"})
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && strings.Contains(err.Error(), "big.bin"), "%v", err)
	expect.Is(t, r.read(r.repo, "big.bin"), "mine\n", "it was overwritten")
}

func TestContentThatBelongsToLFSIsNotTakenOverAsAFileOfGit(t *testing.T) {
	r := newRig(t)
	r.large()
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "big.bin", "new content\n")
	r.git(ada.Path, "-c", "filter.lfs.process=", "-c", "filter.lfs.clean=", "-c", "filter.lfs.required=false", "commit", "-qam", "without git-lfs")
	_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Rebase})
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && strings.Contains(err.Error(), "big.bin") && strings.Contains(err.Error(), "--squash"), "%v", err)
	_, err = r.over(ada, tree.Join{Key: "t2", Mode: tree.Squash})
	no(t, err)
	expect.True(t, r.read(r.repo, "big.bin") == "new content\n", "the file was not taken over")
}

func TestAPointerToNowhereIsNotTakenOver(t *testing.T) {
	r := newRig(t)
	r.large()
	ada := r.tree("ada", r.repo)
	text, _ := pointer("somewhere else")
	r.write(ada.Path, "big.bin", text)
	if _, err := r.over(ada, tree.Join{Key: "t1"}); !errors.Is(err, core.Kind(core.Conflict)) || !strings.Contains(err.Error(), "big.bin") {
		t.Error(err)
	}
	// One that the base has may go elsewhere: whoever has the base gets its object.
	no(t, os.Remove(filepath.Join(ada.Path, "big.bin")))
	no(t, os.Rename(filepath.Join(ada.Path, "far.bin"), filepath.Join(ada.Path, "near.bin")))
	_, err := r.over(ada, tree.Join{Key: "t2"})
	no(t, err)
}

// An object that lies under a name which is not its own is none.
func TestAnObjectThatIsAnotherIsNotFilledIn(t *testing.T) {
	r := newRig(t)
	r.large()
	text, object := pointer("old content\n")
	r.write(r.repo, ".git/lfs/objects/"+object, "OLD CONTENT\n")
	expect.Is(t, r.read(r.tree("ada", r.repo).Path, "big.bin"), text)
}

// What a repository calls the filter of LFS is not run, the operator's as little as the
// agent's.
func TestNoRepositorysFilterOfLFSRuns(t *testing.T) {
	r := newRig(t)
	r.large()
	c := gittest.NewCanary(t)
	for _, key := range []string{"clean", "smudge", "process"} {
		r.git(r.repo, "config", "filter.lfs."+key, c.Program(key))
	}
	ada := r.tree("ada", r.repo)
	for _, key := range []string{"clean", "smudge", "process"} {
		r.git(ada.Path, "config", "filter.lfs."+key, c.Program(key))
	}
	r.write(ada.Path, ".lfsconfig", "[lfs]\n\turl = http://127.0.0.1:1/\n")
	r.write(ada.Path, "big.bin", "new content\n")
	_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	expect.True(t, len(c.Ran()) == 0, "a filter of a repository ran")
}

func TestGitLFSItselfFindsItAllInOrder(t *testing.T) {
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.Skip("git-lfs is not installed: apt-get install git-lfs")
	}
	r := newRig(t)
	r.write(os.Getenv("HOME"), ".gitconfig", "[filter \"lfs\"]\n\tprocess = git-lfs filter-process\n")
	real := []string{"-c", "filter.lfs.process=git-lfs filter-process", "-c", "filter.lfs.required=true"}
	git := func(dir string, args ...string) string { return r.git(dir, append(slices.Clone(real), args...)...) }
	r.write(r.repo, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	r.write(r.repo, "big.bin", strings.Repeat("old\n", 50_000))
	git(r.repo, "add", ".")
	git(r.repo, "commit", "-q", "-m", "large")
	ada := r.tree("ada", r.repo)
	expect.Is(t, git(ada.Path, "status", "--short"), "", "the agent's git says")
	r.write(ada.Path, "big.bin", strings.Repeat("new\n", 50_000))
	git(ada.Path, "commit", "-qam", "by git-lfs")
	r.write(ada.Path, "big.bin", strings.Repeat("newer\n", 50_000))
	_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Rebase})
	no(t, err)
	expect.Is(t, git(r.repo, "status", "--short"), "", "the operator's git says")
	git(r.repo, "lfs", "fsck")
	expect.Is(t, r.read(r.repo, "big.bin"), strings.Repeat("newer\n", 50_000))
	git(r.repo, "checkout", "-q", "HEAD^")
	expect.Is(t, r.read(r.repo, "big.bin"), strings.Repeat("new\n", 50_000), "what the agent's git-lfs committed in between")
}

func TestObjectsOfLFSArePushedByTheOperatorsOwnGitLFS(t *testing.T) {
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.Skip("git-lfs is not installed: apt-get install git-lfs")
	}
	r := newRig(t)
	r.large()
	server := gittest.Serve(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "big.bin", "new content\n")
	s, err := r.d.Now(t.Context(), ada)
	no(t, err)
	tip, err := r.d.Tip(t.Context(), ada)
	no(t, err)
	made, err := r.d.Join(t.Context(), ada, tree.Join{Key: "t1", State: s.Commit, Onto: tip, Mode: tree.Squash, Message: "larger", By: "olga"})
	no(t, err)
	push := tree.Push{URL: server.Repository(t, "remote.git"), Commit: made.Commit, Branch: "swarmdeck/ada"}
	config := filepath.Join(os.Getenv("HOME"), ".gitconfig")
	r.write(filepath.Dir(config), ".gitconfig", "[filter \"lfs\"]\n\tprocess =\n\tclean =\n")
	if err := r.d.Push(t.Context(), ada, push); !errors.Is(err, core.Kind(core.Unavailable)) || !strings.Contains(err.Error(), "big.bin") {
		t.Errorf("without git-lfs in the operator's configuration: %v", err)
	}
	r.write(filepath.Dir(config), ".gitconfig", fmt.Sprintf("[http]\n\tsslCAInfo = "+server.Trust+"\n[filter \"lfs\"]\n\tprocess = git-lfs filter-process\n[user]\n\tname = %s\n", "olga"))
	no(t, r.d.Push(t.Context(), ada, push))
	_, object := pointer("new content\n")
	remote := filepath.Join(server.Dir, "remote.git")
	expect.True(t, r.git(remote, "rev-parse", "swarmdeck/ada") == made.Commit && r.read(remote, "lfs/objects/"+object) == "new content\n",
		"the object did not arrive")
}
