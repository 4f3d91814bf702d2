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
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/drivers/git"
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
type Format struct{ Git git.Git }

var _ dag.Format = Format{}

// Export implements dag.Format; dest is a directory.
func (f Format) Export(ctx context.Context, dest string, records iter.Seq2[dag.Record, error]) error {
	full, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	if err := os.Mkdir(full, 0o700); err != nil {
		return err
	}
	if err := f.export(ctx, full, records); err != nil {
		return errors.Join(err, os.RemoveAll(full))
	}
	return nil
}

func (f Format) export(ctx context.Context, dir string, records iter.Seq2[dag.Record, error]) error {
	repo := git.Call{Dir: dir, GitDir: filepath.Join(dir, ".git"), WorkTree: dir, Write: []string{dir}}
	do := func(args ...string) git.Call {
		c := repo
		c.Args = args
		return c
	}
	if _, err := f.Git.Run(ctx, git.Call{Dir: dir, Write: []string{dir}, Args: []string{"init", "--quiet", "--template=", "--initial-branch=record"}}); err != nil {
		return err
	}
	forks, err := forkedAt(records)
	if err != nil {
		return err
	}
	err = f.Git.Write(ctx, do("fast-import", "--quiet", "--done", "--date-format=raw"), func(pipe io.Writer) error {
		w := &writer{out: bufio.NewWriterSize(pipe, 1<<18), forks: forks, open: map[string]*segment{}, tips: map[string]int{}, commits: map[string]int{}}
		if err := w.write(records); err != nil {
			return err
		}
		return w.out.Flush()
	})
	if err != nil {
		return err
	}
	_, err = f.Git.Run(ctx, do("reset", "--quiet", "--hard"))
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
