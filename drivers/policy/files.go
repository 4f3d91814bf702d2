package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"swarmdeck/engine/judge"
)

// fileName is the policy's file in its directory, DIRECTORY/DIGEST/policy.
const fileName = "policy"

// dirName begins the directory of a runner's files; its process id follows.
const dirName = "swarmdeck-policies-"

// makeDir makes the directory of this runner's files, and removes those of
// engines that died. The caller holds mu.
func (r *Runner) makeDir() error {
	if r.dir != "" {
		if _, err := os.Stat(r.dir); err == nil {
			return nil
		}
	}
	old, _ := filepath.Glob(filepath.Join(r.opt.Dir, dirName+"*"))
	for _, dir := range old {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirName), "-")
		n, err := strconv.Atoi(pid)
		if err == nil && errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir) // another user's stays
		}
	}
	dir, err := os.MkdirTemp(r.opt.Dir, fmt.Sprintf("%s%d-", dirName, os.Getpid()))
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make a directory for policies: %w", err)
	}
	r.dir = dir
	return nil
}

// place puts a program's source where the jail can read it, and returns its
// directory. A file that was tampered with is written anew.
func (r *Runner) place(p *judge.Program) (dir string, err error) {
	r.mu.Lock()
	dir = filepath.Join(r.dir, p.Digest) // r.dir was made before
	r.mu.Unlock()
	file := filepath.Join(dir, fileName)
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, p.Source) {
		return dir, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", errClosed
	}
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.Chmod(dir, 0o755) // whatever the umask
	}
	if err != nil {
		return "", fmt.Errorf("place the policy: %w", err)
	}
	draft, err := os.CreateTemp(r.dir, "draft-")
	if err != nil {
		return "", fmt.Errorf("place the policy: %w", err)
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(p.Source)
	if err == nil {
		err = draft.Chmod(0o555)
	}
	if end := draft.Close(); err == nil {
		err = end
	}
	if err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		return "", fmt.Errorf("place the policy: %w", err)
	}
	return dir, nil
}
