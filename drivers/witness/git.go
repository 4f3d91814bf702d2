package witness

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/witness"
)

// Bounds of what is read of a repository.
const (
	maxNote     = 64 << 10 // bytes of a commit's message
	maxMessages = 4 << 30  // bytes of all of them
)

// settings is the whole configuration of a witness's repository. One with any
// other is somebody else's: git would run what that names.
const settings = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"

func branch(tenant string) string { return "refs/heads/" + tenant }

// repository opens a witness's repository, and makes it where there is none, in
// a directory that is not there or empty. The object is the newest commit of
// the tenant, "" for none.
func (d *Driver) repository(ctx context.Context, w witness.Witness, create bool) (newest string, err error) {
	root, err := d.opt.Own.Root(w.Path)
	if errors.Is(err, fs.ErrNotExist) && create {
		return "", d.make(ctx, w.Path)
	}
	if err != nil {
		return "", err
	}
	defer root.Close()
	config, err := root.Read("config", len(settings))
	switch {
	case errors.Is(err, fs.ErrNotExist) && create && empty(w.Path):
		return "", d.make(ctx, w.Path)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, safeopen.ErrTooLarge) || err == nil && string(config) != settings:
		return "", core.Errorf(core.InvalidInput, "path: %s is no repository that a witness made; name a directory that is not there yet, and fetch from it", w.Path).With("field", "path")
	case err != nil:
		return "", err
	}
	return git.Ref(root, branch(w.TenantID)), nil
}

func empty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// make makes a repository beside its place and moves it there.
func (d *Driver) make(ctx context.Context, path string) (err error) {
	// The directory's own rule: nothing of the engine's.
	parent, err := d.opt.Own.Root(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := d.opt.Own.Check(path); err != nil {
		return err
	}
	temp := path + ".new-" + rand.Text()
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	if _, err := d.git.Run(ctx, git.Call{Write: []string{temp}, Args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=sha1", temp}}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, "config"), []byte(settings), 0o600); err != nil {
		return err
	}
	return unix.Rename(temp, path) // over an empty directory too, which os.Rename refuses
}

// commit adds a checkpoint to the tenant's branch: the file is the note, and so
// is the message, so that the log of commits holds all of them.
func (d *Driver) commit(ctx context.Context, w witness.Witness, l witness.Line) error {
	newest, err := d.repository(ctx, w, true)
	if err != nil {
		return err
	}
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit %s\ncommitter swarmdeck <swarmdeck@localhost> %d +0000\ndata %d\n%s\n", branch(w.TenantID), l.At.Unix(), len(l.Checkpoint), l.Checkpoint)
	if newest != "" {
		fmt.Fprintf(&in, "from %s\n", newest)
	}
	fmt.Fprintf(&in, "M 100644 inline checkpoint\ndata %d\n%s\ndone\n", len(l.Checkpoint), l.Checkpoint)
	_, err = d.git.Run(ctx, git.Call{GitDir: w.Path, In: &in, Args: []string{"fast-import", "--quiet", "--done", "--date-format=raw"}})
	return err
}

// commits are the checkpoints of the tenant's branch, newest first.
func (d *Driver) commits(ctx context.Context, w witness.Witness) iter.Seq2[audit.Kept, error] {
	return func(yield func(audit.Kept, error) bool) {
		newest, err := d.repository(ctx, w, false)
		if err == nil && newest == "" {
			err = core.Errorf(core.NotFound, "%s has no branch %s", w.Path, w.TenantID)
		}
		if err != nil {
			yield(audit.Kept{}, err)
			return
		}
		stopped := errors.New("stopped")
		err = d.git.Read(ctx, git.Call{GitDir: w.Path, Args: []string{"log", "-z", "--format=%H %B", newest, "--"}}, func(r io.Reader) error {
			limited := &io.LimitedReader{R: r, N: maxMessages}
			messages := bufio.NewScanner(limited)
			messages.Buffer(nil, maxNote)
			messages.Split(untilZero)
			for messages.Scan() {
				id, note, _ := bytes.Cut(messages.Bytes(), []byte{' '})
				note = append(bytes.Clone(bytes.TrimRight(note, "\n")), '\n')
				if !yield(audit.Kept{Where: "commit " + string(id[:min(len(id), 12)]), Note: note}, nil) {
					return stopped
				}
			}
			if err := messages.Err(); err != nil {
				return fmt.Errorf("a message of a commit: %w", err)
			}
			if limited.N == 0 {
				return fmt.Errorf("messages of commits: more than %d bytes", int64(maxMessages))
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(audit.Kept{}, err)
		}
	}
}

// untilZero splits at zero bytes.
func untilZero(data []byte, end bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if end && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
