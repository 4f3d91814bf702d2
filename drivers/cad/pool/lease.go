package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// lease is a worker in the hands of one caller.
type lease struct {
	pool *Pool
	w    *worker
	over bool
}

var _ cad.Worker = (*lease)(nil)

func (l *lease) Seq(workspace string) int {
	if l.over || l.w.lost() {
		return 0
	}
	return l.w.seqs[workspace]
}

// maxPart is how many bytes of entries go into one message, but for one entry
// that is longer.
const maxPart = 8 << 20

func (l *lease) Load(ctx context.Context, load cad.Load) error {
	if err := l.makeRoom(ctx, load.WorkspaceID); err != nil {
		return err
	}
	type part struct {
		WorkspaceID string     `json:"workspace_id"`
		From        int        `json:"from"`
		Entries     []core.Raw `json:"entries"`
		Directory   string     `json:"directory,omitempty"`
	}
	next := part{WorkspaceID: load.WorkspaceID, From: load.From, Entries: []core.Raw{}, Directory: load.Directory}
	size := 0
	send := func() error {
		var done struct {
			Seq int `json:"seq"`
		}
		reply, err := l.ask(ctx, "workspace.load", next, nil)
		if err == nil {
			err = core.DecodeStored(reply.Data, &done)
		}
		if err != nil {
			delete(l.w.seqs, load.WorkspaceID)
			return fmt.Errorf("load workspace %s from entry %d: %w", load.WorkspaceID, next.From, err)
		}
		l.w.seqs[load.WorkspaceID] = done.Seq
		next.From += len(next.Entries)
		next.Entries, size = next.Entries[:0], 0
		return nil
	}
	for _, e := range load.Entries {
		data, err := core.Encode(e)
		if err != nil {
			return fmt.Errorf("encode entry %d of workspace %s: %w", e.Seq, load.WorkspaceID, err)
		}
		if len(data) > env.MaxLine-1024 {
			return core.Invalid("entry", fmt.Sprintf("%d bytes", len(data)), fmt.Sprintf("at most %d bytes", env.MaxLine-1024))
		}
		if size > 0 && size+len(data) > maxPart {
			if err := send(); err != nil {
				return err
			}
		}
		next.Entries, size = append(next.Entries, data), size+len(data)
	}
	return send()
}

// makeRoom unloads the workspace that was not needed the longest, when the
// worker holds as many as it may.
func (l *lease) makeRoom(ctx context.Context, workspace string) error {
	l.w.used[workspace] = time.Now()
	for len(l.w.seqs) >= l.pool.opt.Held && l.w.seqs[workspace] == 0 {
		oldest := ""
		for id := range l.w.seqs {
			if oldest == "" || l.w.used[id].Before(l.w.used[oldest]) {
				oldest = id
			}
		}
		if err := l.Unload(ctx, oldest); err != nil {
			return err
		}
	}
	return nil
}

func (l *lease) Unload(ctx context.Context, workspace string) error {
	delete(l.w.seqs, workspace)
	delete(l.w.used, workspace)
	_, err := l.ask(ctx, "workspace.unload", map[string]string{"workspace_id": workspace}, nil)
	if fault := (*cad.Fault)(nil); errors.As(err, &fault) && fault.Code == int(env.EntityNotFound) {
		return nil // that is what was wanted
	}
	return err
}

func (l *lease) Call(ctx context.Context, c cad.Call) (cad.Reply, error) {
	reply, err := l.ask(ctx, c.Method, c.Params, c.Progress)
	if err != nil {
		return cad.Reply{}, err
	}
	if e := reply.Entry; e != nil {
		l.w.seqs[e.WorkspaceID], l.w.used[e.WorkspaceID] = e.Seq, time.Now()
	}
	return reply, nil
}

