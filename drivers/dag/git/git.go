// Package git keeps a record of agents as a git repository: each run segment
// is a commit that adds one file of JSON lines, each agent's runs are a branch,
// and a fork is a branch that begins at the segment which ends with the forked
// event. The branch "record" joins all of them and holds the manifest.
//
// The repository is written and read by the git command. The same record makes
// the same commits.
package git

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Branches and files of the repository.
const (
	recordBranch = "refs/heads/record"
	agentBranch  = "refs/heads/agents/" // agent
	forkBranch   = "refs/heads/forks/"  // agent, branch
	tenantBranch = "refs/heads/tenant"  // events of no agent
	manifestFile = "manifest.json"
	segmentDir   = "segments/"
)

// Format implements dag.Format.
type Format struct{}

var _ dag.Format = Format{}

// Export implements dag.Format; dest is a directory.
func (Format) Export(ctx context.Context, dest string, records iter.Seq2[dag.Record, error]) error {
	full, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	if err := os.Mkdir(full, 0o700); err != nil {
		return err
	}
	if err := export(ctx, full, records); err != nil {
		return errors.Join(err, os.RemoveAll(full))
	}
	return nil
}

func export(ctx context.Context, dir string, records iter.Seq2[dag.Record, error]) error {
	if _, err := run(ctx, dir, nil, "init", "--quiet", "--template=", "--initial-branch=record"); err != nil {
		return err
	}
	forks, err := forkedAt(records)
	if err != nil {
		return err
	}
	cmd := command(ctx, dir, "fast-import", "--quiet", "--done", "--date-format=raw")
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	w := newWriter(bufio.NewWriterSize(pipe, 1<<18), forks)
	err = w.write(ctx, records)
	if err == nil {
		err = w.out.Flush()
	}
	if closed := pipe.Close(); err == nil {
		err = closed
	}
	if ended := cmd.Wait(); ended != nil {
		return errors.Join(err, fmt.Errorf("git fast-import: %w: %s", ended, first(says.Bytes())))
	}
	if err != nil {
		return err
	}
	_, err = run(ctx, dir, nil, "reset", "--quiet", "--hard")
	return err
}

// forkedAt are the events at which agents were forked: there segments end.
func forkedAt(records iter.Seq2[dag.Record, error]) (map[string]bool, error) {
	at := map[string]bool{}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if b, ok := rec.Event.Body.(*dag.AgentForked); ok {
			at[b.AtEvent.EventID] = true
		}
	}
	return at, nil
}

// command is git, with nothing of the user's or machine's settings.
func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=file", "GIT_NO_REPLACE_OBJECTS=1",
	}
	return cmd
}

// run runs git to its end.
func run(ctx context.Context, dir string, in []byte, args ...string) ([]byte, error) {
	cmd := command(ctx, dir, args...)
	cmd.Stdin = bytes.NewReader(in)
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, core.Errorf(core.Unavailable, "git: is not installed")
		}
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, first(says.Bytes()))
	}
	return out.Bytes(), nil
}

// first is the first line that git said.
func first(says []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(says)), "\n")
	return line[:min(len(line), 300)]
}

// name is an id as a part of a branch's or file's name. Ids that have other
// characters, or are long, get a digest so that none is another's.
func name(id string) string {
	var b strings.Builder
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			b.WriteByte('_')
		}
	}
	const most = 80
	if plain := b.String(); plain == id && len(id) <= most && !strings.HasPrefix(id, "-") {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	plain := strings.TrimLeft(b.String(), "-")
	return plain[:min(len(plain), most)] + "+" + hex.EncodeToString(sum[:8])
}

// manifest is the file of the branch "record".
func manifest(m dag.Manifest) ([]byte, error) {
	data, err := core.Encode(m)
	return append(data, '\n'), err
}

// segmentName is the file of a segment.
func segmentName(e dag.Event, seq uint64) string {
	stream := "tenant"
	switch {
	case e.RunID != "":
		stream = "run-" + name(e.RunID)
	case e.AgentID != "":
		stream = "agent-" + name(e.AgentID)
	}
	return fmt.Sprintf("%s%s/%012d.jsonl", segmentDir, stream, seq)
}

// branchOf is where an event's segments are.
func branchOf(e dag.Event) string {
	if e.AgentID == "" {
		return tenantBranch
	}
	return agentBranch + name(e.AgentID)
}
