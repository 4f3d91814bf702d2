package coder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
)

// memory is what is kept of an agent's workspace. It is written before a
// workspace is asked for and stays until the workspace is gone, so that one
// which was made is found again after a crash, used once and deleted in the
// end. It holds where the token is, never the token.
type memory struct {
	Tenant    string    `json:"tenant"`
	Name      string    `json:"name"`
	Born      time.Time `json:"born"` // when the agent was made
	Options   core.Raw  `json:"options"`
	Asked     time.Time `json:"asked,omitzero"`      // when its workspace was asked for
	Workspace string    `json:"workspace,omitempty"` // its id, "" until it is known
	Reported  time.Time `json:"reported,omitzero"`   // when the newest report that was shown was made
	Gone      bool      `json:"gone,omitzero"`       // the agent was deleted: so must be the workspace
	Given     *given    `json:"given,omitempty"`     // the newest task that it was given
	Heard     *heard    `json:"heard,omitempty"`     // how far its conversation was followed; nil: not at all
	Failed    string    `json:"failed,omitempty"`    // the newest build that failed and whose log was shown

	file string
}

// given is a task that an agent was given, or was about to be. It is on disk before the
// task is sent, so that an engine which comes after looks for it in the conversation
// and does not send it again. It stays when the agent is done: the engine may end before
// it has kept what came of it.
type given struct {
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt,omitzero"`
	Base    int    `json:"base"` // messages up to this id are older
	Done    bool   `json:"done,omitzero"`
}

// heard is how far a conversation was followed. Another build has another one.
type heard struct {
	Build string `json:"build"`
	ID    int    `json:"id"` // messages up to this one are known
	// Theirs says that the newest one was somebody else's, so that what the agent says
	// after it is for them.
	Theirs bool `json:"theirs,omitzero"`
}

// after is the same after a task of ours in a build, whose newest message is id.
func (h *heard) after(build string, id int) *heard {
	if h != nil && h.Build == build && h.ID >= id {
		return h
	}
	return &heard{Build: build, ID: id}
}

func (r *Runtime) memoryOf(a fleet.Agent) memory {
	return memory{
		Tenant: a.TenantID, Name: a.Name, Born: a.CreatedAt, Options: a.Options,
		// Another agent of the name may still have to be given up.
		file: filepath.Join(r.opt.State, a.TenantID+"."+a.Name+"."+strconv.FormatInt(a.CreatedAt.UnixNano(), 36)+".json"),
	}
}

// recall reads what is kept of an agent; what it was asked for now counts.
func (r *Runtime) recall(a fleet.Agent) (memory, error) {
	m := r.memoryOf(a)
	kept, err := readMemory(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	m.Asked, m.Workspace, m.Reported, m.Gone = kept.Asked, kept.Workspace, kept.Reported, kept.Gone
	m.Given, m.Heard, m.Failed = kept.Given, kept.Heard, kept.Failed
	return m, nil
}

func readMemory(file string) (memory, error) {
	m := memory{file: file}
	data, err := os.ReadFile(file)
	if err != nil {
		return m, fmt.Errorf("read what is kept of a workspace: %w", err)
	}
	if err := core.DecodeStored(data, &m); err != nil {
		return m, fmt.Errorf("read what is kept of a workspace in %s: %w", filepath.Base(file), err)
	}
	return m, nil
}

// memories reads all that is kept.
func (r *Runtime) memories() ([]memory, error) {
	entries, err := os.ReadDir(r.opt.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []memory
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		m, bad := readMemory(filepath.Join(r.opt.State, e.Name()))
		if bad == nil {
			all = append(all, m)
		}
		err = errors.Join(err, bad)
	}
	return all, err
}

// id is the workspace's, uuid.Nil while it is not known.
func (m memory) id() uuid.UUID {
	id, err := uuid.Parse(m.Workspace)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// write keeps it on disk before it returns.
func (m memory) write() error {
	data, err := core.Encode(m)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.file), 0o700)
	}
	if err == nil {
		err = safeopen.Replace(m.file, data)
	}
	if err != nil {
		return fmt.Errorf("keep what is known of the workspace: %w", err)
	}
	return nil
}

// keep keeps what is known now on disk: nobody can write what was known before over it.
func (a *agent) keep() error {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.mu.Lock()
	m := a.mem
	a.mu.Unlock()
	return m.write()
}

// write keeps this of it.
func (a *agent) write(m memory) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	return m.write()
}

func (m memory) drop() error {
	if err := os.Remove(m.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget a workspace: %w", err)
	}
	return safeopen.SyncDir(filepath.Dir(m.file))
}
