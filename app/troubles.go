//go:build linux

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"swarmdeck/engine"
	"swarmdeck/engine/health"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
)

// troubles asks the engine that has a data file what is wrong; where none runs
// it opens the file for reading, as an engine does at its start.
func troubles(ctx context.Context, data string) (all []health.Trouble, err error) {
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if conn, err := socket.Dial(ctx, data); err == nil {
		out, err := socket.Ask(ctx, conn, []string{"tenant", "troubles", "-o", "json", "--page-size", "100", "--data", data})
		if err != nil {
			return nil, fmt.Errorf("ask the engine: %w", err)
		}
		return readTroubles(bytes.NewReader(out))
	}
	h := newEngines(&machine{here: func() {}, fail: func(error) {}, warn: func(error) {}}) // of which the troubles tell
	if h.dir, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("find the current directory: %w", err)
	}
	defer func() { err = errors.Join(err, h.close()) }()
	eng, err := h.open(ctx, command.Need{Data: data, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return inspected(ctx, eng)
}

// inspected are the troubles of an engine after a look at the tasks that live.
func inspected(ctx context.Context, eng *engine.Engine) ([]health.Trouble, error) {
	err := eng.Inspect(ctx)
	return eng.Health.All(), err
}

func readTroubles(out io.Reader) (all []health.Trouble, err error) {
	for d := json.NewDecoder(out); ; {
		var one health.Trouble
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what the engine answers: %w", err)
		}
		all = append(all, one)
	}
}

// missing has an engine say what a tenant of a database refers to and this machine lacks,
// because an engine on another one had the tenant before: the key of its secrets, and
// states of what agents work on. Their trees tell of themselves.
func (h *instance) missing(ctx context.Context, eng *engine.Engine) {
	if h.base == nil || h.tenant == "" {
		return
	}
	if err := eng.Secrets.Fault(ctx, h.tenant); err != nil {
		eng.Health.Report(h.tenant, "secrets", "", err)
	}
	eng.Health.Report(h.tenant, "states", health.Elsewhere, eng.Resources.Fault(ctx, h.tenant))
}