// ask sends one request and waits for its answer, or for what ends the waiting.
func (l *lease) ask(ctx context.Context, method string, params any, progress func(float64, string)) (cad.Reply, error) {
	if l.over {
		return cad.Reply{}, core.Errorf(core.Internal, "%s: the CAD worker was released", method)
	}
	if err := ctx.Err(); err != nil {
		return cad.Reply{}, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
	w := l.w
	call := w.start(method, params, progress)
	defer w.quiet()
	select {
	case <-call.Done:
	case <-ctx.Done():
		if !l.giveUp(call) {
			return cad.Reply{}, fmt.Errorf("%s: the CAD worker was ended, for it did not stop: %w", method, context.Cause(ctx))
		}
		if call.Err != nil {
			return cad.Reply{}, fmt.Errorf("%s: %w", method, context.Cause(ctx))
		} // it was done in time after all
	}
	if call.Err != nil {
		return cad.Reply{}, w.failure(method, call.Err)
	}
	reply, err := read(call.Result)
	if err != nil {
		w.kill()
		return cad.Reply{}, core.Errorf(core.Unavailable, "the CAD worker's answer to %s can't be read: %v", method, err)
	}
	return reply, nil
}

// start sends a request, whose progress is told from then on.
func (w *worker) start(method string, params any, progress func(float64, string)) *jsonrpc.Call {
	w.telling.Lock()
	defer w.telling.Unlock()
	call := w.conn.Start(method, params)
	w.call, w.progress = call.ID, progress
	return call
}

// quiet tells no progress any more, and waits for what is being told.
func (w *worker) quiet() {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.progress = nil
}

// giveUp asks the process to stop a call. One that does not answer soon is
// killed: that is false.
func (l *lease) giveUp(call *jsonrpc.Call) bool {
	patience := time.NewTimer(l.pool.opt.Grace)
	defer patience.Stop()
	_ = l.w.conn.Notify("$/cancelRequest", map[string]uint64{"id": call.ID})
	select {
	case <-call.Done:
		return !errors.Is(call.Err, jsonrpc.ErrClosed)
	case <-patience.C:
	}
	l.w.kill()
	return false
}

// failure is a refusal, or the end of the process.
func (w *worker) failure(method string, err error) error {
	var refused *jsonrpc.Error
	switch {
	case errors.Is(err, jsonrpc.ErrClosed):
		return w.blame(method)
	case !errors.As(err, &refused):
		return fmt.Errorf("%s: %w", method, err)
	}
	var data struct {
		Name       string   `json:"error_type"`
		Field      string   `json:"field"`
		Value      core.Raw `json:"provided_value"`
		Suggestion string   `json:"suggestion"`
	}
	if len(refused.Data) > 0 {
		_ = jsonrpc.Decode(refused.Data, &data)
	}
	if data.Name == env.KernelLost { // what the worker computes with is a part of it
		w.kill()
		return core.Errorf(core.Unavailable, "the CAD worker (process %d) during %s: %s", w.proc.PID(), method, refused.Message)
	}
	return &cad.Fault{
		Code: refused.Code, Name: data.Name, Message: refused.Message, Field: data.Field,
		Value: data.Value, Suggestion: data.Suggestion,
	}
}

// read takes an answer apart.
func read(result core.Raw) (cad.Reply, error) {
	var r struct {
		Data     core.Raw `json:"data"`
		Metadata struct {
			Millis float64      `json:"execution_time_ms"`
			Entry  *model.Entry `json:"entry"`
		} `json:"metadata"`
	}
	if err := core.DecodeStored(result, &r); err != nil {
		return cad.Reply{}, err
	}
	if r.Data.Kind() != '{' {
		return cad.Reply{}, errors.New("data: want an object")
	}
	return cad.Reply{Data: r.Data, Entry: r.Metadata.Entry, Elapsed: time.Duration(r.Metadata.Millis * float64(time.Millisecond))}, nil
}

func (l *lease) Release() {
	if l.over {
		return
	}
	l.over = true
	l.pool.release(l.w)
}
